"""Threads that ask whether a phase of an mbarrier is over, until that is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.simgpu.executor.faults import DeadlockError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.lanes import Places
    from tui_probe.simgpu.executor.mbarrier_words import MBarriers
    from tui_probe.simgpu.executor.operands import Target

MOST_TRIES: Final = 10_000
"""How often all threads may try in vain while no mbarrier changes, until that counts as a deadlock."""


@dataclass(slots=True)
class Trying:
    """Lanes that try at ``line``, and keep the answer in ``target``.

    One per lane: the index of the ``word``, the phase's ``parity``, the most cycles to wait, and when the phase
    ``ended``, -1 while that is not known.
    """

    target: Target
    line: int
    group: Group
    word: Places
    parity: NDArray[np.bool_]
    limit: NDArray[np.int64]
    ended: NDArray[np.int64]

    @property
    def any_known(self) -> bool:
        """Whether the phase of any lane has ended."""
        return bool((self.ended >= 0).any())

    def phase_ended(self, word: int, parity: int, time: int) -> None:
        """The phase of that parity of ``word`` ended at ``time``."""
        self.ended[(self.word == word) & (self.parity == bool(parity)) & (self.ended < 0)] = time

    def split_unknown(self) -> Trying | None:
        """Takes the lanes out whose phase has not ended; None if there are none."""
        unknown = self.ended < 0
        if not unknown.any():
            return None
        rest = self.group.split(unknown, self.group.block)
        taken = self._lanes(unknown, rest)
        own = self._lanes(~unknown, self.group)
        self.word, self.parity, self.limit, self.ended = own.word, own.parity, own.limit, own.ended
        return taken

    def _lanes(self, chosen: NDArray[np.bool_], group: Group) -> Trying:
        """Those lanes, which ``group`` has now."""
        parity, limit, ended = self.parity[chosen], self.limit[chosen], self.ended[chosen]
        return Trying(self.target, self.line, group, self.word[chosen], parity, limit, ended)

    def answer(self) -> Group:
        """The group, behind the instruction, with its answer at the time when it has it."""
        lanes, counters = self.group.lanes, self.group.batch.counters
        limit = counters[lanes.warp] + self.limit
        is_over = (self.ended >= 0) & (self.ended <= limit)
        np.maximum.at(counters, lanes.warp, np.where(is_over, self.ended, limit))
        self.target.write(self.group.registers, is_over)
        return self.group

    def describe(self) -> str:
        """One of the lanes, and where it is, for messages."""
        return f"line {self.line}: {self.group.batch.describe(self.group.lanes, 0)}"


class Tries:
    """All threads of a batch that try its mbarriers."""

    def __init__(self, mbarriers: MBarriers) -> None:
        self._mbarriers = mbarriers
        self._trying: list[Trying] = []
        self._seen = 0
        self._in_vain = 0
        mbarriers.watchers.append(self._phase_ended)

    def _phase_ended(self, word: int, parity: int, time: int) -> None:
        for each in self._trying:
            each.phase_ended(word, parity, time)

    def begin(self, trying: Trying) -> Group | None:
        """The lanes that go on at once, with their answer; the others wait here."""
        if not trying.any_known:
            self._trying.append(trying)
            return None
        rest = trying.split_unknown()
        if rest is not None:
            self._trying.append(rest)
        return trying.answer()

    @property
    def any_waiting(self) -> bool:
        """Whether threads wait for an answer."""
        return bool(self._trying)

    def release(self) -> list[Group]:
        """The groups that go on, for what they try has happened."""
        return self._answered([each for each in self._trying if each.any_known])

    def give_up(self) -> list[Group]:
        """All groups that try an mbarrier go on, though nothing has happened. Raises DeadlockError after many times."""
        self._in_vain = self._in_vain + 1 if self._seen == self._mbarriers.changes else 0
        self._seen = self._mbarriers.changes
        if self._in_vain > MOST_TRIES:
            raise DeadlockError(f"deadlock at an mbarrier, {self._trying[0].describe()} waits for a phase without end")
        return self._answered(list(self._trying), give_up=True)

    def _answered(self, those: list[Trying], *, give_up: bool = False) -> list[Group]:
        groups = []
        for each in those:
            self._trying.remove(each)
            rest = None if give_up else each.split_unknown()
            if rest is not None:
                self._trying.append(rest)
            groups.append(each.answer())
        return groups
