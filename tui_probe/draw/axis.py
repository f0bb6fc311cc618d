"""Axes: round values to mark, and short labels for them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from tui_probe.draw.canvas import Canvas

_DECIMAL_STEPS: Final = (1, 2, 5, 10)
_MOST_DECIMALS: Final = 9
"""A nanosecond among seconds."""


class Tick(NamedTuple):
    """A value to mark, and its label."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Unit:
    """What an axis counts: ``scales`` are (size, suffix) of its prefixes, ascending.

    ``whole`` units have no fractions, so steps are at least 1. Steps are 1, 2 or 5 times a power of ten, of ``binary``
    units powers of two; ``hexadecimal`` ones are labelled so, without prefixes.
    """

    name: str
    scales: tuple[tuple[float, str], ...] = ((1, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"))
    whole: bool = True
    binary: bool = False
    hexadecimal: bool = False

    def label(self, value: float, step: float) -> str:
        """``value`` in few characters, exact enough to be told from its neighbour ``step`` away."""
        if self.hexadecimal:
            return f"{round(value):#x}"
        size, suffix = next(
            ((size, suffix) for size, suffix in reversed(self.scales) if abs(value) >= size), self.scales[0]
        )
        decimals = 0
        while decimals < _MOST_DECIMALS and abs(round(step / size, decimals) * size - step) > step / 100:
            decimals += 1
        return f"{value / size:.{decimals}f}{suffix}"


COUNT: Final = Unit("")
CYCLES: Final = Unit("cycles")
TIME: Final = Unit("time", ((1, " ns"), (1e3, " µs"), (1e6, " ms"), (1e9, " s")), whole=False)
"""Values in nanoseconds."""
BYTES: Final = Unit(
    "bytes", ((1, " B"), (2**10, " KiB"), (2**20, " MiB"), (2**30, " GiB"), (2**40, " TiB")), binary=True
)
ADDRESS: Final = Unit("address", binary=True, hexadecimal=True)


def ticks(low: float, high: float, most: int, unit: Unit) -> list[Tick]:
    """At most ``most`` round values in [low, high], ascending; none where ``high`` is not above ``low``."""
    if most < 1 or not high > low:
        return []
    step = _step((high - low) / most, unit)
    while math.floor(high / step) - math.ceil(low / step) + 1 > most:
        step = _step(step * 1.01, unit)
    values = [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return [Tick(value, unit.label(value, step)) for value in values if low <= value <= high]


def _step(least: float, unit: Unit) -> float:
    """The smallest round step that is not below ``least``."""
    if unit.whole:
        least = max(least, 1.0)
    if unit.binary:
        return float(2 ** math.ceil(math.log2(least) - 1e-9))
    power = 10.0 ** math.floor(math.log10(least))
    return next((part * power for part in _DECIMAL_STEPS if part * power >= least * (1 - 1e-9)), 10 * power)


def draw_across(canvas: Canvas, x: int, y: int, cells: int, low: float, high: float, unit: Unit) -> None:
    """An axis below a plot that begins at cell ``x`` and is ``cells`` wide: a rule in row ``y``, labels in the next.

    A label stands where its value is, or is left out where it would touch the one before or the end.
    """
    canvas.text(x, y, "─" * cells, "rule")
    free = x
    for tick in ticks(low, high, max(cells // 12, 2), unit):
        column = x + min(int((tick.value - low) / (high - low) * cells), cells - 1)
        if column >= free and column + len(tick.label) <= x + cells:
            canvas.text(column, y, "┬", "rule")
            canvas.text(column, y + 1, tick.label, "dim")
            free = column + len(tick.label) + 2
