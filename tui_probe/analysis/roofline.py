"""The roofline of probed kernels: how close each comes to what memory and arithmetic can do.

For each kernel, from any number of traces::

    intensity   = operations / bytes          per byte that was asked for
    roof        = min(peak, bandwidth · intensity)

Operations are those of matrix instructions; of a kernel without such, those on fp32, fp64 and fp16, where a probe
counted them. Bytes are what loads, stores and copies asked for, before any cache: a kernel whose tiles come from caches
can stand above the memory roof. Time is that of the kernel without a probe. What limits a kernel,
:mod:`tui_probe.analysis.limits` tells. The roofline model: Williams, Waterman, Patterson, CACM 52 (2009), 65-76.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.analysis.limits import Verdict


@dataclass(frozen=True, slots=True)
class Roof:
    """What the machine can do. Operations and bytes per second; None where it is not known."""

    peak: float | None
    bandwidth: float | None
    fp32: float | None = None
    """Operations on fp32 that are no matrix instructions."""

    def at(self, intensity: float) -> float | None:
        """The most operations per second at an intensity; None where a limit is not known."""
        if self.peak is None or self.bandwidth is None:
            return None
        return min(self.peak, self.bandwidth * intensity)

    @property
    def ridge(self) -> float | None:
        """The intensity from which on the peak is the limit."""
        return None if self.peak is None or not self.bandwidth else self.peak / self.bandwidth


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel. Means a launch; None where no trace measured it. ``problem`` says what is missing."""

    name: str
    demangled: str
    size: float | None
    operations: float | None
    seconds: float | None
    problem: str | None
    place: tuple[Path, int] | None = None
    """The trace in which it is first seen, and its index there."""
    verdict: Verdict | None = None
    words: Sequence[str] = ()
    """The verdict, what led to it, and what to run where something is missing."""
    limit: str | None = None
    """``memory (L2)``, for a column; None where it cannot be told."""

    @property
    def intensity(self) -> float | None:
        """Operations per byte."""
        return None if not self.size or self.operations is None else self.operations / self.size

    @property
    def operations_per_second(self) -> float | None:
        """What it achieved."""
        return None if self.operations is None or not self.seconds else self.operations / self.seconds

    @property
    def bytes_per_second(self) -> float | None:
        """What it asked memory for, a second."""
        return None if self.size is None or not self.seconds else self.size / self.seconds

    @property
    def share(self) -> float | None:
        """How busy the unit is that limits it, or the busiest one, as a share of its time."""
        return None if self.verdict is None else self.verdict.share

    def share_of(self, roof: Roof) -> float | None:
        """Achieved, as a share of the roof above it; None without operations."""
        if not self.intensity or self.operations_per_second is None:
            return None
        limit = roof.at(self.intensity)
        return None if not limit else self.operations_per_second / limit
