"""Events -> the kernels, launches and state of a trace."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from tui_probe.trace.event_types import (
    Benchmark,
    BenchmarkEnabled,
    Command,
    Device,
    Epoch,
    Event,
    Exited,
    Initialised,
    KernelFate,
    KernelFolder,
    LaunchEnded,
    LaunchStarted,
    Parameters,
    PassedThrough,
    ProbedFunction,
    ProbeMemory,
    ProcessStarted,
    Saved,
    Unknown,
)
from tui_probe.trace.kernels import Resources
from tui_probe.trace.launches import Shape, make_shape
from tui_probe.trace.model import Kernel, Trace
from tui_probe.trace.older import OlderKernels

if TYPE_CHECKING:
    from collections.abc import Callable


class Reducer:
    """Applies the events of one log, in order, to one trace.

    ``changed`` collects the indices of the kernels that an event touched; whoever reads it empties it. Events that do
    not fit (a result of a launch that the log does not hold, say) change what they can and nothing else.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.changed: set[int] = set()
        self.older: OlderKernels | None = OlderKernels(trace)
        """Set as long as the log may be one without ``[kernel]`` lines."""
        self._folders: dict[int, str] = {}
        self._time_ns: int | None = None
        self._row: int | None = None
        self._apply: dict[type[Any], Callable[[Any], None]] = {
            Unknown: self._unknown,
            ProcessStarted: self._process,
            Command: self._command,
            Epoch: self._epoch,
            Device: self._device,
            Initialised: self._initialised,
            BenchmarkEnabled: self._benchmark_enabled,
            KernelFolder: self._folder,
            KernelFate: self._fate,
            ProbedFunction: self._probed_function,
            Parameters: self._parameters,
            LaunchStarted: self._launch,
            ProbeMemory: self._probe_memory,
            LaunchEnded: self._launch_ended,
            PassedThrough: self._passed_through,
            Saved: self._saved,
            Benchmark: self._benchmark,
            Exited: self._exited,
        }

    def apply(self, event: Event) -> None:
        if self.older is not None:
            self.older.apply(event)
            if self.older.current is not None:
                self.changed.add(self.older.current.index)
        handler = self._apply.get(type(event))
        if handler is not None:
            handler(event)

    def kernel(self, index: int) -> Kernel:
        """The kernel of this index, made if the log has not named it yet."""
        kernel = self.trace.kernels.get(index)
        if kernel is None:
            kernel = Kernel(index, "?", self.trace.directory, self.trace.results)
            kernel.folder_name = self._folders.get(index)
            self.trace.kernels.add(kernel)
        self.changed.add(index)
        return kernel

    def add_launch(
        self, kernel: Kernel, shape: Shape, number: int | None, time_ns: int | None, stream: int | None
    ) -> int:
        """Note a probed launch and return its row."""
        row = self.trace.launches.add(kernel.index, shape, number=number, time_ns=time_ns, stream=stream)
        self._count_launch(kernel, shape, row)
        return row

    def end_launch(self, kernel: Kernel, row: int, status: int, *, succeeded: bool) -> None:
        self.trace.launches.set_status(row, status)
        if succeeded:
            kernel.launches_probed += 1
            self.trace.state.launches_probed += 1

    def need_memory(self, kernel: Kernel, row: int, size: int) -> None:
        self.trace.launches.set_probe_bytes(row, size)
        kernel.probe_bytes = max(kernel.probe_bytes or 0, size)

    def add_result(self, result: int, size: int, kernel: Kernel | None, row: int | None) -> None:
        """Note a result file that is already in the result table."""
        state = self.trace.state
        state.results += 1
        state.bytes_written += size
        if row is not None:
            self.trace.launches.set_result(row, result)
        if kernel is not None:
            kernel.result_rows.append(result)

    def _count_launch(self, kernel: Kernel, shape: Shape, row: int) -> None:
        grid, block = shape[:3], shape[3:6]
        if grid != kernel.grid:
            kernel.grid_varies = kernel.grid is not None
            kernel.grid = grid
        if block != kernel.block:
            kernel.block_varies = kernel.block is not None
            kernel.block = block
        kernel.shared_dynamic = shape[6]
        kernel.launches += 1
        kernel.rows.append(row)
        self.trace.state.launches += 1

    def _unknown(self, _: Unknown) -> None:
        self.trace.state.unknown_lines += 1

    def _process(self, event: ProcessStarted) -> None:
        self.trace.state.pid = event.pid

    def _command(self, event: Command) -> None:
        self.trace.state.command = event.text

    def _epoch(self, event: Epoch) -> None:
        self.trace.state.epoch_ns = event.ns
        self.trace.state.started = event.ns / 1e9
        self._stop_deriving()

    def _device(self, event: Device) -> None:
        self.trace.state.devices[event.ordinal] = event
        self.trace.state.simulated |= "simulated" in event.name.lower()

    def _initialised(self, _: Initialised) -> None:
        self.trace.state.initialised = True

    def _benchmark_enabled(self, _: BenchmarkEnabled) -> None:
        self.trace.state.benchmark = True

    def _folder(self, event: KernelFolder) -> None:
        index = event.folder.partition("_")[0]
        if self.older is None and index.isascii() and index.isdigit() and len(index) < 10:
            self._folders[int(index)] = event.folder

    def _stop_deriving(self) -> None:
        """The log tells the fate of its kernels: forget what was pieced together."""
        if self.older is not None:
            self.older = None
            self.trace.kernels.clear()

    def _fate(self, event: KernelFate) -> None:
        self._stop_deriving()
        kernel = self.kernel(event.index)
        kernel.name = event.name
        kernel.status = event.status
        kernel.stated_reason = event.reason
        kernel.folder_name = self._folders.get(event.index)
        kernel.driver_original = _driver_resources(event)
        kernel.local_original = event.local
        kernel.blocks_per_sm = event.blocks

    def _probed_function(self, event: ProbedFunction) -> None:
        kernel = self.kernel(event.index)
        kernel.driver_probed = _driver_resources(event)
        kernel.local_probed = event.local
        kernel.blocks_per_sm_probed = event.blocks

    def _parameters(self, event: Parameters) -> None:
        self._time_ns = event.time_ns

    def _of(self, index: int | None) -> Kernel | None:
        """The kernel that a line names, or else the one at hand."""
        if index is not None:
            return self.kernel(index)
        return None if self.older is None else self.older.current

    def _launch(self, event: LaunchStarted) -> None:
        kernel = self._of(event.kernel)
        if kernel is None:
            kernel = self.kernel(-1)
        shape = make_shape(event.grid, event.block, event.shared)
        self._row = self.add_launch(kernel, shape, event.number, self._time_ns, event.stream)
        self._time_ns = None

    def _current(self) -> tuple[Kernel, int] | None:
        """The launch at hand and its kernel."""
        if self._row is None:
            return None
        return self.kernel(self.trace.launches.kernel_of(self._row)), self._row

    def _probe_memory(self, event: ProbeMemory) -> None:
        if current := self._current():
            self.need_memory(*current, event.size)

    def _launch_ended(self, event: LaunchEnded) -> None:
        if current := self._current():
            self.end_launch(*current, event.status, succeeded=event.succeeded)

    def _passed_through(self, event: PassedThrough) -> None:
        """A launch of the original: in its own right, or in the place of a probed one that failed just now."""
        kernel = self._of(event.kernel)
        if kernel is None:
            kernel = self.kernel(-1)
        launches = self.trace.launches
        shape = make_shape(event.grid, event.block, event.shared)
        if self._row is not None and launches.failed(self._row) and launches.kernel_of(self._row) == kernel.index:
            launches.pass_through(self._row, event.reason)
        else:
            row = launches.add(
                kernel.index, shape, number=event.number, time_ns=event.time_ns, probed=False, reason=event.reason
            )
            self._count_launch(kernel, shape, row)
        self._row = None

    def _saved(self, event: Saved) -> None:
        row = self._row if event.number is None else self.trace.launches.row_of(event.number)
        if event.kernel is not None:
            kernel: Kernel | None = self.kernel(event.kernel)
        else:
            kernel = None if row is None else self.kernel(self.trace.launches.kernel_of(row))
        result = self.trace.results.add(PurePosixPath(event.path).name, event.size, row)
        self.add_result(result, event.size, kernel, row)

    def _benchmark(self, event: Benchmark) -> None:
        kernel = self._of(event.index)
        self.trace.state.benchmark = True
        if kernel is None:
            return
        self.changed.add(kernel.index)
        columns = (
            (kernel.impacts, event.impact),
            (kernel.originals_ms, event.original),
            (kernel.probed_ms, event.kernel),
        )
        for column, value in columns:
            if value is not None and 0 < value < float("inf"):
                column.append(value)

    def _exited(self, event: Exited) -> None:
        self.trace.state.launches_dropped = event.dropped
        self.trace.state.dropped_reason = event.reason


def _driver_resources(event: KernelFate | ProbedFunction) -> Resources | None:
    if event.registers is None:
        return None
    return Resources(registers=event.registers, shared_bytes=event.shared)
