"""Accesses counted on a grid of time × address, in parts, so that memory stays bounded for any file size."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from .accesses import RecordPart

Item = TypeVar("Item")
PartResult = TypeVar("PartResult")
MAX_TABLE_ENTRIES: Final = 1 << 22
"""Maximum granules of addresses in a table: with more, rows are found by binary search."""
MAX_PARTS_IN_MEMORY: Final = 8
"""Parts that may stay in memory."""
_WORKERS: Final = min(os.cpu_count() or 1, 4)


@dataclass(frozen=True, slots=True)
class Grid:
    """``columns`` of equal length from cycle ``start`` to before ``end``, and rows of addresses.

    Row i is the bytes from ``low[i]`` to before ``high[i]`` (both u8); rows ascend and do not overlap, there may be
    gaps between them.
    """

    start: int
    end: int
    columns: int
    row_starts: NDArray[np.uint64]
    row_ends: NDArray[np.uint64]

    @property
    def rows(self) -> int:
        return len(self.row_starts)

    def column_edges(self) -> NDArray[np.int64]:
        """The first cycle of each column, and the end: i8 of columns + 1."""
        span = self.end - self.start
        return self.start - (-np.arange(self.columns + 1, dtype=np.int64) * span // self.columns)


class CellIndex:
    """Positions of accesses on a grid: row × (columns + 1) + column.

    Times outside the window are in one column more, addresses outside all rows in one row more.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.stride = grid.columns + 1
        self.cells = (grid.rows + 1) * self.stride
        self._base = grid.row_starts[0] if grid.rows else np.uint64(0)
        self._edges, self._rows = _intervals(grid, self.stride)
        self._table, self._shift = self._make_table()

    def _make_table(self) -> tuple[NDArray[np.uint32] | None, np.uint64]:
        """Make a table by granules of addresses; None unless the rows' edges are multiples of a coarse enough one."""
        offsets = self._edges - self._base
        offset_bits = int(np.bitwise_or.reduce(offsets)) if len(offsets) else 0
        shift = np.uint64(max((offset_bits & -offset_bits).bit_length() - 1, 0))
        if not shift or int(offsets[-1] >> shift) >= MAX_TABLE_ENTRIES:
            return None, shift
        lengths = np.diff(offsets >> shift).astype(np.int64)
        return np.append(np.repeat(self._rows[1:-1], lengths), self._rows[-1]), shift

    def cell_numbers(self, addresses: NDArray[np.uint64], times: NDArray[Any]) -> NDArray[np.uint32]:
        """Return the cell of each access (u4). Both arrays are overwritten."""
        if self._table is None:
            cells = self._rows[np.searchsorted(self._edges, addresses, side="right")]
        else:
            addresses -= self._base
            addresses >>= self._shift
            cells = self._table.take(addresses.view(np.int64), mode="clip")
        cells += self._columns_of(times)
        return cells

    def _columns_of(self, times: NDArray[Any]) -> NDArray[np.uint32]:
        """Return floor((time - start) × columns / span), exact for spans below 2**40 cycles."""
        grid = self.grid
        span = grid.end - grid.start
        elapsed = times if times.dtype == np.uint32 else times.view(np.uint64)
        elapsed -= elapsed.dtype.type(grid.start % (1 << (8 * elapsed.itemsize)))
        width = span // grid.columns
        if width * grid.columns == span and width & (width - 1) == 0:
            elapsed >>= elapsed.dtype.type(width.bit_length() - 1)
        else:
            shares = elapsed * float(grid.columns)
            shares /= span
            elapsed = np.minimum(shares, grid.columns, out=shares)
        columns: NDArray[np.uint32] = np.minimum(elapsed, grid.columns, out=elapsed).astype(np.uint32, copy=False)
        return columns


def _intervals(grid: Grid, stride: int) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Return all edges ascending, and row × stride before each and after the last."""
    outside_row = grid.rows * stride
    edges: list[int] = []
    rows: list[int] = [outside_row]
    for row, (row_start, row_end) in enumerate(zip(grid.row_starts.tolist(), grid.row_ends.tolist(), strict=True)):
        if edges and edges[-1] == row_start:
            rows[-1] = row * stride
            edges.append(row_end)
        else:
            edges += [row_start, row_end]
            rows.append(row * stride)
        rows.append(outside_row)
    return np.array(edges, dtype=np.uint64), np.array(rows, dtype=np.uint32)


def _weighted_cells(
    part: RecordPart,
    index: CellIndex,
    weigh: Callable[[RecordPart], NDArray[Any]] | None,
    extent: NDArray[np.int64] | None,
    buffer: NDArray[np.int64],
) -> tuple[NDArray[np.int64], list[NDArray[Any]]]:
    """Return the cell of each record, in the memory of ``buffer``, and the weights by piece, as for ``raster``.

    ``extent`` (first and last time) is widened.
    """
    weights, end = [], 0
    for piece in part.pieces():
        times = piece.times()
        if extent is not None and len(times):
            extent[:] = min(extent[0], int(times.min())), max(extent[1], int(times.max()))
        cells = index.cell_numbers(piece.addresses(), times)
        if weigh is not None:
            weight = weigh(piece)
            if weight.dtype == np.bool_:
                cells = cells[weight]
            else:
                weights.append(weight)
        buffer[end : end + len(cells)] = cells
        end += len(cells)
    return buffer[:end], weights


def raster(
    parts: Sequence[RecordPart],
    grid: Grid,
    progress: Callable[[float], None],
    weigh: Callable[[RecordPart], NDArray[Any]] | None = None,
    extents: NDArray[np.int64] | None = None,
) -> NDArray[Any]:
    """Count the accesses of ``parts`` in each cell of ``grid``: shape (rows, columns), i8.

    With ``weigh`` the sum of what it gives each record (f8), or, where that is a mask (bool), the number of records
    that it chooses (i8). ``extents`` (i8, shape (parts, 2)) is widened to the first and the last time of each part.
    """
    index = CellIndex(grid)
    total: NDArray[Any] = np.zeros(index.cells, dtype=np.int64)
    max_records = max((part.max_records for part in parts), default=0)
    thread_local = threading.local()

    def count(numbered_part: tuple[int, RecordPart]) -> NDArray[Any]:
        number, part = numbered_part
        if not hasattr(thread_local, "places"):
            thread_local.places = np.empty(max_records, dtype=np.int64)
        extent = None if extents is None else extents[number]
        cells, weights = _weighted_cells(part, index, weigh, extent, thread_local.places)
        if len(parts) > MAX_PARTS_IN_MEMORY:
            part.release()
        return np.bincount(cells, np.concatenate(weights) if weights else None, minlength=index.cells)

    if grid.rows and grid.end > grid.start:
        for part_counts in each_part(list(enumerate(parts)), count, progress):
            total = total + part_counts if part_counts.dtype != total.dtype else np.add(total, part_counts, out=total)
    return total.reshape(grid.rows + 1, index.stride)[:-1, :-1]


def each_part(
    parts: Sequence[Item], work: Callable[[Item], PartResult], progress: Callable[[float], None]
) -> Iterator[PartResult]:
    """Yield ``work(part)`` in order, a few at a time; ``progress`` is called with the share done and may raise."""
    if len(parts) < 2:
        yield from map(work, parts)
        progress(1.0)
        return
    with ThreadPoolExecutor(_WORKERS) as pool:
        futures = [pool.submit(work, part) for part in parts[: _WORKERS + 1]]
        try:
            for done_count in range(1, len(parts) + 1):
                counts = futures.pop(0).result()
                if (following := done_count + _WORKERS) < len(parts):
                    futures.append(pool.submit(work, parts[following]))
                yield counts
                progress(done_count / len(parts))
        finally:
            for future in futures:
                future.cancel()


@dataclass(frozen=True, slots=True)
class FineCounts:
    """Counts of all accesses on a fine grid, from which coarser pictures are made without reading records."""

    grid: Grid
    counts: NDArray[np.int64]

    def is_fine_enough(self, grid: Grid) -> bool:
        """Return whether each column, and each row but the narrowest of a band, covers one or more of these."""
        if not self.grid.rows:
            return True
        column_cycles = (self.grid.end - self.grid.start) / self.grid.columns
        if (grid.end - grid.start) / grid.columns < column_cycles:
            return False
        fine_row = np.clip(
            np.searchsorted(self.grid.row_starts, grid.row_starts, side="right") - 1, 0, self.grid.rows - 1
        )
        is_finer = (grid.row_ends - grid.row_starts) < (self.grid.row_ends - self.grid.row_starts)[fine_row]
        return not is_finer.any()

    def resampled(self, grid: Grid) -> NDArray[np.int64]:
        """Return the counts on another grid: shape (rows, columns), i8.

        A cell counts where it begins. On a finer grid, its count is spread over the cells in it.
        """
        if not self.grid.rows:
            return np.zeros((grid.rows, grid.columns), dtype=np.int64)
        rows = np.searchsorted(grid.row_starts, self.grid.row_starts, side="right") - 1
        is_inside = (rows >= 0) & (self.grid.row_starts < grid.row_ends[np.maximum(rows, 0)])
        counts = np.zeros((grid.rows, self.grid.columns), dtype=np.int64)
        np.add.at(counts, rows[is_inside], self.counts[is_inside])
        nearest_row = np.clip(
            np.searchsorted(self.grid.row_starts, grid.row_starts, side="right") - 1, 0, self.grid.rows - 1
        )
        heights, nearest_heights = (
            grid.row_ends - grid.row_starts,
            (self.grid.row_ends - self.grid.row_starts)[nearest_row],
        )
        is_finer = (heights < nearest_heights) & (grid.row_starts < self.grid.row_ends[nearest_row])
        share = heights / nearest_heights
        counts[is_finer] = np.ceil(self.counts[nearest_row[is_finer]] * share[is_finer, np.newaxis])
        return self._resampled_columns(counts, grid)

    def _resampled_columns(self, row_counts: NDArray[np.int64], grid: Grid) -> NDArray[np.int64]:
        column_starts, edges = self.grid.column_edges()[:-1], grid.column_edges()
        width = column_starts[1] - column_starts[0]
        if edges[1] - edges[0] < width:
            nearest_column = np.clip((edges[:-1] - self.grid.start) // width, 0, self.grid.columns - 1)
            spread: NDArray[np.int64] = np.ceil(row_counts[:, nearest_column] * ((edges[1] - edges[0]) / width)).astype(
                np.int64
            )
            spread[:, edges[:-1] >= self.grid.end] = 0
            return spread
        columns = np.searchsorted(edges, column_starts, side="right") - 1
        is_inside = (columns >= 0) & (columns < grid.columns)
        counts = np.zeros((grid.columns, grid.rows), dtype=np.int64)
        np.add.at(counts, columns[is_inside], row_counts.T[is_inside])
        return counts.T
