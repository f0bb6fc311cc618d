"""Findings of a whole run: its kernels by share, and of each what is worth saying, the most valuable first."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.shell import shell_word
from tui_probe.probekit.measured import analyse_result, known_probe
from tui_probe.verdicts.kernel_findings import (
    LIMITER_KEY,
    UNMEASURED_KEY,
    UNPROBED_KEY,
    KernelFinding,
    kernel_findings,
    losses_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.probekit.measured import AnalysedResult
    from tui_probe.probekit.metric import MetricValue
    from tui_probe.trace.model import Kernel, Trace

GPU_TIME: Final = "GPU time"
LAUNCH_CYCLES: Final = "launch cycles"
MAX_KERNELS: Final = 50
"""Kernels whose results are read for a document that is about all kernels."""
_RESULTS_AVERAGED: Final = 5
"""Results of a kernel whose mean is taken."""


@dataclass(frozen=True, slots=True)
class RankedKernels:
    """Kernels with their shares, the largest first. ``of`` is what the shares are of, "" where there are none."""

    of: str
    kernels: list[tuple[Kernel, float | None]]


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


def run_findings(trace: Trace, most: int = MAX_KERNELS) -> RunFindings:
    """Return the losses of the ``most`` kernels with the largest shares, with the limiter of each and what was not
    measured. Reads their newest results.
    """
    ranked = ranked_kernels(trace).kernels
    known = {kernel.index for kernel, _ in ranked}
    kernels = [*ranked, *((kernel, None) for kernel in trace.kernels if kernel.index not in known)]
    findings = [finding for kernel, share in kernels[:most] for finding in notable_findings(trace, kernel, share)]
    return RunFindings(trace, sorted(findings, key=lambda finding: finding.order), len(kernels) - len(kernels[:most]))


def notable_findings(trace: Trace, kernel: Kernel, share: float | None) -> list[KernelFinding]:
    """Return the losses of a kernel, then its limiter and what was not measured."""
    findings = kernel_findings(trace, kernel, share)
    about = [noted for noted in findings if noted.finding.key in (LIMITER_KEY, UNMEASURED_KEY, UNPROBED_KEY)]
    return [*losses_of(findings), *about]


def ranked_kernels(trace: Trace, latest: float | None = None) -> RankedKernels:
    """Return the kernels that were timed, else those with results, the largest share first.

    Without times shares are of the cycles that a probe counted. Reading these ends at ``latest`` (monotonic).
    """
    if any(kernel.time_share is not None for kernel in trace.kernels):
        kernels = [kernel for kernel in trace.kernels if kernel.result_rows or kernel.time_share is not None]
        of, shares = GPU_TIME, [kernel.time_share for kernel in kernels]
    else:
        kernels = [kernel for kernel in trace.kernels if kernel.result_rows]
        of, shares = _shares_of_cycles(kernels, latest)
    return RankedKernels(of, _by_share(kernels, shares))


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
        cycles = _mean_cycles(kernel) if latest is None or time.monotonic() < latest else None
        if cycles is None:
            return "", [None] * len(kernels)
        totals.append(cycles * kernel.launches)
    if not sum(totals):
        return "", [None] * len(kernels)
    return LAUNCH_CYCLES, [total / sum(totals) for total in totals]


def _mean_cycles(kernel: Kernel) -> float | None:
    """The mean cycles of its newest launches, where one of its probes counts them in all blocks."""
    for probed in kernel.by_probe():
        if any(metric.quantity == LAUNCH_CYCLES for metric in known_probe(probed).metrics):
            newest = (
                analyse_result(probed.trace, probed, row)
                for row in islice(reversed(probed.result_rows), _RESULTS_AVERAGED)
            )
            values = [
                f.value for result in newest for f in _unsampled_values(result) if f.metric.quantity == LAUNCH_CYCLES
            ]
            known = [value for value in values if value is not None]
            if known:
                return fmean(known)
    return None


def _unsampled_values(result: AnalysedResult) -> tuple[MetricValue, ...]:
    """Return the values of a result; none for a sample of blocks, whose cycles are not those of a launch."""
    return () if result.sample is not None else result.metric_values
