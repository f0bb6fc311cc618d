"""Basic blocks and loops of a function, by its branches and by dominance, and the stages before, in and after loops.

A label ends a block and begins the next, and so does anything that may branch or leave. Each execution of the first
instruction is one of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.ptx.references import names_in
from tui_probe.ptx.tree import Instruction, Label, Scope, Symbol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tui_probe.ptx.tree import Function, Statement

_BRANCH_OPCODES: Final = frozenset({"bra", "brx", "ret", "exit", "trap"})

Block = list[Instruction]
Stage = Literal["prologue", "loop", "between", "epilogue"]


@dataclass(frozen=True, slots=True)
class Flow:
    """The blocks of a function in source order, none of them empty, with the numbers of their successors.

    ``jumps`` are the blocks that a branch at its end may lead to. ``falls_through``: the next block may follow it.
    """

    blocks: list[Block]
    jumps: list[tuple[int, ...]]
    falls_through: list[bool]

    @classmethod
    def from_function(cls, function: Function, ends_block: Callable[[Instruction], bool] | None = None) -> Flow:
        """Cut a function into blocks; ``ends_block`` is that of ``basic_blocks``."""
        builder = _BlockBuilder(ends_block=ends_block)
        builder.walk(function.body or (), _ScopeLabels())
        blocks = [block for block in builder.blocks if block]
        last_index = len(blocks) - 1
        last_instructions = [block[-1] for block in blocks]
        return cls(
            blocks,
            [
                tuple(place for place in builder.labels[id(end)].branch_targets(end) if place <= last_index)
                for end in last_instructions
            ],
            [
                index < last_index and (end.opcode not in _BRANCH_OPCODES or end.predicate is not None)
                for index, end in enumerate(last_instructions)
            ],
        )

    def join_blocks(self) -> Flow:
        """Return the code with blocks joined that always run one after the other, such as those at labels of debug
        information. Blocks that nothing leads to begin one, too.
        """
        targets = {target for jumps in self.jumps for target in jumps}
        ends_in_branch = [block[-1].opcode in _BRANCH_OPCODES for block in self.blocks]
        starts_block = [
            index == 0 or index in targets or ends_in_branch[index - 1] for index in range(len(self.blocks))
        ]
        numbers = [place - 1 for place in accumulate(map(int, starts_block))]
        blocks: list[Block] = [[] for _ in range(sum(starts_block))]
        for place, block in zip(numbers, self.blocks, strict=True):
            blocks[place] += block
        last_indices = [index - 1 for index, is_begin in enumerate([*starts_block, True]) if is_begin and index]
        jumps = [tuple(sorted({numbers[target] for target in self.jumps[last]})) for last in last_indices]
        return Flow(blocks, jumps, [self.falls_through[last] for last in last_indices])

    def successors(self, index: int) -> list[int]:
        """Return the blocks that may run after one, ascending."""
        return sorted({*self.jumps[index], *([index + 1] if self.falls_through[index] else [])})


class _ScopeLabels:
    """The labels of a ``{ … }``, which hide those of the scopes around it: of each, the block that it begins."""

    def __init__(self, outer: _ScopeLabels | None = None) -> None:
        self._outer = outer
        self.blocks: dict[str, int] = {}
        self.lists: dict[str, set[str]] = {}

    def branch_targets(self, branch: Instruction) -> list[int]:
        """Return the blocks that a branch may lead to."""
        if branch.opcode not in ("bra", "brx"):
            return []
        return sorted(
            {
                place
                for operand in branch.operands
                if isinstance(operand, Symbol)
                for place in self._blocks_at(operand.name)
            }
        )

    def _blocks_at(self, name: str) -> Iterable[int]:
        """Return the block of a label, or those of the labels that a list of that name holds."""
        if name in self.blocks:
            return (self.blocks[name],)
        if name in self.lists:
            return [place for label in self.lists[name] if label != name for place in self._blocks_at(label)]
        return self._outer._blocks_at(name) if self._outer else ()


@dataclass(slots=True)
class _BlockBuilder:
    """The blocks of a body so far, the last possibly empty; and what each branch sees, by its identity."""

    blocks: list[Block] = field(default_factory=lambda: [[]])
    labels: dict[int, _ScopeLabels] = field(default_factory=dict)
    ends_block: Callable[[Instruction], bool] | None = None
    _is_ended: bool = False

    def walk(self, body: Iterable[Statement], labels: _ScopeLabels) -> None:
        for node in body:
            if isinstance(node, Scope):
                self.walk(node.body, _ScopeLabels(labels))
            elif isinstance(node, Label):
                self._begin()
                if node.declaration:
                    labels.lists[node.name] = names_in(node.declaration)
                else:
                    labels.blocks[node.name] = len(self.blocks) - 1
            elif isinstance(node, Instruction):
                if self._is_ended and not (node.opcode == "ld" and "param" in node.modifiers):
                    self._begin()
                self.blocks[-1].append(node)
                self.labels[id(node)] = labels
                self._is_ended = self._is_ended or (self.ends_block is not None and self.ends_block(node))
                if node.opcode in _BRANCH_OPCODES:
                    self._begin()

    def _begin(self) -> None:
        self._is_ended = False
        if self.blocks[-1]:
            self.blocks.append([])


def basic_blocks(function: Function, ends_block: Callable[[Instruction], bool] | None = None) -> list[Block]:
    """Return the blocks of a function in source order, none of them empty.

    Calls for which ``ends_block`` holds end blocks, too, with the loads behind them that fetch the returned values.
    """
    return Flow.from_function(function, ends_block).blocks


def loop_heads(function: Function, flow: Flow | None = None) -> list[Instruction]:
    """Return the first instruction of each loop, in source order. ``flow`` is that of the function, if it is known.

    A loop's first block is one that a block at or below it branches to, where that block can be reached from it
    again without anything above it: so each iteration passes it once, and code that was merely moved up is not a loop.
    """
    flow = flow or Flow.from_function(function)
    successors = [flow.successors(index) for index in range(len(flow.blocks))]
    backward = {(target, index) for index, targets in enumerate(successors) for target in targets if target <= index}
    heads = {head for head, tail in backward if tail in _reachable_below(head, successors)}
    return [flow.blocks[head][0] for head in sorted(heads)]


def _reachable_below(head: int, successors: Sequence[Sequence[int]]) -> set[int]:
    """Return the blocks that can be reached from ``head``, itself included, through none that is above it."""
    visited, pending = {head}, [head]
    while pending:
        unvisited = [target for target in successors[pending.pop()] if target >= head and target not in visited]
        visited.update(unvisited)
        pending += unvisited
    return visited


# Natural loops: by dominance, so wherever a compiler put their blocks.
#
# A block dominates another that can only be reached through it. A branch back to a block that dominates its own makes
# a loop: of all blocks from which the branch is reached without passing that block, the loop's head.


def natural_loops(successors: Sequence[Sequence[int]]) -> dict[int, set[int]]:
    """Return the blocks of each loop by its head, in a function that begins with block 0.

    Loops with the same head count as one.
    """
    predecessors = _predecessors(successors)
    order = _postorder(successors)
    rank = {block: number for number, block in enumerate(order)}
    parents = _immediate_dominators(order, rank, predecessors)
    loops: dict[int, set[int]] = {}
    for head, tails in enumerate(predecessors):
        for tail in tails:
            if _dominates(head, tail, parents, rank):
                loops.setdefault(head, {head}).update(_blocks_reaching(tail, head, predecessors))
    return loops


def _predecessors(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    predecessors: list[list[int]] = [[] for _ in successors]
    for index, targets in enumerate(successors):
        for target in targets:
            predecessors[target].append(index)
    return predecessors


def dominators_of(successors: Sequence[Sequence[int]], blocks: Iterable[int]) -> set[int]:
    """Return the blocks that are on all paths to one of some reachable blocks, these included."""
    predecessors = _predecessors(successors)
    order = _postorder(successors)
    parents = _immediate_dominators(order, {block: number for number, block in enumerate(order)}, predecessors)
    dominators: set[int] = set()
    for block in blocks:
        while block in parents and block not in dominators:
            dominators.add(block)
            block = parents[block]
    return dominators


def _immediate_dominators(
    order: Sequence[int], rank: dict[int, int], predecessors: Sequence[Sequence[int]]
) -> dict[int, int]:
    """Return the immediate dominator of each reachable block: the last block before it on all paths (Cooper, Harvey,
    Kennedy). ``order`` has each block after those that it leads to, ``rank`` the place of each block in it.
    """
    parents = {0: 0}
    has_changed = bool(order)
    while has_changed:
        has_changed = False
        for block in reversed(order[:-1]):
            processed = [predecessor for predecessor in predecessors[block] if predecessor in parents]
            dominator = processed[0]
            for candidate in processed[1:]:
                dominator = _common_dominator(dominator, candidate, parents, rank)
            has_changed |= parents.get(block) != dominator
            parents[block] = dominator
    return parents


def _postorder(successors: Sequence[Sequence[int]]) -> list[int]:
    """Return the reachable blocks, each after those that it leads to; block 0 is the last."""
    order: list[int] = []
    visited = {0} if successors else set()
    path = [(0, iter(successors[0]))] if successors else []
    while path:
        block, targets = path[-1]
        unvisited = next((target for target in targets if target not in visited), None)
        if unvisited is None:
            order.append(block)
            path.pop()
        else:
            visited.add(unvisited)
            path.append((unvisited, iter(successors[unvisited])))
    return order


def _common_dominator(block: int, other_block: int, parents: dict[int, int], rank: dict[int, int]) -> int:
    """Return the last block that dominates both."""
    while block != other_block:
        if rank[block] < rank[other_block]:
            block = parents[block]
        else:
            other_block = parents[other_block]
    return block


def _dominates(head: int, block: int, parents: dict[int, int], rank: dict[int, int]) -> bool:
    """Return whether ``head`` is on all paths to a block; no dominator ranks below what it dominates."""
    if head not in rank or block not in rank:
        return False
    while rank[block] < rank[head]:
        block = parents[block]
    return block == head


def _blocks_reaching(tail: int, head: int, predecessors: Sequence[Sequence[int]]) -> set[int]:
    """Return the blocks from which ``tail`` is reached without passing ``head``."""
    visited = {tail} - {head}
    pending = list(visited)
    while pending:
        unvisited = [
            predecessor
            for predecessor in predecessors[pending.pop()]
            if predecessor != head and predecessor not in visited
        ]
        visited.update(unvisited)
        pending += unvisited
    return visited


class LoopStages:
    """Loops of a function that are chosen by their code, and the stage of each basic block among them.

    Blocks are indices, loops are known by their heads: the first block of each.
    """

    def __init__(self, flow: Flow, is_chosen: Callable[[Block], bool]) -> None:
        self._flow = flow
        self._is_chosen = is_chosen
        self.successors = [flow.successors(index) for index in range(len(flow.blocks))]
        self.loops = natural_loops(self.successors)

    @cached_property
    def predecessors(self) -> list[list[int]]:
        """Blocks that may run immediately before each block."""
        return _predecessors(self.successors)

    @cached_property
    def chosen_loops(self) -> dict[int, set[int]]:
        """Blocks of the chosen loops."""
        code = {
            head: [instruction for index in blocks for instruction in self._flow.blocks[index]]
            for head, blocks in self.loops.items()
        }
        return {head: inside for head, inside in self.loops.items() if self._is_chosen(code[head])}

    @cached_property
    def unchosen_heads(self) -> dict[int, int]:
        """The head of the outermost loop that is not chosen, around each block in one."""
        heads = sorted(self.loops.keys() - self.chosen_loops.keys(), key=lambda head: len(self.loops[head]))
        return {index: head for head in heads for index in self.loops[head]}

    @cached_property
    def enclosing_heads(self) -> list[list[int]]:
        """The heads of the chosen loops around each block, the outermost first."""
        heads_by_block: list[list[int]] = [[] for _ in self.successors]
        for head in sorted(self.chosen_loops, key=lambda head: -len(self.chosen_loops[head])):
            for index in self.chosen_loops[head]:
                heads_by_block[index].append(head)
        return heads_by_block

    @cached_property
    def innermost(self) -> dict[int, int]:
        """The numbers of chosen loops that have none inside, by their heads. Between two of these is other code."""
        heads = {
            head for head in self.chosen_loops if not self.chosen_loops.keys() & (self.chosen_loops[head] - {head})
        }
        for head in sorted(heads):
            targets = {target for index in self.chosen_loops[head] for target in self.successors[index]}
            if heads & (targets - {head}):
                heads.remove(head)
        return {head: number for number, head in enumerate(sorted(heads), 1)}

    @cached_property
    def stages(self) -> list[Stage]:
        """Stage of each block: in a chosen loop, before all, after all, or between two."""
        in_loops = {index for index, heads in enumerate(self.enclosing_heads) if heads}
        blocks_before, blocks_after = reachable(in_loops, self.predecessors), reachable(in_loops, self.successors)

        def stage_of(index: int) -> Stage:
            if index in in_loops:
                return "loop"
            if index in blocks_after:
                return "between" if index in blocks_before else "epilogue"
            return "prologue"

        return [stage_of(index) for index in range(len(self.enclosing_heads))]

    def share_stage(self, block: int, other_block: int) -> bool:
        """Return whether two blocks are in the same stage and the same chosen loops."""
        return (
            self.stages[block] == self.stages[other_block]
            and self.enclosing_heads[block] == self.enclosing_heads[other_block]
        )


def reachable(sources: set[int], edges: Sequence[Sequence[int]]) -> set[int]:
    """Return ``sources`` and the blocks that ``edges`` lead to from them."""
    visited, pending = set(sources), list(sources)
    while pending:
        unvisited = [index for index in edges[pending.pop()] if index not in visited]
        visited.update(unvisited)
        pending += unvisited
    return visited
