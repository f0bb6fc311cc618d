"""Comparison of a program with its baseline: exact counts, and interleaved times.

A count that was the same in both runs of the baseline is exact: any other value is a change. A count that varied
between them (autotuning, alignment) has a range: a value within it is the same, a value beyond it has no verdict.

Times come from blocks of runs in the order ABBA, which cancels a linear drift of clocks. The value of a block is the
logarithm of the ratio of times, B / A. Their mean leaves out the least and the largest of five to nine blocks, so that
one disturbed run decides nothing; its interval is Student's t with the winsorized deviation (Tukey and McLaughlin,
Sankhya A 25, 1963; Wilcox, Introduction to Robust Estimation and Hypothesis Testing, section 4.3). A bootstrap of eight
blocks was several times as wide on an H200: its samples often repeat one block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from tui_probe.draw.view import no_progress
from tui_probe.errors import UsageError, did_you_mean
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.verdicts.finding_summary import worst_line_text
from tui_probe.verdicts.kernel_values import KernelValue, launch_values, probe_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.trace.model import Trace

Verdict = Literal["worse", "better", "same", "changed", "cannot tell"]
Counts = dict[str, dict[str, float]]
"""Counts by the name of a kernel and the key of a metric."""
MIN_BLOCKS: Final = 4
_TRIMMED_SHARE: Final = 0.2
"""Share of the blocks that the mean leaves out at each end."""
_T_99: Final = {
    3: 5.841, 4: 4.604, 5: 4.032, 6: 3.707, 7: 3.499, 8: 3.355, 9: 3.250, 11: 3.106, 14: 2.977, 19: 2.861, 29: 2.756,
}  # fmt: skip
"""Two-sided 99 % points of Student's t by degrees of freedom; between two of them the larger point counts."""
_PTXAS_METRICS: Final = frozenset({"registers", "spills", "occupancy", "blocks_per_sm", "instructions"})
"""Metrics that another version of ptxas changes."""


@dataclass(frozen=True)
class Judgement:
    """The verdict on one metric of a kernel. ``baseline`` is None for a metric that the baseline does not have."""

    kernel: str
    metric: str
    label: str
    baseline: str
    candidate: str
    verdict: Verdict
    reason: str = ""
    place: str = ""
    """The worst line of the kernel, of a metric that is worse."""


@dataclass(frozen=True)
class Clocks:
    """SM clocks (MHz) over the samples of busy GPUs; ``limits`` has the share of the samples of each reason."""

    samples: int
    low: int
    median: float
    high: int
    limits: dict[str, float]

    @property
    def text(self) -> str:
        """``1740 to 1980 MHz, median 1965, SW power cap in 12% of samples``."""
        limits = "".join(f", {name} in {share:.0%} of samples" for name, share in self.limits.items())
        return f"{self.low} to {self.high} MHz, median {self.median:.0f}{limits}"


def kernel_values(trace: Trace) -> dict[str, dict[str, KernelValue]]:
    """Return measured counts by kernel and key, without those of the probe, times, and numbers of launches' shapes."""
    kernels: dict[str, dict[str, KernelValue]] = {}
    for kernel in trace.kernels:
        source = ViewSource(trace, kernel)
        values = kernels.setdefault(kernel.demangled, {})
        for value in (*launch_values(source), *probe_values(source, no_progress, {})):
            if value.value is not None and not value.of_probe and not value.is_time:
                values.setdefault(value.key, value)
    return kernels


def counts_of(values: Mapping[str, Mapping[str, KernelValue]]) -> Counts:
    """Return plain numbers, for a file."""
    return {name: {key: value.value for key, value in of_kernel.items() if value.value is not None}
            for name, of_kernel in values.items()}  # fmt: skip


def judge_counts(
    baseline: Sequence[Counts], trace: Trace, metrics: Sequence[str] = (), *, same_tools: bool = True
) -> Iterator[Judgement]:
    """Judge the counts of a run; ``baseline`` are those of repeated runs, ``metrics`` the keys to judge, () for all.

    Kernels that the options of the run exclude are not judged. Raises UsageError for a metric that no run has.
    """
    kernels = kernel_values(trace)
    _check_metrics(metrics, baseline, kernels)
    excluded = {kernel.demangled for kernel in trace.kernels if kernel.status == "excluded"}
    for name in dict.fromkeys([*(name for counts in baseline for name in counts), *kernels]):
        if name in excluded:
            continue
        baseline_counts = [counts[name] for counts in baseline if name in counts]
        if not baseline_counts or name not in kernels:
            state = ("–", "launched") if not baseline_counts else ("launched", "–")
            yield Judgement(name, "launches", "kernel", *state, "changed", "only one of the runs has this kernel")
            continue
        kernels_of_name = [kernel for kernel in trace.kernels if kernel.demangled == name]
        for key, value in kernels[name].items():
            if metrics and key not in metrics:
                continue
            judgement = _judge(
                name, value, [counts[key] for counts in baseline_counts if key in counts], same_tools=same_tools
            )
            if judgement.verdict == "worse":
                judgement = replace(judgement, place=worst_line_text(kernels_of_name[0]))
            yield judgement
        lost_metrics = {key for counts in baseline_counts for key in counts} - kernels[name].keys()
        if lost_metrics and not any(kernel.launches_saved for kernel in kernels_of_name):
            reason = next(
                (kernel.reason for kernel in kernels_of_name if kernel.reason), "no probed launch has a result"
            )
            yield Judgement(name, "counts", "counts of probes", "measured", "–", "cannot tell", reason)


def _check_metrics(
    metrics: Sequence[str], baseline: Sequence[Counts], kernels: Mapping[str, Mapping[str, KernelValue]]
) -> None:
    """Raise UsageError for a key that neither the baseline nor the run has."""
    known_metrics = [key for counts in (*baseline, kernels) for of_kernel in counts.values() for key in of_kernel]
    for metric in metrics:
        if metric not in known_metrics:
            hint = (
                did_you_mean(metric, dict.fromkeys(known_metrics)) or ": tui-probe gate --format json lists the metrics"
            )
            raise UsageError(f"no kernel has a metric {metric}{hint}")


def _judge(kernel: str, value: KernelValue, baseline: Sequence[float], *, same_tools: bool) -> Judgement:
    """Return the verdict on one count."""
    assert value.value is not None
    baseline_texts, candidate_text = [value.format_value(number) for number in sorted(set(baseline))], value.text
    baseline_text = (
        " to ".join([baseline_texts[0], baseline_texts[-1]] if len(baseline_texts) > 1 else baseline_texts) or "–"
    )

    def judgement(verdict: Verdict, reason: str = "") -> Judgement:
        return Judgement(kernel, value.key, value.label, baseline_text, candidate_text, verdict, reason)

    if not baseline:
        return judgement("cannot tell", "the baseline does not have this metric")
    if min(baseline) <= value.value <= max(baseline):
        return judgement("same")
    if len(set(baseline)) > 1:
        return judgement("cannot tell", "the metric varied between the baseline runs")
    if value.key in _PTXAS_METRICS and not same_tools:
        return judgement("cannot tell", "the baseline comes from another version of ptxas or another GPU")
    if value.better == "neither":
        return judgement("changed")
    return judgement("better" if (value.value < baseline[0]) == (value.better == "lower") else "worse")


@dataclass(frozen=True)
class TimeInterval:
    """The ratio of times B / A: ``low`` to ``high`` at a confidence; ``detectable`` is the least ratio found."""

    ratio: float
    low: float
    high: float
    detectable: float


def time_interval(blocks: Sequence[tuple[float, float]]) -> TimeInterval | None:
    """Return the 99 % interval of the ratio of times from blocks (A, B); None for fewer than ``MIN_BLOCKS``."""
    if len(blocks) < MIN_BLOCKS:
        return None
    logs = np.sort(np.log(np.array([candidate / baseline for baseline, candidate in blocks])))
    trimmed = int(_TRIMMED_SHARE * len(logs))
    kept_logs = logs[trimmed : len(logs) - trimmed]
    deviation = float(np.clip(logs, kept_logs[0], kept_logs[-1]).std(ddof=1))
    freedom = len(kept_logs) - 1
    error = deviation * math.sqrt((len(logs) - 1) / (freedom * len(kept_logs)))
    half_width = _T_99[max(degrees for degrees in _T_99 if degrees <= freedom)] * error
    mean = float(kept_logs.mean())
    return TimeInterval(
        math.exp(mean), math.exp(mean - half_width), math.exp(mean + half_width), math.exp(2 * half_width)
    )


def judge_times(blocks: Mapping[str, Sequence[tuple[float, float]]], tolerance: float) -> Iterator[Judgement]:
    """Judge the times (s) of kernels from blocks (A, B); a difference of ``tolerance``, e.g. 0.01, is none."""
    for kernel, kernel_blocks in blocks.items():
        interval = time_interval(kernel_blocks)
        if interval is None:
            yield Judgement(kernel, "time", "time", "–", "–", "cannot tell", f"fewer than {MIN_BLOCKS} timed blocks")
            continue
        baseline_time = math.exp(float(np.mean(np.log([baseline_time for baseline_time, _ in kernel_blocks]))))
        yield Judgement(
            kernel, "time", "time", f"{baseline_time * 1e6:.4g} µs", f"{baseline_time * interval.ratio * 1e6:.4g} µs",
            time_verdict(interval, tolerance),
            f"{interval.ratio - 1:+.2%} ({interval.low - 1:+.2%} to {interval.high - 1:+.2%}); the smallest"
            f" detectable change is {interval.detectable - 1:.2%}",
        )  # fmt: skip


def time_verdict(interval: TimeInterval, tolerance: float) -> Verdict:
    """Return the verdict for an interval of ratios: a whole interval beyond ``tolerance`` is a change."""
    if interval.low > 1 + tolerance:
        return "worse"
    if interval.high < 1 / (1 + tolerance):
        return "better"
    return "same" if 1 / (1 + tolerance) <= interval.low and interval.high <= 1 + tolerance else "cannot tell"
