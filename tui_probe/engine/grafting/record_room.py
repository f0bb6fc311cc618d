"""Registers and barriers for records at instructions of a kernel that is grafted with the shorter record code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.lane_registers import align_register
from tui_probe.sass.register_room import RegisterRoom, pending_barriers
from tui_probe.sass.trampolines import OperandWait, least_used_barriers
from tui_probe.sass.words import MAX_REGISTERS, RESERVED, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

PAIRS_OF_RECORD: Final = 2
"""Pairs of registers that the code of a record needs."""


@dataclass(frozen=True)
class RecordRoom:
    """Registers for records: above those of the kernel, or if it cannot have more, those free at an instruction."""

    target: GraftTarget
    graph: FlowGraph
    inside: RegisterRoom | None

    @classmethod
    def of(cls, target: GraftTarget) -> RecordRoom:
        graph = FlowGraph.of(target)
        return cls(target, graph, None if cls.grows(target) else RegisterRoom(target, graph))

    @classmethod
    def grows(cls, target: GraftTarget) -> bool:
        """Return whether a kernel may have more registers."""
        return target.fewest_registers == target.registers and cls._end(target) <= MAX_REGISTERS

    @staticmethod
    def _end(target: GraftTarget) -> int:
        return align_register(target.registers - RESERVED) + 2 * PAIRS_OF_RECORD + RESERVED

    def pairs(self, index: int) -> list[int]:
        """Return the even numbers of pairs of registers for a record at an instruction, those that need no wait
        first.
        """
        if self.inside is not None:
            untouched = self.inside.untouched(index)
            return sorted(self.inside.pairs(index), key=lambda pair: not _has_pair(untouched, pair))
        first = align_register(self.target.registers - RESERVED)
        return list(range(first, first + 2 * PAIRS_OF_RECORD, 2))

    def is_untouched(self, index: int) -> bool:
        """Return whether nothing from an instruction on names the registers of its record, except other records."""
        if self.inside is None:
            return True
        untouched = self.inside.untouched(index)
        return all(_has_pair(untouched, pair) for pair in self.pairs(index)[:PAIRS_OF_RECORD])

    def has_pairs(self, index: int) -> bool:
        """Return whether an instruction leaves enough."""
        return len(self.pairs(index)) >= PAIRS_OF_RECORD

    def registers(self, around: int) -> int | None:
        """Return the registers that the kernel must request, with that many for its entry and exits; None if some warp
        has fewer there.
        """
        if self.inside is None:
            needed = max(around, self._end(self.target))
            return needed if needed <= MAX_REGISTERS else None
        limits = (self.inside.limit(at // WORD_BYTES) for at in self.target.exits())
        return self.target.registers if around <= min(self.target.registers, *limits) else None

    def operand_waits(self, rewritten: Mapping[int, Word], places: Sequence[int]) -> list[OperandWait]:
        """Return the wait of the record at each of some instructions, which are ``rewritten``.

        What the kernel has under way there is not waited for, if possible: a barrier that is free at all of them allows
        to wait at the next record.
        """
        code_words = [rewritten.get(index * WORD_BYTES, word) for index, word in enumerate(self.target.words)]
        pending = pending_barriers(code_words, self.graph)
        held = [pending[place] & ~code_words[place].wait_mask for place in places]
        order = least_used_barriers(self.target.all_words())
        common = next((number for number in order if not any(mask >> number & 1 for mask in held)), None)
        if common is not None:
            return [OperandWait(common, self.is_untouched(place)) for place in places]
        free = [[number for number in order if not mask >> number & 1] for mask in held]
        return [OperandWait((own or order)[0], is_later=False) for own in free]


def _has_pair(registers: int, pair: int) -> bool:
    return registers >> pair & 0b11 == 0b11
