"""What a sweep over blocks and bytes in flight says: how many blocks it takes, and what more of them cost.

By Little's law bytes in flight = bandwidth × latency: a GPU reaches its bandwidth once enough bytes are in flight,
however they are divided among blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.bandwidth.figures import Figure

ENOUGH: Final = 0.9
"""The part of the best from which on there are enough bytes in flight."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The rates that were tried; each has blocks and bytes in flight."""

    rates: Sequence[Figure]

    @property
    def blocks(self) -> list[int]:
        """The numbers of blocks, ascending."""
        return sorted({rate.blocks or 0 for rate in self.rates})

    @property
    def flights(self) -> list[int]:
        """Bytes in flight in a block, ascending."""
        return sorted({rate.in_flight or 0 for rate in self.rates})

    @property
    def best(self) -> Figure:
        return max(self.rates, key=lambda rate: rate.bytes_per_second)

    def at(self, blocks: int, in_flight: int) -> Figure | None:
        """What was tried with so many blocks and bytes, if it was."""
        return next((rate for rate in self.rates if (rate.blocks, rate.in_flight) == (blocks, in_flight)), None)

    def best_of(self, blocks: int) -> Figure | None:
        """The best rate of so many blocks, if any was tried."""
        return max(
            (rate for rate in self.rates if rate.blocks == blocks), key=lambda rate: rate.bytes_per_second, default=None
        )

    def share(self, rate: Figure) -> float:
        """Of the best."""
        return rate.bytes_per_second / self.best.bytes_per_second

    @property
    def most_crowded(self) -> Figure | None:
        """The slowest of those with more bytes in flight than the best; None if none has."""
        most = bytes_on_card(self.best)
        crowded = (rate for rate in self.rates if bytes_on_card(rate) > most)
        return min(crowded, key=lambda rate: rate.bytes_per_second, default=None)

    @property
    def enough(self) -> Figure:
        """With the fewest bytes in flight on the GPU that reach ``ENOUGH`` of the best."""
        return min((rate for rate in self.rates if self.share(rate) >= ENOUGH), key=bytes_on_card)


def bytes_on_card(rate: Figure) -> int:
    """Bytes in flight in all blocks, if all run at once."""
    return (rate.blocks or 0) * (rate.in_flight or 0)


def sweep_of(rates: Sequence[Figure]) -> Sweep | None:
    """The sweep, None where nothing was swept."""
    tried = [rate for rate in rates if rate.blocks and rate.in_flight]
    return Sweep(tried) if tried else None
