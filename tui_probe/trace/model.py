"""Kernels of a trace, and the trace with its launches, results and process.

A :class:`Trace` is filled by :class:`tui_probe.trace.follow.TraceFollower`, once for a finished trace and again and
again for one that is being written. What the trace does not tell is None.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Collection
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from tui_probe.errors import TraceError
from tui_probe.trace.demangle import demangle
from tui_probe.trace.gpu_time import GpuTime, TimeSamples, VariantTime, gpu_time
from tui_probe.trace.kernel_files import KernelInfo, ProcessLog, Resources, read_grown_log, read_kernel_info
from tui_probe.trace.kernel_status import Status, context_failure, launch_failures
from tui_probe.trace.locate import path_text_in_trace
from tui_probe.trace.long_column import row_numbers
from tui_probe.trace.results import Result, read_result
from tui_probe.trace.run import Run, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.reasons import Reason
    from tui_probe.trace.kernel_status import Probing
    from tui_probe.trace.launch_events import Benchmark, FunctionResources, ProbeMode
    from tui_probe.trace.launch_shape import Dim3, Shape
    from tui_probe.trace.launches import TimeColumns
    from tui_probe.trace.long_column import LongColumn


@dataclass(frozen=True, slots=True)
class BenchmarkTimes:
    """What a benchmark measured of a kernel, one number per timed launch: milliseconds, and probed / original time."""

    impacts: array[float] = field(default_factory=lambda: array("d"))
    originals_ms: array[float] = field(default_factory=lambda: array("d"))
    probed_ms: array[float] = field(default_factory=lambda: array("d"))
    prologues_ms: array[float] = field(default_factory=lambda: array("d"))
    epilogues_ms: array[float] = field(default_factory=lambda: array("d"))


_NO_TIMES: Final = BenchmarkTimes()
_SHARED_FILES: Final = ("original.bin", "original.ptx")
"""Files that are the same for all probes, and in the kernel's own folder."""
_NO_SAMPLES: Final = TimeSamples()


@dataclass(slots=True)
class Kernel:
    """One kernel of a trace: what became of it, its launches, and its cost before and after probing."""

    index: int
    name: str
    trace: Run = field(repr=False, compare=False)
    status: Status = "pending"
    stated_reason: Reason | None = None
    stated_way: ProbeMode | None = None
    launches: int = 0
    launches_probed: int = 0
    captured: int = 0
    """How often it was captured into a graph; these are not launches."""
    launches_in_graphs: int = 0
    """Of them those in replays of CUDA graphs that were not probed: the table of launches does not have them."""
    shape: Shape | None = None
    """Grid, block and dynamic shared memory of the last launch that has lines of its own in the log."""
    grid_varies: bool = False
    """Whether launches differ in their grid; ``block_varies`` the same for the block."""
    block_varies: bool = False
    driver_original: FunctionResources | None = None
    """What the driver says of the original function; ``driver_probed`` of the probed one."""
    driver_probed: FunctionResources | None = None
    probe_bytes: int | None = None
    """Memory of the maps in bytes, of the launch that needed most."""
    device_bytes: int | None = None
    """The same with what else they take on the device, where only memory was computed (``--memusage``)."""
    largest_sized: int | None = None
    """The row of the launch of ``probe_bytes``, where this is the kernel as one of several sized probes had it."""
    launches_refused: int = 0
    """Launches that the driver refused as the program asked for them; ``refused_status`` is its last answer."""
    refused_status: int | None = None
    folder_name: str | None = None
    rows: LongColumn = field(init=False, repr=False)
    """Rows of its launches in the launch table."""
    result_rows: LongColumn = field(init=False, repr=False)
    probings: dict[str, Probing] = field(default_factory=dict, repr=False)
    """What became of it with each probe, where the run had several; in their order."""
    probe: str | None = None
    """This is the kernel as one of several probes had it; see ``with_probe``."""
    _times: BenchmarkTimes | None = field(default=None, repr=False)
    _samples: TimeSamples | None = field(default=None, repr=False)
    _gpu_time: GpuTime | None = field(default=None, repr=False)
    _gpu_time_of: int = field(default=-1, repr=False)
    _process_log: ProcessLog | None = field(default=None, repr=False)
    _process_log_size: int = field(default=-1, repr=False)

    def __post_init__(self) -> None:
        """Older rows go where those of the tables are."""
        self.rows = row_numbers(self.trace.spill)
        self.result_rows = row_numbers(self.trace.spill)

    @property
    def launches_recorded(self) -> int:
        """Launches that the log tells of one by one: their shape, time and what became of them."""
        return len(self.rows)

    @property
    def grid(self) -> Dim3 | None:
        """Of the last launch."""
        return None if self.shape is None else self.shape[:3]

    @property
    def block(self) -> Dim3 | None:
        """Of the last launch, in threads."""
        return None if self.shape is None else self.shape[3:6]

    @property
    def shared_dynamic(self) -> int | None:
        """Bytes per block that the last launch asked for."""
        return None if self.shape is None else self.shape[6]

    @property
    def demangled(self) -> str:
        return demangle(self.name)

    def refuse(self, launches: int, status: int) -> None:
        """Count launches that the driver refused."""
        self.launches_refused += launches
        self.refused_status = status

    @property
    def results_dropped(self) -> int:
        """Probed launches whose result is missing; 0 while the process runs, and where no result is saved."""
        state = self.trace.state
        unsaved = state.launches_dropped is None and self.trace.run_info is not None  # killed, perhaps before any
        if state.running or state.launches_dropped == 0 or not (unsaved or state.launches_dropped or self.result_rows):
            return 0
        return max(0, self.launches_probed - len(self.result_rows))

    @property
    def failures(self) -> tuple[str, ...]:
        """What went wrong with its launches, the worst first."""
        state = self.trace.state
        context = context_failure(state.context_failed, self.index, self.name)
        dropped = launch_failures(
            self.launches_refused, self.refused_status, self.results_dropped, state.dropped_reason
        )
        return (*([context] if context else []), *dropped)

    def with_probe(self, probe: str | None) -> Kernel:
        """The kernel as one of several probes had it, as far as the log tells now: fate, files and results are those
        of this probe. Itself where the run had one probe, or not this one.
        """
        one = None if probe is None else self.probings.get(probe)
        if one is None:
            return self
        kernel = copy(self)
        kernel.probe, kernel.probings = one.probe, {}
        kernel.status, kernel.stated_reason, kernel.driver_probed = one.status, one.reason, one.function
        kernel.result_rows, kernel.launches_probed = one.result_rows, len(one.result_rows)
        if any(other.largest is not None for other in self.probings.values()):
            kernel.probe_bytes, kernel.device_bytes = one.probe_bytes, one.device_bytes
            kernel.largest_sized = one.largest
        kernel._process_log, kernel._process_log_size = None, -1
        return kernel

    def by_probe(self) -> tuple[Kernel, ...]:
        """The kernel as each probe of the run had it, in their order; itself alone where there was one."""
        return tuple(self.with_probe(probe) for probe in self.probings) or (self,)

    @property
    def folder(self) -> Path | None:
        """Its folder in ``kernel/``, or None if it never reached the engine. Where the run had several probes, that of
        this one in it, or of the first that it could have.
        """
        path = self._place()
        return Path(path) if path is not None and os.path.isdir(path) else None  # noqa: PTH112 - thousands are asked for

    def _place(self, *names: str) -> str | None:
        """Where its folder, or a file in it, has to be; None if a link leads out of the trace."""
        name = self.folder_name or f"{self.index}_{hashlib.sha1(self.name.encode(), usedforsecurity=False).hexdigest()}"
        own = () if names and names[0] in _SHARED_FILES else self._own_folder()
        return path_text_in_trace(self.trace.directory, "kernel", name, *own, *names)

    def _own_folder(self) -> tuple[str, ...]:
        """The folder of a probe in the kernel's: of this one, else the first that the kernel could have."""
        if self.probe is not None:
            return (self.probe,)
        probed = (probe for probe, one in self.probings.items() if one.status == "probed")
        return tuple(self.probings) and (next(probed, next(iter(self.probings))),)

    @property
    def info(self) -> KernelInfo | None:
        """``kernel.info``, or None if it is missing or unreadable."""
        path = self.file("kernel.info")
        try:
            return None if path is None else read_kernel_info(path)
        except TraceError:
            return None

    @property
    def process_log(self) -> ProcessLog:
        """ptxas' words as they were read last; see ``refresh``."""
        if self._process_log is None:
            self.refresh()
        return self._process_log or ProcessLog()

    def refresh(self) -> bool:
        """Read ``process.log`` again if it has grown: an assembler may end after the kernel's fate is known."""
        path = self._place("process.log")
        found = None if path is None else read_grown_log(path, self._process_log_size)
        if found is None:
            return False
        self._process_log, self._process_log_size = found
        return True

    def file(self, name: str) -> Path | None:
        """A file of its folder, if it is there and no link leads out of the trace."""
        path = self._place(name)
        return Path(path) if path is not None and os.path.isfile(path) else None  # noqa: PTH113 - as above

    @property
    def way(self) -> ProbeMode | None:
        """How the probe is in it; None where it is not. Logs that do not say it are of the time of PTX alone."""
        return (self.stated_way or "ptx") if self.status == "probed" else None

    @property
    def reason(self) -> str | None:
        """Why it was not probed; of a probed kernel what the engine remarks, None where there is nothing to say."""
        return None if (why := self.why) is None else why.text

    @property
    def matched_nothing(self) -> bool:
        """Whether it was probed, and has none of the instructions or lines that the probe is for."""
        return self.status == "probed" and self.reason_code == "matched-nothing"

    @property
    def reason_code(self) -> str | None:
        """The code of the reason; None where no version known here writes it."""
        return None if (why := self.why) is None else why.code

    @property
    def why(self) -> Reason | None:
        """The reason with its code."""
        if self.stated_reason is None and self.status == "failed":
            return self.process_log.reason
        return self.stated_reason

    @property
    def registers_pruned(self) -> int | None:
        """Registers per thread before probing: ptxas' number for the pruned kernel, else the driver's (original)."""
        if (pruned := self._pruned) is not None:
            return pruned.registers
        return None if self.driver_original is None else self.driver_original.registers

    @property
    def registers_probed(self) -> int | None:
        if self.status != "probed":
            return None
        if (probed := self.process_log.probed) is not None:
            return probed.registers
        return None if self.driver_probed is None else self.driver_probed.registers

    @property
    def spills_pruned(self) -> int | None:
        """Spill stores + spill loads before probing, in bytes per thread."""
        return None if (pruned := self._pruned) is None else pruned.spill_bytes

    @property
    def spills_probed(self) -> int | None:
        probed = self.process_log.probed if self.status == "probed" else None
        return None if probed is None else probed.spill_bytes

    @property
    def static_shared(self) -> int | None:
        """Static shared memory of the original in bytes per block: as the driver says, else ptxas."""
        driver = self.driver_original
        return _static_shared(self._pruned) if driver is None or driver.shared is None else driver.shared

    @property
    def static_shared_probed(self) -> int | None:
        """The same of the probed kernel."""
        if self.driver_probed is not None and self.driver_probed.shared is not None:
            return self.driver_probed.shared
        return _static_shared(self.process_log.probed) if self.status == "probed" else None

    @property
    def shared(self) -> int | None:
        """Shared memory in bytes per block: static and, of the last launch, dynamic."""
        static = self.static_shared
        return None if static is None else static + (self.shared_dynamic or 0)

    @property
    def local_original(self) -> int | None:
        """Local memory of the original in bytes per thread (stack and spills), as the driver says."""
        return None if self.driver_original is None else self.driver_original.local

    @property
    def local_probed(self) -> int | None:
        return None if self.driver_probed is None else self.driver_probed.local

    @property
    def blocks_per_sm(self) -> int | None:
        """Resident blocks per SM of the original, by the driver's occupancy calculator at its first block size."""
        return None if self.driver_original is None else self.driver_original.blocks

    @property
    def blocks_per_sm_probed(self) -> int | None:
        return None if self.driver_probed is None else self.driver_probed.blocks

    @property
    def times(self) -> BenchmarkTimes:
        """What a benchmark measured of it."""
        return self._times or _NO_TIMES

    def add_times(self, event: Benchmark) -> None:
        """Add what was measured of one launch; what is not a time is left out."""
        times = self._times = self._times or BenchmarkTimes()
        for column, value in (
            (times.impacts, event.impact),
            (times.originals_ms, event.original),
            (times.probed_ms, event.kernel),
            (times.prologues_ms, event.prologue),
            (times.epilogues_ms, event.epilogue),
        ):
            if value is not None and 0 < value < float("inf"):
                column.append(value)

    @property
    def samples(self) -> TimeSamples:
        """GPU times of its launches, as far as they were sampled."""
        return self._samples or _NO_SAMPLES

    def add_samples(self, columns: TimeColumns) -> None:
        if self._samples is None:
            self._samples = TimeSamples()
            self.trace.timed.append(self)
        self._samples.extend(columns)
        self.trace.times_told += len(columns)
        self._gpu_time_of = -1

    @property
    def gpu_time(self) -> GpuTime | None:
        """What those tell of all its launches; None on a simulated GPU."""
        if self.trace.state.simulated or self._samples is None:
            return None
        if self._gpu_time_of != self.launches:
            self._gpu_time = gpu_time(self._samples, self.launches)
            self._gpu_time_of = self.launches
        return self._gpu_time

    @property
    def _probed_time(self) -> GpuTime | None:
        """The same, its probed launches those of one probe: None where they were of several."""
        if self.probe is None or self._samples is None or self.trace.state.simulated:
            return None if self.probings else self.gpu_time
        launches = (self.trace.results.launch(row) for row in self.result_rows)
        numbers = {self.trace.launches[row].number for row in launches if row is not None}
        return gpu_time(self._samples.with_probed(numbers), self.launches)

    @property
    def time_share(self) -> float | None:
        """Its part of the GPU time of all timed kernels and graphs, from 0 to 1."""
        time, whole = self.gpu_time, self.trace.gpu_ns
        return None if time is None or whole <= 0 else time.total_ns / whole

    @property
    def slowdown(self) -> float | None:
        """Probed time / original time: the median of a benchmark's pairs, else the ratio of means of sampled launches.

        None on a simulated GPU, and of several probes together.
        """
        measured = self._measured(self.times.impacts)
        return measured if measured is not None or (time := self._probed_time) is None else time.slowdown

    @property
    def slowdown_pairs(self) -> int:
        """Pairs of an original and a probed launch that it is the median of; 0 where it is by sampled launches."""
        return len(self.times.impacts)

    @property
    def slowdown_doubt(self) -> float | None:
        """One standard error of the slowdown by sampled launches; None by a benchmark, and where it is not known."""
        return None if self.times.impacts or (time := self._probed_time) is None else time.slowdown_doubt

    @property
    def time_ms(self) -> float | None:
        """Median time of the original in milliseconds, by a benchmark, else by sampled launches."""
        measured = self._measured(self.times.originals_ms)
        return measured if measured is not None or (time := self.gpu_time) is None else _median_ms(time.original)

    @property
    def time_probed_ms(self) -> float | None:
        """Median time of the probed kernel in milliseconds, likewise."""
        measured = self._measured(self.times.probed_ms)
        return measured if measured is not None or (time := self._probed_time) is None else _median_ms(time.probed)

    def _measured(self, values: array[float]) -> float | None:
        return median(values) if values and not self.trace.state.simulated else None

    @property
    def results(self) -> list[Path]:
        """Its result files, the oldest first. Names that lead out of the trace are left out."""
        paths = (self.trace.results.path(row) for row in self.result_rows)
        return [path for path in paths if path is not None]

    @property
    def newest_result(self) -> int | None:
        """The row of its newest result whose file is there; where none is, that of the newest, None without any."""
        for row in reversed(self.result_rows):
            path = self.trace.results.path(row)
            if path is not None and path.is_file():
                return row
        return self.result_rows[-1] if self.result_rows else None

    def result_files(self) -> int:
        """How many of its result files are there: of a trace that was thinned out not all that its log names."""
        folder = path_text_in_trace(self.trace.directory, "result")
        try:
            there = frozenset() if folder is None else _names_in(folder, os.stat(folder).st_mtime_ns)  # noqa: PTH116
        except OSError:
            return 0
        return sum(self.trace.results.name(row) in there for row in self.result_rows)

    def read(self, path: Path) -> Result:
        """One of its results; TraceError if the file is not as it should be."""
        info = self.info
        return read_result(path, None if info is None else [each.level for each in info.maps])

    @property
    def _pruned(self) -> Resources | None:
        return self.process_log.pruned if self.status in ("probed", "failed") else None


@lru_cache(maxsize=2)
def _names_in(folder: str, changed: int) -> frozenset[str]:
    """The names in a folder, which every kernel of a trace asks for."""
    del changed
    return frozenset(os.listdir(folder))  # noqa: PTH208 - thousands of names


def _median_ms(time: VariantTime | None) -> float | None:
    return None if time is None else time.median_ns / 1e6


def _static_shared(resources: Resources | None) -> int | None:
    return None if resources is None else resources.shared_bytes


class Kernels(Collection[Kernel]):
    """The kernels of a trace, by their index; ``kernels[index]`` finds one."""

    def __init__(self) -> None:
        self._by_index: dict[int, Kernel] = {}

    def __len__(self) -> int:
        return len(self._by_index)

    def __iter__(self) -> Iterator[Kernel]:
        return iter(sorted(self._by_index.values(), key=attrgetter("index")))

    def __contains__(self, kernel: object) -> bool:
        return isinstance(kernel, Kernel) and self.get(kernel.index) is kernel

    def __getitem__(self, index: int) -> Kernel:
        """The kernel of this index; KeyError if the log names none."""
        return self._by_index[index]

    def get(self, index: int) -> Kernel | None:
        return self._by_index.get(index)

    def add(self, kernel: Kernel) -> None:
        self._by_index[kernel.index] = kernel

    def clear(self) -> None:
        self._by_index.clear()


__all__ = ["Kernel", "Kernels", "Run", "State", "Status", "Trace"]


class Trace(Run):
    """A trace directory: a run and its kernels."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.kernels = Kernels()
