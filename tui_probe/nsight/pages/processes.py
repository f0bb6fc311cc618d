"""Names of processes on the pages of timelines: ids of the system, and files where several have the same id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw.shorten import cut_apart
from tui_probe.nsight.importers.nsys_model import file_number, system_id
from tui_probe.nsight.pages.cells import short_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.nsight.importers.nsys_model import Stream

_FILE_CELLS: Final = 14
"""Cells of a file in the label of a stream."""


class ProcessNames:
    """Names for the processes of some streams of these files."""

    def __init__(self, files: Sequence[str], streams: Sequence[Stream]) -> None:
        processes = {stream.process for stream in streams}
        self.several = len(processes) > 1
        """True if there are several processes."""
        self.by_file = len(files) > 1 and len({*map(system_id, processes)}) < len(processes)
        """True if ids of the system do not distinguish them."""
        self._files = short_names(files)
        self.cut = cut_apart(self._files)

    def file(self, stream: Stream | None) -> str | None:
        """The file of a stream's process."""
        number = None if stream is None else file_number(stream.process)
        return None if number is None else self._files[number]

    def label(self, stream: Stream) -> str:
        """The process of a stream in few cells, with a blank behind it; "" where there is one process."""
        if not self.several:
            return ""
        if self.by_file and (file := self.file(stream)) is not None:
            return f"{self.cut(file, _FILE_CELLS)} "
        number = system_id(stream.process)
        return "" if number is None else f"{number} "
