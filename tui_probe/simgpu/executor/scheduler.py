"""Which group of a batch runs next.

The group with the deepest call stack and the smallest basic block goes first, until it reaches a place
where another one waits: then they are merged. Compilers lay out code so that paths meet further down,
so this makes divergent paths meet early. A group that jumps back in a loop that may wait for another thread (it
holds an atomic, a volatile load or the like) gives way to all others, so that every thread gets on. One that tries an
mbarrier waits for the end of the phase, and gives up only where nothing else can go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from tui_probe.simgpu.executor.barriers import Barriers
from tui_probe.simgpu.executor.faults import DeadlockError
from tui_probe.simgpu.executor.group import Group, merge
from tui_probe.simgpu.executor.mbarrier_tries import Tries

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.batch import Batch
    from tui_probe.simgpu.executor.operands import Source
    from tui_probe.simgpu.executor.program import Block, Program

Place: TypeAlias = tuple[int, tuple[int, ...], int]

_ROUNDS: Final = 1000
"""How often groups that ask in a loop run while others try an mbarrier, before these give up."""


class Scheduler:
    """Runs the threads of a batch through a program until all have exited."""

    def __init__(self, program: Program, batch: Batch) -> None:
        self.program = program
        self.batch = batch
        self.barriers = Barriers(batch)
        self.tries = Tries(batch.mbarriers)
        self._ready: dict[Place, list[Group]] = {}
        # Groups that wait for lanes of their warps at a `.sync` instruction.
        self._assembling: dict[Place, Group] = {}
        self._turns = 0
        self._rounds = 0

    def put(self, group: Group, gives_way: bool = False) -> None:
        """Keeps ``group`` for later; after all others, if it ``gives_way``."""
        if gives_way:
            self._turns += 1
            group.turn = self._turns
        self._ready.setdefault(group.place, []).append(group)

    def give_way(self, group: Group) -> Group | None:
        """Lets all others go before ``group``, which waits for something in a loop."""
        if not (self._ready or self._assembling or self.barriers.any_waiting or self.tries.any_waiting):
            return group
        self.put(group, gives_way=True)
        return None

    def run(self, group: Group | None) -> None:
        """Runs ``group`` and all that comes from it. Raises SimulationError."""
        while group is not None:
            self._advance(group)
            group = self._next()
        self.barriers.check_deadlock()
        for waiting in self._assembling.values():
            line = self.program.blocks[waiting.block].line
            where = self.batch.describe(waiting.lanes, 0)
            message = f"deadlock at line {line}: {where} waits for threads of its warp that never come"
            raise DeadlockError(message)

    def _advance(self, start: Group) -> None:
        """Runs a group until it waits, ends, or another one should go before it."""
        blocks, batch, ready = self.program.blocks, self.batch, self._ready
        group: Group | None = start
        while group is not None:
            block = blocks[group.block]
            if block.members is not None and group.lanes.count != batch.alive_count:
                group = self._assembled(group, block)
                if group is None:
                    return
            for operation in block.operations:
                operation(group)
            batch.charge(group.lanes, block.cycles, block.length)
            group = block.finish(group, self)
            if ready and group is not None and self._should_wait(group):
                self.put(group)
                return

    def _should_wait(self, group: Group) -> bool:
        place = group.place
        return any(other <= place and not _turn(groups) for other, groups in self._ready.items())

    def _next(self) -> Group | None:
        """The next group to run, with all others at the same place; None if nothing can run."""
        if all(_turn(groups) for groups in self._ready.values()):
            # Nothing runs freely: see what those that wait are waiting for.
            self._release()
            self._give_up()
        if not self._ready:
            return None
        place = min(self._ready, key=lambda place: (_turn(self._ready[place]), place))
        group = merge(self._ready.pop(place))
        group.turn = 0
        return group

    def _release(self) -> None:
        for group in (*self.barriers.release(), *self.tries.release()):
            self.put(group)
        for place, group in list(self._assembling.items()):
            # Others may have exited meanwhile.
            members = self.program.blocks[group.block].members
            if members is not None and (self._missing(members, group) == 0).any():
                del self._assembling[place]
                self.put(group)

    def _give_up(self) -> None:
        """Lets those that try an mbarrier in vain go on, where all others wait or ask for something in a loop.

        The others get many rounds first: the time that a try takes is exact only if the phase ends meanwhile.
        """
        if not self.tries.any_waiting or not all(_turn(groups) for groups in self._ready.values()):
            self._rounds = 0
            return
        self._rounds += 1
        if not self._ready or self._rounds > _ROUNDS:
            self._rounds = 0
            for group in self.tries.give_up():
                self.put(group)

    def _assembled(self, group: Group, block: Block) -> Group | None:
        """The lanes of ``group`` whose warps are complete for a warp-level operation; the others wait here."""
        place = group.place
        earlier = self._assembling.pop(place, None)
        if earlier is not None:
            group = merge([earlier, group])
        if block.members is None:
            return group
        complete = self._missing(block.members, group) == 0
        if complete.all():
            return group
        if not complete.any():
            self._assembling[place] = group
            return None
        self._assembling[place] = group.split(~np.asarray(complete), group.block)
        return group

    def _missing(self, members: Source, group: Group) -> NDArray[np.uint32]:
        return self.batch.missing_members(members.read(group.registers), group.lanes)


def _turn(groups: list[Group]) -> int:
    return min(group.turn for group in groups)
