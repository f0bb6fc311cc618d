"""Loads of shared memory that the assembler merges into wider ones.

Four loads of neighbouring words, from an address that is known to be aligned to 16 bytes, are one in machine code, and
two are one of 8 bytes; so it is for all that stand between two stores or barriers of one basic block. Of the last three
of four, or of the second of two, nothing is executed.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from tui_probe.ptx.access import element_bytes
from tui_probe.ptx.alignment import LARGEST, alignments
from tui_probe.ptx.basic_blocks import basic_blocks
from tui_probe.ptx.instructions import statements_in
from tui_probe.ptx.tree import Memory, Register, Symbol, Variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tui_probe.ptx.tree import Function, Instruction

_WORDS: Final = frozenset({4, 8})
_ORDERED: Final = frozenset({"volatile", "relaxed", "acquire", "v2", "v4", "v8"})
_PASSED_BY_NOTHING: Final = frozenset(
    {"st", "atom", "red", "bar", "barrier", "membar", "fence", "call", "cp", "mbarrier"}
)
"""What may write shared memory, or let others do so: loads do not move from one side of it to the other."""


def merged_loads(function: Function, variables: Iterable[Variable]) -> frozenset[int]:
    """The identities (``id``) of the loads that are part of another one's access. ``variables`` are the module's."""
    placed = _placed([*variables, *statements_in(function.body or ())])
    aligned = alignments(function, placed)
    return frozenset(
        id(load)
        for block in basic_blocks(function)
        for group in _groups(block)
        for load in _joined(group, {**aligned, **placed})
    )


def _placed(nodes: Iterable[object]) -> dict[str, int]:
    """The alignment of shared variables: of those that the launch gives a size, what is declared."""
    return {
        node.name: node.align or 1 if node.linkage == "extern" else LARGEST
        for node in nodes
        if isinstance(node, Variable) and node.space == "shared"
    }


def _groups(block: Iterable[Instruction]) -> Iterator[list[Instruction]]:
    """Loads of one base and size between which nothing writes the base or what they load."""
    open_groups: dict[tuple[str, int], list[Instruction]] = defaultdict(list)
    for instruction in block:
        if instruction.opcode in _PASSED_BY_NOTHING:
            yield from open_groups.values()
            open_groups.clear()
        if (key := _key(instruction)) is not None:
            open_groups[key].append(instruction)
        for operand in instruction.operands[:1]:
            if isinstance(operand, Register) and instruction.opcode != "st":
                for over in [key for key in open_groups if key[0] == operand.name]:
                    yield open_groups.pop(over)
    yield from open_groups.values()


def _key(instruction: Instruction) -> tuple[str, int] | None:
    """The base and the bytes of a load that can be merged, None for all else."""
    size = element_bytes(instruction)
    if instruction.opcode != "ld" or instruction.predicate is not None or size not in _WORDS:
        return None
    if not {"shared", "shared::cta"} & {*instruction.modifiers} or _ORDERED & {*instruction.modifiers}:
        return None
    match instruction.operands:
        case (Register(), Memory(base=Register(name=name) | Symbol(name=name), coordinates=())):
            return name, size
    return None


def _joined(group: list[Instruction], aligned: Mapping[str, int]) -> Iterator[Instruction]:
    """All loads of the group but the first of each wider one that they make."""
    key = _key(group[0])
    assert key is not None
    base, size = key
    by_offset = {_offset(load): load for load in reversed(group)}
    left = set(by_offset)
    for width in (LARGEST, LARGEST // 2):
        if aligned.get(base, 1) < width or width <= size:
            continue
        for start in sorted(offset for offset in left if offset % width == 0):
            places = range(start, start + width, size)
            if left.issuperset(places):
                left.difference_update(places)
                yield from (by_offset[place] for place in places[1:])


def _offset(load: Instruction) -> int:
    address = load.operands[1]
    assert isinstance(address, Memory)
    return address.offset
