"""Findings of a whole run: its kernels by share with the limiter of each, and their findings by value."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.printable import shell_word
from tui_probe.probekit.finding import NO_FINDING
from tui_probe.probekit.measured import analyse_result, known_probe
from tui_probe.verdicts.kernel_findings import (
    LIMITER_KEY,
    UNMEASURED_KEY,
    UNPROBED_KEY,
    KernelFinding,
    kernel_findings,
    key_findings,
    losses_of,
)
from tui_probe.verdicts.kernel_snapshot import GPU_TIME, LAUNCH_CYCLES, sorting_title
from tui_probe.verdicts.limiter import kernel_limiter
from tui_probe.verdicts.probe_coverage import probe_coverage, unmeasured_probes
from tui_probe.verdicts.simulator_findings import faulty_kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.probekit.finding import FindingOrder
    from tui_probe.probekit.measured import AnalysedResult
    from tui_probe.probekit.metric import MetricValue
    from tui_probe.trace.model import Kernel, Trace
    from tui_probe.verdicts.limiter_text import KernelLimiter

MAX_KERNELS: Final = 50
"""Kernels whose results are read for a document that is about all kernels."""
_MAX_BOUNDS: Final = 20
"""Kernels whose limiters the report names."""
_RESULTS_AVERAGED: Final = 5
"""Results of a kernel whose mean is taken."""


@dataclass(frozen=True, slots=True)
class RankedKernels:
    """Kernels with their shares, the largest first. ``share_of`` is what the shares are of, "" where there are none."""

    share_of: str
    kernels: list[tuple[Kernel, float | None]]

    def title(self, *, simulated: bool) -> str:
        """Return the words by which every table of them is headed."""
        return sorting_title(self.share_of, simulated=simulated)


@dataclass(frozen=True, slots=True)
class RunFindings:
    """The findings of the first kernels; of ``unread`` kernels none was read."""

    trace: Trace
    findings: list[KernelFinding]
    unread: int

    def record(self) -> dict[str, Any]:
        """Return the JSON record."""
        command = f"tui-probe report {shell_word(self.trace.directory)} --page summary --format json"
        omitted = {"kernels": self.unread, "command": command} if self.unread else None
        return {"findings": [finding.record() for finding in self.findings], "findings_omitted": omitted}


def run_findings(trace: Trace, max_kernels: int = MAX_KERNELS) -> RunFindings:
    """Return the losses of the ``max_kernels`` kernels with the largest shares, with the limiter of each and what was
    not measured. Reads their newest results.
    """
    ranked = ranked_kernels(trace).kernels
    ranked_indices = {kernel.index for kernel, _ in ranked}
    kernels = [*ranked, *((kernel, None) for kernel in trace.kernels if kernel.index not in ranked_indices)]
    findings = [
        finding for kernel, share in kernels[:max_kernels] for finding in notable_findings(trace, kernel, share)
    ]
    return RunFindings(
        trace, sorted(findings, key=lambda finding: finding.order), len(kernels) - len(kernels[:max_kernels])
    )


def whole_run_record(trace: Trace) -> dict[str, Any]:
    """Return the fields of the document of all kernels that are about the run: its probed share, its findings.

    Reads results.
    """
    coverage = probe_coverage(trace)
    return {"covered": None if coverage is None else coverage.record(), **run_findings(trace).record()}


def notable_findings(trace: Trace, kernel: Kernel, share: float | None) -> list[KernelFinding]:
    """Return the losses of a kernel, then its limiter and what was not measured."""
    findings = kernel_findings(trace, kernel, share)
    verdicts = [noted for noted in findings if noted.finding.key in (LIMITER_KEY, UNMEASURED_KEY, UNPROBED_KEY)]
    return [*losses_of(findings), *verdicts]


def ranked_kernels(trace: Trace, latest: float | None = None) -> RankedKernels:
    """Return the kernels that were timed, else those with results, the largest share first; then others with faults.

    A kernel that a fault ended has no result. Without times shares are of the cycles that a probe counted. Reading
    these ends at ``latest`` (monotonic).
    """
    if any(kernel.time_share is not None for kernel in trace.kernels):
        kernels = [kernel for kernel in trace.kernels if kernel.result_rows or kernel.time_share is not None]
        basis, shares = GPU_TIME, [kernel.time_share for kernel in kernels]
    else:
        kernels = [kernel for kernel in trace.kernels if kernel.result_rows]
        basis, shares = _shares_of_cycles(kernels, latest)
    faulty, ranked = faulty_kernels(trace), {kernel.index for kernel in kernels}
    faulty_only = [(kernel, None) for kernel in trace.kernels if kernel.name in faulty and kernel.index not in ranked]
    return RankedKernels(basis, [*_by_share(kernels, shares), *faulty_only])


def cycle_shares(trace: Trace) -> dict[int, float]:
    """Return shares of the cycles of all launches, from 0 to 1 by kernel index; empty where launches were timed, or
    where kernels are too many to read. Reads results.
    """
    if trace.gpu_ns > 0 or len(trace.kernels) > MAX_KERNELS:
        return {}
    return {kernel.index: share for kernel, share in ranked_kernels(trace).kernels if share is not None}


def many_ranked_kernels(trace: Trace) -> RankedKernels:
    """Return the kernels of a trace with very many: no result is read, and no standard error computed.

    Shares are of the GPU time of timed kernels, by the mean of all samples of each. Without times there are no shares,
    and the kernels with most launches come first.
    """
    timed = [] if trace.state.simulated else [kernel for kernel in trace.kernels if len(kernel.samples)]
    if not timed:
        by_launches = sorted(trace.kernels, key=lambda kernel: -kernel.launches)
        return RankedKernels("", [(kernel, None) for kernel in by_launches])
    totals = [kernel.samples.mean_ns * kernel.launches for kernel in timed]
    total_time = sum(totals) or 1.0
    shares = [total / total_time for total in totals]
    return RankedKernels(GPU_TIME, _by_share(timed, shares))


def _by_share(kernels: Sequence[Kernel], shares: Sequence[float | None]) -> list[tuple[Kernel, float | None]]:
    return sorted(zip(kernels, shares, strict=True), key=lambda pair: -(pair[1] or 0.0))


def _shares_of_cycles(kernels: Sequence[Kernel], latest: float | None) -> tuple[str, list[float | None]]:
    """Shares of cycles; none where not all kernels have some, or reading them takes until after ``latest``."""
    totals: list[float] = []
    for kernel in kernels:
        cycles = mean_cycles(kernel) if latest is None or time.monotonic() < latest else None
        if cycles is None:
            return "", [None] * len(kernels)
        totals.append(cycles * kernel.launches)
    if not sum(totals):
        return "", [None] * len(kernels)
    return LAUNCH_CYCLES, [total / sum(totals) for total in totals]


def mean_cycles(kernel: Kernel) -> float | None:
    """Return the mean cycles of its newest launches, where one of its probes counts them in all blocks."""
    for probed_kernel in kernel.by_probe():
        if any(metric.quantity == LAUNCH_CYCLES for metric in known_probe(probed_kernel).metrics):
            newest_results = (
                analyse_result(probed_kernel.trace, probed_kernel, row)
                for row in islice(reversed(probed_kernel.result_rows), _RESULTS_AVERAGED)
            )
            values = (value for result in newest_results for value in _unsampled_values(result))
            cycles = [value.value for value in values if value.metric.quantity == LAUNCH_CYCLES]
            known_cycles = [value for value in cycles if value is not None]
            if known_cycles:
                return fmean(known_cycles)
    return None


def _unsampled_values(result: AnalysedResult) -> tuple[MetricValue, ...]:
    """Return the values of a result; none for a sample of blocks, whose cycles are not those of a launch."""
    return () if result.sample is not None else result.metric_values


@dataclass(frozen=True, slots=True)
class KernelBound:
    """One kernel: its part of all launches together, None where that is not known, and what each probe says of it."""

    kernel: Kernel
    share: float | None
    findings: tuple[KernelFinding, ...]
    """Findings of each probe: the flagged ones, else the first."""
    limiter: KernelLimiter | None = None
    """The unit that limits it; None where nothing was counted that tells."""

    def record(self) -> dict[str, Any]:
        """Return the JSON record."""
        return {
            "kernel": self.kernel.index,
            "share": self.share,
            "limited_by": None if self.limiter is None else self.limiter.record(),
            "findings": [{"probe": of_probe.probe or None, **of_probe.finding.record()} for of_probe in self.findings],
            "not_measured_by": [probe.record() for probe in unmeasured_probes(self.kernel)],
        }


@dataclass(frozen=True, slots=True)
class RunBounds:
    """The kernels of a run, the largest share first. ``share_of`` is what the shares are of, "" where there are none.

    ``unread`` kernels have results that were not read.
    """

    share_of: str
    kernels: list[KernelBound]
    unread: int = 0


def kernel_bounds(trace: Trace, seconds: float | None = None) -> RunBounds:
    """The kernels that were timed, else those with results, and those whose grid or registers stand out.

    Without times shares are of the cycles that a probe counted. Reading ends after that many ``seconds``.
    """
    latest = None if seconds is None else time.monotonic() + seconds
    ranked = ranked_kernels(trace, latest)
    faulty = faulty_kernels(trace)
    faulty_first = sorted(ranked.kernels, key=lambda pair: pair[0].name not in faulty)
    bounds = [
        KernelBound(kernel, share, key_findings(trace, kernel, share), kernel_limiter(kernel))
        for kernel, share in faulty_first[:_MAX_BOUNDS]
        if latest is None or time.monotonic() < latest
    ]
    if ranked.share_of:
        bounds.sort(key=lambda bound: -(bound.share or 0.0))
    else:
        bounds.sort(key=_first_loss_order)
    return RunBounds(ranked.share_of, bounds, len(ranked.kernels) - len(bounds))


def _first_loss_order(bound: KernelBound) -> FindingOrder:
    return min((loss.order for loss in losses_of(bound.findings)), default=NO_FINDING)
