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

    One per lane: the index of the ``word``, the phase's ``parity``, the most cycles to wait, and when the phase
    ``ended``, -1 while that is not known.
    """

    target: ResultOperand
    line: int
    group: ThreadGroup
    word: Places
    parity: NDArray[np.bool_]
    limit: NDArray[np.int64]
    ended: NDArray[np.int64]

    @property
    def any_known(self) -> bool:
        """True if the phase of any lane has ended."""
        return bool((self.ended >= 0).any())

    def phase_ended(self, word: int, parity: int, time: int) -> None:
        """The phase of that parity of ``word`` ended at ``time``."""
        self.ended[(self.word == word) & (self.parity == bool(parity)) & (self.ended < 0)] = time

    def split_unknown(self) -> PhaseWait | None:
        """Take the lanes out whose phase has not ended; None if there are none."""
        unknown = self.ended < 0
        if not unknown.any():
            return None
        group = self.group.split(unknown, self.group.block)
        parity, limit, ended = self.parity[unknown], self.limit[unknown], self.ended[unknown]
        others = PhaseWait(self.target, self.line, group, self.word[unknown], parity, limit, ended)
        known = ~unknown
        self.word, self.parity = self.word[known], self.parity[known]
        self.limit, self.ended = self.limit[known], self.ended[known]
        return others

    def answer(self) -> ThreadGroup:
        """The group, behind the instruction, with its answer at the time when it has it."""
        lanes, counters, checks = self.group.lanes, self.group.batch.counters, self.group.batch.checks
        limit = counters[lanes.warp] + self.limit
        is_over = (self.ended >= 0) & (self.ended <= limit)
        np.maximum.at(counters, lanes.warp, np.where(is_over, self.ended, limit))
        self.target.write(self.group.registers, is_over)
        if checks is not None and is_over.any():
            checks.order.leave_phase(self.word[is_over], lanes.select(np.flatnonzero(is_over)))
        return self.group

    def deadlock(self) -> DeadlockError:
        """Return the error that the phase of the first lane never ends."""
        batch, word = self.group.batch, int(self.word[0])
        address, state = word * WORD_BYTES % batch.shared.stride, MBarrierWord.of(int(batch.shared.view(U64)[word]))
        arrivals = f"{state.expected - state.missing} of {state.expected} arrivals"
        to_come = f", {state.transfer} bytes to come" if state.transfer else ""
        detail = f"phase {int(self.parity[0])} does not end: it has {arrivals}{to_come}"
        where = batch.describe(self.group.lanes, 0)
        return DeadlockError(f"the mbarrier at {address:#x} of shared memory", self.line, where, detail)


class PhaseWaits:
    """All threads of a batch that try its mbarriers."""

    def __init__(self, mbarriers: MBarriers) -> None:
        self._mbarriers = mbarriers
        self._trying: list[PhaseWait] = []
        # Changes of mbarriers at the last round in which all gave up, and such rounds since the last change.
        self._changes_before = 0
        self._failed_rounds = 0
        mbarriers.watchers.append(self._phase_ended)

    def _phase_ended(self, word: int, parity: int, time: int) -> None:
        for trial in self._trying:
            trial.phase_ended(word, parity, time)

    def begin(self, trying: PhaseWait) -> ThreadGroup | None:
        """The lanes that continue at the same time, with their answer; the others wait here."""
        if not trying.any_known:
            self._trying.append(trying)
            return None
        others = trying.split_unknown()
        if others is not None:
            self._trying.append(others)
        return trying.answer()

    @property
    def any_waiting(self) -> bool:
        """True if threads wait for an answer."""
        return bool(self._trying)

    def waits(self) -> Iterator[tuple[int, Lanes]]:
        """The line and the lanes of each group that waits for a phase."""
        return ((trial.line, trial.group.lanes) for trial in self._trying)

    def release(self) -> list[ThreadGroup]:
        """The groups that continue, for what they try has happened."""
        return self._answered([trial for trial in self._trying if trial.any_known])

    def give_up(self) -> list[ThreadGroup]:
        """All groups that try an mbarrier continue, though nothing has happened. Raises DeadlockError after many
        times.
        """
        has_changed = self._changes_before != self._mbarriers.changes
        self._failed_rounds = 0 if has_changed else self._failed_rounds + 1
        self._changes_before = self._mbarriers.changes
        if self._failed_rounds > MAX_TRIES:
            raise self._trying[0].deadlock()
        return self._answered(list(self._trying), give_up=True)

    def _answered(self, answered: list[PhaseWait], *, give_up: bool = False) -> list[ThreadGroup]:
        """Take waits out and return their groups; lanes without an answer stay, unless they ``give_up``."""
        groups = []
        for trial in answered:
            self._trying.remove(trial)
            others = None if give_up else trial.split_unknown()
            if others is not None:
                self._trying.append(others)
            groups.append(trial.answer())
        return groups
