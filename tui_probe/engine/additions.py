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
                case (written, *_):
                    zero.update(dict.fromkeys(_written_registers(written), False))
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
    """One field: what all lanes do for its sum, what makes that as wide as the field, the addition, and whether one
    lane adds for all.
    """

    gathered: list[str]
    widened: list[str]
    added: str
    by_one: bool

    def all(self, guard: str) -> list[str]:
        """Return the lines one after the other, with the addition under a predicate if one lane makes it."""
        return [*self.gathered, *self.widened, f"{guard if self.by_one else ''}{self.added}"]


class Summation:
    """PTX text of ``ADD`` for one kernel. ``own`` maps the probe's registers to their names in the kernel."""

    def __init__(self, probe: Probe, names: UnusedNames, own: dict[str, str], *, reduces: bool, gathers: bool) -> None:
        """``gathers``: all sums are made before one lane continues to add them."""
        self._gathers = gathers
        self._probe = probe
        self._names = names
        self._own = own
        self._reduces = reduces
        self._end = ""
        self._made = 0
        """Sums so far: with ``gathers`` they are live at the same time, so each has registers of its own."""
        self._late: list[str] | None = None
        """Instructions of one lane at the end of an exit, after all sums; None if each map adds immediately."""
        self._sparse = SparseSummation(names, own)

    def begin_exit(self) -> None:
        """Collect the additions of several maps for the end of a grafted exit. They have one branch then, at which
        lanes part: for sums behind it lanes would have to meet again.
        """
        self._late = [] if self._gathers else None

    def end_exit(self) -> list[str]:
        """Return the lines with the collected additions, for one lane."""
        late, self._late = self._late, None
        return self._continue_in_one_lane(late) if late else []

    def before(self, own_map: Map, values: tuple[str, ...], zero: frozenset[str]) -> list[str]:
        """Lines in front of those that compute the address: which lanes have come together, and a new basic block."""
        if own_map.sparse:
            return self._sparse.before(values, zero, tests=not self._probe.is_lean)
        if not self._together(own_map, values) or (self._late is not None and self._end):
            return []
        self._end = self._names.new_label()
        no_lane = self._names.temporary("no_lane", "pred")
        return [
            f"activemask.b32 {self._lanes()};",
            f"setp.eq.u32 {no_lane}, {self._lanes()}, 0;",
            f"@{no_lane} bra {self._end};",
        ]

    def lines(
        self, own_map: Map, values: tuple[str, ...], find: Sequence[str], address: str, zero: frozenset[str]
    ) -> list[str]:
        """Lines behind ``before`` that ``find`` the record at ``address`` and add to it, leaving out registers in
        ``zero``.
        """
        if own_map.sparse:
            return [*find, *self._sparse.lines(own_map, values, address, zero)]
        together = self._together(own_map, values)
        follows = self._follows() if together else ""
        sums = self._sums(own_map, values, address, zero, together=together)
        if not (self._gathers and together):
            lowest, end = (self._lowest_lane(follows), [f"{self._end}:"]) if together else ([], [])
            return [*find, *lowest, *(line for sum_ in sums for line in sum_.all(f"@!{follows} ")), *end]
        gathered = [line for sum_ in sums for line in sum_.gathered]
        added = [line for sum_ in sums for line in (*sum_.widened, sum_.added)]
        if self._late is None:
            return [*find, *gathered, *self._continue_in_one_lane(added)]
        self._late += [*find, *added]
        return gathered

    def _continue_in_one_lane(self, lines: Sequence[str]) -> list[str]:
        follows = self._follows()
        return [*self._lowest_lane(follows), f"@{follows} bra {self._end};", *lines, f"{self._end}:"]

    def _sums(
        self, own_map: Map, values: tuple[str, ...], address: str, zero: frozenset[str], *, together: bool
    ) -> list[_FieldSum]:
        sums = []
        for field, value in zip(own_map.fields, values, strict=True):
            if value in zero or parse_integer(value) == 0:
                continue
            number = str(self._made) if self._gathers else ""
            self._made += 1
            by_one = together and not (self._probe.is_lean and value in self._own)
            gathered, widened, operand = (
                self._sum(field, value, number) if by_one else ([], *self._widened(field, value))
            )
            place = address + (f"+{field.offset}" if field.offset else "")
            added = f"red.global.add.u{FIELD_BYTES[field.type] * 8} [{place}], {operand};"
            sums.append(_FieldSum(gathered, widened, added, by_one))
        return sums

    def _together(self, own_map: Map, values: tuple[str, ...]) -> bool:
        """Return whether one lane adds for all converged lanes: all values, in the lean variant only numbers."""
        if not self._reduces or own_map.level is not Level.WARP:
            return False
        return not self._probe.is_lean or any(parse_integer(value) for value in values if value not in self._own)

    def _lanes(self) -> str:
        return self._names.temporary("lanes", "b32")

    def _follows(self) -> str:
        return self._names.temporary("follows", "pred")

    def _lowest_lane(self, follows: str) -> list[str]:
        """Return lines after which ``follows`` holds in all lanes but the lowest."""
        lower = self._names.temporary("lower", "b32")
        return [
            f"mov.u32 {lower}, %lanemask_lt;",
            f"and.b32 {lower}, {lower}, {self._lanes()};",
            f"setp.ne.u32 {follows}, {lower}, 0;",
        ]

    def _widened(self, field: Field, value: str) -> tuple[list[str], str]:
        """Return the lines and the register of a lane's value as wide as the field."""
        operand = self._own.get(value, value)
        bits = FIELD_BYTES[field.type] * 8
        if value not in self._own or TYPE_BITS[self._probe.registers[value]] == bits:
            return [], operand
        wide = self._names.temporary("sum", "b64")
        return [f"cvt.u64.u32 {wide}, {operand};"], wide

    def _sum(self, field: Field, value: str, number: str) -> tuple[list[str], list[str], str]:
        """The sum over the lanes, as wide as the field: what all of them do for it, what the lowest does, and it."""
        part, total = self._names.temporary(f"part{number}", "b32"), self._names.temporary("sum", "b64")
        if value not in self._own:
            lines = [f"popc.b32 {part}, {self._lanes()};", f"mul.lo.u32 {part}, {part}, {value};"]
            lines = lines[: 1 if parse_integer(value) == 1 else 2]
            return ([], lines, part) if field.type == "u32" else ([], [*lines, f"cvt.u64.u32 {total}, {part};"], total)
        operand = self._own[value]
        if field.type == "u32":
            return [self._redux(part, operand)], [], part
        if TYPE_BITS[self._probe.registers[value]] == 32:
            return *self._in_halves(operand, part, number), total
        half, upper = self._names.temporary("half", "b32"), self._names.temporary(f"upper{number}", "b32")
        shifted = self._names.temporary("wide", "b64")
        before, after = self._in_halves(half, part, number)
        return (
            [f"mov.b64 {{{half}, {upper}}}, {operand};", *before, self._redux(upper, upper)],
            [
                *after,
                f"cvt.u64.u32 {shifted}, {upper};",
                f"shl.b64 {shifted}, {shifted}, 32;",
                f"add.u64 {total}, {total}, {shifted};",
            ],
            total,
        )

    def _in_halves(self, operand: str, low: str, number: str) -> tuple[list[str], list[str]]:
        """The 64-bit sum of a 32-bit value: what all lanes do for it, and what the lowest does."""
        high, total = self._names.temporary(f"high{number}", "b32"), self._names.temporary("sum", "b64")
        return [
            f"and.b32 {low}, {operand}, 65535;",
            self._redux(low, low),
            f"shr.u32 {high}, {operand}, 16;",
            self._redux(high, high),
        ], [f"cvt.u64.u32 {total}, {low};", f"mad.wide.u32 {total}, {high}, 65536, {total};"]

    def _redux(self, target: str, source: str) -> str:
        return f"redux.sync.add.u32 {target}, {source}, {self._lanes()};"


class SparseSummation:
    """PTX text of ``ADD`` to ``sparse`` maps of one kernel. ``own`` maps the probe's registers to their names there.

    Most lanes of a warp have nothing to add: one branch leads these past the address and the additions, and each other
    lane adds its own. One lane usually counted for all, so sums over lanes would cost more than they save. Numbers are
    added by the lowest lane for all that arrive together.

    Two fields of 32 bits in 8 aligned bytes are added together, as one number of 64 bits: the lower one carries into
    the other when it exceeds 2^32, where it would be wrong in any case. One field is added so, too, since ptxas makes a
    sum over lanes of 32-bit numbers that go to the same address.
    """

    def __init__(self, names: UnusedNames, own: Mapping[str, str]) -> None:
        self._names = names
        self._own = own
        self._end = ""

    def before(self, values: tuple[str, ...], zero: frozenset[str], *, tests: bool) -> list[str]:
        """Return the lines before those that compute the address, which only lanes with something to add reach.

        Without ``tests`` all lanes have something, if there are no numbers among the values.
        """
        registers = [self._own[value] for value in values if value in self._own and value not in zero]
        numbers = any(parse_integer(value) for value in values)
        self._end = ""
        if not (tests or numbers):
            return []
        self._end = self._names.new_label()
        any_, adds = self._b32("any"), self._names.temporary("adds", "pred")
        lines = self._count_lanes() if numbers else []
        lines += [f"mov.u32 {any_}, {self._b32('together') if numbers else 0};"]
        lines += [f"or.b32 {any_}, {any_}, {register};" for register in registers]
        return [*lines, f"setp.ne.u32 {adds}, {any_}, 0;", f"@!{adds} bra {self._end};"]

    def lines(self, own_map: Map, values: tuple[str, ...], address: str, zero: frozenset[str]) -> list[str]:
        """Return the lines behind ``before`` that add to the record at ``address``, without registers in ``zero``."""
        added: dict[int, str] = {}
        lines: list[str] = []
        for field, value in zip(own_map.fields, values, strict=True):
            number = parse_integer(value)
            if value in zero or number == 0:
                continue
            added[field.offset] = self._own.get(value, value) if number is None else self._product(number, lines)
        for first in sorted({offset - offset % _WIDE_BYTES for offset in added}):
            lines += self._add_pair(address, first, added.get(first), added.get(first + _WIDE_BYTES // 2))
        return [*lines, *([f"{self._end}:"] if self._end else [])]

    def _count_lanes(self) -> list[str]:
        """Return the lines that set ``together``: number of arrived lanes in the lowest lane, 0 in others."""
        lanes, lower, together = (self._b32(name) for name in ("lanes", "lower", "together"))
        lowest = self._names.temporary("lowest", "pred")
        return [
            f"activemask.b32 {lanes};",
            f"mov.u32 {lower}, %lanemask_lt;",
            f"and.b32 {lower}, {lower}, {lanes};",
            f"setp.eq.u32 {lowest}, {lower}, 0;",
            f"popc.b32 {together}, {lanes};",
            f"selp.b32 {together}, {together}, 0, {lowest};",
        ]

    def _product(self, number: int, lines: list[str]) -> str:
        """Return the register that holds a number for all lanes together."""
        if number == 1:
            return self._b32("together")
        product = self._b32(f"product{number}")
        lines.append(f"mul.lo.u32 {product}, {self._b32('together')}, {number};")
        return product

    def _add_pair(self, address: str, offset: int, low: str | None, high: str | None) -> list[str]:
        """Return the lines that add two fields; one of them may be missing."""
        pair, nothing = self._names.temporary("sum", "b64"), self._b32("nothing")
        place = f"{address}+{offset}" if offset else address
        return [
            *([] if low and high else [f"mov.u32 {nothing}, 0;"]),
            f"mov.b64 {pair}, {{{low or nothing}, {high or nothing}}};",
            f"red.global.add.u64 [{place}], {pair};",
        ]

    def _b32(self, name: str) -> str:
        return self._names.temporary(name, "b32")
