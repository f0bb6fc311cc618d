"""Kernels of a trace, each under its probes, and the trace with its launches, results and process.

A :class:`Trace` is filled by :class:`tui_probe.trace.follow.TraceFollower`, once for a finished trace and again and
again for one that is being written. Values that the trace does not have are None.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.errors import TraceError
from tui_probe.trace.gpu_time import GpuTime, TimeSamples, gpu_time
from tui_probe.trace.kernel_files import KernelInfo, read_kernel_info
from tui_probe.trace.kernel_measurements import BenchmarkTimes, KernelResources, KernelTiming
from tui_probe.trace.kernel_status import ProbeOutcome, Status, context_failure, launch_failures
from tui_probe.trace.locate import path_text_in_trace
from tui_probe.trace.long_column import row_numbers
from tui_probe.trace.results import Result, read_result
from tui_probe.trace.run import Run, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.reasons import Reason
    from tui_probe.trace.launch_events import Benchmark, FunctionResources, ProbeMode, ProbesFused
    from tui_probe.trace.launch_shape import Dim3, Shape
    from tui_probe.trace.launches import TimeColumns
    from tui_probe.trace.long_column import LongColumn

__all__ = ["Kernel", "Kernels", "Run", "State", "Status", "Trace"]

_NO_TIMES: Final = BenchmarkTimes()
_NO_SAMPLES: Final = TimeSamples()
_MAX_PROBES: Final = 64
"""Probes of a kernel that are read: a damaged log may name any number."""


@lru_cache(maxsize=4096)
def _kernel_info(directory: Path, path_names: tuple[str, ...], *_: int) -> KernelInfo | None:
    """Read ``kernel.info`` of a trace once per state of the file; None if it is unreadable or outside of the trace."""
    path = path_text_in_trace(directory, *path_names)
    try:
        return None if path is None else read_kernel_info(Path(path))
    except TraceError:
        return None


class KernelFacts(KernelResources, KernelTiming):
    """A kernel with all its probes (:class:`Kernel`), or under one of them (:class:`ProbedKernel`)."""

    __slots__ = ()

    @property
    @abstractmethod
    def kernel(self) -> Kernel:
        """The kernel with all its probes, which has what they share."""

    @abstractmethod
    def by_probe(self) -> tuple[ProbedKernel, ...]:
        """The kernel under each of its probes, in the order of the run."""

    def kernel_of_result(self, row: int) -> ProbedKernel:
        """The kernel under the probe that made the result in a row of the result table."""
        probed_kernel = self.kernel.named_probes.get(self.trace.results.probe(row) or "")
        return ProbedKernel(self.kernel, self.kernel.outcome) if probed_kernel is None else probed_kernel

    @property
    def probe_folder(self) -> str | None:
        probed_kernels = self.kernel.named_probes
        inserted = (name for name, under_probe in probed_kernels.items() if under_probe.status == "probed")
        return self.probe or next(inserted, next(iter(probed_kernels), None))

    def read_info(self) -> KernelInfo | None:
        """Read ``kernel.info``; None if it is missing or unreadable. A report asks a hundred times per kernel."""
        directory, path_names = self.trace.directory, self._path_names("kernel.info")
        try:
            status = os.stat("/".join((str(directory), *path_names)))  # noqa: PTH116 - as long as a Path takes to make
        except (OSError, ValueError):
            return None
        return _kernel_info(directory, path_names, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    @property
    def combined_probes(self) -> tuple[str, ...]:
        return tuple(self.kernel.named_probes) if self.probe is None else ()

    @property
    def index(self) -> int:
        return self.kernel.index

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def trace(self) -> Run:
        return self.kernel.trace

    @property
    def folder_name(self) -> str | None:
        return self.kernel.folder_name

    @property
    def stated_mode(self) -> ProbeMode | None:
        return self.kernel.stated_mode

    @property
    def driver_original(self) -> FunctionResources | None:
        return self.kernel.driver_original

    @property
    def times(self) -> BenchmarkTimes:
        return self.kernel.times

    @property
    def samples(self) -> TimeSamples:
        return self.kernel.samples

    @property
    def gpu_time(self) -> GpuTime | None:
        return self.kernel.gpu_time

    @property
    def launches(self) -> int:
        return self.kernel.launches

    @property
    def launches_probed(self) -> int:
        """Number of probed launches that succeeded; under one of several probes, only those with a result."""
        return self.kernel.launches_probed if self.probe is None else len(self.result_rows)

    @property
    def rows(self) -> LongColumn:
        """Rows of its launches in the launch table."""
        return self.kernel.rows

    @property
    def launches_recorded(self) -> int:
        """Launches with lines of their own in the log."""
        return len(self.rows)

    @property
    def grid_varies(self) -> bool:
        """True if launches differ in their grid."""
        return self.kernel.grid_varies

    @property
    def block_varies(self) -> bool:
        """True if launches differ in their block."""
        return self.kernel.block_varies

    @property
    def shape(self) -> Shape | None:
        """Grid, block and dynamic shared memory of the last launch that has lines of its own in the log."""
        return self.kernel.shape

    @property
    def grid(self) -> Dim3 | None:
        """Grid of the last launch, in blocks."""
        return None if self.shape is None else self.shape[:3]

    @property
    def block(self) -> Dim3 | None:
        """Block of the last launch, in threads."""
        return None if self.shape is None else self.shape[3:6]

    @property
    def shared_dynamic(self) -> int | None:
        return None if self.shape is None else self.shape[6]

    @property
    def probe_bytes(self) -> int | None:
        """Memory of the maps in bytes, of the launch that needed most."""
        return self._sized_outcome.probe_bytes

    @property
    def device_bytes(self) -> int | None:
        """Device memory that recording takes, if the run only computed memory (``--memusage``)."""
        return self._sized_outcome.device_bytes

    @property
    def largest_sized_row(self) -> int | None:
        """Row of the launch that ``probe_bytes`` belongs to, where several probes were sized."""
        return self._sized_outcome.largest_row

    @property
    def _sized_outcome(self) -> ProbeOutcome:
        """Outcome with the sizes: of the probe if the run sized several (``--memusage``), else of the kernel."""
        by_probe = any(
            probed_kernel.outcome.largest_row is not None for probed_kernel in self.kernel.named_probes.values()
        )
        return self.outcome if by_probe else self.kernel.outcome

    @property
    def result_rows(self) -> LongColumn:
        return self.outcome.result_rows

    @property
    def launches_saved(self) -> int:
        """Launches with a result."""
        return len(self.result_rows) - (self.kernel.extra_results if self.probe is None else 0)

    @property
    def results(self) -> list[Path]:
        """Paths of the kernel's result files, the oldest first. Names that lead out of the trace are left out."""
        paths = (self.trace.results.path(row) for row in self.result_rows)
        return [path for path in paths if path is not None]

    def find_newest_result(self) -> int | None:
        """Return the row of the newest result whose file exists; if no file does, the newest row, None without any."""
        for row in reversed(self.result_rows):
            path = self.trace.results.path(row)
            if path is not None and path.is_file():
                return row
        return self.result_rows[-1] if self.result_rows else None

    def result_files(self) -> int:
        """Return the number of result files that exist: a log also names files that were deleted from the trace."""
        folder = path_text_in_trace(self.trace.directory, "result")
        try:
            file_names = frozenset() if folder is None else _names_in(folder, os.stat(folder).st_mtime_ns)  # noqa: PTH116
        except OSError:
            return 0
        return sum(self.trace.results.name(row) in file_names for row in self.result_rows)

    def read_result_file(self, path: Path) -> Result:
        """Read one of the kernel's results. Raises TraceError if the file is damaged."""
        info = self.read_info()
        result = read_result(path, None if info is None else [map_info.level for map_info in info.maps])
        if info is None or not info.is_resident or result.sample is None:
            return result
        return replace(result, sample=replace(result.sample, resident=True))

    @property
    def results_dropped(self) -> int:
        """Probed launches whose result is missing; 0 while the process runs, and where no result is saved."""
        state = self.trace.state
        unsaved = state.launches_dropped is None and self.trace.run_info is not None  # killed, perhaps before any
        if (
            state.is_running
            or state.launches_dropped == 0
            or not (unsaved or state.launches_dropped or self.result_rows)
        ):
            return 0
        return max(0, self.launches_probed - self.launches_saved)

    @property
    def failures(self) -> tuple[str, ...]:
        """Failures of its launches, the worst first."""
        state = self.trace.state
        context = context_failure(state.context_failed, self.index, self.name)
        messages = launch_failures(
            self.kernel.launches_refused, self.kernel.refused_status, self.results_dropped, state.dropped_reason
        )
        return (*([context] if context else []), *messages)


@dataclass(frozen=True, slots=True, eq=False)
class ProbedKernel(KernelFacts):
    """One kernel under one probe of the run: mode, status, reason, resources, results and probed launches."""

    # The base class has properties of these names. Without field() dataclass would take them as default values.
    kernel: Kernel = field()
    outcome: ProbeOutcome = field()
    probe: str | None = None

    def by_probe(self) -> tuple[ProbedKernel, ...]:
        return (self,)

    @property
    def times(self) -> BenchmarkTimes:
        return self.kernel.times if self.probe is None else self.kernel.times_by_probe.get(self.probe, _NO_TIMES)

    @property
    def alternation_reason(self) -> Reason | None:
        """Reason why the counting probe is not fused with the others of the run for this kernel."""
        fused = self.kernel.fused
        return fused.reason if fused is not None and self.probe in fused.probes else None


@dataclass(slots=True)
class Kernel(KernelFacts):
    """One kernel of a trace with all its probes: its launches, times, and the resources of the original."""

    # The base class has properties of these names. Without field() dataclass would take them as default values.
    index: int = field()
    name: str = field()
    trace: Run = field(repr=False, compare=False)
    outcome: ProbeOutcome = field(init=False, repr=False)
    """State by the kernel's own lines: of its probe, or of all probes together."""
    stated_mode: ProbeMode | None = None
    launches: int = 0
    launches_probed: int = 0
    captures: int = 0
    """Captures of the kernel into graphs; these are not launches."""
    launches_in_graphs: int = 0
    """Launches in replays of CUDA graphs that were not probed: the table of launches does not have them."""
    shape: Shape | None = None
    grid_varies: bool = False
    block_varies: bool = False
    driver_original: FunctionResources | None = None
    """Resources of the original function by the driver."""
    launches_refused: int = 0
    """Launches that the driver refused with the program's own arguments; ``refused_status`` is its last error."""
    refused_status: int | None = None
    folder_name: str | None = None
    extra_results: int = 0
    """Results of launches that also have one of another probe."""
    fused: ProbesFused | None = None
    """Combination of the counting probes: fused, or one at a time for a reason; None: the log does not say."""
    replay_obstacle: Reason | None = None
    """Reason why a launch was not repeated for its other probes (``run --replay``)."""
    rows: LongColumn = field(init=False, repr=False)
    named_probes: dict[str, ProbedKernel] = field(default_factory=dict, repr=False, compare=False)
    """The kernel under each probe by name, in their order, where the run had several; else none."""
    times_by_probe: dict[str, BenchmarkTimes] = field(default_factory=dict, repr=False, compare=False)
    """Times by a benchmark of several probes."""
    _times: BenchmarkTimes | None = field(default=None, repr=False)
    _samples: TimeSamples | None = field(default=None, repr=False)
    _gpu_time: GpuTime | None = field(default=None, repr=False)
    _gpu_time_launches: int = field(default=-1, repr=False)
    """Launch count that ``_gpu_time`` was computed for."""

    def __post_init__(self) -> None:
        """Create the row columns; old rows spill to the files of the trace's tables."""
        self.rows = row_numbers(self.trace.spill)
        self.outcome = ProbeOutcome(row_numbers(self.trace.spill))

    @property
    def kernel(self) -> Kernel:
        return self

    @property
    def probe(self) -> None:
        return None

    def by_probe(self) -> tuple[ProbedKernel, ...]:
        return tuple(self.named_probes.values()) or (ProbedKernel(self, self.outcome),)

    def add_probe(self, probe: str) -> ProbedKernel | None:
        """Return the kernel under a probe of a run with several, added if it is new; None beyond ``_MAX_PROBES``."""
        if probe not in self.named_probes and len(self.named_probes) < _MAX_PROBES:
            self.named_probes[probe] = ProbedKernel(self, ProbeOutcome(row_numbers(self.trace.spill)), probe)
        return self.named_probes.get(probe)

    def add_refused(self, launches: int, status: int) -> None:
        """Count launches that the driver refused."""
        self.launches_refused += launches
        self.refused_status = status

    @property
    def times(self) -> BenchmarkTimes:
        return self._times or _NO_TIMES

    def add_times(self, event: Benchmark) -> None:
        """Add the times of one launch by a benchmark; of several probes, those of the original only."""
        self._times = self._times or BenchmarkTimes()
        if event.probe is not None and self.add_probe(event.probe) is not None:
            self.times_by_probe.setdefault(event.probe, BenchmarkTimes()).add(event)
            event = replace(event, prologue=None, kernel=None, epilogue=None, impact=None)
        self._times.add(event)

    @property
    def samples(self) -> TimeSamples:
        return self._samples or _NO_SAMPLES

    def add_samples(self, columns: TimeColumns) -> None:
        if self._samples is None:
            self._samples = TimeSamples()
            self.trace.timed_kernels.append(self)
        self._samples.extend(columns)
        self.trace.times_logged += len(columns)
        self._gpu_time_launches = -1

    @property
    def gpu_time(self) -> GpuTime | None:
        if self.trace.state.simulated or self._samples is None:
            return None
        if self._gpu_time_launches != self.launches:
            self._gpu_time = gpu_time(self._samples, self.launches)
            self._gpu_time_launches = self.launches
        return self._gpu_time


@lru_cache(maxsize=2)
def _names_in(folder: str, mtime_ns: int) -> frozenset[str]:
    """Return the names in a directory, for every kernel of a trace. ``mtime_ns`` invalidates the cache."""
    del mtime_ns
    return frozenset(os.listdir(folder))  # noqa: PTH208 - thousands of names


class Kernels(Collection[Kernel]):
    """Kernels of a trace by index; ``kernels[index]`` returns one."""

    def __init__(self) -> None:
        self._by_index: dict[int, Kernel] = {}

    def __len__(self) -> int:
        return len(self._by_index)

    def __iter__(self) -> Iterator[Kernel]:
        return iter(sorted(self._by_index.values(), key=attrgetter("index")))

    def __contains__(self, kernel: object) -> bool:
        return isinstance(kernel, Kernel) and self.get(kernel.index) is kernel

    def __getitem__(self, index: int) -> Kernel:
        """Return the kernel of this index. Raises KeyError if the log names none."""
        return self._by_index[index]

    def get(self, index: int) -> Kernel | None:
        return self._by_index.get(index)

    def add(self, kernel: Kernel) -> None:
        self._by_index[kernel.index] = kernel

    def clear(self) -> None:
        self._by_index.clear()


class Trace(Run):
    """A trace directory: a run and its kernels."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.kernels = Kernels()
