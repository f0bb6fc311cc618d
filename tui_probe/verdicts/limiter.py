"""Limiter of a kernel from the results of its probes, and the command that measures what is missing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, islice
from math import prod
from statistics import fmean
from typing import TYPE_CHECKING, Final, cast

from tui_probe.draw.units import NOT_MEASURED
from tui_probe.errors import TraceError
from tui_probe.probe_files.catalogue import set_within
from tui_probe.probekit.measured import analyse_result, known_probe, probe_measuring_all
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.probe_view import latency_question
from tui_probe.probekit.registry import probe_names_where
from tui_probe.probekit.shown_results import joined_sources, read_joined, unjoined_sources
from tui_probe.trace.device_memory import read_launch_memory
from tui_probe.verdicts.limiter_text import SASS_DATA, KernelLimiter, limiter_texts
from tui_probe.verdicts.run_outcome import program_command
from tui_probe.verdicts.static_findings import runs_on_few_sms
from tui_probe.verdicts.utilization import (
    Demand,
    first_known,
    limiter_verdict,
    peak_rates,
    uncounted,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tui_probe.bandwidth.rates import Bandwidth
    from tui_probe.probekit.measured import AnalysedResult
    from tui_probe.probekit.metric import Quantity
    from tui_probe.probekit.probe import LatencyCause
    from tui_probe.trace.model import KernelFacts, Run, Trace
    from tui_probe.verdicts.utilization import LimiterVerdict

RESULTS_AVERAGED: Final = 5
"""Results of a kernel whose mean is taken, of each probe that counts any of it."""
LIMITER_QUANTITIES: Final[tuple[Quantity, ...]] = (
    "sectors", "shared requests", "tensor operations as half", "fp32 instructions", "fp64 instructions", "instructions",
)  # fmt: skip
"""Quantities that one probe must count for a verdict."""
_COUNTED_QUANTITIES: Final[tuple[Quantity, ...]] = (
    *LIMITER_QUANTITIES,
    "bytes read", "bytes written", "load sectors", "store sectors", "tensor operations", "half instructions",
    "fp16 instructions", "bf16 instructions", "memory instructions", "wgmma instructions",
    "footprint", "shared wavefronts",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NcuBytes:
    """Counts by Nsight Compute of a kernel, bytes per launch; None where it was not collected."""

    dram: float | None = None
    l2: float | None = None


def kernel_limiter(kernel: KernelFacts) -> KernelLimiter | None:
    """Return the limiter of a kernel from its newest results; None if counts for a verdict are missing."""
    limiter = limiter_from_results(list(_newest_results(kernel)), [kernel])
    if limiter is None or limiter.verdict.limit not in (None, "latency") or limiter.machine.simulated:
        return limiter
    question = latency_question(kernel)
    if question is None:
        return limiter
    return replace(limiter, next_question=question.key, question_text=f"{question.text} run {question.option}")


def limiter_from_results(
    results: Sequence[AnalysedResult],
    kernels: Sequence[KernelFacts],
    bandwidth: Bandwidth | float | None = None,
    counters: NcuBytes | None = None,
) -> KernelLimiter | None:
    """Return the limiter of same-named kernels, of any traces, from ``results``.

    ``bandwidth`` is that of memory only, or all that was measured. ``counters`` are what ncu counted.
    """
    device = next((kernel.trace.state.device for kernel in kernels if kernel.trace.state.device), None)
    demand = _demand(results, kernels)
    if counters:
        demand = replace(demand, dram=counters.dram, l2=counters.l2)
    if device is None or not _has_counts(demand):
        return None
    demand = replace(demand, reach=_reachable_bytes(kernels[0]))
    simulated = any(kernel.trace.state.simulated for kernel in kernels)
    file = bandwidth if not isinstance(bandwidth, float) else None
    machine = peak_rates(device, file, simulated=simulated)
    if isinstance(bandwidth, float):
        machine = replace(machine, memory=bandwidth)
    verdict = limiter_verdict(demand, machine)
    command, cause = _measuring_command(verdict, kernels[0].trace), ""
    if verdict.limit == "latency":
        cause = next(filter(None, map(latency_cause, kernels)), "")
        command = command or ("" if cause or simulated else _cause_command(kernels[0].trace))
    return KernelLimiter(verdict, demand, machine, command, _instruction_sources(kernels), cause)


def latency_cause(kernel: KernelFacts) -> str:
    """Return the longest wait in the newest results of probes of waits; "" for none."""
    sources = unjoined_sources(ViewSource(cast("Trace", kernel.trace), kernel))
    causes = [cause for source in sources if (cause := _newest_cause(source)) is not None]
    return max(causes, key=lambda cause: cause.share).text if causes else ""


def _newest_cause(source: ViewSource) -> LatencyCause | None:
    cause = known_probe(source.kernel).latency_cause
    if cause is None or not source.kernel.result_rows:
        return None
    try:
        return cause(read_joined(joined_sources(source)).analysis)
    except TraceError:
        return None  # which the findings of the kernel say


def _cause_command(trace: Run) -> str:
    """Return the command of a run that shows what warps wait for; "" without probes that do."""
    name = set_within(probe_names_where(lambda probe: probe.latency_cause))
    return f"tui-probe run -p {name} -- {program_command(trace)}" if name else ""


def _instruction_sources(kernels: Sequence[KernelFacts]) -> tuple[str, ...]:
    """Return the code that the probes of the verdict are in."""
    modes = {
        probed.mode
        for kernel in kernels
        for probed in kernel.by_probe()
        if probed.result_rows and any(metric.quantity in _COUNTED_QUANTITIES for metric in known_probe(probed).metrics)
    }
    return tuple(text for mode, text in (("ptx", "PTX"), ("graft", SASS_DATA)) if mode in modes)


def has_limiter_counts(kernel: KernelFacts) -> bool:
    """Return whether a probe of a kernel counts all quantities of a verdict."""
    probes = (known_probe(probed) for probed in kernel.by_probe() if probed.result_rows)
    return any(set(LIMITER_QUANTITIES) <= {metric.quantity for metric in probe.metrics} for probe in probes)


def limiter_summary(kernel: KernelFacts, limiter: KernelLimiter | None) -> tuple[str, ...]:
    """Return the first lines of the page of a kernel; none for one that was not probed."""
    if limiter is not None:
        return limiter_texts(limiter)
    if runs_on_few_sms(kernel):
        return ("too small: most SMs get no block",)
    probe = probe_measuring_all(LIMITER_QUANTITIES)
    return (f"{NOT_MEASURED} not measured: run with -p {probe}",) if probe and kernel.status == "probed" else ()


def _newest_results(kernel: KernelFacts) -> Iterator[AnalysedResult]:
    for probed_kernel in kernel.by_probe():
        if any(metric.quantity in _COUNTED_QUANTITIES for metric in known_probe(probed_kernel).metrics):
            newest_results = (
                analyse_result(probed_kernel.trace, probed_kernel, row)
                for row in islice(reversed(probed_kernel.result_rows), RESULTS_AVERAGED)
            )
            yield from (result for result in newest_results if result.analysis is not None and result.sample is None)


def _has_counts(demand: Demand) -> bool:
    counts = (demand.size, demand.sectors, demand.tensor, demand.instructions, demand.fp32, demand.dram)
    return any(count is not None for count in counts)


def _demand(results: Sequence[AnalysedResult], kernels: Sequence[KernelFacts]) -> Demand:
    mean_of = quantity_means(results)
    milliseconds = [kernel.time_ms for kernel in kernels if _timed_without_probe(kernel) and kernel.time_ms is not None]
    grids = [kernel.grid for kernel in kernels if kernel.grid is not None and not kernel.grid_varies]
    return Demand(
        seconds=fmean(milliseconds) / 1e3 if milliseconds else None,
        blocks=prod(grids[0]) if grids else None,
        size=_sum_if_known(mean_of, "bytes read", "bytes written"),
        sectors=first_known(mean_of.get("sectors"), _sum_if_known(mean_of, "load sectors", "store sectors")),
        shared=max(
            (mean_of[name] for name in ("shared requests", "shared wavefronts") if name in mean_of), default=None
        ),
        memory=mean_of.get("memory instructions"),
        instructions=mean_of.get("instructions"),
        fp32=mean_of.get("fp32 instructions"),
        fp64=mean_of.get("fp64 instructions"),
        fp16=first_known(
            mean_of.get("half instructions"), _sum_if_known(mean_of, "fp16 instructions", "bf16 instructions")
        ),
        tensor=first_known(mean_of.get("tensor operations as half"), mean_of.get("tensor operations")),
        wgmma=mean_of.get("wgmma instructions"),
        footprint=mean_of.get("footprint"),
    )


def _timed_without_probe(kernel: KernelFacts) -> bool:
    """Return whether its time is that of the kernel without a probe."""
    return bool(kernel.times.originals_ms) or kernel.gpu_time is None or not kernel.gpu_time.only_probed


def quantity_means(results: Iterable[AnalysedResult]) -> dict[str, float]:
    """Return the mean of each quantity over the launches for which it is known."""
    values: dict[str, list[float]] = {}
    for metric_value in chain.from_iterable(result.metric_values for result in results):
        if metric_value.metric.quantity and metric_value.value is not None:
            values.setdefault(metric_value.metric.quantity, []).append(metric_value.value)
    return {quantity: fmean(numbers) for quantity, numbers in values.items()}


def _sum_if_known(demand: Mapping[str, float], *quantities: Quantity) -> float | None:
    known_values = [demand[quantity] for quantity in quantities if quantity in demand]
    return sum(known_values) if len(known_values) == len(quantities) else None


def _reachable_bytes(kernel: KernelFacts) -> float | None:
    """Return the bytes of allocations that parameters of the newest launch with a result point to; None for none."""
    row = kernel.find_newest_result()
    launch_row = None if row is None else kernel.trace.results.launch(row)
    if launch_row is None:
        return None
    try:
        memory = read_launch_memory(kernel.trace, kernel.trace.launches[launch_row])
    except (TraceError, OSError):
        return None
    allocations = {memory.allocation_at(value) for _, value in memory.pointers()} - {None}
    return float(sum(allocation.size for allocation in allocations if allocation is not None)) or None


def _measuring_command(verdict: LimiterVerdict, trace: Run) -> str:
    """Return the command that measures missing values; "" if none are, or a simulated GPU cannot."""
    if not verdict.unknown:
        return ""
    if set(verdict.unknown) == {"bandwidth"}:
        return "tui-probe bandwidth --auto --format json > bw.json, then tui-probe roofline --bandwidth bw.json"
    probe = probe_measuring_all(LIMITER_QUANTITIES)
    if probe is None or (trace.state.simulated and not uncounted(verdict)):
        return ""
    timed = "" if trace.state.simulated or verdict.seconds else " --benchmark --save-results"
    return f"tui-probe run{' --sim' if trace.state.simulated else ''} -p {probe}{timed} -- {program_command(trace)}"
