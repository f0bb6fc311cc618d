"""Keeps the books of launches and results: the table, the kernels that they belong to, and the totals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tui_probe.trace.launches import UNKNOWN
from tui_probe.trace.model import Kernel

if TYPE_CHECKING:
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

    def _kernels(self, indices: NDArray[np.uint64]) -> dict[int, Kernel]:
        """The kernels of a column, by index, in order of appearance."""
        return {index: self.kernel(index) for index in dict.fromkeys(indices.tolist())}

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
        shapes = zip(*launches.shape.T.tolist(), strict=True)
        figures = zip(launches.kernel.tolist(), shapes, launches.probe_bytes.tolist(), strict=True)
        kernels = self._kernels(launches.kernel)
        for row, (index, shape, size) in enumerate(figures, first):
            kernel = kernels[index]
            _count_launch(kernel, row, shape)
            if size != UNKNOWN:
                kernel.launches_probed += 1
                kernel.probe_bytes = max(kernel.probe_bytes or 0, size)
        state.launches += len(launches)
        state.launches_probed += int(launches.probed.sum())
        self.row = None if launches.probed[-1] else first + len(launches) - 1

    def saved_results(self, results: ResultColumns) -> None:
        """Results that were read together, in order."""
        state = self.trace.state
        launches = self.trace.launches.rows_of(results.number.astype(np.int64))
        first = self.trace.results.extend(results, launches)
        self.trace.launches.set_results(launches, first)
        kernels = self._kernels(results.kernel)
        for row, index in enumerate(results.kernel.tolist(), first):
            kernels[index].result_rows.append(row)
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
    if shape is kernel.shape or shape == kernel.shape:
        return
    if kernel.shape is not None:
        kernel.grid_varies |= shape[:3] != kernel.shape[:3]
        kernel.block_varies |= shape[3:6] != kernel.shape[3:6]
    kernel.shape = shape
