"""Synchronization in the code of a kernel: counts of barriers and arrivals, and writes that others poll for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from tui_probe.errors import PtxError
from tui_probe.input_limits import PTX_TEXT
from tui_probe.probekit.finding import place as place_text
from tui_probe.ptx.control_flow import Flow, natural_loops
from tui_probe.ptx.counted_loops import counted_lines
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Memory, Register, instructions_in
from tui_probe.ptx.waiting import LaneWaits, is_barrier, is_exchange
from tui_probe.trace.plain_file import read_within
from tui_probe.trace.sites import source_lines

from .launch_values import LaunchValues, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tui_probe.ptx.tree import Function, Instruction, Operand
    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.trace.source_lines import SourceLine

    from .launch_values import Pointer

_INIT_COUNT, _ARRIVE_COUNT, _BARRIER_NUMBER, _BARRIER_COUNT = 1, 2, 0, 1
"""Indices of the operand with the count, or with the number of a barrier (PTX ISA, bar and mbarrier)."""
_PTX_FILE: Final = "pruned.ptx"
_STRONG: Final = frozenset({"volatile", "release", "relaxed", "mmio"})
"""Modifiers of stores that other threads may see without a barrier (PTX ISA, memory consistency model)."""
_OF_BLOCK: Final = frozenset({"shared", "shared::cta", "shared::cluster", "local", "param"})
"""State spaces that other clusters cannot access."""
_FULL_MASK: Final = 0xFFFFFFFF
_ARRIVALS: Final = frozenset({"arrive", "arrive_drop"})
_WAITS: Final = frozenset({"try_wait", "test_wait"})
_EXITS: Final = frozenset({"ret", "exit"})
_ACCESSES: Final = frozenset({"atom", "red", "st", "ld"})
_KEEPING: Final = frozenset({"add", "or", "xor"})
"""Operations that leave memory as it is if their operand is 0."""
_STORING: Final = frozenset({"exch", "cas"})
"""Operations that replace the value in memory, as taking or releasing a lock does."""
_VARIABLE: Final = re.compile(r"_ZZ.+E(\d{1,3})([A-Za-z_]\w*)")
"""Mangled name of a variable of a function (Itanium C++ ABI): length and name after the function's."""


_Known = TypeVar("_Known", int, "Value")


class Access(NamedTuple):
    """An access of global memory. ``value`` is what it stores or adds, ``expected`` what a compare-and-swap compares
    with; None if that is not known, and of accesses that do neither.
    """

    opcode: str
    pointer: Pointer | None = None
    value: int | None = None
    expected: int | None = None

    @property
    def only_reads(self) -> bool:
        """True of loads, and of atomics that add or set nothing."""
        name, *modifiers = self.opcode.split(".")
        return name == "ld" or (self.value == 0 and not _KEEPING.isdisjoint(modifiers))

    def changes(self, lock: Access) -> bool:
        """Return whether it writes, and neither takes nor releases a lock that ``lock`` takes.

        A store of the free value releases the lock; a compare-and-swap with it, or an atomic that stores what ``lock``
        does, takes the lock.
        """
        modifiers = self.opcode.split(".")
        free = 0 if "exch" in lock.opcode else lock.expected
        if self.only_reads or (modifiers[0] != "st" and _STORING.isdisjoint(modifiers)):
            return not self.only_reads
        if free is None or self.value == free or (modifiers[0] == "atom" and self.value == lock.value):
            return False
        return self.expected is None or self.expected != free


@dataclass(frozen=True, slots=True)
class Init:
    """An ``mbarrier.init`` at a line, and the count that it sets; None if only the launch knows it."""

    line: int
    count: int | None


@dataclass(frozen=True, slots=True)
class Synchronization:
    """Facts by lines of ``pruned.ptx``: counts that ``mbarrier.init`` sets, and of ``arrivals`` that count for more
    than one, None if only the launch knows it; ``numbers`` of barriers; ``barriers`` with a number of threads; lines
    of arrivals that also ``expect`` bytes; opcodes of ``writes`` that the probe records; the lines of each loop by its
    first one; ``lane_waits``, at which lanes may wait that left their warp; ``updates``, compare-and-swaps of a value
    that their loop reads: these take no lock; lines of loops that are ``counted``, where no warp waits; ``addresses``
    of mbarriers and of polled shared memory, where they are known; ``exits`` of warps that ended, by their last place;
    ``endless`` loops, which no branch leaves; lines of ``sources``; opcodes of ``shared_reads``, which see what other
    warps write to shared memory.

    ``has_plain_stores``: the kernel writes global memory with stores that the probe does not record. ``is_known``:
    there is PTX.
    """

    inits: Mapping[int, int | None] = field(default_factory=dict)
    arrivals: Mapping[int, int | None] = field(default_factory=dict)
    numbers: Mapping[int, int] = field(default_factory=dict)
    barriers: Mapping[int, int | None] = field(default_factory=dict)
    expects: tuple[int, ...] = ()
    writes: Mapping[int, str] = field(default_factory=dict)
    loops: Mapping[int, frozenset[int]] = field(default_factory=dict)
    updates: frozenset[int] = frozenset()
    counted: frozenset[int] = frozenset()
    addresses: Mapping[int, Value] = field(default_factory=dict)
    has_plain_stores: bool = False
    is_known: bool = False
    exits: Mapping[int, int] = field(default_factory=dict)
    endless: frozenset[int] = frozenset()
    sources: Mapping[int, SourceLine] = field(default_factory=dict)
    shared_reads: Mapping[int, str] = field(default_factory=dict)
    lane_waits: LaneWaits = field(default_factory=LaneWaits, compare=False)
    accesses: Mapping[int, Access] = field(default_factory=dict, compare=False)
    arrives: Mapping[int, str] = field(default_factory=dict)
    """Opcodes of arrivals at barriers of the block that do not wait, which no record has."""

    @classmethod
    def of(
        cls, folder: Path | None, grid: Dim3 | None = None, block: Dim3 | None = None, ended_from: Iterable[int] = ()
    ) -> Synchronization:
        """Read it from the kernel's directory, for a launch of this shape; nothing where there is no PTX, or it cannot
        be parsed. ``ended_from`` are the last places of warps that ended.
        """
        try:
            text = read_within(folder / _PTX_FILE, PTX_TEXT) if folder else b""
            functions = parse(text.decode("utf-8", "replace")).functions()
            code = [instruction for function in functions for instruction in instructions_in(function.body or ())]
        except (OSError, PtxError):
            return cls()
        counts = _Counts()
        for function in functions:
            counts.add(function, LaunchValues(function, grid, block))
        lines = source_lines(folder)
        return cls(
            counts.inits, counts.arrivals, _known(counts.numbers), counts.barriers,
            tuple(barrier.span.line for barrier in code if barrier.opcode == "mbarrier" and _expects_bytes(barrier)),
            _opcodes(filter(_is_recorded_write, code)),
            _loops_with_calls(functions),
            frozenset(line for function in functions for line in _updates(function)),
            frozenset(line for function in functions for line in counted_lines(function)),
            _known(counts.addresses),
            any(map(_is_plain_store, code)), bool(code), dict(_exits(functions, ended_from)),
            frozenset(line for function in functions for line in _endless_loops(function)),
            {**lines.lines, **lines.calls}, _opcodes(filter(_polls_shared_memory, code)),
            LaneWaits.of(functions, counts.partial), counts.accesses, _opcodes(filter(_only_arrives, code)),
        )  # fmt: skip

    def init_of(self, line: int) -> Init | None:
        """The ``mbarrier.init`` of the mbarrier that an instruction waits for. None if several may be it, and these set
        different counts.
        """
        at = self.addresses.get(line)
        matching = {line for line in self.inits if at is not None and self.addresses.get(line) == at}
        inits = {line: count for line, count in self.inits.items() if not matching or line in matching}
        counts = set(inits.values())
        return Init(min(inits), counts.pop()) if len(counts) == 1 else None

    def name_of(self, line: int) -> str:
        """The name of the variable that is the mbarrier or the polled memory of an instruction; "": not known."""
        at = self.addresses.get(line)
        match = _VARIABLE.fullmatch(at.symbol) if at is not None and not at.number else None
        return match[2] if match is not None and len(match[2]) == int(match[1]) else ""

    def through_same_pointer(self, line: int, other: int) -> bool | None:
        """Return whether two instructions access memory through one pointer; None if that is not known."""
        one, two = (self.accesses[at].pointer if at in self.accesses else None for at in (line, other))
        if one is None or two is None:
            return None
        return one.base == two.base and (one.offset is None or two.offset is None or one.offset == two.offset)

    def line_text(self, line: int, opcode: str = "") -> str:
        """``mbarrier.init PTX:19 tile.cu:12``."""
        return place_text(line, self.sources.get(line), opcode or None)


@dataclass(slots=True)
class _Counts:
    """Counts, numbers and addresses by line, None if only the launch knows them; and the lines of the exchanges whose
    masks may lack lanes.
    """

    inits: dict[int, int | None] = field(default_factory=dict)
    arrivals: dict[int, int | None] = field(default_factory=dict)
    numbers: dict[int, int | None] = field(default_factory=dict)
    barriers: dict[int, int | None] = field(default_factory=dict)
    addresses: dict[int, Value | None] = field(default_factory=dict)
    partial: set[int] = field(default_factory=set)
    accesses: dict[int, Access] = field(default_factory=dict)

    def add(self, function: Function, values: LaunchValues) -> None:
        """Read one function."""
        for instruction in instructions_in(function.body or ()):
            if instruction.opcode in _ACCESSES and not {*instruction.modifiers} & _OF_BLOCK:
                self.accesses[instruction.span.line] = _access(instruction, values)
            if is_exchange(instruction):
                mask = values.number(instruction.operands[-1]) if instruction.operands else None
                if mask is None or mask & _FULL_MASK != _FULL_MASK:
                    self.partial.add(instruction.span.line)
            elif instruction.opcode in ("bar", "barrier"):
                _put(self.numbers, instruction, _BARRIER_NUMBER, values)
                _put(self.barriers, instruction, _BARRIER_COUNT, values)
            elif _polls_shared_memory(instruction):
                self.addresses[instruction.span.line] = next(map(values.of, instruction.operands[1:2]), None)
            elif instruction.opcode == "mbarrier":
                self.addresses.update(
                    (instruction.span.line, values.of(at)) for at in instruction.operands if isinstance(at, Memory)
                )
                if "init" in instruction.modifiers:
                    _put(self.inits, instruction, _INIT_COUNT, values)
                elif _ARRIVALS & {*instruction.modifiers} and not _expects_bytes(instruction):
                    _put(self.arrivals, instruction, _ARRIVE_COUNT, values)


def _access(own: Instruction, values: LaunchValues) -> Access:
    address = next((operand for operand in own.operands if isinstance(operand, Memory)), None)
    return Access(
        ".".join((own.opcode, *own.modifiers)),
        None if address is None else values.pointer(address),
        None if own.opcode == "ld" else values.number(own.operands[-1]),
        values.number(own.operands[-2]) if "cas" in own.modifiers else None,
    )


def _put(counts: dict[int, int | None], instruction: Instruction, place: int, values: LaunchValues) -> None:
    """Add the count of an instruction that has one."""
    for operand in instruction.operands[place : place + 1]:
        counts[instruction.span.line] = values.number(operand)


def _known(values: Mapping[int, _Known | None]) -> dict[int, _Known]:
    return {line: value for line, value in values.items() if value is not None}


def _expects_bytes(instruction: Instruction) -> bool:
    return "expect_tx" in instruction.modifiers and bool(_ARRIVALS & {*instruction.modifiers})


def _opcodes(instructions: Iterable[Instruction]) -> dict[int, str]:
    """Return the opcodes with their modifiers, by line."""
    return {
        instruction.span.line: ".".join((instruction.opcode, *instruction.modifiers)) for instruction in instructions
    }


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


def _only_arrives(instruction: Instruction) -> bool:
    return instruction.opcode in ("bar", "barrier") and {*instruction.modifiers}.isdisjoint(
        {"sync", "red", "warp", "cluster"}
    )


def _polls_shared_memory(instruction: Instruction) -> bool:
    modifiers = {*instruction.modifiers}
    is_strong = instruction.opcode == "atom" or (instruction.opcode == "ld" and modifiers & (_STRONG | {"acquire"}))
    return bool(is_strong) and any(modifier.startswith("shared") for modifier in modifiers)


def _is_plain_store(instruction: Instruction) -> bool:
    """Return whether an instruction may write global memory without a record."""
    modifiers = {*instruction.modifiers}
    if instruction.opcode == "cp":
        return "bulk" in modifiers and "global" in modifiers
    is_store = instruction.opcode in ("st", "multimem", "call") or (instruction.opcode == "atom" and "cas" in modifiers)
    return is_store and not modifiers & (_STRONG | _OF_BLOCK)


def _loops(function: Function) -> dict[int, frozenset[int]]:
    """Return the lines of each loop of a function, by the line of its first instruction."""
    flow = Flow.of(function)
    loops = natural_loops([flow.successors(index) for index in range(len(flow.blocks))])
    return {
        flow.blocks[head][0].span.line: frozenset(
            instruction.span.line for index in blocks for instruction in flow.blocks[index]
        )
        for head, blocks in loops.items()
    }


def _loops_with_calls(functions: Sequence[Function]) -> dict[int, frozenset[int]]:
    """The lines of all loops, with those of the functions that are called in them."""
    own_lines = {
        function.name: {code.span.line for code in instructions_in(function.body or ())} for function in functions
    }
    calls: dict[str, list[tuple[int, str]]] = {}
    for function in functions:
        called = [code for code in instructions_in(function.body or ()) if code.opcode == "call"]
        names = ((code.span.line, getattr(operand, "name", "")) for code in called for operand in code.operands)
        calls[function.name] = [(line, name) for line, name in names if name in own_lines]

    def reached(names: set[str]) -> set[str]:
        more = names | {called for name in names for _, called in calls[name]}
        return more if more == names else reached(more)

    loops = {}
    for function in functions:
        for head, lines in _loops(function).items():
            inside = reached({name for line, name in calls[function.name] if line in lines})
            loops[head] = lines.union(*(own_lines[name] for name in inside))
    return loops


def _endless_loops(function: Function) -> Iterator[int]:
    """Yield the first lines of loops that no branch and no exit leaves."""
    flow = Flow.of(function)
    loops = natural_loops([flow.successors(index) for index in range(len(flow.blocks))])
    for head, blocks in loops.items():
        following = {after for index in blocks for after in flow.successors(index)}
        code = (instruction for index in blocks for instruction in flow.blocks[index])
        if following <= set(blocks) and not any(instruction.opcode in _EXITS for instruction in code):
            yield flow.blocks[head][0].span.line


def _updates(function: Function) -> Iterator[int]:
    """Yield the lines of compare-and-swaps in a loop that computes the value to compare."""
    code = list(instructions_in(function.body or ()))
    swaps = [instruction for instruction in code if instruction.opcode == "atom" and "cas" in instruction.modifiers]
    loops = _loops(function) if swaps else {}
    for instruction in swaps:
        inside = innermost(loops, instruction.span.line)
        if any(other.span.line in inside and _computes(other, instruction.operands[2]) for other in code):
            yield instruction.span.line


def _computes(instruction: Instruction, operand: Operand) -> bool:
    """Return whether an instruction writes a register, and not with a number."""
    match instruction.operands, operand:
        case (Register(name=written), *inputs), Register(name=name):
            return written == name and any(isinstance(operand, Register) for operand in inputs)
    return False


def _exits(functions: Sequence[Function], places: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the exit that a warp takes from a place, 0 for the entry, without another wait; none for several."""
    for function in (function for function in functions if function.kind == "entry" and function.body):
        flow = Flow.of(function)
        number = {instruction.span.line: index for index, block in enumerate(flow.blocks) for instruction in block}
        for place in places:
            if (not place or place in number) and len(exits := _exits_from(flow, number.get(place, 0), place)) == 1:
                yield place, exits.pop()


def _exits_from(flow: Flow, first: int, place: int) -> set[int]:
    exits, seen, waiting = set[int](), {first}, [(first, place)]
    while waiting:
        index, behind = waiting.pop()
        for instruction in (instruction for instruction in flow.blocks[index] if instruction.span.line > behind):
            if instruction.opcode in _EXITS:
                exits.add(instruction.span.line)
            if _waits(instruction) or (instruction.opcode in _EXITS and instruction.predicate is None):
                break
        else:
            following = {*flow.successors(index)} - seen
            seen |= following
            waiting += [(after, 0) for after in following]
    return exits


def _waits(instruction: Instruction) -> bool:
    """Return whether an instruction is a place that each warp records."""
    is_try = instruction.opcode == "mbarrier" and bool({*instruction.modifiers} & _WAITS)
    return is_try or is_barrier(instruction)


def innermost(loops: Mapping[int, frozenset[int]], line: int) -> frozenset[int]:
    """Return the lines of the innermost loop around a line; none if there is no loop."""
    return min((lines for lines in loops.values() if line in lines), key=len, default=frozenset())
