"""SASS of one kernel as it is in its image: page ``sass`` of a kernel that was not probed.

Nothing was assembled here, so instructions have no lines of PTX. The two are linked through their source lines, if the
image has any.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from tui_probe.draw.spans import LazyLines
from tui_probe.draw.table import as_record
from tui_probe.draw.table_content import RemadeRows, TableContent
from tui_probe.draw.view import Document, Spot
from tui_probe.pages.code.code_lines import code_lines_text, colored_code, printable_code
from tui_probe.pages.code.sass_text import (
    CLASSES,
    ORIGINAL,
    ORIGINAL_COLUMNS,
    ORIGINAL_COUNT_COLUMNS,
    InstructionCount,
    SassLine,
    count_lines,
    has_purpose,
)
from tui_probe.trace.kernel_files import long_position
from tui_probe.trace.source_lines import source_position

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.pages.code.sass_text import SassCode
    from tui_probe.trace.model import KernelFacts
    from tui_probe.trace.source_lines import SourceLines


class OriginalSassView(Document):
    """SASS of one kernel from its image, with instruction counts by class and the source lines that it has."""

    def __init__(self, kernel: KernelFacts, tool: str, code: SassCode, sources: SourceLines) -> None:
        self.title = f"SASS of {kernel.demangled}"
        self.tool, self.code = tool, code
        self._positions = {line: source_position(source) for line, source in sources.lines.items()}
        """Source line of each line of PTX, as the disassembler writes it."""
        self._ptx: dict[str, list[int]] = {}
        for line, position in self._positions.items():
            self._ptx.setdefault(position, []).append(line)
        rows = RemadeRows(lambda: (SassLine(ORIGINAL, code, place) for place in range(len(code.lines))))
        self.content = TableContent("lines", self.title, ORIGINAL_COLUMNS, rows)

    def lines(self, width: int) -> Sequence[Line]:
        """Counts by class, then code."""
        del width
        return LazyLines(len(self.code.lines), self._line, self._head())

    def begins(self, width: int) -> int:
        """Return the first line behind the counts."""
        del width
        return len(self._head())

    def gutter(self, width: int) -> int:
        """Line numbers."""
        del width
        return 7

    def _line(self, number: int) -> Line:
        source = f"  // {self.code.sources[number]}" if self.code.sources[number] else ""
        return ((f"{number + 1:>5}  ", "dim"), *colored_code(printable_code(self.code.lines[number])), (source, "dim"))

    def _head(self) -> list[Line]:
        return [*count_lines(ORIGINAL_COUNT_COLUMNS, self._counts()), ()]

    def _counts(self) -> Iterator[InstructionCount]:
        yield from (InstructionCount(name, self.code.counts[name]) for name in CLASSES if self.code.counts[name])
        yield InstructionCount("all", self.code.total)

    # -- places: through the source line, which is all that this SASS and the PTX have in common

    def spot(self, number: int, width: int) -> Spot:
        """Return the lines of PTX that came from the same source line."""
        del width
        row = number - len(self._head())
        return Spot(tuple(self._ptx.get(self.code.sources[row], ()))) if row >= 0 else Spot()

    def ptx_line(self, number: int, width: int) -> int | None:
        """Return the first line of PTX that came from the same source line."""
        return next(iter(self.spot(number, width).ptx), None)

    def place_of(self, ptx_line: int, width: int) -> int | None:
        """Return the first instruction of the same source line that does its work; else the first of that line."""
        del width
        rows = self._rows_by_source.get(self._positions.get(ptx_line, ""), ())
        row = next((row for row in rows if has_purpose(self.code.lines[row])), next(iter(rows), None))
        return None if row is None else row + len(self._head())

    @cached_property
    def _rows_by_source(self) -> dict[str, list[int]]:
        rows: dict[str, list[int]] = {}
        for row, source in enumerate(self.code.sources):
            if source:
                rows.setdefault(source, []).append(row)
        return rows

    def missing_reason(self, spot: Spot) -> str:
        """Return the reason why an instruction cannot be found: its source line must be known on both sides."""
        if spot.probed_line is not None:
            return f"line {spot.probed_line} of probed.ptx is part of the probe and not in original.bin"
        if not spot.ptx:
            return ""
        position = self._positions.get(spot.ptx[0])
        if not self._rows_by_source or position is None:
            problem = (
                "this SASS has no source lines" if position else f"{long_position(spot.ptx[0])} has no source line"
            )
            return f"{problem}, so its instructions are unknown"
        return f"{position} has no SASS"

    def line_facts(self, number: int, width: int) -> list[str]:
        """Return the lines of PTX of the same source line."""
        lines = self.spot(number, width).ptx
        return [self.code.sources[number - len(self._head())], code_lines_text(lines)] if lines else []

    def target_view(self) -> str:
        """Return the PTX, where its source lines are known."""
        return "ptx" if self._ptx else ""

    def no_target_reason(self, number: int, width: int) -> str:
        """Labels, and source lines without PTX."""
        del number, width
        return "no PTX line has the source line of this row" if self._ptx else ""

    def status(self) -> list[str]:
        """Name the disassembler of the text, and its file."""
        return [self.tool, "original.bin, not probed"]

    def record(self) -> dict[str, Any]:
        """Counts by class, and the lines, as of a probed kernel; nothing was measured."""
        return {
            "tool": self.tool,
            "counts": {row.label: as_record(ORIGINAL_COUNT_COLUMNS, row) for row in self._counts()},
            "measured": None,
            "lines": [*self.content.records()],
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """Return a row per line; a label has no address and no class."""
        return self.content.cells()
