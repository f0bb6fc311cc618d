"""Page ``source``: source lines of a kernel with the measures of their PTX.

The text is that of the copies in the trace, made while the program ran. Of a file without a copy only the numbers of
lines are known.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rich.cells import cell_len

from tui_probe.draw import units
from tui_probe.draw.spans import LazyLines, clip, labelled
from tui_probe.draw.view import Document, Spot
from tui_probe.pages.code.code_lines import code_lines_text, colored_source
from tui_probe.pages.code.line_measures import (
    ColumnChoice,
    LineMeasures,
    flag_spans,
    flagged_lines,
    measures_by_row,
    measures_of,
)
from tui_probe.pages.code.measure_column import MeasureMargin
from tui_probe.probekit.page_kinds import ViewKind
from tui_probe.trace.kernel_files import Offset, long_position
from tui_probe.trace.source_lines import SourceFiles, SourceLine, SourceLines, source_position

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.pages.code.measure_column import MeasureColumn
    from tui_probe.probekit.page_kinds import ViewSource

_INLINED_ONLY: Final = " (these lines have only inlined code)"
_MIN_DIGITS: Final = 5
"""Cells of a line number at least, so that the margin is as wide as that of PTX."""
CONTEXT_LINES: Final = 3
"""Lines that are shown before and after one that code came from."""


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A line of a file, counted from 1. Line 0 is the heading of a file, unless ``hidden_lines`` lines are meant."""

    file: str
    line: int
    text: str = ""
    hidden_lines: int = 0


class SourceView(Document):
    """File after file, the one that most of the PTX came from first."""

    row_noun = "row"

    def __init__(
        self,
        title: str,
        lines: SourceLines,
        files: SourceFiles,
        measures: LineMeasures | None = None,
        flags: Mapping[int, str] | None = None,
    ) -> None:
        self.title = title
        self._flags = flags or {}
        """Names of flagged findings, by line of PTX."""
        self._ptx_by_source = ptx_lines_by_source(lines)
        """Lines of ``pruned.ptx``, from 1, or offsets in SASS that was probed itself, by source line."""
        self._is_graft = any(isinstance(line, Offset) for line in lines.lines)
        """True if SASS was probed."""
        self._files = files_by_code(self._ptx_by_source)
        self._copies = {file: files.lines(file) for file in self._files}
        self._colored = {file: colored_source(file, text) for file, text in self._copies.items() if text}
        self._ptx_measures = measures
        self.is_folded = True
        self._marked_range: tuple[SourceLine, ...] = ()
        """None, the first, or the first and the last line of what is to be timed."""
        self._lay_out()
        self.column = ColumnChoice.from_first(self.measures)

    def _lay_out(self) -> None:
        """Make the rows, and what was measured of them by the row's number."""
        self.rows = [row for file in self._files for row in self._rows_of(file)]
        self._ptx_by_row = {number: code for number, row in enumerate(self.rows) if (code := self._code_of(row))}
        self.measures = None if self._ptx_measures is None else measures_by_row(self._ptx_measures, self._ptx_by_row)
        self._number_cells = max(_MIN_DIGITS, len(str(max((row.line for row in self.rows), default=0))) + 1)
        """Cells of a line number."""
        self._pinned_lines: dict[tuple[int, int], list[Line]] = {}
        """The lines above the text, by width and column."""

    def _code_of(self, row: SourceRow) -> list[int]:
        """Return the lines of ``pruned.ptx`` that came from a row, counted from 1."""
        return self._ptx_by_source.get(SourceLine(row.file, row.line), []) if row.line else []

    def _row_flags(self, number: int) -> str:
        """Return the names of the flagged findings of a row; "" for none."""
        return ", ".join(
            dict.fromkeys(self._flags[line] for line in self._ptx_by_row.get(number, ()) if line in self._flags)
        )

    def _rows_of(self, file: str) -> Iterator[SourceRow]:
        """Yield the heading and the lines of a file; with folding those near code."""
        text, code_lines = self._copies[file], sorted(place.line for place in self._ptx_by_source if place.file == file)
        last_line = max(len(text), code_lines[-1]) if text else 0
        line_numbers: Sequence[int] = code_lines
        if text:
            line_numbers = lines_near(code_lines, last_line) if self.is_folded else range(1, last_line + 1)
        yield SourceRow(file, 0)
        previous_line = 0
        for line in line_numbers:
            if text and line > previous_line + 1:
                yield SourceRow(file, 0, hidden_lines=line - previous_line - 1)
            yield SourceRow(file, line, text[line - 1] if line <= len(text) else "")
            previous_line = line
        if text and len(text) > previous_line:
            yield SourceRow(file, 0, hidden_lines=len(text) - previous_line)

    # -- drawing

    def lines(self, width: int) -> Sequence[Line]:
        """Numbered lines, below a line that says what was measured."""
        margin = MeasureMargin(self._shown_column, set(), width)
        return LazyLines(len(self.rows), lambda number: self._line(number, margin, width), self._head(width))

    def _head(self, width: int) -> list[Line]:
        """Return what was measured of the lines."""
        key = width, self.column.index
        if key not in self._pinned_lines:
            self._pinned_lines[key] = self._head_lines(width)
        return self._pinned_lines[key]

    def _head_lines(self, width: int) -> list[Line]:
        if self.measures is None:
            return []
        title = (
            self.measures.column_title(self._shown_column)
            if self._shown_column
            else self.measures.missing_text or "nothing by line"
        )
        return [((line, "head" if self._shown_column else "warn"),) for line in labelled(" ", title, width)]

    @property
    def _shown_column(self) -> MeasureColumn | None:
        """The measure that is next to the text, if there is one."""
        return self.column.column

    def _line(self, number: int, margin: MeasureMargin, width: int) -> Line:
        row = self.rows[number]
        if row.hidden_lines:
            blank = " " * (margin.cells + 2)
            text = f"{units.counted(row.hidden_lines, 'line')} without code of this kernel"
            return ((f"{'…':>{self._number_cells}}{blank}{text}", "dim"),)
        if not row.line:
            return self._heading(row.file, width)
        return (
            (f"{row.line:>{self._number_cells}}", "dim"),
            ("│" if self._is_in_mark(row) else " ", "accent"),
            *margin.of_line(number),
            (" ", ""),
            *self._code_spans(number, row),
            *flag_spans(self._row_flags(number)),
        )

    def _code_spans(self, number: int, row: SourceRow) -> Line:
        """Return the text of a row in the colours of its language; that of lines without code is set back."""
        colored = self._colored.get(row.file)
        if colored is None or row.line > len(colored):
            return ((row.text, "" if number in self._ptx_by_row else "dim"),)
        return colored[row.line - 1]

    def _heading(self, file: str, width: int) -> Line:
        folder, _, name = file.rpartition("/")
        text = f"  {folder}" if self._copies[file] else f"  no copy in the trace: only line numbers are known  {folder}"
        return (clip(f" {name}", width), "title"), (clip(text, max(0, width - cell_len(name) - 1)), "dim")

    def pinned(self, width: int) -> int:
        """Title of the measures."""
        return len(self._head(width))

    def gutter(self, width: int) -> int:
        """Return the numbers, and what was measured."""
        return self._number_cells + 2 + MeasureMargin(self._shown_column, set(), width).cells

    # -- places

    def line_facts(self, number: int, width: int) -> list[str]:
        """Return the lines of PTX that a line became, and all that was measured of them."""
        number -= self.pinned(width)
        code = self._ptx_by_row.get(number, [])
        if not code:
            return []
        position = source_position(SourceLine(self.rows[number].file, self.rows[number].line))
        measure_texts = self.measures.line_texts(number) if self.measures else []
        return [position, *filter(None, [self._row_flags(number)]), code_lines_text(code), *measure_texts]

    def ptx_line(self, number: int, width: int) -> int | None:
        """Return the one that came from it with the worst value in the shown column."""
        return next(iter(self._lines_by_badness(number - self.pinned(width))), None)

    def _lines_by_badness(self, row: int) -> list[int]:
        """Return the lines of PTX that a row became, the worst value in the shown column first, unmeasured ones last.

        Lines with one value are ordered by the next columns of the same probe.
        """
        columns = self._ptx_measures.columns if self._ptx_measures else ()
        shown_column = self._shown_column

        def rank(column: MeasureColumn) -> int:
            if shown_column is None or column.result is not shown_column.result:
                return 2
            return 0 if column.name == shown_column.name else 1

        columns_by_rank = sorted(columns, key=rank)
        return sorted(
            self._ptx_by_row.get(row, []), key=lambda line: [column.badness(line) for column in columns_by_rank]
        )

    def spot(self, number: int, width: int) -> Spot:
        """Return all lines of PTX that it became."""
        return Spot(tuple(self._lines_by_badness(number - self.pinned(width))))

    def turn_to(self, spot: Spot) -> bool:
        """Show the values of the probe that the spot names."""
        previous_index = self.column.index
        self.column.turn_to_probe(spot.probe)
        return self.column.index != previous_index

    def missing_reason(self, spot: Spot) -> str:
        """Not all lines came from one of source."""
        if spot.probed_line is not None:
            return f"line {spot.probed_line} of probed.ptx is part of the probe and has no source line"
        return f"{long_position(spot.ptx[0])} has no source line" if spot.ptx else ""

    def mark(self, number: int, width: int) -> str:
        """The first line; then the last one, in the same file. In which order they are marked does not matter."""
        row = self.rows[number - self.pinned(width)]
        if not row.line:
            return "this row is not a source line"
        line, previous_mark = SourceLine(row.file, row.line), self._marked_range
        ends_range = len(previous_mark) == 1 and previous_mark[0].file == row.file
        self._marked_range = tuple(sorted({*previous_mark, line})) if ends_range else (line,)
        if ends_range:
            has_code = any(self._is_in_mark(self.rows[number]) for number in self._ptx_by_row)
            note = "" if has_code else _INLINED_ONLY
            return f"{self._marked_lines()}: press R to measure the time in these lines{note}"
        replacement = f", replacing {source_position(previous_mark[0])}" if previous_mark else ""
        return f"the range starts at {source_position(line)}{replacement}; press m on the last line of the range"

    def _marked_lines(self) -> str:
        first, last = self._marked_range[0], self._marked_range[-1]
        return source_position(first) + (f"-{last.line}" if last != first else "")

    def marked_option(self) -> str:
        """Return the time between the lines that are marked, or in the one that is."""
        if not self._marked_range:
            return ""
        first, last = self._marked_range[0], self._marked_range[-1]
        range_end = f"-{last.line}" if last != first else ""
        return shlex.join(["--between", f"{distinct_path(first.file, self._files)}:{first.line}{range_end}"])

    def _is_in_mark(self, row: SourceRow) -> bool:
        marked_range = self._marked_range
        return (
            bool(marked_range)
            and row.file == marked_range[0].file
            and marked_range[0].line <= row.line <= marked_range[-1].line
        )

    def status(self) -> list[str]:
        """Lines that are marked."""
        if not self._marked_range:
            return []
        return [
            f"marked {self._marked_lines()}" if len(self._marked_range) > 1 else f"marked from {self._marked_lines()}"
        ]

    def pinned_parts(self) -> int:
        """Always report the mark."""
        return len(self.status())

    def no_target_reason(self, number: int, width: int) -> str:
        """Comments, declarations, what the compiler left out."""
        del number, width
        return "this line has no code in this kernel; press . for the next line with code"

    def marked_line(self) -> tuple[int, str] | None:
        """Return the line that has the mark, by the first line of PTX that came from it."""
        row_and_text = self._shown_column.marked_line if self._shown_column else None
        return None if row_and_text is None else (self._ptx_by_row[row_and_text[0]][0], row_and_text[1])

    def place_of(self, ptx_line: int, width: int) -> int | None:
        """Return the row that a line of PTX came from."""
        row = next((number for number, code in self._ptx_by_row.items() if ptx_line in code), None)
        return None if row is None else row + self.pinned(width)

    def anchor_noun(self) -> str:
        """Noun of the anchors."""
        return "measured line" if self._shown_column else "line with code"

    def anchors(self, width: int) -> Sequence[int]:
        """Return the lines that were measured; without any those with code."""
        places = self._shown_column.values if self._shown_column else self._ptx_by_row
        return [number + self.pinned(width) for number in sorted(places)]

    def target_view(self) -> str:
        """Return the code."""
        return "sass" if self._is_graft else "ptx"

    # -- choices

    def commands(self) -> Mapping[str, str]:
        """Return all lines or those near code, and what else was measured."""
        commands = {
            "mark": "mark the first or last line; R measures the time in the marked lines",
            "fold": "show all lines" if self.is_folded else "show only lines near lines with instructions",
        }
        return {**commands, **self.column.commands()}

    def press(self, command: str) -> str | None:
        """Fold or unfold; the next measure."""
        if command == "fold":
            self.is_folded = not self.is_folded
            self._lay_out()
            self.column.measures = self.measures
        elif command == "unit":
            self.column.advance()
        return None

    def choices(self) -> Mapping[str, Any]:
        """Folding, the measures next to the text, and the marked lines."""
        return {"folded": self.is_folded, "measure": self.column.key, "marked": self._marked_range}

    def choose(self, choices: Mapping[str, Any]) -> None:
        """Restore folding, measure and mark."""
        if choices["folded"] != self.is_folded:
            self.press("fold")
        self.column.choose_key(choices["measure"])
        self._marked_range = choices["marked"]

    # -- data

    def record(self) -> dict[str, Any]:
        """Return the lines that code came from, by file, with the lines of pruned.ptx and what was measured."""
        keys = self.measures.keys if self.measures else []
        files = []
        for file in self._files:
            numbers = [number for number in self._ptx_by_row if self.rows[number].file == file]
            lines = [
                {
                    "line": self.rows[number].line,
                    "text": self.rows[number].text if self._copies[file] else None,
                    "offsets" if self._is_graft else "ptx": self._ptx_by_row[number],
                    **dict(zip(keys, self.measures.row(number) if self.measures else [], strict=True)),
                }
                for number in numbers
            ]
            files.append({"file": file, "copied": bool(self._copies[file]), "lines": lines})
        return {"measured": self.measures.origin_record() if self.measures else None, "files": files}

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield a row per line that code came from."""
        code = "instructions" if self._is_graft else "ptx_lines"
        yield ("file", "line", *(self.measures.keys if self.measures else []), code, "text")
        for number, ptx_lines in self._ptx_by_row.items():
            row = self.rows[number]
            values = self.measures.row(number) if self.measures else []
            yield (row.file, row.line, *values, len(ptx_lines), row.text if self._copies[row.file] else None)


def ptx_lines_by_source(lines: SourceLines) -> dict[SourceLine, list[int]]:
    """Return the lines of ``pruned.ptx``, ascending, that each line of the program became; also what it calls in
    headers of the CUDA Toolkit.
    """
    code: dict[SourceLine, list[int]] = {}
    for number in sorted(lines.lines):
        if (source := lines.program_line(number)) is not None:
            code.setdefault(source, []).append(number)
    return code


def files_by_code(code: Mapping[SourceLine, Sequence[int]]) -> list[str]:
    """Return the files: that of the kernel's first instruction, then the one that most lines of PTX came from."""
    totals: dict[str, int] = {}
    first_file = min(code, key=lambda source: code[source][0]).file if code else ""
    for source, lines in code.items():
        totals[source.file] = totals.get(source.file, 0) + len(lines)
    return sorted(totals, key=lambda file: (file != first_file, -totals[file], file))


def distinct_path(file: str, files: Sequence[str]) -> str:
    """The end of a path that names this file only: with its folder, and more where others of ``files`` end so, too."""
    parts = file.split("/")
    for count in range(min(2, len(parts)), len(parts)):
        suffix = "/".join(parts[-count:])
        if sum(f"/{path}".endswith(f"/{suffix}") for path in files) == 1:
            return suffix
    return file


def lines_near(code_lines: Sequence[int], last_line: int) -> list[int]:
    """Return the lines up to ``last_line`` that are one of ``code_lines``, or near one."""
    nearby_lines = {line + step for line in code_lines for step in range(-CONTEXT_LINES, CONTEXT_LINES + 1)}
    return sorted(line for line in nearby_lines if 1 <= line <= last_line)


def unavailable_reason(source: ViewSource) -> str | None:
    """Return why no line of source is known."""
    kernel = source.kernel
    info = kernel.read_info()
    is_graft = info is not None and info.graft is not None
    if kernel.folder is None or (kernel.file("pruned.ptx") is None and not is_graft):
        return kernel.reason or f"the trace has no PTX of this kernel (status: {kernel.status})"
    if not SourceLines.from_folder(kernel.folder).lines:
        return "source lines are unknown: compile with nvcc -lineinfo, in Numba with @cuda.jit(lineinfo=True)"
    return None


def _open_view(source: ViewSource, progress: Progress) -> SourceView:
    progress(0.0)
    folder = source.kernel.folder
    lines = SourceLines.from_folder(folder) if folder else SourceLines({})
    progress(0.5)
    files = SourceFiles(source.trace.directory)
    title, measures = f"Source of {source.kernel.demangled}", measures_of(source)
    return SourceView(title, lines, files, measures, flagged_lines(source))


KIND: Final = ViewKind(
    "source",
    "Source",
    "source lines of the PTX, with measured values",
    unavailable_reason,
    _open_view,
    explanation=(
        "The source lines of the PTX, from copies made while the program ran. Lines without code are dimmed. Each line"
        " shows the values of the probes for all its PTX instructions: sums, and ratios of sums. Press u to see the"
        " next column. Lines with a finding have “!” and the name of the finding.",
        "On the screen, press m on the first line of a range, m on its last line, and then R. The program runs again,"
        " and tui-probe measures the time of each warp in this range, including inlined code (run --between).",
    ),
    order=90,
    short_title="Src",
    all_probes=True,
)
