"""Rows of SASS pages: instruction counts by class, and lines of code with their columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.draw.spans import pad
from tui_probe.draw.table import Column, cell, in_tables
from tui_probe.pages.code.sass_text import line_class

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.pages.code.sass_text import SassCode

LABEL_CELLS: Final = 14
_COUNT_CELLS: Final = 9
ORIGINAL: Final = "original"
_CLASS_COLUMN: Final[Column[InstructionCount]] = Column("class", None, "instructions", lambda row: row.label, False)
ORIGINAL_COUNT_COLUMNS: Final[tuple[Column[InstructionCount], ...]] = (
    _CLASS_COLUMN,
    Column(ORIGINAL, lambda row: row.before, ORIGINAL, lambda row: str(row.before)),
)
COUNT_COLUMNS: Final[tuple[Column[InstructionCount], ...]] = (
    _CLASS_COLUMN,
    Column("pruned", lambda row: row.before, "pruned", lambda row: str(row.before)),
    Column("probed", lambda row: row.after, "probed", lambda row: str(row.after)),
    Column("change", None, "change", lambda row: row.change),
)
_SIDE: Final[Column[SassLine]] = Column("side", lambda row: row.side)
_ADDRESS: Final[Column[SassLine]] = Column("address", lambda row: row.address)
_CLASS: Final[Column[SassLine]] = Column("class", lambda row: line_class(row.code.lines[row.place]))
_SOURCE: Final[Column[SassLine]] = Column("source", lambda row: row.code.sources[row.place] or None)
_TEXT: Final[Column[SassLine]] = Column("text", lambda row: row.text)
_CHANGE: Final[Column[SassLine]] = Column("change", lambda row: row.change)
_OWNER: Final[Column[SassLine]] = Column("probe", lambda row: row.owner or None)
_PTX_LINE: Final[Column[SassLine]] = Column("ptx_line", lambda row: row.ptx_line)
ORIGINAL_COLUMNS: Final = (_SIDE, _ADDRESS, _CLASS, _SOURCE, _TEXT)


@dataclass(frozen=True, slots=True)
class InstructionCount:
    """Instructions of one class: of the original alone, or of the pruned and of the probed kernel."""

    label: str
    before: int
    after: int = 0

    @property
    def change(self) -> str:
        """``+3``, or ``same``."""
        return f"{self.after - self.before:+}" if self.after != self.before else "same"


def count_lines(columns: Sequence[Column[InstructionCount]], rows: Iterable[InstructionCount]) -> Iterator[Line]:
    """A table of fixed widths, so that the code below it does not move when another text is chosen."""
    shown = in_tables(columns)
    titles = "".join(pad(column.title, _COUNT_CELLS, right=True) for column in shown[1:])
    yield ((" " + pad(shown[0].title, LABEL_CELLS) + titles, "head"),)
    for row in rows:
        role = "dim" if row.change == "same" else "warn"
        label, *texts = (cell(column, row) for column in shown)
        spans = [(" " + pad(label, LABEL_CELLS), "dim")]
        for column, text in zip(shown[1:], texts, strict=True):
            spans.append((pad(text, _COUNT_CELLS, right=True), role if column.key == "change" else ""))
        yield tuple(spans)


@dataclass(frozen=True, slots=True)
class SassLine:
    """A line of the code of one ``side``; ``values`` are those of the measures of its line of PTX."""

    side: str
    code: SassCode
    place: int
    change: str = ""
    owner: str | None = None
    ptx_line: int | None = None
    values: Sequence[object] = ()

    @property
    def address(self) -> str | None:
        """Address in hexadecimal; None for a label."""
        address = self.code.addresses[self.place]
        return None if address is None else f"{address:#06x}"

    @property
    def text(self) -> str:
        """The instruction or label."""
        return self.code.lines[self.place].strip()


def diff_columns(measured: Sequence[str]) -> list[Column[SassLine]]:
    """Columns of both codes, with one per measure."""
    measures: list[Column[SassLine]] = [
        Column(key, lambda row, place=place: row.values[place])  # type: ignore[misc]
        for place, key in enumerate(measured)
    ]
    return [_SIDE, _ADDRESS, _CHANGE, _OWNER, _CLASS, _SOURCE, _PTX_LINE, *measures, _TEXT]
