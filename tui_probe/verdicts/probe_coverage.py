"""Coverage of a run by its probes: the probed share, and why kernels ran unprobed or probes have no result.

Absence must not read as 0: what left no result is named with the reason, and with advice where there is some.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from math import floor
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.reasons import Reason, advice_on, listed_reasons

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tui_probe.trace.model import Kernel, KernelFacts, ProbedKernel, Run, Trace

_MAX_REASONS: Final = 3
"""Reasons that the sentence names."""
_OF_LIBRARY: Final = "of "
"""Begins the reason of a closed library: it follows the number of kernels without parentheses."""
_CLOSED_LIBRARY: Final = "closed-library"
_CLOSED_ADVICE: Final = "probe with --machine-code all"
_LIBRARIES: Final = {
    "cublas": "cuBLAS", "nvjet_": "cuBLAS", "cudnn": "cuDNN", "cusparse": "cuSPARSE", "cufft": "cuFFT",
    "cusolver": "cuSOLVER", "curand": "cuRAND", "cutensor": "cuTENSOR", "nvshmem": "NVSHMEM", "nvjpeg": "nvJPEG",
    "npp": "NPP", "nvinfer": "TensorRT",
}  # fmt: skip
"""Closed libraries by the beginnings of their files' names without ``lib``, and of their kernels' names."""
_ADVICE_BY_STATUS: Final = {
    "excluded": "Excluded by --kernel or --exclude. Run without these options to probe the kernel.",
    "pending": "The kernel is being pruned, probed and assembled.",
    "failed": "The original kernel ran instead and produced the results. See process.log for the error.",
    "skipped": "The original kernel ran instead. See the first launch of the kernel in event.log.",
}
_OTHER_PROBES: Final = "other-probes"
"""Code of the reason that all launches of a kernel had other probes of the run."""


@dataclass(frozen=True, slots=True)
class CoveragePart:
    """A number of kernels, and their share of the GPU time or of the launches, from 0 to 1."""

    kernels: int
    share: float


@dataclass(frozen=True, slots=True)
class GraphCoverage:
    """Kernels of graphs that were timed as wholes only: how many were probed, and the share of all their replays."""

    kernels: int
    probed: int
    share: float


@dataclass(frozen=True, slots=True)
class ProbeCoverage:
    """Probed share of all kernels. ``left_out`` is by reason in words, the largest share first."""

    kernels: int
    probed: CoveragePart
    by_time: bool
    """True if shares are of GPU time; where no launch was timed they are of launches."""
    left_out: tuple[tuple[str, CoveragePart], ...]
    graphs: GraphCoverage | None = None
    """Part of GPU time that is not in the other shares; None if no graph was timed."""

    @property
    def sentence(self) -> str:
        """``96% of GPU time (41 of 44 kernels); not: 3 kernels of cuDNN (by choice: --machine-code all)``.

        What replays of graphs took is reported separately: their kernels are not timed one by one.
        """
        total = "GPU time" if self.by_time else "launches"
        kernels = f"{self.probed.kernels} of {units.counted(self.kernels, 'kernel')}"
        sentence = f"{percent(self.probed.share)} of {total} ({kernels})"
        if self.graphs is not None:
            recorded = f"{self.graphs.probed} of {units.counted(self.graphs.kernels, 'kernel')} recorded"
            sentence += f", {percent(self.graphs.share)} in graph replays ({recorded})"
        unprobed = [_part_text(text, part) for text, part in self.left_out[:_MAX_REASONS]]
        if unlisted := sum(part.kernels for _, part in self.left_out[_MAX_REASONS:]):
            unprobed.append(units.counted(unlisted, "more kernel"))
        return f"{sentence}; not probed: {'; '.join(unprobed)}" if unprobed else sentence

    def record(self) -> dict[str, Any]:
        """Return the JSON record; shares are from 0 to 1."""
        return {
            "kernels": self.kernels,
            "kernels_probed": self.probed.kernels,
            "share_probed": self.probed.share,
            "share_of": "gpu_time" if self.by_time else "launches",
            "graphs": None if self.graphs is None else asdict(self.graphs),
            "left_out": [
                {"reason": text, "kernels": part.kernels, "share": part.share} for text, part in self.left_out
            ],
        }


def probe_coverage(trace: Trace) -> ProbeCoverage | None:
    """Return the probed share of a trace, by the GPU time of its kernels; None where none was launched."""
    kernels = [kernel for kernel in trace.kernels if kernel.launches]
    by_time = trace.graph_ns > 0 or any(kernel.gpu_time is not None for kernel in kernels)
    weights = {kernel.index: _weight(kernel, by_time=by_time) for kernel in kernels}
    total = sum(weights.values()) + (trace.graph_ns if by_time else 0)
    if not kernels or total <= 0:
        return None
    groups: defaultdict[str | None, list[Kernel]] = defaultdict(list)
    for kernel in kernels:
        groups[None if kernel.launches_probed else unprobed_reason(kernel)].append(kernel)
    parts = {
        text: CoveragePart(len(group), sum(weights[kernel.index] for kernel in group) / total)
        for text, group in groups.items()
    }
    probed = parts.pop(None, CoveragePart(0, 0.0))
    left_out = sorted(parts.items(), key=lambda group: (-group[1].share, -group[1].kernels, group[0] or ""))
    reasons = tuple((text or "", part) for text, part in left_out)
    return ProbeCoverage(len(kernels), probed, by_time, reasons, _graph_coverage(trace, total))


def _graph_coverage(trace: Trace, total_ns: float) -> GraphCoverage | None:
    """Return the coverage of graphs as a share of ``total_ns``; None if no graph was timed."""
    if not trace.graph_ns:
        return None
    indexes = {index for graph in trace.graphs for index in graph.calls if index < len(trace.kernels)}
    untimed = [kernel for index in indexes if (kernel := trace.kernels[index]).gpu_time is None]
    return GraphCoverage(len(untimed), sum(kernel.launches_probed > 0 for kernel in untimed), trace.graph_ns / total_ns)


def _weight(kernel: Kernel, *, by_time: bool) -> float:
    """Return what a kernel adds to the total: its GPU time in ns, 0 if it was not timed, or its launches."""
    if not by_time:
        return float(kernel.launches)
    return 0.0 if kernel.gpu_time is None else kernel.gpu_time.total_ns


def unprobed_reason(kernel: Kernel) -> str:
    """Return why a kernel was not probed, in words that stand for all kernels with the same reason."""
    reason = kernel.probe_reason
    if reason is not None and reason.code == _CLOSED_LIBRARY:
        return f"{_OF_LIBRARY}{library_name(reason)} ({_CLOSED_ADVICE})"
    if kernel.status == "pending":
        return "still being prepared"
    if kernel.status == "probed":
        launch_reason = usual_launch_reason(kernel)
        return f"no launch recorded: {printable(launch_reason.text)}" if launch_reason else "no launch recorded"
    return "no reason given" if reason is None else printable(reason.text)


def usual_launch_reason(kernel: Kernel) -> Reason | None:
    """Return why most launches of a kernel ran unprobed, None where the log does not say it."""
    launches = kernel.trace.launches
    numbers = launches.column("reason")[kernel.rows.part(0)]
    counts = np.bincount(numbers[numbers >= 0])
    return launches.reasons[int(counts.argmax())] if len(counts) else None


def missing_reason(kernel: KernelFacts) -> Reason | None:
    """Return why a kernel was not probed, or why none of its launches was; of others the remark of the engine."""
    reason = kernel.probe_reason
    if reason is not None or kernel.status != "probed" or kernel.kernel.launches_probed:
        return reason
    return usual_launch_reason(kernel.kernel)


def library_name(reason: Reason) -> str:
    """Return the usual name of a reason's closed library: ``cuDNN`` for ``libcudnn_cnn.so.9``."""
    reason_kind = listed_reasons().get(_CLOSED_LIBRARY)
    match = None if reason_kind is None else reason_kind.pattern.fullmatch(reason.text)
    name = match["library"] if match else "a closed library"
    stem = name.removeprefix("lib")
    return next((usual_name for start, usual_name in _LIBRARIES.items() if stem.startswith(start)), printable(name))


def _part_text(reason: str, part: CoveragePart) -> str:
    kernel_count = units.counted(part.kernels, "kernel")
    return f"{kernel_count} {reason}" if reason.startswith(_OF_LIBRARY) else f"{kernel_count} ({reason})"


def percent(share: float) -> str:
    """``96%``; less than all never reads as all, and more than nothing never as nothing."""
    if share in (0.0, 1.0) or 0.01 <= share < 0.99:
        return f"{share:.0%}"
    if share < 0.01:
        return "less than 1%"
    return f"{floor(share * 1000) / 10:.1f}%"


def kernel_advice(status: str, reason: Reason | None) -> str:
    """Return the advice on a kernel of this status; "" for a probed one.

    It is that of the reason's code with its parameters; of a reason without advice, that of the status.
    """
    if status == "probed":
        return ""
    advice = "" if reason is None else advice_on(reason.code, reason.parameters)
    return advice or _ADVICE_BY_STATUS.get(status, "")


@dataclass(frozen=True, slots=True)
class UnmeasuredProbe:
    """A probe that was asked for, and why it has no result."""

    probe: str
    reason: str
    code: str = _OTHER_PROBES
    """The code of the reason."""

    def record(self) -> dict[str, Any]:
        """Return the JSON record."""
        return {"probe": self.probe, "reason": self.reason}


def unmeasured_probes(kernel: KernelFacts) -> list[UnmeasuredProbe]:
    """The probes of a run with several that are in a kernel and have no result of it."""
    if not _saves_results(kernel.trace) or kernel.status != "probed":
        return []
    return [
        UnmeasuredProbe(name, _unserved_reason(probed), _reason_code(probed))
        for name, probed in kernel.kernel.named_probes.items()
        if probed.status == "probed" and not probed.result_rows and not probed.matched_nothing
    ]


def unused_probes(trace: Trace) -> list[UnmeasuredProbe]:
    """The probes of a run that have no result of any kernel, although some kernel may have what they measure; none
    while it lasts, and where no kernel was launched.
    """
    kernels = [kernel for kernel in trace.kernels if kernel.launches]
    if not kernels or trace.state.is_running or not _saves_results(trace):
        return []
    kernel_probes = tuple(dict.fromkeys(name for kernel in kernels for name in kernel.named_probes))
    requested_probes = (trace.run_info.probes if trace.run_info is not None else ()) or kernel_probes
    unused_names = [
        (name, _kernels_with_sites(kernels, name)) for name in requested_probes if not _has_result(kernels, name)
    ]
    return [
        UnmeasuredProbe(name, _run_reason(kernels_with_sites, name))
        for name, kernels_with_sites in unused_names
        if kernels_with_sites
    ]


def unmeasured_texts(probes: Iterable[UnmeasuredProbe]) -> Iterator[str]:
    """``not measured by -p A, B: every kernel ran once, with other probes``: those of one reason together, which may
    name the first of them.
    """
    by_reason: dict[str, list[UnmeasuredProbe]] = {}
    for unmeasured in probes:
        by_reason.setdefault(unmeasured.reason.replace(unmeasured.probe, ""), []).append(unmeasured)
    for same_reason in by_reason.values():
        names = ", ".join(printable(unmeasured.probe) for unmeasured in same_reason)
        yield f"not measured by -p {names}: {printable(same_reason[0].reason)}"


def _saves_results(trace: Run) -> bool:
    options = {} if trace.run_info is None else trace.run_info.options
    return not options.get("memusage") and not (options.get("benchmark") and not options.get("save_results"))


def _has_result(kernels: Iterable[Kernel], name: str) -> bool:
    return any(
        kernel.named_probes[name].result_rows if name in kernel.named_probes else
        not kernel.named_probes and kernel.result_rows
        for kernel in kernels
    )  # fmt: skip


def _kernels_with_sites(kernels: Iterable[Kernel], name: str) -> list[Kernel]:
    """Return the kernels that may have something for a probe to measure."""
    return [
        kernel for kernel in kernels if name not in kernel.named_probes or not kernel.named_probes[name].matched_nothing
    ]


def _run_reason(kernels: Iterable[Kernel], name: str) -> str:
    """The usual reason of the kernels."""
    (reason, number), *other_reasons = Counter(_kernel_reason(kernel, name) for kernel in kernels).most_common()
    return f"{units.counted(number, 'kernel')} {reason}" if other_reasons else f"every kernel {reason}"


def _kernel_reason(kernel: Kernel, name: str) -> str:
    probed = kernel.named_probes.get(name)
    if probed is not None and probed.status == "probed":
        return _unserved_reason(probed)
    reason = probed.reason if probed is not None else kernel.reason
    return f"ran without the probe: {reason}" if reason else "ran without the probe"


def _reason_code(probed: ProbedKernel) -> str:
    stated = _stated_reason(probed)
    return (stated and stated.code) or _OTHER_PROBES


def _stated_reason(probed: ProbedKernel) -> Reason | None:
    """Return the reason in the log why it was neither fused with others nor replayed."""
    return probed.kernel.replay_obstacle or probed.alternation_reason


def _unserved_reason(probed: ProbedKernel) -> str:
    """Return the reason for which no launch had the probe: why it was not fused with others, or not replayed."""
    launches, stated = probed.launches, _stated_reason(probed)
    if stated is None and not probed.kernel.launches_probed:
        stated = usual_launch_reason(probed.kernel)
    cause = f": {stated.text}" if stated else ""
    if launches < len(probed.kernel.named_probes):
        times = "once" if launches == 1 else f"{launches} times"
        return f"ran {times}, with other probes{cause}"
    return f"ran without the probe{cause}"
