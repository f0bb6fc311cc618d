"""A probe's snippets to PTX for one place of one kernel."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tui_probe.engine.helpers import TYPE_BITS, HelperValue
from tui_probe.engine.model import FIELD_BYTES, Code, Field, Level, Locate, Map, Probe, Save, Snippet
from tui_probe.engine.summation import Summation
from tui_probe.ptx.lexer import NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tui_probe.engine.addressing import Addressing
    from tui_probe.engine.names import Names

_NAME: Final = re.compile(NAME)
_WIDE_SPECIAL_REGISTERS: Final = frozenset({"%clock64", "%globaltimer", "%gridid", "%current_graph_exec"})
COUNT_BYTES: Final = 4
"""Bytes of a slot in the map of counts that a map of several records a slot has."""


class Expander:
    """Writes out snippets of one probe for one kernel.

    Maps are reached through the kernel's parameters ``names.parameter("map", name)``; those with more than one record
    a slot have a second one, ``names.parameter("count", name)``, for the number of attempts to save.
    """

    def __init__(self, probe: Probe, names: Names, addressing: Addressing, *, reduces: bool) -> None:
        self._probe = probe
        self._names = names
        self._addressing = addressing
        self._own = {name: names.register(name, kind) for name, kind in probe.registers.items()}
        self._summation = Summation(probe, names, self._own, reduces=reduces)
        self.zero: frozenset[str] = frozenset()
        """Registers of the probe that are 0 wherever a snippet is written out from now on."""

    def lines(self, snippet: Snippet, helpers: Mapping[str, HelperValue]) -> list[str]:
        """A snippet as PTX. ``helpers`` holds the value of each helper that it uses."""
        words = dict(self._own)
        words |= {label: self._names.new_label() for label in snippet.labels}
        words |= {name: value.operand for name, value in helpers.items()}
        lines: list[str] = []
        skip = ""
        for statement in snippet.statements:
            match statement:
                case Code(text=text):
                    lines.append(_NAME.sub(lambda match: words.get(match[0], match[0]), text))
                case Locate(map=name):
                    skip = self._names.new_label()
                    lines += self._locate(self._probe.map_named(name), skip)
                case Save(map=name, values=values, adds=True):
                    lines += self._add(self._probe.map_named(name), values)
                case Save(map=name, values=values):
                    own_map = self._probe.map_named(name)
                    if not skip:
                        skip = self._names.new_label()
                        lines += self._locate(own_map, skip)
                    lines += self._store(own_map, values, helpers)
                    lines += [f"{skip}:"] if own_map.level is Level.WARP or own_map.cap != 1 else []
                    skip = ""
        return lines

    def _locate(self, own_map: Map, skip: str) -> list[str]:
        """The address of the record, for the lanes that save one; the others go to ``skip``."""
        lines = self._lowest_lane(skip) if own_map.level is Level.WARP else []
        lines += self._addressing.slot(own_map.level)
        if own_map.cap != 1:
            lines += self._count(own_map, skip)
        lines += self._addressing.pointer(self._names.parameter("map", own_map.name), own_map.slot_bytes)
        if own_map.cap != 1:
            address = self._addressing.address
            lines.append(f"mad.wide.u32 {address}, {self._index()}, {own_map.record_bytes}, {address};")
        return lines

    def _add(self, own_map: Map, values: tuple[str, ...]) -> list[str]:
        return [
            *self._summation.before(own_map),
            *self._addressing.slot(own_map.level),
            *self._addressing.pointer(self._names.parameter("map", own_map.name), own_map.slot_bytes),
            *self._summation.lines(own_map, values, self._addressing.address, self.zero),
        ]

    def _lowest_lane(self, skip: str) -> list[str]:
        """Only the lowest active lane goes on. Lane 0 may have left, or not take part."""
        lanes, lower = self._names.temporary("lanes", "b32"), self._names.temporary("lower", "b32")
        follows = self._names.temporary("follows", "pred")
        return [
            f"activemask.b32 {lanes};",
            f"mov.u32 {lower}, %lanemask_lt;",
            f"and.b32 {lanes}, {lanes}, {lower};",
            f"setp.ne.u32 {follows}, {lanes}, 0;",
            f"@{follows} bra {skip};",
        ]

    def _count(self, own_map: Map, skip: str) -> list[str]:
        """The index of the record; every attempt is counted, and one that finds the slot full goes no further."""
        address, index, full = self._addressing.address, self._index(), self._names.temporary("full", "pred")
        return [
            *self._addressing.pointer(self._names.parameter("count", own_map.name), COUNT_BYTES),
            f"atom.global.add.u32 {index}, [{address}], 1;",
            f"setp.ge.u32 {full}, {index}, {own_map.cap};",
            f"@{full} bra {skip};",
        ]

    def _store(self, own_map: Map, values: tuple[str, ...], helpers: Mapping[str, HelperValue]) -> list[str]:
        """The stores of one record, in the order of its memory; two u32 side by side are one store."""
        lines: list[str] = []
        operands: dict[int, tuple[Field, str]] = {}
        for index, (field, value) in enumerate(zip(own_map.fields, values, strict=True)):
            before, operand = self._operand(index, field, value, helpers)
            lines += before
            operands[field.offset] = field, operand
        offsets = sorted(operands)
        while offsets:
            offset = offsets.pop(0)
            field, operand = operands[offset]
            address = self._addressing.address + (f"+{offset}" if offset else "")
            if field.type == "u32" and offset % 8 == 0 and own_map.record_bytes % 8 == 0 and offset + 4 in operands:
                lines.append(f"st.global.v2.b32 [{address}], {{{operand}, {operands[offset + 4][1]}}};")
                offsets.remove(offset + 4)
            else:
                lines.append(f"st.global.b{FIELD_BYTES[field.type] * 8} [{address}], {operand};")
        return lines

    def _operand(
        self, index: int, field: Field, value: str, helpers: Mapping[str, HelperValue]
    ) -> tuple[list[str], str]:
        """A register of the field's width that holds a value, and the lines that fill it."""
        bits = FIELD_BYTES[field.type] * 8
        if value in self._own:
            operand, kind = self._own[value], self._probe.registers[value]
        elif value in helpers:
            operand, kind = helpers[value].operand, helpers[value].type
        elif value.startswith("%"):
            operand, kind = value, ""
        else:
            register = self._value(bits, index)
            return [f"mov.u{bits} {register}, {value};"], register
        if not kind:
            source_bits = 64 if value in _WIDE_SPECIAL_REGISTERS else 32
            moved = self._value(source_bits, index)
            lines, operand, kind = [f"mov.u{source_bits} {moved}, {operand};"], moved, f"b{source_bits}"
        else:
            lines = []
        source_bits = TYPE_BITS.get(kind, 32)
        if source_bits == bits:
            return lines, operand
        if kind.startswith(("f", "bf")):
            raw = self._names.temporary(f"raw{index}_b{source_bits}", f"b{source_bits}")
            lines.append(f"mov.b{source_bits} {raw}, {operand};")
            operand = raw
        register = self._value(bits, index)
        sign = "s" if kind.startswith("s") and bits > source_bits else "u"
        return [*lines, f"cvt.{sign}{bits}.{sign}{source_bits} {register}, {operand};"], register

    def _value(self, bits: int, index: int) -> str:
        return self._names.temporary(f"value{index}_b{bits}", f"b{bits}")

    def _index(self) -> str:
        return self._names.temporary("index", "b32")
