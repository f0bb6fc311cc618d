"""Accesses counted on a grid of memory and time, whatever they came from: a launch's records or a page map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.trace.page_map import PAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tui_probe.trace.page_map import PageMap

COLUMNS: Final = 240
ROWS: Final = 120
_GAP: Final = 2 << 20
"""Bytes between two pages that are not known to belong together."""


@dataclass(frozen=True, slots=True)
class Row:
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
    rows: tuple[Row, ...]
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
        rows = tuple(Row(str(line["band"] or ""), int(line["start"]), int(line["end"])) for line in lines)
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
    rows = _rows(np.unique(pages.pages))
    low, high = int(pages.clocks[0]), int(pages.clocks[-1]) + 1
    edges = np.linspace(low, high, COLUMNS + 1)
    starts = np.array([row.start for row in rows], np.uint64)
    row = np.searchsorted(starts, pages.pages, side="right") - 1
    column = np.minimum(np.searchsorted(edges, pages.clocks.astype(np.float64), side="right") - 1, COLUMNS - 1)
    place = row * COLUMNS + column
    counts = np.bincount(place, weights=pages.counts.astype(np.float64), minlength=len(rows) * COLUMNS)
    shape = len(rows), COLUMNS
    return Raster(counts.astype(np.int64).reshape(shape), rows, edges, int(pages.counts.sum()), {})


def _rows(pages: NDArray[np.uint64]) -> tuple[Row, ...]:
    """At most about ``ROWS`` rows of whole pages, none of which reaches over a gap."""
    addresses = pages.astype(np.int64)
    cuts = np.flatnonzero(np.diff(addresses) > _GAP) + 1
    bands = [(int(each[0]), int(each[-1]) + PAGE) for each in np.split(addresses, cuts)]
    size = max(PAGE, -(-sum(high - low for low, high in bands) // ROWS // PAGE) * PAGE)
    return tuple(
        Row(f"range {number}", start, min(start + size, high))
        for number, (low, high) in enumerate(bands)
        for start in range(low, high, size)
    )
