"""Results of a bandwidth measurement, made just now or read from a file."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.errors import BandwidthError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class GpuCard:
    """Properties of a GPU from the driver. Bytes; the bus in bits, its clock in kHz (0 where the driver has none).

    ``memory_bandwidth`` is the bytes per second that the memory bus can carry; None where it is not known.
    """

    name: str
    sms: int
    l2_bytes: int
    memory_bytes: int
    memory_clock_khz: int
    memory_bus_bits: int
    memory_bandwidth: float | None


@dataclass(frozen=True, slots=True)
class Rate:
    """One measured rate: ``size`` bytes (of a copy twice) in ``seconds``, the median of ``repeats``.

    ``spread`` is slowest less fastest, as a share of the median; ``in_flight`` bytes that each of ``blocks`` has on
    their way; ``limit`` what the specification allows, bytes per second. None where it does not apply, or where a file
    does not have it.
    """

    key: str
    what: str
    bytes_per_second: float
    size: int | None = None
    seconds: float | None = None
    repeats: int | None = None
    spread: float | None = None
    blocks: int | None = None
    in_flight: int | None = None
    limit: float | None = None

    @classmethod
    def from_times(cls, key: str, what: str, size: int, times: Sequence[float], limit: float | None = None) -> Rate:
        """Return the rate of repeats that moved ``size`` bytes each, in ``times`` (s).

        Raises BandwidthError if the clock did not advance.
        """
        seconds = statistics.median(times)
        if not seconds:
            raise BandwidthError(f"{what}: the measured time is 0; measure with more bytes")
        spread = (max(times) - min(times)) / seconds
        return cls(key, what, size / seconds, size, seconds, len(times), spread, limit=limit)


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """All rates of one measurement. ``swept`` are those of memory to shared memory by blocks and bytes in flight.

    ``card`` is None where only the disk was measured.
    """

    card: GpuCard | None
    rates: Sequence[Rate]
    swept: Sequence[Rate] = ()

    def rate(self, key: str) -> Rate | None:
        """Return the rate of that key; None if it was not measured."""
        return next((rate for rate in self.rates if rate.key == key), None)
