"""A raster as a figure: time to the right, memory downwards, a band per tensor."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.axis import CYCLES, draw_across
from tui_probe.draw.canvas import ASCII_SHADES, SHADES, Canvas, grades, shaded
from tui_probe.draw.spans import clip
from tui_probe.draw.view import Drawing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.spans import Line

    from .raster import Raster

_LEFT: Final = 14
_BELOW: Final = 3
_HUES: Final = 6


class AccessFigure(Drawing):
    """One raster; it has no window: pages of a trace have one that moves."""

    def __init__(self, title: str, raster: Raster) -> None:
        self.title, self.raster = title, raster
        self.bands = [
            (name, [place for place, _ in rows])
            for name, rows in groupby(enumerate(raster.rows), key=lambda each: each[1].band)
        ]

    def draw(self, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:
        """The title, the raster brought to the size of the window, the axis of time."""
        canvas = Canvas(width, height)
        cells, rows = max(width - _LEFT, 1), max(height - _BELOW - 1, 1)
        canvas.text(0, 0, clip(self.title, width), "title")
        counts = resized(self.raster.counts, rows, cells)
        ramp = ASCII_SHADES if ascii_only else SHADES
        codes = shaded(grades(counts, len(ramp.strip())), " " + ramp.strip())
        roles = np.zeros(counts.shape, np.uint16)
        for number, (name, places) in enumerate(self.bands):
            top = places[0] * rows // len(self.raster.rows)
            end = max((places[-1] + 1) * rows // len(self.raster.rows), top + 1)
            roles[top:end] = canvas.role(f"hue{number % _HUES}")
            canvas.text(0, top + 1, clip(name, _LEFT - 1), f"hue{number % _HUES}")
        canvas.paint(_LEFT, 1, codes, roles)
        draw_across(canvas, _LEFT, rows + 1, cells, float(self.raster.edges[0]), float(self.raster.edges[-1]), CYCLES)
        return canvas.lines(ascii_only=ascii_only)

    def record(self) -> Mapping[str, Any]:
        """Rows of memory with the accesses of each column."""
        rows = zip(self.raster.rows, self.raster.counts.tolist(), strict=True)
        return {
            "title": self.title,
            "cycle_edges": self.raster.edges.tolist(),
            "rows": [{"band": row.band, "start": row.start, "end": row.end, "accesses": line} for row, line in rows],
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """One row per cell that has accesses."""
        yield "band", "address", "address_end", "cycle", "cycle_end", "accesses"
        for place, column in np.argwhere(self.raster.counts).tolist():
            row, edges = self.raster.rows[place], self.raster.edges
            times = float(edges[column]), float(edges[column + 1])
            yield row.band, row.start, row.end, *times, int(self.raster.counts[place, column])

    def plot(self, axes: Any) -> None:
        """On matplotlib axes; darker is denser, on a logarithmic scale."""
        shown = np.ma.masked_equal(np.log1p(self.raster.counts), 0)
        low, high = float(self.raster.edges[0]), float(self.raster.edges[-1])
        axes.imshow(shown, aspect="auto", interpolation="nearest", extent=(low, high, len(self.raster.rows), 0))
        names = [f"{name} {self.raster.shapes.get(name, '')}".strip() for name, _ in self.bands]
        axes.set_yticks([places[0] for _, places in self.bands], names)
        axes.set_xlabel("cycles")
        axes.set_title(self.title)


def resized(counts: NDArray[np.int64], rows: int, columns: int) -> NDArray[np.int64]:
    """The same accesses on another grid: sums where it is coarser, repeated where it is finer."""
    return _along(_along(counts, rows, 0), columns, 1)


def _along(counts: NDArray[np.int64], wanted: int, axis: int) -> NDArray[np.int64]:
    there = counts.shape[axis]
    starts = np.arange(wanted) * there // wanted
    brought = np.take(counts, starts, axis) if wanted >= there else np.add.reduceat(counts, starts, axis)
    return brought.astype(np.int64)


def size_words(value: float | None) -> str:
    """Bytes in words."""
    return units.NOT_MEASURED if value is None else units.size(round(value))
