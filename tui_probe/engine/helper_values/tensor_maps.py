"""Boxes of copies by tensor map: PTX that reads them out of the map in memory, and computes bytes, sectors and rows.

The map may be a parameter, in device memory, or made by the kernel.

Counted are the elements of a box that are inside the tensor: what overhangs is filled with zeros, or not written. A box
of several blocks of a cluster (multicast) is read once. Copies of pixels (im2col), gathers, and maps with element
strides or types of less than a byte have no known size.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.map_layout import WORD_BITS
from tui_probe.ptx.operands import print_operand
from tui_probe.trace.launch_shape import SECTOR_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.engine.kernel import UnusedNames
    from tui_probe.engine.map_layout import MapLayout
    from tui_probe.ptx.tree import Instruction, Memory

_DIMENSION: Final = re.compile(r"([1-5])d")
_OTHER_FORMS: Final = ("im2col", "tile::gather4", "tile::scatter4")
_MAX_EXTENT: Final = (1 << 31) - 1
_HALF_SECTOR: Final = 16
_MAX_RANK: Final = 5
BOX_FIELDS: Final = {
    "BOX_START": "b64",
    **{f"BOX_STRIDE{dimension}": "b64" for dimension in range(1, _MAX_RANK)},
    "BOX_ROW": "b32",
    **{f"BOX_COUNT{dimension}": "b32" for dimension in range(1, _MAX_RANK)},
}
"""Helpers that describe a box, with their PTX types: the address of its first byte inside the tensor, bytes per row,
rows per dimension, and bytes from one row to the next.
"""


class BoxValue(NamedTuple):
    """A register of 32 bits, and the lines that set it."""

    register: str
    lines: list[str]


class BoxLines:
    """PTX for the box of one ``cp.async.bulk.tensor``, whose map is where the register ``address`` leads.

    The map is read only by the lanes that copy: of others the address may be anything.
    """

    def __init__(
        self, instruction: Instruction, operand: Memory, address: str, names: UnusedNames, layout: MapLayout | None
    ) -> None:
        self._instruction = instruction
        self._coordinates = [print_operand(coordinate) for coordinate in operand.coordinates]
        self._address = address
        self._names = names
        self._layout = layout
        self._rank = next((int(m[1]) for part in instruction.modifiers if (m := _DIMENSION.fullmatch(part))), 0)
        self._guard = ""
        if instruction.predicate is not None:
            self._guard = f"@{'!' if instruction.predicate_negated else ''}{instruction.predicate} "

    @property
    def is_sized(self) -> bool:
        """Return True if the size of the box can be read: copies of pixels and gathers have other operands."""
        if self._layout is None or len(self._coordinates) != self._rank:
            return False
        return not any(part.startswith(_OTHER_FORMS) for part in self._instruction.modifiers)

    def unsized(self) -> BoxValue:
        """Return 1 if the boxes of the map have no known size, else 0."""
        result, steps = self._name("box_unsized"), self._name("box_steps")
        has_steps = self._name("box_differs", "pred")
        sized_types = sum(1 << number for number in self._fields.element_sizes)
        return BoxValue(result, [
            *self._read_parameter("t0", result),
            f"shr.u32 {result}, {sized_types}, {result};",
            f"and.b32 {result}, {result}, 1;",
            *self._find_steps(steps),
            f"setp.ne.u32 {has_steps}, {steps}, 0;",
            f"selp.b32 {result}, 0, {result}, {has_steps};",
            f"xor.b32 {result}, {result}, 1;",
        ])  # fmt: skip

    def bytes(self) -> BoxValue:
        """Return the bytes of the box that are inside the tensor; 0 if their number is unknown."""
        unsized, total, size = self.unsized(), self._name("box_bytes"), self._name("box_size")
        counts = [self._count(dimension) for dimension in range(self._rank)]
        return BoxValue(total, [
            *unsized.lines,
            *self._element_size(size),
            *self._inner_extents(),
            f"mov.b32 {total}, {counts[0]};",
            *(f"mul.lo.u32 {total}, {total}, {count};" for count in counts[1:]),
            f"shl.b32 {total}, {total}, {size};",
            *self._unless_unsized(unsized.register, total),
        ])  # fmt: skip

    def sectors(self) -> BoxValue:
        """Return the sectors that the rows of the box touch inside the tensor; 0 if their number is unknown.

        Strides are multiples of 16 bytes, so rows begin at two places within sectors: ``aligned_rows`` at that of the
        first row, the others 16 bytes further. In a dimension with an odd stride, the surplus of the former is 1 or 0.
        """
        bytes_, rows, aligned_rows, start, row = self.bytes(), *(
            self._name(f"box_{name}") for name in ("rows", "alike", "start", "row")
        )  # fmt: skip
        stride, is_odd = self._name("box_stride"), self._name("box_differs", "pred")
        lines = [*bytes_.lines, *self._start_bits(start), f"mov.b32 {rows}, 1;", f"mov.b32 {aligned_rows}, 1;"]
        for dimension in range(1, self._rank):
            lines += self._count_rows(dimension, rows, aligned_rows)
        lines += [
            f"add.u32 {aligned_rows}, {aligned_rows}, {rows};",
            f"shr.u32 {aligned_rows}, {aligned_rows}, 1;",
            f"sub.u32 {rows}, {rows}, {aligned_rows};",
            f"shl.b32 {row}, {self._count(0)}, {self._name('box_size')};",
            f"add.u32 {row}, {row}, {SECTOR_BYTES - 1};",
        ]
        for number in (aligned_rows, rows):
            lines += [
                f"add.u32 {stride}, {row}, {start};",
                f"shr.u32 {stride}, {stride}, 5;",
                f"mul.lo.u32 {number}, {number}, {stride};",
                f"xor.b32 {start}, {start}, {_HALF_SECTOR};",
            ]
        lines += [
            f"add.u32 {rows}, {rows}, {aligned_rows};",
            f"setp.eq.u32 {is_odd}, {bytes_.register}, 0;",
            f"selp.b32 {rows}, 0, {rows}, {is_odd};",
        ]
        return BoxValue(rows, lines)

    def _count_rows(self, dimension: int, rows: str, aligned_rows: str) -> list[str]:
        """Multiply ``rows`` by the rows of a dimension, ``aligned_rows`` by their surplus if the stride is odd."""
        stride, is_odd, count = self._name("box_stride"), self._name("box_differs", "pred"), self._count(dimension)
        return [
            f"mul.lo.u32 {rows}, {rows}, {count};",
            *self._read_parameter(f"s{dimension - 1}", stride),
            f"and.b32 {stride}, {stride}, {_HALF_SECTOR};",
            f"setp.ne.u32 {is_odd}, {stride}, 0;",
            f"and.b32 {stride}, {count}, 1;",
            f"selp.b32 {stride}, {stride}, {count}, {is_odd};",
            f"mul.lo.u32 {aligned_rows}, {aligned_rows}, {stride};",
        ]

    def rows(self, *, is_known: bool) -> dict[str, BoxValue]:
        """Return the rows of the box inside the tensor by name in ``BOX_FIELDS``; START and ROW are 0 unless the size
        ``is_known``.

        All values have the same lines, which are needed once.
        """
        size = self._name("box_size")
        registers = {name: self._name(name.lower(), kind) for name, kind in BOX_FIELDS.items()}
        lines = [f"mov.{kind} {registers[name]}, {int('COUNT' in name)};" for name, kind in BOX_FIELDS.items()]
        if is_known:
            unsized = self.unsized()
            row, start = registers["BOX_ROW"], registers["BOX_START"]
            lines += [
                *unsized.lines,
                *self._element_size(size),
                *self._inner_extents(),
                f"shl.b32 {row}, {self._count(0)}, {size};",
                *self._start(registers, size),
                *self._unless_unsized(unsized.register, row),
                f"selp.b64 {start}, 0, {start}, {self._name('box_differs', 'pred')};",
            ]
        return {name: BoxValue(register, lines) for name, register in registers.items()}

    def _start(self, registers: dict[str, str], size: str) -> Iterator[str]:
        """Set the address of the first byte inside the tensor, the counts and the strides."""
        start, part = registers["BOX_START"], self._name("box_part", "b64")
        offset = self._name("box_stride")
        yield from self._read_wide_parameter("a0", start)
        yield f"shl.b32 {offset}, {self._name('box_first0')}, {size};"
        yield f"cvt.u64.u32 {part}, {offset};"
        yield f"add.u64 {start}, {start}, {part};"
        for dimension in range(1, self._rank):
            stride = registers[f"BOX_STRIDE{dimension}"]
            yield from self._read_wide_parameter(f"s{dimension - 1}", stride)
            yield f"cvt.u64.u32 {part}, {self._name(f'box_first{dimension}')};"
            yield f"mad.lo.u64 {start}, {part}, {stride}, {start};"
            yield f"mov.b32 {registers[f'BOX_COUNT{dimension}']}, {self._count(dimension)};"

    @property
    def _fields(self) -> MapLayout:
        assert self._layout is not None
        return self._layout

    def _name(self, name: str, kind: str = "b32") -> str:
        return self._names.temporary(f"{name}_{kind}", kind)

    def _count(self, dimension: int) -> str:
        return self._name(f"box_count{dimension}")

    def _unless_unsized(self, unsized: str, value: str) -> Iterator[str]:
        is_unsized = self._name("box_differs", "pred")
        yield f"setp.ne.u32 {is_unsized}, {unsized}, 0;"
        yield f"selp.b32 {value}, 0, {value}, {is_unsized};"

    def _find_steps(self, result: str) -> Iterator[str]:
        """Set a register to 0 if all element strides are 1."""
        word, masks, unit_bits = self._name("box_word"), dict[int, int](), dict[int, int]()
        for field in (self._fields.fields.get(f"e{dimension}") for dimension in range(self._rank)):
            for run in field.runs if field else ():
                masks[run.word] = masks.get(run.word, 0) | run.mask
                unit_bit = 0 if field is None or field.bias or run.shift else 1 << run.bit % WORD_BITS
                unit_bits[run.word] = unit_bits.get(run.word, 0) | unit_bit
        yield f"mov.b32 {result}, 0;"
        for index, mask in masks.items():
            yield from self._load(index, word)
            yield f"and.b32 {word}, {word}, {mask};"
            yield f"xor.b32 {word}, {word}, {unit_bits[index]};"
            yield f"or.b32 {result}, {result}, {word};"

    def _element_size(self, result: str) -> Iterator[str]:
        """Set a register to the binary logarithm of an element's bytes, from a table with two bits for each type."""
        table = self._name("box_table", "b64")
        yield from self._read_parameter("t0", result)
        yield f"mov.b64 {table}, {sum(size << 2 * number for number, size in self._fields.element_sizes.items())};"
        yield f"shl.b32 {result}, {result}, 1;"
        yield f"shr.u64 {table}, {table}, {result};"
        yield f"cvt.u32.u64 {result}, {table};"
        yield f"and.b32 {result}, {result}, 3;"

    def _inner_extents(self) -> Iterator[str]:
        """Set the number of elements of the box inside the tensor, and the first of these, per dimension."""
        end, extent = self._name("box_last"), self._name("box_extent")
        for dimension, coordinate in enumerate(self._coordinates):
            start, count = self._name(f"box_first{dimension}"), self._count(dimension)
            yield from self._read_parameter(f"b{dimension}", count)
            yield from self._read_parameter(f"d{dimension}", extent)
            yield f"min.u32 {extent}, {extent}, {_MAX_EXTENT};"
            yield f"mov.b32 {start}, {coordinate};"
            yield f"add.sat.s32 {end}, {start}, {count};"
            yield f"min.s32 {end}, {end}, {extent};"
            yield f"max.s32 {start}, {start}, 0;"
            yield f"sub.s32 {count}, {end}, {start};"
            yield f"max.s32 {count}, {count}, 0;"

    def _start_bits(self, result: str) -> Iterator[str]:
        """Set a register to the place within its sector of the first byte of the box that is inside the tensor."""
        part = self._name("box_stride")
        yield from self._read_parameter("a0", result)
        yield f"shl.b32 {part}, {self._name('box_first0')}, {self._name('box_size')};"
        yield f"add.u32 {result}, {result}, {part};"
        for dimension in range(1, self._rank):
            yield from self._read_parameter(f"s{dimension - 1}", part)
            yield f"mad.lo.u32 {result}, {part}, {self._name(f'box_first{dimension}')}, {result};"
        yield f"and.b32 {result}, {result}, {SECTOR_BYTES - 1};"

    def _read_parameter(self, name: str, result: str) -> Iterator[str]:
        """Set a register to the low 32 bits of a parameter of the map."""
        field, word = self._fields.fields[name], self._name("box_word")
        yield f"mov.b32 {result}, {field.bias};"
        for run in field.runs:
            if run.shift >= WORD_BITS:
                continue
            yield from self._load(run.word, word)
            if run.width < WORD_BITS:
                yield f"bfe.u32 {word}, {word}, {run.bit % WORD_BITS}, {run.width};"
            if run.shift:
                yield f"shl.b32 {word}, {word}, {run.shift};"
            yield f"add.u32 {result}, {result}, {word};"

    def _read_wide_parameter(self, name: str, result: str) -> Iterator[str]:
        """Set a register to all 64 bits of a parameter of the map."""
        field, word, part = self._fields.fields[name], self._name("box_word"), self._name("box_part", "b64")
        yield f"mov.b64 {result}, {field.bias};"
        for run in field.runs:
            yield from self._load(run.word, word)
            if run.width < WORD_BITS:
                yield f"bfe.u32 {word}, {word}, {run.bit % WORD_BITS}, {run.width};"
            yield f"cvt.u64.u32 {part}, {word};"
            yield f"shl.b64 {part}, {part}, {run.shift};"
            yield f"add.u64 {result}, {result}, {part};"

    def _load(self, word: int, result: str) -> Iterator[str]:
        if self._guard:
            yield f"mov.b32 {result}, 0;"
        yield f"{self._guard}ld.b32 {result}, [{self._address}+{word * WORD_BITS // 8}];"
