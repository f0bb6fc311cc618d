"""``tensor.trace``: a line for each tensor and name, with facts from the framework of its array.

The format is that of existing systems, fields two blanks apart: ``[call]``, nanoseconds since the epoch, the shape, the
bytes of the memory that holds the tensor, its address in decimal, the variable, the function, and file:line. Behind
these are ours: type, bytes per element, strides in elements, and the address at which its memory begins.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, NamedTuple, Optional, Set, Tuple

MAX_BYTES = 16 << 20
"""Byte limit of the file of one process."""
_MAX_ALIASES = 8
"""Names of one address that are remembered as written: those of a caller and those of a callee take turns."""
_TICK = 1.0
"""Seconds by which times of files may be off."""
_DESCRIPTORS = "/proc/self/fd"
_MAX_PENDING_LINES = 4096
"""Lines that are kept until the process has launched a kernel, and thus has a trace; the last ones."""


class TensorLines:
    """Writes to the trace of the process that it is in, as soon as there is one; a child's lines go to its own."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._stamp = os.environ.get("TUI_PROBE_STAMP", "")
        self._reset()
        atexit.register(self.flush)

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._folder = ""
        self._watched_folders = self._root, os.path.join(self._root, f"{self._stamp}_{self._pid}")
        """Directories that change when the trace begins; the launcher makes the second, of the first trace, before."""
        self._seen_change_times: Tuple[int, ...] = ()
        """Times of their last change when the trace was looked for, in ns since 1970."""
        self._pending_lines: Deque[str] = deque(maxlen=_MAX_PENDING_LINES)
        self._names_by_address: Dict[int, Tuple[object, Set[str]]] = {}
        self._remaining_bytes = MAX_BYTES

    def add(self, array: Array, name: str, function: str, file: str, line: int) -> None:
        """Write that a variable holds an array, once per name as long as arrays of the same form are at its address."""
        if self._pid != os.getpid():
            self._reset()
        form = (array.shape, array.strides, array.dtype)
        last_form, names = self._names_by_address.get(array.start, (None, set()))
        if last_form != form or len(names) >= _MAX_ALIASES:
            self._names_by_address[array.start] = form, (names := set())
        if name in names or self._remaining_bytes <= 0:
            return
        names.add(name)
        shape = f"torch.Size({list(array.shape)})"
        location = f"{_one_field(file)}:{line}"
        fields = (time.time_ns(), shape, array.size, array.start, _one_field(name), _one_field(function), location)
        extra_fields = (_one_field(array.dtype), array.itemsize, array.strides, array.storage)
        self.write_line("  ".join(map(str, ("[call]", *fields, *extra_fields))), tag="")

    def write_line(self, text: str, tag: str = "[info]  ") -> None:
        """Write a line: an ``[info]`` line, or one of another ``tag``."""
        self._pending_lines.append(f"{tag}{text}\n")
        self.flush()

    def close(self) -> None:
        """Write what waits once the process ends, if it has a trace then; nothing comes after this."""
        self.flush()
        if not self._pending_lines:
            atexit.unregister(self.flush)

    def flush(self) -> None:
        """Write what waits, if the process has a trace. The file is not kept open: the program may close any."""
        if not self._pending_lines or self._pid != os.getpid() or not self._has_trace():
            return
        text = "".join(self._pending_lines)
        self._pending_lines.clear()
        data = text.encode("utf-8", "surrogateescape")
        self._remaining_bytes -= len(data)
        if self._remaining_bytes <= 0:
            data += f"[info]  further tensor names were not recorded: limit of {MAX_BYTES} bytes\n".encode()
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
        change_times = tuple(_change_time(folder) for folder in self._watched_folders)
        if change_times == self._seen_change_times:
            return False
        if time.time_ns() - max(change_times) > _TICK * 1e9:
            self._seen_change_times = change_times
        self._folder = _trace_of_process(self._root)
        return bool(self._folder)


def _change_time(folder: str) -> int:
    """Return the time of a directory's last change, in ns since 1970; 0 if it is not there."""
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
    process_suffix = re.compile(rf"_{os.getpid()}(?!\d)")
    try:
        numbers = sorted(map(int, os.listdir(_DESCRIPTORS)), reverse=True)  # the hook's are the highest
    except (OSError, ValueError):
        return ""
    for number in numbers:
        try:
            folder, name = os.path.split(os.readlink(f"{_DESCRIPTORS}/{number}"))
        except OSError:  # closed since
            continue
        if name == "event.log" and os.path.dirname(folder) == root and process_suffix.search(os.path.basename(folder)):
            return folder
    return ""


def _one_field(text: str) -> str:
    """Return a text in which nothing ends a field or a line."""
    return " ".join(text.split()) if text.split() else "?"


class Array(NamedTuple):
    """``size`` is that of the memory which holds the array, in bytes; ``strides`` are in elements."""

    start: int
    size: int
    shape: Tuple[int, ...]
    dtype: str
    itemsize: int
    strides: Tuple[int, ...]
    storage: int


Reader = Callable[[Any], Optional[Array]]


class Frameworks:
    """The types of arrays of those frameworks that the program has imported so far.

    Only these types themselves: a subclass may run code of its own when it is asked, and a tracer has no memory.
    """

    def __init__(self) -> None:
        self.readers: Dict[type, Reader] = {}
        self.folders: Tuple[str, ...] = ()
        """Directories of the frameworks' own code, with a slash at the end."""
        self.is_importing = False
        """True while one is being imported."""
        self._not_imported = dict(_FRAMEWORKS)

    def find_imported(self) -> bool:
        """Look for frameworks imported since the last call; return True if there is one."""
        has_new = self.is_importing = False
        for name, (module_name, types, reader) in list(self._not_imported.items()):
            module = sys.modules.get(module_name)
            array_types = [getattr(module, type_name, None) for type_name in types]
            if module is None:
                continue
            if not all(isinstance(array_type, type) for array_type in array_types):
                self.is_importing = True
                continue
            del self._not_imported[name]
            if reader is not None:
                self.readers.update(dict.fromkeys((kind for kind in array_types if isinstance(kind, type)), reader))
            self.folders += _package_folder(name)
            has_new = True
        return has_new

    def read(self, value: Any) -> Array | None:
        """Return the array; None if it is not one, is not in device memory, or cannot be read."""
        reader = self.readers.get(type(value))
        if reader is None:
            return None
        try:
            array = reader(value)
        except Exception:  # noqa: BLE001 - freed, traced, sparse: a framework has many ways to say no
            return None
        return array if array is not None and array.start > 0 and array.size > 0 else None


def _package_folder(name: str) -> Tuple[str, ...]:
    file = getattr(sys.modules.get(name), "__file__", None)
    return (os.path.dirname(file) + os.sep,) if file else ()


def _torch_array(value: Any) -> Array | None:
    torch = sys.modules["torch"]
    # A mode that the program has entered would see what is asked here.
    with torch._C.DisableTorchFunction():
        if not value.is_cuda:
            return None
        storage = value.untyped_storage() if hasattr(value, "untyped_storage") else value.storage()
        itemsize = int(value.element_size())
        offset = int(value.storage_offset()) * itemsize
        # The address by ``data_ptr`` would copy a tensor that is only copied when it is written to.
        data_address = getattr(torch._C, "_data_address", None)
        start = int(value.data_ptr() if data_address is None else data_address(value))
        return Array(
            start, int(storage.nbytes()), tuple(map(int, value.shape)), str(value.dtype), itemsize,
            tuple(map(int, value.stride())), start - offset,
        )  # fmt: skip


def _cupy_array(value: Any) -> Array:
    itemsize = int(value.itemsize)
    strides = tuple(int(stride) // itemsize for stride in value.strides)
    return Array(
        int(value.data.ptr), int(value.nbytes), tuple(map(int, value.shape)), str(value.dtype), itemsize, strides,
        int(value.data.mem.ptr),
    )  # fmt: skip


def _jax_array(value: Any) -> Array | None:
    devices = list(value.devices())
    if value.is_deleted() or len(devices) != 1 or devices[0].platform not in ("gpu", "cuda"):
        return None
    start, shape, strides, count = int(value.unsafe_buffer_pointer()), tuple(map(int, value.shape)), [], 1
    for extent in reversed(shape):
        strides.append(count)
        count *= extent
    itemsize = int(value.dtype.itemsize)
    return Array(start, int(value.nbytes), shape, str(value.dtype), itemsize, tuple(reversed(strides)), start)


_FRAMEWORKS: Dict[str, Tuple[str, Tuple[str, ...], Optional[Reader]]] = {
    "torch": ("torch", ("Tensor",), _torch_array),
    "torch.nn": ("torch.nn", ("Parameter",), _torch_array),
    "cupy": ("cupy", ("ndarray",), _cupy_array),
    "jax": ("jax._src.array", ("ArrayImpl",), _jax_array),
    "triton": ("triton", (), None),
    "numpy": ("numpy", (), None),
}
"""Module of the array types, and their names there, by package whose code is not inspected; some have no types."""
