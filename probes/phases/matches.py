"""Waits at mbarriers matched with the signals that end them, for all warps of some blocks together.

Waits and signals of a pipeline may be in several phases: a kernel peels iterations off its loop, or frees the last
stage behind it. They are counted over all these phases. If a warp waits as often as each warp of the other role
signals, its wait k belongs to round k of signals, or, for one of N free stages, to round k - N. Otherwise a wait
belongs to the last signal before its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .analysis import Phases, Spans

MAX_AHEAD: Final = 32
"""Stages of a pipeline at most."""
_NO_SIGNAL: Final = -1
UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class Match:
    """Waits of some blocks, and the signals of these blocks. ``release`` is the number of the signal that ends a wait,
    -1 for none. ``by_order``: matched by order, each with the round ``ahead`` before; only waits that have a round.

    ``in_use`` are the stages of the pipeline that are in use when a wait begins, -1 where this is unknown.
    """

    waits: Spans
    signals: Spans
    release: NDArray[np.int64]
    by_order: bool
    ahead: int
    in_use: NDArray[np.int64]
    arrivals: int
    """Warps of a block that signal."""

    @property
    def signaled(self) -> NDArray[np.int64]:
        """The ends of the signals within their waits; of a wait without one its own start."""
        times = np.where(self.release >= 0, self.signals.end[self.release], self.waits.start)
        return np.clip(times, self.waits.start, self.waits.end)

    def where(self, chosen: NDArray[np.bool_]) -> Match:
        """Some of the waits."""
        waits, release, in_use = self.waits.where(chosen), self.release[chosen], self.in_use[chosen]
        return Match(waits, self.signals, release, self.by_order, self.ahead, in_use, self.arrivals)


@dataclass(frozen=True, eq=False)
class _Sequences:
    """Spans of warps in order. ``block`` is the number of each span's block among those that are examined."""

    spans: Spans
    block: NDArray[np.int64]

    @cached_property
    def heads(self) -> NDArray[np.int64]:
        """The number of the first span of each warp."""
        return np.flatnonzero(np.diff(self.spans.warp, prepend=-1))

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The spans of each warp."""
        return np.diff(np.append(self.heads, len(self.spans)))

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """The number of each span among those of its warp, from 0."""
        return np.arange(len(self.spans)) - np.repeat(self.heads, self.counts)

    @property
    def last_end(self) -> NDArray[np.int64]:
        """The end of the last span of each warp."""
        ends: NDArray[np.int64] = self.spans.end[self.heads + self.counts - 1]
        return ends


@dataclass(frozen=True, slots=True)
class _Rounds:
    """Rounds of signals, each with a signal of each signaling warp of a block: the numbers of its first and last one.

    ``begin`` is the first round of each block, ``count`` its complete rounds; ``even``: its warps signal equally often.
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    begin: NDArray[np.int64]
    count: NDArray[np.int64]
    even: NDArray[np.bool_]

    @classmethod
    def of(cls, signals: _Sequences) -> _Rounds:
        """The rounds of each block: the k-th signals of all its warps."""
        of_warp = signals.block[signals.heads]
        warps = np.bincount(of_warp)
        by_block = np.cumsum(warps) - warps
        fewest, most = (reduction.reduceat(signals.counts, by_block) for reduction in (np.minimum, np.maximum))
        complete = np.flatnonzero(signals.rank < fewest[signals.block])
        begin = np.cumsum(fewest) - fewest
        number = (begin[signals.block] + signals.rank)[complete]
        times = signals.spans.start[complete], signals.spans.end[complete]
        by_start, by_end = (complete[np.lexsort((ends, number))] for ends in times)
        size = np.repeat(warps, fewest)
        begins = np.cumsum(size) - size
        return cls(by_start[begins], by_end[begins + size - 1], begin, fewest, fewest == most)


def match_waits(
    launch: Phases, waits: Spans, signals: Spans, stages: int | None, max_ahead: int = MAX_AHEAD
) -> Match | None:
    """Match all waits of a role at some barriers with the signals of another role; None if no block has both.

    ``stages`` is the number of barriers. If it is unknown, the least distance below ``max_ahead`` is taken that
    explains all ends; with 0, waits are matched by time.
    """
    parts = _in_some_blocks(launch, waits, signals)
    if parts is None:
        return None
    waiting, signaling = parts
    rounds = _Rounds.of(signaling)
    arrivals = int(np.bincount(signaling.block[signaling.heads]).max())
    usable = _usable(launch, waiting, signaling, rounds)
    ahead = None if usable is None else _distances(waiting, usable, signaling.spans, rounds, stages, max_ahead)
    if usable is None or ahead is None:
        unknown = np.full(len(waiting.spans), UNKNOWN, np.int64)
        return Match(waiting.spans, signaling.spans, _latest(waiting, signaling), False, 0, unknown, arrivals)
    place = waiting.rank - ahead
    number = np.where(place >= 0, rounds.begin[waiting.block] + place, 0).clip(max=len(rounds.last) - 1)
    release = np.where(place >= 0, rounds.last[number], _NO_SIGNAL)
    in_use = _stages_in_use(waiting, ahead, signaling.spans, rounds, is_cut=_is_cut(launch))
    in_use = in_use if stages is None else np.minimum(in_use, stages)
    match = Match(waiting.spans, signaling.spans, release, True, int(ahead.max()), in_use, arrivals)
    return match.where(usable)


def _is_cut(launch: Phases) -> bool:
    """Return whether some warps kept only their first records."""
    return launch.starts_kept < launch.starts_seen and not launch.keeps_last


def _in_some_blocks(launch: Phases, waits: Spans, signals: Spans) -> tuple[_Sequences, _Sequences] | None:
    """The waits and signals of the blocks that are examined and have both; None if there are none."""
    block = launch.warps.block
    both = np.array(launch.some_blocks, np.int64)
    for spans in (waits, signals):
        both = np.intersect1d(both, block[spans.warp[np.diff(spans.warp, prepend=-1) != 0]])
    if not len(both):
        return None
    is_chosen, number = np.isin(block, both), np.searchsorted(both, block)
    waits, signals = (spans.where(is_chosen[spans.warp]) for spans in (waits, signals))
    return _Sequences(waits, number[waits.warp]), _Sequences(signals, number[signals.warp])


def _usable(launch: Phases, waits: _Sequences, signals: _Sequences, rounds: _Rounds) -> NDArray[np.bool_] | None:
    """The waits that have a round of signals; None if some warp does not wait as often as the other role signals.

    Behind the last round, waits outside of loops belong to no signal: a producer waits there until all stages are free.
    Of warps that kept only their first records, as many waits count as each of the other role's warps kept signals.
    """
    in_loop = np.array([phase.loop is not None for phase in launch.phases], bool)[waits.spans.phase]
    usable = waits.rank < rounds.count[waits.block]
    of_warp = waits.block[waits.heads]
    more = np.add.reduceat((in_loop & ~usable).astype(np.int64), waits.heads) > 0
    as_often = rounds.even[of_warp] & (waits.counts >= rounds.count[of_warp]) & ~more
    if _is_cut(launch):
        as_often |= _equally_frequent(waits, signals, rounds)
    return usable if as_often.all() else None


def _equally_frequent(waits: _Sequences, signals: _Sequences, rounds: _Rounds) -> NDArray[np.bool_]:
    """Return the warps that, until the first of the last records, wait as often as those of the other role signal: but
    for the stages of a pipeline.
    """
    of_warp = waits.block[waits.heads]
    warps = np.bincount(signals.block[signals.heads])
    by_block = np.cumsum(warps) - warps
    until = np.minimum(waits.last_end, np.minimum.reduceat(signals.last_end, by_block)[of_warp])
    ended = np.add.reduceat((waits.spans.end <= np.repeat(until, waits.counts)).astype(np.int64), waits.heads)
    pairs = warps[of_warp]
    begins = np.cumsum(pairs) - pairs
    other = np.arange(pairs.sum()) - np.repeat(begins - by_block[of_warp], pairs)
    far = int(max(signals.spans.end.max(), waits.spans.end.max())) + 1
    keys = np.repeat(np.arange(len(signals.heads)), signals.counts) * far + signals.spans.end
    counts = np.searchsorted(keys, other * far + np.repeat(until, pairs), side="right") - signals.heads[other]
    fewest = np.minimum(ended, np.minimum.reduceat(counts, begins))
    most = np.maximum(ended, np.maximum.reduceat(counts, begins))
    return (np.minimum(waits.counts, rounds.count[of_warp]) > MAX_AHEAD) & (most - fewest <= MAX_AHEAD)


def _distances(
    waits: _Sequences,
    usable: NDArray[np.bool_],
    signals: Spans,
    rounds: _Rounds,
    stages: int | None,
    max_ahead: int,
) -> NDArray[np.int64] | None:
    """The number of rounds between each wait and its signal, equal for a warp; None if no distance explains all waits.

    No wait ends before its round begins. If the distance is unknown, none ends before the last signal of its round: of
    the warps of a round, perhaps only some arrive at the barrier.
    """
    known = stages is not None
    distances = [distance for distance in ((0, stages) if stages else range(MAX_AHEAD)) if distance < max_ahead]
    begin = signals.start[rounds.first if known else rounds.last]
    ahead = np.full(len(waits.heads), UNKNOWN, np.int64)
    for distance in distances:
        place = waits.rank - distance
        number = (rounds.begin[waits.block] + place).clip(0, len(begin) - 1)
        early = usable & (place >= 0) & (begin[number] > waits.spans.end)
        explained = ~np.logical_or.reduceat(early, waits.heads)
        explained &= known | (distance < np.add.reduceat(usable.astype(np.int64), waits.heads))
        ahead = np.where((ahead == UNKNOWN) & explained, distance, ahead)
        if (ahead != UNKNOWN).all():
            return np.repeat(ahead, waits.counts)
    return None


def _latest(waits: _Sequences, signals: _Sequences) -> NDArray[np.int64]:
    """The last signal of the block before the end of each wait; -1 for none."""
    far = int(max(signals.spans.end.max(), waits.spans.end.max())) + 1
    keys = signals.block * far + signals.spans.end
    order = np.argsort(keys, kind="stable")
    place = np.searchsorted(keys[order], waits.block * far + waits.spans.end, side="right") - 1
    signal = order[place.clip(0)]
    return np.where((place >= 0) & (signals.block[signal] == waits.block), signal, _NO_SIGNAL)


def _stages_in_use(
    waits: _Sequences, ahead: NDArray[np.int64], signals: Spans, rounds: _Rounds, is_cut: bool
) -> NDArray[np.int64]:
    """The stages that are in use when each wait begins; -1 behind the last signals that were kept.

    For a role that runs ahead, its waits before are stages in use that the rounds have not freed; for the other role,
    the rounds are filled stages.
    """
    ends = signals.end[rounds.last]
    far = int(max(ends.max(), waits.spans.start.max())) + 1
    keys = np.sort(np.repeat(np.arange(len(rounds.count)), rounds.count) * far + ends)
    before = np.searchsorted(keys, waits.block * far + waits.spans.start, side="right") - rounds.begin[waits.block]
    in_use = np.where(ahead > 0, waits.rank - before, before - waits.rank).clip(0)
    return np.where(before >= rounds.count[waits.block], UNKNOWN, in_use) if is_cut else in_use
