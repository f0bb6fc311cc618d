"""Which profiler wrote a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from tui_probe.importers.nsys import SQLITE_MARK
from tui_probe.importers.text_file import first_bytes

if TYPE_CHECKING:
    from pathlib import Path

Tool = Literal["ncu", "nsys"]
_SUFFIXES: Final[dict[str, Tool]] = {
    ".ncu-rep": "ncu", ".nsys-rep": "nsys", ".qdrep": "nsys", ".sqlite": "nsys",
}  # fmt: skip
_READ: Final = 1 << 18
_NSYS_HEADINGS: Final = (b"Total Time (ns)", b"Start (ns)", b"Proj Start (ns)", b"Duration (ns)")


def tool_of(path: Path) -> Tool | None:
    """By its suffix, else by its headings; None where neither tells. ImportFileError if it cannot be read."""
    if path.suffix in _SUFFIXES:
        return _SUFFIXES[path.suffix]
    start = first_bytes(path, _READ)
    if start.startswith(SQLITE_MARK):
        return "nsys"
    ncu = b'"Kernel Name"' in start and b'"ID"' in start
    nsys = any(heading in start for heading in _NSYS_HEADINGS)
    return None if ncu == nsys else "ncu" if ncu else "nsys"
