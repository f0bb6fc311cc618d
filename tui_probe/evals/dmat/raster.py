"""Raster of memory accesses over addresses and time, and the figure that draws it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.canvas import ASCII_SHADES, CYCLES, SHADES, Canvas, draw_across, grades, shaded
from tui_probe.draw.spans import clip
from tui_probe.draw.view import Drawing
from tui_probe.errors import TraceError
from tui_probe.evals.dmat.page_map import PAGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.spans import Line
    from tui_probe.evals.dmat.page_map import PageMap

RASTER_COLUMNS: Final = 240
RASTER_ROWS: Final = 120
_GAP: Final = 2 << 20
"""Bytes between two pages that are not known to belong together."""


@dataclass(frozen=True, slots=True)
class AddressRow:
    """Addresses ``start`` to before ``end``, in a band."""

    band: str
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Raster:
    """``counts`` has shape (rows, columns), i8; ``edges`` are the cycles between columns, f8 of shape (columns + 1,).

    ``made`` is how many accesses there were, None where that is not known; ``shapes`` are those of bands that are
    tensors, in words.
    """

    counts: NDArray[np.int64]
    rows: tuple[AddressRow, ...]
    edges: NDArray[np.float64]
    made: int | None
    shapes: Mapping[str, str]

    @property
    def kept(self) -> int:
        """Accesses that are counted."""
        return int(self.counts.sum())

    @property
    def touched(self) -> int:
        """Bytes of rows in which something was accessed."""
        return int(self._sizes()[self.counts.any(axis=1)].sum())

    @property
    def in_use(self) -> float | None:
        """Bytes of rows that are accessed in one column, mean over the columns in which something is."""
        used = (self.counts > 0).T @ self._sizes()
        return float(used[used > 0].mean()) if used.any() else None

    def _sizes(self) -> NDArray[np.int64]:
        return np.array([row.size for row in self.rows], np.int64)


def raster_of_record(record: Mapping[str, Any], source: str) -> Raster:
    """The raster in the data of a picture of accesses (``show dmat --format json``). TraceError for other data."""
    try:
        lines, edges = record["rows"], np.array(record["cycle_edges"], np.float64)
        rows = tuple(AddressRow(str(line["band"] or ""), int(line["start"]), int(line["end"])) for line in lines)
        counts = np.array([line["accesses"] for line in lines], np.int64)
        shapes = {str(band["name"]): _shape(band) for band in record["bands"] if band.get("shape")}
        made = None if record["accesses"] is None else int(record["accesses"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        reason = f"no picture of accesses as data ({type(error).__name__}: {error})"
        raise TraceError(f"{source}: {reason}; tui-probe show dmat TRACE --format json writes one") from error
    if not rows or counts.shape != (len(rows), len(edges) - 1):
        raise TraceError(f"{source}: {len(rows)} rows do not fit {len(edges)} edges")
    return Raster(counts, rows, edges, made, shapes)


def _shape(band: Mapping[str, Any]) -> str:
    return " × ".join(str(side) for side in band["shape"]) + (f" {band['dtype']}" if band.get("dtype") else "")


def raster_of_pages(pages: PageMap, source: str) -> Raster:
    """The raster of a page map: pages that lie together are a band. TraceError for an empty one."""
    if not len(pages.clocks):
        raise TraceError(f"{source}: a page map without accesses")
    rows = _address_rows(np.unique(pages.pages))
    low, high = int(pages.clocks[0]), int(pages.clocks[-1]) + 1
    edges = np.linspace(low, high, RASTER_COLUMNS + 1)
    starts = np.array([row.start for row in rows], np.uint64)
    row = np.searchsorted(starts, pages.pages, side="right") - 1
    column = np.minimum(np.searchsorted(edges, pages.clocks.astype(np.float64), side="right") - 1, RASTER_COLUMNS - 1)
    place = row * RASTER_COLUMNS + column
    counts = np.bincount(place, weights=pages.counts.astype(np.float64), minlength=len(rows) * RASTER_COLUMNS)
    shape = len(rows), RASTER_COLUMNS
    return Raster(counts.astype(np.int64).reshape(shape), rows, edges, int(pages.counts.sum()), {})


def _address_rows(pages: NDArray[np.uint64]) -> tuple[AddressRow, ...]:
    """At most about ``RASTER_ROWS`` rows of whole pages, none of which reaches over a gap."""
    addresses = pages.astype(np.int64)
    cuts = np.flatnonzero(np.diff(addresses) > _GAP) + 1
    bands = [(int(group[0]), int(group[-1]) + PAGE) for group in np.split(addresses, cuts)]
    size = max(PAGE, -(-sum(high - low for low, high in bands) // RASTER_ROWS // PAGE) * PAGE)
    return tuple(
        AddressRow(f"range {number}", start, min(start + size, high))
        for number, (low, high) in enumerate(bands)
        for start in range(low, high, size)
    )


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
