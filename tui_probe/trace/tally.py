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
    reported of a launch after it was counted is added to its kernel's values immediately (``add_memory``,
    ``add_success``).
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._counted_launches = 0
        self._kernels_of_results = array("i")

    def add_results(self, kernels: NDArray[np.uint64]) -> None:
        """Note the kernels of the last results of the table."""
        self._kernels_of_results.frombytes(kernels.astype(np.int32).tobytes())

    def add_result(self, kernel: int | None) -> None:
        self._kernels_of_results.append(UNKNOWN if kernel is None else kernel)

    def add_memory(self, row: int, size: int) -> None:
        """Add the bytes of the maps of a launch."""
        kernel = self._counted_kernel(row)
        if kernel is not None:
            kernel.outcome.probe_bytes = max(kernel.outcome.probe_bytes or 0, size)

    def add_success(self, row: int) -> None:
        """Count a probed launch that has succeeded after its row was counted."""
        kernel = self._counted_kernel(row)
        if kernel is not None:
            kernel.launches_probed += 1

    def _counted_kernel(self, row: int) -> Kernel | None:
        return self._trace.kernels.get(self._trace.launches.kernel_of(row)) if row < self._counted_launches else None

    @property
    def pending(self) -> int:
        """The number of launches and results that have not been counted."""
        return len(self._trace.launches) - self._counted_launches + len(self._kernels_of_results)

    def count_pending(self) -> None:
        """Count all pending launches and results."""
        if self._counted_launches < len(self._trace.launches):
            self._count_launches(self._counted_launches)
            self._counted_launches = len(self._trace.launches)
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
                self._trace.kernels[index].captures += count

    def _count_launches(self, first_row: int) -> None:
        """Count the launches in the rows from ``first_row`` on."""
        table = self._trace.launches
        kernels, is_captured = table.column("kernel", first_row), table.captured_mask(first_row)
        self._count_captured(kernels[is_captured])
        groups = _KernelRows(np.where(is_captured, UNKNOWN, kernels), first_row)
        shapes = table.column("shape", first_row)[groups.order]
        has_succeeded = (table.column("probed", first_row) != 0) & (table.column("status", first_row) == 0)
        is_different = shapes != shapes[groups.group_starts].repeat(groups.sizes, axis=0)
        other_grids = groups.any_set(is_different[:, :3].any(axis=1))
        other_blocks = groups.any_set(is_different[:, 3:6].any(axis=1))
        columns = zip(
            map(tuple, shapes[groups.group_ends - 1].tolist()),
            other_grids,
            other_blocks,
            groups.sums(has_succeeded[groups.order]),
            groups.maxima(table.column("probe_bytes", first_row)[groups.order]),
            groups.group_starts.tolist(),
            strict=True,
        )
        for (index, rows), (shape, grid, block, probed_launches, probe_bytes, start) in zip(
            groups, columns, strict=True
        ):
            if index == UNKNOWN:
                continue
            kernel = self._trace.kernels[index]
            kernel.rows.frombytes(rows)
            kernel.launches += len(rows) // 4
            if kernel.shape is not None:
                _note_variation(kernel, tuple(shapes[start].tolist()))
            kernel.shape = shape
            kernel.grid_varies |= grid
            kernel.block_varies |= block
            kernel.launches_probed += probed_launches
            if probe_bytes != UNKNOWN:
                kernel.outcome.probe_bytes = max(kernel.outcome.probe_bytes or 0, probe_bytes)


def _note_variation(kernel: Kernel, shape: Shape) -> None:
    """Note how a launch differs from the last one that was counted."""
    if kernel.shape is not None:
        kernel.grid_varies |= shape[:3] != kernel.shape[:3]
        kernel.block_varies |= shape[3:6] != kernel.shape[3:6]


class _KernelRows:
    """The rows of a column by their kernel. Iterating gives each kernel, in order of appearance, and its rows.

    Rows are numbers from ``first_row`` on, as the bytes of u32. ``order`` sorts the column; a group is its part from an
    element of ``group_starts`` to that of ``group_ends``. There may be thousands of groups, so all are computed at the
    same time.
    """

    def __init__(self, kernels: NDArray[np.integer[Any]], first_row: int) -> None:
        order = np.argsort(kernels, kind="stable")
        changes = np.flatnonzero(np.diff(kernels[order])) + 1
        column_starts = np.concatenate(([0], changes))
        appearance = np.argsort(order[column_starts])
        sizes = np.diff(np.append(column_starts, len(order)))[appearance]
        offsets = np.repeat(column_starts[appearance] - (np.cumsum(sizes) - sizes), sizes)
        self.order = order[np.arange(len(order)) + offsets]
        self.sizes = sizes
        self.group_ends = np.cumsum(sizes)
        self.group_starts = self.group_ends - sizes
        self._kernels = kernels[self.order[self.group_starts]].tolist()
        self._rows = (self.order + first_row).astype(np.uint32).tobytes()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        for kernel, start, end in zip(
            self._kernels, (4 * self.group_starts).tolist(), (4 * self.group_ends).tolist(), strict=True
        ):
            yield kernel, self._rows[start:end]

    def any_set(self, values: NDArray[np.bool_]) -> list[bool]:
        """True for each group in which any of the sorted values is set."""
        flags: list[bool] = np.logical_or.reduceat(values, self.group_starts).tolist()
        return flags

    def sums(self, values: NDArray[np.bool_]) -> list[int]:
        """The number of the sorted values of each group that are set."""
        totals: list[int] = np.add.reduceat(values.astype(np.int64), self.group_starts).tolist()
        return totals

    def maxima(self, values: NDArray[np.int64]) -> list[int]:
        """The largest of the sorted values of each group."""
        largest_values: list[int] = np.maximum.reduceat(values, self.group_starts).tolist()
        return largest_values
