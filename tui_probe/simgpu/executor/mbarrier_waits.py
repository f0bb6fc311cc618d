"""``mbarrier.try_wait`` and ``mbarrier.test_wait``: threads that ask whether a phase of an mbarrier is over.

They wait until that is known, or nothing else can go on; then their warp's counter tells what they had seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.simgpu.executor.forms import operands_of
from tui_probe.simgpu.executor.mbarriers import PARITY_BIT, word_access, words_of
from tui_probe.simgpu.executor.model import TRY_WAIT_CYCLES
from tui_probe.simgpu.executor.scalars import PREDICATE, TYPES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.ptx.tree import Instruction
    from tui_probe.simgpu.executor.access import Access
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.lanes import Places
    from tui_probe.simgpu.executor.operands import Binder, Source, Target
    from tui_probe.simgpu.executor.program import Finish
    from tui_probe.simgpu.executor.scheduler import Scheduler

_KHZ_PER_NANOSECOND: Final = 1_000_000


@dataclass(slots=True)
class Try:
    """The instruction. ``phase`` is a state or, with ``by_parity``, a parity; ``nanoseconds`` how long it may wait."""

    access: Access
    phase: Source
    by_parity: bool
    waits: bool
    nanoseconds: Source | None
    target: Target
    line: int
    may_end: bool = False

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:  # noqa: ARG002
        return (following,)

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:  # noqa: ARG002
        def finish(group: Group, scheduler: Scheduler) -> Group | None:  # noqa: ARG001
            return self._begin(group, following)

        return finish

    def _begin(self, group: Group, following: int) -> Group | None:
        """The lanes that go on at once; the others stay with the mbarriers of the batch."""
        words, parity, limit = words_of(self.access, group, self.line), self._parity(group), self._limit(group)
        group.block = following
        mbarriers = group.batch.mbarriers
        trying = Trying(self, group, words, parity, limit, mbarriers.ended(words, parity))
        if not trying.any_known:
            mbarriers.trying.append(trying)
            return None
        rest = trying.split_unknown()
        if rest is not None:
            mbarriers.trying.append(rest)
        return trying.answer()

    def _parity(self, group: Group) -> NDArray[np.bool_]:
        phase = group.lanes.spread(self.phase.read(group.registers))
        bit = phase & np.uint32(1) if self.by_parity else phase >> np.uint64(PARITY_BIT)
        return bit.astype(np.bool_)

    def _limit(self, group: Group) -> NDArray[np.int64]:
        """For how many cycles each lane may wait."""
        if self.nanoseconds is None:
            return np.full(group.lanes.count, TRY_WAIT_CYCLES if self.waits else 0, np.int64)
        time = group.lanes.spread(self.nanoseconds.read(group.registers)).astype(np.int64)
        return time * group.batch.machine.clock_khz // _KHZ_PER_NANOSECOND


@dataclass(slots=True)
class Trying:
    """Lanes that try. One per lane: the index of the ``word``, the phase's ``parity``, the most cycles to wait, and
    when the phase ``ended``, -1 while that is not known.
    """

    instruction: Try
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
        return Trying(
            self.instruction, group, self.word[chosen], self.parity[chosen], self.limit[chosen], self.ended[chosen]
        )

    def answer(self) -> Group:
        """The group, behind the instruction, with its answer at the time when it has it."""
        lanes, counters = self.group.lanes, self.group.batch.counters
        limit = counters[lanes.warp] + self.limit
        is_over = (self.ended >= 0) & (self.ended <= limit)
        np.maximum.at(counters, lanes.warp, np.where(is_over, self.ended, limit))
        self.instruction.target.write(self.group.registers, is_over)
        return self.group

    def describe(self) -> str:
        """One of the lanes, and where it is, for messages."""
        return f"line {self.instruction.line}: {self.group.batch.describe(self.group.lanes, 0)}"


def build_try(instruction: Instruction, bind: Binder) -> Try | None:
    """``mbarrier.test_wait|try_wait{.parity}….b64 over, [address], phase{, nanoseconds}``; None for the others."""
    kind = instruction.modifiers[0] if instruction.modifiers else ""
    if kind not in ("test_wait", "try_wait"):
        return None
    waits, by_parity = kind == "try_wait", "parity" in instruction.modifiers
    over, address, phase, *rest = operands_of(instruction, 3, 3 + waits)
    return Try(
        access=word_access(address, instruction, bind),
        phase=bind.source(phase, TYPES["u32" if by_parity else "b64"]),
        by_parity=by_parity,
        waits=waits,
        nanoseconds=bind.source(rest[0], TYPES["u32"]) if rest else None,
        target=bind.target(over, PREDICATE),
        line=bind.line,
    )
