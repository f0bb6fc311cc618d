"""PTX that adds to records of sites: one record for each instruction, block or loop of a kernel.

All warps add to them. Every lane that comes adds immediately, where the instruction is, so that nothing lives across
the kernel: no register is held, and nothing is to be done at its exits. A snippet lets one lane of a warp add what all
of them counted::

    address = the map's parameter + (SM mod copies) × bytes of a copy + site × bytes of a record
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from tui_probe.probe_model.probe import LONGEST_HELPER, Level, Map, Probe, Save
from tui_probe.probe_model.storage import Layout, Storage
from tui_probe.ptx.instruction_facts import TYPE_BITS
from tui_probe.ptx.operands import parse_integer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.engine.kernel import UnusedNames
    from tui_probe.probe_model.probe import ProbePoint
    from tui_probe.ptx.tree import Instruction


class SiteRecords:
    """The sites of one probe in one kernel, by the name of the map: the ``instructions``, and their ``lines`` in
    ``pruned.ptx``.
    """

    def __init__(self, probe: Probe, names: UnusedNames) -> None:
        self._probe = probe
        self._names = names
        self._numbers: dict[tuple[str, int], int] = {}
        self.registers: dict[str, str] = {}
        """Registers that hold the numbers of instructions, by map, for maps whose numbers are not written out."""
        self.lines: dict[str, list[int]] = {own_map.name: [] for own_map in probe.maps if own_map.level is Level.SITE}
        self.instructions: dict[str, list[Instruction]] = {name: [] for name in self.lines}

    def of_function(self, names: UnusedNames) -> SiteRecords:
        """Return the same sites for a function with names of its own."""
        sites = copy.copy(self)
        sites._names = names
        sites.registers = {}
        return sites

    def number_site(self, instruction: Instruction, point: ProbePoint, line: int) -> None:
        """Number an instruction that a point is at. All are numbered before any code, which needs their count."""
        snippets = [snippet for snippet in (point.before, point.after) if snippet]
        for name in {s.map for snippet in snippets for s in snippet.statements if isinstance(s, Save)}:
            if name in self.lines and (name, id(instruction)) not in self._numbers:
                self._numbers[name, id(instruction)] = len(self.lines[name])
                self.lines[name].append(line)
                self.instructions[name].append(instruction)

    def numbers(self, instruction: Instruction) -> list[int | None]:
        """Return the number of an instruction in each map of sites, None for a map that it is not in."""
        return [self._numbers.get((name, id(instruction))) for name in self.lines]

    def add(
        self, own_map: Map, values: tuple[str, ...], probe_registers: dict[str, str], instruction: Instruction
    ) -> list[str]:
        """Return lines that add to the record of a numbered instruction. ``probe_registers``: names in the kernel of
        the probe's registers.
        """
        address, lines = self.copy_address(own_map)
        record = self._numbers[own_map.name, id(instruction)] * own_map.record_bytes
        if register := self.registers.get(own_map.name):
            lines.append(f"mad.wide.u32 {address}, {register}, {own_map.record_bytes}, {address};")
            record = 0
        for field, value in zip(own_map.fields, values, strict=True):
            if parse_integer(value) != 0:
                lines += self._addition_lines(address, record + field.offset, *self._widen(value, probe_registers))
        return lines

    def add_from_lane(
        self,
        own_map: Map,
        instruction: Instruction,
        values: Sequence[str],
        word_registers: Mapping[str, str],
        address: str,
    ) -> list[str]:
        """Return lines by which one lane adds ``values`` to the record of a numbered instruction. ``word_registers``
        are the 32-bit registers of values; those without one are left out.
        """
        wide_register = self._names.temporary("sum", "b64")
        record = self._numbers[own_map.name, id(instruction)] * own_map.record_bytes
        lines = []
        for field, value in zip(own_map.fields, values, strict=True):
            if value in word_registers:
                operation = "max" if value == LONGEST_HELPER else "add"
                widening = [f"cvt.u64.u32 {wide_register}, {word_registers[value]};"]
                lines += self._addition_lines(address, record + field.offset, widening, wide_register, operation)
        return lines

    def copy_address(self, own_map: Map, zero: str = "") -> tuple[str, list[str]]:
        """Return the register with the address of the copy of records that an SM adds to, and lines that compute it.

        ``zero`` is a register that is 0 in the lane that adds. Added to the address, it keeps ptxas from seeing that
        the address is the same in all lanes; ptxas would otherwise sum the value over the lanes, for a second time.
        """
        storage = Storage(Layout.SITES, own_map.record_bytes, len(self.lines[own_map.name]))
        number, base = self._names.temporary("copy", "b32"), self._names.temporary("wide", "b64")
        address = self._names.temporary("address", "b64")
        return address, [
            f"mov.u32 {number}, %smid;",
            f"and.b32 {number}, {number}, {storage.copies - 1};",
            *([f"add.u32 {number}, {number}, {zero};"] if zero else []),
            f"ld.param.u64 {base}, [{self._names.parameter('map', own_map.name)}];",
            f"mad.wide.u32 {address}, {number}, {storage.slot_bytes}, {base};",
        ]

    def _addition_lines(
        self, address: str, offset: int, widening: Sequence[str], operand: str, operation: str = "add"
    ) -> list[str]:
        return [*widening, f"red.global.{operation}.u64 [{address}{f'+{offset}' if offset else ''}], {operand};"]

    def _widen(self, value: str, probe_registers: dict[str, str]) -> tuple[list[str], str]:
        """Return the lines and the register of a lane's value with 64 bits."""
        if value not in probe_registers:
            return [], value
        if TYPE_BITS[self._probe.registers[value]] == 64:
            return [], probe_registers[value]
        wide_register = self._names.temporary("sum", "b64")
        return [f"cvt.u64.u32 {wide_register}, {probe_registers[value]};"], wide_register
