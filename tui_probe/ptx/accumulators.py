"""Accumulators that a ``wgmma.wait_group 0`` makes readable: those of the products since the wait before it.

A product of a warpgroup is issued and runs while its warps do other things, which may not touch its registers until
they have waited. A wait that leaves groups pending makes some registers readable that others still add to, so it counts
as none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.ptx.control_flow import Flow
from tui_probe.ptx.tree import Immediate, Instruction

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.ptx.tree import Function


def is_full_wait(instruction: Instruction) -> bool:
    """Return whether an instruction waits for all products of its warpgroup."""
    if instruction.opcode != "wgmma" or "wait_group" not in instruction.modifiers:
        return False
    return any(isinstance(operand, Immediate) and operand.text == "0" for operand in instruction.operands)


class Accumulators:
    """The products of one function, by the waits that end them."""

    def __init__(self, function: Function) -> None:
        self._flow = Flow.of(function)
        self._predecessors: dict[int, list[int]] = {}
        for index in range(len(self._flow.blocks)):
            for successor in self._flow.successors(index):
                self._predecessors.setdefault(successor, []).append(index)

    def products(self, wait: Instruction) -> list[Instruction]:
        """Return the products that may be under way at a full wait, each once."""
        block, place = next(
            (index, place)
            for index, block in enumerate(self._flow.blocks)
            for place, instruction in enumerate(block)
            if instruction is wait
        )
        products, ahead = [], [(block, place)]
        seen: set[int] = set()
        while ahead:
            index, end = ahead.pop()
            own, is_ended = _products_before(self._flow.blocks[index][:end])
            products += own
            if not is_ended:
                new = set(self._predecessors.get(index, ())) - seen
                seen |= new
                ahead += [(before, len(self._flow.blocks[before])) for before in sorted(new)]
        return list({id(product): product for product in products}.values())


def _products_before(block: Iterable[Instruction]) -> tuple[list[Instruction], bool]:
    """Return the products behind the last full wait of a block, and whether there is one."""
    products: list[Instruction] = []
    is_ended = False
    for instruction in block:
        if is_full_wait(instruction):
            products, is_ended = [], True
        elif instruction.opcode == "wgmma" and "mma_async" in instruction.modifiers:
            products.append(instruction)
    return products, is_ended
