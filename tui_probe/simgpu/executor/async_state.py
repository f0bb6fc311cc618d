"""Completion of asynchronous work in a batch: mbarriers and groups of copies.

An mbarrier is one word of 64 bits, whose layout PTX leaves open. Here:

    bits  0 to 19   arrivals that its phase still waits for
    bits 20 to 39   arrivals that each phase waits for
    bits 40 to 60   bytes of copies that are expected and not yet there (tx-count), signed
    bit  63         the parity of the phase, which changes with each

A phase ends when no arrival and no byte is missing. What ``mbarrier.arrive`` returns, the state, is the word before it.
When phases end is known to the executor only, see ``model``. PTX leaves open what happens beyond the limits of these
numbers, or to a word that was not initialised; here it ends the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.simgpu.executor.scalars import U64

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.lanes import Lanes, Places
    from tui_probe.simgpu.executor.memory import SharedMemory

MAX_COUNT: Final = (1 << 20) - 1
"""Largest count of an mbarrier, by the PTX ISA."""
PARITY_BIT: Final = 63
WORD_BYTES: Final = 8
"""Bytes of an mbarrier."""
_EXPECTED_BIT: Final = 20
_BYTES_BIT: Final = 40
_BYTES_BITS: Final = 21
MAX_TRACKED_GROUPS: Final = 32
"""Groups that are distinguished; a wait can leave fewer than these pending."""


@dataclass(slots=True)
class MBarrierWord:
    """State of an mbarrier.

    ``pending_count`` of the ``expected_count`` arrivals of the phase and ``tx_count`` bytes are still to come.
    ``parity`` is that of the phase.
    """

    pending_count: int
    expected_count: int
    tx_count: int
    parity: int

    @classmethod
    def from_bits(cls, bits: int) -> MBarrierWord:
        """The contents of a word of shared memory."""
        tx_count = bits >> _BYTES_BIT & (1 << _BYTES_BITS) - 1
        sign = tx_count >> _BYTES_BITS - 1
        expected_count = bits >> _EXPECTED_BIT & MAX_COUNT
        return cls(bits & MAX_COUNT, expected_count, tx_count - (sign << _BYTES_BITS), bits >> PARITY_BIT)

    def bits(self) -> int:
        """The word for shared memory."""
        tx_count = self.tx_count & (1 << _BYTES_BITS) - 1
        return (
            self.pending_count
            | self.expected_count << _EXPECTED_BIT
            | tx_count << _BYTES_BIT
            | self.parity << PARITY_BIT
        )

    def problem(self) -> str:
        """Description of an impossible phase, or ""."""
        if not self.expected_count:
            return "the mbarrier is not initialised"
        if not 0 <= self.pending_count <= MAX_COUNT:
            return "more arrivals than the phase expects"
        return "" if abs(self.tx_count) <= MAX_COUNT else f"the mbarrier expects more than {MAX_COUNT} bytes"


@dataclass(frozen=True, slots=True)
class MBarrierEvent:
    """Event of one lane at an mbarrier.

    ``arrivals`` are done, and later phases expect ``dropped_arrivals`` fewer. ``tx_count`` bytes are to come, negative
    for those that are there. ``may_end`` tells whether it may be what ends the phase.
    """

    arrivals: int = 0
    tx_count: int = 0
    dropped_arrivals: int = 0
    may_end: bool = True


class MBarriers:
    """The mbarriers of a batch of blocks. Words are named by their index in shared memory, times are cycles since the
    start of the block. ``watchers`` are given word, parity and time of each phase that ends.
    """

    def __init__(self, shared_memory: SharedMemory) -> None:
        self._shared_memory = shared_memory
        # When the phase before the present one ended, and the last event of the present one so far.
        self._phase_ends: dict[int, int] = {}
        self._latest_events: dict[int, int] = {}
        self.watchers: list[Callable[[int, int, int], None]] = []
        self.changes = 0

    def initialise(self, word: int, count: int) -> str:
        """Begin phase 0, which expects ``count`` arrivals. Return the problem, or ""."""
        if not 1 <= count <= MAX_COUNT:
            return f"the count is {count}, but must be from 1 to {MAX_COUNT}"
        self._store(word, MBarrierWord(count, count, 0, 0))
        self._phase_ends[word] = self._latest_events[word] = 0
        return ""

    def invalidate(self, word: int) -> None:
        """End the use of a word as an mbarrier."""
        self._shared_memory.view(U64)[word] = 0

    def apply_event(self, word: int, event: MBarrierEvent, time: int) -> str:
        """Apply an event at ``time``. Return what is wrong with it, or ""."""
        state = MBarrierWord.from_bits(int(self._shared_memory.view(U64)[word]))
        if problem := state.problem():
            return problem
        state.pending_count -= event.arrivals
        state.expected_count -= event.dropped_arrivals
        state.tx_count += event.tx_count
        self._latest_events[word] = max(self._latest_events.get(word, 0), time)
        # All threads may have dropped out: then no phase follows.
        if state.pending_count or state.tx_count:
            problem = state.problem() if state.expected_count else ""
        elif event.may_end:
            self._end_phase(word, state)
        else:
            problem = "an arrival with .noComplete would complete the phase"
        if not problem:
            self._store(word, state)
        return problem

    def _end_phase(self, word: int, state: MBarrierWord) -> None:
        self._phase_ends[word] = time = max(self._latest_events[word], self._phase_ends.get(word, 0))
        for watcher in self.watchers:
            watcher(word, state.parity, time)
        state.pending_count, state.parity = state.expected_count, 1 - state.parity
        self._latest_events[word] = time

    def _store(self, word: int, state: MBarrierWord) -> None:
        self._shared_memory.view(U64)[word] = state.bits()
        self.changes += 1

    def phase_ends(self, words: Places, parity: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return, per lane, when the phase of that ``parity`` of its word ended; -1 if unknown."""
        is_over = (self._shared_memory.view(U64)[words] >> np.uint64(PARITY_BIT)).astype(np.bool_) != parity
        ends = np.array([self._phase_ends.get(word, 0) for word in words.tolist()], np.int64)
        return np.where(is_over, ends, -1)


class CopyGroups:
    """The copies of one kind. Times are cycles since the start of the block, as a warp's counter is."""

    def __init__(self, place_count: int) -> None:
        self._uncommitted_ends = np.zeros(place_count, np.int64)
        # The newest group first; all that are older than the others share the last column.
        self._group_ends = np.zeros((place_count, MAX_TRACKED_GROUPS), np.int64)

    def add(self, lanes: Lanes, end: NDArray[np.int64]) -> None:
        """Add a copy that each of ``lanes`` issued, and that is done at ``end``, one per lane."""
        self._uncommitted_ends[lanes.places] = np.maximum(self._uncommitted_ends[lanes.places], end)

    def commit(self, lanes: Lanes) -> None:
        """Commit the copies that each lane issued since its last group as a group."""
        group_ends = self._group_ends[lanes.places]
        oldest_end = group_ends[:, -2:].max(axis=1)
        group_ends[:, 1:] = group_ends[:, :-1]
        group_ends[:, -1] = oldest_end
        group_ends[:, 0] = self._uncommitted_ends[lanes.places]
        self._group_ends[lanes.places] = group_ends
        self._uncommitted_ends[lanes.places] = 0

    def end_of_groups(self, lanes: Lanes, pending: int) -> NDArray[np.int64]:
        """Return the end of all groups but the ``pending`` newest, for each lane. ``pending`` is less than
        ``MAX_TRACKED_GROUPS``.
        """
        end_times: NDArray[np.int64] = self._group_ends[lanes.places, pending:].max(axis=1)
        return end_times

    def end_of_all(self, lanes: Lanes) -> NDArray[np.int64]:
        """Return the end of all copies, in groups or not, for each lane."""
        return np.maximum(self._uncommitted_ends[lanes.places], self.end_of_groups(lanes, 0))
