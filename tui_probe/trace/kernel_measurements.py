"""Measurements of a kernel with and without the probe: resources by ptxas and the driver, times of its launches."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from tui_probe.trace.gpu_time import gpu_time
from tui_probe.trace.kernel_status import KernelIdentity, KernelStatus

if TYPE_CHECKING:
    from tui_probe.trace.gpu_time import GpuTime, TimeSamples, VariantTime
    from tui_probe.trace.kernel_files import Resources
    from tui_probe.trace.launch_events import Benchmark, FunctionResources
    from tui_probe.trace.long_column import LongColumn


@dataclass(frozen=True, slots=True)
class BenchmarkTimes:
    """Times of a kernel by a benchmark, one number per timed launch: milliseconds, and probed / original time."""

    impacts: array[float] = field(default_factory=lambda: array("d"))
    originals_ms: array[float] = field(default_factory=lambda: array("d"))
    probed_ms: array[float] = field(default_factory=lambda: array("d"))
    prologues_ms: array[float] = field(default_factory=lambda: array("d"))
    epilogues_ms: array[float] = field(default_factory=lambda: array("d"))

    def add(self, event: Benchmark) -> None:
        """Add the times of one launch; values that are not times are left out."""
        for column, value in (
            (self.impacts, event.impact),
            (self.originals_ms, event.original),
            (self.probed_ms, event.kernel),
            (self.prologues_ms, event.prologue),
            (self.epilogues_ms, event.epilogue),
        ):
            if value is not None and 0 < value < float("inf"):
                column.append(value)


class KernelTiming(KernelIdentity):
    """Times of a kernel, by a benchmark or by sampled launches. Its probed launches are those of its probe."""

    __slots__ = ()

    @property
    @abstractmethod
    def times(self) -> BenchmarkTimes:
        """Times by a benchmark."""

    @property
    @abstractmethod
    def samples(self) -> TimeSamples:
        """GPU times of its sampled launches."""

    @property
    @abstractmethod
    def gpu_time(self) -> GpuTime | None:
        """GPU time of all its launches by its samples; None on a simulated GPU."""

    @property
    @abstractmethod
    def launches(self) -> int: ...

    @property
    @abstractmethod
    def result_rows(self) -> LongColumn:
        """Rows of its results in the result table, the oldest first."""

    @property
    @abstractmethod
    def combined_probes(self) -> tuple[str, ...]:
        """Names of the probes that this has together: those of a run with several; none under one probe."""

    @property
    def _probed_time(self) -> GpuTime | None:
        """GPU time with the probed launches of one probe only; None if they are of several probes."""
        if self.probe is None:
            return None if self.combined_probes else self.gpu_time
        if self.gpu_time is None:
            return None
        launches = (self.trace.results.launch(row) for row in self.result_rows)
        numbers = {self.trace.launches[row].number for row in launches if row is not None}
        return gpu_time(self.samples.with_probed(numbers), self.launches)

    @property
    def time_share(self) -> float | None:
        """Share of the GPU time of all timed kernels and graphs, from 0 to 1; None if unknown."""
        time, total = self.gpu_time, self.trace.gpu_ns
        return None if time is None or total <= 0 else time.total_ns / total

    @property
    def slowdown(self) -> float | None:
        """Probed time / original time: the median of a benchmark's pairs, else the ratio of means of sampled launches.

        None on a simulated GPU, and of several probes together.
        """
        benchmark_slowdown = self._benchmark_median(self.times.impacts)
        return (
            benchmark_slowdown
            if benchmark_slowdown is not None or (time := self._probed_time) is None
            else time.slowdown
        )

    @property
    def slowdown_pairs(self) -> int:
        """Pairs of an original and a probed launch that it is the median of; 0 where it is by sampled launches."""
        return len(self.times.impacts)

    @property
    def slowdown_stderr(self) -> float | None:
        """Standard error of the slowdown by sampled launches; None by a benchmark, and if unknown."""
        return None if self.times.impacts or (time := self._probed_time) is None else time.slowdown_stderr

    @property
    def time_ms(self) -> float | None:
        """Median time of the original in milliseconds, by a benchmark, else by sampled launches."""
        benchmark_ms = self._benchmark_median(self.times.originals_ms)
        return (
            benchmark_ms if benchmark_ms is not None or (time := self.gpu_time) is None else _median_ms(time.original)
        )

    @property
    def time_probed_ms(self) -> float | None:
        """Median time of the probed kernel in milliseconds, likewise."""
        benchmark_ms = self._benchmark_median(self.times.probed_ms)
        return (
            benchmark_ms if benchmark_ms is not None or (time := self._probed_time) is None else _median_ms(time.probed)
        )

    def _benchmark_median(self, values: array[float]) -> float | None:
        return median(values) if values and not self.trace.state.simulated else None


def _median_ms(time: VariantTime | None) -> float | None:
    return None if time is None else time.median_ns / 1e6


class KernelResources(KernelStatus):
    """Registers, spills, shared and local memory of a kernel, without and with the probe.

    ``pruned`` is the kernel as ptxas assembled it without the probe.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def driver_original(self) -> FunctionResources | None:
        """Resources of the original function by the driver."""

    @property
    @abstractmethod
    def shared_dynamic(self) -> int | None:
        """Dynamic shared memory of the last launch, in bytes per block."""

    @property
    def registers_pruned(self) -> int | None:
        """Registers per thread before probing: ptxas' number for the pruned kernel, else the driver's (original)."""
        if (resources := self._pruned) is not None:
            return resources.registers
        return None if self.driver_original is None else self.driver_original.registers

    @property
    def registers_probed(self) -> int | None:
        if self.status != "probed":
            return None
        if (resources := self.process_log.probed) is not None:
            return resources.registers
        return None if self.outcome.function is None else self.outcome.function.registers

    @property
    def spills_pruned(self) -> int | None:
        """Spill stores + spill loads before probing, in bytes per thread."""
        return None if (resources := self._pruned) is None else resources.spill_bytes

    @property
    def spills_probed(self) -> int | None:
        resources = self.process_log.probed if self.status == "probed" else None
        return None if resources is None else resources.spill_bytes

    @property
    def static_shared(self) -> int | None:
        """Static shared memory of the original in bytes per block: as the driver says, else ptxas."""
        driver = self.driver_original
        return _static_shared(self._pruned) if driver is None or driver.shared_bytes is None else driver.shared_bytes

    @property
    def static_shared_probed(self) -> int | None:
        """Static shared memory of the probed kernel in bytes; None if unknown."""
        if self.outcome.function is not None and self.outcome.function.shared_bytes is not None:
            return self.outcome.function.shared_bytes
        return _static_shared(self.process_log.probed) if self.status == "probed" else None

    @property
    def shared(self) -> int | None:
        """Shared memory in bytes per block: static and, of the last launch, dynamic."""
        static = self.static_shared
        return None if static is None else static + (self.shared_dynamic or 0)

    @property
    def local_original(self) -> int | None:
        """Local memory of the original in bytes per thread (stack and spills), as the driver says."""
        return None if self.driver_original is None else self.driver_original.local_bytes

    @property
    def local_probed(self) -> int | None:
        return None if self.outcome.function is None else self.outcome.function.local_bytes

    @property
    def blocks_per_sm(self) -> int | None:
        """Resident blocks per SM of the original, by the driver's occupancy calculator at its first block size."""
        return None if self.driver_original is None else self.driver_original.blocks

    @property
    def blocks_per_sm_probed(self) -> int | None:
        return None if self.outcome.function is None else self.outcome.function.blocks

    @property
    def _pruned(self) -> Resources | None:
        return self.process_log.pruned if self.status in ("probed", "failed") else None


def _static_shared(resources: Resources | None) -> int | None:
    return None if resources is None else resources.shared_bytes
