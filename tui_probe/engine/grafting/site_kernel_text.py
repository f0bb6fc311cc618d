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
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.addressing import Addressing, LaunchKind
from tui_probe.engine.expansion import Expander, ExpansionOptions, Sampling
from tui_probe.engine.grafting.site_values import SITE_HELPERS, Mark, SiteValues
from tui_probe.engine.helper_values.helpers import HelperValue
from tui_probe.engine.kernel import UnusedNames
from tui_probe.engine.record_layouts import RecordPosition
from tui_probe.engine.snippet import BLOCK_HELPER, ISSUED_HELPER
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.probe import Save, SnippetCode
from tui_probe.reasons import because
from tui_probe.sass.snippets import MARK_STEP

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from tui_probe.engine.grafting.sass_blocks import BlockCode
    from tui_probe.engine.grafting.site_values import InstructionFacts
    from tui_probe.engine.map_layout import MapLayout
    from tui_probe.engine.site_records import SiteRecords
    from tui_probe.probe_model.probe import Map, Probe, ProbePoint, Snippet
    from tui_probe.ptx.tree import Instruction

ENTRY: Final = "tui_probe_entry"
EXIT: Final = "tui_probe_exit"

_SIZES_OF_COPIES: Final = frozenset({"BYTES", "SECTORS", "UNSIZED"})
_HELPERS_OF_BLOCKS: Final = frozenset({BLOCK_HELPER, ISSUED_HELPER})
REGISTER_WORD: Final = re.compile(r"%[\w$]+")
HALF: Final = 32
"""Bits of a register of the kernel: a value of 64 bits has two."""
KEPT_TYPES: Final = {"b32": 32, "u32": 32, "s32": 32, "b64": 64, "u64": 64, "s64": 64}
"""Bits of the registers that may live throughout, by PTX type."""


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
    if point.after is not None or point.before is None or point.before.helpers - SITE_HELPERS:
        raise UnsupportedKernelError(because("needs-instructions", probe=point.name))
    return point.before


def _reads_other_lanes(snippet: Snippet) -> bool:
    """Return whether lanes read values of other lanes."""
    codes = (statement.instruction for statement in snippet.statements if isinstance(statement, SnippetCode))
    return any(instruction is not None and instruction.opcode == "shfl" for instruction in codes)


def _saves_records(snippet: Snippet) -> bool:
    """Return whether a snippet saves records, for which it chooses the lane itself."""
    return any(isinstance(statement, Save) and not statement.adds for statement in snippet.statements)


def saved_maps(snippets: Iterable[Snippet]) -> set[str]:
    """Return the maps that snippets save to."""
    return {statement.map for snippet in snippets for statement in snippet.statements if isinstance(statement, Save)}


def snippet_registers(snippets: Iterable[Snippet]) -> set[str]:
    """Return the names in the code and the saved values of snippets: registers, and numbers and helpers with them."""
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
    registers that are always 0, ``parameters`` (purpose and name) behind that many ``leading_bytes`` bytes, and all
    ``sites``.
    """

    live_registers: Sequence[str]
    record_maps: Sequence[Map]
    zero: frozenset[str]
    reduces: bool
    leading_bytes: int
    parameters: Sequence[tuple[str, str]]
    sites: SiteRecords
    map_layout: MapLayout | None = None
    is_warp_uniform: bool = False
    """True if what lives throughout is the same in all lanes of a warp."""


class _KeptRegister(NamedTuple):
    """A register that lives throughout, and the marks of its words, which are numbered for the whole kernel."""

    register: str
    marks: range


class SiteKernelText:
    """PTX text of one of the kernels."""

    def __init__(self, probe: Probe, frame: KernelFrame, *, samples_blocks: bool) -> None:
        self._probe = probe
        self._frame = frame
        self._names = UnusedNames("")
        self._sampling = Sampling(probe, self._names) if samples_blocks else None
        addressing = Addressing(self._names, None, self._sampling.place if self._sampling else "", LaunchKind.GENERAL)
        self._addressing = addressing
        options = ExpansionOptions(reduces=frame.reduces, gathers=True, is_warp_uniform=frame.is_warp_uniform)
        self.expander = Expander(probe, self._names, addressing, options, frame.sites)
        self.expander.zero = frame.zero
        self._mark = self._names.temporary("mark", "b32")
        self._values = SiteValues(self._names, self._mark, frame.map_layout)

    def site_text(self, name: str, place: SnippetSite) -> str:
        """Write the kernel with the code of one instruction."""
        snippet = snippet_before(place.point)
        values, lines = self._values.helpers(snippet, place.facts)
        has_lane_marks = _reads_other_lanes(snippet) or place.facts.dimensions > 0
        if has_lane_marks:
            lines.insert(0, f"mov.u32 {self._mark}, %lanemask_lt;")
        lines += self._site_numbers(saved_maps([snippet]))
        position = RecordPosition(samples_iterations=place.facts.is_counted, begins_iteration=place.facts.begins)
        body = self.expander.expand(snippet, values, place.ptx_equivalent, position)
        if place.facts.is_bulk and snippet.helpers & _SIZES_OF_COPIES and not _saves_records(snippet):
            lines, body = [], self._one_lane_lines([*lines, *body])
        live = self._live_marks(snippet_registers([snippet]), saved_maps([snippet]))
        if saved_maps([snippet]) and self._sampling is not None:
            lines = [*self._sample_lines(), *lines]
            body = self._sampling.skip_outside_sample(body)
        store_lines = self._store_lines(live)
        if store_lines and has_lane_marks:
            store_lines.insert(0, f"mov.u32 {self._mark}, 0;")
        return self._kernel_text(name, [*self._load_lines(live), *lines, *body, *store_lines])

    def block_text(self, name: str, codes: Sequence[BlockCode]) -> str:
        """Write the kernel with the code of one block's start, point by point."""
        snippets = [snippet_before_block(code.point) for code in codes]
        lines: list[str] = []
        for index, (code, snippet) in enumerate(zip(codes, snippets, strict=True)):
            number, mark_lines = self._values.read_mark(Mark.FIRST_NUMBER + index, f"number{index}")
            if code.is_wide:
                wide_number = self._names.temporary(f"wide{index}", "b64")
                mark_lines, number = [*mark_lines, f"cvt.u64.u32 {wide_number}, {number};"], wide_number
            value = HelperValue(number, "b64" if code.is_wide else "b32")
            values = dict.fromkeys(sorted(snippet.helpers), value)
            lines += [*(mark_lines if values else []), *self.expander.expand(snippet, values)]
        live = self._live_marks(snippet_registers(snippets), set())
        return self._kernel_text(name, [*self._load_lines(live), *lines, *self._store_lines(live)])

    def entry_text(self, snippets: Sequence[Snippet]) -> str:
        """Write the kernel with the entry code. The registers that live on are stored to their marks."""
        body = [line for snippet in snippets for line in self.expander.expand(snippet, {})]
        start_lines = self.expander.begin()
        if self._sampling is not None and (start_lines or saved_maps(snippets)):
            if self._frame.is_warp_uniform:
                start_lines = self._sampling.begin_in_memory(start_lines, self.expander.leader_attempts())
            start_lines = [*self._sample_lines(), *start_lines]
            body = self._sampling.skip_outside_sample(body) if saved_maps(snippets) else body
        return self._kernel_text(ENTRY, [*start_lines, *body, *self._store_lines(self._live_marks())])

    def exit_text(self, snippets: Sequence[Snippet], waits: Sequence[WaitSums] = ()) -> str:
        """Write the kernel with the exit code, which first adds the sums of waits to their records."""
        body = self._wait_lines(waits) if waits else []
        body += self.expander.exit_lines(snippets)
        sampled_body = self._sampling.skip_outside_sample(body) if self._sampling else body
        return self._kernel_text(EXIT, [*self._load_lines(self._live_marks()), *self._sample_lines(), *sampled_body])

    def _wait_lines(self, waits: Sequence[WaitSums]) -> list[str]:
        """Return the lines that add the sums of a warp, in one of the lanes that leave together."""
        lanes, lower_lanes = self._names.temporary("leaving", "b32"), self._names.temporary("lower_lanes", "b32")
        follows = self._names.temporary("follows_lane", "pred")
        lines = [
            f"activemask.b32 {lanes};",
            f"mov.u32 {lower_lanes}, %lanemask_lt;",
            f"and.b32 {lower_lanes}, {lower_lanes}, {lanes};",
        ]
        lines += [
            f"setp.ne.u32 {follows}, {lower_lanes}, 0;",
            f"@{follows} exit;",
            f"mov.u32 {self._mark}, {lower_lanes};",
        ]
        address, mark_lines = self.expander.sites.copy_address(waits[0].own_map, lower_lanes)
        lines += mark_lines
        for wait in waits:
            sums = {value: self._values.read_mark(mark, f"sum_{value.lower()}") for value, mark in wait.marks.items()}
            registers_by_value = {value: register for value, (register, _) in sums.items()}
            lines += [line for _, sum_lines in sums.values() for line in sum_lines]
            lines += self.expander.sites.add_from_lane(
                wait.own_map, wait.instruction, wait.values, registers_by_value, address
            )
            # No lane leaves here. Without this the assembler would read all marks first, each into its own register.
            first_sum = registers_by_value[wait.values[0]]
            lines += [f"and.b32 {self._mark}, {lower_lanes}, {first_sum};", f"setp.ne.u32 {follows}, {self._mark}, 0;"]
            lines.append(f"@{follows} exit;")
        return lines

    def _sample_lines(self) -> list[str]:
        if self._sampling is None:
            return []
        number = self._names.temporary("block", "b32")
        return self._sampling.begin(self._addressing.block_number(number), number)

    def _kernel_text(self, name: str, lines: Sequence[str]) -> str:
        leading = f"\t.param .align 8 .b8 tui_probe_leading[{self._frame.leading_bytes}]"
        parameters = [self._names.parameter(*parameter) for parameter in self._frame.parameters]
        declared = ",\n".join([leading, *(f"\t.param .u64 {parameter}" for parameter in parameters)])
        body = "\n\t".join(["", *self._names.declarations(), f"mov.u32 {self._mark}, 0;", *lines, "ret;"])
        return f".visible .entry {name}(\n{declared}\n)\n{{{body}\n}}\n"

    def _site_numbers(self, saved_names: set[str]) -> list[str]:
        """Return the lines that read the instruction's numbers in the maps of sites that are saved to."""
        lines: list[str] = []
        for index, name in enumerate(self.expander.sites.lines):
            if name in saved_names:
                register, mark_lines = self._values.read_mark(Mark.FIRST_SITE + index, f"site{index}")
                self.expander.sites.registers[name] = register
                lines += mark_lines
        return lines

    def _one_lane_lines(self, lines: list[str]) -> list[str]:
        """Let only the lowest active lane run lines: the lanes that come to a bulk copy start one copy together."""
        lanes, lower_lanes = self._names.temporary("starting", "b32"), self._names.temporary("lower_lanes", "b32")
        follows, skip = self._names.temporary("follows_lane", "pred"), self._names.new_label()
        selection = [
            f"activemask.b32 {lanes};",
            f"mov.u32 {lower_lanes}, %lanemask_lt;",
            f"and.b32 {lower_lanes}, {lower_lanes}, {lanes};",
        ]
        return [*selection, f"setp.ne.u32 {follows}, {lower_lanes}, 0;", f"@{follows} bra {skip};", *lines, f"{skip}:"]

    def _load_lines(self, registers: Sequence[_KeptRegister]) -> list[str]:
        """Return the lines that load registers from their marks."""
        lines: list[str] = []
        for register, marks in registers:
            parts = [self._values.read_mark(number, f"part{number}") for number in marks]
            lines += [line for _, part_lines in parts for line in part_lines]
            lines.append(f"mov.b{len(parts) * HALF} {register}, {_joined_text([part for part, _ in parts])};")
        return lines

    def _store_lines(self, registers: Sequence[_KeptRegister]) -> list[str]:
        """Return the lines that store registers to their marks."""
        lines: list[str] = []
        for register, marks in registers:
            parts = [self._names.temporary(f"part{number}", "b32") for number in marks]
            lines.append(f"mov.b{len(parts) * HALF} {_joined_text(parts)}, {register};")
            for number, part in zip(marks, parts, strict=True):
                lines.append(f"st.volatile.shared.u32 [{self._mark}+{MARK_STEP * number}], {part};")
        return lines

    def _live_marks(
        self, registers: AbstractSet[str] | None = None, maps: AbstractSet[str] | None = None
    ) -> list[_KeptRegister]:
        """Return the live registers that belong to these registers and maps of the probe; by default all."""
        widths = [(name, KEPT_TYPES[self._probe.registers[name]] // HALF) for name in self._frame.live_registers]
        candidates = [
            (registers is None or name in registers, self._names.register(name, self._probe.registers[name]), halves)
            for name, halves in widths
        ]
        resident = [own_map for own_map in self._probe.maps if own_map.resident]
        for own_map in [*resident[:1], *self._frame.record_maps]:  # resident maps have one register together
            names = {resident_map.name for resident_map in resident} if own_map.resident else {own_map.name}
            is_live = maps is None or bool(names & maps)
            candidates += [(is_live, register, 1) for register in self.expander.live_registers(own_map)]
        mark_ends = list(accumulate((halves for *_, halves in candidates), initial=Mark.FIRST_KEPT))
        return [
            _KeptRegister(register, range(mark_start, end))
            for (is_live, register, _), mark_start, end in zip(candidates, mark_ends, mark_ends[1:], strict=False)
            if is_live
        ]


def _joined_text(parts: Sequence[str]) -> str:
    return f"{{{', '.join(parts)}}}" if len(parts) > 1 else parts[0]
