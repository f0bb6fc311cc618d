"""A traced run apart from its kernels: process state, launches, results and NVTX ranges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from tui_probe.trace.graphs import GraphTable
from tui_probe.trace.launches import LaunchTable, ResultTable
from tui_probe.trace.locate import path_in_trace
from tui_probe.trace.long_column import Spill
from tui_probe.trace.unprobed import UnprobedTable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tui_probe.trace.event_types import (
        BudgetEvent,
        ContextFailed,
        Device,
        LaunchStuck,
        MemoryHashed,
        NvtxRange,
        RankGiven,
    )
    from tui_probe.trace.gpu_time import GpuTime
    from tui_probe.trace.run_info import RunInfo

LaunchRun = tuple[int, int]
"""First and last of launches that follow one another, by number."""

MAX_CHECKED_RESULTS: Final = 200
"""Newest results whose sizes are compared with those in the log."""


@dataclass(slots=True)
class Range:
    """One range. ``thread`` is None if it encloses the launches of all threads; ``end_ns`` None if it never ended.

    Times are nanoseconds since 1970, on the host: of the calls, not of the kernels.
    """

    id: int
    parent: int | None
    thread: int | None
    start_ns: int
    end_ns: int | None
    domain: str | None
    text: str
    runs: list[LaunchRun]

    @property
    def launches(self) -> int:
        """The number of launches that it encloses, those of inner ranges among them."""
        return sum(last - first + 1 for first, last in self.runs)


class RangeTable:
    """The ranges of a process, by the order in which they began."""

    def __init__(self) -> None:
        self._by_id: dict[int, Range] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Range]:
        return iter([self._by_id[key] for key in sorted(self._by_id)])

    def get(self, range_id: int | None) -> Range | None:
        """The range of that id; None if it is not known, as one without launches of its own is not."""
        return None if range_id is None else self._by_id.get(range_id)

    def add(self, event: NvtxRange) -> None:
        """Add a range, or another part of one."""
        nvtx_range = self._by_id.get(event.id)
        if nvtx_range is None:
            self._by_id[event.id] = Range(
                event.id, event.parent, event.thread, event.start_ns, event.end_ns, event.domain, event.text,
                list(event.runs),
            )  # fmt: skip
        else:
            nvtx_range.runs += event.runs
            nvtx_range.end_ns = event.end_ns if nvtx_range.end_ns is None else nvtx_range.end_ns

    def depth(self, inner: Range) -> int:
        """The number of ranges that enclose it: 0 for an outermost one."""
        depth, inner_ids, outer = 0, {inner.id}, self.get(inner.parent)
        while outer is not None and outer.id not in inner_ids:
            inner_ids.add(outer.id)
            depth, outer = depth + 1, self.get(outer.parent)
        return depth


class TimedKernel(Protocol):
    """The properties of a kernel that a run reads."""

    @property
    def index(self) -> int: ...

    @property
    def gpu_time(self) -> GpuTime | None: ...


@dataclass(slots=True)
class State:
    """The process that a trace is of. Times are seconds since 1970."""

    pid: int | None = None
    command: str = ""
    started: float | None = None
    ended: float | None = None
    epoch_ns: int | None = None
    first_launch_ns: int | None = None
    """Time of the first launch with a time, from an older log, in ns since 1970."""
    is_running: bool = False
    exit_status: int | None = None
    signal: int | None = None
    """The signal that ended it; this and ``exit_status`` are None where no one knows."""
    initialised: bool = False
    kernels: int = 0
    launches: int = 0
    launches_probed: int = 0
    launches_dropped: int | None = None
    """Probed launches whose result was not saved; None until the process ends in an orderly way."""
    dropped_reason: str | None = None
    dropped_reason_code: str | None = None
    results: int = 0
    bytes_written: int = 0
    """Bytes of all result files."""
    lines: int = 0
    unknown_lines: int = 0
    budgets: dict[str, BudgetEvent] = field(default_factory=dict)
    """Refusals of the run's budgets, by name; the last report of each."""
    context_failed: ContextFailed | None = None
    """The first GPU context that failed while results were waited for."""
    faults: list[str] = field(default_factory=list)
    """Faults of kernels that checks of the simulated GPU found, each once, as JSON; the first hundred."""
    rank: RankGiven | None = None
    """Place among the processes of a parallel program; None where its launcher does not say."""
    hashes: list[MemoryHashed] = field(default_factory=list)
    """Hashes of memory after launches, in the order of the log; the first 65536."""
    stuck: list[LaunchStuck] = field(default_factory=list)
    """Launches that did not end; the first hundred."""
    troubles: list[str] = field(default_factory=list)
    """Failures of the hook, as it reported them; the first hundred."""
    devices: dict[int, Device] = field(default_factory=dict)
    simulated: bool = False
    """Run on the simulated GPU: its clocks and times are those of a model."""
    benchmark: bool = False

    @property
    def zero_ns(self) -> int | None:
        """Zero of launch times in ns since 1970: the process's start, else its first launch; None if there is
        neither.
        """
        return self.first_launch_ns if self.epoch_ns is None else self.epoch_ns

    @property
    def device(self) -> Device | None:
        """The first device, or None if the log names none."""
        return next(iter(self.devices.values()), None)


class Run:
    """A process and its launches, from a trace directory. Values that it does not have are None."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.state = State()
        self.spill = Spill()
        """File with older rows of its tables."""
        self.launches = LaunchTable(self.spill)
        self.unprobed = UnprobedTable(directory, self.spill)
        self.results = ResultTable(directory, self.spill)
        self.ranges = RangeTable()
        self.graphs = GraphTable()
        self.run_info: RunInfo | None = None
        self.run_json_problem = ""
        """Reason why ``run.json`` was not read, although it exists; "" for none."""
        self.log_ends_inside_line = False
        self.timed_kernels: list[TimedKernel] = []
        """The kernels with timed launches."""
        self.times_logged = 0
        """Number of times of launches in the log so far."""
        self._times_version = (-1, -1, -1)
        self._gpu_times = (0.0, 0.0)

    @property
    def gpu_ns(self) -> float:
        """GPU time of all launches of kernels that were timed, and of graphs, in nanoseconds, if known."""
        return sum(self._known_times())

    @property
    def graph_ns(self) -> float:
        """Part of it in replays of graphs, beyond kernels that were timed one by one."""
        return self._known_times()[1]

    def _known_times(self) -> tuple[float, float]:
        """Return the GPU time of timed kernels, and of graphs beyond them, in ns."""
        version = (self.state.launches, self.times_logged, self.graphs.changes)
        if version != self._times_version:
            times = {kernel.index: time for kernel in self.timed_kernels if (time := kernel.gpu_time) is not None}
            mean_times = {index: time.total_ns / time.launches for index, time in times.items() if time.launches}
            graph_ns = 0.0 if self.state.simulated else sum(graph.untimed_ns(mean_times) for graph in self.graphs)
            self._times_version, self._gpu_times = version, (sum(time.total_ns for time in times.values()), graph_ns)
        return self._gpu_times

    @property
    def broke_off(self) -> bool:
        """True if its process ended without its last lines, and the cause is unknown: killed or crashed."""
        state, info = self.state, self.run_info
        has_ended = state.exit_status is not None or state.signal is not None or state.launches_dropped is not None
        return not state.is_running and not has_ended and info is not None and info.pid is not None

    @property
    def log_cut(self) -> bool:
        """True if the log lacks its last line, although the process ended by itself according to the launcher.

        Without a readable ``run.json`` the end is unknown: then a log that ends inside a line is truncated.
        """
        state = self.state
        if state.is_running or state.launches_dropped is not None:
            return False
        if self.run_json_problem:
            return self.log_ends_inside_line
        return state.exit_status is not None and self.run_info is not None

    @property
    def results_unsaved(self) -> int | None:
        """Probed launches in the log without a result, of a process that ended without the log's last line.

        None where the last line counts them, and where it is unknown whether there will be one.
        """
        state = self.state
        if state.is_running or self.run_info is None or state.launches_dropped is not None:
            return None
        return max(0, state.launches_probed - state.results - self.results_unnamed)

    @property
    def results_unnamed(self) -> int:
        """Results in ``result/`` beyond those that the log names."""
        files = sum(path.is_file() for path in (self.directory / "result").glob("[!.]*.bin*"))
        return max(0, files - self.state.results)

    @property
    def truncated_results(self) -> dict[int, int]:
        """Bytes of the result files that are shorter than when the hook wrote them, by row; of the newest ones only."""
        sizes = {}
        for row in range(max(0, len(self.results) - MAX_CHECKED_RESULTS), len(self.results)):
            path = self.results.path(row)
            try:
                size = None if path is None else path.stat().st_size
            except OSError:
                continue
            if size is not None and size < self.results.size(row):
                sizes[row] = size
        return sizes

    @property
    def damage(self) -> tuple[str, ...]:
        """Files of an ended run that are damaged, in few words each."""
        if self.state.is_running:
            return ()
        results = len(self.truncated_results)
        texts = {
            "run.json is damaged": self.run_json_problem,
            "event.log is truncated": self.log_cut,
            f"{results} result{'s are' if results > 1 else ' is'} truncated": results,
        }
        return tuple(text for text, damaged in texts.items() if damaged)

    def file(self, *names: str) -> Path | None:
        """A file of the trace, if it is there and no link leads out."""
        path = path_in_trace(self.directory, *names)
        return path if path is not None and path.is_file() else None
