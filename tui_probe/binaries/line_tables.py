"""Line tables of SASS: the line of a source file, or of the PTX, that each address came from.

A cubin has two. ``.debug_line`` leads to the source that the compiler was given, ``.nv_debug_line_sass`` to the lines
of the PTX that the assembler read. Both are line number programs of the DWARF Debugging Information Format, version 2
to 4, section 6.2, as ptxas writes them. Addresses of both count from the start of the same function.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from tui_probe.binaries import elf
from tui_probe.errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

SOURCE_SECTION: Final = ".debug_line"
PTX_SECTION: Final = ".nv_debug_line_sass"

_END, _SET_ADDRESS, _INLINED_CALL = 1, 2, 0x90
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_LONGEST: Final = 70
_REL: Final = struct.Struct("<QQ")
_RELA: Final = struct.Struct("<QQq")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_CODE: Final = ".text."
_INSTRUCTION: Final = 16
_UNIT: Final = struct.Struct("<IHI")
"""Head of a unit: bytes behind this number, version, bytes of the header behind that number."""
_UNIT_LENGTH: Final = 4
_ADDRESS_FOLLOWS: Final = bytes((0, 9, _SET_ADDRESS))
_SEQUENCE_ENDS: Final = bytes((0, 1, _END))


T = TypeVar("T")


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
    calls: list[tuple[tuple[str, int], ...]]
    ptx: list[LineEntry]


def line_tables(image: bytes) -> list[FunctionTables]:
    """The tables of each function of a cubin that has both. Raises ImageError for a damaged file or table."""
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


def _rows_by_function(
    sections: elf.Sections, section: str
) -> dict[str, list[tuple[LineEntry, tuple[tuple[str, int], ...]]]]:
    """Return the rows of each function in a line section by address, each with the calls around it."""
    owners = _sequence_functions(sections, section)
    by_function: dict[str, list[tuple[LineEntry, tuple[tuple[str, int], ...]]]] = {}
    for place, rows in line_sequences(sections[section]):
        by_function.setdefault(owners.get(place, ""), []).extend((row, _calls_around(rows, row)) for row in rows)
    return {name: sorted(rows, key=lambda own: own[0].address) for name, rows in by_function.items() if rows}


def source_places(image: bytes, kernel: str, size: int) -> dict[int, tuple[str, int]]:
    """The file and line of the source that each instruction of a kernel's machine code of ``size`` bytes came from, by
    its offset. Empty without a line table; raises ImageError for a damaged file or table.
    """
    rows = ((row.address, (row.file, row.line)) for sequence in _sequences_of(image, kernel) for row in sequence)
    return {at: place for at, place in _by_offset(rows, size).items() if place[0] and place[1] > 0}


def call_chains(image: bytes, kernel: str, size: int) -> dict[int, tuple[tuple[str, int], ...]]:
    """The file and line of the calls that were inlined around each instruction, the innermost first, by its offset;
    only of instructions in inlined functions. Raises as ``source_places``.
    """
    rows = ((row.address, _calls_around(rows, row)) for rows in _sequences_of(image, kernel) for row in rows)
    return {at: calls for at, calls in _by_offset(rows, size).items() if calls}


def _by_offset(rows: Iterable[tuple[int, T]], size: int) -> dict[int, T]:
    """Return the value of each instruction's row, by its offset; of several rows at one address the last counts."""
    ordered = sorted(rows, key=lambda row: row[0])
    values: dict[int, T] = {}
    for (address, value), following in zip(ordered, [*(at for at, _ in ordered[1:]), size], strict=False):
        values |= dict.fromkeys(range(address, min(following, size), _INSTRUCTION), value)
    return values


def _calls_around(rows: Sequence[LineEntry], row: LineEntry) -> tuple[tuple[str, int], ...]:
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
    owners = _sequence_functions(sections, SOURCE_SECTION)
    for place, rows in line_sequences(sections[SOURCE_SECTION]) if SOURCE_SECTION in sections else ():
        if owners.get(place) == kernel:
            yield rows


def cut_table(section: bytes, places: Collection[int], kept_offsets: Collection[int]) -> tuple[bytes, dict[int, int]]:
    """A line section with some of its sequences only, and by each of ``kept_offsets`` its new place.

    ``places`` are those where the addresses of all sequences are stored, ``kept_offsets`` those that stay. Raises
    ImageError for a damaged section, and where sequences do not begin with their address.
    """
    out = bytearray()
    moved: dict[int, int] = {}
    begins = {place - len(_ADDRESS_FOLLOWS) for place in places}
    at = 0
    while at + _UNIT.size <= len(section):
        length, _, header = _UNIT.unpack_from(section, at)
        program, end = at + _UNIT.size + header, at + _UNIT_LENGTH + length
        inside = sorted(begin for begin in begins if program <= begin < end)
        if end > len(section) or (inside and not _begin_sequences(section, program, end, inside)):
            raise ImageError(f"the line table of the image has an unknown format at byte {at}")
        wanted = [pair for pair in pairwise([*inside, end]) if pair[0] + len(_ADDRESS_FOLLOWS) in kept_offsets]
        if wanted:
            start = len(out)
            out += section[at:program]
            for begin, following in wanted:
                moved[begin + len(_ADDRESS_FOLLOWS)] = len(out) + len(_ADDRESS_FOLLOWS)
                out += section[begin:following]
            out[start : start + _UNIT_LENGTH] = (len(out) - start - _UNIT_LENGTH).to_bytes(_UNIT_LENGTH, "little")
        at = end
    if len(moved) < len(set(kept_offsets)):
        raise ImageError("relocations of the image refer to missing parts of its line table")
    return bytes(out), moved


def _begin_sequences(section: bytes, program: int, end: int, begins: list[int]) -> bool:
    """Return whether these are the starts of all sequences of a unit, one right behind the other."""
    ends = [*begins[1:], end]
    return (
        begins[0] == program
        and all(section.startswith(_ADDRESS_FOLLOWS, begin) for begin in begins)
        and all(section.endswith(_SEQUENCE_ENDS, begin, end) for begin, end in zip(begins, ends, strict=True))
    )


def _sequence_functions(sections: Mapping[str, bytes], section: str) -> dict[int, str]:
    """Return the function of each sequence, by the offset of its address in a line section."""
    symbols, names = sections.get(".symtab", b""), elf.NameTable(sections.get(".strtab", b""))
    functions = {}
    for offset, number in _sequence_symbols(sections, section).items():
        at = number * _SYMBOL.size
        if at + _SYMBOL.size <= len(symbols):
            name = _SYMBOL.unpack_from(symbols, at)[0]
            functions[offset] = names.at(name).decode("utf-8", "surrogateescape")
    return {offset: name.removeprefix(_CODE) for offset, name in functions.items()}


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
    """The rows of each sequence of a line section, and the place in it where the sequence's address is stored.

    Raises ImageError for one that is cut off or of a version that is not read.
    """
    reader = _Reader(section)
    try:
        while reader.place < len(section):
            length = reader.number(4)
            unit = _Unit.read(reader, reader.place + length)
            yield from unit.sequences(reader)
            reader.place = unit.end
    except (IndexError, struct.error, ValueError) as error:
        raise ImageError(f"a line table of the image is corrupt at byte {reader.place}: {error}") from error


@dataclass(slots=True)
class _Reader:
    """Reads little-endian numbers and strings, one after another."""

    data: bytes
    place: int = 0

    def number(self, size: int, *, signed: bool = False) -> int:
        if not 0 <= size <= len(self.data) - self.place:
            raise IndexError("truncated")
        self.place += size
        return int.from_bytes(self.data[self.place - size : self.place], "little", signed=signed)

    def byte(self) -> int:
        """The next byte: most of a table are read one by one."""
        self.place += 1
        return self.data[self.place - 1]

    def leb(self, *, signed: bool = False) -> int:
        """A number of any length, seven bits per byte (LEB128)."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value
            if shift > _LONGEST:
                raise ValueError("a number is too long")

    def string(self) -> str:
        end = self.data.index(b"\0", self.place)
        text = self.data[self.place : end].decode("utf-8", "replace")
        self.place = end + 1
        return text

    def strings(self) -> Iterator[str]:
        """Strings up to an empty one."""
        while text := self.string():
            yield text


@dataclass(slots=True)
class _Unit:
    """One line number program: its header, and the machine that runs it."""

    end: int
    step: int
    line_base: int
    line_range: int
    lengths: list[int]
    files: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, reader: _Reader, end: int) -> _Unit:
        if end > len(reader.data):
            raise ValueError("truncated")
        version = reader.number(2)
        if not 2 <= version <= 4:
            raise ValueError(f"unsupported version {version}")
        header_length = reader.number(4)
        program = reader.place + header_length
        step = reader.number(1)
        if version == 4:
            reader.number(1)  # operations of an instruction, for machines that have several
        reader.number(1)  # whether rows begin as statements
        line_base, line_range = reader.number(1, signed=True), reader.number(1)
        lengths = [reader.number(1) for _ in range(reader.number(1) - 1)]
        unit = cls(end, step, line_base, max(line_range, 1), lengths)
        directories = ["", *reader.strings()]
        for name in reader.strings():
            directory = reader.leb()
            reader.leb()
            reader.leb()
            folder = directories[directory] if directory < len(directories) else ""
            unit.files.append(f"{folder}/{name}" if folder and not name.startswith("/") else name)
        reader.place = program
        return unit

    def sequences(self, reader: _Reader) -> Iterator[tuple[int, list[LineEntry]]]:
        while reader.place < self.end:
            yield self._sequence(reader)

    def _sequence(self, reader: _Reader) -> tuple[int, list[LineEntry]]:
        """Run the program up to the end of a sequence."""
        address, file, line, caller, stored_at = 0, self._file(1), 1, 0, -1
        rows: list[LineEntry] = []
        special = len(self.lengths) + 1
        while reader.place < self.end:
            opcode = reader.byte()
            if opcode >= special:
                advance, delta = divmod(opcode - special, self.line_range)
                address += advance * self.step
                line += self.line_base + delta
                rows.append(LineEntry(address, file, line, caller))
            elif opcode == 0:
                following = reader.leb() + reader.place
                kind = reader.number(1)
                if kind == _SET_ADDRESS:
                    stored_at = reader.place
                    address = reader.number(following - reader.place)
                elif kind == _INLINED_CALL:
                    caller = reader.leb()  # the name of the inlined function follows
                reader.place = following
                if kind == _END:
                    break
            elif opcode == _COPY:
                rows.append(LineEntry(address, file, line, caller))
            elif opcode == _ADVANCE_LINE:
                line += reader.leb(signed=True)
            elif opcode == _SET_FILE:
                file = self._file(reader.leb())
            else:
                address += self._advance(opcode, reader)
        return stored_at, rows

    def _advance(self, opcode: int, reader: _Reader) -> int:
        """Bytes by which an opcode moves the address; 0 for those that say nothing of addresses, files and lines."""
        if opcode == _ADVANCE_PC:
            return reader.leb() * self.step
        if opcode == _CONST_ADD_PC:
            return (255 - len(self.lengths) - 1) // self.line_range * self.step
        if opcode == _FIXED_ADVANCE_PC:
            return reader.number(2)
        for _ in range(self.lengths[opcode - 1]):
            reader.leb()
        return 0

    def _file(self, number: int) -> str:
        return self.files[number - 1] if 1 <= number <= len(self.files) else ""
