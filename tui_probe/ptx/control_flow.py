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
    """The blocks of a function in source order, none of them empty, and by their numbers where each leads.

    ``jumps`` are the blocks that a branch at its end may lead to, ``falls`` tells whether the next one may follow it.
    """

    blocks: list[Block]
    jumps: list[tuple[int, ...]]
    falls: list[bool]

    @classmethod
    def of(cls, function: Function, ends: Callable[[Instruction], bool] | None = None) -> Flow:
        """The blocks of ``function``. Instructions for which ``ends`` holds end one: see ``basic_blocks``."""
        cut = _BlockBuilder(ends=ends)
        cut.walk(function.body or (), _ScopeLabels())
        blocks = [block for block in cut.blocks if block]
        last = len(blocks) - 1
        lasts = [block[-1] for block in blocks]
        return cls(
            blocks,
            [tuple(place for place in cut.labels[id(end)].of_branch(end) if place <= last) for end in lasts],
            [
                index < last and (end.opcode not in _BRANCH_OPCODES or end.predicate is not None)
                for index, end in enumerate(lasts)
            ],
        )

    def joined(self) -> Flow:
        """Return the code with blocks joined that always run one after the other, such as those at labels of debug
        information. Blocks that nothing leads to begin one, too.
        """
        targets = {target for jumps in self.jumps for target in jumps}
        ends_in_branch = [block[-1].opcode in _BRANCH_OPCODES for block in self.blocks]
        begins = [index == 0 or index in targets or ends_in_branch[index - 1] for index in range(len(self.blocks))]
        number = [place - 1 for place in accumulate(map(int, begins))]
        blocks: list[Block] = [[] for _ in range(sum(begins))]
        for place, block in zip(number, self.blocks, strict=True):
            blocks[place] += block
        lasts = [index - 1 for index, is_begin in enumerate([*begins, True]) if is_begin and index]
        jumps = [tuple(sorted({number[target] for target in self.jumps[last]})) for last in lasts]
        return Flow(blocks, jumps, [self.falls[last] for last in lasts])

    def successors(self, index: int) -> list[int]:
        """The blocks that may run after one, ascending."""
        return sorted({*self.jumps[index], *([index + 1] if self.falls[index] else [])})


class _ScopeLabels:
    """The labels of a ``{ … }``, which hide those of the scopes around it: of each, the block that it begins."""

    def __init__(self, outer: _ScopeLabels | None = None) -> None:
        self._outer = outer
        self.places: dict[str, int] = {}
        self.lists: dict[str, set[str]] = {}

    def of_branch(self, branch: Instruction) -> list[int]:
        """The blocks that a branch may lead to."""
        if branch.opcode not in ("bra", "brx"):
            return []
        return sorted(
            {place for operand in branch.operands if isinstance(operand, Symbol) for place in self._named(operand.name)}
        )

    def _named(self, name: str) -> Iterable[int]:
        """The block of a label, or those of the labels that a list of that name holds."""
        if name in self.places:
            return (self.places[name],)
        if name in self.lists:
            return [place for listed in self.lists[name] if listed != name for place in self._named(listed)]
        return self._outer._named(name) if self._outer else ()


@dataclass(slots=True)
class _BlockBuilder:
    """The blocks of a body so far, the last possibly empty; and what each branch sees, by its identity."""

    blocks: list[Block] = field(default_factory=lambda: [[]])
    labels: dict[int, _ScopeLabels] = field(default_factory=dict)
    ends: Callable[[Instruction], bool] | None = None
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
                    labels.places[node.name] = len(self.blocks) - 1
            elif isinstance(node, Instruction):
                if self._is_ended and not (node.opcode == "ld" and "param" in node.modifiers):
                    self._begin()
                self.blocks[-1].append(node)
                self.labels[id(node)] = labels
                self._is_ended = self._is_ended or (self.ends is not None and self.ends(node))
                if node.opcode in _BRANCH_OPCODES:
                    self._begin()

    def _begin(self) -> None:
        self._is_ended = False
        if self.blocks[-1]:
            self.blocks.append([])


def basic_blocks(function: Function, ends: Callable[[Instruction], bool] | None = None) -> list[Block]:
    """The blocks of a function in source order, none of them empty.

    Calls for which ``ends`` holds end blocks, too, with the loads behind them that fetch what the function returned.
    """
    return Flow.of(function, ends).blocks


def loop_heads(function: Function, flow: Flow | None = None) -> list[Instruction]:
    """The first instruction of each loop, in source order. ``flow`` is that of the function, if it is known.

    A loop's first block is one that a block at or below it branches to, where that block can be reached from it
    again without anything above it: so each iteration passes it once, and code that was merely moved up is not a loop.
    """
    flow = flow or Flow.of(function)
    leads_to = [flow.successors(index) for index in range(len(flow.blocks))]
    backward = {(target, index) for index, targets in enumerate(leads_to) for target in targets if target <= index}
    heads = {head for head, last in backward if last in _reachable_below(head, leads_to)}
    return [flow.blocks[head][0] for head in sorted(heads)]


def _reachable_below(head: int, leads_to: Sequence[Sequence[int]]) -> set[int]:
    """The blocks that can be reached from ``head``, itself included, through none that is above it."""
    seen, waiting = {head}, [head]
    while waiting:
        fresh = [target for target in leads_to[waiting.pop()] if target >= head and target not in seen]
        seen.update(fresh)
        waiting += fresh
    return seen


# Natural loops: by dominance, so wherever a compiler put their blocks.
#
# A block dominates another that can only be reached through it. A branch back to a block that dominates its own makes
# a loop: of all blocks from which the branch is reached without passing that block, the loop's head.


def natural_loops(leads_to: Sequence[Sequence[int]]) -> dict[int, set[int]]:
    """The blocks of each loop by its head, of a function that begins with block 0. Loops with one head are one."""
    before = _predecessors(leads_to)
    order = _backward_from_ends(leads_to)
    rank = {block: number for number, block in enumerate(order)}
    parents = _immediate_dominators(order, rank, before)
    loops: dict[int, set[int]] = {}
    for head, tails in enumerate(before):
        for tail in tails:
            if _dominates(head, tail, parents, rank):
                loops.setdefault(head, {head}).update(_blocks_reaching(tail, head, before))
    return loops


def _predecessors(leads_to: Sequence[Sequence[int]]) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in leads_to]
    for index, targets in enumerate(leads_to):
        for target in targets:
            before[target].append(index)
    return before


def dominators_of(leads_to: Sequence[Sequence[int]], blocks: Iterable[int]) -> set[int]:
    """The blocks that are on all paths to one of some reachable blocks, these included."""
    before = _predecessors(leads_to)
    order = _backward_from_ends(leads_to)
    parents = _immediate_dominators(order, {block: number for number, block in enumerate(order)}, before)
    dominators: set[int] = set()
    for block in blocks:
        while block in parents and block not in dominators:
            dominators.add(block)
            block = parents[block]
    return dominators


def _immediate_dominators(
    order: Sequence[int], rank: dict[int, int], before: Sequence[Sequence[int]]
) -> dict[int, int]:
    """Return the immediate dominator of each reachable block: the last block before it on all paths (Cooper, Harvey,
    Kennedy). ``order`` has each block after those that it leads to, ``rank`` the place of each block in it.
    """
    parents = {0: 0}
    changed = bool(order)
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [predecessor for predecessor in before[block] if predecessor in parents]
            dominator = known[0]
            for other in known[1:]:
                dominator = _common_dominator(dominator, other, parents, rank)
            changed |= parents.get(block) != dominator
            parents[block] = dominator
    return parents


def _backward_from_ends(leads_to: Sequence[Sequence[int]]) -> list[int]:
    """Return the reachable blocks, each after those that it leads to; block 0 is the last."""
    order: list[int] = []
    seen = {0} if leads_to else set()
    waiting = [(0, iter(leads_to[0]))] if leads_to else []
    while waiting:
        block, targets = waiting[-1]
        fresh = next((target for target in targets if target not in seen), None)
        if fresh is None:
            order.append(block)
            waiting.pop()
        else:
            seen.add(fresh)
            waiting.append((fresh, iter(leads_to[fresh])))
    return order


def _common_dominator(block: int, other: int, parents: dict[int, int], rank: dict[int, int]) -> int:
    """The last block that dominates both."""
    while block != other:
        if rank[block] < rank[other]:
            block = parents[block]
        else:
            other = parents[other]
    return block


def _dominates(head: int, block: int, parents: dict[int, int], rank: dict[int, int]) -> bool:
    """Return whether ``head`` is on all paths to a block; no dominator ranks below what it dominates."""
    if head not in rank or block not in rank:
        return False
    while rank[block] < rank[head]:
        block = parents[block]
    return block == head


def _blocks_reaching(tail: int, head: int, before: Sequence[Sequence[int]]) -> set[int]:
    """The blocks from which ``tail`` is reached without passing ``head``."""
    seen = {tail} - {head}
    waiting = list(seen)
    while waiting:
        fresh = [
            predecessor for predecessor in before[waiting.pop()] if predecessor != head and predecessor not in seen
        ]
        seen.update(fresh)
        waiting += fresh
    return seen


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
    def chosen(self) -> dict[int, set[int]]:
        """Blocks of the chosen loops."""
        code = {
            head: [instruction for index in inside for instruction in self._flow.blocks[index]]
            for head, inside in self.loops.items()
        }
        return {head: inside for head, inside in self.loops.items() if self._is_chosen(code[head])}

    @cached_property
    def unchosen(self) -> dict[int, int]:
        """The head of the outermost loop that is not chosen, around each block in one."""
        heads = sorted(self.loops.keys() - self.chosen.keys(), key=lambda head: len(self.loops[head]))
        return {index: head for head in heads for index in self.loops[head]}

    @cached_property
    def around(self) -> list[list[int]]:
        """The heads of the chosen loops around each block, the outermost first."""
        around: list[list[int]] = [[] for _ in self.successors]
        for head in sorted(self.chosen, key=lambda head: -len(self.chosen[head])):
            for index in self.chosen[head]:
                around[index].append(head)
        return around

    @cached_property
    def innermost(self) -> dict[int, int]:
        """The numbers of chosen loops that have none inside, by their heads. Between two of these is other code."""
        heads = {head for head in self.chosen if not self.chosen.keys() & (self.chosen[head] - {head})}
        for head in sorted(heads):
            targets = {target for index in self.chosen[head] for target in self.successors[index]}
            if heads & (targets - {head}):
                heads.remove(head)
        return {head: number for number, head in enumerate(sorted(heads), 1)}

    @cached_property
    def stages(self) -> list[Stage]:
        """Stage of each block: in a chosen loop, before all, after all, or between two."""
        in_loops = {index for index, heads in enumerate(self.around) if heads}
        ahead, behind = reachable(in_loops, self.predecessors), reachable(in_loops, self.successors)

        def stage_of(index: int) -> Stage:
            if index in in_loops:
                return "loop"
            if index in behind:
                return "between" if index in ahead else "epilogue"
            return "prologue"

        return [stage_of(index) for index in range(len(self.around))]

    def share_stage(self, first: int, second: int) -> bool:
        """Return whether two blocks are in the same stage and the same chosen loops."""
        return self.stages[first] == self.stages[second] and self.around[first] == self.around[second]


def reachable(starts: set[int], edges: Sequence[Sequence[int]]) -> set[int]:
    """Return ``starts`` and the blocks that ``edges`` lead to from them."""
    seen, waiting = set(starts), list(starts)
    while waiting:
        fresh = [index for index in edges[waiting.pop()] if index not in seen]
        seen.update(fresh)
        waiting += fresh
    return seen
