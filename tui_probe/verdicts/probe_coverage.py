"""Probe coverage of a run: its probed share, and why other kernels ran unprobed, with advice."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from math import floor
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.reasons import Reason, advice_on, listed_reasons

if TYPE_CHECKING:
    from tui_probe.trace.model import Kernel, KernelFacts, Trace

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
        if more := sum(part.kernels for _, part in self.left_out[_MAX_REASONS:]):
            unprobed.append(units.counted(more, "more kernel"))
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
    listed = listed_reasons().get(_CLOSED_LIBRARY)
    match = None if listed is None else listed.pattern.fullmatch(reason.text)
    name = match["library"] if match else "a closed library"
    plain = name.removeprefix("lib")
    return next((known for start, known in _LIBRARIES.items() if plain.startswith(start)), printable(name))


def _part_text(reason: str, part: CoveragePart) -> str:
    counted = units.counted(part.kernels, "kernel")
    return f"{counted} {reason}" if reason.startswith(_OF_LIBRARY) else f"{counted} ({reason})"


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
