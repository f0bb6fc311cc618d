"""Keeps the books of launches and results: the table, the kernels that they belong to, and the totals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tui_probe.trace.launches import UNKNOWN
from tui_probe.trace.model import Kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tui_probe.trace.columns import LaunchColumns, ResultColumns
    from tui_probe.trace.event_types import Shape
    from tui_probe.trace.model import Trace


class Recorder:
    """``changed`` collects the indices of the kernels touched; ``row`` is the launch that the next lines are about."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.changed: set[int] = set()
        self.folders: dict[int, str] = {}
        self.row: int | None = None

    def kernel(self, index: int) -> Kernel:
        """The kernel of this index, made if the log has not named it yet."""
        kernel = self.trace.kernels.get(index)
        if kernel is None:
            kernel = Kernel(index, "?", self.trace)
            kernel.folder_name = self.folders.get(index)
            self.trace.kernels.add(kernel)
        self.changed.add(index)
        return kernel

    def kernel_at_hand(self) -> Kernel | None:
        """The kernel of the launch at hand, if there is one and its line named a kernel."""
        index = UNKNOWN if self.row is None else self.trace.launches.kernel_of(self.row)
        return None if index == UNKNOWN else self.kernel(index)

    def launch(
        self,
        index: int | None,
        shape: Shape,
        *,
        number: int | None = None,
        time_ns: int | None = None,
        stream: int | None = None,
        probed: bool = True,
        reason: str | None = None,
    ) -> None:
        """A launch, of the kernel of this index if one is known; it becomes the one at hand."""
        self.row = self.trace.launches.add(
            UNKNOWN if index is None else index,
            shape,
            number=number,
            time_ns=time_ns,
            stream=stream,
            probed=probed,
            reason=reason,
        )
        self.trace.state.launches += 1
        if index is not None:
            _count_launch(self.kernel(index), self.row, shape)

    def ended_launches(self, launches: LaunchColumns) -> None:
        """Launches that were read together, in order.

        One that was passed through is at hand afterwards, since a line may follow that says that it failed.
        """
        state = self.trace.state
        first = self.trace.launches.extend(launches)
        groups = _Groups(launches.kernel, first)
        shapes = launches.shape[groups.order]
        differs = shapes != shapes[groups.starts].repeat(groups.sizes, axis=0)
        other_grids = groups.any(differs[:, :3].any(axis=1))
        other_blocks = groups.any(differs[:, 3:6].any(axis=1))
        memory = launches.probe_bytes[groups.order]
        figures = zip(
            map(tuple, shapes[groups.starts].tolist()),
            map(tuple, shapes[groups.ends - 1].tolist()),
            other_grids,
            other_blocks,
            groups.sums(memory != UNKNOWN),
            groups.most(memory),
            strict=True,
        )
        for (index, rows), (begin, end, grid, block, probed, most) in zip(groups, figures, strict=True):
            kernel = self.kernel(index)
            kernel.rows.frombytes(rows)
            kernel.launches += len(rows) // 4
            _see_shape(kernel, begin)
            kernel.shape = end
            kernel.grid_varies |= grid
            kernel.block_varies |= block
            kernel.launches_probed += probed
            if probed:
                kernel.probe_bytes = max(kernel.probe_bytes or 0, most)
        state.launches += len(launches)
        state.launches_probed += int(launches.probed.sum())
        self.row = None if launches.probed[-1] else first + len(launches) - 1

    def saved_results(self, results: ResultColumns) -> None:
        """Results that were read together, in order."""
        state = self.trace.state
        launches = self.trace.launches.rows_of(results.number.astype(np.int64))
        first = self.trace.results.extend(results, launches)
        self.trace.launches.set_results(launches, first)
        for index, rows in _Groups(results.kernel, first):
            self.kernel(index).result_rows.frombytes(rows)
        state.results += len(results)
        state.bytes_written += sum(results.size.tolist())

    def memory(self, size: int) -> None:
        """The bytes of all maps of the launch at hand."""
        if self.row is not None:
            self.trace.launches.set_probe_bytes(self.row, size)
        if kernel := self.kernel_at_hand():
            kernel.probe_bytes = max(kernel.probe_bytes or 0, size)

    def ended(self, status: int, *, succeeded: bool) -> None:
        """What the driver answered to the launch at hand."""
        if self.row is None:
            return
        self.trace.launches.set_status(self.row, status)
        if succeeded and self.trace.launches.was_probed(self.row):
            self.trace.state.launches_probed += 1
            if kernel := self.kernel_at_hand():
                kernel.launches_probed += 1

    def replaces_failed(self, index: int | None) -> bool:
        """Whether the launch at hand was probed, failed, and was of this kernel."""
        launches = self.trace.launches
        return self.row is not None and launches.failed(self.row) and launches.kernel_of(self.row) in (index, UNKNOWN)

    def saved(self, name: str, size: int, index: int | None, number: int | None) -> None:
        """A result file; without a launch number it is of the launch at hand."""
        launches, state = self.trace.launches, self.trace.state
        row = self.row if number is None else launches.row_of(number)
        if index is None and row is not None and launches.kernel_of(row) != UNKNOWN:
            index = launches.kernel_of(row)
        result = self.trace.results.add(name, size, row)
        state.results += 1
        state.bytes_written += size
        if row is not None:
            launches.set_result(row, result)
        if index is not None:
            self.kernel(index).result_rows.append(result)


def _count_launch(kernel: Kernel, row: int, shape: Shape) -> None:
    kernel.launches += 1
    kernel.rows.append(row)
    _see_shape(kernel, shape)


def _see_shape(kernel: Kernel, shape: Shape) -> None:
    if shape == kernel.shape:
        return
    if kernel.shape is not None:
        kernel.grid_varies |= shape[:3] != kernel.shape[:3]
        kernel.block_varies |= shape[3:6] != kernel.shape[3:6]
    kernel.shape = shape


class _Groups:
    """The rows of a column by their kernel. Iterating gives each kernel, in order of appearance, and its rows.

    Rows are numbers from ``first`` on, as the bytes of u32. ``order`` sorts the column; a group is its part from an
    element of ``starts`` to that of ``ends``. There may be thousands of groups, so all is worked out for all at once.
    """

    def __init__(self, kernels: NDArray[np.uint64], first: int) -> None:
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
        """Whether any of the sorted values of each group is set."""
        found: list[bool] = np.logical_or.reduceat(values, self.starts).tolist()
        return found

    def sums(self, values: NDArray[np.bool_]) -> list[int]:
        """How many of the sorted values of each group are set."""
        found: list[int] = np.add.reduceat(values.astype(np.int64), self.starts).tolist()
        return found

    def most(self, values: NDArray[np.int64]) -> list[int]:
        """The largest of the sorted values of each group."""
        found: list[int] = np.maximum.reduceat(values, self.starts).tolist()
        return found
