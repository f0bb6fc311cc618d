"""Small charts in block characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_ASCII = " .:-=+*%#"


def column_chart(
    values: Sequence[float | None], width: int, height: int = 1, *, high: float, ascii_only: bool = False
) -> list[str]:
    """The last ``width`` values as columns, newest at the right, in ``height`` rows of text, top row first.

    A column reaches from 0 to its value on a scale that ends at ``high`` (same unit as the values); a value of 0 still
    shows its lowest mark, so that it differs from None, which stays blank.
    """
    ramp = _ASCII if ascii_only else _EIGHTHS
    steps = len(ramp) - 1
    shown = list(values[-width:])
    levels = [_level(value, high, height * steps) for value in shown]
    rows = []
    for row in range(height - 1, -1, -1):
        marks = "".join(ramp[max(0, min(steps, level - row * steps))] for level in levels)
        rows.append(marks.rjust(width))
    return rows


def _level(value: float | None, high: float, levels: int) -> int:
    if value is None:
        return 0
    if high <= 0:
        return 1
    return max(1, min(levels, round(value / high * levels)))
