"""Which parts of a sequence repeat: the iterations of a program, found in its launches.

A part repeats with period p where each item equals the one p places before it. Of all such parts those are taken that
are repeated equally often and together hold the most items: a program that measures several configurations has as many
parts, each of as many iterations.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

_LONGEST_PERIOD: Final = 4096
_SURE: Final = 3
"""Two equal neighbours may be chance; a part that is repeated three times is believed first."""


class Repeat(NamedTuple):
    """``times`` × ``period`` items from ``start``; the items of each period are equal to those of the others."""

    start: int
    period: int
    times: int

    @property
    def end(self) -> int:
        return self.start + self.period * self.times


def repeats(codes: Sequence[int], least: int = 2) -> list[Repeat]:
    """Every part that is repeated ``least`` times or more, the shortest periods first; no period is a multiple of a
    shorter one.

    ``codes`` is shape (items,). Takes time in proportion to items × the longest period looked for (4096).
    """
    items = np.asarray(codes, dtype=np.int64)
    found: list[Repeat] = []
    for period in range(1, min(len(items) // least, _LONGEST_PERIOD) + 1):
        for start, end in _runs(items[:-period] == items[period:], period * (least - 1)):
            times = (end - start + period) // period
            repeat = Repeat(start, period, times)
            if times >= least and not _known(found, repeat):
                found.append(repeat)
    return found


def _runs(same: NDArray[np.bool_], least: int) -> Iterable[tuple[int, int]]:
    """Where runs of at least so many True begin and end."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    long = ends - starts >= least
    return zip(starts[long].tolist(), ends[long].tolist(), strict=True)


def _known(found: Iterable[Repeat], repeat: Repeat) -> bool:
    """Whether a shorter period explains the same part."""
    return any(
        repeat.period % other.period == 0 and other.start <= repeat.start and repeat.end <= other.end + other.period - 1
        for other in found
    )


def iterations(codes: Sequence[int]) -> list[Repeat]:
    """The parts that are repeated equally often and hold the most items, in order; none if nothing repeats."""
    by_times: dict[int, list[Repeat]] = defaultdict(list)
    for repeat in repeats(codes, _SURE) or repeats(codes):
        by_times[repeat.times].append(repeat)
    parts = [apart(group) for group in by_times.values()]
    return max(parts, key=lambda part: (sum(each.end - each.start for each in part), part[0].times), default=[])


def apart(candidates: Iterable[Repeat]) -> list[Repeat]:
    """Of parts that overlap the one with the most items, in order."""
    taken: list[Repeat] = []
    for repeat in sorted(candidates, key=lambda each: (each.start - each.end, each.start)):
        if all(repeat.end <= other.start or other.end <= repeat.start for other in taken):
            taken.append(repeat)
    return sorted(taken)
