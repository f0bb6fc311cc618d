"""Which line of PTX an instruction of machine code came from, where the assembler wrote that down.

The line table for PTX in a cubin says it for each address, exactly. It is there where the PTX names its source.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Final

from tui_probe.analysis.sass import class_of_line
from tui_probe.errors import ImageError
from tui_probe.input_limits import CUBIN
from tui_probe.ptx.line_tables import line_tables
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.analysis.sass import Code

_DOING: Final = ("load", "store", "atomic", "tensor", "barrier", "branch", "local")
_PREPARING: Final = ("LDC", "ULDC", "BSSY", "BSYNC", "BMOV", "BREAK", "WARPSYNC", "YIELD")
"""Opcodes of these classes that are there for other instructions: constants, and where lanes come together again."""


def ptx_lines(cubin: Path, code: Code) -> list[int | None]:
    """For each line of ``code`` the line of the PTX that ``cubin`` was assembled from, counted from 1.

    None for all where the file has no such table, or code of several functions, whose addresses are alike.
    """
    unknown: list[int | None] = [None] * len(code.lines)
    try:
        tables = line_tables(read_within(cubin, CUBIN))
    except (OSError, ImageError):
        return unknown
    known = [address for address in code.addresses if address is not None]
    if len(tables) != 1 or len(known) != len(set(known)):
        return unknown
    rows = tables[0].ptx
    starts = [row.address for row in rows]
    places = (None if address is None else bisect_right(starts, address) - 1 for address in code.addresses)
    return [None if place is None or place < 0 else rows[place].line for place in places]


def doing(code: Code, lines: Sequence[int | None]) -> list[int | None]:
    """The same, of the one instruction of each line of PTX that does what the line says; None of all others.

    A line that was unrolled or split has several, none of which did what was measured of the line.
    """
    acting = [line if line is not None and _does(text) else None for line, text in zip(lines, code.lines, strict=True)]
    alone, active = Counter(lines), Counter(acting)
    return [
        line if alone[line] == 1 or (act is not None and active[act] == 1) else None
        for line, act in zip(lines, acting, strict=True)
    ]


def _does(text: str) -> bool:
    """Is an instruction what a line of PTX is there for, and not what that needs?"""
    opcode = next((word for word in text.split() if not word.startswith("@")), "")
    return class_of_line(text) in _DOING and not opcode.startswith(_PREPARING)
