"""PTX of ``ADD`` to the record of a warp, as one sum over its lanes, or each lane by itself.

Records of instructions are in ``site_records.py``. The lanes of a warp that arrive together add up all their values
first (``redux``), then one of them adds to memory. They may arrive in several groups, by several exits: each adds its
part, which is why nothing is replaced. Where ``redux`` does not exist (before sm_80) each lane adds for itself, which
gives the same sums.

``redux`` has 32 bits. A value that goes into 64 is summed in parts of 16 bits, whose sums over 32 lanes fit::

    sum = sum of (value & 0xffff) + 2**16 * sum of (value >> 16)          + 2**32 * sum of the upper half

which is exact for every 32-bit value, and for 64-bit ones below 2**59.

All this is behind a branch that no lane takes. It begins a basic block, so that the assembler keeps what it needs
here apart from the kernel's own last instructions: mixed with them it would cost a small kernel half a dozen registers.
Each sum goes to memory before the next is made, under a predicate that holds in one lane: sums that wait for a common
branch cost a register each, six more where a kernel has few of its own. A graft has that branch all the same, since
lanes that part there must not come back together.

The lean variant of a probe does without ``redux``, which keeps a mask and makes ptxas write each sum a second time, for
lanes that are not together: each lane adds for itself what it holds in a register. Numbers that are the same in all
lanes are added by one of them there, too, since memory takes an addition after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.probe_model.probe import (
    FIELD_BYTES,
    Field,
    Level,
    Map,
    Probe,
    Snippet,
    SnippetCode,
)
from tui_probe.ptx.instruction_facts import TYPE_BITS
from tui_probe.ptx.operands import parse_integer
from tui_probe.ptx.tree import Immediate, OperandList, Pair, Register, Symbol, Vector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tui_probe.engine.kernel import UnusedNames
    from tui_probe.ptx.tree import Operand

_WIDE_BYTES: Final = 8
"""Bytes of one addition to a sparse map: two fields of 32 bits."""


def always_zero(snippets: Iterable[Snippet]) -> frozenset[str]:
    """Return the registers that these snippets only ever set to 0, so that adding them can be left out."""
    zero: dict[str, bool] = {}
    for snippet in snippets:
        for statement in snippet.statements:
            if (
                not isinstance(statement, SnippetCode)
                or statement.instruction is None
                or not statement.instruction.operands
            ):
                continue
            match statement.instruction.operands:
                case (Register(name=name) | Symbol(name=name), Immediate(text=text)):
                    is_zero = statement.instruction.opcode == "mov" and parse_integer(text) == 0
                    zero[name] = is_zero and zero.get(name, True)
                case (destination, *_):
                    zero.update(dict.fromkeys(_written_registers(destination), False))
    return frozenset(name for name, is_zero in zero.items() if is_zero)


def _written_registers(operand: Operand) -> Iterator[str]:
    """Yield the registers in an operand that is written: one, or several in a vector or a pair."""
    match operand:
        case Register(name=name) | Symbol(name=name):
            yield name
        case Vector(elements=elements) | OperandList(elements=elements):
            for element in elements:
                yield from _written_registers(element)
        case Pair(first=first, second=second):
            yield from _written_registers(first)
            yield from _written_registers(second)


class _FieldSum(NamedTuple):
    """Sum of one field over lanes: ``lane_lines`` run in all lanes, ``widening`` makes the sum as wide as the field,
    ``addition`` adds it to memory. ``is_by_one_lane``: one lane adds for all.
    """

    lane_lines: list[str]
    widening: list[str]
    addition: str
    is_by_one_lane: bool

    def guarded_lines(self, guard: str) -> list[str]:
        """Return the lines one after the other, with the addition under a predicate if one lane makes it."""
        return [*self.lane_lines, *self.widening, f"{guard if self.is_by_one_lane else ''}{self.addition}"]


class Summation:
    """PTX text of ``ADD`` for one kernel. ``probe_registers``: names in the kernel of the probe's registers."""

    def __init__(
        self, probe: Probe, names: UnusedNames, probe_registers: dict[str, str], *, reduces: bool, gathers: bool
    ) -> None:
        """Describe how sums are made. ``reduces``: by ``redux`` over the lanes. ``gathers``: all sums are made before
        one lane continues to add them.
        """
        self._gathers = gathers
        self._probe = probe
        self._names = names
        self._probe_registers = probe_registers
        self._reduces = reduces
        self._end = ""
        self._sum_count = 0
        """Sums so far: with ``gathers`` they are live at the same time, so each has registers of its own."""
        self._deferred_lines: list[str] | None = None
        """Instructions of one lane at the end of an exit, after all sums; None if each map adds immediately."""
        self._sparse = SparseSummation(names, probe_registers)

    def begin_exit(self) -> None:
        """Collect the additions of several maps for the end of a grafted exit. They have one branch then, at which
        lanes part: for sums behind it lanes would have to meet again.
        """
        self._deferred_lines = [] if self._gathers else None

    def end_exit(self) -> list[str]:
        """Return the lines with the collected additions, for one lane."""
        deferred_lines, self._deferred_lines = self._deferred_lines, None
        return self._continue_in_one_lane(deferred_lines) if deferred_lines else []

    def prepare(self, own_map: Map, values: tuple[str, ...], zero: frozenset[str]) -> list[str]:
        """Return the lines before those that compute the address: they find the converged lanes, and begin a new basic
        block.
        """
        if own_map.sparse:
            return self._sparse.prepare(values, zero, has_test=not self._probe.is_lean)
        if not self._is_joint(own_map, values) or (self._deferred_lines is not None and self._end):
            return []
        self._end = self._names.new_label()
        no_lane = self._names.temporary("no_lane", "pred")
        return [
            f"activemask.b32 {self._lanes_register()};",
            f"setp.eq.u32 {no_lane}, {self._lanes_register()}, 0;",
            f"@{no_lane} bra {self._end};",
        ]

    def add(
        self, own_map: Map, values: tuple[str, ...], address_lines: Sequence[str], address: str, zero: frozenset[str]
    ) -> list[str]:
        """Return the lines behind those of ``prepare`` that add to the record at ``address``, which ``address_lines``
        compute. Registers in ``zero`` are left out.
        """
        if own_map.sparse:
            return [*address_lines, *self._sparse.add(own_map, values, address, zero)]
        is_joint = self._is_joint(own_map, values)
        is_follower = self._follower_predicate() if is_joint else ""
        sums = self._field_sums(own_map, values, address, zero, is_joint=is_joint)
        if not (self._gathers and is_joint):
            lane_test, end = (self._find_lowest_lane(is_follower), [f"{self._end}:"]) if is_joint else ([], [])
            return [
                *address_lines,
                *lane_test,
                *(line for field_sum in sums for line in field_sum.guarded_lines(f"@!{is_follower} ")),
                *end,
            ]
        lane_lines = [line for sum_ in sums for line in sum_.lane_lines]
        additions = [line for sum_ in sums for line in (*sum_.widening, sum_.addition)]
        if self._deferred_lines is None:
            return [*address_lines, *lane_lines, *self._continue_in_one_lane(additions)]
        self._deferred_lines += [*address_lines, *additions]
        return lane_lines

    def _continue_in_one_lane(self, lines: Sequence[str]) -> list[str]:
        is_follower = self._follower_predicate()
        return [*self._find_lowest_lane(is_follower), f"@{is_follower} bra {self._end};", *lines, f"{self._end}:"]

    def _field_sums(
        self, own_map: Map, values: tuple[str, ...], address: str, zero: frozenset[str], *, is_joint: bool
    ) -> list[_FieldSum]:
        sums = []
        for field, value in zip(own_map.fields, values, strict=True):
            if value in zero or parse_integer(value) == 0:
                continue
            number = str(self._sum_count) if self._gathers else ""
            self._sum_count += 1
            is_by_one_lane = is_joint and not (self._probe.is_lean and value in self._probe_registers)
            lane_lines, widening, operand = (
                self._sum_over_lanes(field, value, number) if is_by_one_lane else ([], *self._widen(field, value))
            )
            field_address = address + (f"+{field.offset}" if field.offset else "")
            addition = f"red.global.add.u{FIELD_BYTES[field.type] * 8} [{field_address}], {operand};"
            sums.append(_FieldSum(lane_lines, widening, addition, is_by_one_lane))
        return sums

    def _is_joint(self, own_map: Map, values: tuple[str, ...]) -> bool:
        """Return whether one lane adds for all converged lanes: all values, in the lean variant only numbers."""
        if not self._reduces or own_map.level is not Level.WARP:
            return False
        return not self._probe.is_lean or any(
            parse_integer(value) for value in values if value not in self._probe_registers
        )

    def _lanes_register(self) -> str:
        return self._names.temporary("lanes", "b32")

    def _follower_predicate(self) -> str:
        return self._names.temporary("follows", "pred")

    def _find_lowest_lane(self, is_follower: str) -> list[str]:
        """Return lines after which ``is_follower`` holds in all lanes but the lowest."""
        lower_lanes = self._names.temporary("lower", "b32")
        return [
            f"mov.u32 {lower_lanes}, %lanemask_lt;",
            f"and.b32 {lower_lanes}, {lower_lanes}, {self._lanes_register()};",
            f"setp.ne.u32 {is_follower}, {lower_lanes}, 0;",
        ]

    def _widen(self, field: Field, value: str) -> tuple[list[str], str]:
        """Return the lines and the register of a lane's value as wide as the field."""
        operand = self._probe_registers.get(value, value)
        bits = FIELD_BYTES[field.type] * 8
        if value not in self._probe_registers or TYPE_BITS[self._probe.registers[value]] == bits:
            return [], operand
        wide_register = self._names.temporary("sum", "b64")
        return [f"cvt.u64.u32 {wide_register}, {operand};"], wide_register

    def _sum_over_lanes(self, field: Field, value: str, number: str) -> tuple[list[str], list[str], str]:
        """Return the lines that all lanes run for a sum, those that the lowest lane runs, and the sum's register, which
        is as wide as the field.
        """
        part, total = self._names.temporary(f"part{number}", "b32"), self._names.temporary("sum", "b64")
        if value not in self._probe_registers:
            lines = [f"popc.b32 {part}, {self._lanes_register()};", f"mul.lo.u32 {part}, {part}, {value};"]
            lines = lines[: 1 if parse_integer(value) == 1 else 2]
            return ([], lines, part) if field.type == "u32" else ([], [*lines, f"cvt.u64.u32 {total}, {part};"], total)
        operand = self._probe_registers[value]
        if field.type == "u32":
            return [self._redux(part, operand)], [], part
        if TYPE_BITS[self._probe.registers[value]] == 32:
            return *self._sum_halves(operand, part, number), total
        half, upper = self._names.temporary("half", "b32"), self._names.temporary(f"upper{number}", "b32")
        upper_sum = self._names.temporary("wide", "b64")
        half_lines, half_widening = self._sum_halves(half, part, number)
        return (
            [f"mov.b64 {{{half}, {upper}}}, {operand};", *half_lines, self._redux(upper, upper)],
            [
                *half_widening,
                f"cvt.u64.u32 {upper_sum}, {upper};",
                f"shl.b64 {upper_sum}, {upper_sum}, 32;",
                f"add.u64 {total}, {total}, {upper_sum};",
            ],
            total,
        )

    def _sum_halves(self, operand: str, low_part: str, number: str) -> tuple[list[str], list[str]]:
        """Return the lines that all lanes run for the 64-bit sum of a 32-bit value, and those of the lowest lane."""
        high_part, total = self._names.temporary(f"high{number}", "b32"), self._names.temporary("sum", "b64")
        return [
            f"and.b32 {low_part}, {operand}, 65535;",
            self._redux(low_part, low_part),
            f"shr.u32 {high_part}, {operand}, 16;",
            self._redux(high_part, high_part),
        ], [f"cvt.u64.u32 {total}, {low_part};", f"mad.wide.u32 {total}, {high_part}, 65536, {total};"]

    def _redux(self, target: str, source: str) -> str:
        return f"redux.sync.add.u32 {target}, {source}, {self._lanes_register()};"


class SparseSummation:
    """PTX text of ``ADD`` to ``sparse`` maps of one kernel. ``probe_registers``: names there of the probe's registers.
    Most lanes of a warp have nothing to add: one branch leads these past the address and the additions, and each other
    lane adds its own. One lane usually counted for all, so sums over lanes would cost more than they save. Numbers are
    added by the lowest lane for all that arrive together.

    Two fields of 32 bits in 8 aligned bytes are added together, as one number of 64 bits: the lower one carries into
    the other when it exceeds 2^32, where it would be wrong in any case. One field is added so, too, since ptxas makes a
    sum over lanes of 32-bit numbers that go to the same address.
    """

    def __init__(self, names: UnusedNames, probe_registers: Mapping[str, str]) -> None:
        self._names = names
        self._probe_registers = probe_registers
        self._end = ""

    def prepare(self, values: tuple[str, ...], zero: frozenset[str], *, has_test: bool) -> list[str]:
        """Return the lines before those that compute the address, which only lanes with something to add reach.

        Without ``has_test`` all lanes have something, if there are no numbers among the values.
        """
        registers = [
            self._probe_registers[value] for value in values if value in self._probe_registers and value not in zero
        ]
        has_numbers = any(parse_integer(value) for value in values)
        self._end = ""
        if not (has_test or has_numbers):
            return []
        self._end = self._names.new_label()
        combined, has_addend = self._b32("any"), self._names.temporary("adds", "pred")
        lines = self._count_lanes() if has_numbers else []
        lines += [f"mov.u32 {combined}, {self._b32('together') if has_numbers else 0};"]
        lines += [f"or.b32 {combined}, {combined}, {register};" for register in registers]
        return [*lines, f"setp.ne.u32 {has_addend}, {combined}, 0;", f"@!{has_addend} bra {self._end};"]

    def add(self, own_map: Map, values: tuple[str, ...], address: str, zero: frozenset[str]) -> list[str]:
        """Return the lines behind those of ``prepare`` that add to the record at ``address``. Registers in ``zero`` are
        left out.
        """
        addends: dict[int, str] = {}
        lines: list[str] = []
        for field, value in zip(own_map.fields, values, strict=True):
            number = parse_integer(value)
            if value in zero or number == 0:
                continue
            addends[field.offset] = (
                self._probe_registers.get(value, value) if number is None else self._product(number, lines)
            )
        for offset_of_pair in sorted({offset - offset % _WIDE_BYTES for offset in addends}):
            lines += self._add_pair(
                address, offset_of_pair, addends.get(offset_of_pair), addends.get(offset_of_pair + _WIDE_BYTES // 2)
            )
        return [*lines, *([f"{self._end}:"] if self._end else [])]

    def _count_lanes(self) -> list[str]:
        """Return the lines that set ``together``: number of arrived lanes in the lowest lane, 0 in others."""
        lanes, lower_lanes, lane_count = (self._b32(name) for name in ("lanes", "lower", "together"))
        is_lowest = self._names.temporary("lowest", "pred")
        return [
            f"activemask.b32 {lanes};",
            f"mov.u32 {lower_lanes}, %lanemask_lt;",
            f"and.b32 {lower_lanes}, {lower_lanes}, {lanes};",
            f"setp.eq.u32 {is_lowest}, {lower_lanes}, 0;",
            f"popc.b32 {lane_count}, {lanes};",
            f"selp.b32 {lane_count}, {lane_count}, 0, {is_lowest};",
        ]

    def _product(self, number: int, lines: list[str]) -> str:
        """Return the register that holds a number for all lanes together."""
        if number == 1:
            return self._b32("together")
        product = self._b32(f"product{number}")
        lines.append(f"mul.lo.u32 {product}, {self._b32('together')}, {number};")
        return product

    def _add_pair(self, address: str, offset: int, low_word: str | None, high_word: str | None) -> list[str]:
        """Return the lines that add two fields; one of them may be missing."""
        pair, zero_register = self._names.temporary("sum", "b64"), self._b32("nothing")
        pair_address = f"{address}+{offset}" if offset else address
        return [
            *([] if low_word and high_word else [f"mov.u32 {zero_register}, 0;"]),
            f"mov.b64 {pair}, {{{low_word or zero_register}, {high_word or zero_register}}};",
            f"red.global.add.u64 [{pair_address}], {pair};",
        ]

    def _b32(self, name: str) -> str:
        return self._names.temporary(name, "b32")
