"""The roofline as a chart on logarithmic axes, and as a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.canvas import Canvas
from tui_probe.draw.hanging import hanging
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import plain
from tui_probe.draw.table import Column, safe
from tui_probe.draw.units import NOT_MEASURED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.analysis.roofline import Point, Roof
    from tui_probe.draw.spans import Line

_LEFT: Final = 9
_AROUND: Final = 0.3
"""Powers of ten around what is shown."""
_FEW: Final = 2.5
NO_CHART: Final = "No chart: it needs a kernel's bytes, operations and time, and both limits (--bandwidth, --peak)."
_SHOWN: Final = 20
"""Kernels whose verdicts are explained."""
_NAME: Final = 40
_SIGNS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
NOTE: Final = (
    "Bytes are what the kernel's instructions asked for, before caches: a kernel above the memory roof was served by"
    " caches. Operations are those of matrix instructions, else those on fp32, fp64 and fp16; the peak is that of"
    " tensor cores, dense half precision at the highest clock."
)


def columns(points: Sequence[Point], roof: Roof) -> tuple[Column[Point], ...]:
    """The table's columns; ``busy`` is how busy the unit is that limits."""
    signs = {id(point): sign for point, sign in zip(points, _SIGNS, strict=False)}
    return (
        Column("trace", lambda p: None if p.place is None else str(p.place[0])),
        Column("kernel", lambda p: None if p.place is None else p.place[1]),
        Column("sign", None, "", lambda p: signs.get(id(p), ""), False),
        Column("name", lambda p: p.name),
        Column("demangled", lambda p: p.demangled, "kernel", lambda p: p.demangled, False, 0, 16, shorten),
        Column("bytes", lambda p: p.size, "bytes", lambda p: units.size(p.size), rank=2),
        Column("operations", lambda p: p.operations, "operations", lambda p: scaled(p.operations), rank=3),
        Column("seconds", lambda p: p.seconds, "time", lambda p: units.duration(p.seconds), rank=3),
        Column("intensity", lambda p: p.intensity, "op/B", lambda p: _number(p.intensity)),
        Column("bytes_per_second", lambda p: p.bytes_per_second, "asked for",
               lambda p: units.rate(p.bytes_per_second), rank=1),
        Column("operations_per_second", lambda p: p.operations_per_second, "op/s",
               lambda p: scaled(p.operations_per_second)),
        Column("share_of_roof", lambda p: p.share_of(roof)),
        Column("busy", lambda p: p.share, "busy", lambda p: _percent(p.share)),
        Column("bound", lambda p: p.limit, "limited by", lambda p: p.limit or NOT_MEASURED, False),
        Column("problem", lambda p: p.problem, "", lambda p: p.problem or "", False, 4),
    )  # fmt: skip


def roof_record(roof: Roof) -> dict[str, Any]:
    """The roof as JSON."""
    return {
        "page": "roofline",
        "peak_operations_per_second": roof.peak,
        "peak_fp32_operations_per_second": roof.fp32,
        "bytes_per_second": roof.bandwidth,
        "ridge": roof.ridge,
    }


def roof_lines(roof: Roof, cells: int) -> Iterator[str]:
    """The roof in words."""
    ridge = NOT_MEASURED if roof.ridge is None else f"{roof.ridge:.0f} op/B"
    fp32 = "" if roof.fp32 is None else f", fp32 {scaled(roof.fp32)} op/s"
    words = f"memory {units.rate(roof.bandwidth)}, tensor cores {scaled(roof.peak)} op/s{fp32}, ridge at {ridge}"
    yield from hanging(words, cells)


def placed(points: Sequence[Point], roof: Roof) -> list[tuple[str, Point, float, float]]:
    """The points that have a place in the chart: sign, point, intensity, operations per second. None without a roof."""
    if roof.ridge is None:
        return []
    return [
        (sign, point, point.intensity, point.operations_per_second)
        for sign, point in zip(_SIGNS, points, strict=False)
        if point.intensity and point.operations_per_second
    ]


def chart(
    points: Sequence[Point], roof: Roof, cells: int, rows: int, chosen: Point | None = None, *, ascii_only: bool = False
) -> list[Line]:
    """Intensity across, operations per second up, one letter per kernel as in the table; empty where there is nothing.

    Lines lead from ``chosen`` up to its roof and down to the axis.
    """
    shown = placed(points, roof)
    if not shown or roof.ridge is None or roof.peak is None:
        return []
    left, right, low, high = _window([x for *_, x, _ in shown], [y for *_, y in shown], roof.ridge, roof.peak)
    canvas = Canvas(cells, rows)
    plot = _Plot(canvas, cells - _LEFT, rows - 3, left, right, low, high)
    plot.axes()
    for column in range(plot.cells):
        limit = roof.at(10 ** plot.x_of(column))
        if limit:
            plot.put(column, math.log10(limit), "─" if limit == roof.peak else "∙", "rule")
    for _, point, x, _ in shown:
        if point is chosen:
            plot.drop(plot.column_of(math.log10(x)), math.log10(roof.at(x) or roof.peak))
    for sign, point, x, y in shown:
        plot.put(plot.column_of(math.log10(x)), math.log10(y), sign, "select" if point is chosen else "accent")
    return canvas.lines(ascii_only=ascii_only)


class _Plot:
    """Logarithmic axes: powers of ten from ``left`` to ``right`` and from ``low`` to ``high``."""

    def __init__(
        self, canvas: Canvas, cells: int, rows: int, left: float, right: float, low: float, high: float
    ) -> None:
        self._canvas, self.cells, self._rows = canvas, cells, rows
        self._left, self._right, self._low, self._high = left, right, low, high

    def x_of(self, column: int) -> float:
        return self._left + column / max(1, self.cells - 1) * (self._right - self._left)

    def column_of(self, power: float) -> int:
        return round((power - self._left) / (self._right - self._left) * (self.cells - 1))

    def row_of(self, power: float) -> int:
        return round((self._high - power) / (self._high - self._low) * (self._rows - 1))

    def drop(self, column: int, power: float) -> None:
        """A line from below a height down to the axis."""
        for row in range(max(self.row_of(power) + 1, 0), self._rows):
            self._canvas.text(_LEFT + column, row, "│", "dim")

    def put(self, column: int, power: float, sign: str, role: str) -> None:
        row = self.row_of(power)
        if 0 <= row < self._rows:
            self._canvas.text(_LEFT + column, row, sign, role)

    def axes(self) -> None:
        for power in _marks(self._low, self._high):
            row = self.row_of(power)
            self._canvas.text(0, row, scaled(10.0**power).rjust(_LEFT - 2), "dim")
            self._canvas.text(_LEFT - 1, row, "┤", "rule")
        self._canvas.text(_LEFT, self._rows, "─" * self.cells, "rule")
        free = 0
        for power in _marks(self._left, self._right):
            column, label = self.column_of(power), f"{10.0**power:g}"
            if free <= column <= self.cells - len(label):
                self._canvas.text(_LEFT + column, self._rows, "┬", "rule")
                self._canvas.text(_LEFT + column, self._rows + 1, label, "dim")
                free = column + len(label) + 1
        self._canvas.text(
            _LEFT, self._rows + 2, "operations per byte asked for (across), operations per second (up)", "dim"
        )


def _marks(low: float, high: float) -> list[float]:
    """Powers of ten to mark between two: whole ones, and where these are few, 2 and 5 times them."""
    steps = (1, 2, 5) if high - low < _FEW else (1,)
    powers = (math.log10(step) + whole for whole in range(math.floor(low), math.ceil(high) + 1) for step in steps)
    return [power for power in powers if low <= power <= high]


def _window(
    across: Sequence[float], up: Sequence[float], ridge: float, peak: float
) -> tuple[float, float, float, float]:
    """Powers of ten that hold all points, the ridge and the peak, with some room around: left, right, low, high."""
    left, right = (math.log10(edge) for edge in (min(*across, ridge), max(*across, ridge)))
    low, high = (math.log10(edge) for edge in (min(*up, peak), max(*up, peak)))
    return left - _AROUND, right + _AROUND, low - _AROUND, high + _AROUND / 2


def scaled(value: float | None) -> str:
    """``989T``; three digits and a prefix."""
    if value is None:
        return NOT_MEASURED
    for suffix in ("", "k", "M", "G", "T", "P"):
        if value < 999.5:
            return f"{value:.3g}{suffix}"
        value /= 1000
    return f"{value:.3g}E"


def _number(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.3g}"


def _percent(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.0%}"


def text_lines(points: Sequence[Point], roof: Roof, cells: int, rows: int) -> Iterator[str]:
    """The chart and what must be known to read it."""
    drawn = chart(points, roof, cells, rows)
    yield from (plain(line) for line in drawn)
    if not drawn:
        yield NO_CHART
    yield from hanging(NOTE, cells)


def verdict_lines(points: Sequence[Point], cells: int) -> Iterator[str]:
    """What led to the verdict of each kernel, and what to run where something is missing."""
    for sign, point in zip(_SIGNS, points[:_SHOWN], strict=False):
        for place, words in enumerate(point.words):
            head = f"{sign} {shorten(safe(point.demangled), _NAME)}: " if not place else "    "
            yield from hanging(head + words, cells)
