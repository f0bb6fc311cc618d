"""Expand a probe's snippets to PTX for one position of one kernel, and skip blocks outside the sample."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.additions import Summation
from tui_probe.engine.record_layouts import NO_ROOM, RecordAddress, RecordPosition
from tui_probe.engine.recording import NO_ROOM_OF_WARPS, Recording
from tui_probe.engine.site_records import SiteRecords
from tui_probe.engine.snippet import LAUNCH_HELPER
from tui_probe.probe_model.probe import (
    FIELD_BYTES,
    KEPT_FIELD,
    Field,
    FieldType,
    Level,
    Locate,
    Map,
    Probe,
    Save,
    Snippet,
    SnippetCode,
)
from tui_probe.probe_model.storage import LAUNCH_PARAMETER, storage_of
from tui_probe.ptx.instruction_facts import TYPE_BITS
from tui_probe.ptx.lexer import NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.engine.addressing import Addressing
    from tui_probe.engine.helper_values.helpers import HelperValue
    from tui_probe.engine.kernel import UnusedNames
    from tui_probe.engine.record_layouts import EvenLanes
    from tui_probe.ptx.tree import Instruction

SAMPLE_PARAMETERS: Final = (("sample", "blocks"), ("sample", "step"))
"""(purpose, name) of the kernel's parameters that tell the sample."""
_NOT_SAMPLED: Final = "0xffffffff"
"""Place of a block outside of the sample: larger than any place in it."""
_SHORT_SNIPPET: Final = 3
"""Instructions that cost no more than a branch around them."""
_NAME: Final = re.compile(NAME)
_WIDE_SPECIAL_REGISTERS: Final = frozenset({"%clock64", "%globaltimer", "%gridid", "%current_graph_exec"})
_VECTOR_BYTES: Final = 16
"""Bytes of the widest store of a lane, ``v4.u32`` or ``v2.u64``."""
_GLOBAL: Final = ".global"
_STREAMING: Final = ".global.cs"
"""Records are written once and not read: they are the first to leave the cache, before what the kernel uses."""
ONLY_RECORD: Final = RecordPosition()
"""Position of a record that does not share its address with others."""
_VOLATILE: Final = ".volatile.global"
"""Resident records are read while the kernel runs."""


class Sampling:
    """PTX text by which one kernel takes a sample of blocks: those that are not in it skip the probes.

    The hook passes the sample to each launch in two parameters of the kernel::

        blocks  u32 first, u32 count
        step    u32 step, u32 reciprocal = ceil(2**31 / step)

    The sample is first, first + step, …: ``count`` blocks. A block's place in it stands in for the block's number in
    all that finds a slot, so that there is memory for the sample only. It is found by a multiplication instead of a
    division::

        distance = block - first
        place    = upper half of (2 × distance × reciprocal)
        in it    = place × step is distance, and place < count

    For a distance of place × step, 2 × distance × reciprocal = place × 2**32 + 2 × place × (step × reciprocal - 2**31).
    The rest is less than 2**32, since place × step is below the number of blocks, which is below 2**31. So blocks of
    the sample find their place; any other distance is not a multiple of the step, or beyond the last one. (One before
    the first is 2**31 or more, which place × step is not.)

    ``place`` names the register of the block's place, which lives as long as the kernel runs; it is the same in all
    threads of a block, so that the assembler can keep it in a uniform register.
    """

    def __init__(self, probe: Probe, names: UnusedNames) -> None:
        self._names = names
        self._sites = {own_map.name for own_map in probe.maps if own_map.level is Level.SITE}
        self._leaders = {own_map.name for own_map in probe.maps if own_map.leader}
        self.place = names.temporary("place", "b32")

    def begin(self, block: list[str], number: str) -> list[str]:
        """Return lines for the kernel's entry. ``block`` are those that compute the block's ``number``, 32 bits."""
        blocks, step = (self._names.parameter(*parameter) for parameter in SAMPLE_PARAMETERS)
        operand, product = (self._names.temporary(name, "b32") for name in ("part", "other"))
        in_sample = self._names.temporary("inside", "pred")
        return [
            *block,
            f"ld.param.u32 {operand}, [{blocks}];",
            f"sub.u32 {number}, {number}, {operand};",
            f"shl.b32 {product}, {number}, 1;",
            f"ld.param.u32 {operand}, [{step}+4];",
            f"mul.hi.u32 {self.place}, {product}, {operand};",
            f"ld.param.u32 {operand}, [{step}];",
            f"mul.lo.u32 {product}, {self.place}, {operand};",
            f"setp.eq.u32 {in_sample}, {product}, {number};",
            f"ld.param.u32 {operand}, [{blocks}+4];",
            f"setp.lt.and.u32 {in_sample}, {self.place}, {operand}, {in_sample};",
            f"selp.b32 {self.place}, {self.place}, {_NOT_SAMPLED}, {in_sample};",
        ]

    def skip_outside_sample(self, lines: list[str]) -> list[str]:
        """Return lines that only blocks of the sample run."""
        if not lines:
            return lines
        skip, is_outside = self._names.new_label(), self._outside_predicate()
        return [self._outside_test(), f"@{is_outside} bra {skip};", *lines, f"{skip}:"]

    def limit_to_sample(self, snippet: Snippet, lines: list[str]) -> list[str]:
        """Return the lines of a snippet at an instruction, so that nothing outside of the sample is saved.

        What saves nothing and is short may run anywhere: it writes only the probe's registers. Around what only adds
        to a site there is no branch, at which the assembler would wait for a ``wgmma`` under way.
        """
        saves = [statement for statement in snippet.statements if isinstance(statement, Save)]
        if not saves and len(lines) <= _SHORT_SNIPPET:
            return lines
        if saves and not snippet.labels and all(save.map in self._leaders for save in saves):
            return lines
        if saves and not snippet.labels and all(save.map in self._sites for save in saves):
            return [self._outside_test(), *(self._guard_addition(line) for line in lines)]
        return self.skip_outside_sample(lines)

    def begin_in_memory(self, begin: list[str], attempts: Sequence[str]) -> list[str]:
        """Return lines for the entry, where blocks outside of the sample have no room and yet an address: that of the
        first block, behind whose records they store theirs.
        """
        is_outside = self._outside_predicate()
        moves = [f"@{is_outside} mov.u32 {register}, {NO_ROOM_OF_WARPS};" for register in attempts]
        return [self._outside_test(), f"@{is_outside} mov.u32 {self.place}, 0;", *begin, *moves]

    def stop_leaders(self, attempts: Sequence[str]) -> list[str]:
        """Return lines for the entry after which blocks outside of the sample have no room for records of lane 0."""
        moves = [f"@{self._outside_predicate()} mov.u32 {register}, {NO_ROOM};" for register in attempts]
        return [self._outside_test(), *moves] if moves else []

    def _outside_predicate(self) -> str:
        return self._names.temporary("outside", "pred")

    def _outside_test(self) -> str:
        return f"setp.eq.u32 {self._outside_predicate()}, {self.place}, {_NOT_SAMPLED};"

    def _guard_addition(self, line: str) -> str:
        return f"@!{self._outside_predicate()} {line}" if line.startswith("red.") else line


def _store_space(own_map: Map) -> str:
    """Return the state space of stores to a map, with their cache operator."""
    if own_map.resident:
        return _VOLATILE
    return _GLOBAL if own_map.cap == 1 else _STREAMING


class _LocatedRecord(NamedTuple):
    """The address of a record, and the label behind its stores, to which lanes branch that save none.

    ``has_branch``: such a branch exists, so the label is needed.
    """

    address: RecordAddress
    skip: str
    has_branch: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionOptions:
    """Properties of the code around snippets, and of the GPU, that decide how snippets are written out."""

    reduces: bool
    """``redux.sync`` may sum over lanes."""
    tail_in_use: bool = False
    """Memory behind the marks of slots is in use."""
    gathers: bool = False
    """Lanes that part do not meet again, so all sums are made before one lane adds them."""
    has_elect: bool = False
    """``elect.sync`` may choose a lane."""
    is_warp_uniform: bool = False
    """Live registers are the same in all lanes of a warp."""


class Expander:
    """Writes out snippets of one probe for one kernel.

    Maps are reached through the kernel's parameters ``names.parameter("map", name)``.
    """

    def __init__(
        self,
        probe: Probe,
        names: UnusedNames,
        addressing: Addressing,
        options: ExpansionOptions,
        sites: SiteRecords | None = None,
    ) -> None:
        """Name the probe's registers. ``sites`` are those of the kernel that calls this function, None for a kernel."""
        self._probe = probe
        self._names = names
        self._addressing = addressing
        self._probe_registers = {name: names.register(name, kind) for name, kind in probe.registers.items()}
        self._recording = Recording(
            probe,
            names,
            addressing,
            tail_in_use=options.tail_in_use,
            elects=not options.gathers,
            has_elect=options.has_elect,
            is_warp_uniform=options.is_warp_uniform,
        )
        self._summation = Summation(
            probe, names, self._probe_registers, reduces=options.reduces, gathers=options.gathers
        )
        self._can_exchange = options.reduces and not options.gathers and not probe.is_lean
        self.sites = sites.of_function(names) if sites else SiteRecords(probe, names)
        self.zero: frozenset[str] = frozenset()
        """Registers of the probe that are 0 wherever a snippet is written out from now on."""

    def expand(
        self,
        snippet: Snippet,
        helpers: Mapping[str, HelperValue],
        instruction: Instruction | None = None,
        position: RecordPosition = ONLY_RECORD,
    ) -> list[str]:
        """Return a snippet as PTX. ``helpers`` holds the value of each helper that it uses, for an ``instruction``.
        ``position`` is that of its record, of snippets for which ``shares_address`` holds.
        """
        substitutes = dict(self._probe_registers)
        # in order: that of a set differs between runs, and caches of probed kernels are keyed by their text
        substitutes |= {label: self._names.new_label() for label in sorted(snippet.labels)}
        substitutes |= {name: value.operand for name, value in helpers.items()}
        lines: list[str] = []
        located: _LocatedRecord | None = None
        for statement in snippet.statements:
            match statement:
                case SnippetCode(text=text):
                    lines.append(_NAME.sub(lambda match: substitutes.get(match[0], match[0]), text))
                case Locate(map=name):
                    locate_lines, located = self._locate_early(self._probe.map_named(name), position)
                    lines += locate_lines
                case Save(map=name, values=values, adds=True):
                    lines += self._add(self._probe.map_named(name), values, instruction)
                case Save(map=name, values=values):
                    lines += self._save(self._probe.map_named(name), values, helpers, located, position)
                    located = None
        return lines

    def _save(
        self,
        own_map: Map,
        values: tuple[str, ...],
        helpers: Mapping[str, HelperValue],
        located: _LocatedRecord | None,
        position: RecordPosition,
    ) -> list[str]:
        """Return the lines that store a record: where it was ``located``, else at the address that they find first."""
        lines: list[str] = []
        may_be_even = own_map.even and self._can_exchange and located is None
        even_lanes = self._recording.even_lanes(own_map) if may_be_even else None
        if even_lanes:
            value_lines, first_value = self._operand(0, own_map.fields[0], values[0], helpers, "")
            lines += [*value_lines, *even_lanes.detect(first_value)]
        if located is None:
            locate_lines, located = self._locate(own_map, position)
            lines += locate_lines
        target = located.address
        if even_lanes:
            limit_lines, target = even_lanes.limit(target)
            lines += limit_lines
        lines += self._store(own_map, values, helpers, target, even_lanes=even_lanes)
        lines += self._recording.complete(own_map) if own_map.host else []
        return [*lines, f"{located.skip}:"] if located.has_branch else lines

    def live_registers(self, own_map: Map | None = None) -> list[str]:
        """Return the registers, 32 bits each, that hold addresses and counts of records while the kernel runs: those of
        one map, or of all.
        """
        return self._recording.live_registers(own_map)

    def leader_attempts(self) -> list[str]:
        """Return the registers that count records of lane 0."""
        return self._recording.leader_attempts()

    def begin(self, sampling: Sampling | None = None) -> list[str]:
        """Return PTX for the kernel's entry, after which records can be saved: of all blocks, or those of a sample."""
        stop = sampling.stop_leaders(self._recording.leader_attempts()) if sampling else []
        return [*self._recording.begin(), *stop]

    def end(self) -> list[str]:
        """Return PTX for each exit, behind the probe's own code there."""
        return self._recording.end()

    def exit_lines(self, snippets: Sequence[Snippet]) -> list[str]:
        """Return the PTX of a grafted exit: its snippets, and the ``end``."""
        additions = [
            save for snippet in snippets for save in snippet.statements if isinstance(save, Save) and save.adds
        ]
        if len(additions) > 1:
            self._summation.begin_exit()
        lines = [line for snippet in snippets for line in self.expand(snippet, {})]
        return [*lines, *self.end(), *self._summation.end_exit()]

    def shares_address(self, snippet: Snippet, count: int) -> bool:
        """Return whether ``count`` executions of a snippet may share the address of their records, of lane 0."""
        saves = [statement for statement in snippet.statements if isinstance(statement, Save)]
        maps = [self._probe.map_named(statement.map) for statement in saves]
        return len(maps) == 1 and maps[0].leader and not maps[0].latest and count <= (maps[0].cap or 0)

    def _locate(self, own_map: Map, position: RecordPosition) -> tuple[list[str], _LocatedRecord]:
        """Return the lines that find the address of a record, and the address."""
        skip = self._names.new_label()
        lines, address = self._recording.locate(own_map, skip, position)
        return lines, _LocatedRecord(address, skip, any(line.endswith(f" bra {skip};") for line in lines))

    def _locate_early(self, own_map: Map, position: RecordPosition) -> tuple[list[str], _LocatedRecord]:
        """Return the lines of a LOCATE, and the address. Lanes that save no record skip all code up to its SAVE."""
        lines, located = self._locate(own_map, position)
        address = located.address
        if not address.predicate:
            return lines, located
        branch = f"@!{address.predicate} bra {located.skip};"
        return [*lines, branch], _LocatedRecord(replace(address, predicate=""), located.skip, has_branch=True)

    def _add(self, own_map: Map, values: tuple[str, ...], instruction: Instruction | None) -> list[str]:
        if own_map.name in self.sites.lines and instruction is not None:
            return self.sites.add(own_map, values, self._probe_registers, instruction)
        value_lines, address_lines = self._summation.prepare(own_map, values, self.zero), self._record_address(own_map)
        return [
            *value_lines,
            *self._summation.add(own_map, values, address_lines, self._addressing.address, self.zero),
        ]

    def _record_address(self, own_map: Map) -> list[str]:
        """Return lines that find the record to add to."""
        if own_map.resident:
            lines, offset = self._recording.find_resident_record(own_map)
            address = self._addressing.address
            return [*lines, *([f"add.u64 {address}, {address}, {offset};"] if offset else [])]
        slot = self._addressing.folded_slot() if own_map.folded else self._addressing.slot(own_map.level)
        return [*slot, *self._addressing.pointer(self._names.parameter("map", own_map.name), own_map.slot_bytes)]

    def _operands(
        self,
        own_map: Map,
        values: tuple[str, ...],
        helpers: Mapping[str, HelperValue],
        target: RecordAddress,
        *,
        even_lanes: EvenLanes | None,
    ) -> tuple[list[str], dict[int, tuple[FieldType, str]]]:
        """Return the type and operand of each field that is stored, by offset, and the lines that compute them."""
        lines: list[str] = []
        operands: dict[int, tuple[FieldType, str]] = {}
        for index, (field, value) in enumerate(zip(own_map.fields, values, strict=True)):
            if value == KEPT_FIELD:
                continue
            value_lines, operand = self._operand(
                index, field, value, helpers, "" if own_map.leader else target.predicate
            )
            lines += value_lines
            if even_lanes and field is own_map.fields[-1]:
                mark_lines, operand = even_lanes.mark(operand)
                lines += mark_lines
            operands[field.offset] = field.type, operand
        return lines, operands

    def _store(
        self,
        own_map: Map,
        values: tuple[str, ...],
        helpers: Mapping[str, HelperValue],
        target: RecordAddress,
        *,
        even_lanes: EvenLanes | None,
    ) -> list[str]:
        """Return the stores of one record, in ascending order of addresses, as wide as its alignment allows."""
        lines, operands = self._operands(own_map, values, helpers, target, even_lanes=even_lanes)
        storage = storage_of(self._probe, own_map)
        # Four registers in a row are worth it where stores are many and registers are not scarce.
        is_wide = (own_map.cap != 1 or own_map.resident) and not self._probe.is_lean
        unit = storage.unit if is_wide else min(storage.unit, 8)
        space = _store_space(own_map)
        guard = f"@{target.predicate} " if target.predicate else ""
        for column in range(0, own_map.record_bytes, unit):
            piece = {offset - column: operand for offset, operand in operands.items() if 0 <= offset - column < unit}
            pair_lines, stores = self._unit_stores(piece)
            lines += pair_lines
            for offset, suffix, operand in stores:
                unit_offset = column % storage.unit + offset
                address_offset = target.offset + column // storage.unit * (target.pitch or storage.unit) + unit_offset
                address = target.address + (f"+{address_offset}" if address_offset else "")
                lines.append(f"{guard}st{space}.{suffix} [{address}], {operand};")
        return lines

    def _unit_stores(self, piece: dict[int, tuple[FieldType, str]]) -> tuple[list[str], list[tuple[int, str, str]]]:
        """Return the stores of up to 16 aligned bytes, (offset, type, operand), and the lines that they need first."""
        kinds = {offset: kind for offset, (kind, _) in piece.items()}
        names = {offset: operand for offset, (_, operand) in piece.items()}
        if sum(FIELD_BYTES[kind] for kind in kinds.values()) == _VECTOR_BYTES:
            if "u64" not in kinds.values():
                return [], [(0, "v4.b32", f"{{{', '.join(names[offset] for offset in sorted(names))}}}")]
            if len(piece) == 2:
                return [], [(0, "v2.b64", f"{{{names[0]}, {names[8]}}}")]
            pair = self._names.temporary("pair", "b64")
            return [f"mov.b64 {pair}, {{{names[8]}, {names[12]}}};"], [(0, "v2.b64", f"{{{names[0]}, {pair}}}")]
        stores = []
        for offset in sorted(names):
            if kinds[offset] == "u32" and offset % 8 == 0 and kinds.get(offset + 4) == "u32":
                stores.append((offset, "v2.b32", f"{{{names[offset]}, {names[offset + 4]}}}"))
            elif not (kinds[offset] == "u32" and offset % 8 and kinds.get(offset - 4) == "u32"):
                stores.append((offset, f"b{FIELD_BYTES[kinds[offset]] * 8}", names[offset]))
        return [], stores

    def _operand(
        self, index: int, field: Field, value: str, helpers: Mapping[str, HelperValue], predicate: str
    ) -> tuple[list[str], str]:
        """Return the lines that convert a value to the width of its field, and the operand: a register or the value."""
        bits = FIELD_BYTES[field.type] * 8
        if value == LAUNCH_HELPER:
            register = self._value_register(bits, index)
            return [f"ld.param.u{bits} {register}, [{self._names.parameter(*LAUNCH_PARAMETER)}];"], register
        if value in self._probe_registers:
            operand, kind = self._probe_registers[value], self._probe.registers[value]
        elif value in helpers:
            operand, kind = helpers[value].operand, helpers[value].type
        elif value.startswith("%"):
            operand, kind = value, ""
        else:
            register = self._value_register(bits, index)
            return [f"mov.u{bits} {register}, {value};"], register
        if not kind:
            source_bits = 64 if value in _WIDE_SPECIAL_REGISTERS else 32
            lines, special_value = self._read_special(source_bits, index, operand, predicate)
            operand, kind = special_value, f"b{source_bits}"
        else:
            lines = []
        source_bits = TYPE_BITS.get(kind, 32)
        if source_bits == bits:
            return lines, operand
        if kind.startswith(("f", "bf")):
            raw = self._names.temporary(f"raw{index}_b{source_bits}", f"b{source_bits}")
            lines.append(f"mov.b{source_bits} {raw}, {operand};")
            operand = raw
        register = self._value_register(bits, index)
        sign = "s" if kind.startswith("s") and bits > source_bits else "u"
        return [*lines, f"cvt.{sign}{bits}.{sign}{source_bits} {register}, {operand};"], register

    def _read_special(self, bits: int, index: int, special: str, predicate: str) -> tuple[list[str], str]:
        """Return a special register's value. Under a predicate ptxas reads ``%clock`` immediately (CS2R), without one
        through a uniform register, on which every warp waits.
        """
        register = self._value_register(bits, index)
        if not predicate:
            return [f"mov.u{bits} {register}, {special};"], register
        return [f"mov.u{bits} {register}, 0;", f"@{predicate} mov.u{bits} {register}, {special};"], register

    def _value_register(self, bits: int, index: int) -> str:
        return self._names.temporary(f"value{index}_b{bits}", f"b{bits}")
