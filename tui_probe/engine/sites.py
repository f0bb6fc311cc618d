"""``ADD`` to a map of sites: a record for each instruction, block or loop that a probe is at, to which all warps add.

Every lane that comes adds at once, where the instruction is, so that nothing lives across the kernel: no register is
held, and nothing is to be done at its ways out. A snippet lets one lane of a warp add what all of them counted.

    address = the map's parameter + (SM mod copies) × bytes of a copy + site × bytes of a record
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from tui_probe.engine.helpers import TYPE_BITS
from tui_probe.engine.model import Level, Save
from tui_probe.engine.storage import Layout, Storage
from tui_probe.ptx.operands import parse_integer

if TYPE_CHECKING:
    from tui_probe.engine.model import Map, Probe, ProbePoint
    from tui_probe.engine.names import Names
    from tui_probe.ptx.tree import Instruction


class Sites:
    """The sites of one probe in one kernel, by the name of the map: the ``instructions``, and their ``lines`` in
    ``pruned.ptx``.
    """

    def __init__(self, probe: Probe, names: Names) -> None:
        self._probe = probe
        self._names = names
        self._numbers: dict[tuple[str, int], int] = {}
        self.lines: dict[str, list[int]] = {own_map.name: [] for own_map in probe.maps if own_map.level is Level.SITE}
        self.instructions: dict[str, list[Instruction]] = {name: [] for name in self.lines}

    def of_function(self, names: Names) -> Sites:
        """The same sites, for a function whose names are its own."""
        sites = copy(self)
        sites._names = names
        return sites

    def note(self, instruction: Instruction, point: ProbePoint, line: int) -> None:
        """An instruction that a point is at, before anything is written out: the number of sites must be known."""
        snippets = [snippet for snippet in (point.before, point.after) if snippet]
        for name in {s.map for snippet in snippets for s in snippet.statements if isinstance(s, Save)}:
            if name in self.lines and (name, id(instruction)) not in self._numbers:
                self._numbers[name, id(instruction)] = len(self.lines[name])
                self.lines[name].append(line)
                self.instructions[name].append(instruction)

    def add(self, own_map: Map, values: tuple[str, ...], own: dict[str, str], instruction: Instruction) -> list[str]:
        """Lines that add to the record of a noted instruction. ``own`` maps the probe's registers to the kernel's."""
        storage = Storage(Layout.SITES, own_map.record_bytes, len(self.lines[own_map.name]))
        copy, wide = self._names.temporary("copy", "b32"), self._names.temporary("wide", "b64")
        address = self._names.temporary("address", "b64")
        lines = [
            f"mov.u32 {copy}, %smid;",
            f"and.b32 {copy}, {copy}, {storage.copies - 1};",
            f"ld.param.u64 {wide}, [{self._names.parameter('map', own_map.name)}];",
            f"mad.wide.u32 {address}, {copy}, {storage.slot_bytes}, {wide};",
        ]
        record = self._numbers[own_map.name, id(instruction)] * own_map.record_bytes
        for field, value in zip(own_map.fields, values, strict=True):
            if parse_integer(value) != 0:
                widened, operand = self._widened(value, own)
                place = record + field.offset
                lines += [*widened, f"red.global.add.u64 [{address}{f'+{place}' if place else ''}], {operand};"]
        return lines

    def _widened(self, value: str, own: dict[str, str]) -> tuple[list[str], str]:
        """A lane's value with 64 bits."""
        if value not in own:
            return [], value
        if TYPE_BITS[self._probe.registers[value]] == 64:
            return [], own[value]
        wide = self._names.temporary("sum", "b64")
        return [f"cvt.u64.u32 {wide}, {own[value]};"], wide
