"""Threads of a batch that try mbarriers: each waits until the phase that it asks for ends, or its time is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.simgpu.executor.async_state import WORD_BYTES, MBarrierWord
from tui_probe.simgpu.executor.faults import DeadlockError
from tui_probe.simgpu.executor.scalars import U64

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.async_state import MBarriers
    from tui_probe.simgpu.executor.lanes import Lanes, Places
    from tui_probe.simgpu.executor.operations import ResultOperand
    from tui_probe.simgpu.executor.threads import ThreadGroup

MAX_TRIES: Final = 10_000
"""Failed rounds of all threads, with no change of any mbarrier, that count as a deadlock."""


@dataclass(slots=True)
class PhaseWait:
    """Lanes that try at ``line``, and keep the answer in ``target``.

    One per lane: the index of the ``word``, the phase's ``parity``, the ``max_cycles`` to wait, and the phase's
    ``end_time``, -1 while it is not known.
    """

    target: ResultOperand
    line: int
    group: ThreadGroup
    word: Places
    parity: NDArray[np.bool_]
    max_cycles: NDArray[np.int64]
    end_time: NDArray[np.int64]

    @property
    def has_answer(self) -> bool:
        """True if the phase of any lane has ended."""
        return bool((self.end_time >= 0).any())

    def record_end(self, word: int, parity: int, time: int) -> None:
        """Keep ``time`` as the end of the phase of that parity of ``word``."""
        self.end_time[(self.word == word) & (self.parity == bool(parity)) & (self.end_time < 0)] = time

    def split_pending(self) -> PhaseWait | None:
        """Take the lanes out whose phase has not ended; None if there are none."""
        is_pending = self.end_time < 0
        if not is_pending.any():
            return None
        group = self.group.split_off(is_pending, self.group.block)
        parity, max_cycles, end_time = self.parity[is_pending], self.max_cycles[is_pending], self.end_time[is_pending]
        pending_wait = PhaseWait(self.target, self.line, group, self.word[is_pending], parity, max_cycles, end_time)
        is_known = ~is_pending
        self.word, self.parity = self.word[is_known], self.parity[is_known]
        self.max_cycles, self.end_time = self.max_cycles[is_known], self.end_time[is_known]
        return pending_wait

    def answer(self) -> ThreadGroup:
        """Return the group, behind the instruction, with the answer, at the time when it gets it."""
        lanes, counters, checks = self.group.lanes, self.group.batch.counters, self.group.batch.checks
        limit = counters[lanes.warp] + self.max_cycles
        is_over = (self.end_time >= 0) & (self.end_time <= limit)
        np.maximum.at(counters, lanes.warp, np.where(is_over, self.end_time, limit))
        self.target.write(self.group.registers, is_over)
        if checks is not None and is_over.any():
            checks.order.leave_phase(self.word[is_over], lanes.select(np.flatnonzero(is_over)))
        return self.group

    def deadlock_error(self) -> DeadlockError:
        """Return the error that the phase of the first lane never ends."""
        batch, word = self.group.batch, int(self.word[0])
        address = word * WORD_BYTES % batch.shared_memory.stride
        state = MBarrierWord.from_bits(int(batch.shared_memory.view(U64)[word]))
        arrivals = f"{state.expected_count - state.pending_count} of {state.expected_count} arrivals"
        pending_bytes = f", {state.tx_count} bytes to come" if state.tx_count else ""
        detail = f"phase {int(self.parity[0])} does not end: it has {arrivals}{pending_bytes}"
        location = batch.describe(self.group.lanes, 0)
        return DeadlockError(f"the mbarrier at {address:#x} of shared memory", self.line, location, detail)


class PhaseWaits:
    """All threads of a batch that try its mbarriers."""

    def __init__(self, mbarriers: MBarriers) -> None:
        self._mbarriers = mbarriers
        self._waits: list[PhaseWait] = []
        # Changes of mbarriers at the last round in which all gave up, and such rounds since the last change.
        self._changes_before = 0
        self._failed_rounds = 0
        mbarriers.watchers.append(self._record_end)

    def _record_end(self, word: int, parity: int, time: int) -> None:
        for wait in self._waits:
            wait.record_end(word, parity, time)

    def begin(self, wait: PhaseWait) -> ThreadGroup | None:
        """Return the lanes that have an answer, and keep the others."""
        if not wait.has_answer:
            self._waits.append(wait)
            return None
        pending_wait = wait.split_pending()
        if pending_wait is not None:
            self._waits.append(pending_wait)
        return wait.answer()

    @property
    def has_waiting(self) -> bool:
        """True if threads wait for an answer."""
        return bool(self._waits)

    def waiting_lanes(self) -> Iterator[tuple[int, Lanes]]:
        """The line and the lanes of each group that waits for a phase."""
        return ((wait.line, wait.group.lanes) for wait in self._waits)

    def release(self) -> list[ThreadGroup]:
        """Return the groups that continue, because their phase has ended."""
        return self._answer_waits([wait for wait in self._waits if wait.has_answer])

    def give_up(self) -> list[ThreadGroup]:
        """Let all groups that try an mbarrier continue without the end of its phase.

        Raises DeadlockError after many times.
        """
        has_changed = self._changes_before != self._mbarriers.changes
        self._failed_rounds = 0 if has_changed else self._failed_rounds + 1
        self._changes_before = self._mbarriers.changes
        if self._failed_rounds > MAX_TRIES:
            raise self._waits[0].deadlock_error()
        return self._answer_waits(list(self._waits), give_up=True)

    def _answer_waits(self, waits: list[PhaseWait], *, give_up: bool = False) -> list[ThreadGroup]:
        """Take waits out and return their groups; lanes without an answer stay, unless they ``give_up``."""
        groups = []
        for wait in waits:
            self._waits.remove(wait)
            pending_wait = None if give_up else wait.split_pending()
            if pending_wait is not None:
                self._waits.append(pending_wait)
            groups.append(wait.answer())
        return groups
