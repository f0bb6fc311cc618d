"""What a measurement answers, in sentences: caches, and how many blocks it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.analysis.sweep import ENOUGH, Sweep, bytes_on_card
from tui_probe.draw import units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.bandwidth.figures import Bandwidth, Card, Figure

_NO_LOSS: Final = 0.01
"""A loss that is not told from noise."""


def cache_findings(measured: Bandwidth) -> Iterator[str]:
    """How far off a test would be that L2 serves."""
    memory, cache, card = measured.rate("memory_read"), measured.rate("l2_read"), measured.card
    if memory is not None and cache is not None and card is not None:
        times = cache.bytes_per_second / memory.bytes_per_second
        yield (
            f"caches: L2 delivers {units.rate(cache.bytes_per_second)}, {times:.2f} × memory: a test whose data fit in"
            f" {units.size(card.l2_bytes)} would look that much too good"
        )


def sweep_findings(sweep: Sweep, card: Card | None) -> Iterator[str]:
    """The best, what one block reaches, what one per SM, how much must be in flight, and what too many blocks cost."""
    best, fewest = sweep.best, sweep.best_of(sweep.blocks[0])
    yield f"best: {_pair(best)}: {units.rate(best.bytes_per_second)}"
    if fewest is not None and fewest is not best:
        yield f"few blocks: {_reach(sweep, fewest)}"
    one_each = None if card is None else sweep.best_of(card.sms)
    if one_each is not None and one_each not in (best, fewest):
        yield f"one block per SM: {_reach(sweep, one_each)}"
    enough = sweep.enough
    latency = bytes_on_card(enough) / enough.bytes_per_second
    yield (
        f"enough in flight: {units.size(bytes_on_card(enough))} on the whole GPU reach {ENOUGH:.0%} of the best, which"
        f" by Little's law is a latency of {units.duration(latency)}"
    )
    worst = sweep.most_crowded
    if worst is not None:
        loss = 1 - sweep.share(worst)
        cost = f"down to {units.rate(worst.bytes_per_second)} ({_pair(worst)}): contention costs up to {loss:.0%}"
        yield f"more in flight than the best: {cost if loss >= _NO_LOSS else 'neither helps nor harms'}"


def _pair(rate: Figure) -> str:
    return f"{units.counted(rate.blocks or 0, 'block')} with {units.size(rate.in_flight)} in flight in each"


def _reach(sweep: Sweep, rate: Figure) -> str:
    part = sweep.share(rate)
    share = f"{part:.1%}" if part < 0.0995 else f"{part:.0%}"
    reach = "reaches" if rate.blocks == 1 else "reach"
    return (
        f"{units.counted(rate.blocks or 0, 'block')} {reach} {units.rate(rate.bytes_per_second)}, {share} of the best"
    )
