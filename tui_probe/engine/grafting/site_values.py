"""Values of a snippet at an instruction of SASS, from the marks of its operands: address, size and box."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from tui_probe.engine.helper_values.helpers import BOX_HELPERS, HelperValue
from tui_probe.engine.helper_values.tensor_maps import BOX_FIELDS, BoxLines
from tui_probe.ptx.operands import MADE_UP
from tui_probe.ptx.tree import Instruction, Memory, Register
from tui_probe.sass.snippets import MARK_STEP

if TYPE_CHECKING:
    from tui_probe.engine.kernel import UnusedNames
    from tui_probe.engine.map_layout import MapLayout
    from tui_probe.probe_model.probe import Snippet

SITE_HELPERS: Final = frozenset({"ADDR", "BYTES", "LINE", "MULTIPLY_ADDS"}) | BOX_HELPERS


class Mark(IntEnum):
    """Numbers of marks. An address register and a uniform address register have two marks each, one per half.

    ``COPY_SIZE`` of a bulk copy: its size in units of 16 bytes, in the lower half. Its address, or that of its map, is
    the uniform one; from ``FIRST_COORDINATE`` on are the coordinates of its box.
    ``OFFSET`` is added to the address. ``READ_FLAG`` is 1 in lanes that read, else 0. ``LINE`` is the instruction's
    position. From ``FIRST_KEPT`` on, marks are words of registers that live throughout; from ``FIRST_NUMBER`` on, the
    numbers passed to the points of a block, in order; from ``FIRST_SITE`` on, the numbers of the instruction among the
    sites of the probe's maps of sites, in order of the maps.
    """

    ADDRESS = 1
    UNIFORM_ADDRESS = 3
    OFFSET = 5
    READ_FLAG = 6
    LINE = 7
    FIRST_KEPT = 8
    FIRST_COORDINATE = 1018
    COPY_SIZE = 1023
    FIRST_NUMBER = 1024
    FIRST_SITE = 1536


@dataclass(frozen=True, slots=True)
class InstructionFacts:
    """Facts of an instruction for a snippet: the bytes and multiply-adds of a lane, and what its address is made of.

    ``is_wide``: the address has 64 bits. ``is_uniform``: a uniform register is added to it. ``is_predicated``: a
    predicate decides which lanes read. ``is_shortened``: a copy fills the bytes that it does not read with zeros.
    ``is_shared``: in shared memory, where the register's value is shifted to the left by ``shift``. ``is_bulk``: a bulk
    copy, which all lanes start once together; ``is_tensor``: by a tensor map, whose box has that many ``dimensions``.
    ``is_counted``, ``begins``: as ``samples_iterations`` and ``begins_iteration`` of ``RecordPosition``.
    """

    bytes: int | None = None
    multiply_adds: int | None = None
    is_wide: bool = True
    is_uniform: bool = False
    is_predicated: bool = False
    is_shortened: bool = False
    is_shared: bool = False
    shift: int = 0
    is_bulk: bool = False
    is_tensor: bool = False
    dimensions: int = 0
    is_counted: bool = False
    begins: bool = False


@dataclass(frozen=True, slots=True)
class SiteValues:
    """Values at an instruction. ``mark`` is the register of the marks' base address."""

    names: UnusedNames
    mark: str
    map_layout: MapLayout | None

    def read_mark(self, number: int, name: str) -> tuple[str, list[str]]:
        """Return a register that gets the value of a mark, and the line that reads it."""
        register = self.names.temporary(name, "b32")
        return register, [f"ld.volatile.shared.u32 {register}, [{self.mark}+{MARK_STEP * number}];"]

    def helpers(self, snippet: Snippet, facts: InstructionFacts) -> tuple[dict[str, HelperValue], list[str]]:
        """Return the values of a snippet's helpers, and the lines that compute them."""
        values: dict[str, HelperValue] = {}
        lines: list[str] = []
        if "ADDR" in snippet.helpers or ("BYTES" in snippet.helpers and facts.is_shortened):
            address, lines = self._address(facts)
            values["ADDR"] = HelperValue(address, "b64")
        if "BYTES" in snippet.helpers:
            values["BYTES"], value_lines = self._lane_bytes(facts)
            lines += value_lines
        if "LINE" in snippet.helpers:
            line, value_lines = self.read_mark(Mark.LINE, "line")
            values["LINE"] = HelperValue(line, "b32")
            lines += value_lines
        for name in ("SECTORS", "UNSIZED"):
            if name in snippet.helpers:
                values[name], value_lines = self._box_value(name, facts)
                lines += value_lines
        if BOX_FIELDS.keys() & snippet.helpers:
            box, value_lines = self._box(facts)
            values |= box
            lines += value_lines
        if "MULTIPLY_ADDS" in snippet.helpers:
            values["MULTIPLY_ADDS"] = HelperValue(str(facts.multiply_adds), "b32")
        return values, lines

    def _address(self, facts: InstructionFacts) -> tuple[str, list[str]]:
        """Return a 64-bit register with the address of a lane's access, and the lines that compute it."""
        if facts.is_shared:
            return self._shared_address(facts)
        if facts.is_bulk:
            return self._uniform_address()
        low_half, lines = self.read_mark(Mark.ADDRESS, "low")
        high_half, part_lines = self.read_mark(Mark.ADDRESS + 1, "high") if facts.is_wide else ("0", [])
        offset, offset_lines = self.read_mark(Mark.OFFSET, "offset")
        address, wide_offset = self.names.temporary("addr", "b64"), self.names.temporary("other_addr", "b64")
        lines += [*part_lines, *offset_lines, f"mov.b64 {address}, {{{low_half}, {high_half}}};"]
        lines += [f"cvt.s64.s32 {wide_offset}, {offset};", f"add.s64 {address}, {address}, {wide_offset};"]
        if facts.is_uniform:
            uniform, part_lines = self._uniform_address()
            lines += [*part_lines, f"add.s64 {address}, {address}, {uniform};"]
        return address, lines

    def _uniform_address(self) -> tuple[str, list[str]]:
        low_half, lines = self.read_mark(Mark.UNIFORM_ADDRESS, "uniform_low")
        high_half, high_lines = self.read_mark(Mark.UNIFORM_ADDRESS + 1, "uniform_high")
        address = self.names.temporary("uniform_addr", "b64")
        return address, [*lines, *high_lines, f"mov.b64 {address}, {{{low_half}, {high_half}}};"]

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
        coordinates = [self.read_mark(mark, f"coordinate{mark - Mark.FIRST_COORDINATE}") for mark in marks]
        box = BoxLines(
            Instruction("cp", ("async", "bulk", "tensor", f"{facts.dimensions}d"), (), MADE_UP),
            Memory(Register(address), coordinates=tuple(Register(register) for register, _ in coordinates)),
            address,
            self.names,
            self.map_layout,
        )
        return box, [*lines, *(line for _, coordinate_lines in coordinates for line in coordinate_lines)]

    def _box_value(self, name: str, facts: InstructionFacts) -> tuple[HelperValue, list[str]]:
        """Return the bytes or sectors of a copy by tensor map, or 1 if its boxes have no known size."""
        box, lines = self._box_of_map(facts)
        if not facts.dimensions or not box.is_sized:
            return HelperValue(str(int(facts.is_tensor and name == "UNSIZED")), "b32"), []
        value = {"BYTES": box.bytes, "SECTORS": box.sectors, "UNSIZED": box.unsized}[name]()
        return HelperValue(value.register, "b32"), [*lines, *value.lines]

    def _shared_address(self, facts: InstructionFacts) -> tuple[str, list[str]]:
        """Return the register of a shared memory address, and the lines that compute it from a 32-bit offset."""
        low_half, lines = self.read_mark(Mark.ADDRESS, "low")
        offset, offset_lines = self.read_mark(Mark.OFFSET, "offset")
        address = self.names.temporary("addr", "b64")
        lines += [f"shl.b32 {low_half}, {low_half}, {facts.shift};"] if facts.shift else []
        lines += [*offset_lines, f"add.u32 {low_half}, {low_half}, {offset};"]
        if facts.is_uniform:
            uniform, uniform_lines = self.read_mark(Mark.UNIFORM_ADDRESS, "uniform_low")
            lines += [*uniform_lines, f"add.u32 {low_half}, {low_half}, {uniform};"]
        return address, [*lines, f"cvt.u64.u32 {address}, {low_half};"]

    def _lane_bytes(self, facts: InstructionFacts) -> tuple[HelperValue, list[str]]:
        """Return the number of bytes that a lane moves. A copy that fills with zeros counts the bytes that it reads."""
        if facts.is_bulk:
            return self._bulk_bytes(facts)
        if not facts.is_predicated and not facts.is_shortened:
            return HelperValue(str(facts.bytes), "b32"), []
        size = self.names.temporary("size", "b32")
        lines = [f"mov.u32 {size}, {facts.bytes};"]
        if facts.is_shortened:
            assert facts.bytes is not None
            low_half = self.names.temporary("low", "b32")
            offset = self.names.temporary("offset", "b32")
            lines += [f"add.u32 {size}, {low_half}, {offset};", f"and.b32 {size}, {size}, {facts.bytes - 1};"]
            lines += [f"sub.u32 {size}, {facts.bytes}, {size};"]
        if facts.is_predicated:
            flag, flag_lines = self.read_mark(Mark.READ_FLAG, "reads")
            lines += [*flag_lines, f"mul.lo.u32 {size}, {size}, {flag};"]
        return HelperValue(size, "b32"), lines

    def _bulk_bytes(self, facts: InstructionFacts) -> tuple[HelperValue, list[str]]:
        """Return the number of bytes of a bulk copy; 0 if it is unknown."""
        if facts.is_tensor:
            return self._box_value("BYTES", facts)
        size, lines = self.read_mark(Mark.COPY_SIZE, "copied")
        lines += [f"and.b32 {size}, {size}, 0xffff;", f"shl.b32 {size}, {size}, 4;"]
        return HelperValue(size, "b32"), lines
