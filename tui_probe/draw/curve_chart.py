"""Curves over one axis, with a window that moves and zooms along it, in a terminal and in a PNG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw.canvas import COUNT, Canvas, braille, draw_across, ticks
from tui_probe.draw.spans import clip
from tui_probe.draw.units import counted
from tui_probe.draw.view import Drawing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.canvas import Unit
    from tui_probe.draw.spans import Line

_LEFT: Final = 9
"""Cells of the labels of the vertical axis, and of the axis."""
_ABOVE: Final = 2
"""Lines of the title, and of what is up."""
_BELOW: Final = 3
"""Lines of the horizontal axis, its labels, and the legend."""
_SIGNS: Final = "abcdefghijklmnopqrstuvwxyz"
_NAMED: Final = 8
"""Max curves that the legend names; it counts the others."""


@dataclass(frozen=True, slots=True)
class Curve:
    """``x`` ascends; both have shape (points,), float64."""

    label: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]


class CurveChart(Drawing):
    """Curves of one scale. ``across`` and ``up`` say what the axes are, in which unit; ``window`` is the part of x."""

    def __init__(
        self,
        title: str,
        curves: Sequence[Curve],
        across: str,
        up: str,
        units: tuple[Unit, Unit] = (COUNT, COUNT),
        window: tuple[float, float] | None = None,
    ) -> None:
        self.title, self.curves, self.across, self.up, self.units = title, curves, across, up, units
        ends = [(curve.x[0], curve.x[-1]) for curve in curves if len(curve.x)] or [(0.0, 1.0)]
        low, high = float(min(low for low, _ in ends)), float(max(high for _, high in ends))
        self.full_range = (low, high if high > low else low + 1)
        self.window = window or self.full_range

    # -- where it is looked at

    def commands(self) -> Mapping[str, str]:
        return {
            "left": "window left", "right": "window right", "zoom_in": "zoom in", "zoom_out": "zoom out",
            "fit": "show the whole range",
        }  # fmt: skip

    def press(self, command: str) -> str | None:
        low, high = self.window
        span, middle = high - low, (low + high) / 2
        if command in ("left", "right"):
            step = span / 4 if command == "right" else -span / 4
            self._look(low + step, high + step)
        elif command in ("zoom_in", "zoom_out"):
            half = span / 4 if command == "zoom_in" else span
            self._look(middle - half, middle + half)
        elif command == "fit":
            self.window = self.full_range
        return None

    def _look(self, low: float, high: float) -> None:
        """Keep the window inside the whole."""
        span = min(high - low, self.full_range[1] - self.full_range[0])
        low = min(max(low, self.full_range[0]), self.full_range[1] - span)
        self.window = (low, low + span)

    def status(self) -> list[str]:
        low, high = self.window
        return [f"{self.across}: {low:,.0f} … {high:,.0f}".replace(",", " "), counted(len(self.curves), "curve")]

    def _range(self) -> tuple[float, float]:
        """The least and the most value that the window shows."""
        low, high = self.window
        seen = [curve.y[(curve.x >= low) & (curve.x <= high)] for curve in self.curves]
        values = np.concatenate(seen) if seen else np.zeros(1)
        if not len(values):
            return 0.0, 1.0
        least, most = float(values.min()), float(values.max())
        return (least, most) if most > least else (least - 0.5, most + 0.5)

    # -- in a terminal

    def draw(self, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:
        canvas = Canvas(width, height)
        cells, rows = max(width - _LEFT, 1), max(height - _BELOW - _ABOVE, 1)
        low, high = self._range()
        canvas.text(0, 0, clip(self.title, width), "title")
        canvas.text(0, 1, self.up, "dim")
        for tick in ticks(low, high, max(rows // 3, 2), self.units[1]):
            row = _ABOVE + round((high - tick.value) / (high - low) * (rows - 1))
            canvas.text(0, row, tick.label.rjust(_LEFT - 2), "dim")
            canvas.text(_LEFT - 1, row, "┤", "rule")
        fine = (1, 1) if ascii_only else (4, 2)
        passed = np.zeros((rows * fine[0], cells * fine[1]), np.bool_)
        for number, curve in enumerate(self.curves):
            self._draw_curve(canvas, number, self._dots(curve, passed.shape, (low, high)), passed, fine)
        draw_across(canvas, _LEFT, rows + _ABOVE, cells, *self.window, self.units[0])
        canvas.text(_LEFT, rows + _ABOVE + 2, f"{self.across}   {self._legend()}", "dim")
        return canvas.lines(ascii_only=ascii_only)

    def _legend(self) -> str:
        if len(self.curves) > _NAMED:
            return counted(len(self.curves), "curve")
        return "   ".join(f"{_SIGNS[i]} {curve.label}" for i, curve in enumerate(self.curves))

    def _dots(self, curve: Curve, shape: tuple[int, int], bounds: tuple[float, float]) -> NDArray[np.bool_]:
        """Mark the dots of the curve: in each column from its height to that in the column before."""
        dots = np.zeros(shape, np.bool_)
        columns, heights = self._heights(curve, shape[1], shape[0], bounds)
        before = np.concatenate((heights[:1], heights[:-1]))
        for column, low, high in zip(columns, np.minimum(heights, before), np.maximum(heights, before), strict=True):
            dots[low : high + 1, column] = True
        return dots

    def _draw_curve(
        self,
        canvas: Canvas,
        number: int,
        dots: NDArray[np.bool_],
        passed: NDArray[np.bool_],
        fine: tuple[int, int],
    ) -> None:
        """Put a curve over those before it, whose dots are in ``passed``; a letter names it where they are few."""
        role, sign = f"hue{number % 6}", _SIGNS[number % len(_SIGNS)]
        passed |= dots
        block_dots = dots.reshape(dots.shape[0] // fine[0], fine[0], dots.shape[1] // fine[1], fine[1]).any(axis=(1, 3))
        cells = np.argwhere(block_dots).tolist()
        codes = np.full(block_dots.shape, ord(sign), np.uint32) if fine == (1, 1) else braille(passed)
        for row, column in cells:
            canvas.text(_LEFT + column, _ABOVE + row, chr(int(codes[row, column])), role)
        if 1 < len(self.curves) <= _NAMED and cells:
            columns = sorted(cells, key=lambda cell: cell[1])
            row, column = columns[len(columns) * (number + 1) // (len(self.curves) + 1)]
            canvas.text(_LEFT + column, _ABOVE + row, sign, role)

    def _heights(
        self, curve: Curve, columns: int, rows: int, bounds: tuple[float, float]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The columns of dots in which the curve has a value, and its row in each, counted from the top.

        ``bounds`` are the values at the last row and at the first.
        """
        low, high = self.window
        least, most = bounds
        places = low + (np.arange(columns) + 0.5) / columns * (high - low)
        if not len(curve.x):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        step = (high - low) / columns
        inside = np.flatnonzero((places >= curve.x[0] - step) & (places <= curve.x[-1] + step))
        values = np.interp(places[inside], curve.x, curve.y)
        rows_of = np.rint((most - values) / (most - least) * (rows - 1)).astype(np.int64)
        return inside, np.clip(rows_of, 0, rows - 1)

    # -- as data, and as a picture

    def record(self) -> Mapping[str, Any]:
        curves = [{"label": c.label, "x": c.x.tolist(), "y": c.y.tolist()} for c in self.curves]
        return {"title": self.title, "across": self.across, "up": self.up, "curves": curves}

    def cells(self) -> Iterator[Sequence[object]]:
        yield ("curve", "x", "y")
        for curve in self.curves:
            yield from ((curve.label, x, y) for x, y in zip(curve.x.tolist(), curve.y.tolist(), strict=True))

    def plot(self, axes: Any) -> None:
        named = len(self.curves) <= _NAMED
        for curve in self.curves:
            axes.plot(curve.x, curve.y, linewidth=1.5 if named else 0.5, label=curve.label)
        axes.set_xlim(*self.window)
        axes.set_xlabel(self.across)
        axes.set_ylabel(self.up)
        axes.set_title(self.title)
        if named:
            axes.legend()
