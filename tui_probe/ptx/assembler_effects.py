"""Effects of ptxas on the code around a snippet: loads that it merges, products that it fuses or leaves running.

ptxas merges shared memory loads by the alignment of their addresses. Variables of static size count as aligned to 16
bytes, since ptxas chooses their place.

A ``wgmma`` runs asynchronously; its registers must not be accessed until a wait. Only ``wait_group 0`` counts as a
wait: with other counts, products that are still running may add to the registers.

ptxas fuses ``mul`` with ``add`` or ``sub`` if both are without a rounding modifier. A fused multiply-add rounds once,
so the sum has other bits than that of a rounded product. ptxas fuses within a basic block, and only if all readers of
the product are such sums. A snippet that reads the product, or whose branches divide the block, would keep it from
fusing, and change what the kernel computes: snippets read the factors of such a product, and the product is computed
again before a sum if a snippet is between the two.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from tui_probe.ptx.control_flow import Flow, basic_blocks
from tui_probe.ptx.instruction_facts import element_bytes
from tui_probe.ptx.operands import parse_integer
from tui_probe.ptx.tree import (
    Immediate,
    Instruction,
    Memory,
    Register,
    Sum,
    Symbol,
    Variable,
    instructions_in,
    statements_in,
)
from tui_probe.ptx.waiting import operand_registers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tui_probe.ptx.tree import Function, Operand

MAX_ALIGNMENT: Final = 16
"""Bytes of the widest access; larger alignments are cut to it."""
_MIN_ALIGNMENT_OPCODES: Final = frozenset({"add", "sub", "or", "xor", "mov", "cvta", "cvt", "min", "max"})


def alignments(function: Function, symbols: Mapping[str, int]) -> dict[str, int]:
    """Return the largest known divisor of each written register's values by name, from 1 to ``MAX_ALIGNMENT``.

    ``symbols`` are the alignments of variables. What loops add to a register counts each time.
    """
    writers_by_register: dict[str, list[Instruction]] = defaultdict(list)
    for instruction in instructions_in(function.body or ()):
        match instruction.operands:
            case (Register(name=name), *_) if instruction.opcode not in ("st", "red", "bra"):
                writers_by_register[name].append(instruction)
    divisors = dict.fromkeys(writers_by_register, MAX_ALIGNMENT)

    def alignment_of(operand: Operand) -> int:
        match operand:
            case Register(name=name):
                return divisors.get(name, 1)
            case Symbol(name=name, offset=offset):
                return min(symbols.get(name, 1), _number_alignment(offset))
            case Sum(base=base, offset=offset):
                return min(alignment_of(base), _number_alignment(offset))
            case Immediate(text=text):
                return _number_alignment(parse_integer(text))
        return 1

    has_changed = True
    while has_changed:
        has_changed = False
        for name, writers in writers_by_register.items():
            alignment = min(_result_alignment(writer, alignment_of) for writer in writers)
            has_changed |= alignment < divisors[name]
            divisors[name] = min(divisors[name], alignment)
    return divisors


def _number_alignment(number: int | None) -> int:
    if number is None:
        return 1
    return min(number & -number, MAX_ALIGNMENT) if number else MAX_ALIGNMENT


def _result_alignment(instruction: Instruction, alignment_of: Callable[[Operand], int]) -> int:
    """Return a divisor of the value that an instruction writes."""
    sources = instruction.operands[1:]
    match instruction.opcode, sources:
        case opcode, _ if opcode in _MIN_ALIGNMENT_OPCODES and sources:
            return min(map(alignment_of, sources))
        case "selp", (left, right, _):
            return min(alignment_of(left), alignment_of(right))
        case "and", (left, right):
            return max(alignment_of(left), alignment_of(right))
        case "shl", (shifted, Immediate(text=text)) if (bits := parse_integer(text)) is not None and 0 <= bits < 64:
            return min(alignment_of(shifted) << bits, MAX_ALIGNMENT)
        case "mul", (left, right) if "hi" not in instruction.modifiers:
            return _product_alignment(alignment_of(left), alignment_of(right))
        case "mad", (left, right, addend) if "hi" not in instruction.modifiers:
            return min(_product_alignment(alignment_of(left), alignment_of(right)), alignment_of(addend))
    return 1


def _product_alignment(*factors: int) -> int:
    return min(math.prod(factors), MAX_ALIGNMENT)


# ptxas merges four loads of adjacent 4-byte words from a 16-byte aligned address into one, and two into an 8-byte load,
# if no store or barrier of the basic block is between them; so it does two loads of adjacent 8-byte words. SASS has no
# instruction for the last three of four, or for the second of two.

_WORD_SIZES: Final = frozenset({4, 8})
_UNMERGEABLE: Final = frozenset({"volatile", "relaxed", "acquire", "v2", "v4", "v8"})
_ORDERING_OPCODES: Final = frozenset(
    {"st", "atom", "red", "bar", "barrier", "membar", "fence", "call", "cp", "mbarrier"}
)
"""Instructions that may write shared memory, or let others do so: loads do not move across them."""


def merged_loads(function: Function, variables: Iterable[Variable]) -> frozenset[int]:
    """Return the identities (``id``) of loads that ptxas merges into another one; ``variables`` are the module's."""
    variable_alignments = _variable_alignments([*variables, *statements_in(function.body or ())])
    register_alignments = alignments(function, variable_alignments)
    return frozenset(
        id(load)
        for block in basic_blocks(function)
        for group in _load_groups(block)
        for load in _merged_loads(group, {**register_alignments, **variable_alignments})
    )


def _variable_alignments(nodes: Iterable[object]) -> dict[str, int]:
    """Return the alignment of shared variables: the declared one if the launch sets the size, else the widest."""
    return {
        node.name: node.align or 1 if node.linkage == "extern" else MAX_ALIGNMENT
        for node in nodes
        if isinstance(node, Variable) and node.space == "shared"
    }


def _load_groups(block: Iterable[Instruction]) -> Iterator[list[Instruction]]:
    """Yield groups of loads with one base and size between which no instruction writes the base or shared memory."""
    open_groups: dict[tuple[str, int], list[Instruction]] = defaultdict(list)
    for instruction in block:
        if instruction.opcode in _ORDERING_OPCODES:
            yield from open_groups.values()
            open_groups.clear()
        if (key := _group_key(instruction)) is not None:
            open_groups[key].append(instruction)
        for operand in instruction.operands[:1]:
            if isinstance(operand, Register) and instruction.opcode != "st":
                for overwritten_key in [key for key in open_groups if key[0] == operand.name]:
                    yield open_groups.pop(overwritten_key)
    yield from open_groups.values()


def _group_key(instruction: Instruction) -> tuple[str, int] | None:
    """Return base and bytes of a load that ptxas can merge; None for another instruction."""
    size = element_bytes(instruction)
    if instruction.opcode != "ld" or instruction.predicate is not None or size not in _WORD_SIZES:
        return None
    if not {"shared", "shared::cta"} & {*instruction.modifiers} or _UNMERGEABLE & {*instruction.modifiers}:
        return None
    match instruction.operands:
        case (Register(), Memory(base=Register(name=name) | Symbol(name=name), coordinates=())):
            return name, size
    return None


def _merged_loads(group: list[Instruction], alignments: Mapping[str, int]) -> Iterator[Instruction]:
    """Yield the loads of a group that are merged into a preceding one."""
    key = _group_key(group[0])
    assert key is not None
    base, size = key
    by_offset = {_load_offset(load): load for load in reversed(group)}
    unmerged = set(by_offset)
    for width in (MAX_ALIGNMENT, MAX_ALIGNMENT // 2):
        if alignments.get(base, 1) < width or width <= size:
            continue
        for start in sorted(offset for offset in unmerged if offset % width == 0):
            offsets = range(start, start + width, size)
            if unmerged.issuperset(offsets):
                unmerged.difference_update(offsets)
                yield from (by_offset[place] for place in offsets[1:])


def _load_offset(load: Instruction) -> int:
    address = load.operands[1]
    assert isinstance(address, Memory)
    return address.offset


def is_full_wait(instruction: Instruction) -> bool:
    """Return whether an instruction waits for all products of its warpgroup."""
    if instruction.opcode != "wgmma" or "wait_group" not in instruction.modifiers:
        return False
    return any(isinstance(operand, Immediate) and operand.text == "0" for operand in instruction.operands)


class Accumulators:
    """Products of warpgroups in one function, by the waits that make their accumulators readable."""

    def __init__(self, function: Function) -> None:
        self._flow = Flow.from_function(function)
        self._predecessors: dict[int, list[int]] = {}
        for index in range(len(self._flow.blocks)):
            for successor in self._flow.successors(index):
                self._predecessors.setdefault(successor, []).append(index)

    def products(self, wait: Instruction) -> list[Instruction]:
        """Return the products that may be running at a full wait, without repetitions."""
        block, number = next(
            (index, place)
            for index, block in enumerate(self._flow.blocks)
            for place, instruction in enumerate(block)
            if instruction is wait
        )
        products, pending = [], [(block, number)]
        visited: set[int] = set()
        while pending:
            index, end = pending.pop()
            block_products, is_ended = _products_before(self._flow.blocks[index][:end])
            products += block_products
            if not is_ended:
                unvisited = set(self._predecessors.get(index, ())) - visited
                visited |= unvisited
                pending += [(predecessor, len(self._flow.blocks[predecessor])) for predecessor in sorted(unvisited)]
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


_ROUNDINGS: Final = frozenset({"rn", "rz", "rm", "rp"})
_FLOATS: Final = frozenset({"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"})


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
        self.pairs = [pair for block in blocks for pair in self._block_pairs(block)]
        """Each product with each sum that reads it."""
        self._products = {_result_of(product): product for product, _ in self.pairs}

    def __contains__(self, name: str) -> bool:
        return name in self._products

    def factors(self, name: str) -> list[str] | None:
        """Return the registers multiplied to a fused product; None if another value may be in one of them by now."""
        factors = list(operand_registers(self._products[name].operands[1:]))
        is_known = all(factor not in self and len(self._writers[factor]) <= 1 for factor in factors)
        return factors if is_known else None

    def _block_pairs(self, block: list[Instruction]) -> Iterator[tuple[Instruction, Instruction]]:
        for start, product in enumerate(block):
            if product.opcode != "mul" or product.predicate is not None or not _is_fusible(product):
                continue
            name = _result_of(product)
            readers, following = self._readers[name], block[start + 1 :]
            reader_indices = [index for index, instruction in enumerate(following) if instruction in readers]
            is_alone = len(self._writers[name]) == 1 and len(reader_indices) == len(readers) > 0
            if is_alone and all(map(_is_sum, readers)) and not _writes_factor(product, following[: reader_indices[-1]]):
                yield from ((product, reader) for reader in readers)


def _writes_factor(product: Instruction, following: list[Instruction]) -> bool:
    """Return whether one of the following instructions writes a factor of a product."""
    factors = set(operand_registers(product.operands[1:]))
    return any(factors.intersection(operand_registers(instruction.operands[:1])) for instruction in following)


def _result_of(product: Instruction) -> str:
    return next(operand_registers(product.operands[:1]))


def _is_sum(instruction: Instruction) -> bool:
    return instruction.opcode in ("add", "sub") and _is_fusible(instruction)


def _is_fusible(instruction: Instruction) -> bool:
    modifiers = instruction.modifiers
    return not _ROUNDINGS.intersection(modifiers) and bool(_FLOATS.intersection(modifiers))
