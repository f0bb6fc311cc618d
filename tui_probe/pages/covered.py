"""How much of a run was probed, in one sentence: a share of GPU time, and what was left out and why."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from math import floor
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.table import safe
from tui_probe.reasons import Reason, listed_reasons

if TYPE_CHECKING:
    from tui_probe.trace.model import Kernel, Trace

_MOST_REASONS: Final = 3
_OF: Final = "of "
_CLOSED: Final = "closed-library"
_BY_CHOICE: Final = "by choice: --machine-code all"
_LIBRARIES: Final = {
    "cublas": "cuBLAS", "nvjet_": "cuBLAS", "cudnn": "cuDNN", "cusparse": "cuSPARSE", "cufft": "cuFFT",
    "cusolver": "cuSOLVER", "curand": "cuRAND", "cutensor": "cuTENSOR", "nvshmem": "NVSHMEM", "nvjpeg": "nvJPEG",
    "npp": "NPP", "nvinfer": "TensorRT",
}  # fmt: skip
"""Closed libraries by the beginnings of their files' names without ``lib``, and of their kernels' names."""


@dataclass(frozen=True, slots=True)
class Part:
    """A number of kernels, and their share of the GPU time or of the launches, from 0 to 1."""

    kernels: int
    share: float


@dataclass(frozen=True, slots=True)
class InGraphs:
    """Kernels of graphs that were timed as wholes only: how many were probed, and the share of all their replays."""

    kernels: int
    probed: int
    share: float


@dataclass(frozen=True, slots=True)
class Covered:
    """What was probed of all kernels. ``left_out`` is by reason in words, the largest share first."""

    kernels: int
    probed: Part
    by_time: bool
    """Whether shares are of GPU time; where no launch was timed they are of launches."""
    left_out: tuple[tuple[str, Part], ...]
    graphs: InGraphs | None = None
    """Of GPU time, what is not in the other shares; None where no graph was timed."""

    @property
    def sentence(self) -> str:
        """``96% of GPU time (41 of 44 kernels); not: 3 kernels of cuDNN (by choice: --machine-code all)``.

        What replays of graphs took is told beside: their kernels are not timed one by one.
        """
        of = "of GPU time" if self.by_time else "of launches"
        done = f"{percent(self.probed.share)} {of} ({self.probed.kernels} of {units.counted(self.kernels, 'kernel')})"
        if self.graphs is not None:
            recorded = f"{self.graphs.probed} of {units.counted(self.graphs.kernels, 'kernel')} recorded"
            done += f", {percent(self.graphs.share)} in replays of graphs ({recorded})"
        shown = [_told(words, part) for words, part in self.left_out[:_MOST_REASONS]]
        more = sum(part.kernels for _, part in self.left_out[_MOST_REASONS:])
        shown += [f"{units.counted(more, 'more kernel')}"] * bool(more)
        return f"{done}; not: {'; '.join(shown)}" if shown else done

    def record(self) -> dict[str, Any]:
        """The same as data; shares from 0 to 1."""
        return {
            "kernels": self.kernels,
            "kernels_probed": self.probed.kernels,
            "share_probed": self.probed.share,
            "share_of": "gpu_time" if self.by_time else "launches",
            "graphs": None if self.graphs is None else asdict(self.graphs),
            "left_out": [
                {"reason": words, "kernels": part.kernels, "share": part.share} for words, part in self.left_out
            ],
        }


def covered(trace: Trace) -> Covered | None:
    """How much of a trace was probed, by the GPU time of its kernels; None where none was launched."""
    kernels = [kernel for kernel in trace.kernels if kernel.launches]
    by_time = trace.graph_ns > 0 or any(kernel.gpu_time is not None for kernel in kernels)
    weights = {kernel.index: _weight(kernel, by_time=by_time) for kernel in kernels}
    whole = sum(weights.values()) + by_time * trace.graph_ns
    if not kernels or whole <= 0:
        return None
    groups: defaultdict[str | None, list[Kernel]] = defaultdict(list)
    for kernel in kernels:
        groups[None if kernel.launches_probed else why(kernel)].append(kernel)
    parts = {
        words: Part(len(group), sum(weights[kernel.index] for kernel in group) / whole)
        for words, group in groups.items()
    }
    probed = parts.pop(None, Part(0, 0.0))
    left_out = sorted(parts.items(), key=lambda each: (-each[1].share, -each[1].kernels, each[0] or ""))
    told = tuple((words or "", part) for words, part in left_out)
    return Covered(len(kernels), probed, by_time, told, _in_graphs(trace, whole))


def _in_graphs(trace: Trace, whole: float) -> InGraphs | None:
    """Of ``whole`` nanoseconds."""
    if not trace.graph_ns:
        return None
    indexes = {index for graph in trace.graphs for index in graph.calls if index < len(trace.kernels)}
    untimed = [kernel for index in indexes if (kernel := trace.kernels[index]).gpu_time is None]
    return InGraphs(len(untimed), sum(kernel.launches_probed > 0 for kernel in untimed), trace.graph_ns / whole)


def _weight(kernel: Kernel, *, by_time: bool) -> float:
    if not by_time:
        return float(kernel.launches)
    return 0.0 if kernel.gpu_time is None else kernel.gpu_time.total_ns


def why(kernel: Kernel) -> str:
    """Why a kernel was not probed, in words that stand for all kernels with the same reason."""
    reason = kernel.why
    if reason is not None and reason.code == _CLOSED:
        return f"{_OF}{library_name(reason)} ({_BY_CHOICE})"
    if kernel.status == "pending":
        return "still being prepared"
    if kernel.status == "probed":
        passed = _why_passed(kernel)
        return f"no launch recorded: {safe(passed.text)}" if passed else "no launch recorded"
    return "no reason given" if reason is None else safe(reason.text)


def _why_passed(kernel: Kernel) -> Reason | None:
    """Why most launches of a kernel were passed through, None where the log does not say it."""
    launches = kernel.trace.launches
    numbers = launches.column("reason")[kernel.rows.part(0)]
    counts = np.bincount(numbers[numbers >= 0])
    return launches.reasons[int(counts.argmax())] if len(counts) else None


def library_name(reason: Reason) -> str:
    """The closed library of a reason as people call it: ``cuDNN`` of ``libcudnn_cnn.so.9``."""
    listed = listed_reasons().get(_CLOSED)
    match = None if listed is None else listed.pattern.fullmatch(reason.text)
    name = match["library"] if match else "a closed library"
    plain = name.removeprefix("lib")
    return next((known for start, known in _LIBRARIES.items() if plain.startswith(start)), safe(name))


def _told(words: str, part: Part) -> str:
    counted = units.counted(part.kernels, "kernel")
    return f"{counted} {words}" if words.startswith(_OF) else f"{counted} ({words})"


def percent(share: float) -> str:
    """``96%``; less than all never reads as all, and more than nothing never as nothing."""
    if share in (0.0, 1.0) or 0.01 <= share < 0.99:
        return f"{share:.0%}"
    if share < 0.01:
        return "less than 1%"
    return f"{floor(share * 1000) / 10:.1f}%"
