"""Where things stand on terminals of different sizes. Knows nothing of Textual."""

from __future__ import annotations

from dataclasses import dataclass

SMALLEST = (60, 16)
SIDE_BY_SIDE = 240
_BARS = 4


@dataclass(frozen=True)
class Arrangement:
    """``beside``: the page right of the table, else below it. ``table_cells``: the table's columns or rows."""

    beside: bool
    table_cells: int


def arrangement(width: int, height: int) -> Arrangement | None:
    """How a terminal of this size is divided; None if it is too small."""
    if width < SMALLEST[0] or height < SMALLEST[1]:
        return None
    if width >= SIDE_BY_SIDE:
        return Arrangement(beside=True, table_cells=width // 2)
    rows = height - _BARS
    return Arrangement(beside=False, table_cells=max(6, rows * 2 // 5))


def needed(width: int, height: int) -> str:
    """What to say on a terminal that is too small."""
    return f"{width}×{height} is too small: {SMALLEST[0]}×{SMALLEST[1]} needed"
