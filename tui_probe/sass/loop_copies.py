"""Copies of loops behind a kernel's code, in which added code is between the instructions instead of behind branches.

A branch in place of a loop's first instruction leads to the copy. The loop itself stays in its place and is not
executed: it is entered at its first instruction only. Branches that leave the loop lead from the copy to where they
led. What the file lists about instructions is listed about their copies, too.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tui_probe.sass import nv_info
from tui_probe.sass.flow import BRA_OPERATION, BSSY_OPERATION, BSYNC_OPERATION, is_conditional, jump_targets
from tui_probe.sass.nv_info import Attribute, words_attribute
from tui_probe.sass.words import BSSY_DISTANCE, CONTROL_FLOW, WORD_BYTES, branch_word, with_branch_to

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from tui_probe.sass.flow import FlowGraph, Loop
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

_YIELD, _BPT, _NANOSLEEP = 0x146, 0x15C, 0x15D
_POSITION_INDEPENDENT: Final = frozenset({BRA_OPERATION, BSSY_OPERATION, BSYNC_OPERATION, _YIELD, _BPT, _NANOSLEEP})
"""Operations of the branch unit that do the same at another place, if their distance is changed."""
_ADDRESS_OF_CODE: Final = frozenset({0x14E, 0x1CE})
"""LEPC, ULEPC."""
_MAX_INSTRUCTIONS: Final = 1024
"""Limit of a loop: in a longer one, phases are long."""
_MBARRIER_ENTRY: Final = struct.Struct("<I12s")
_MASKS: Final = 0x29
"""u32 mask of lanes for each of ``COOPERATIVE_INSTRUCTIONS``."""
_COPIED_LISTS: Final = frozenset(
    {nv_info.COOPERATIVE_INSTRUCTIONS, nv_info.WARP_WIDE_INSTRUCTIONS, nv_info.MBARRIER_INSTRUCTIONS, _MASKS}
)


def loops_to_copy(target: GraftTarget, graph: FlowGraph, headers: Collection[int]) -> list[tuple[range, ...]]:
    """Return the blocks, the header first, of the loops that begin with these instructions, contain no other of these,
    and can be copied.
    """
    first_instructions = {loop.header: graph.blocks[loop.header].start for loop in graph.loops}
    chosen_loops = [loop for loop in graph.loops if first_instructions[loop.header] in {*headers} - {0}]
    innermost = [
        loop
        for loop in chosen_loops
        if not any(inner_loop.header in loop.blocks for inner_loop in chosen_loops if inner_loop is not loop)
    ]
    fixed, listed_instructions = _fixed_instructions(target), _listed_instructions(target)
    return [
        _blocks_of(graph, loop)
        for loop in innermost
        if first_instructions[loop.header] not in listed_instructions
        and _can_be_copied(target, _blocks_of(graph, loop), fixed)
    ]


def _blocks_of(graph: FlowGraph, loop: Loop) -> tuple[range, ...]:
    """Return the blocks of a loop, its header first and the others in the order of the code."""
    return tuple(graph.blocks[block] for block in (loop.header, *sorted(loop.blocks - {loop.header})))


def _can_be_copied(target: GraftTarget, blocks: Sequence[range], fixed: AbstractSet[int]) -> bool:
    places = [place for block in blocks for place in block]
    operations = {target.words[place].operation for place in places}
    unknown_operations = {operation for operation in operations if operation in CONTROL_FLOW} - _POSITION_INDEPENDENT
    return (
        len(places) <= _MAX_INSTRUCTIONS
        and not unknown_operations | operations & _ADDRESS_OF_CODE
        and fixed.isdisjoint(places)
    )


def _fixed_instructions(target: GraftTarget) -> set[int]:
    """Return the instructions with relocations, and those that are in a list which copies are not added to."""
    numbers = nv_info.ADDRESS_ATTRIBUTES | _COPIED_LISTS
    lists = [
        attribute
        for attribute in target.attributes
        if attribute.number in numbers and not _takes_copies(attribute, target.attributes)
    ]
    offsets = {offset for attribute in lists for offset in attribute.words()}
    for section in target.cubin.relocation_sections():
        if section.info == target.code.number:
            offsets.update(relocation.offset for relocation in target.cubin.relocations(section))
    return {offset // WORD_BYTES for offset in offsets}


def _takes_copies(attribute: Attribute, attributes: Sequence[Attribute]) -> bool:
    """Return whether ``with_copies_listed`` adds copies to a list: it has the known form."""
    if attribute.number == nv_info.MBARRIER_INSTRUCTIONS:
        return not len(attribute.value) % _MBARRIER_ENTRY.size
    if attribute.number == nv_info.COOPERATIVE_INSTRUCTIONS:
        return all(
            len(mask_attribute.value) == len(attribute.value)
            for mask_attribute in attributes
            if mask_attribute.number == _MASKS
        )
    return attribute.number in _COPIED_LISTS


def _listed_instructions(target: GraftTarget) -> set[int]:
    lists = (attribute for attribute in target.attributes if attribute.number in _COPIED_LISTS - {_MASKS})
    return {offset // WORD_BYTES for attribute in lists for offset in attribute.words()}


@dataclass(slots=True)
class LoopCopy:
    """The copy of a loop at byte offset ``start``; ``added_words`` is code before instructions, by their numbers."""

    arch: int
    blocks: Sequence[range]
    start: int
    added_words: Mapping[int, Sequence[Word]]
    words: list[Word] = field(default_factory=list)
    copy_offsets: dict[int, int] = field(default_factory=dict)
    """The byte offset of the copy of each instruction, by its number."""
    _entry_offsets: dict[int, int] = field(default_factory=dict)
    """Byte offset of each copy with the code in front of it."""

    def write(self, code_words: Sequence[Word]) -> None:
        """Fill ``words`` with the copy of the loop in ``code_words``."""
        offset = self.start
        for number, block in enumerate(self.blocks):
            for index in block:
                self._entry_offsets[index] = offset
                self.copy_offsets[index] = offset + len(self.added_words.get(index, ())) * WORD_BYTES
                offset = self.copy_offsets[index] + WORD_BYTES
            offset += WORD_BYTES * self._needs_branch(number, code_words)
        for number, block in enumerate(self.blocks):
            for index in block:
                self._write_instruction(index, code_words[index])
            if self._needs_branch(number, code_words):
                end = self.start + len(self.words) * WORD_BYTES
                self.words.append(branch_word(self.arch, end, self._offset_of(block.stop)))

    def _write_instruction(self, index: int, word: Word) -> None:
        if (preceding := self.added_words.get(index)) and self.words:
            self.words[-1] = self.words[-1].without_reuse()
        self.words += preceding or ()
        target = next(jump_targets(self.arch, index, word), None)
        offset = self.copy_offsets[index]
        if target is not None and word.operation == BSSY_OPERATION:
            distance = self._offset_of(target) - offset - WORD_BYTES
            word = word.with_field(*BSSY_DISTANCE, distance % (1 << BSSY_DISTANCE[1]))
        elif target is not None:
            word = with_branch_to(self.arch, word, offset, self._offset_of(target))
        self.words.append(word)

    def _needs_branch(self, number: int, code_words: Sequence[Word]) -> bool:
        """Return whether a block is followed by another one in the kernel than here."""
        block = self.blocks[number]
        next_start = self.blocks[number + 1].start if number + 1 < len(self.blocks) else None
        last_word = code_words[block.stop - 1]
        return block.stop != next_start and (last_word.operation != BRA_OPERATION or is_conditional(last_word))

    def _offset_of(self, index: int) -> int:
        return self._entry_offsets.get(index, index * WORD_BYTES)


def with_copies_listed(attributes: Sequence[Attribute], copy_offsets: Mapping[int, int]) -> Iterator[Attribute]:
    """Yield the attributes of a kernel with the copies of listed instructions, whose offsets are ``copy_offsets``."""
    cooperative = next(
        (attribute for attribute in attributes if attribute.number == nv_info.COOPERATIVE_INSTRUCTIONS), None
    )
    copied = [] if cooperative is None else [offset // WORD_BYTES in copy_offsets for offset in cooperative.words()]
    for attribute in attributes:
        numbers = attribute.words()
        if not copy_offsets:
            yield attribute
        elif attribute.number in (nv_info.COOPERATIVE_INSTRUCTIONS, nv_info.WARP_WIDE_INSTRUCTIONS):
            yield words_attribute(attribute.number, *numbers, *_copies_of(numbers, copy_offsets))
        elif attribute.number == _MASKS and len(numbers) == len(copied):
            masks = (mask for mask, is_copied in zip(numbers, copied, strict=True) if is_copied)
            yield words_attribute(attribute.number, *numbers, *masks)
        elif attribute.number == nv_info.MBARRIER_INSTRUCTIONS and not len(attribute.value) % _MBARRIER_ENTRY.size:
            entries = _MBARRIER_ENTRY.iter_unpack(attribute.value)
            copy_entries = (
                _MBARRIER_ENTRY.pack(copy_offsets[offset // WORD_BYTES], facts)
                for offset, facts in entries
                if offset // WORD_BYTES in copy_offsets
            )
            yield Attribute(attribute.format, attribute.number, b"".join([attribute.value, *copy_entries]))
        else:
            yield attribute


def _copies_of(offsets: Sequence[int], copy_offsets: Mapping[int, int]) -> list[int]:
    return [copy_offsets[offset // WORD_BYTES] for offset in offsets if offset // WORD_BYTES in copy_offsets]
