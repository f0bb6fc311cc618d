"""``mbarrier.try_wait`` and ``mbarrier.test_wait``: threads that ask whether a phase of an mbarrier is over.

They wait until that is known, or nothing else can go on; then their warp's counter tells what they had seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.simgpu.executor.forms import operands_of
from tui_probe.simgpu.executor.mbarrier_tries import Trying
from tui_probe.simgpu.executor.mbarrier_words import PARITY_BIT
from tui_probe.simgpu.executor.mbarriers import word_access, words_of
from tui_probe.simgpu.executor.model import TRY_WAIT_CYCLES
from tui_probe.simgpu.executor.scalars import PREDICATE, TYPES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.ptx.tree import Instruction
    from tui_probe.simgpu.executor.access import Access
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.operands import Binder, Source, Target
    from tui_probe.simgpu.executor.program import Finish, Scheduling

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
        def finish(group: Group, scheduler: Scheduling) -> Group | None:
            trying = self._trying(group)
            group.block = following
            return scheduler.tries.begin(trying)

        return finish

    def _trying(self, group: Group) -> Trying:
        words = words_of(self.access, group, self.line)
        parity, limit = self._parity(group), self._limit(group)
        ended = group.batch.mbarriers.ended(words, parity)
        return Trying(self.target, self.line, group, words, parity, limit, ended)

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
