"""Apply the events of a log to a trace; kernels of older logs are derived from how functions were prepared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.reasons import because
from tui_probe.trace.event_types import (
    BenchmarkEnabled,
    BudgetEvent,
    Command,
    ContextFailed,
    Device,
    Ending,
    Epoch,
    Exited,
    Initialised,
    KernelFault,
    LaunchStuck,
    MemoryHashed,
    NvtxRange,
    ProcessStarted,
    RankGiven,
    ReasonNamed,
    Trouble,
    Unknown,
)
from tui_probe.trace.launch_events import (
    Benchmark,
    EngineAnswer,
    FileStep,
    FunctionFound,
    FunctionMissing,
    GpuTimed,
    GraphChanged,
    GraphInstantiated,
    GraphNode,
    GraphReplay,
    GraphReplayed,
    GraphTimed,
    ImageFound,
    InfoRead,
    KernelFolder,
    KernelPrepared,
    KernelReady,
    LaunchEnded,
    LaunchStarted,
    LaunchUnprobed,
    ModuleCall,
    NotReplayed,
    PackedLine,
    Parameters,
    ProbedFunction,
    ProbeMemory,
    ProbePrepared,
    ProbesFused,
    ResultSaved,
    ShapeGroupNamed,
    TurnsEnded,
    UnlistedLaunches,
    UnprobedDropped,
)
from tui_probe.trace.model import Kernel, Trace
from tui_probe.trace.unprobed import match_line, read_packed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.trace.event_types import Event
    from tui_probe.trace.launch_shape import Shape
    from tui_probe.trace.recorder import Recorder

_MAX_HASHES: Final = 1 << 16
_MAX_TROUBLES: Final = 100
"""Lines of a kind that are kept: a program may repeat a failure for each of its launches."""


class OlderKernels:
    """Follows one function at a time, as the single-threaded logs of that time do.

    ``current`` is the kernel that the lines at hand are about. A kernel is numbered in order of appearance.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._functions: dict[int, Kernel] = {}
        self._names: dict[int, str] = {}
        self.current: Kernel | None = None
        self.sized: Shape | None = None
        """The shape of the launch at hand, until its function is looked up for another one."""

    def apply(self, event: Event) -> None:
        """Take one event into account; those that say nothing of a kernel's preparation are ignored."""
        match event:
            case ModuleCall():
                self._note_name(event)
            case FunctionMissing(function):
                self.sized = None
                self.current = self._add(function)
            case FunctionFound(function, succeeded):
                self.sized = None
                self.current = self._functions.get(function) or self._add(function)
                if succeeded and self.current.status == "pending":
                    self.current.outcome.decide("probed", self.current.stated_reason)
            case _:
                if self.current is not None:
                    self._prepare(self.current, event)

    def _prepare(self, kernel: Kernel, event: Event) -> None:
        match event:
            case ImageFound(_, None, _):
                kernel.outcome.decide("skipped", because("image-unseen"))
            case ImageFound(_, str(name), _) | InfoRead(name=name):
                kernel.name = name
            case KernelFolder(_, folder):
                kernel.folder_name = folder
            case EngineAnswer("failed", reason):
                kernel.outcome.decide("failed", reason)
            case FileStep(step, path) if step.startswith("can't"):
                kernel.outcome.decide("failed", because("file-error", path=path, error=step))
            case KernelReady():
                kernel.outcome.decide("probed", kernel.stated_reason)
            case _:
                pass

    def _note_name(self, call: ModuleCall) -> None:
        """Names by handle; a function taken from a kernel handle has the kernel's name."""
        if call.handle is None:
            return
        name = call.name or (None if call.parent is None else self._names.get(call.parent))
        if name is not None:
            self._names[call.handle] = name

    def _add(self, function: int) -> Kernel:
        index = len(self._trace.kernels)
        name = self._names.get(function, f"{function:#x}")
        kernel = Kernel(index, name, self._trace)
        self._functions[function] = kernel
        self._trace.kernels.add(kernel)
        return kernel


class Reducer:
    """Applies the events of one log, in order, to one trace.

    Events that do not fit (a result of a launch that the log does not hold, say) change what they can, nothing else.
    """

    def __init__(self, trace: Trace, recorder: Recorder) -> None:
        self.trace = trace
        self.recorder = recorder
        self.older: OlderKernels | None = OlderKernels(trace)
        """Set as long as the log may be one without ``[kernel]`` lines."""
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            Unknown: self._on_unknown,
            ProcessStarted: self._on_process_started,
            Command: self._on_command,
            Epoch: self._on_epoch,
            RankGiven: self._on_rank_given,
            Device: self._on_device,
            Initialised: self._on_initialised,
            BenchmarkEnabled: self._on_benchmark_enabled,
            KernelFolder: self._on_kernel_folder,
            KernelPrepared: self._on_kernel_prepared,
            ProbedFunction: self._on_probed_function,
            ProbePrepared: self._on_probe_prepared,
            ProbesFused: self._on_probes_fused,
            NotReplayed: self._on_not_replayed,
            TurnsEnded: self._on_turns_ended,
            Parameters: self._on_parameters,
            LaunchStarted: self._on_launch_started,
            ProbeMemory: self._on_probe_memory,
            LaunchEnded: self._on_launch_ended,
            LaunchUnprobed: self._on_launch_unprobed,
            ShapeGroupNamed: self.recorder.record_key,
            ReasonNamed: self._on_reason_named,
            PackedLine: self._on_packed_line,
            UnprobedDropped: self._on_unprobed_dropped,
            ResultSaved: self._on_result_saved,
            Benchmark: self._on_benchmark,
            GpuTimed: self._on_gpu_timed,
            BudgetEvent: self._on_budget,
            UnlistedLaunches: self._on_unlisted,
            ContextFailed: self._on_context_failed,
            KernelFault: self._on_kernel_fault,
            LaunchStuck: self._on_launch_stuck,
            MemoryHashed: self._on_memory_hashed,
            Trouble: self._on_trouble,
            NvtxRange: self._on_nvtx_range,
            GraphInstantiated: self.trace.graphs.record_instantiation,
            GraphNode: self._on_graph_node,
            GraphReplayed: self._on_graph_replayed,
            GraphReplay: self._on_graph_replay,
            GraphTimed: self.trace.graphs.record_time,
            GraphChanged: self.trace.graphs.record_change,
            Ending: self._on_ending,
            Exited: self._on_exited,
        }

    def apply(self, event: Event) -> None:
        if self.older is not None:
            self.older.apply(event)
            if self.older.current is not None:
                self.recorder.changed_kernels.add(self.older.current.index)
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    def _on_nvtx_range(self, event: NvtxRange) -> None:
        self.trace.ranges.add(event)

    def _on_unknown(self, _: Unknown) -> None:
        self.trace.state.unknown_lines += 1

    def _on_process_started(self, event: ProcessStarted) -> None:
        self.trace.state.pid = event.pid

    def _on_command(self, event: Command) -> None:
        self.trace.state.command = event.text

    def _on_rank_given(self, event: RankGiven) -> None:
        self.trace.state.rank = event

    def _on_epoch(self, event: Epoch) -> None:
        self.trace.state.epoch_ns = event.ns
        self.trace.state.started = event.ns / 1e9
        self._stop_deriving()

    def _on_device(self, event: Device) -> None:
        self.trace.state.devices[event.ordinal] = event
        self.trace.state.simulated |= "simulated" in event.name.lower()

    def _on_initialised(self, _: Initialised) -> None:
        self.trace.state.initialised = True

    def _on_benchmark_enabled(self, _: BenchmarkEnabled) -> None:
        self.trace.state.benchmark = True

    def _on_kernel_folder(self, event: KernelFolder) -> None:
        index = event.folder.partition("_")[0]
        if self.older is None and index.isascii() and index.isdigit() and len(index) < 10:
            self.recorder.record_folder(int(index), event.folder)

    def _stop_deriving(self) -> None:
        """The log tells the outcome of its kernels: forget what was pieced together."""
        if self.older is not None:
            self.older = None
            self.recorder.forget_kernels()

    def _on_kernel_prepared(self, event: KernelPrepared) -> None:
        self._stop_deriving()
        self.recorder.record_outcome(event.index, event.status, event.resources, event.name, event.reason)

    def _on_probed_function(self, event: ProbedFunction) -> None:
        self.recorder.record_function(event.index, event.resources, event.way)

    def _on_probes_fused(self, event: ProbesFused) -> None:
        self.recorder.kernel(event.index).fused = event

    def _on_not_replayed(self, event: NotReplayed) -> None:
        self.recorder.kernel(event.index).replay_obstacle = event.reason

    def _on_turns_ended(self, event: TurnsEnded) -> None:
        probed_kernel = self.recorder.kernel(event.index).add_probe(event.probe)
        if probed_kernel is not None:
            probed_kernel.outcome.ended_after = event.number

    def _on_probe_prepared(self, event: ProbePrepared) -> None:
        self.recorder.record_probe_outcome(event.index, event.probe, event.status, event.resources, event.reason)

    def _on_parameters(self, event: Parameters) -> None:
        self.recorder.time_ns = event.time_ns
        if self.older is not None and self.trace.state.first_launch_ns is None:
            self.trace.state.first_launch_ns = event.time_ns

    def _kernel_index(self, index: int | None) -> int | None:
        """The index that a line names, or else that of the kernel at hand."""
        if index is None and self.older is not None and self.older.current is not None:
            return self.older.current.index
        return index

    def _on_launch_started(self, event: LaunchStarted) -> None:
        time_ns, self.recorder.time_ns = self.recorder.time_ns, None
        self.recorder.record_launch(
            self._kernel_index(event.kernel),
            event.shape,
            number=self._launch_number(event.number),
            time_ns=time_ns,
            stream=event.stream,
        )
        if self.older is not None:
            self.older.sized = event.shape

    def _launch_number(self, number: int | None) -> int | None:
        """Older logs do not number launches: there it is how many came before."""
        return len(self.trace.launches) if number is None and self.older is not None else number

    def _on_probe_memory(self, event: ProbeMemory) -> None:
        self.recorder.record_memory(event.size, event.device, event.number, event.probe)

    def _on_launch_ended(self, event: LaunchEnded) -> None:
        self.recorder.record_status(event.status)

    def _on_launch_unprobed(self, event: LaunchUnprobed) -> None:
        """A launch of the original: in its own right, or instead of a probed one that failed just now."""
        index = self._kernel_index(event.kernel)
        row = self.recorder.row
        if row is not None and self.recorder.replaces_failed(index):
            self.trace.launches.pass_through(row, event.reason)
        elif row is not None and self.older is not None and self.older.sized == event.shape:
            self._record_original(row)
        else:
            self.recorder.record_launch(
                index,
                event.shape,
                number=self._launch_number(event.number),
                time_ns=event.time_ns,
                probed=False,
                reason=event.reason,
            )

    def _record_original(self, row: int) -> None:
        """An older log has two lines for a launch whose maps were sized before the original was launched.

        Where the probed one ended well before, the original was run for its time only.
        """
        if self.older is not None:
            self.older.sized = None
        if not self.trace.launches.has_succeeded(row):
            self.trace.launches.pass_through(row, None)

    def _on_reason_named(self, event: ReasonNamed) -> None:
        self.trace.unprobed.name_reason(event.number, event.reason)

    def _on_packed_line(self, event: PackedLine) -> None:
        match = match_line(event.line)
        if match is not None:
            self.recorder.record_packed(*read_packed([(self.recorder.offset, match)]))

    def _on_unprobed_dropped(self, event: UnprobedDropped) -> None:
        self.recorder.record_lost(event.key, event.count)

    def _on_result_saved(self, event: ResultSaved) -> None:
        self.recorder.record_result(event.path.rpartition("/")[2], event.size, event.kernel, event.number, event.probe)

    def _on_benchmark(self, event: Benchmark) -> None:
        self.trace.state.benchmark = True
        index = self._kernel_index(event.index)
        if index is not None:
            self.recorder.kernel(index).add_times(event)

    def _on_gpu_timed(self, event: GpuTimed) -> None:
        self.recorder.record_time(event)

    def _on_budget(self, event: BudgetEvent) -> None:
        self.trace.state.budgets[event.name] = event

    def _on_unlisted(self, event: UnlistedLaunches) -> None:
        self.recorder.record_unlisted(event.kernel, event.launches)

    def _on_context_failed(self, event: ContextFailed) -> None:
        if self.trace.state.context_failed is None:
            self.trace.state.context_failed = event
            self.recorder.changed_kernels.update(range(len(self.trace.kernels)))

    def _on_memory_hashed(self, event: MemoryHashed) -> None:
        if len(self.trace.state.hashes) < _MAX_HASHES:
            self.trace.state.hashes.append(event)

    def _on_launch_stuck(self, event: LaunchStuck) -> None:
        if len(self.trace.state.stuck) < _MAX_TROUBLES:
            self.trace.state.stuck.append(event)

    def _on_kernel_fault(self, event: KernelFault) -> None:
        faults = self.trace.state.faults
        if len(faults) < _MAX_TROUBLES:
            faults.append(event.text)
            self.recorder.changed_kernels.update(range(len(self.trace.kernels)))

    def _on_trouble(self, event: Trouble) -> None:
        troubles = self.trace.state.troubles
        if len(troubles) < _MAX_TROUBLES:
            troubles.append(event.text)

    def _on_graph_node(self, event: GraphNode) -> None:
        self.trace.graphs.record_node(event)
        if event.kernel is not None and event.shape is not None:
            self.recorder.record_graph_node(event.kernel, event.shape)

    def _on_graph_replayed(self, event: GraphReplayed) -> None:
        self.recorder.record_graph_launches(self.trace.graphs.count_replays(event.graph, event.count))

    def _on_graph_replay(self, event: GraphReplay) -> None:
        self.recorder.record_graph_launches(self.trace.graphs.record_replay(event))

    def _on_ending(self, event: Ending) -> None:
        self.trace.state.exit_status, self.trace.state.signal = event.status, event.signal

    def _on_exited(self, event: Exited) -> None:
        self.trace.state.launches_dropped = event.dropped_results
        if event.dropped_results:
            self.recorder.changed_kernels.update(range(len(self.trace.kernels)))
        if event.reason is not None:
            self.trace.state.dropped_reason, self.trace.state.dropped_reason_code = event.reason
