"""``tensor.trace``: a line for each tensor and name.

The format is that of existing systems, fields two blanks apart: ``[call]``, nanoseconds since the epoch, the shape, the
bytes of the memory that holds the tensor, its address in decimal, the variable, the function, and file:line. Behind
these are ours: type, bytes per element, strides in elements, and the address at which its memory begins.
"""

from __future__ import annotations

import atexit
import os
import re
import time
from collections import deque
from typing import TYPE_CHECKING, Deque, Dict, Set, Tuple

if TYPE_CHECKING:
    from .arrays import Array

MOST_BYTES = 16 << 20
"""Byte limit of the file of one process."""
_ALIASES = 8
"""Names of one address that are remembered as written: those of a caller and those of a callee take turns."""
_TICK = 1.0
"""Seconds by which times of files may be off."""
_DESCRIPTORS = "/proc/self/fd"
_WAITING = 4096
"""Lines that are kept until the process has launched a kernel, and thus has a trace; the last ones."""


class TensorLines:
    """Writes to the trace of the process that it is in, as soon as there is one; a child's lines go to its own."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._stamp = os.environ.get("TUI_PROBE_STAMP", "")
        self._begin()
        atexit.register(self.flush)

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._folder = ""
        self._watched = self._root, os.path.join(self._root, f"{self._stamp}_{self._pid}")
        """Directories that change when the trace begins; the launcher makes the second, of the first trace, before."""
        self._looked: Tuple[int, ...] = ()
        """Times of their last change when the trace was looked for, in ns since 1970."""
        self._waiting: Deque[str] = deque(maxlen=_WAITING)
        self._named: Dict[int, Tuple[object, Set[str]]] = {}
        self._left = MOST_BYTES

    def add(self, array: Array, name: str, function: str, file: str, line: int) -> None:
        """Write that a variable holds an array, unless that was written, and of one of that form at its address."""
        if self._pid != os.getpid():
            self._begin()
        form = (array.shape, array.strides, array.dtype)
        known, names = self._named.get(array.start, (None, set()))
        if known != form or len(names) >= _ALIASES:
            self._named[array.start] = form, (names := set())
        if name in names or self._left <= 0:
            return
        names.add(name)
        shape = f"torch.Size({list(array.shape)})"
        place = f"{_one_field(file)}:{line}"
        fields = (time.time_ns(), shape, array.size, array.start, _one_field(name), _one_field(function), place)
        more = (_one_field(array.dtype), array.itemsize, array.strides, array.storage)
        self.say("  ".join(map(str, ("[call]", *fields, *more))), tag="")

    def say(self, text: str, tag: str = "[info]  ") -> None:
        """Write a line of another kind."""
        self._waiting.append(f"{tag}{text}\n")
        self.flush()

    def close(self) -> None:
        """Write what waits once the process ends, if it has a trace then; nothing comes after this."""
        self.flush()
        if not self._waiting:
            atexit.unregister(self.flush)

    def flush(self) -> None:
        """Write what waits, if the process has a trace. The file is not kept open: the program may close any."""
        if not self._waiting or self._pid != os.getpid() or not self._has_trace():
            return
        text = "".join(self._waiting)
        self._waiting.clear()
        data = text.encode("utf-8", "surrogateescape")
        self._left -= len(data)
        if self._left <= 0:
            data += f"[info]  after {MOST_BYTES} bytes of names, further tensors are not named\n".encode()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            file = os.open(os.path.join(self._folder, "tensor.trace"), flags, 0o644)
        except OSError:
            return
        try:
            os.write(file, data)
        except OSError:  # a full disk; the trace says so elsewhere
            pass
        finally:
            os.close(file)

    def _has_trace(self) -> bool:
        """True if the process has a trace. Looks only if a directory of traces has changed since the last look."""
        if self._folder:
            return True
        changed = tuple(_changed(folder) for folder in self._watched)
        if changed == self._looked:
            return False
        if time.time_ns() - max(changed) > _TICK * 1e9:
            self._looked = changed
        self._folder = _trace_of_process(self._root)
        return bool(self._folder)


def _changed(folder: str) -> int:
    """The time of a directory's last change, in ns since 1970; 0 if it is not there."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _trace_of_process(root: str) -> str:
    """Return the trace directory in ``root`` whose event.log this process has open, or "".

    The number in its name does not identify it: an earlier process, or an earlier program of this process, may have had
    it. Nor does the time: the first launch may be older than the first look. A forked child has the log of its parent
    open, too, which has another number.
    """
    own = re.compile(rf"_{os.getpid()}(?!\d)")
    try:
        numbers = sorted(map(int, os.listdir(_DESCRIPTORS)), reverse=True)  # the hook's are the highest
    except (OSError, ValueError):
        return ""
    for number in numbers:
        try:
            folder, name = os.path.split(os.readlink(f"{_DESCRIPTORS}/{number}"))
        except OSError:  # closed since
            continue
        if name == "event.log" and os.path.dirname(folder) == root and own.search(os.path.basename(folder)):
            return folder
    return ""


def _one_field(text: str) -> str:
    """A text in which nothing ends a field or a line."""
    return " ".join(text.split()) if text.split() else "?"
