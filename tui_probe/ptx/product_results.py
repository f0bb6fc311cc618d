"""Results of products that a snippet cannot read at the product: of ``wgmma``, and of ``mul`` fused with a sum.

A product of a warpgroup is issued and runs while its warps do other things, which may not touch its registers until
they have waited. A wait that leaves groups pending makes some registers readable that others still add to, so it counts
as none.

ptxas fuses ``mul`` with ``add`` or ``sub`` if both are without a rounding modifier. A fused multiply-add rounds once,
so the sum has other bits than that of a rounded product. ptxas fuses within a basic block, and only if all readers of
the product are such sums. A snippet that reads the product, or whose branches divide the block, would keep it from
fusing, and change what the kernel computes: snippets read the factors of such a product, and the product is computed
again in front of a sum that a snippet parts from it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from tui_probe.ptx.control_flow import Flow, basic_blocks
from tui_probe.ptx.tree import Immediate, Instruction
from tui_probe.ptx.waiting import operand_registers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tui_probe.ptx.tree import Function

_ROUNDINGS: Final = frozenset({"rn", "rz", "rm", "rp"})
_FLOATS: Final = frozenset({"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"})


def is_full_wait(instruction: Instruction) -> bool:
    """Return whether an instruction waits for all products of its warpgroup."""
    if instruction.opcode != "wgmma" or "wait_group" not in instruction.modifiers:
        return False
    return any(isinstance(operand, Immediate) and operand.text == "0" for operand in instruction.operands)


class Accumulators:
    """Products of warpgroups in one function, by the waits that make their accumulators readable."""

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


class FusedProducts:
    """The products of one function that ptxas fuses, and their sums."""

    def __init__(self, function: Function) -> None:
        self._writers: dict[str, list[Instruction]] = defaultdict(list)
        self._readers: dict[str, list[Instruction]] = defaultdict(list)
        blocks = basic_blocks(function)
        for instruction in (instruction for block in blocks for instruction in block):
            for name in set(operand_registers(instruction.operands[:1])):
                self._writers[name].append(instruction)
            for name in set(operand_registers(instruction.operands[1:])):
                self._readers[name].append(instruction)
        self.pairs = [pair for block in blocks for pair in self._pairs_in(block)]
        """Each product with each sum that reads it."""
        self._products = {_result_of(product): product for product, _ in self.pairs}

    def __contains__(self, name: str) -> bool:
        return name in self._products

    def factors(self, name: str) -> list[str] | None:
        """Return the registers multiplied to a fused product; None if another value may be in one of them by now."""
        factors = list(operand_registers(self._products[name].operands[1:]))
        is_known = all(factor not in self and len(self._writers[factor]) <= 1 for factor in factors)
        return factors if is_known else None

    def _pairs_in(self, block: list[Instruction]) -> Iterator[tuple[Instruction, Instruction]]:
        for start, product in enumerate(block):
            if product.opcode != "mul" or product.predicate is not None or not _is_fusible(product):
                continue
            name = _result_of(product)
            readers, following = self._readers[name], block[start + 1 :]
            ends = [index for index, instruction in enumerate(following) if instruction in readers]
            is_alone = len(self._writers[name]) == 1 and len(ends) == len(readers) > 0
            if is_alone and all(map(_is_sum, readers)) and not self._changed(product, following[: ends[-1]]):
                yield from ((product, reader) for reader in readers)

    def _changed(self, product: Instruction, following: list[Instruction]) -> bool:
        """Return whether an instruction writes a factor."""
        factors = set(operand_registers(product.operands[1:]))
        return any(factors.intersection(operand_registers(instruction.operands[:1])) for instruction in following)


def _result_of(product: Instruction) -> str:
    return next(operand_registers(product.operands[:1]))


def _is_sum(instruction: Instruction) -> bool:
    return instruction.opcode in ("add", "sub") and _is_fusible(instruction)


def _is_fusible(instruction: Instruction) -> bool:
    modifiers = instruction.modifiers
    return not _ROUNDINGS.intersection(modifiers) and bool(_FLOATS.intersection(modifiers))
