"""Barriers that some threads of a block do not reach: PTX leaves open what happens then."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.lanes import Lanes, Places


class CodeBlock(NamedTuple):
    """A basic block: the line of its first operation, 0 if it has none of the kernel's own; the blocks that may follow;
    and whether it ends at a barrier of all threads of a block.
    """

    line: int
    successors: tuple[int, ...]
    meets_block: bool


class WaitingLanes(NamedTuple):
    """Lanes at the barrier instruction of a line; basic block ``next_block`` is behind it.

    ``slots`` number the barriers of all blocks; ``is_whole`` if all threads of a block have to arrive.
    """

    line: int
    is_whole: bool
    slots: Places
    lanes: Lanes
    next_block: int

    def keys(self, is_open: NDArray[np.bool_]) -> Places:
        """Return, by lane, what must be at one instruction: a barrier, or a warp; -1 where the barrier stays shut."""
        keys = self.slots if self.is_whole else self.lanes.warp
        result: Places = np.where(is_open[self.slots], keys, -1)
        return result


class SplitBarrier(NamedTuple):
    """Places (see ``lanes``) of a thread at a barrier's line, and of one that is elsewhere."""

    line: int
    place: int
    other_line: int
    other_place: int
    other_waits: bool


class SplitBarrierSearch:
    """Divergent barriers of a batch of ``place_count`` places, in a program of ``code``.

    A thread bypasses a barrier if it executes code behind the barrier from which no path leads back to it, and ends.
    One that goes straight to the end of the kernel does not: its exit counts as its arrival (PTX ISA, exit).
    """

    def __init__(self, code: Sequence[CodeBlock], place_count: int) -> None:
        self._code = code
        self._blocks_by_barrier = {
            number + 1: _blocks_behind(code, number) for number, block in enumerate(code) if block.meets_block
        }
        self._is_beyond_any = [False] * len(code)
        for block in set[int]().union(*self._blocks_by_barrier.values()):
            self._is_beyond_any[block] = True
        # By place: the last block of those behind barriers that the thread executed, once it has ended.
        self._last_blocks = np.full(place_count, -1, np.int64)
        self._has_ended = np.zeros(place_count, np.bool_)

    def record_block(self, lanes: Lanes, block: int) -> None:
        """Record that lanes execute a basic block."""
        if self._is_beyond_any[block]:
            self._last_blocks[lanes.places] = block

    def record_exit(self, lanes: Lanes) -> None:
        """Record that lanes end."""
        self._has_ended[lanes.places] = True

    def split_barriers(self, waits: Sequence[WaitingLanes], is_open: NDArray[np.bool_]) -> Iterator[SplitBarrier]:
        """Yield the split barriers among those that open now (``is_open``, by slot).

        ``waits`` are all lanes that wait at any of them.
        """
        for number, wait in enumerate(waits):
            for other_wait in waits[number + 1 :]:
                if other_wait.line != wait.line and other_wait.is_whole == wait.is_whole:
                    yield from _waits_for_each_other(wait, other_wait, is_open)
            if wait.is_whole:
                yield from self.bypassed_barriers(
                    wait.line, wait.lanes.select(np.flatnonzero(is_open[wait.slots])), wait.next_block
                )

    def bypassed_barriers(self, line: int, lanes: Lanes, next_block: int) -> Iterator[SplitBarrier]:
        """Yield threads that bypassed the barrier at ``line`` and ended.

        They are of the blocks of ``lanes``, which pass the barrier now.
        """
        size = lanes.places_per_block
        ended_places = np.flatnonzero(self._has_ended)
        ended_places = ended_places[
            np.isin(self._last_blocks[ended_places], self._blocks_by_barrier.get(next_block, ()))
        ]
        ended_places = ended_places[np.isin(ended_places // size, lanes.block)]
        if len(ended_places):
            place = int(ended_places[0])
            waiting_places = lanes.places[lanes.block == place // size]
            last_line = self._code[int(self._last_blocks[place])].line
            yield SplitBarrier(line, int(waiting_places[0]), last_line, place, other_waits=False)


def _blocks_behind(code: Sequence[CodeBlock], barrier: int) -> list[int]:
    """The basic blocks with operations that may be executed after the barrier, and after which it is not."""
    predecessors: dict[int, list[int]] = {}
    for number, block in enumerate(code):
        for successor in block.successors:
            predecessors.setdefault(successor, []).append(number)
    blocks_after = _reachable_blocks(barrier, lambda block: code[block].successors)
    blocks_before = _reachable_blocks(barrier, lambda block: predecessors.get(block, ()))
    return [block for block in sorted(blocks_after - blocks_before) if code[block].line]


def _reachable_blocks(start: int, neighbours: Callable[[int], Sequence[int]]) -> set[int]:
    """A basic block and all to which ``neighbours`` leads from it."""
    blocks, open_blocks = {start}, [start]
    while open_blocks:
        for block in neighbours(open_blocks.pop()):
            if block not in blocks:
                blocks.add(block)
                open_blocks.append(block)
    return blocks


def _waits_for_each_other(
    wait: WaitingLanes, other_wait: WaitingLanes, is_opening: NDArray[np.bool_]
) -> Iterator[SplitBarrier]:
    """Lanes of one block, or of one warp, that wait at two instructions for each other."""
    keys, other_keys = wait.keys(is_opening), other_wait.keys(is_opening)
    common = np.intersect1d(keys[keys >= 0], other_keys[other_keys >= 0])
    if len(common):
        place = int(wait.lanes.places[np.argmax(keys == common[0])])
        other_place = int(other_wait.lanes.places[np.argmax(other_keys == common[0])])
        yield SplitBarrier(wait.line, place, other_wait.line, other_place, other_waits=True)
