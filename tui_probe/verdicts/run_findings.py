"""Findings of a whole run: its kernels by share with the limiter of each, and their findings by value."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.printable import shell_word
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import hang_line
from tui_probe.draw.table import safe
from tui_probe.probekit.finding import NO_FINDING
from tui_probe.probekit.measured import analyse_result, known_probe
from tui_probe.verdicts.findings import finding_text
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
from tui_probe.verdicts.limiter import has_limiter_counts, kernel_limiter
from tui_probe.verdicts.limiter_text import limiter_texts
from tui_probe.verdicts.probe_coverage import probe_coverage, unprobed_reason
from tui_probe.verdicts.simulator_findings import faulty_kernels
from tui_probe.verdicts.unmeasured_probes import unmeasured_probes, unmeasured_texts, unused_probes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from tui_probe.probekit.finding import FindingOrder
    from tui_probe.probekit.measured import AnalysedResult
    from tui_probe.probekit.metric import MetricValue
    from tui_probe.trace.model import Kernel, Trace
    from tui_probe.verdicts.limiter_text import KernelLimiter

MAX_KERNELS: Final = 50
"""Kernels whose results are read for a document that is about all kernels."""
_RESULTS_AVERAGED: Final = 5
"""Results of a kernel whose mean is taken."""


@dataclass(frozen=True, slots=True)
class RankedKernels:
    """Kernels with their shares, the largest first. ``of`` is what the shares are of, "" where there are none."""

    of: str
    kernels: list[tuple[Kernel, float | None]]

    def title(self, *, simulated: bool) -> str:
        """Return the words by which every table of them is headed."""
        return sorting_title(self.of, simulated=simulated)


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


def whole_run_record(trace: Trace) -> dict[str, Any]:
    """Return the fields of the document of all kernels that are about the run: its probed share, its findings.

    Reads results.
    """
    coverage = probe_coverage(trace)
    return {"covered": None if coverage is None else coverage.record(), **run_findings(trace).record()}


def notable_findings(trace: Trace, kernel: Kernel, share: float | None) -> list[KernelFinding]:
    """Return the losses of a kernel, then its limiter and what was not measured."""
    findings = kernel_findings(trace, kernel, share)
    about = [noted for noted in findings if noted.finding.key in (LIMITER_KEY, UNMEASURED_KEY, UNPROBED_KEY)]
    return [*losses_of(findings), *about]


def ranked_kernels(trace: Trace, latest: float | None = None) -> RankedKernels:
    """Return the kernels that were timed, else those with results, the largest share first; then others with faults.

    A kernel that a fault ended has no result. Without times shares are of the cycles that a probe counted. Reading
    these ends at ``latest`` (monotonic).
    """
    if any(kernel.time_share is not None for kernel in trace.kernels):
        kernels = [kernel for kernel in trace.kernels if kernel.result_rows or kernel.time_share is not None]
        of, shares = GPU_TIME, [kernel.time_share for kernel in kernels]
    else:
        kernels = [kernel for kernel in trace.kernels if kernel.result_rows]
        of, shares = _shares_of_cycles(kernels, latest)
    faulty, ranked = faulty_kernels(trace), {kernel.index for kernel in kernels}
    others = [(kernel, None) for kernel in trace.kernels if kernel.name in faulty and kernel.index not in ranked]
    return RankedKernels(of, [*_by_share(kernels, shares), *others])


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


_MAX_KERNELS: Final = 20
_NAME_CELLS: Final = 40


@dataclass(frozen=True, slots=True)
class KernelBound:
    """One kernel: its part of all launches together, None where that is not known, and what each probe says of it."""

    kernel: Kernel
    share: float | None
    findings: tuple[KernelFinding, ...]
    """Findings of each probe: the flagged ones, else the first."""
    limited: KernelLimiter | None = None
    """The unit that limits it; None where nothing was counted that tells."""

    def record(self) -> dict[str, Any]:
        """Return the JSON record."""
        return {
            "kernel": self.kernel.index,
            "share": self.share,
            "limited_by": None if self.limited is None else self.limited.record(),
            "findings": [{"probe": of_probe.probe or None, **of_probe.finding.record()} for of_probe in self.findings],
            "not_measured_by": [probe.record() for probe in unmeasured_probes(self.kernel)],
        }


@dataclass(frozen=True, slots=True)
class RunBounds:
    """The kernels of a run, the largest share first. ``of`` is what the shares are of, "" where there are none.

    ``unread`` kernels have results that were not read.
    """

    of: str
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
        for kernel, share in faulty_first[:_MAX_KERNELS]
        if latest is None or time.monotonic() < latest
    ]
    if ranked.of:
        bounds.sort(key=lambda bound: -(bound.share or 0.0))
    else:
        bounds.sort(key=_first_loss_order)
    return RunBounds(ranked.of, bounds, len(ranked.kernels) - len(bounds))


def _first_loss_order(bound: KernelBound) -> FindingOrder:
    return min((loss.order for loss in losses_of(bound.findings)), default=NO_FINDING)


def bounds_section(trace: Trace, run: RunBounds, cells: int) -> list[str]:
    """The section of the report; none where no kernel had several probes, or one that tells what limits it."""
    if not any(kernel.named_probes or has_limiter_counts(kernel) for kernel in trace.kernels):
        return []
    unused = {probe.probe for probe in unused_probes(trace)}  # the head of the report names them
    lines = [line for bound in run.kernels for line in _bound_lines(bound, cells, unused)]
    sources = dict.fromkeys(bound.limited.source for bound in run.kernels if bound.limited is not None)
    lines += [f"limits: {source}" for source in sources if source]
    if run.kernels and not run.of:
        lines.append(f"no shares: {truncated_share_reason(trace) or _no_shares_reason(trace)}")
    elif run.of == GPU_TIME:
        graphs = " and graph replays" if trace.graph_ns else ""
        lines.append(f"shares are relative to the GPU time of all timed kernels{graphs}")
    elif run.of:
        model = " (modeled)" if trace.state.simulated else ""
        lines.append(
            f"shares are relative to the cycles of all launches{model}, estimated from probed launches; only kernels"
            " with results are listed"
        )
    return [*lines, *([f"and {units.counted(run.unread, 'kernel')} more"] if run.unread else [])]


def truncated_share_reason(trace: Trace) -> str:
    """Name the kernels whose launch cycles are missing since a result is truncated; "" for none."""
    cut = trace.truncated_results
    names = [
        f"#{kernel.index} {safe(kernel.demangled)}" for kernel in trace.kernels if _newest_rows(kernel) & cut.keys()
    ]
    if not names:
        return ""
    others = f" and of {units.counted(len(names) - 1, 'other kernel')}" if len(names) > 1 else ""
    return f"the newest result of {shorten(names[0], _NAME_CELLS)}{others} is truncated"


def _newest_rows(kernel: Kernel) -> set[int]:
    return {probed.result_rows[-1] for probed in kernel.by_probe() if probed.result_rows}


def _no_shares_reason(trace: Trace) -> str:
    """Name the option that measures times: a simulated GPU has none, and elsewhere one option disables them."""
    if trace.state.simulated:
        return "the simulated GPU has no times; run with a probe that counts launch cycles"
    untimed = trace.run_info is not None and trace.run_info.options.get("times") is False
    return f"run with a probe that counts launch cycles{', or remove --no-times' if untimed else ''}"


def _bound_lines(bound: KernelBound, cells: int, unused: Collection[str]) -> Iterator[str]:
    kernel = bound.kernel
    share = units.NOT_MEASURED if bound.share is None else f"{bound.share:.0%}"
    head = f"{share:>4}  #{kernel.index} "
    tail = f"  {units.counted(kernel.launches, 'launch')}"
    yield head + shorten(safe(kernel.demangled), cells - len(head) - len(tail)) + tail
    if bound.limited is not None:
        texts = (text for text in limiter_texts(bound.limited) if text != bound.limited.source)
        for place, words in enumerate(texts):
            yield from hang_line(("      limited by: " if not place else "        ") + words, cells)
    if not kernel.result_rows:
        yield from hang_line(f"      no result: {unprobed_reason(kernel)}", cells)
    for finding in (noted.finding for noted in sorted(bound.findings, key=lambda noted: noted.order)):
        if not finding.stands_out and finding.values and not any(finding.numbers.values()):
            continue  # nothing of the kind was executed
        mark = "!" if finding.stands_out else " "
        yield from hang_line(f"    {mark} {finding.label}: {finding_text(kernel, finding)}", cells)
    for words in unmeasured_texts(probe for probe in unmeasured_probes(kernel) if probe.probe not in unused):
        yield from hang_line(f"      {units.NOT_MEASURED} {words}", cells)
