"""Two columns of lines."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from tui_probe.draw.spans import clip_line, width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.draw.spans import Line


def beside(left: Sequence[Line], right: Sequence[Line], cells: int, gap: int = 2) -> list[Line]:
    """``left`` in columns of ``cells`` cells, ``right`` after a gap; the longer side continues alone."""
    return [
        (*fitted(one, cells), (" " * gap, ""), *other) if other else one
        for one, other in zip_longest(left, right, fillvalue=())
    ]


def fitted(line: Line, cells: int) -> Line:
    """A line cut or filled with blanks to exactly ``cells`` cells."""
    shown = clip_line(line, cells)
    used = sum(width(text) for text, _ in shown)
    return (*shown, (" " * (cells - used), "")) if used < cells else shown
