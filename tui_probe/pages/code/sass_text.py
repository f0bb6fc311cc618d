"""SASS as nvdisasm prints it: instructions, classes, the PTX lines they came from, and rows of pages.

fp32 fp64 fp16   arithmetic and comparison in these types; MUFU and FCHK are fp32
integer          arithmetic, logic, shifts, comparison on integers, bits and predicates
tensor           HMMA, IMMA, DMMA, BMMA, and the matrix instructions of warp groups
load store       global, shared, constant and texture memory, copies into shared memory
local            loads and stores of local memory: the stack and spills
atomic           atomics and reductions
branch           jumps, calls, convergence barriers, exit
barrier          barriers between warps, fences, waiting for copies
special          reading special registers: indices, clocks
other            moves, conversions, shuffles, votes
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tui_probe.binaries.line_tables import line_tables
from tui_probe.draw import units
from tui_probe.draw.spans import pad
from tui_probe.draw.table import Column, cell, in_tables
from tui_probe.errors import ImageError
from tui_probe.input_limits import CUBIN
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tui_probe.draw.spans import Line

CLASSES: Final = (
    "fp32", "fp64", "fp16", "integer", "tensor", "load", "store", "local", "atomic", "branch", "barrier", "special",
    "other",
)  # fmt: skip

_INSTRUCTION: Final = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?\s*(?:/\*.*)?$")
_LABEL: Final = re.compile(r"^(\.L_\w+|[A-Za-z_$][\w$.]*):$")
_SOURCE_MARK: Final = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')
_CLASS_PATTERNS: Final = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"[HIDBQO]G?MMA|UTC\w*MMA", "tensor"),
        (r"LDL|STL", "local"),
        (r"ATOM|RED(?!UX)|UREDG|SUATOM|SURED", "atomic"),
        (r"LDGDEPBAR|DEPBAR|BAR|MEMBAR|ERRBAR|FENCE|SYNCS|WARPGROUP|ARRIVES|CCTL|UCGABAR|ACQBULK", "barrier"),
        (r"LD|ULDC|TEX|TLD|TXQ|SULD|UTMALDG|UBLKCP", "load"),
        (r"ST[GSE.]|ST$|STSM|STAS|SUST|UTMASTG", "store"),
        (r"BRA|BRX|BRXU|JMP|JMX|CALL|RET|EXIT|BSSY|BSYNC|BREAK|BMOV|WARPSYNC|YIELD|KILL|BPT|RPCMOV", "branch"),
        (r"CS2R|S2R|S2UR|CS2UR", "special"),
        (r"D(ADD|FMA|MUL|SETP|MNMX)", "fp64"),
        (r"H(ADD2|FMA2|MUL2|SET2|SETP2|MNMX2)", "fp16"),
        (r"F(ADD|FMA|MUL|SEL|SETP|SET|MNMX|CHK|SWZADD|RO)|MUFU|RRO", "fp32"),
        (r"U?(IADD3?|IMAD|ISETP|LEA|LOP3|LOP|SHF(?!L)|SHL|SHR|IABS|IMNMX|POPC|PRMT|BMSK|SGXT|FLO|BREV|IDP|ISCADD|VIADD"
         r"|VIMNMX|PLOP3|PSETP|P2R|R2P|IMUL|XMAD|VABSDIFF\d*)", "integer"),
    )
)  # fmt: skip
_INSTRUCTION_PURPOSES: Final = ("load", "store", "atomic", "tensor", "barrier", "branch", "local")
"""Classes of instructions that do what a line of PTX says; others may only prepare it."""
_PREPARING_OPCODES: Final = ("LDC", "ULDC", "BSSY", "BSYNC", "BMOV", "BREAK", "WARPSYNC", "YIELD")
"""Opcodes of these classes that are there for other instructions: constants, and where lanes come together again."""
LABEL_CELLS: Final = 14
"""Cells of the name of a class."""
_COUNT_CELLS: Final = 9
ORIGINAL: Final = "original"
"""Side of the code of a kernel that was not probed, and title of its counts."""


@dataclass(frozen=True, slots=True)
class SassCode:
    """``lines`` are instructions without their addresses, and labels; ``sources`` the source line of each, "" if none.

    ``addresses`` count from the start of the function, in bytes; a label has None.
    """

    lines: list[str]
    addresses: list[int | None]
    sources: list[str]
    counts: Counter[str]

    @property
    def total(self) -> int:
        """The number of instructions."""
        return self.counts.total()


def parse_sass(text: str) -> SassCode:
    """Return the instructions and labels of a disassembly. Padding after the end of a function is left out."""
    lines: list[str] = []
    addresses: list[int | None] = []
    sources: list[str] = []
    source = ""
    for line in text.splitlines():
        if match := _SOURCE_MARK.match(line):
            source = f"{match[1].rpartition('/')[2]}:{match[2]}"
        elif match := _INSTRUCTION.match(line):
            lines.append("    " + match[2])
            addresses.append(int(match[1], 16))
            sources.append(source)
        elif match := _LABEL.match(line.strip()):
            lines.append(f"{match[1]}:")
            addresses.append(None)
            sources.append("")
    end = len(lines)
    while end and (lines[end - 1].strip() == "NOP" or lines[end - 1].endswith(":")):
        end -= 1
    del lines[end:], addresses[end:], sources[end:]
    return SassCode(lines, addresses, sources, count_classes(lines))


def count_classes(lines: Iterable[str]) -> Counter[str]:
    """Count instructions by class."""
    return Counter(name for line in lines if (name := line_class(line)) is not None)


@lru_cache(maxsize=65536)
def line_class(line: str) -> str | None:
    """Return the class of a line of ``SassCode``; None for a label."""
    tokens = line.split()
    if not line.startswith(" ") or not tokens:
        return None
    return instruction_class(tokens[1] if tokens[0].startswith("@") and len(tokens) > 1 else tokens[0])


def instruction_class(opcode: str) -> str:
    """Return the class of an instruction by its opcode, such as ``LDG.E.128``."""
    return next((name for pattern, name in _CLASS_PATTERNS if pattern.match(opcode)), "other")


def ptx_lines(cubin: Path, code: SassCode) -> list[int | None]:
    """Return, per line of ``code``, the line of the PTX that ``cubin`` was assembled from, counted from 1.

    They are from the line table for PTX, which a cubin has if its PTX names its source. None for all without that
    table, or with code of several functions, whose addresses are alike.
    """
    unknown: list[int | None] = [None] * len(code.lines)
    try:
        tables = line_tables(read_within(cubin, CUBIN))
    except (OSError, ImageError):
        return unknown
    addresses = [address for address in code.addresses if address is not None]
    if len(tables) != 1 or len(addresses) != len(set(addresses)):
        return unknown
    rows = tables[0].ptx
    row_starts = [row.address for row in rows]
    row_numbers = (None if address is None else bisect_right(row_starts, address) - 1 for address in code.addresses)
    return [None if place is None or place < 0 else rows[place].line for place in row_numbers]


def instruction_purposes(code: SassCode, lines: Sequence[int | None]) -> list[int | None]:
    """Return the PTX line of the one instruction that does what that line says; None for all other instructions.

    A line that was unrolled or split has several instructions; none of them has the measured values of the line.
    """
    purposeful = [
        line if line is not None and has_purpose(text) else None for line, text in zip(lines, code.lines, strict=True)
    ]
    all_lines, active = Counter(lines), Counter(purposeful)
    return [
        line if all_lines[line] == 1 or (purpose is not None and active[purpose] == 1) else None
        for line, purpose in zip(lines, purposeful, strict=True)
    ]


def has_purpose(text: str) -> bool:
    """Return whether an instruction does what its PTX line says, instead of preparing it."""
    opcode = next((word for word in text.split() if not word.startswith("@")), "")
    return line_class(text) in _INSTRUCTION_PURPOSES and not opcode.startswith(_PREPARING_OPCODES)


_CLASS_COLUMN: Final[Column[InstructionCount]] = Column(
    "class", None, "instructions", lambda row: row.label, right=False
)
ORIGINAL_COUNT_COLUMNS: Final[tuple[Column[InstructionCount], ...]] = (
    _CLASS_COLUMN,
    Column(ORIGINAL, lambda row: row.pruned, ORIGINAL, lambda row: units.count(row.pruned)),
)
COUNT_COLUMNS: Final[tuple[Column[InstructionCount], ...]] = (
    _CLASS_COLUMN,
    Column("pruned", lambda row: row.pruned, "pruned", lambda row: units.count(row.pruned)),
    Column("probed", lambda row: row.probed, "probed", lambda row: units.count(row.probed)),
    Column("change", None, "change", lambda row: row.change),
)
_SIDE: Final[Column[SassLine]] = Column("side", lambda row: row.side)
_ADDRESS: Final[Column[SassLine]] = Column("address", lambda row: row.address)
_CLASS: Final[Column[SassLine]] = Column("class", lambda row: line_class(row.code.lines[row.index]))
_SOURCE: Final[Column[SassLine]] = Column("source", lambda row: row.code.sources[row.index] or None)
_TEXT: Final[Column[SassLine]] = Column("text", lambda row: row.text)
_CHANGE: Final[Column[SassLine]] = Column("change", lambda row: row.change)
_OWNER: Final[Column[SassLine]] = Column("probe", lambda row: row.owner or None)
_PTX_LINE: Final[Column[SassLine]] = Column("ptx_line", lambda row: row.ptx_line)
ORIGINAL_COLUMNS: Final = (_SIDE, _ADDRESS, _CLASS, _SOURCE, _TEXT)


@dataclass(frozen=True, slots=True)
class InstructionCount:
    """Instructions of one class: of the original alone, or of the pruned and of the probed kernel."""

    label: str
    pruned: int
    probed: int = 0

    @property
    def change(self) -> str:
        """``+1 752``, or ``same``."""
        return units.difference(self.probed - self.pruned) if self.probed != self.pruned else "same"


def count_lines(columns: Sequence[Column[InstructionCount]], rows: Iterable[InstructionCount]) -> Iterator[Line]:
    """Yield a table of fixed widths, so that the code below it does not move when another text is chosen."""
    table_columns = in_tables(columns)
    titles = "".join(pad(column.title, _COUNT_CELLS, right=True) for column in table_columns[1:])
    yield ((" " + pad(table_columns[0].title, LABEL_CELLS) + titles, "head"),)
    for row in rows:
        role = "dim" if row.change == "same" else "warn"
        label, *texts = (cell(column, row) for column in table_columns)
        spans = [(" " + pad(label, LABEL_CELLS), "dim")]
        for column, text in zip(table_columns[1:], texts, strict=True):
            spans.append((pad(text, _COUNT_CELLS, right=True), role if column.key == "change" else ""))
        yield tuple(spans)


@dataclass(frozen=True, slots=True)
class SassLine:
    """A line of the code of one ``side``; ``values`` are those of the measures of its line of PTX."""

    side: str
    code: SassCode
    index: int
    change: str = ""
    owner: str | None = None
    ptx_line: int | None = None
    values: Sequence[object] = ()

    @property
    def address(self) -> str | None:
        """Address in hexadecimal; None for a label."""
        address = self.code.addresses[self.index]
        return None if address is None else f"{address:#06x}"

    @property
    def text(self) -> str:
        """The instruction or label."""
        return self.code.lines[self.index].strip()


def diff_columns(measure_keys: Sequence[str]) -> list[Column[SassLine]]:
    """Columns of both codes, with one per measure."""
    measures: list[Column[SassLine]] = [
        Column(key, lambda row, place=place: row.values[place])  # type: ignore[misc]
        for place, key in enumerate(measure_keys)
    ]
    return [_SIDE, _ADDRESS, _CHANGE, _OWNER, _CLASS, _SOURCE, _PTX_LINE, *measures, _TEXT]
