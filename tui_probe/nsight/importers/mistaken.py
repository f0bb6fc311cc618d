"""What a file is that is not what was asked for: empty, or of the other profiler; and what to do with it."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from tui_probe.nsight.importers.text_file import first_bytes
from tui_probe.nsight.importers.which_tool import Tool, tool_of
from tui_probe.ptx import elf, fatbin

if TYPE_CHECKING:
    from pathlib import Path

_OTHER_COMMAS: Final = (b'"ID";"Process ID"', b"ID;Process ID", b'"ID"\t"Process ID"', b"ID\tProcess ID")
"""Headings as a spreadsheet may save them."""
_REPORTS: Final = (".nsys-rep", ".qdrep")
_LOOKED_AT: Final = 1 << 16
_PTX: Final = re.compile(rb"^\s*\.version\s+\d+\.\d+\s+\.target\s+sm_", re.MULTILINE)
_NAMES: Final[dict[Tool, str]] = {
    "ncu": "a file of Nsight Compute",
    "nsys": "a file of Nsight Systems",
    "chrome": "a Chrome trace",
}


def mistaken(path: Path, asked: Tool) -> str | None:
    """Why a file that was not understood is none of ``asked``, ncu or nsys; None where it could be anything.

    Raises ImportFileError where it cannot be read, or is packed.
    """
    start, word = first_bytes(path, _LOOKED_AT), shlex.quote(str(path))
    if not start:
        return "the file is empty: did the program end, and did the profiler write it?"
    if code := code_words(path):
        return code
    if asked == "ncu" and path.suffix in _REPORTS:
        return f"a report of Nsight Systems, which only nsys can read: nsys export --type sqlite {word}"
    if asked == "nsys" and start.startswith(b"NVR"):
        return f"a report of Nsight Compute: tui-probe import ncu {word}"
    tool = tool_of(path)
    if tool is not None and tool != asked:
        return f"{_NAMES[tool]}: tui-probe import {tool} {word}"
    if asked == "ncu" and any(mark in start for mark in _OTHER_COMMAS):
        return "its cells are not separated by commas: take the file that ncu wrote, or save it anew with commas"
    return None


def code_words(path: Path) -> str:
    """That a file is a program or the code of kernels, and what takes it; "" for others. Raises as ``mistaken``."""
    start = first_bytes(path, _LOOKED_AT)
    if start.startswith((elf.MAGIC, fatbin.MAGIC)):
        what = "a program, library, object or code of a GPU"
    elif path.suffix == ".ptx" or _PTX.search(start):
        what = "PTX"
    else:
        return ""
    return f"{what}, not a profile: tui-probe check PROBE {shlex.quote(str(path))} tries a probe on its kernels"
