"""A trace as it is now: its kernels, launches, results and the state of its process.

A :class:`Trace` is filled by :class:`tui_probe.trace.follow.TraceFollower`, once for a finished trace and again and
again for one that is being written. What the trace does not tell is None.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Collection
from dataclasses import dataclass, field
from operator import attrgetter
from stat import S_ISREG
from statistics import median
from typing import TYPE_CHECKING, Literal

from tui_probe.errors import TraceError
from tui_probe.trace.demangle import demangle
from tui_probe.trace.kernels import KernelInfo, ProcessLog, Resources, read_kernel_info, read_process_log
from tui_probe.trace.launches import LaunchTable, ResultTable
from tui_probe.trace.locate import inside
from tui_probe.trace.ranges import RangeTable
from tui_probe.trace.results import Result, read_result

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tui_probe.trace.event_types import Device, Dim3, Shape
    from tui_probe.trace.run_info import RunInfo

Status = Literal["pending", "probed", "skipped", "failed", "filtered"]
"""``pending``: being prepared, or the log ends before its fate is known."""


@dataclass(slots=True)
class Kernel:
    """One kernel of a trace: what became of it, its launches, and its cost before and after probing."""

    index: int
    name: str
    trace: Trace = field(repr=False, compare=False)
    status: Status = "pending"
    stated_reason: str | None = None
    launches: int = 0
    launches_probed: int = 0
    shape: Shape | None = None
    """Grid, block and dynamic shared memory of the last launch."""
    grid_varies: bool = False
    """Whether launches differ in their grid; ``block_varies`` the same for the block."""
    block_varies: bool = False
    driver_original: Resources | None = None
    driver_probed: Resources | None = None
    local_original: int | None = None
    """Local memory of the original in bytes a thread (stack and spills), as the driver says."""
    local_probed: int | None = None
    blocks_per_sm: int | None = None
    """Resident blocks an SM of the original, by the driver's occupancy calculator at its first block size."""
    blocks_per_sm_probed: int | None = None
    probe_bytes: int | None = None
    """Memory of the maps in bytes, of the launch that needed most."""
    folder_name: str | None = None
    rows: array[int] = field(default_factory=lambda: array("I"), repr=False)
    """Rows of its launches in the launch table."""
    result_rows: array[int] = field(default_factory=lambda: array("I"), repr=False)
    impacts: array[float] = field(default_factory=lambda: array("d"), repr=False)
    originals_ms: array[float] = field(default_factory=lambda: array("d"), repr=False)
    probed_ms: array[float] = field(default_factory=lambda: array("d"), repr=False)
    prologues_ms: array[float] = field(default_factory=lambda: array("d"), repr=False)
    epilogues_ms: array[float] = field(default_factory=lambda: array("d"), repr=False)
    _process_log: ProcessLog | None = field(default=None, repr=False)
    _process_log_size: int = field(default=-1, repr=False)

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
        """Bytes a block that the last launch asked for."""
        return None if self.shape is None else self.shape[6]

    @property
    def demangled(self) -> str:
        return demangle(self.name)

    @property
    def folder(self) -> Path | None:
        """Its folder in ``kernel/``, or None if it never reached the engine."""
        path = self._place()
        return path if path is not None and path.is_dir() else None

    def _place(self, *names: str) -> Path | None:
        """Where its folder, or a file in it, has to be; None if a link leads out of the trace."""
        name = self.folder_name or f"{self.index}_{hashlib.sha1(self.name.encode(), usedforsecurity=False).hexdigest()}"
        return inside(self.trace.directory, "kernel", name, *names)

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
        try:
            status = None if path is None else path.stat()
        except OSError:
            status = None
        if path is None or status is None or not S_ISREG(status.st_mode) or status.st_size == self._process_log_size:
            return False
        self._process_log, self._process_log_size = read_process_log(path), status.st_size
        return True

    def file(self, name: str) -> Path | None:
        """A file of its folder, if it is there and no link leads out of the trace."""
        path = self._place(name)
        return path if path is not None and path.is_file() else None

    @property
    def reason(self) -> str | None:
        """Why it was not probed; None for a probed kernel that needs no words."""
        if self.stated_reason is None and self.status == "failed":
            return self.process_log.reason
        return self.stated_reason

    @property
    def registers_pruned(self) -> int | None:
        """Registers a thread before probing: ptxas' number for the pruned kernel, else the driver's (original)."""
        resources = self._pruned or self.driver_original
        return None if resources is None else resources.registers

    @property
    def registers_probed(self) -> int | None:
        resources = self.process_log.probed or self.driver_probed if self.status == "probed" else None
        return None if resources is None else resources.registers

    @property
    def spills_pruned(self) -> int | None:
        """Spill stores + spill loads before probing, in bytes a thread."""
        return None if self._pruned is None else self._pruned.spill_bytes

    @property
    def spills_probed(self) -> int | None:
        probed = self.process_log.probed if self.status == "probed" else None
        return None if probed is None else probed.spill_bytes

    @property
    def shared(self) -> int | None:
        """Shared memory in bytes a block: static (driver, else ptxas) and, of the last launch, dynamic."""
        resources = self.driver_original or self._pruned
        static = None if resources is None else resources.shared_bytes
        return None if static is None else static + (self.shared_dynamic or 0)

    @property
    def slowdown(self) -> float | None:
        """Median over its timed launches of probed time / original time; None on a simulated GPU."""
        return self._measured(self.impacts)

    @property
    def time_ms(self) -> float | None:
        """Median time of the original in milliseconds."""
        return self._measured(self.originals_ms)

    @property
    def time_probed_ms(self) -> float | None:
        """Median time of the probed kernel in milliseconds."""
        return self._measured(self.probed_ms)

    def _measured(self, values: array[float]) -> float | None:
        return median(values) if values and not self.trace.state.simulated else None

    @property
    def results(self) -> list[Path]:
        """Its result files, the oldest first. Names that lead out of the trace are left out."""
        paths = (self.trace.results.path(row) for row in self.result_rows)
        return [path for path in paths if path is not None]

    def read(self, path: Path) -> Result:
        """One of its results; TraceError if the file is not as it should be."""
        info = self.info
        return read_result(path, None if info is None else [each.level for each in info.maps])

    @property
    def _pruned(self) -> Resources | None:
        return self.process_log.pruned if self.status in ("probed", "failed") else None


@dataclass(slots=True)
class State:
    """The process that a trace is of. Times are seconds since 1970."""

    pid: int | None = None
    command: str = ""
    started: float | None = None
    ended: float | None = None
    epoch_ns: int | None = None
    running: bool = False
    exit_status: int | None = None
    signal: int | None = None
    """The signal that ended it; this and ``exit_status`` are None where nobody knows."""
    initialised: bool = False
    kernels: int = 0
    launches: int = 0
    launches_probed: int = 0
    launches_dropped: int | None = None
    """Probed launches whose result was not saved; None until the process ends in an orderly way."""
    dropped_reason: str | None = None
    results: int = 0
    bytes_written: int = 0
    """Bytes of all result files."""
    lines: int = 0
    unknown_lines: int = 0
    troubles: list[str] = field(default_factory=list)
    """What the hook could not do, in its own words; the first hundred."""
    devices: dict[int, Device] = field(default_factory=dict)
    simulated: bool = False
    """Run on the simulated GPU: its clocks and times are those of a model."""
    benchmark: bool = False

    @property
    def device(self) -> Device | None:
        """The first device, or None if the log names none."""
        return next(iter(self.devices.values()), None)


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


class Trace:
    """A trace directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.state = State()
        self.kernels = Kernels()
        self.launches = LaunchTable()
        self.results = ResultTable(directory)
        self.ranges = RangeTable()
        self.run_info: RunInfo | None = None

    @property
    def broke_off(self) -> bool:
        """Has its process ended without the last words of an orderly end, and nobody knows how: killed, or crashed?"""
        state, info = self.state, self.run_info
        told = state.exit_status is not None or state.signal is not None or state.launches_dropped is not None
        return not state.running and not told and info is not None and info.pid is not None

    def file(self, *names: str) -> Path | None:
        """A file of the trace, if it is there and no link leads out."""
        path = inside(self.directory, *names)
        return path if path is not None and path.is_file() else None
