"""Kernels as points below the roofline: bytes, operations and times, from any probe.

For each kernel, from any number of traces::

    intensity   = operations / bytes          per byte that was asked for
    roof        = min(peak, bandwidth · intensity)

Operations are those of matrix instructions; of a kernel without such, those on fp32, fp64 and fp16, where a probe
counted them. Bytes are what loads, stores and copies asked for, before any cache: a kernel whose tiles come from caches
can be above the memory roof. Time is that of the kernel without a probe. What limits a kernel,
:mod:`tui_probe.verdicts.utilization` tells. The roofline model: Williams, Waterman, Patterson, CACM 52 (2009), 65-76.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from tui_probe.probekit.measured import analyse_results, probe_measuring_all, probe_option_for
from tui_probe.verdicts.limiter import limiter_from_results, quantity_means
from tui_probe.verdicts.limiter_text import limiter_texts
from tui_probe.verdicts.utilization import peak_rates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tui_probe.bandwidth.rates import Bandwidth
    from tui_probe.probekit.measured import AnalysedResult
    from tui_probe.trace.model import Kernel, Trace
    from tui_probe.verdicts.limiter import NcuBytes
    from tui_probe.verdicts.utilization import LimiterVerdict

_FLOAT_QUANTITIES: Final = ("fp32 operations", "fp64 operations", "fp16 operations")


@dataclass(frozen=True, slots=True)
class Roof:
    """Peak rates of the machine, operations and bytes per second; None where it is not known."""

    peak: float | None
    bandwidth: float | None
    fp32: float | None = None
    """Operations on fp32 that are not matrix instructions."""

    def rate_at(self, intensity: float) -> float | None:
        """The most operations per second at an intensity; None where a limit is not known."""
        if self.peak is None or self.bandwidth is None:
            return None
        return min(self.peak, self.bandwidth * intensity)

    @property
    def ridge(self) -> float | None:
        """The intensity from which on the peak is the limit."""
        return None if self.peak is None or not self.bandwidth else self.peak / self.bandwidth


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """One kernel. Means a launch; None where no trace measured it. ``problem`` says what is missing."""

    name: str
    demangled: str
    size: float | None
    operations: float | None
    seconds: float | None
    problem: str | None
    place: tuple[Path, int] | None = None
    """The trace in which it is first seen, and its index there."""
    verdict: LimiterVerdict | None = None
    words: Sequence[str] = ()
    """The verdict, what led to it, and what to run where something is missing."""
    limit: str | None = None
    """``memory (L2)``, for a column; None if it is not known."""

    @property
    def intensity(self) -> float | None:
        """Operations per byte."""
        return None if not self.size or self.operations is None else self.operations / self.size

    @property
    def operations_per_second(self) -> float | None:
        """Achieved operations per second."""
        return None if self.operations is None or not self.seconds else self.operations / self.seconds

    @property
    def bytes_per_second(self) -> float | None:
        """Requested bytes per second."""
        return None if self.size is None or not self.seconds else self.size / self.seconds

    @property
    def share(self) -> float | None:
        """Utilization of the unit that limits it, or of the busiest one, from 0 to 1."""
        return None if self.verdict is None else self.verdict.share

    def share_of(self, roof: Roof) -> float | None:
        """Achieved, as a share of the roof above it; None without operations."""
        if not self.intensity or self.operations_per_second is None:
            return None
        limit = roof.rate_at(self.intensity)
        return None if not limit else self.operations_per_second / limit


def roofline_points(
    traces: Iterable[Trace],
    bandwidth: Bandwidth | float | None = None,
    counters: Callable[[Kernel], NcuBytes | None] = lambda _: None,
) -> list[RooflinePoint]:
    """One point per kernel that any of the traces has bytes or operations of, in the order in which they first come.

    ``bandwidth`` is what was measured of the machine, ``counters`` what Nsight Compute counted of a kernel.
    """
    by_name: dict[str, list[Kernel]] = {}
    for trace in traces:
        for kernel in trace.kernels:
            by_name.setdefault(kernel.name, []).append(kernel)
    return [
        point
        for kernels in by_name.values()
        if (point := _kernel_point(kernels, bandwidth, counters(kernels[0]))) is not None
    ]


def device_roof(traces: Sequence[Trace], bandwidth: Bandwidth | float | None, peak: float | None) -> Roof:
    """The limits of the first device that the traces report; as measured or given, else by its data sheet."""
    device = next((trace.state.device for trace in traces if trace.state.device), None)
    measurements = None if isinstance(bandwidth, float) else bandwidth
    machine = None if device is None else peak_rates(device, measurements)
    rate = bandwidth if isinstance(bandwidth, float) else None if machine is None else machine.memory
    if machine is None:
        return Roof(peak, rate)
    return Roof(peak or machine.tensor, rate, None if machine.fp32 is None else machine.fp32 * 64)


def _kernel_point(
    kernels: Sequence[Kernel], bandwidth: Bandwidth | float | None, counters: NcuBytes | None
) -> RooflinePoint | None:
    results = list(chain.from_iterable(_unsampled_results(kernel) for kernel in kernels))
    mean_of = quantity_means(results)
    limiter = limiter_from_results(results, kernels, bandwidth, counters)
    bytes_read, bytes_written = mean_of.get("bytes read"), mean_of.get("bytes written")
    sizes = None if bytes_read is None or bytes_written is None else bytes_read + bytes_written
    operations = _operations(mean_of)
    if sizes is None and operations is None and limiter is None:
        return None
    seconds = None if limiter is None else limiter.demand.seconds
    problem = _missing_values(kernels, sizes, operations, seconds)
    first_kernel = kernels[0]
    return RooflinePoint(
        first_kernel.name, first_kernel.demangled, sizes, operations, seconds, problem,
        (first_kernel.trace.directory, first_kernel.index),
        None if limiter is None else limiter.verdict,
        () if limiter is None else limiter_texts(limiter),
        None if limiter is None else limiter.limit,
    )  # fmt: skip


def _operations(quantities: Mapping[str, float]) -> float | None:
    """Return the rates of matrix instructions, where there are any; else of the others, to the extent that they were
    counted.
    """
    tensor = quantities.get("tensor operations")
    if tensor or not any(quantity in quantities for quantity in _FLOAT_QUANTITIES):
        return tensor
    return sum(quantities.get(quantity, 0.0) for quantity in _FLOAT_QUANTITIES)


def _missing_values(
    kernels: Sequence[Kernel], sizes: float | None, operations: float | None, seconds: float | None
) -> str | None:
    common_probe = probe_measuring_all(("bytes read", "tensor operations"))
    bytes_option = probe_option_for("bytes read") if common_probe is None else f"-p {common_probe}"
    operations_option = probe_option_for("tensor operations") if common_probe is None else f"-p {common_probe}"
    lacking = [
        text
        for text, value in (
            (f"bytes ({bytes_option})", sizes),
            (f"operations ({operations_option})", operations),
            ("time (--benchmark)", seconds),
        )
        if value is None
    ]
    problem = f"not measured: {', '.join(lacking)}" if lacking else None
    if any(kernel.grid_varies for kernel in kernels):
        problem = "means over all launches, which differ in grid size" + (f"; {problem}" if problem else "")
    return problem


def _unsampled_results(kernel: Kernel) -> Iterator[AnalysedResult]:
    """The results that can be read and are not of a sample of blocks."""
    results = analyse_results(kernel.trace, kernel)
    return (result for result in results if result.analysis is not None and result.sample is None)
