"""Synchronization in the code of a kernel: counts of barriers and arrivals, and writes that others poll for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from tui_probe.errors import PtxError
from tui_probe.input_limits import PTX_TEXT
from tui_probe.probekit.finding import place as place_text
from tui_probe.ptx.counted_loops import counted_lines
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Memory, instructions_in
from tui_probe.ptx.waiting import LaneWaits, is_exchange
from tui_probe.trace.plain_file import read_within
from tui_probe.trace.sites import source_lines

from .code_flow import FunctionFlow, exits_by_place, loops_with_calls
from .launch_values import LaunchValues, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tui_probe.ptx.tree import Function, Instruction
    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.trace.source_lines import SourceLine

    from .launch_values import Pointer

_INIT_COUNT, _ARRIVE_COUNT, _BARRIER_NUMBER, _BARRIER_COUNT = 1, 2, 0, 1
"""Indices of the operand with the count, or with the number of a barrier (PTX ISA, bar and mbarrier)."""
_PTX_FILE: Final = "pruned.ptx"
_STRONG_MODIFIERS: Final = frozenset({"volatile", "release", "relaxed", "mmio"})
"""Modifiers of stores that other threads may see without a barrier (PTX ISA, memory consistency model)."""
_BLOCK_SPACES: Final = frozenset({"shared", "shared::cta", "shared::cluster", "local", "param"})
"""State spaces that other clusters cannot access."""
_FULL_MASK: Final = 0xFFFFFFFF
_ARRIVALS: Final = frozenset({"arrive", "arrive_drop"})
_ACCESSES: Final = frozenset({"atom", "red", "st", "ld"})
_NEUTRAL_OPERATIONS: Final = frozenset({"add", "or", "xor"})
"""Operations that leave memory as it is if their operand is 0."""
_STORE_OPERATIONS: Final = frozenset({"exch", "cas"})
"""Operations that replace the value in memory, as taking or releasing a lock does."""
_VARIABLE: Final = re.compile(r"_ZZ.+E(\d{1,3})([A-Za-z_]\w*)")
"""Mangled name of a variable of a function (Itanium C++ ABI): length and name after the function's."""


_Known = TypeVar("_Known", int, "Value")


class Access(NamedTuple):
    """An access of global memory. ``value`` is what it stores or adds, ``compare_value`` what a compare-and-swap
    compares with; None if that is not known, and of accesses that do neither.
    """

    opcode: str
    pointer: Pointer | None = None
    value: int | None = None
    compare_value: int | None = None

    @property
    def only_reads(self) -> bool:
        """True of loads, and of atomics that add or set nothing."""
        name, *modifiers = self.opcode.split(".")
        return name == "ld" or (self.value == 0 and not _NEUTRAL_OPERATIONS.isdisjoint(modifiers))

    def changes(self, lock: Access) -> bool:
        """Return whether it writes, and neither takes nor releases a lock that ``lock`` takes.

        A store of the free value releases the lock; a compare-and-swap with it, or an atomic that stores what ``lock``
        does, takes the lock.
        """
        modifiers = self.opcode.split(".")
        free = 0 if "exch" in lock.opcode else lock.compare_value
        if self.only_reads or (modifiers[0] != "st" and _STORE_OPERATIONS.isdisjoint(modifiers)):
            return not self.only_reads
        if free is None or self.value == free or (modifiers[0] == "atom" and self.value == lock.value):
            return False
        return self.compare_value is None or self.compare_value != free


@dataclass(frozen=True, slots=True)
class Init:
    """An ``mbarrier.init`` at a line, and the count that it sets; None if only the launch knows it."""

    line: int
    count: int | None


@dataclass(frozen=True, slots=True)
class Synchronization:
    """Facts about the code of a kernel, by lines of ``pruned.ptx``; nothing where there is no PTX."""

    inits: Mapping[int, int | None] = field(default_factory=dict)
    """Counts that ``mbarrier.init`` sets; None if only the launch knows them."""
    mbarrier_arrival_counts: Mapping[int, int | None] = field(default_factory=dict)
    """Counts of arrivals at mbarriers that count for more than one, likewise."""
    barrier_numbers: Mapping[int, int] = field(default_factory=dict)
    """Numbers of barriers of the block."""
    barriers: Mapping[int, int | None] = field(default_factory=dict)
    """Threads of barriers that have a number of threads; None if only the launch knows it."""
    expect_tx_lines: tuple[int, ...] = ()
    """Lines of arrivals at mbarriers that also expect bytes."""
    write_opcodes: Mapping[int, str] = field(default_factory=dict)
    """Opcodes of writes that the probe records."""
    loops: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """Lines of each loop, by its first one."""
    lock_free_updates: frozenset[int] = frozenset()
    """Compare-and-swaps of a value that their loop reads: these take no lock."""
    counted_loop_lines: frozenset[int] = frozenset()
    """Lines of loops that a counter ends: no warp waits there."""
    addresses: Mapping[int, Value] = field(default_factory=dict)
    """Addresses of mbarriers and of polled shared memory, where they are known."""
    has_plain_stores: bool = False
    """True if the kernel writes global memory with stores that the probe does not record."""
    is_known: bool = False
    """True if there is PTX."""
    exits: Mapping[int, int] = field(default_factory=dict)
    """Exits of warps that ended, by their last place."""
    endless_loops: frozenset[int] = frozenset()
    """First lines of loops that no branch leaves."""
    sources: Mapping[int, SourceLine] = field(default_factory=dict)
    shared_reads: Mapping[int, str] = field(default_factory=dict)
    """Opcodes of reads that see what other warps write to shared memory."""
    lane_waits: LaneWaits = field(default_factory=LaneWaits, compare=False)
    """Instructions at which lanes may wait that left their warp."""
    accesses: Mapping[int, Access] = field(default_factory=dict, compare=False)
    """Accesses of global memory."""
    barrier_arrival_opcodes: Mapping[int, str] = field(default_factory=dict)
    """Opcodes of arrivals at barriers of the block that do not wait, which no record has."""

    @classmethod
    def read(
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
        flows = [FunctionFlow.from_function(function) for function in functions]
        return cls(
            inits=counts.inits,
            mbarrier_arrival_counts=counts.mbarrier_arrival_counts,
            barrier_numbers=_known_values(counts.barrier_numbers),
            barriers=counts.barriers,
            expect_tx_lines=tuple(
                instruction.span.line
                for instruction in code
                if instruction.opcode == "mbarrier" and _expects_bytes(instruction)
            ),
            write_opcodes=_opcodes(filter(_is_recorded_write, code)),
            loops=loops_with_calls(flows),
            lock_free_updates=frozenset(line for flow in flows for line in flow.lock_free_updates()),
            counted_loop_lines=frozenset(line for function in functions for line in counted_lines(function)),
            addresses=_known_values(counts.addresses),
            has_plain_stores=any(map(_is_plain_store, code)),
            is_known=bool(code),
            exits=dict(exits_by_place(flows, ended_from)),
            endless_loops=frozenset(line for flow in flows for line in flow.endless_loops()),
            sources={**lines.lines, **lines.calls},
            shared_reads=_opcodes(filter(_polls_shared_memory, code)),
            lane_waits=LaneWaits.from_functions(functions, counts.partial_exchanges),
            accesses=counts.accesses,
            barrier_arrival_opcodes=_opcodes(filter(_only_arrives, code)),
        )

    def init_of(self, line: int) -> Init | None:
        """The ``mbarrier.init`` of the mbarrier that an instruction waits for. None if several may be it, and these set
        different counts.
        """
        address = self.addresses.get(line)
        matching = {init for init in self.inits if address is not None and self.addresses.get(init) == address}
        inits = {init: count for init, count in self.inits.items() if not matching or init in matching}
        counts = set(inits.values())
        return Init(min(inits), counts.pop()) if len(counts) == 1 else None

    def name_of(self, line: int) -> str:
        """The name of the variable that is the mbarrier or the polled memory of an instruction; "": not known."""
        address = self.addresses.get(line)
        match = _VARIABLE.fullmatch(address.symbol) if address is not None and not address.number else None
        return match[2] if match is not None and len(match[2]) == int(match[1]) else ""

    def use_same_pointer(self, line: int, other_line: int) -> bool | None:
        """Return whether two instructions access memory through one pointer; None if that is not known."""
        accesses = self.accesses.get(line), self.accesses.get(other_line)
        pointer, other_pointer = (None if access is None else access.pointer for access in accesses)
        if pointer is None or other_pointer is None:
            return None
        is_offset_known = pointer.offset is not None and other_pointer.offset is not None
        return pointer.base == other_pointer.base and (not is_offset_known or pointer.offset == other_pointer.offset)

    def line_text(self, line: int, opcode: str = "") -> str:
        """``mbarrier.init PTX:19 tile.cu:12``."""
        return place_text(line, self.sources.get(line), opcode or None)


@dataclass(slots=True)
class _Counts:
    """Counts, numbers and addresses by line, None if only the launch knows them; and the lines of the exchanges whose
    masks may lack lanes.
    """

    inits: dict[int, int | None] = field(default_factory=dict)
    mbarrier_arrival_counts: dict[int, int | None] = field(default_factory=dict)
    barrier_numbers: dict[int, int | None] = field(default_factory=dict)
    barriers: dict[int, int | None] = field(default_factory=dict)
    addresses: dict[int, Value | None] = field(default_factory=dict)
    partial_exchanges: set[int] = field(default_factory=set)
    accesses: dict[int, Access] = field(default_factory=dict)

    def add(self, function: Function, values: LaunchValues) -> None:
        """Read one function."""
        for instruction in instructions_in(function.body or ()):
            if instruction.opcode in _ACCESSES and not {*instruction.modifiers} & _BLOCK_SPACES:
                self.accesses[instruction.span.line] = _read_access(instruction, values)
            if is_exchange(instruction):
                mask = values.number(instruction.operands[-1]) if instruction.operands else None
                if mask is None or mask & _FULL_MASK != _FULL_MASK:
                    self.partial_exchanges.add(instruction.span.line)
            elif instruction.opcode in ("bar", "barrier"):
                _add_count(self.barrier_numbers, instruction, _BARRIER_NUMBER, values)
                _add_count(self.barriers, instruction, _BARRIER_COUNT, values)
            elif _polls_shared_memory(instruction):
                self.addresses[instruction.span.line] = next(map(values.value_of, instruction.operands[1:2]), None)
            elif instruction.opcode == "mbarrier":
                self.addresses.update(
                    (instruction.span.line, values.value_of(operand))
                    for operand in instruction.operands
                    if isinstance(operand, Memory)
                )
                if "init" in instruction.modifiers:
                    _add_count(self.inits, instruction, _INIT_COUNT, values)
                elif _ARRIVALS & {*instruction.modifiers} and not _expects_bytes(instruction):
                    _add_count(self.mbarrier_arrival_counts, instruction, _ARRIVE_COUNT, values)


def _read_access(access: Instruction, values: LaunchValues) -> Access:
    address = next((operand for operand in access.operands if isinstance(operand, Memory)), None)
    return Access(
        opcode=".".join((access.opcode, *access.modifiers)),
        pointer=None if address is None else values.pointer(address),
        value=None if access.opcode == "ld" else values.number(access.operands[-1]),
        compare_value=values.number(access.operands[-2]) if "cas" in access.modifiers else None,
    )


def _add_count(counts: dict[int, int | None], instruction: Instruction, place: int, values: LaunchValues) -> None:
    """Add the count of an instruction that has one."""
    for operand in instruction.operands[place : place + 1]:
        counts[instruction.span.line] = values.number(operand)


def _known_values(values: Mapping[int, _Known | None]) -> dict[int, _Known]:
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
    if modifiers & _BLOCK_SPACES:
        return False
    match instruction.opcode:
        case "atom":
            return "cas" not in modifiers
        case "red":
            return "async" not in modifiers
        case "st":
            return bool(modifiers & _STRONG_MODIFIERS)
    return False


def _only_arrives(instruction: Instruction) -> bool:
    return instruction.opcode in ("bar", "barrier") and {*instruction.modifiers}.isdisjoint(
        {"sync", "red", "warp", "cluster"}
    )


def _polls_shared_memory(instruction: Instruction) -> bool:
    modifiers = {*instruction.modifiers}
    is_strong = instruction.opcode == "atom" or (
        instruction.opcode == "ld" and modifiers & (_STRONG_MODIFIERS | {"acquire"})
    )
    return bool(is_strong) and any(modifier.startswith("shared") for modifier in modifiers)


def _is_plain_store(instruction: Instruction) -> bool:
    """Return whether an instruction may write global memory without a record."""
    modifiers = {*instruction.modifiers}
    if instruction.opcode == "cp":
        return "bulk" in modifiers and "global" in modifiers
    is_store = instruction.opcode in ("st", "multimem", "call") or (instruction.opcode == "atom" and "cas" in modifiers)
    return is_store and not modifiers & (_STRONG_MODIFIERS | _BLOCK_SPACES)
