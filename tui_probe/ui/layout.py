"""Where things stand on terminals of different sizes. Knows nothing of Textual."""

from __future__ import annotations

from dataclasses import dataclass

SMALLEST = (60, 16)
SIDE_BY_SIDE = 240
_BARS = 4
PREVIEW = 5
"""Rows of the preview: see ``pages.preview``."""
_FOR_PREVIEW = (100, 40)
"""The smallest terminal that has one."""


@dataclass(frozen=True)
class Arrangement:
    """``beside``: the page right of the table, else below it. ``table_cells``: the table's columns or rows."""

    beside: bool
    table_cells: int
    preview: int = 0
    """Rows of the preview of the selected kernel, below the table; 0: there is no room for it."""


def arrangement(width: int, height: int) -> Arrangement | None:
    """How a terminal of this size is divided; None if it is too small."""
    if width < SMALLEST[0] or height < SMALLEST[1]:
        return None
    preview = PREVIEW if width >= _FOR_PREVIEW[0] and height >= _FOR_PREVIEW[1] else 0
    if width >= SIDE_BY_SIDE:
        return Arrangement(beside=True, table_cells=width // 2, preview=preview)
    rows = height - _BARS - preview
    return Arrangement(beside=False, table_cells=max(6, rows * 2 // 5), preview=preview)


def needed(width: int, height: int) -> str:
    """What to say on a terminal that is too small."""
    return f"{width}×{height} is too small: {SMALLEST[0]}×{SMALLEST[1]} needed"
