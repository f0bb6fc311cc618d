"""Line tables of SASS: the line of a source file, or of the PTX, that each address came from.

A cubin has two. ``.debug_line`` leads to the source that the compiler was given, ``.nv_debug_line_sass`` to the lines
of the PTX that the assembler read. Both are line number programs of the DWARF Debugging Information Format, version 2
to 4, section 6.2, as ptxas writes them. Addresses of both count from the start of the same function.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

from tui_probe.binaries import elf
from tui_probe.errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

SOURCE_SECTION: Final = ".debug_line"
PTX_SECTION: Final = ".nv_debug_line_sass"

_END_SEQUENCE, _SET_ADDRESS, _INLINED_CALL = 1, 2, 0x90
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_MAX_LEB_BITS: Final = 70
_REL: Final = struct.Struct("<QQ")
_RELA: Final = struct.Struct("<QQq")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_CODE_PREFIX: Final = ".text."
_INSTRUCTION: Final = 16
_UNIT: Final = struct.Struct("<IHI")
"""Head of a unit: bytes behind this number, version, bytes of the header behind that number."""
_UNIT_LENGTH: Final = 4
_SET_ADDRESS_OPERATION: Final = bytes((0, 9, _SET_ADDRESS))
_END_SEQUENCE_OPERATION: Final = bytes((0, 1, _END_SEQUENCE))


RowValue = TypeVar("RowValue")
Calls: TypeAlias = "tuple[tuple[str, int], ...]"
"""File and line of each call that was inlined around an instruction, the innermost first."""


class LineEntry(NamedTuple):
    """Row from ``address`` of a function up to the next row: ``line`` of ``file``, "" if the table names none.

    ``caller`` is the number of the row, from 1, of the call that was inlined here; 0 outside of inlined functions.
    """

    address: int
    file: str
    line: int
    caller: int = 0


class FunctionTables(NamedTuple):
    """The rows of one function, by address: of its source and of the PTX.

    ``calls`` has, for each row of ``source``, the file and line of the calls that were inlined around it, the innermost
    first.
    """

    name: str
    source: list[LineEntry]
    calls: list[Calls]
    ptx: list[LineEntry]


def line_tables(image: bytes) -> list[FunctionTables]:
    """Return the tables of each function of a cubin that has both. Raises ImageError for a damaged file or table."""
    sections = elf.Sections(image)
    if SOURCE_SECTION not in sections or PTX_SECTION not in sections:
        return []
    by_function = {name: _rows_by_function(sections, name) for name in (SOURCE_SECTION, PTX_SECTION)}
    tables = []
    for name, source in sorted(by_function[SOURCE_SECTION].items()):
        ptx = by_function[PTX_SECTION].get(name)
        if ptx is not None:
            rows, calls = map(list, zip(*source, strict=True))
            tables.append(FunctionTables(name, rows, calls, [row for row, _ in ptx]))
    return tables


def _rows_by_function(sections: elf.Sections, section_name: str) -> dict[str, list[tuple[LineEntry, Calls]]]:
    """Return the rows of each function in a line section by address, each with the calls around it."""
    functions = _sequence_functions(sections, section_name)
    by_function: dict[str, list[tuple[LineEntry, Calls]]] = {}
    for address_offset, rows in line_sequences(sections[section_name]):
        by_function.setdefault(functions.get(address_offset, ""), []).extend(
            (row, _calls_around(rows, row)) for row in rows
        )
    return {
        name: sorted(rows, key=lambda row_and_calls: row_and_calls[0].address)
        for name, rows in by_function.items()
        if rows
    }


def source_locations(image: bytes, kernel: str, size: int) -> dict[int, tuple[str, int]]:
    """Return the file and line of the source that each instruction of a kernel's machine code of ``size`` bytes came
    from, by its offset. Empty without a line table; raises ImageError for a damaged file or table.
    """
    rows = ((row.address, (row.file, row.line)) for sequence in _sequences_of(image, kernel) for row in sequence)
    return {offset: place for offset, place in _by_offset(rows, size).items() if place[0] and place[1] > 0}


def call_chains(image: bytes, kernel: str, size: int) -> dict[int, Calls]:
    """Return the calls that were inlined around each instruction, by its offset, only of instructions in inlined
    functions. Raises as ``source_locations``.
    """
    rows = ((row.address, _calls_around(rows, row)) for rows in _sequences_of(image, kernel) for row in rows)
    return {offset: calls for offset, calls in _by_offset(rows, size).items() if calls}


def _by_offset(rows: Iterable[tuple[int, RowValue]], size: int) -> dict[int, RowValue]:
    """Return the value of each instruction's row, by its offset; of several rows at one address the last counts."""
    sorted_rows = sorted(rows, key=lambda row: row[0])
    values: dict[int, RowValue] = {}
    for (address, value), next_address in zip(
        sorted_rows, [*(start for start, _ in sorted_rows[1:]), size], strict=False
    ):
        values |= dict.fromkeys(range(address, min(next_address, size), _INSTRUCTION), value)
    return values


def _calls_around(rows: Sequence[LineEntry], row: LineEntry) -> Calls:
    """Return the calls around a row. A caller that is not an earlier row than its callee ends the chain."""
    calls: list[tuple[str, int]] = []
    number = row.caller
    while 0 < number <= len(rows):
        call = rows[number - 1]
        calls.append((call.file, call.line))
        number = call.caller if call.caller < number else 0
    return tuple(calls)


def _sequences_of(image: bytes, kernel: str) -> Iterator[list[LineEntry]]:
    """Yield the rows of each sequence of a kernel's source table."""
    sections = elf.Sections(image)
    functions = _sequence_functions(sections, SOURCE_SECTION)
    for address_offset, rows in line_sequences(sections[SOURCE_SECTION]) if SOURCE_SECTION in sections else ():
        if functions.get(address_offset) == kernel:
            yield rows


def cut_table(
    section: bytes, address_offsets: Collection[int], kept_offsets: Collection[int]
) -> tuple[bytes, dict[int, int]]:
    """Return a line section with some of its sequences only, and by each of ``kept_offsets`` its new offset.

    ``address_offsets`` are those where the addresses of all sequences are stored, ``kept_offsets`` those that stay.
    Raises ImageError for a damaged section, and where sequences do not begin with their address.
    """
    table = bytearray()
    new_offsets: dict[int, int] = {}
    starts = {place - len(_SET_ADDRESS_OPERATION) for place in address_offsets}
    unit_start = 0
    while unit_start + _UNIT.size <= len(section):
        length, _, header = _UNIT.unpack_from(section, unit_start)
        program, end = unit_start + _UNIT.size + header, unit_start + _UNIT_LENGTH + length
        unit_starts = sorted(sequence_start for sequence_start in starts if program <= sequence_start < end)
        if end > len(section) or (unit_starts and not _are_all_sequences(section, program, end, unit_starts)):
            raise ImageError(f"the line table of the image has an unknown format at byte {unit_start}")
        kept_ranges = [
            pair for pair in pairwise([*unit_starts, end]) if pair[0] + len(_SET_ADDRESS_OPERATION) in kept_offsets
        ]
        if kept_ranges:
            table_start = len(table)
            table += section[unit_start:program]
            for begin, sequence_end in kept_ranges:
                new_offsets[begin + len(_SET_ADDRESS_OPERATION)] = len(table) + len(_SET_ADDRESS_OPERATION)
                table += section[begin:sequence_end]
            table[table_start : table_start + _UNIT_LENGTH] = (len(table) - table_start - _UNIT_LENGTH).to_bytes(
                _UNIT_LENGTH, "little"
            )
        unit_start = end
    if len(new_offsets) < len(set(kept_offsets)):
        raise ImageError("relocations of the image refer to missing parts of its line table")
    return bytes(table), new_offsets


def _are_all_sequences(section: bytes, program: int, end: int, starts: list[int]) -> bool:
    """Return whether these are the starts of all sequences of a unit, one right behind the other."""
    stops = [*starts[1:], end]
    return (
        starts[0] == program
        and all(section.startswith(_SET_ADDRESS_OPERATION, start) for start in starts)
        and all(section.endswith(_END_SEQUENCE_OPERATION, begin, end) for begin, end in zip(starts, stops, strict=True))
    )


def _sequence_functions(sections: Mapping[str, bytes], section: str) -> dict[int, str]:
    """Return the function of each sequence, by the offset of its address in a line section."""
    symbols, names = sections.get(".symtab", b""), elf.NameTable(sections.get(".strtab", b""))
    functions = {}
    for offset, number in _sequence_symbols(sections, section).items():
        symbol_offset = number * _SYMBOL.size
        if symbol_offset + _SYMBOL.size <= len(symbols):
            name_offset = _SYMBOL.unpack_from(symbols, symbol_offset)[0]
            functions[offset] = names.name_at(name_offset).decode("utf-8", "surrogateescape")
    return {offset: name.removeprefix(_CODE_PREFIX) for offset, name in functions.items()}


def _sequence_symbols(sections: Mapping[str, bytes], name: str) -> dict[int, int]:
    """Return the symbol number of each sequence, by the offset of its address in a line section.

    ptxas writes relocations with an addend for some architectures, without one (``.rel``) for others, such as sm_80.
    """
    symbols: dict[int, int] = {}
    for prefix, entry in ((".rel", _REL), (".rela", _RELA)):
        content = sections.get(prefix + name, b"")
        complete = content[: len(content) // entry.size * entry.size]
        symbols |= {offset: info >> 32 for offset, info, *_ in entry.iter_unpack(complete)}
    return symbols


def line_sequences(section: bytes) -> Iterator[tuple[int, list[LineEntry]]]:
    """Yield the offset at which each sequence of a line section stores its address, and the rows of the sequence.

    Raises ImageError for one that is cut off or of a version that is not read.
    """
    reader = _Reader(section)
    try:
        while reader.offset < len(section):
            length = reader.read_integer(4)
            unit = _Unit.read(reader, reader.offset + length)
            yield from unit.read_sequences(reader)
            reader.offset = unit.end
    except (IndexError, struct.error, ValueError) as error:
        raise ImageError(f"a line table of the image is corrupt at byte {reader.offset}: {error}") from error


@dataclass(slots=True)
class _Reader:
    """Reads little-endian numbers and strings, one after another."""

    data: bytes
    offset: int = 0

    def read_integer(self, size: int, *, signed: bool = False) -> int:
        if not 0 <= size <= len(self.data) - self.offset:
            raise IndexError("truncated")
        self.offset += size
        return int.from_bytes(self.data[self.offset - size : self.offset], "little", signed=signed)

    def read_byte(self) -> int:
        """Read the next byte: most of a table are read one by one."""
        self.offset += 1
        return self.data[self.offset - 1]

    def read_leb(self, *, signed: bool = False) -> int:
        """Read a number of any length, seven bits per byte (LEB128)."""
        value = shift = 0
        while True:
            byte = self.read_byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value
            if shift > _MAX_LEB_BITS:
                raise ValueError("a number is too long")

    def read_string(self) -> str:
        end = self.data.index(b"\0", self.offset)
        text = self.data[self.offset : end].decode("utf-8", "replace")
        self.offset = end + 1
        return text

    def read_strings(self) -> Iterator[str]:
        """Yield strings up to an empty one."""
        while text := self.read_string():
            yield text


@dataclass(slots=True)
class _Unit:
    """One line number program: its header, and the machine that runs it."""

    end: int
    address_step: int
    line_base: int
    line_range: int
    operand_counts: list[int]
    files: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, reader: _Reader, end: int) -> _Unit:
        if end > len(reader.data):
            raise ValueError("truncated")
        version = reader.read_integer(2)
        if not 2 <= version <= 4:
            raise ValueError(f"unsupported version {version}")
        header_length = reader.read_integer(4)
        program_start = reader.offset + header_length
        address_step = reader.read_integer(1)
        if version == 4:
            reader.read_integer(1)  # operations of an instruction, for machines that have several
        reader.read_integer(1)  # whether rows begin as statements
        line_base, line_range = reader.read_integer(1, signed=True), reader.read_integer(1)
        operand_counts = [reader.read_integer(1) for _ in range(reader.read_integer(1) - 1)]
        unit = cls(end, address_step, line_base, max(line_range, 1), operand_counts)
        directories = ["", *reader.read_strings()]
        for name in reader.read_strings():
            directory_index = reader.read_leb()
            reader.read_leb()
            reader.read_leb()
            directory = directories[directory_index] if directory_index < len(directories) else ""
            unit.files.append(f"{directory}/{name}" if directory and not name.startswith("/") else name)
        reader.offset = program_start
        return unit

    def read_sequences(self, reader: _Reader) -> Iterator[tuple[int, list[LineEntry]]]:
        while reader.offset < self.end:
            yield self._read_sequence(reader)

    def _read_sequence(self, reader: _Reader) -> tuple[int, list[LineEntry]]:
        """Run the program up to the end of a sequence."""
        address, file, line, caller, address_offset = 0, self._file_name(1), 1, 0, -1
        rows: list[LineEntry] = []
        first_special = len(self.operand_counts) + 1
        while reader.offset < self.end:
            opcode = reader.read_byte()
            if opcode >= first_special:
                advance, delta = divmod(opcode - first_special, self.line_range)
                address += advance * self.address_step
                line += self.line_base + delta
                rows.append(LineEntry(address, file, line, caller))
            elif opcode == 0:
                next_opcode = reader.read_leb() + reader.offset
                kind = reader.read_integer(1)
                if kind == _SET_ADDRESS:
                    address_offset = reader.offset
                    address = reader.read_integer(next_opcode - reader.offset)
                elif kind == _INLINED_CALL:
                    caller = reader.read_leb()  # the name of the inlined function follows
                reader.offset = next_opcode
                if kind == _END_SEQUENCE:
                    break
            elif opcode == _COPY:
                rows.append(LineEntry(address, file, line, caller))
            elif opcode == _ADVANCE_LINE:
                line += reader.read_leb(signed=True)
            elif opcode == _SET_FILE:
                file = self._file_name(reader.read_leb())
            else:
                address += self._read_advance(opcode, reader)
        return address_offset, rows

    def _read_advance(self, opcode: int, reader: _Reader) -> int:
        """Return the bytes by which an opcode moves the address; 0 for one that has no address, file or line."""
        if opcode == _ADVANCE_PC:
            return reader.read_leb() * self.address_step
        if opcode == _CONST_ADD_PC:
            return (255 - len(self.operand_counts) - 1) // self.line_range * self.address_step
        if opcode == _FIXED_ADVANCE_PC:
            return reader.read_integer(2)
        for _ in range(self.operand_counts[opcode - 1]):
            reader.read_leb()
        return 0

    def _file_name(self, number: int) -> str:
        return self.files[number - 1] if 1 <= number <= len(self.files) else ""
