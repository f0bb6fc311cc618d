"""Curves over one axis, with a window that moves and zooms along it, in a terminal and in a PNG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw.canvas import COUNT, Canvas, braille, draw_x_axis, ticks
from tui_probe.draw.spans import clip
from tui_probe.draw.units import counted
from tui_probe.draw.view import Drawing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.canvas import Unit
    from tui_probe.draw.spans import Line

_AXIS_CELLS: Final = 9
"""Cells of the labels of the vertical axis, and of the axis."""
_HEAD_LINES: Final = 2
"""Lines of the title, and of what is up."""
_FOOT_LINES: Final = 3
"""Lines of the horizontal axis, its labels, and the legend."""
_SIGNS: Final = "abcdefghijklmnopqrstuvwxyz"
_MAX_LEGEND_CURVES: Final = 8
"""Max curves that the legend names; it counts the others."""


@dataclass(frozen=True, slots=True)
class Curve:
    """``x`` ascends; both have shape (points,), float64."""

    label: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]


class CurveChart(Drawing):
    """Curves of one scale. ``x_label`` and ``y_label`` name the axes and units; ``window`` is the visible part of x."""

    def __init__(
        self,
        title: str,
        curves: Sequence[Curve],
        x_label: str,
        y_label: str,
        units: tuple[Unit, Unit] = (COUNT, COUNT),
        window: tuple[float, float] | None = None,
    ) -> None:
        self.title, self.curves, self.x_label, self.y_label, self.units = title, curves, x_label, y_label, units
        x_ranges = [(curve.x[0], curve.x[-1]) for curve in curves if len(curve.x)] or [(0.0, 1.0)]
        minimum, maximum = (
            float(min(minimum for minimum, _ in x_ranges)),
            float(max(maximum for _, maximum in x_ranges)),
        )
        self.full_range = (minimum, maximum if maximum > minimum else minimum + 1)
        self.window = window or self.full_range

    # -- where it is looked at

    def commands(self) -> Mapping[str, str]:
        return {
            "left": "window left", "right": "window right", "zoom_in": "zoom in", "zoom_out": "zoom out",
            "fit": "show the whole range",
        }  # fmt: skip

    def press(self, command: str) -> str | None:
        start, end = self.window
        span, middle = end - start, (start + end) / 2
        if command in ("left", "right"):
            step = span / 4 if command == "right" else -span / 4
            self._move_window(start + step, end + step)
        elif command in ("zoom_in", "zoom_out"):
            half = span / 4 if command == "zoom_in" else span
            self._move_window(middle - half, middle + half)
        elif command == "fit":
            self.window = self.full_range
        return None

    def _move_window(self, start: float, end: float) -> None:
        """Keep the window inside the whole."""
        span = min(end - start, self.full_range[1] - self.full_range[0])
        start = min(max(start, self.full_range[0]), self.full_range[1] - span)
        self.window = (start, start + span)

    def status(self) -> list[str]:
        start, end = self.window
        return [f"{self.x_label}: {start:,.0f} … {end:,.0f}".replace(",", " "), counted(len(self.curves), "curve")]

    def _value_range(self) -> tuple[float, float]:
        """Return the least and the most value that the window shows."""
        start, end = self.window
        visible_values = [curve.y[(curve.x >= start) & (curve.x <= end)] for curve in self.curves]
        values = np.concatenate(visible_values) if visible_values else np.zeros(1)
        if not len(values):
            return 0.0, 1.0
        minimum, maximum = float(values.min()), float(values.max())
        return (minimum, maximum) if maximum > minimum else (minimum - 0.5, maximum + 0.5)

    # -- in a terminal

    def draw(self, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:
        canvas = Canvas(width, height)
        cells, rows = max(width - _AXIS_CELLS, 1), max(height - _FOOT_LINES - _HEAD_LINES, 1)
        minimum, maximum = self._value_range()
        canvas.text(0, 0, clip(self.title, width), "title")
        canvas.text(0, 1, self.y_label, "dim")
        for tick in ticks(minimum, maximum, max(rows // 3, 2), self.units[1]):
            row = _HEAD_LINES + round((maximum - tick.value) / (maximum - minimum) * (rows - 1))
            canvas.text(0, row, tick.label.rjust(_AXIS_CELLS - 2), "dim")
            canvas.text(_AXIS_CELLS - 1, row, "┤", "rule")
        dots_per_cell = (1, 1) if ascii_only else (4, 2)
        covered_dots = np.zeros((rows * dots_per_cell[0], cells * dots_per_cell[1]), np.bool_)
        for number, curve in enumerate(self.curves):
            self._draw_curve(
                canvas, number, self._dots(curve, covered_dots.shape, (minimum, maximum)), covered_dots, dots_per_cell
            )
        draw_x_axis(canvas, _AXIS_CELLS, rows + _HEAD_LINES, cells, *self.window, self.units[0])
        canvas.text(_AXIS_CELLS, rows + _HEAD_LINES + 2, f"{self.x_label}   {self._legend()}", "dim")
        return canvas.lines(ascii_only=ascii_only)

    def _legend(self) -> str:
        if len(self.curves) > _MAX_LEGEND_CURVES:
            return counted(len(self.curves), "curve")
        return "   ".join(f"{_SIGNS[i]} {curve.label}" for i, curve in enumerate(self.curves))

    def _dots(self, curve: Curve, shape: tuple[int, int], bounds: tuple[float, float]) -> NDArray[np.bool_]:
        """Mark the dots of the curve: in each column from its height to that in the column before."""
        dots = np.zeros(shape, np.bool_)
        columns, heights = self._heights(curve, shape[1], shape[0], bounds)
        previous_heights = np.concatenate((heights[:1], heights[:-1]))
        for column, top_row, bottom_row in zip(
            columns, np.minimum(heights, previous_heights), np.maximum(heights, previous_heights), strict=True
        ):
            dots[top_row : bottom_row + 1, column] = True
        return dots

    def _draw_curve(
        self,
        canvas: Canvas,
        number: int,
        dots: NDArray[np.bool_],
        covered_dots: NDArray[np.bool_],
        dots_per_cell: tuple[int, int],
    ) -> None:
        """Put a curve over those before it, whose dots are in ``covered_dots``; a letter names it if they are few."""
        role, sign = f"hue{number % 6}", _SIGNS[number % len(_SIGNS)]
        covered_dots |= dots
        block_dots = dots.reshape(
            dots.shape[0] // dots_per_cell[0], dots_per_cell[0], dots.shape[1] // dots_per_cell[1], dots_per_cell[1]
        ).any(axis=(1, 3))
        cells = np.argwhere(block_dots).tolist()
        codes = np.full(block_dots.shape, ord(sign), np.uint32) if dots_per_cell == (1, 1) else braille(covered_dots)
        for row, column in cells:
            canvas.text(_AXIS_CELLS + column, _HEAD_LINES + row, chr(int(codes[row, column])), role)
        if 1 < len(self.curves) <= _MAX_LEGEND_CURVES and cells:
            columns = sorted(cells, key=lambda cell: cell[1])
            row, column = columns[len(columns) * (number + 1) // (len(self.curves) + 1)]
            canvas.text(_AXIS_CELLS + column, _HEAD_LINES + row, sign, role)

    def _heights(
        self, curve: Curve, columns: int, rows: int, bounds: tuple[float, float]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the columns of dots in which the curve has a value, and its row in each, counted from the top.

        ``bounds`` are the values at the last row and at the first.
        """
        start, end = self.window
        minimum, maximum = bounds
        x_positions = start + (np.arange(columns) + 0.5) / columns * (end - start)
        if not len(curve.x):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        step = (end - start) / columns
        visible_columns = np.flatnonzero((x_positions >= curve.x[0] - step) & (x_positions <= curve.x[-1] + step))
        values = np.interp(x_positions[visible_columns], curve.x, curve.y)
        dot_rows = np.rint((maximum - values) / (maximum - minimum) * (rows - 1)).astype(np.int64)
        return visible_columns, np.clip(dot_rows, 0, rows - 1)

    # -- as data, and as a picture

    def record(self) -> Mapping[str, Any]:
        curves = [{"label": c.label, "x": c.x.tolist(), "y": c.y.tolist()} for c in self.curves]
        return {"title": self.title, "across": self.x_label, "up": self.y_label, "curves": curves}

    def cells(self) -> Iterator[Sequence[object]]:
        yield ("curve", "x", "y")
        for curve in self.curves:
            yield from ((curve.label, x, y) for x, y in zip(curve.x.tolist(), curve.y.tolist(), strict=True))

    def plot(self, axes: Any) -> None:
        has_legend = len(self.curves) <= _MAX_LEGEND_CURVES
        for curve in self.curves:
            axes.plot(curve.x, curve.y, linewidth=1.5 if has_legend else 0.5, label=curve.label)
        axes.set_xlim(*self.window)
        axes.set_xlabel(self.x_label)
        axes.set_ylabel(self.y_label)
        axes.set_title(self.title)
        if has_legend:
            axes.legend()
