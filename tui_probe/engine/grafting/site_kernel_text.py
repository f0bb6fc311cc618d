"""PTX text of a kernel with the code of one instruction, block, entry or exit.

Facts of an instruction reach the code through marks, loads of shared memory: no snippet may touch shared memory itself,
so each such access in what ptxas makes is a mark, and the graft puts a move in its place. So do the probe's own
registers that live while the kernel runs: they are loaded from marks where a snippet begins and stored to marks where
it ends.

A load from one address gives all lanes the same value, and ptxas drops a ``shfl`` of such a value. So where a snippet
has one, its marks are loads from addresses that differ between lanes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.addressing import Addressing, LaunchKind
from tui_probe.engine.expansion import Expander, Sampling
from tui_probe.engine.helpers import BOX_HELPERS, HelperValue
from tui_probe.engine.kernel import UnusedNames
from tui_probe.engine.recording import RecordTurn
from tui_probe.engine.snippet import BLOCK_HELPER, ISSUED_HELPER
from tui_probe.engine.tensor_maps import BOX_FIELDS, BoxLines
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.probe import Save, SnippetCode
from tui_probe.ptx.operands import MADE_UP
from tui_probe.ptx.tree import Instruction, Memory, Register
from tui_probe.reasons import because
from tui_probe.sass.snippets import MARK_STEP

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from tui_probe.engine.additions import SiteRecords
    from tui_probe.engine.grafting.sass_blocks import BlockCode
    from tui_probe.engine.map_layout import MapLayout
    from tui_probe.probe_model.probe import Map, Probe, ProbePoint, Snippet

ENTRY: Final = "tui_probe_entry"
EXIT: Final = "tui_probe_exit"

_HELPERS: Final = frozenset({"ADDR", "BYTES", "LINE", "MULTIPLY_ADDS"}) | BOX_HELPERS
_SIZES_OF_COPIES: Final = frozenset({"BYTES", "SECTORS", "UNSIZED"})
_HELPERS_OF_BLOCKS: Final = frozenset({BLOCK_HELPER, ISSUED_HELPER})
REGISTER_WORD: Final = re.compile(r"%[\w$]+")
HALF: Final = 32
KEPT_TYPES: Final = {"b32": 32, "u32": 32, "s32": 32, "b64": 64, "u64": 64, "s64": 64}


class Mark(IntEnum):
    """Numbers of marks. An address register and a uniform address register have two marks each, one per half.

    ``COPIED`` of a bulk copy: its size in units of 16 bytes, in the lower half. Its address, or that of its map, is
    the uniform one; from ``FIRST_COORDINATE`` on are the coordinates of its box.
    ``OFFSET`` is added to the address. ``READS`` is 1 in lanes that read, else 0. ``LINE`` is the instruction's
    position. From ``FIRST_KEPT`` on, marks are words of registers that live throughout; from ``FIRST_NUMBER`` on, the
    numbers passed to the points of a block, in order; from ``FIRST_SITE`` on, the numbers of the instruction among the
    sites of the probe's maps of sites, in order of the maps.
    """

    ADDRESS = 1
    UNIFORM_ADDRESS = 3
    OFFSET = 5
    READS = 6
    LINE = 7
    FIRST_KEPT = 8
    FIRST_COORDINATE = 1018
    COPIED = 1023
    FIRST_NUMBER = 1024
    FIRST_SITE = 1536


@dataclass(frozen=True, slots=True)
class InstructionFacts:
    """Facts of an instruction for a snippet: the bytes and multiply-adds of a lane, and what its address is made of.

    ``shared``: in shared memory, where the register's value is shifted to the left by ``shift``. ``bulk``: a bulk copy,
    which all lanes start once together, by the map of a ``tensor`` whose box is a tile of that many ``dimensions``.
    ``counted``, ``begins``: as in ``RecordTurn``.
    """

    bytes: int | None = None
    multiply_adds: int | None = None
    wide: bool = True
    uniform: bool = False
    predicated: bool = False
    shortened: bool = False
    shared: bool = False
    shift: int = 0
    bulk: bool = False
    tensor: bool = False
    dimensions: int = 0
    counted: bool = False
    begins: bool = False


@dataclass(frozen=True, slots=True)
class SnippetSite:
    """A snippet at an instruction. ``ptx_equivalent`` is what the instruction would be in PTX."""

    point: ProbePoint
    facts: InstructionFacts
    ptx_equivalent: Instruction

    @property
    def key(self) -> tuple[str, InstructionFacts]:
        """Equal where the code is."""
        return self.point.name, self.facts


def snippet_before_block(point: ProbePoint) -> Snippet:
    """Return the code of a point at the start of a block. Raises UnsupportedKernelError if it saves there, or needs
    more.
    """
    snippet = point.before
    if snippet is None or snippet.labels or snippet.helpers - _HELPERS_OF_BLOCKS or saved_maps([snippet]):
        raise UnsupportedKernelError(because("needs-instructions", probe=point.name))
    return snippet


def snippet_before(point: ProbePoint) -> Snippet:
    """Return the code of a point before an instruction. Raises UnsupportedKernelError if it needs more."""
    if point.after is not None or point.before is None or point.before.helpers - _HELPERS:
        raise UnsupportedKernelError(because("needs-instructions", probe=point.name))
    return point.before


def _exchanges(snippet: Snippet) -> bool:
    """Return whether lanes read values of other lanes."""
    codes = (statement.instruction for statement in snippet.statements if isinstance(statement, SnippetCode))
    return any(instruction is not None and instruction.opcode == "shfl" for instruction in codes)


def _saves_records(snippet: Snippet) -> bool:
    """Return whether a snippet saves records, for which it chooses the lane itself."""
    return any(isinstance(statement, Save) and not statement.adds for statement in snippet.statements)


def saved_maps(snippets: Iterable[Snippet]) -> set[str]:
    """The maps that snippets save to."""
    return {statement.map for snippet in snippets for statement in snippet.statements if isinstance(statement, Save)}


def snippet_registers(snippets: Iterable[Snippet]) -> set[str]:
    registers: set[str] = set()
    for snippet in snippets:
        for statement in snippet.statements:
            match statement:
                case SnippetCode(text=text):
                    registers.update(REGISTER_WORD.findall(text))
                case Save(values=values):
                    registers.update(values)
    return registers


@dataclass(frozen=True, slots=True)
class WaitSums:
    """Sums of one wait site, which the exit code adds to its record of ``own_map``: of each known value the mark.

    ``instruction`` stands for the site in the records.
    """

    own_map: Map
    values: tuple[str, ...]
    marks: dict[str, int]
    instruction: Instruction


@dataclass(frozen=True, slots=True)
class KernelFrame:
    """Common part of the kernels of a probe: registers that live throughout, maps of several records per slot,
    registers that are always 0, ``parameters`` (purpose and name) behind that many ``leading`` bytes, and all
    ``sites``.
    """

    live_registers: Sequence[str]
    counted: Sequence[Map]
    zero: frozenset[str]
    reduces: bool
    leading: int
    parameters: Sequence[tuple[str, str]]
    sites: SiteRecords
    map_layout: MapLayout | None = None
    of_warps: bool = False
    """True if what lives throughout is the same in all lanes of a warp."""


class _KeptRegister(NamedTuple):
    """A register that lives throughout, and the marks of its words, which are numbered for the whole kernel."""

    register: str
    marks: range


class SiteKernelText:
    """PTX text of one of the kernels."""

    def __init__(self, probe: Probe, frame: KernelFrame, *, sampled: bool) -> None:
        self._probe = probe
        self._frame = frame
        self._names = UnusedNames("")
        self._sampling = Sampling(probe, self._names) if sampled else None
        addressing = Addressing(self._names, None, self._sampling.place if self._sampling else "", LaunchKind.ANY)
        self._addressing = addressing
        self.expander = Expander(
            probe,
            self._names,
            addressing,
            reduces=frame.reduces,
            gathers=True,
            of_warps=frame.of_warps,
            sites=frame.sites,
        )
        self.expander.zero = frame.zero
        self._mark = self._names.temporary("mark", "b32")

    def at_place(self, name: str, place: SnippetSite) -> str:
        """Write the kernel with the code of one instruction."""
        snippet = snippet_before(place.point)
        values, lines = self._helpers(snippet, place.facts)
        parted = _exchanges(snippet) or place.facts.dimensions > 0
        if parted:
            lines.insert(0, f"mov.u32 {self._mark}, %lanemask_lt;")
        lines += self._site_numbers(saved_maps([snippet]))
        turn = RecordTurn(counted=place.facts.counted, begins=place.facts.begins)
        body = self.expander.lines(snippet, values, place.ptx_equivalent, turn)
        if place.facts.bulk and snippet.helpers & _SIZES_OF_COPIES and not _saves_records(snippet):
            lines, body = [], self._in_one_lane([*lines, *body])
        live = self._live_marks(snippet_registers([snippet]), saved_maps([snippet]))
        if saved_maps([snippet]) and self._sampling is not None:
            lines = [*self._sample(), *lines]
            body = self._sampling.skip_outside_sample(body)
        stored = self._store_lines(live)
        if stored and parted:
            stored.insert(0, f"mov.u32 {self._mark}, 0;")
        return self._kernel_text(name, [*self._load_lines(live), *lines, *body, *stored])

    def at_block(self, name: str, codes: Sequence[BlockCode]) -> str:
        """Write the kernel with the code of one block's start, point by point."""
        snippets = [snippet_before_block(code.point) for code in codes]
        lines: list[str] = []
        for index, (code, snippet) in enumerate(zip(codes, snippets, strict=True)):
            number, more = self._read_mark(Mark.FIRST_NUMBER + index, f"number{index}")
            if code.wide:
                wide = self._names.temporary(f"wide{index}", "b64")
                more, number = [*more, f"cvt.u64.u32 {wide}, {number};"], wide
            value = HelperValue(number, "b64" if code.wide else "b32")
            values = dict.fromkeys(sorted(snippet.helpers), value)
            lines += [*(more if values else []), *self.expander.lines(snippet, values)]
        live = self._live_marks(snippet_registers(snippets), set())
        return self._kernel_text(name, [*self._load_lines(live), *lines, *self._store_lines(live)])

    def at_entry(self, snippets: Sequence[Snippet]) -> str:
        """Write the kernel with the entry code. The registers that live on are stored to their marks."""
        body = [line for snippet in snippets for line in self.expander.lines(snippet, {})]
        begin = self.expander.begin()
        if self._sampling is not None and (begin or saved_maps(snippets)):
            if self._frame.of_warps:
                begin = self._sampling.begin_in_memory(begin, self.expander.leader_attempts())
            begin = [*self._sample(), *begin]
            body = self._sampling.skip_outside_sample(body) if saved_maps(snippets) else body
        return self._kernel_text(ENTRY, [*begin, *body, *self._store_lines(self._live_marks())])

    def at_exit(self, snippets: Sequence[Snippet], waits: Sequence[WaitSums] = ()) -> str:
        """Write the kernel with the exit code, which first adds the sums of waits to their records."""
        body = self._wait_lines(waits) if waits else []
        body += self.expander.at_exit(snippets)
        inside = self._sampling.skip_outside_sample(body) if self._sampling else body
        return self._kernel_text(EXIT, [*self._load_lines(self._live_marks()), *self._sample(), *inside])

    def _wait_lines(self, waits: Sequence[WaitSums]) -> list[str]:
        """Lines that add sums, which are those of the warp, in one of the lanes that leave together."""
        lanes, lower = self._names.temporary("leaving", "b32"), self._names.temporary("lower_lanes", "b32")
        follows = self._names.temporary("follows_lane", "pred")
        lines = [f"activemask.b32 {lanes};", f"mov.u32 {lower}, %lanemask_lt;", f"and.b32 {lower}, {lower}, {lanes};"]
        lines += [f"setp.ne.u32 {follows}, {lower}, 0;", f"@{follows} exit;", f"mov.u32 {self._mark}, {lower};"]
        address, more = self.expander.sites.copy_address(waits[0].own_map, lower)
        lines += more
        for wait in waits:
            read = {value: self._read_mark(mark, f"sum_{value.lower()}") for value, mark in wait.marks.items()}
            registers_by_value = {value: register for value, (register, _) in read.items()}
            lines += [line for _, more in read.values() for line in more]
            lines += self.expander.sites.add_words(
                wait.own_map, wait.instruction, wait.values, registers_by_value, address
            )
            # No lane leaves here. Without this the assembler would read all marks first, each into its own register.
            first = registers_by_value[wait.values[0]]
            lines += [f"and.b32 {self._mark}, {lower}, {first};", f"setp.ne.u32 {follows}, {self._mark}, 0;"]
            lines.append(f"@{follows} exit;")
        return lines

    def _sample(self) -> list[str]:
        if self._sampling is None:
            return []
        number = self._names.temporary("block", "b32")
        return self._sampling.begin(self._addressing.block(number), number)

    def _kernel_text(self, name: str, lines: Sequence[str]) -> str:
        leading = f"\t.param .align 8 .b8 tui_probe_leading[{self._frame.leading}]"
        own = [self._names.parameter(*parameter) for parameter in self._frame.parameters]
        declared = ",\n".join([leading, *(f"\t.param .u64 {parameter}" for parameter in own)])
        body = "\n\t".join(["", *self._names.declarations(), f"mov.u32 {self._mark}, 0;", *lines, "ret;"])
        return f".visible .entry {name}(\n{declared}\n)\n{{{body}\n}}\n"

    def _read_mark(self, number: int, name: str) -> tuple[str, list[str]]:
        register = self._names.temporary(name, "b32")
        return register, [f"ld.volatile.shared.u32 {register}, [{self._mark}+{MARK_STEP * number}];"]

    def _site_numbers(self, saved: set[str]) -> list[str]:
        """Lines that read the instruction's numbers in the maps of sites that are saved to."""
        lines: list[str] = []
        for index, name in enumerate(self.expander.sites.lines):
            if name in saved:
                register, more = self._read_mark(Mark.FIRST_SITE + index, f"site{index}")
                self.expander.sites.registers[name] = register
                lines += more
        return lines

    def _helpers(self, snippet: Snippet, facts: InstructionFacts) -> tuple[dict[str, HelperValue], list[str]]:
        """The values of a snippet's helpers, and the lines that compute them."""
        values: dict[str, HelperValue] = {}
        lines: list[str] = []
        if "ADDR" in snippet.helpers or ("BYTES" in snippet.helpers and facts.shortened):
            address, lines = self._address(facts)
            values["ADDR"] = HelperValue(address, "b64")
        if "BYTES" in snippet.helpers:
            values["BYTES"], more = self._bytes(facts)
            lines += more
        if "LINE" in snippet.helpers:
            line, more = self._read_mark(Mark.LINE, "line")
            values["LINE"] = HelperValue(line, "b32")
            lines += more
        for name in ("SECTORS", "UNSIZED"):
            if name in snippet.helpers:
                values[name], more = self._of_box(name, facts)
                lines += more
        if BOX_FIELDS.keys() & snippet.helpers:
            box, more = self._box(facts)
            values |= box
            lines += more
        if "MULTIPLY_ADDS" in snippet.helpers:
            values["MULTIPLY_ADDS"] = HelperValue(str(facts.multiply_adds), "b32")
        return values, lines

    def _address(self, facts: InstructionFacts) -> tuple[str, list[str]]:
        """A 64-bit register that holds the address of a lane's access, and the lines that compute it."""
        if facts.shared:
            return self._shared_address(facts)
        if facts.bulk:
            return self._uniform_address()
        low, lines = self._read_mark(Mark.ADDRESS, "low")
        high, more = self._read_mark(Mark.ADDRESS + 1, "high") if facts.wide else ("0", [])
        offset, added = self._read_mark(Mark.OFFSET, "offset")
        address, other = self._names.temporary("addr", "b64"), self._names.temporary("other_addr", "b64")
        lines += [*more, *added, f"mov.b64 {address}, {{{low}, {high}}};"]
        lines += [f"cvt.s64.s32 {other}, {offset};", f"add.s64 {address}, {address}, {other};"]
        if facts.uniform:
            uniform, more = self._uniform_address()
            lines += [*more, f"add.s64 {address}, {address}, {uniform};"]
        return address, lines

    def _uniform_address(self) -> tuple[str, list[str]]:
        low, lines = self._read_mark(Mark.UNIFORM_ADDRESS, "uniform_low")
        high, more = self._read_mark(Mark.UNIFORM_ADDRESS + 1, "uniform_high")
        address = self._names.temporary("uniform_addr", "b64")
        return address, [*lines, *more, f"mov.b64 {address}, {{{low}, {high}}};"]

    def _box(self, facts: InstructionFacts) -> tuple[dict[str, HelperValue], list[str]]:
        """Return the rows of the box of a copy by tensor map, and the lines that read them out of the map."""
        box, lines = self._box_of_map(facts)
        is_known = facts.dimensions > 0 and box.is_sized
        rows = box.rows(is_known=is_known)
        lines = [*(lines if is_known else ()), *next(iter(rows.values())).lines]
        return {name: HelperValue(value.register, BOX_FIELDS[name]) for name, value in rows.items()}, lines

    def _box_of_map(self, facts: InstructionFacts) -> tuple[BoxLines, list[str]]:
        """Return the box of a copy by tensor map, and the lines that read its address and coordinates."""
        address, lines = self._address(facts)
        marks = range(Mark.FIRST_COORDINATE, Mark.FIRST_COORDINATE + facts.dimensions)
        read = [self._read_mark(mark, f"coordinate{mark - Mark.FIRST_COORDINATE}") for mark in marks]
        box = BoxLines(
            Instruction("cp", ("async", "bulk", "tensor", f"{facts.dimensions}d"), (), MADE_UP),
            Memory(Register(address), coordinates=tuple(Register(register) for register, _ in read)),
            address,
            self._names,
            self._frame.map_layout,
        )
        return box, [*lines, *(line for _, more in read for line in more)]

    def _of_box(self, name: str, facts: InstructionFacts) -> tuple[HelperValue, list[str]]:
        """Return the bytes or sectors of a copy by tensor map, or 1 if its boxes have no known size."""
        box, lines = self._box_of_map(facts)
        if not facts.dimensions or not box.is_sized:
            return HelperValue(str(int(facts.tensor and name == "UNSIZED")), "b32"), []
        value = {"BYTES": box.bytes, "SECTORS": box.sectors, "UNSIZED": box.unsized}[name]()
        return HelperValue(value.register, "b32"), [*lines, *value.lines]

    def _shared_address(self, facts: InstructionFacts) -> tuple[str, list[str]]:
        """Return the register of a shared memory address, and the lines that compute it from a 32-bit offset."""
        low, lines = self._read_mark(Mark.ADDRESS, "low")
        offset, added = self._read_mark(Mark.OFFSET, "offset")
        address = self._names.temporary("addr", "b64")
        lines += [f"shl.b32 {low}, {low}, {facts.shift};"] if facts.shift else []
        lines += [*added, f"add.u32 {low}, {low}, {offset};"]
        if facts.uniform:
            uniform, more = self._read_mark(Mark.UNIFORM_ADDRESS, "uniform_low")
            lines += [*more, f"add.u32 {low}, {low}, {uniform};"]
        return address, [*lines, f"cvt.u64.u32 {address}, {low};"]

    def _bytes(self, facts: InstructionFacts) -> tuple[HelperValue, list[str]]:
        """The bytes that a lane moves. Of a copy that fills with zeros, those that it reads."""
        if facts.bulk:
            return self._bulk_bytes(facts)
        if not facts.predicated and not facts.shortened:
            return HelperValue(str(facts.bytes), "b32"), []
        size = self._names.temporary("size", "b32")
        lines = [f"mov.u32 {size}, {facts.bytes};"]
        if facts.shortened:
            assert facts.bytes is not None
            low = self._names.temporary("low", "b32")
            offset = self._names.temporary("offset", "b32")
            lines += [f"add.u32 {size}, {low}, {offset};", f"and.b32 {size}, {size}, {facts.bytes - 1};"]
            lines += [f"sub.u32 {size}, {facts.bytes}, {size};"]
        if facts.predicated:
            reads, more = self._read_mark(Mark.READS, "reads")
            lines += [*more, f"mul.lo.u32 {size}, {size}, {reads};"]
        return HelperValue(size, "b32"), lines

    def _bulk_bytes(self, facts: InstructionFacts) -> tuple[HelperValue, list[str]]:
        """The bytes of a bulk copy; 0 if their number is not known."""
        if facts.tensor:
            return self._of_box("BYTES", facts)
        copied, lines = self._read_mark(Mark.COPIED, "copied")
        lines += [f"and.b32 {copied}, {copied}, 0xffff;", f"shl.b32 {copied}, {copied}, 4;"]
        return HelperValue(copied, "b32"), lines

    def _in_one_lane(self, lines: list[str]) -> list[str]:
        """Lines that only the lowest active lane runs: all lanes that come to a bulk copy start one copy together."""
        lanes, lower = self._names.temporary("starting", "b32"), self._names.temporary("lower_lanes", "b32")
        follows, skip = self._names.temporary("follows_lane", "pred"), self._names.new_label()
        lowest = [f"activemask.b32 {lanes};", f"mov.u32 {lower}, %lanemask_lt;", f"and.b32 {lower}, {lower}, {lanes};"]
        return [*lowest, f"setp.ne.u32 {follows}, {lower}, 0;", f"@{follows} bra {skip};", *lines, f"{skip}:"]

    def _load_lines(self, registers: Sequence[_KeptRegister]) -> list[str]:
        """Lines that load registers from their marks."""
        lines: list[str] = []
        for own, marks in registers:
            parts = [self._read_mark(number, f"part{number}") for number in marks]
            lines += [line for _, more in parts for line in more]
            lines.append(f"mov.b{len(parts) * HALF} {own}, {_joined_text([part for part, _ in parts])};")
        return lines

    def _store_lines(self, registers: Sequence[_KeptRegister]) -> list[str]:
        """Lines that store them there."""
        lines: list[str] = []
        for own, marks in registers:
            parts = [self._names.temporary(f"part{number}", "b32") for number in marks]
            lines.append(f"mov.b{len(parts) * HALF} {_joined_text(parts)}, {own};")
            for number, part in zip(marks, parts, strict=True):
                lines.append(f"st.volatile.shared.u32 [{self._mark}+{MARK_STEP * number}], {part};")
        return lines

    def _live_marks(
        self, registers: AbstractSet[str] | None = None, maps: AbstractSet[str] | None = None
    ) -> list[_KeptRegister]:
        """Values that live throughout, of these registers of the probe and maps; by default of all."""
        widths = [(name, KEPT_TYPES[self._probe.registers[name]] // HALF) for name in self._frame.live_registers]
        own = [
            (registers is None or name in registers, self._names.register(name, self._probe.registers[name]), halves)
            for name, halves in widths
        ]
        resident = [own_map for own_map in self._probe.maps if own_map.resident]
        for own_map in [*resident[:1], *self._frame.counted]:  # resident maps have one register together
            names = {own.name for own in resident} if own_map.resident else {own_map.name}
            chosen = maps is None or bool(names & maps)
            own += [(chosen, register, 1) for register in self.expander.live_registers(own_map)]
        ends = list(accumulate((halves for *_, halves in own), initial=Mark.FIRST_KEPT))
        return [
            _KeptRegister(register, range(first, end))
            for (chosen, register, _), first, end in zip(own, ends, ends[1:], strict=False)
            if chosen
        ]


def _joined_text(parts: Sequence[str]) -> str:
    return f"{{{', '.join(parts)}}}" if len(parts) > 1 else parts[0]
