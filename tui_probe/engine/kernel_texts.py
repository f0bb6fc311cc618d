"""Text files of a prepared kernel: ``kernel.info`` for the hook, ``process.log`` for users.

``tui_probe/help/kernel-info.md`` describes every line of kernel.info; ``hook/src/prepare/kernel_info.c`` reads them.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final, Self

from tui_probe.engine.whole_files import APPENDED_FILE, NEW_FILE, open_file, write_all
from tui_probe.probe_model.storage import Layout
from tui_probe.reasons import read_reason

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    from tui_probe.probe_model.probe import LeastShare
    from tui_probe.probe_model.storage import MapSlot
    from tui_probe.reasons import Reason

SASS_MODE_LINE: Final = "way graft"
"""Line of kernel.info by which a grafted kernel is known."""
_NOTE_PREFIX: Final = "note "


def kernel_info(
    name: str,
    parameters: int,
    maps: Sequence[MapSlot],
    callback: str = "",
    variables: Sequence[str] = (),
    no_replay: Reason | None = None,
    *,
    samples_blocks: bool = False,
    has_independent_blocks: bool = False,
    reads_allocations: bool = False,
    note: Reason | None = None,
    way: Sequence[str] = (),
) -> str:
    """Return the text of kernel.info.

    ``parameters`` is the number of the kernel's own parameters, ``way`` are the lines of a kernel in SASS mode.
    """
    lines = [name, str(parameters), str(len(maps))]
    lines += [f"{slot.level.value},{slot.slot_bytes}" for slot in maps]
    lines += [_storage_line(index, slot) for index, slot in enumerate(maps)]
    lines += [f"reduce {index} {slot.reduction.line}" for index, slot in enumerate(maps) if slot.reduction is not None]
    lines += [_least_line(index, slot.least, maps) for index, slot in enumerate(maps) if slot.least is not None]
    lines += [f"sites {index} {' '.join(map(str, slot.lines))}" for index, slot in enumerate(maps) if slot.lines]
    lines += [f"callback {callback}"] if callback else []
    lines += [f"global {variable}" for variable in variables]
    lines += [f"no-replay {no_replay.written}"] if no_replay else []
    lines += ["blocks sampled"] if samples_blocks else []
    lines += ["blocks independent"] if has_independent_blocks else []
    lines += ["allocations"] if reads_allocations else []
    lines += [f"{_NOTE_PREFIX}{note.written}"] if note else []
    lines += way
    return "\n".join(lines) + "\n"


def with_note(text: str, note: Reason) -> str:
    """Return the text of the file with a note for people, unless there is one already."""
    return text if note_in(text) else f"{text}{_NOTE_PREFIX}{note.written}\n"


def note_in(text: str) -> str:
    """Return the words of the note in a ``kernel.info``, "" without one."""
    notes = (line.removeprefix(_NOTE_PREFIX) for line in text.splitlines() if line.startswith(_NOTE_PREFIX))
    return next((read_reason(note).text for note in notes), "")


def _least_line(index: int, share: LeastShare, maps: Sequence[MapSlot]) -> str:
    total = next(number for number, slot in enumerate(maps) if (slot.purpose, slot.name) == ("map", share.whole))
    return f"least {index} percent {share.percent} of {total}"


def _storage_line(index: int, slot: MapSlot) -> str:
    if slot.storage is None:
        return f"storage {index} counts"
    storage = slot.storage
    copies = f" copies {storage.copies}" if storage.layout is Layout.SITES else ""
    max_offset = "" if storage.max_offset is None else f" max {storage.max_offset}"
    even_mark = " even" if storage.even else ""
    options = f"{copies}{max_offset}{even_mark}"
    return f"storage {index} {storage.layout.value} record {storage.record_bytes} cap {storage.cap}{options}"


class ProcessLog:
    """Appends whole pieces of text, so that what two threads write does not mix. A new log replaces an old one.

    As a context manager it keeps the file open: up to the end of the block, in which the launch waits. What is written
    later opens it again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._descriptor: int | None = open_file(path, NEW_FILE)

    def write(self, text: str) -> None:
        """Append text and a newline. It is in the file when this returns. Raises OSError."""
        data = (text.rstrip("\n") + "\n").encode("utf-8", "replace")
        with self._lock:
            if self._descriptor is not None:
                write_all(self._descriptor, data)
                return
            descriptor = open_file(self._path, APPENDED_FILE)
            try:
                write_all(descriptor, data)
            finally:
                os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None
