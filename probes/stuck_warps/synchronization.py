"""Synchronization in the code of a kernel: counts of barriers and arrivals, and writes that others poll for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tui_probe.errors import PtxError
from tui_probe.input_limits import PTX_TEXT
from tui_probe.ptx.control_flow import Flow, natural_loops
from tui_probe.ptx.counted_loops import counted_lines
from tui_probe.ptx.operands import parse_integer
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Immediate, Register, instructions_in
from tui_probe.ptx.value_types import with_known_counts
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tui_probe.ptx.tree import Function, Instruction, Operand

_INIT_COUNT, _ARRIVE_COUNT, _BARRIER_NUMBER, _BARRIER_COUNT = 1, 2, 0, 1
"""Places of the operand that is the count, or the number of a barrier."""
_PTX_FILE: Final = "pruned.ptx"
_STRONG: Final = frozenset({"volatile", "release", "relaxed", "mmio"})
_OF_BLOCK: Final = frozenset({"shared", "shared::cta", "shared::cluster", "local", "param"})
_EXCHANGES: Final = frozenset({"shfl", "vote", "match", "redux"})
_ARRIVALS: Final = frozenset({"arrive", "arrive_drop"})


@dataclass(frozen=True, slots=True)
class Synchronization:
    """Facts by lines of ``pruned.ptx``: counts that ``mbarrier.init`` sets, and of ``arrivals`` that count for more
    than one; ``numbers`` of barriers; ``barriers`` with a number of threads; lines of arrivals that also ``expect``
    bytes; opcodes of ``writes`` that the probe records; the lines of each loop by its first one; opcodes of
    ``exchanges``, at which lanes wait for other lanes of their warp; ``updates``, compare-and-swaps of a value that
    their loop reads: these take no lock; lines of loops that are ``counted``, where no warp waits.

    ``has_unknown_counts``: some mbarrier gets a count that only the launch knows. ``has_plain_stores``: the kernel
    writes global memory with stores that the probe does not record. ``is_known``: there is PTX.
    """

    inits: Mapping[int, int] = field(default_factory=dict)
    arrivals: Mapping[int, int] = field(default_factory=dict)
    has_unknown_counts: bool = False
    numbers: Mapping[int, int] = field(default_factory=dict)
    barriers: Mapping[int, int] = field(default_factory=dict)
    expects: tuple[int, ...] = ()
    writes: Mapping[int, str] = field(default_factory=dict)
    loops: Mapping[int, frozenset[int]] = field(default_factory=dict)
    exchanges: Mapping[int, str] = field(default_factory=dict)
    updates: frozenset[int] = frozenset()
    counted: frozenset[int] = frozenset()
    has_plain_stores: bool = False
    is_known: bool = False

    @classmethod
    def of(cls, folder: Path | None) -> Synchronization:
        """Read it from the kernel's directory; nothing where there is no PTX, or it cannot be parsed."""
        try:
            text = read_within(folder / _PTX_FILE, PTX_TEXT) if folder else b""
            functions = parse(text.decode("utf-8", "replace")).functions()
            code = with_known_counts([own for function in functions for own in instructions_in(function.body or ())])
        except (OSError, PtxError):
            return cls()
        mbarriers = [instruction for instruction in code if instruction.opcode == "mbarrier"]
        arrivals = [own for own in mbarriers if _ARRIVALS & {*own.modifiers}]
        expects = tuple(own.span.line for own in arrivals if "expect_tx" in own.modifiers)
        inits = _counts([own for own in mbarriers if "init" in own.modifiers], _INIT_COUNT)
        counted = _counts([own for own in arrivals if own.span.line not in expects], _ARRIVE_COUNT)
        barriers = [own for own in code if own.opcode in ("bar", "barrier")]
        numbers, sizes = (_counts(barriers, place) for place in (_BARRIER_NUMBER, _BARRIER_COUNT))
        return cls(
            _known(inits), _known(counted), None in inits.values(), _known(numbers), _known(sizes), expects,
            _opcodes(filter(_is_recorded_write, code)), {k: v for own in functions for k, v in _loops(own).items()},
            _opcodes(own for own in code if own.opcode in _EXCHANGES or own.modifiers[:1] == ("warp",)),
            frozenset(line for function in functions for line in _updates(function)),
            frozenset(line for function in functions for line in counted_lines(function)),
            any(map(_is_plain_store, code)), bool(code),
        )  # fmt: skip

    @property
    def count(self) -> int | None:
        """The count of every mbarrier of the kernel; None if they differ, or are not known."""
        counts = set(self.inits.values())
        return counts.pop() if len(counts) == 1 and not self.has_unknown_counts else None


def _counts(instructions: Sequence[Instruction], place: int) -> dict[int, int | None]:
    """The counts by line; None where it is not a number."""
    return {instruction.span.line: _number(instruction, place) for instruction in instructions}


def _opcodes(instructions: Iterable[Instruction]) -> dict[int, str]:
    """The opcodes with their modifiers, by line."""
    return {own.span.line: ".".join((own.opcode, *own.modifiers)) for own in instructions}


def _known(counts: Mapping[int, int | None]) -> dict[int, int]:
    return {line: count for line, count in counts.items() if count is not None}


def _number(instruction: Instruction, place: int) -> int | None:
    operands = instruction.operands[place : place + 1]
    return parse_integer(operands[0].text) if operands and isinstance(operands[0], Immediate) else None


def _is_recorded_write(instruction: Instruction) -> bool:
    """Return whether warps record an instruction as the last that they did for others."""
    modifiers = {*instruction.modifiers}
    if modifiers & _OF_BLOCK:
        return False
    match instruction.opcode:
        case "atom":
            return "cas" not in modifiers
        case "red":
            return "async" not in modifiers
        case "st":
            return bool(modifiers & _STRONG)
    return False


def _is_plain_store(instruction: Instruction) -> bool:
    """Return whether an instruction may write global memory without a record."""
    modifiers = {*instruction.modifiers}
    if instruction.opcode == "cp":
        return "bulk" in modifiers and "global" in modifiers
    is_store = instruction.opcode in ("st", "multimem", "call") or (instruction.opcode == "atom" and "cas" in modifiers)
    return is_store and not modifiers & (_STRONG | _OF_BLOCK)


def _loops(function: Function) -> dict[int, frozenset[int]]:
    """The lines of the loops of a function, by the line of the first instruction."""
    flow = Flow.of(function)
    loops = natural_loops([flow.successors(index) for index in range(len(flow.blocks))])
    return {
        flow.blocks[head][0].span.line: frozenset(own.span.line for index in blocks for own in flow.blocks[index])
        for head, blocks in loops.items()
    }


def _updates(function: Function) -> Iterator[int]:
    """The lines of the compare-and-swaps in a loop that computes the value to compare."""
    code = list(instructions_in(function.body or ()))
    swaps = [own for own in code if own.opcode == "atom" and "cas" in own.modifiers]
    loops = _loops(function) if swaps else {}
    for own in swaps:
        inside = innermost(loops, own.span.line)
        if any(other.span.line in inside and _computes(other, own.operands[2]) for other in code):
            yield own.span.line


def _computes(instruction: Instruction, operand: Operand) -> bool:
    """Return whether an instruction writes a register, and not with a number."""
    match instruction.operands, operand:
        case (Register(name=written), *inputs), Register(name=name):
            return written == name and any(isinstance(own, Register) for own in inputs)
    return False


def innermost(loops: Mapping[int, frozenset[int]], line: int) -> frozenset[int]:
    """The lines of the innermost loop around a line; none if there is no loop."""
    return min((lines for lines in loops.values() if line in lines), key=len, default=frozenset())
