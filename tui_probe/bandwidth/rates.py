"""Results of a bandwidth measurement, made just now or read from a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class GpuCard(Protocol):
    """Properties of a GPU from the driver. Bytes; the bus in bits, its clock in kHz (0 where the driver has none)."""

    @property
    def name(self) -> str: ...
    @property
    def sms(self) -> int: ...
    @property
    def l2_bytes(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def memory_clock_khz(self) -> int: ...
    @property
    def memory_bus_bits(self) -> int: ...
    @property
    def memory_bandwidth(self) -> float | None:
        """Bytes per second that the memory bus can carry; None where it is not known."""


class MeasuredRate(Protocol):
    """One measured rate: ``size`` bytes in ``seconds``, the median of ``repeats``; None if a file does not have them.

    ``spread`` is slowest less fastest, as a share of the median; ``in_flight`` bytes that each of ``blocks`` has on
    their way; ``limit`` what the specification allows, bytes per second. None where it does not apply.
    """

    @property
    def key(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def size(self) -> int | None: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def repeats(self) -> int | None: ...
    @property
    def spread(self) -> float | None: ...
    @property
    def blocks(self) -> int | None: ...
    @property
    def in_flight(self) -> int | None: ...
    @property
    def limit(self) -> float | None: ...
    @property
    def bytes_per_second(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """All rates of one measurement. ``swept`` are those of memory to shared memory by blocks and bytes in flight.

    ``card`` is None where only the disk was measured.
    """

    card: GpuCard | None
    rates: Sequence[MeasuredRate]
    swept: Sequence[MeasuredRate] = ()

    def rate(self, key: str) -> MeasuredRate | None:
        """Return the rate of that key; None if it was not measured."""
        return next((rate for rate in self.rates if rate.key == key), None)
