"""Record launches and results: the tables, the kernels that they belong to, and the totals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.trace.gpu_time import NOT_TIMED
from tui_probe.trace.launches import UNKNOWN, TimeColumns
from tui_probe.trace.model import Kernel
from tui_probe.trace.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tui_probe.reasons import Reason
    from tui_probe.trace.launch_events import FunctionResources, GpuTimed, PrepareResult, ProbeMode, ShapeGroupNamed
    from tui_probe.trace.launch_shape import Shape
    from tui_probe.trace.launches import LaunchColumns, ResultColumns
    from tui_probe.trace.model import Trace
    from tui_probe.trace.unprobed import PackedItems, PackedSegments

_MIN_PENDING: Final = 1 << 18
"""Launches and results that are worth one pass over all of them."""
_MAX_EARLY_RESULTS: Final = 64


class Recorder:
    """Records lines of a log. ``changed_kernels`` has indices of kernels, ``row`` is the row of the current launch."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.changed_kernels: set[int] = set()
        self.decided_kernels: list[int] = []
        """Kernels whose outcome has become known; its reader empties it."""
        self._folders: dict[int, str] = {}
        self.row: int | None = None
        self.time_ns: int | None = None
        """GPU time of a probed launch, from the line before its own."""
        self._early_results: dict[int, list[int]] = {}
        """Results by the number of their launch, whose lines have not come: a benchmark saves before it writes them."""
        self._tally = Tally(trace)
        self.offset = 0
        """Offset of the current line in the log."""

    def kernel(self, index: int) -> Kernel:
        """The kernel of this index, made if the log has not named it yet."""
        kernel = self.trace.kernels.get(index)
        if kernel is None:
            kernel = Kernel(index, "?", self.trace)
            kernel.folder_name = self._folders.get(index)
            self.trace.kernels.add(kernel)
        self.changed_kernels.add(index)
        return kernel

    def forget_kernels(self) -> None:
        self.count_pending()
        self.trace.kernels.clear()
        self.trace.timed_kernels.clear()
        self.changed_kernels.clear()

    def record_folder(self, index: int, name: str) -> None:
        """Record the name of a kernel's folder, which may be logged before its prepare result."""
        self._folders[index] = name
        kernel = self.trace.kernels.get(index)
        if kernel is not None:
            kernel.folder_name = name

    def record_outcome(
        self, index: int, status: PrepareResult, resources: FunctionResources, name: str, reason: Reason | None
    ) -> None:
        """Record the prepare result of a kernel; ``resources`` are those of its original function."""
        kernel = self.kernel(index)
        self.decided_kernels.append(index)
        kernel.name = name
        kernel.outcome.decide(status, reason)
        kernel.driver_original = resources

    def record_function(self, index: int, resources: FunctionResources, mode: ProbeMode | None) -> None:
        """Record the function that is launched instead of a kernel."""
        kernel = self.kernel(index)
        kernel.outcome.function, kernel.stated_mode = resources, mode

    def record_probe_outcome(
        self, index: int, probe: str, status: PrepareResult, resources: FunctionResources, reason: Reason | None
    ) -> None:
        """Record the result of a kernel with one of several probes; ``resources`` are those of the probed function."""
        probed_kernel = self.kernel(index).add_probe(probe)
        if probed_kernel is not None:
            probed_kernel.outcome.decide(status, reason)
            probed_kernel.outcome.function = resources

    def record_launch(
        self,
        index: int | None,
        shape: Shape,
        *,
        number: int | None = None,
        time_ns: int | None = None,
        stream: int | None = None,
        probed: bool = True,
        reason: Reason | None = None,
    ) -> None:
        """Record a launch, of the kernel of this index if one is known; it becomes the current one."""
        self.row = self.trace.launches.add(
            UNKNOWN if index is None else index,
            shape,
            number=number,
            time_ns=time_ns,
            stream=stream,
            probed=probed,
            reason=reason,
        )
        self.trace.state.launches += not self.trace.launches.is_captured(self.row)
        if number in self._early_results:
            self._assign_early_results(number, self.row)
        if index is not None:
            self.kernel(index)

    def record_unlisted(self, index: int, launches: int) -> None:
        """Record launches of a kernel that ran unprobed, and have no lines."""
        kernel = self.kernel(index)
        kernel.launches += launches
        self.trace.state.launches += launches

    def _assign_early_results(self, number: int, row: int) -> None:
        """Assign the results that came before their launch to its row."""
        for result in self._early_results.pop(number):
            self.trace.results.set_launch(result, row)
            self._set_result(result, row)

    def _set_result(self, result: int, row: int) -> None:
        """Note a result of the launch in a row, which may have others."""
        launches = self.trace.launches
        if launches.set_result(row, result) and (index := launches.kernel_of(row)) != UNKNOWN:
            self.kernel(index).extra_results += 1

    def record_launches(self, launches: LaunchColumns) -> None:
        """Record launches that were read together, in order; the last becomes the current one."""
        state = self.trace.state
        self._add_kernels(launches.kernel)
        first_row = self.trace.launches.extend(launches)
        self.row = first_row + len(launches) - 1
        if launches.probed.any():
            self.time_ns = None
        state.launches += len(launches) - int(self.trace.launches.captured_mask(first_row).sum())
        state.launches_probed += int((launches.probed & (launches.status == 0)).sum())
        for i in np.flatnonzero(~launches.probed & (launches.status > 0)).tolist():
            self.kernel(int(launches.kernel[i])).add_refused(1, int(launches.status[i]))
        if self._early_results:
            for i in np.flatnonzero(np.isin(launches.number, list(self._early_results))).tolist():
                self._assign_early_results(int(launches.number[i]), first_row + i)

    def record_key(self, key: ShapeGroupNamed) -> None:
        """Record the launches that a key stands for; launches of it that the log named first are its kernel's, too."""
        self.kernel(key.kernel).launches += self.trace.unprobed.name_key(key)

    def record_packed(self, segments: PackedSegments, items: PackedItems) -> None:
        """Record lines of packed launches, and the items that were read of them."""
        counts = self.trace.unprobed.add(segments, items)
        for key, count in counts.launches.items():
            self._count_unprobed(key, count)
        for key, count in counts.captures.items():
            kernel = self.trace.unprobed.kernel_of(key)
            if kernel is not None:
                self.kernel(kernel).captures += count

    def record_lost(self, key: int, count: int) -> None:
        """Record that the log had no room for that many launches of a key."""
        self.trace.unprobed.add_lost(key, count)
        self._count_unprobed(key, count)

    def record_graph_node(self, index: int, shape: Shape) -> None:
        """Record that a kernel is in a graph. Where it was not launched otherwise, it gets the shape of the node."""
        kernel = self.kernel(index)
        if kernel.shape is None:
            kernel.shape = shape

    def record_graph_launches(self, launches: Mapping[int, int]) -> None:
        """Record launches of kernels in replays of graphs that have no lines of their own."""
        for index, count in launches.items():
            self.kernel(index).launches += count
            self.kernel(index).launches_in_graphs += count
            self.trace.state.launches += count

    def _count_unprobed(self, key: int, count: int) -> None:
        self.trace.state.launches += count
        kernel = self.trace.unprobed.kernel_of(key)
        if kernel is not None:
            self.kernel(kernel).launches += count

    def record_results(self, results: ResultColumns) -> None:
        """Record results that were read together, in order."""
        state = self.trace.state
        self._add_kernels(results.kernel)
        launches = self.trace.launches.rows_of(results.number.astype(np.int64))
        first_result = self.trace.results.extend(results, launches)
        for i in np.flatnonzero(launches < 0).tolist():
            self._keep_early_result(int(results.number[i]), first_result + i)
        self.trace.launches.set_results(launches, first_result)
        self._tally.add_results(results.kernel)
        state.results += len(results)
        state.bytes_written += sum(results.size.tolist())

    def _keep_early_result(self, number: int, result: int) -> None:
        """Keep a result whose launch has not come; of a damaged log not more are kept than launches can be late."""
        if len(self._early_results) < _MAX_EARLY_RESULTS:
            self._early_results.setdefault(number, []).append(result)

    def _add_kernels(self, kernels: NDArray[np.uint64]) -> None:
        """Make sure that all these kernels exist."""
        for index in set(kernels.tolist()) - self.changed_kernels:
            self.kernel(index)

    def count_pending(self) -> None:
        """Count for their kernels the launches and results that were recorded since the last time."""
        self._tally.count_pending()

    def count_many_pending(self) -> None:
        """Count pending launches if they are enough to be worth one pass."""
        if self._tally.pending > _MIN_PENDING:
            self._tally.count_pending()

    def record_memory(
        self, size: int, device: int | None = None, number: int | None = None, probe: str | None = None
    ) -> None:
        """Record the bytes of all maps of launch ``number``, else of the current one, and those on the ``device``.

        Where several probes are sized, they are those of this ``probe``.
        """
        row = self.row if number is None else self.trace.launches.row_of(number)
        if row is None:
            return
        self.trace.launches.set_probe_bytes(row, size)
        self._tally.add_memory(row, size)
        index = self.trace.launches.kernel_of(row)
        if index == UNKNOWN:
            return
        self.changed_kernels.add(index)
        if device is not None:
            outcome = self.kernel(index).outcome
            outcome.device_bytes = max(outcome.device_bytes or 0, device)
        if probe is not None and (probed_kernel := self.kernel(index).add_probe(probe)) is not None:
            probed_kernel.outcome.add_size(row, size, device or 0)

    def record_status(self, status: int) -> None:
        """Record the driver's answer to the current launch, 0 for success; a launch ends only once."""
        if self.row is None:
            return
        launches = self.trace.launches
        had_succeeded = launches.has_succeeded(self.row)
        launches.set_status(self.row, status)
        if launches.was_refused(self.row) and (index := launches.kernel_of(self.row)) != UNKNOWN:
            self.kernel(index).add_refused(1, status)
        if launches.has_succeeded(self.row) and not had_succeeded:
            self.trace.state.launches_probed += 1
            self._tally.add_success(self.row)
            self._mark_changed()

    def record_times(self, times: TimeColumns) -> None:
        """Record GPU times that were read together."""
        order = np.argsort(times.kernel, kind="stable")
        kernels, group_starts = np.unique(times.kernel[order], return_index=True)
        for index, rows in zip(kernels.tolist(), np.split(order, group_starts[1:]), strict=False):
            self.kernel(index).add_samples(times.part(rows))

    def record_time(self, event: GpuTimed) -> None:
        """Record the GPU time of one launch."""
        self.record_times(
            TimeColumns(
                kernel=np.array([event.kernel], dtype=np.uint64),
                launch=np.array([event.number], dtype=np.uint64),
                key=np.array([event.key]),
                probed=np.array([event.is_probed]),
                ns=np.array([event.ns], dtype=np.uint64),
                weight=np.array([event.weight], dtype=np.uint64),
                host=np.array([NOT_TIMED if event.host_ns is None else event.host_ns]),
            )
        )

    def _mark_changed(self) -> None:
        """Mark the kernel of the current launch as changed."""
        if self.row is not None and (kernel := self.trace.launches.kernel_of(self.row)) != UNKNOWN:
            self.changed_kernels.add(kernel)

    def replaces_failed(self, index: int | None) -> bool:
        """True if the current launch was probed, failed, and was of this kernel."""
        launches = self.trace.launches
        return (
            self.row is not None and launches.has_failed(self.row) and launches.kernel_of(self.row) in (index, UNKNOWN)
        )

    def record_result(
        self, name: str, size: int, index: int | None, number: int | None, probe: str | None = None
    ) -> None:
        """Record a result file; without a launch number it is of the current launch. Of several probes one is named."""
        launches, state = self.trace.launches, self.trace.state
        row = self.row if number is None else launches.row_of(number)
        if index is None and row is not None and launches.kernel_of(row) != UNKNOWN:
            index = launches.kernel_of(row)
        result = self.trace.results.add(name, size, row)
        if (
            probe is not None
            and index is not None
            and (probed_kernel := self.kernel(index).add_probe(probe)) is not None
        ):
            self.trace.results.set_probe(result, probe)
            probed_kernel.result_rows.append(result)
        state.results += 1
        state.bytes_written += size
        if row is not None:
            self._set_result(result, row)
        elif number is not None:
            self._keep_early_result(number, result)
        self._tally.add_result(index)
        if index is not None:
            self.kernel(index)
