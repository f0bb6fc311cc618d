"""Barriers that some threads of a block do not reach: PTX leaves open what happens then."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.lanes import Lanes, Places


class CodeBlock(NamedTuple):
    """A basic block: its first line, the blocks that may follow, and whether it does more than to end threads."""

    line: int
    successors: tuple[int, ...]
    has_operations: bool


class WaitingLanes(NamedTuple):
    """Lanes at the barrier instruction of a line since ``time``; basic block ``following`` is behind it.

    ``slots`` number the barriers of all blocks; ``is_whole`` if all threads of a block have to arrive.
    """

    line: int
    is_whole: bool
    slots: Places
    lanes: Lanes
    following: int
    time: int

    def keys(self, opened: NDArray[np.bool_]) -> Places:
        """Return, by lane, what must be at one instruction: a barrier, or a warp; -1 where the barrier stays shut."""
        keys = self.slots if self.is_whole else self.lanes.warp
        result: Places = np.where(opened[self.slots], keys, -1)
        return result


class SplitBarrier(NamedTuple):
    """Places (see ``lanes``) of a thread at a barrier's line, and of one that is elsewhere."""

    line: int
    place: int
    other_line: int
    other_place: int
    other_waits: bool


class SplitBarrierSearch:
    """Divergent barriers of a batch of ``place_count`` places, in a program of ``code``."""

    def __init__(self, code: Sequence[CodeBlock], place_count: int) -> None:
        self._code = code
        self._exit_block = np.full(place_count, -1, np.int64)
        self._exit_time = np.full(place_count, -1, np.int64)

    def retired(self, lanes: Lanes, block: int, time: int) -> None:
        """Lanes end in a basic block."""
        self._exit_block[lanes.places] = block
        self._exit_time[lanes.places] = time

    def found(self, waits: Sequence[WaitingLanes], opened: NDArray[np.bool_]) -> Iterator[SplitBarrier]:
        """The split barriers that open now; ``waits`` are all lanes that wait at any of them."""
        for number, wait in enumerate(waits):
            for other in waits[number + 1 :]:
                if other.line != wait.line and other.is_whole == wait.is_whole:
                    yield from _elsewhere(wait, other, opened)
            if wait.is_whole:
                yield from self._left(wait, opened)

    def _left(self, wait: WaitingLanes, opened: NDArray[np.bool_]) -> Iterator[SplitBarrier]:
        """Threads that ended behind the barrier, without it, while others waited there."""
        blocks = np.unique(wait.lanes.block[opened[wait.slots]])
        size = wait.lanes.places_per_block
        left = np.flatnonzero(self._exit_time >= wait.time)
        left = left[np.isin(left // size, blocks)]
        if not len(left):
            return
        behind = [block for block in self._behind(wait.following) if self._code[block].has_operations]
        left = left[np.isin(self._exit_block[left], behind)]
        if len(left):
            place = int(left[0])
            waiting = wait.lanes.places[wait.lanes.block == place // size]
            line = self._code[int(self._exit_block[place])].line
            yield SplitBarrier(wait.line, int(waiting[0]), line, place, other_waits=False)

    def _behind(self, block: int) -> set[int]:
        """A basic block and all that may be executed after it."""
        reached, left = {block}, [block]
        while left:
            for successor in self._code[left.pop()].successors:
                if successor not in reached:
                    reached.add(successor)
                    left.append(successor)
        return reached


def _elsewhere(wait: WaitingLanes, other: WaitingLanes, opened: NDArray[np.bool_]) -> Iterator[SplitBarrier]:
    """Lanes of one block, or of one warp, that wait at two instructions for each other."""
    keys, other_keys = wait.keys(opened), other.keys(opened)
    common = np.intersect1d(keys[keys >= 0], other_keys[other_keys >= 0])
    if len(common):
        place = int(wait.lanes.places[np.argmax(keys == common[0])])
        other_place = int(other.lanes.places[np.argmax(other_keys == common[0])])
        yield SplitBarrier(wait.line, place, other.line, other_place, other_waits=True)
