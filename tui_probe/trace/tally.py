"""Count launches and results that were read together, for the kernels that they belong to."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from tui_probe.trace.launches import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tui_probe.trace.launch_shape import Shape
    from tui_probe.trace.model import Kernel, Trace


class Tally:
    """Counts what was added to the tables of launches and results since the last time, for all kernels at the same
    time.

    A log names its kernels again and again: counting many launches together takes a fraction of the time. What is
    reported of a launch after it was counted is added to its kernel's values immediately (``more_memory``,
    ``ended_well``).
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._counted = 0
        self._kernels_of_results = array("i")

    def add_results(self, kernels: NDArray[np.uint64]) -> None:
        """The last results of the table are of these kernels."""
        self._kernels_of_results.frombytes(kernels.astype(np.int32).tobytes())

    def add_result(self, kernel: int | None) -> None:
        self._kernels_of_results.append(UNKNOWN if kernel is None else kernel)

    def more_memory(self, row: int, size: int) -> None:
        """The maps of a launch take that many bytes."""
        kernel = self._counted_kernel(row)
        if kernel is not None:
            kernel.outcome.probe_bytes = max(kernel.outcome.probe_bytes or 0, size)

    def ended_well(self, row: int) -> None:
        """A probed launch has ended, and none too many have been said to."""
        kernel = self._counted_kernel(row)
        if kernel is not None:
            kernel.launches_probed += 1

    def _counted_kernel(self, row: int) -> Kernel | None:
        return self._trace.kernels.get(self._trace.launches.kernel_of(row)) if row < self._counted else None

    @property
    def waiting(self) -> int:
        """The number of launches and results that have not been counted."""
        return len(self._trace.launches) - self._counted + len(self._kernels_of_results)

    def settle(self) -> None:
        """Count all that wait."""
        if self._counted < len(self._trace.launches):
            self._count_launches(self._counted)
            self._counted = len(self._trace.launches)
        if self._kernels_of_results:
            kernels = np.array(self._kernels_of_results)
            self._kernels_of_results = array("i")
            for index, rows in _KernelRows(kernels, len(self._trace.results) - len(kernels)):
                if index != UNKNOWN:
                    self._trace.kernels[index].result_rows.frombytes(rows)

    def _count_captured(self, kernels: NDArray[np.int32]) -> None:
        indices, counts = np.unique(kernels, return_counts=True)
        for index, count in zip(indices.tolist(), counts.tolist(), strict=True):
            if index != UNKNOWN:
                self._trace.kernels[index].captured += count

    def _count_launches(self, first: int) -> None:
        """Count the launches in the rows from ``first`` on."""
        table = self._trace.launches
        kernels, captured = table.column("kernel", first), table.captured(first)
        self._count_captured(kernels[captured])
        groups = _KernelRows(np.where(captured, UNKNOWN, kernels), first)
        shapes = table.column("shape", first)[groups.order]
        ended_well = (table.column("probed", first) != 0) & (table.column("status", first) == 0)
        differs = shapes != shapes[groups.starts].repeat(groups.sizes, axis=0)
        other_grids = groups.any(differs[:, :3].any(axis=1))
        other_blocks = groups.any(differs[:, 3:6].any(axis=1))
        columns = zip(
            map(tuple, shapes[groups.ends - 1].tolist()),
            other_grids,
            other_blocks,
            groups.sums(ended_well[groups.order]),
            groups.most(table.column("probe_bytes", first)[groups.order]),
            groups.starts.tolist(),
            strict=True,
        )
        for (index, rows), (shape, grid, block, probed, most, start) in zip(groups, columns, strict=True):
            if index == UNKNOWN:
                continue
            kernel = self._trace.kernels[index]
            kernel.rows.frombytes(rows)
            kernel.launches += len(rows) // 4
            if kernel.shape is not None:
                _compare(kernel, tuple(shapes[start].tolist()))
            kernel.shape = shape
            kernel.grid_varies |= grid
            kernel.block_varies |= block
            kernel.launches_probed += probed
            if most != UNKNOWN:
                kernel.outcome.probe_bytes = max(kernel.outcome.probe_bytes or 0, most)


def _compare(kernel: Kernel, shape: Shape) -> None:
    """Note how a launch differs from the last one that was counted."""
    if kernel.shape is not None:
        kernel.grid_varies |= shape[:3] != kernel.shape[:3]
        kernel.block_varies |= shape[3:6] != kernel.shape[3:6]


class _KernelRows:
    """The rows of a column by their kernel. Iterating gives each kernel, in order of appearance, and its rows.

    Rows are numbers from ``first`` on, as the bytes of u32. ``order`` sorts the column; a group is its part from an
    element of ``starts`` to that of ``ends``. There may be thousands of groups, so all is worked out for all at the
    same time.
    """

    def __init__(self, kernels: NDArray[np.integer[Any]], first: int) -> None:
        order = np.argsort(kernels, kind="stable")
        changes = np.flatnonzero(np.diff(kernels[order])) + 1
        starts = np.concatenate(([0], changes))
        appearance = np.argsort(order[starts])
        sizes = np.diff(np.append(starts, len(order)))[appearance]
        offsets = np.repeat(starts[appearance] - (np.cumsum(sizes) - sizes), sizes)
        self.order = order[np.arange(len(order)) + offsets]
        self.sizes = sizes
        self.ends = np.cumsum(sizes)
        self.starts = self.ends - sizes
        self._kernels = kernels[self.order[self.starts]].tolist()
        self._rows = (self.order + first).astype(np.uint32).tobytes()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        for kernel, start, end in zip(self._kernels, (4 * self.starts).tolist(), (4 * self.ends).tolist(), strict=True):
            yield kernel, self._rows[start:end]

    def any(self, values: NDArray[np.bool_]) -> list[bool]:
        """True for each group in which any of the sorted values is set."""
        flags: list[bool] = np.logical_or.reduceat(values, self.starts).tolist()
        return flags

    def sums(self, values: NDArray[np.bool_]) -> list[int]:
        """The number of the sorted values of each group that are set."""
        totals: list[int] = np.add.reduceat(values.astype(np.int64), self.starts).tolist()
        return totals

    def most(self, values: NDArray[np.int64]) -> list[int]:
        """The largest of the sorted values of each group."""
        maxima: list[int] = np.maximum.reduceat(values, self.starts).tolist()
        return maxima
