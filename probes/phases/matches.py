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

    from .analysis import LaunchPhases, Spans

MAX_AHEAD: Final = 32
"""Stages of a pipeline at most."""
_NO_SIGNAL: Final = -1
UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class Match:
    """Waits of some blocks, and the signals of these blocks. ``release`` is the number of the signal that ends a wait,
    -1 for none. ``by_order``: matched by order, each with the signal of ``rounds_ahead`` rounds before; only waits that
    have one.

    ``in_use`` are the stages of the pipeline that are in use when a wait begins, -1 where this is unknown.
    """

    waits: Spans
    signals: Spans
    release: NDArray[np.int64]
    by_order: bool
    rounds_ahead: int
    in_use: NDArray[np.int64]
    arrivals: int
    """Warps of a block that signal."""

    @property
    def signaled(self) -> NDArray[np.int64]:
        """The ends of the signals within their waits; of a wait without one its own start."""
        times = np.where(self.release >= 0, self.signals.end[self.release], self.waits.start)
        return np.clip(times, self.waits.start, self.waits.end)

    def select(self, mask: NDArray[np.bool_]) -> Match:
        """Some of the waits."""
        waits, release, in_use = self.waits.select(mask), self.release[mask], self.in_use[mask]
        return Match(waits, self.signals, release, self.by_order, self.rounds_ahead, in_use, self.arrivals)


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
        end_times: NDArray[np.int64] = self.spans.end[self.heads + self.counts - 1]
        return end_times


@dataclass(frozen=True, slots=True)
class _Rounds:
    """Rounds of signals, each with a signal of each signaling warp of a block: the numbers of its first and last one.

    ``begin`` is the first round of each block, ``count`` its complete rounds; ``is_even``: its warps signal equally
    often.
    """

    first_signals: NDArray[np.int64]
    last_signals: NDArray[np.int64]
    begin: NDArray[np.int64]
    count: NDArray[np.int64]
    is_even: NDArray[np.bool_]

    @classmethod
    def from_signals(cls, signals: _Sequences) -> _Rounds:
        """The rounds of each block: the k-th signals of all its warps."""
        of_warp = signals.block[signals.heads]
        warps = np.bincount(of_warp)
        first_warps = np.cumsum(warps) - warps
        min_counts, max_counts = (
            reduction.reduceat(signals.counts, first_warps) for reduction in (np.minimum, np.maximum)
        )
        complete_signals = np.flatnonzero(signals.rank < min_counts[signals.block])
        begin = np.cumsum(min_counts) - min_counts
        number = (begin[signals.block] + signals.rank)[complete_signals]
        times = signals.spans.start[complete_signals], signals.spans.end[complete_signals]
        by_start, by_end = (complete_signals[np.lexsort((keys, number))] for keys in times)
        size = np.repeat(warps, min_counts)
        round_starts = np.cumsum(size) - size
        return cls(by_start[round_starts], by_end[round_starts + size - 1], begin, min_counts, min_counts == max_counts)


def match_waits(
    launch: LaunchPhases, waits: Spans, signals: Spans, stages: int | None, max_ahead: int = MAX_AHEAD
) -> Match | None:
    """Match all waits of a role at some barriers with the signals of another role; None if no block has both.

    ``stages`` is the number of barriers. If it is unknown, the least distance below ``max_ahead`` is taken that
    explains all ends; with 0, waits are matched by time.
    """
    parts = _select_blocks(launch, waits, signals)
    if parts is None:
        return None
    wait_sequences, signal_sequences = parts
    rounds = _Rounds.from_signals(signal_sequences)
    arrivals = int(np.bincount(signal_sequences.block[signal_sequences.heads]).max())
    is_usable = _usable_waits(launch, wait_sequences, signal_sequences, rounds)
    ahead = (
        None
        if is_usable is None
        else _distances(wait_sequences, is_usable, signal_sequences.spans, rounds, stages, max_ahead)
    )
    if is_usable is None or ahead is None:
        unknown = np.full(len(wait_sequences.spans), UNKNOWN, np.int64)
        return Match(
            wait_sequences.spans,
            signal_sequences.spans,
            _latest_signals(wait_sequences, signal_sequences),
            False,
            0,
            unknown,
            arrivals,
        )
    round_number = wait_sequences.rank - ahead
    number = np.where(round_number >= 0, rounds.begin[wait_sequences.block] + round_number, 0).clip(
        max=len(rounds.last_signals) - 1
    )
    release = np.where(round_number >= 0, rounds.last_signals[number], _NO_SIGNAL)
    in_use = _stages_in_use(wait_sequences, ahead, signal_sequences.spans, rounds, is_cut=_is_cut(launch))
    in_use = in_use if stages is None else np.minimum(in_use, stages)
    match = Match(wait_sequences.spans, signal_sequences.spans, release, True, int(ahead.max()), in_use, arrivals)
    return match.select(is_usable)


def _is_cut(launch: LaunchPhases) -> bool:
    """Return whether some warps kept only their first records."""
    return launch.starts_kept < launch.starts_seen and not launch.keeps_last


def _select_blocks(launch: LaunchPhases, waits: Spans, signals: Spans) -> tuple[_Sequences, _Sequences] | None:
    """The waits and signals of the blocks that are examined and have both; None if there are none."""
    block = launch.warps.block
    blocks = np.array(launch.some_blocks, np.int64)
    for spans in (waits, signals):
        blocks = np.intersect1d(blocks, block[spans.warp[np.diff(spans.warp, prepend=-1) != 0]])
    if not len(blocks):
        return None
    is_chosen, number = np.isin(block, blocks), np.searchsorted(blocks, block)
    waits, signals = (spans.select(is_chosen[spans.warp]) for spans in (waits, signals))
    return _Sequences(waits, number[waits.warp]), _Sequences(signals, number[signals.warp])


def _usable_waits(
    launch: LaunchPhases, waits: _Sequences, signals: _Sequences, rounds: _Rounds
) -> NDArray[np.bool_] | None:
    """The waits that have a round of signals; None if some warp does not wait as often as the other role signals.

    Behind the last round, waits outside of loops belong to no signal: a producer waits there until all stages are free.
    Of warps that kept only their first records, as many waits count as each of the other role's warps kept signals.
    """
    in_loop = np.array([phase.loop is not None for phase in launch.phases], bool)[waits.spans.phase]
    has_round = waits.rank < rounds.count[waits.block]
    of_warp = waits.block[waits.heads]
    has_more_waits = np.add.reduceat((in_loop & ~has_round).astype(np.int64), waits.heads) > 0
    is_as_frequent = rounds.is_even[of_warp] & (waits.counts >= rounds.count[of_warp]) & ~has_more_waits
    if _is_cut(launch):
        is_as_frequent |= _equally_frequent_warps(waits, signals, rounds)
    return has_round if is_as_frequent.all() else None


def _equally_frequent_warps(waits: _Sequences, signals: _Sequences, rounds: _Rounds) -> NDArray[np.bool_]:
    """Return the warps that, until the first of the last records, wait as often as those of the other role signal: but
    for the stages of a pipeline.
    """
    of_warp = waits.block[waits.heads]
    warps = np.bincount(signals.block[signals.heads])
    first_warps = np.cumsum(warps) - warps
    common_end = np.minimum(waits.last_end, np.minimum.reduceat(signals.last_end, first_warps)[of_warp])
    wait_counts = np.add.reduceat(
        (waits.spans.end <= np.repeat(common_end, waits.counts)).astype(np.int64), waits.heads
    )
    pairs = warps[of_warp]
    pair_starts = np.cumsum(pairs) - pairs
    signal_warps = np.arange(pairs.sum()) - np.repeat(pair_starts - first_warps[of_warp], pairs)
    time_stride = int(max(signals.spans.end.max(), waits.spans.end.max())) + 1
    keys = np.repeat(np.arange(len(signals.heads)), signals.counts) * time_stride + signals.spans.end
    signal_counts = (
        np.searchsorted(keys, signal_warps * time_stride + np.repeat(common_end, pairs), side="right")
        - signals.heads[signal_warps]
    )
    min_counts = np.minimum(wait_counts, np.minimum.reduceat(signal_counts, pair_starts))
    max_counts = np.maximum(wait_counts, np.maximum.reduceat(signal_counts, pair_starts))
    return (np.minimum(waits.counts, rounds.count[of_warp]) > MAX_AHEAD) & (max_counts - min_counts <= MAX_AHEAD)


def _distances(
    waits: _Sequences,
    is_usable: NDArray[np.bool_],
    signals: Spans,
    rounds: _Rounds,
    stages: int | None,
    max_ahead: int,
) -> NDArray[np.int64] | None:
    """The number of rounds between each wait and its signal, equal for a warp; None if no distance explains all waits.

    No wait ends before its round begins. If the distance is unknown, none ends before the last signal of its round: of
    the warps of a round, perhaps only some arrive at the barrier.
    """
    is_known = stages is not None
    distances = [distance for distance in ((0, stages) if stages else range(MAX_AHEAD)) if distance < max_ahead]
    begin = signals.start[rounds.first_signals if is_known else rounds.last_signals]
    ahead = np.full(len(waits.heads), UNKNOWN, np.int64)
    for distance in distances:
        round_number = waits.rank - distance
        number = (rounds.begin[waits.block] + round_number).clip(0, len(begin) - 1)
        is_too_early = is_usable & (round_number >= 0) & (begin[number] > waits.spans.end)
        is_explained = ~np.logical_or.reduceat(is_too_early, waits.heads)
        is_explained &= is_known | (distance < np.add.reduceat(is_usable.astype(np.int64), waits.heads))
        ahead = np.where((ahead == UNKNOWN) & is_explained, distance, ahead)
        if (ahead != UNKNOWN).all():
            return np.repeat(ahead, waits.counts)
    return None


def _latest_signals(waits: _Sequences, signals: _Sequences) -> NDArray[np.int64]:
    """The last signal of the block before the end of each wait; -1 for none."""
    time_stride = int(max(signals.spans.end.max(), waits.spans.end.max())) + 1
    keys = signals.block * time_stride + signals.spans.end
    order = np.argsort(keys, kind="stable")
    position = np.searchsorted(keys[order], waits.block * time_stride + waits.spans.end, side="right") - 1
    signal = order[position.clip(0)]
    return np.where((position >= 0) & (signals.block[signal] == waits.block), signal, _NO_SIGNAL)


def _stages_in_use(
    waits: _Sequences, ahead: NDArray[np.int64], signals: Spans, rounds: _Rounds, is_cut: bool
) -> NDArray[np.int64]:
    """The stages that are in use when each wait begins; -1 behind the last signals that were kept.

    For a role that runs ahead, its waits before are stages in use that the rounds have not freed; for the other role,
    the rounds are filled stages.
    """
    round_ends = signals.end[rounds.last_signals]
    time_stride = int(max(round_ends.max(), waits.spans.start.max())) + 1
    keys = np.sort(np.repeat(np.arange(len(rounds.count)), rounds.count) * time_stride + round_ends)
    rounds_before = (
        np.searchsorted(keys, waits.block * time_stride + waits.spans.start, side="right") - rounds.begin[waits.block]
    )
    in_use = np.where(ahead > 0, waits.rank - rounds_before, rounds_before - waits.rank).clip(0)
    return np.where(rounds_before >= rounds.count[waits.block], UNKNOWN, in_use) if is_cut else in_use
