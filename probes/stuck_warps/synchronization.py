"""Synchronization in the code of a kernel: the counts of mbarriers, and of arrivals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tui_probe.errors import PtxError
from tui_probe.input_limits import PTX_TEXT
from tui_probe.ptx.operands import parse_integer
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Immediate, instructions_in
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tui_probe.ptx.tree import Instruction

_INIT_COUNT, _ARRIVE_COUNT = 1, 2
"""Places of the operand that is the count."""
_PTX_FILE: Final = "pruned.ptx"


@dataclass(frozen=True, slots=True)
class Synchronization:
    """Lines of ``pruned.ptx`` by count: ``inits`` of mbarriers, ``arrivals`` that count for more than one.

    ``has_unknown_counts``: some mbarrier gets a count that only the launch knows.
    """

    inits: Mapping[int, int] = field(default_factory=dict)
    arrivals: Mapping[int, int] = field(default_factory=dict)
    has_unknown_counts: bool = False

    @classmethod
    def of(cls, folder: Path | None) -> Synchronization:
        """Read it from the kernel's directory; nothing where there is no PTX, or it cannot be parsed."""
        try:
            text = read_within(folder / _PTX_FILE, PTX_TEXT).decode("utf-8", "replace") if folder else ""
            functions = parse(text).functions()
            code = [instruction for function in functions for instruction in instructions_in(function.body or ())]
        except (OSError, PtxError):
            return cls()
        barriers = [instruction for instruction in code if instruction.opcode == "mbarrier"]
        inits = _counts([own for own in barriers if "init" in own.modifiers], _INIT_COUNT)
        arrivals = _counts([own for own in barriers if "arrive" in own.modifiers], _ARRIVE_COUNT)
        return cls(
            {line: count for line, count in inits.items() if count is not None},
            {line: count for line, count in arrivals.items() if count is not None},
            None in inits.values(),
        )

    @property
    def count(self) -> int | None:
        """The count of every mbarrier of the kernel; None if they differ, or are not known."""
        counts = set(self.inits.values())
        return counts.pop() if len(counts) == 1 and not self.has_unknown_counts else None


def _counts(instructions: Sequence[Instruction], place: int) -> dict[int, int | None]:
    """The counts by line; None where it is not a number."""
    return {instruction.span.line: _number(instruction, place) for instruction in instructions}


def _number(instruction: Instruction, place: int) -> int | None:
    match instruction.operands[place : place + 1]:
        case (Immediate(text=text),):
            return parse_integer(text)
    return None
