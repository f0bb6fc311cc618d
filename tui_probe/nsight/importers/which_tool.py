"""Which profiler wrote a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from tui_probe.nsight.importers.chrome_file import is_chrome
from tui_probe.nsight.importers.text_file import first_bytes

if TYPE_CHECKING:
    from pathlib import Path

Tool = Literal["ncu", "nsys", "chrome"]
SQLITE_MARK: Final = b"SQLite format 3\0"
_SUFFIXES: Final[dict[str, Tool]] = {
    ".ncu-rep": "ncu", ".nsys-rep": "nsys", ".qdrep": "nsys", ".sqlite": "nsys",
}  # fmt: skip
_READ: Final = 1 << 18
_OF_NCU: Final = (b'"ID","Process ID"', b"ID,Process ID", b"==PROF==", b"==ERROR==")
_OF_NSYS: Final = (b"Start (ns),", b"Time (%),", b"Projected Start", b"Proj Start (ns)", b"Total Time")


def tool_of(path: Path) -> Tool | None:
    """By its suffix, else by its headings; None where neither tells. Raises ImportFileError as ``first_bytes`` does."""
    if path.suffix in _SUFFIXES:
        return _SUFFIXES[path.suffix]
    if is_chrome(path):
        return "chrome"
    start = first_bytes(path, _READ)
    if start.startswith(SQLITE_MARK):
        return "nsys"
    ncu, nsys = (any(mark in start for mark in marks) for marks in (_OF_NCU, _OF_NSYS))
    return None if ncu == nsys else "ncu" if ncu else "nsys"
