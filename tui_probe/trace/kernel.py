"""A kernel of a trace: what the log tells of it, and what its folder holds."""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Collection
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.errors import TraceError
from tui_probe.trace.demangle import demangle
from tui_probe.trace.kernels import KernelInfo, ProcessLog, Resources, read_grown_log, read_kernel_info
from tui_probe.trace.locate import path_inside
from tui_probe.trace.results import Result, read_result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.reasons import Reason
    from tui_probe.trace.event_types import Benchmark, Dim3, FunctionFigures, Shape
    from tui_probe.trace.run import Run

Status = Literal["pending", "probed", "skipped", "failed", "excluded"]
"""``pending``: being prepared, or the log ends before its fate is known."""


@dataclass(frozen=True, slots=True)
class Times:
    """What a benchmark measured of a kernel, one number per timed launch: milliseconds, and probed / original time."""

    impacts: array[float] = field(default_factory=lambda: array("d"))
    originals_ms: array[float] = field(default_factory=lambda: array("d"))
    probed_ms: array[float] = field(default_factory=lambda: array("d"))
    prologues_ms: array[float] = field(default_factory=lambda: array("d"))
    epilogues_ms: array[float] = field(default_factory=lambda: array("d"))


_NO_TIMES: Final = Times()


@dataclass(slots=True)
class Kernel:
    """One kernel of a trace: what became of it, its launches, and its cost before and after probing."""

    index: int
    name: str
    trace: Run = field(repr=False, compare=False)
    status: Status = "pending"
    stated_reason: Reason | None = None
    launches: int = 0
    launches_probed: int = 0
    shape: Shape | None = None
    """Grid, block and dynamic shared memory of the last launch that has lines of its own in the log."""
    grid_varies: bool = False
    """Whether launches differ in their grid; ``block_varies`` the same for the block."""
    block_varies: bool = False
    driver_original: FunctionFigures | None = None
    """What the driver says of the original function; ``driver_probed`` of the probed one."""
    driver_probed: FunctionFigures | None = None
    probe_bytes: int | None = None
    """Memory of the maps in bytes, of the launch that needed most."""
    folder_name: str | None = None
    rows: array[int] = field(default_factory=lambda: array("I"), repr=False)
    """Rows of its launches in the launch table."""
    result_rows: array[int] = field(default_factory=lambda: array("I"), repr=False)
    _times: Times | None = field(default=None, repr=False)
    _process_log: ProcessLog | None = field(default=None, repr=False)
    _process_log_size: int = field(default=-1, repr=False)

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

    @property
    def folder(self) -> Path | None:
        """Its folder in ``kernel/``, or None if it never reached the engine."""
        path = self._place()
        return Path(path) if path is not None and os.path.isdir(path) else None  # noqa: PTH112 - thousands are asked for

    def _place(self, *names: str) -> str | None:
        """Where its folder, or a file in it, has to be; None if a link leads out of the trace."""
        name = self.folder_name or f"{self.index}_{hashlib.sha1(self.name.encode(), usedforsecurity=False).hexdigest()}"
        return path_inside(self.trace.directory, "kernel", name, *names)

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
    def reason(self) -> str | None:
        """Why it was not probed; of a probed kernel what the engine remarks, None where there is nothing to say."""
        return None if (why := self.why) is None else why.text

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
        return _static(self._pruned) if driver is None or driver.shared is None else driver.shared

    @property
    def static_shared_probed(self) -> int | None:
        """The same of the probed kernel."""
        if self.driver_probed is not None and self.driver_probed.shared is not None:
            return self.driver_probed.shared
        return _static(self.process_log.probed) if self.status == "probed" else None

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
    def times(self) -> Times:
        """What a benchmark measured of it."""
        return self._times or _NO_TIMES

    def add_times(self, event: Benchmark) -> None:
        """Add what was measured of one launch; what is not a time is left out."""
        times = self._times = self._times or Times()
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
    def slowdown(self) -> float | None:
        """Median over its timed launches of probed time / original time; None on a simulated GPU."""
        return self._measured(self.times.impacts)

    @property
    def time_ms(self) -> float | None:
        """Median time of the original in milliseconds."""
        return self._measured(self.times.originals_ms)

    @property
    def time_probed_ms(self) -> float | None:
        """Median time of the probed kernel in milliseconds."""
        return self._measured(self.times.probed_ms)

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


def _static(resources: Resources | None) -> int | None:
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
