"""The roofline of probed kernels: how close each comes to what memory and tensor cores can do.

For each kernel, from any number of traces::

    intensity   = operations / bytes          operations of matrix instructions per byte that was asked for
    roof        = min(peak, bandwidth · intensity)
    share       = (operations / time) / roof

Bytes are what loads, stores and copies asked for, before any cache. A kernel whose tiles come from
caches can thus stand above the memory roof, and the share of the roof says so by exceeding 1. Time is the original
kernel's (``--benchmark``). The roofline model: Williams, Waterman, Patterson, CACM 52 (2009), 65-76.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.event_types import Device

OPERATIONS_A_CLOCK: Final = {"7.0": 1024, "7.5": 1024, "8.0": 2048, "9.0": 4096}
"""Dense half-precision operations of all tensor cores of an SM in a clock, by compute capability (NVIDIA's white papers
of Volta, Turing, A100 and H100)."""


@dataclass(frozen=True, slots=True)
class Roof:
    """What the machine can do. Operations and bytes per second; None where it is not known."""

    peak: float | None
    bandwidth: float | None

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

    def share(self, roof: Roof) -> float | None:
        """Achieved, as a share of the roof above it: of bandwidth where it has no matrix instructions."""
        if self.operations == 0:
            rate = self.bytes_per_second
            return None if rate is None or not roof.bandwidth else rate / roof.bandwidth
        if self.intensity is None or self.operations_per_second is None:
            return None
        limit = roof.at(self.intensity)
        return None if not limit else self.operations_per_second / limit

    def bound(self, roof: Roof) -> str | None:
        """``memory`` left of the ridge, ``compute`` right of it; None where it is not known."""
        if self.intensity is None or roof.ridge is None:
            return None
        return "memory" if self.intensity < roof.ridge else "compute"


def peak_of(device: Device) -> float | None:
    """Tensor operations per second of a device at its highest clock, dense and in half precision, if they are known."""
    a_clock = OPERATIONS_A_CLOCK.get(device.capability)
    return None if a_clock is None or not device.clock_khz else float(a_clock) * device.sms * device.clock_khz * 1e3
