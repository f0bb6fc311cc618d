"""Natural loops: by dominance, so wherever a compiler put their blocks.

A block dominates another that can only be reached through it. A branch back to a block that dominates its own makes a
loop: of all blocks from which the branch is reached without passing that block, the loop's head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def natural_loops(leads_to: Sequence[Sequence[int]]) -> dict[int, set[int]]:
    """The blocks of each loop by its head, of a function that begins with block 0. Loops with one head are one."""
    before: list[list[int]] = [[] for _ in leads_to]
    for index, targets in enumerate(leads_to):
        for target in targets:
            before[target].append(index)
    parents = _immediate_dominators(leads_to, before)
    loops: dict[int, set[int]] = {}
    for head, tails in enumerate(before):
        for tail in tails:
            if _dominates(head, tail, parents):
                loops.setdefault(head, {head}).update(_reaching(tail, head, before))
    return loops


def _immediate_dominators(leads_to: Sequence[Sequence[int]], before: Sequence[Sequence[int]]) -> dict[int, int]:
    """For each block that can be reached, the last one before it that all ways to it pass (Cooper, Harvey, Kennedy)."""
    order = _backward_from_ends(leads_to)
    rank = {block: number for number, block in enumerate(order)}
    parents = {0: 0}
    changed = bool(order)
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [one for one in before[block] if one in parents]
            found = known[0]
            for other in known[1:]:
                found = _common(found, other, parents, rank)
            changed |= parents.get(block) != found
            parents[block] = found
    return parents


def _backward_from_ends(leads_to: Sequence[Sequence[int]]) -> list[int]:
    """Each block that can be reached, behind those that it leads to; block 0 is the last."""
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


def _common(one: int, other: int, parents: dict[int, int], rank: dict[int, int]) -> int:
    """The last block that dominates both."""
    while one != other:
        if rank[one] < rank[other]:
            one = parents[one]
        else:
            other = parents[other]
    return one


def _dominates(head: int, block: int, parents: dict[int, int]) -> bool:
    while block != head:
        if block not in parents or parents[block] == block:
            return False
        block = parents[block]
    return block in parents


def _reaching(tail: int, head: int, before: Sequence[Sequence[int]]) -> set[int]:
    """The blocks from which ``tail`` is reached without passing ``head``."""
    seen = {tail} - {head}
    waiting = list(seen)
    while waiting:
        fresh = [one for one in before[waiting.pop()] if one != head and one not in seen]
        seen.update(fresh)
        waiting += fresh
    return seen
