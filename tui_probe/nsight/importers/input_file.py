"""Files of other profilers: the tool that wrote one, and advice for a file of another kind."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.binaries import elf, fatbin
from tui_probe.nsight.importers.file_reading import first_bytes
from tui_probe.nsight.importers.json_files import is_chrome, json_advice

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Tool = Literal["ncu", "nsys", "chrome"]
SQLITE_MARK: Final = b"SQLite format 3\0"
_SUFFIXES: Final[dict[str, Tool]] = {
    ".ncu-rep": "ncu", ".nsys-rep": "nsys", ".qdrep": "nsys", ".sqlite": "nsys",
}  # fmt: skip
_HEAD_BYTES: Final = 1 << 18
_LOOKED_AT: Final = 1 << 16
_NCU_MARKS: Final = (b'"ID","Process ID"', b"ID,Process ID", b"==PROF==", b"==ERROR==")
_NSYS_MARKS: Final = (b"Start (ns),", b"Time (%),", b"Projected Start", b"Proj Start (ns)", b"Total Time")


def tool_of(path: Path) -> Tool | None:
    """By its suffix, else by its headings; None where neither tells. Raises ImportFileError as ``first_bytes`` does."""
    if path.suffix in _SUFFIXES:
        return _SUFFIXES[path.suffix]
    if is_chrome(path):
        return "chrome"
    start = first_bytes(path, _HEAD_BYTES)
    if start.startswith(SQLITE_MARK):
        return "nsys"
    ncu, nsys = (any(mark in start for mark in marks) for marks in (_NCU_MARKS, _NSYS_MARKS))
    return None if ncu == nsys else "ncu" if ncu else "nsys"


_OTHER_COMMAS: Final = (b"ID;Process ID", b"ID\tProcess ID")
_NSYS_OTHER_COMMAS: Final = tuple(
    mark + comma
    for mark in (b"Start (ns)", b"Time (%)", b"Total Time (ns)", b"Projected Start (ns)")
    for comma in (b";", b"\t")
)
"""Headings as a spreadsheet may save them."""
_REPORTS: Final = (".nsys-rep", ".qdrep")
_PTX: Final = re.compile(rb"^\s*\.version\s+\d+\.\d+\s+\.target\s+sm_", re.MULTILINE)
_TOOL_FILES: Final[dict[Tool, str]] = {
    "ncu": "a file of Nsight Compute",
    "nsys": "a file of Nsight Systems",
    "chrome": "a Chrome trace",
}


def mismatch(path: Path, asked: Tool) -> str | None:
    """Return why a file that was not understood is not of ``asked``, ncu or nsys; None if it could be anything.

    Raises ImportFileError where it cannot be read, or is packed.
    """
    start, word = first_bytes(path, _LOOKED_AT), shlex.quote(str(path))
    if not start:
        return "the file is empty: did the program end, and did the profiler write it?"
    if code := code_file_advice(path):
        return code
    if asked == "ncu" and path.suffix in _REPORTS:
        return f"a report of Nsight Systems, which only nsys can read: nsys export --type sqlite {word}"
    if asked == "nsys" and start.startswith(b"NVR"):
        return f"a report of Nsight Compute: tui-probe import ncu {word}"
    tool = tool_of(path)
    if tool is not None and tool != asked:
        return f"{_TOOL_FILES[tool]}: tui-probe import {tool} {word}"
    if advice := json_advice(path):
        return advice
    if _has_other_commas(start, _OTHER_COMMAS if asked == "ncu" else _NSYS_OTHER_COMMAS):
        return f"its cells are not separated by commas: take the file that {asked} wrote, or save it anew with commas"
    return None


def _has_other_commas(start: bytes, headings: Sequence[bytes]) -> bool:
    return any(heading in start.replace(b'"', b"") for heading in headings)


def code_file_advice(path: Path) -> str:
    """Name the command that takes a program or the code of kernels; "" for others. Raises as ``mismatch``."""
    start = first_bytes(path, _LOOKED_AT)
    if start.startswith((elf.MAGIC, fatbin.FATBIN_MAGIC)):
        what = "a program, library, object or code of a GPU"
    elif path.suffix == ".ptx" or _PTX.search(start):
        what = "PTX"
    else:
        return ""
    return f"{what}, not a profile: tui-probe check PROBE {shlex.quote(str(path))} tries a probe on its kernels"
