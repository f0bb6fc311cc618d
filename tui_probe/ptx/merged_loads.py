"""Loads of shared memory that the assembler merges into wider ones, by the alignment of their addresses.

Of a shared variable nothing needs to be known: the assembler places it, and as it suits its loads.
"""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from typing import TYPE_CHECKING, Final

from tui_probe.ptx.control_flow import basic_blocks
from tui_probe.ptx.instruction_facts import element_bytes
from tui_probe.ptx.operands import parse_integer
from tui_probe.ptx.tree import Immediate, Memory, Register, Sum, Symbol, Variable, instructions_in, statements_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tui_probe.ptx.tree import Function, Instruction, Operand

MAX_ALIGNMENT: Final = 16
"""Bytes: the widest access. What is aligned more is said to be aligned so."""
_LEAST_ALIGNED_OPCODES: Final = frozenset({"add", "sub", "or", "xor", "mov", "cvta", "cvt", "min", "max"})


def alignments(function: Function, symbols: Mapping[str, int]) -> dict[str, int]:
    """Return the largest known divisor of each written register's values by name, from 1 to ``MAX_ALIGNMENT``.

    ``symbols`` are the alignments of variables. What loops add to a register counts each time.
    """
    written: dict[str, list[Instruction]] = defaultdict(list)
    for instruction in instructions_in(function.body or ()):
        match instruction.operands:
            case (Register(name=name), *_) if instruction.opcode not in ("st", "red", "bra"):
                written[name].append(instruction)
    divisors = dict.fromkeys(written, MAX_ALIGNMENT)

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

    changed = True
    while changed:
        changed = False
        for name, writers in written.items():
            known = min(_result_alignment(writer, alignment_of) for writer in writers)
            changed |= known < divisors[name]
            divisors[name] = min(divisors[name], known)
    return divisors


def _number_alignment(number: int | None) -> int:
    if number is None:
        return 1
    return min(number & -number, MAX_ALIGNMENT) if number else MAX_ALIGNMENT


def _result_alignment(instruction: Instruction, alignment_of: Callable[[Operand], int]) -> int:
    """Return a divisor of the value that an instruction writes."""
    sources = instruction.operands[1:]
    match instruction.opcode, sources:
        case opcode, _ if opcode in _LEAST_ALIGNED_OPCODES and sources:
            return min(map(alignment_of, sources))
        case "selp", (one, other, _):
            return min(alignment_of(one), alignment_of(other))
        case "and", (one, other):
            return max(alignment_of(one), alignment_of(other))
        case "shl", (one, Immediate(text=text)) if (bits := parse_integer(text)) is not None and 0 <= bits < 64:
            return min(alignment_of(one) << bits, MAX_ALIGNMENT)
        case "mul", (one, other) if "hi" not in instruction.modifiers:
            return _product_alignment(alignment_of(one), alignment_of(other))
        case "mad", (one, other, third) if "hi" not in instruction.modifiers:
            return min(_product_alignment(alignment_of(one), alignment_of(other)), alignment_of(third))
    return 1


def _product_alignment(*factors: int) -> int:
    return min(reduce(lambda product, other: product * other, factors), MAX_ALIGNMENT)


# Four loads of neighbouring words, from an address that is known to be aligned to 16 bytes, are one in machine code,
# and two are one of 8 bytes; so it is for all that are between two stores or barriers of one basic block. Of the
# last three of four, or of the second of two, nothing is executed.

_WORD_SIZES: Final = frozenset({4, 8})
_ORDERED: Final = frozenset({"volatile", "relaxed", "acquire", "v2", "v4", "v8"})
_ORDERING_OPCODES: Final = frozenset(
    {"st", "atom", "red", "bar", "barrier", "membar", "fence", "call", "cp", "mbarrier"}
)
"""Instructions that may write shared memory, or let others do so: loads do not move from one side of it to the other.
"""


def merged_loads(function: Function, variables: Iterable[Variable]) -> frozenset[int]:
    """The identities (``id``) of the loads that are part of another one's access. ``variables`` are the module's."""
    variable_alignments = _variable_alignments([*variables, *statements_in(function.body or ())])
    aligned = alignments(function, variable_alignments)
    return frozenset(
        id(load)
        for block in basic_blocks(function)
        for group in _load_groups(block)
        for load in _merged_loads(group, {**aligned, **variable_alignments})
    )


def _variable_alignments(nodes: Iterable[object]) -> dict[str, int]:
    """The alignment of shared variables: of those that the launch gives a size, what is declared."""
    return {
        node.name: node.align or 1 if node.linkage == "extern" else MAX_ALIGNMENT
        for node in nodes
        if isinstance(node, Variable) and node.space == "shared"
    }


def _load_groups(block: Iterable[Instruction]) -> Iterator[list[Instruction]]:
    """Loads of one base and size between which nothing writes the base or what they load."""
    open_groups: dict[tuple[str, int], list[Instruction]] = defaultdict(list)
    for instruction in block:
        if instruction.opcode in _ORDERING_OPCODES:
            yield from open_groups.values()
            open_groups.clear()
        if (key := _group_key(instruction)) is not None:
            open_groups[key].append(instruction)
        for operand in instruction.operands[:1]:
            if isinstance(operand, Register) and instruction.opcode != "st":
                for overwritten in [key for key in open_groups if key[0] == operand.name]:
                    yield open_groups.pop(overwritten)
    yield from open_groups.values()


def _group_key(instruction: Instruction) -> tuple[str, int] | None:
    """The base and the bytes of a load that can be merged, None for all else."""
    size = element_bytes(instruction)
    if instruction.opcode != "ld" or instruction.predicate is not None or size not in _WORD_SIZES:
        return None
    if not {"shared", "shared::cta"} & {*instruction.modifiers} or _ORDERED & {*instruction.modifiers}:
        return None
    match instruction.operands:
        case (Register(), Memory(base=Register(name=name) | Symbol(name=name), coordinates=())):
            return name, size
    return None


def _merged_loads(group: list[Instruction], aligned: Mapping[str, int]) -> Iterator[Instruction]:
    """All loads of the group but the first of each wider one that they make."""
    key = _group_key(group[0])
    assert key is not None
    base, size = key
    by_offset = {_load_offset(load): load for load in reversed(group)}
    unmerged = set(by_offset)
    for width in (MAX_ALIGNMENT, MAX_ALIGNMENT // 2):
        if aligned.get(base, 1) < width or width <= size:
            continue
        for start in sorted(offset for offset in unmerged if offset % width == 0):
            places = range(start, start + width, size)
            if unmerged.issuperset(places):
                unmerged.difference_update(places)
                yield from (by_offset[place] for place in places[1:])


def _load_offset(load: Instruction) -> int:
    address = load.operands[1]
    assert isinstance(address, Memory)
    return address.offset
