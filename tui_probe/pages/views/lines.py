"""Page ``lines``: the measured lines of PTX of one kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.printable import printable
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.draw.table_content import ColumnOrder, titled_table
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.draw.view import Document, Spot, with_progress
from tui_probe.errors import TraceError
from tui_probe.input_limits import PTX_TEXT
from tui_probe.pages.code.line_measures import line_rows, line_sources, no_line_text, opcodes_of
from tui_probe.pages.code.measure_column import full_text
from tui_probe.probekit.lines import measure_named
from tui_probe.probekit.page_kinds import ViewKind, ViewSource
from tui_probe.probekit.probe_view import no_result_reason
from tui_probe.probekit.registry import probe_names_where
from tui_probe.probekit.shown_results import joined_sources, read_joined
from tui_probe.trace.kernel_files import long_position
from tui_probe.trace.plain_file import read_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.lines import LineRow, LineSpec
    from tui_probe.probekit.shown_results import JoinedResult

_HEADING_LINES: Final = 3
_CODE_CELLS: Final = 14
"""Cells that an instruction has at least: its opcode."""
_WIDE_CODE_CELLS: Final = 24
"""Cells that an instruction has at least on wide pages: its opcode, and operands."""
_WIDE_PAGE: Final = 100
"""Cells of a wide page."""
_MIN_NAME_CELLS: Final = 16
"""Cells of the name of the kernel at least."""


class ProbeLines:
    """One launch, line by line, as one probe measured it."""

    def __init__(self, source: ViewSource) -> None:
        self.result = read_joined(joined_sources(source))
        self.probe = self.result.name
        self.line_spec, self.line_rows = line_rows(self.result)
        path = source.kernel.file("pruned.ptx")
        self._ptx = read_start(path, PTX_TEXT).decode("utf-8", "replace").split("\n") if path else []
        info = source.kernel.read_info()
        self.is_graft = info is not None and info.graft is not None
        self._opcodes = _opcodes_if_readable(self.result) if self.is_graft else {}
        self.rows: Sequence[LineRow] = self.line_rows.rows
        self.order = ColumnOrder()
        self._ranking = _ranking_order(self.line_spec, self.value_names(), self.line_rows.rows)

    def _code_text(self, row: LineRow) -> str:
        """Return the line of PTX; of machine code that was probed itself the name of the instruction."""
        if self.is_graft:
            return self._opcodes.get(row.line, "")
        has_line = 1 <= row.line <= len(self._ptx)
        return " ".join(self._ptx[row.line - 1].split()) if has_line else ""

    def _columns(self, width: int) -> list[Column[LineRow]]:
        """Return the columns; on narrow pages those without a difference between rows are left out first."""
        names = self.value_names()
        values = {name: {row.values.get(name) for row in self.rows} for name in names}
        ranks = {name: place for place, name in enumerate(names, 2)}
        # A column without a difference between rows is left out before all others.
        ranks |= {name: rank + len(names) for name, rank in ranks.items() if len(values[name]) < 2}
        if len(values.get(self.line_spec.main, ())) > 1 or not self._ranking.key:
            ranks[self.line_spec.main] = 1 if self._ranking.key else 0
        ranks[self._ranking.key] = 0
        code_cells = _WIDE_CODE_CELLS if width >= _WIDE_PAGE else _CODE_CELLS
        return [
            Column("line", None, self._title("line"), self._position_text),
            *(Column(name, None, self._title(name), _text_of(name), rank=ranks[name]) for name in names),
            Column("source", None, self._title("source"), _source_of, right=False),
            Column("ptx", None, "instruction", self._code_text, right=False, narrow=code_cells),
        ]

    def value_names(self) -> list[str]:
        """Return the names of the values, in the order of their columns."""
        return list(dict.fromkeys(name for row in self.line_rows.rows for name in row.values))

    def _title(self, key: str) -> str:
        """Return the title of a column, with an arrow if the rows are sorted by it."""
        order = self.order if self.order.key else self._ranking
        return f"{self._heading(key)} {order.arrow(key)}".rstrip()

    def _heading(self, key: str) -> str:
        """Return the heading of a column."""
        if key == "line":
            return "offset" if self.is_graft else "PTX line"
        return key if key == "source" else measure_named(self.line_spec.measures, key).heading

    def sortable(self) -> Mapping[str, str]:
        """Return the columns of positions and numbers."""
        if len(self.line_rows.rows) < 2:
            return {}
        names = dict.fromkeys(
            name for row in self.line_rows.rows for name in row.values if _sort_value(row, name) is not None
        )
        return {key: self._heading(key) for key in ("line", *names, "source")}

    def sort(self, order: ColumnOrder) -> None:
        """Arrange the rows in this order."""
        self.order = order
        self.rows = order.sort_rows(self.line_rows.rows, lambda row: _sort_value(row, order.key))

    def _position_text(self, row: LineRow) -> str:
        return f"{row.line:#06x}" if self.is_graft else str(row.line)

    def lines(self, width: int, notes: Sequence[str] = ()) -> Sequence[Line]:
        """Return the table below a heading, with ``notes`` at its end."""
        first_result = self.result.results[0]
        suffix = f", {self.result.launch_label}, -p {self.probe}"
        head = shorten(first_result.kernel_name, max(width - 1 - len(suffix), _MIN_NAME_CELLS)) + suffix
        empty_notes = [] if self.line_rows.rows else [no_line_text(self.result)]
        simulated = ["simulated GPU"] if first_result.simulated else []
        texts = [*self.line_rows.notes, *empty_notes, *simulated, *notes]
        return titled_table(head, self._columns(width), self.rows, texts, width)

    def row_of(self, ptx_line: int) -> int | None:
        """Return the place of the first row of a line."""
        return next((place for place, row in enumerate(self.rows) if row.line == ptx_line), None)

    def record(self) -> dict[str, Any]:
        """Return the JSON record of every line with its values."""
        keys, *rows = self.cells()
        return {
            "launch": self.result.newest_launch.number if self.result.newest_launch else None,
            "probe": self.probe,
            "lines": [dict(zip(map(str, keys), row, strict=True)) for row in rows],
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield the headings, then a row per line."""
        names = self.value_names()
        place, code = ("offset", "opcode") if self.is_graft else ("line", "ptx")
        yield [place, "file", "source_line", *(name.replace(" ", "_") for name in names), code]
        for row in self.line_rows.rows:
            file, number = row.source if row.source else (None, None)
            yield [row.line, file, number, *(row.values.get(name) for name in names), self._code_text(row)]


class LinesView(Document):
    """Lines by one probe at a time, first that with the largest loss; ``unit`` goes to the next."""

    tells_at_once = True

    def __init__(self, source: ViewSource, progress: Progress) -> None:
        self.title = f"Lines of {source.kernel.demangled}"
        self.parts, self._problems = _read_parts(line_sources(source) or [source], progress)
        self._part_index = 0
        progress(1.0)

    @property
    def part(self) -> ProbeLines:
        """The lines that are shown."""
        return self.parts[self._part_index]

    def sortable(self) -> Mapping[str, str]:
        """Return the columns of positions and numbers."""
        return self.part.sortable()

    @property
    def sorted_column(self) -> str:
        """The key of the column that was chosen."""
        return self.part.order.key

    def sort_by(self, key: str) -> None:
        """The largest value first, of positions the first one; the same column again reverses the rows."""
        self.part.sort(self.part.order.choose(key, is_descending=key not in ("line", "source")))

    def commands(self) -> Mapping[str, str]:
        """Return the command for the next probe."""
        return {"unit": f"next probe: {self._next_part.probe}"} if len(self.parts) > 1 else {}

    @property
    def _next_part(self) -> ProbeLines:
        return self.parts[(self._part_index + 1) % len(self.parts)]

    def press(self, command: str) -> str | None:
        """Go to the next probe."""
        if command == "unit":
            self._part_index = (self._part_index + 1) % len(self.parts)
        return None

    def choices(self) -> Mapping[str, Any]:
        """Return the probe and the order."""
        return {"order": self.part.order, "probe": self.part.probe}

    def choose(self, choices: Mapping[str, Any]) -> None:
        """Restore probe and order, if they exist."""
        self._turn_to_probe(choices["probe"])
        if choices["order"].key in self.sortable():
            self.part.sort(choices["order"])

    def _turn_to_probe(self, probe: str) -> bool:
        places = (place for place, part in enumerate(self.parts) if part.probe == probe)
        previous_index, self._part_index = self._part_index, next(places, self._part_index)
        return self._part_index != previous_index

    def status(self) -> list[str]:
        """Return the place of the shown probe among several."""
        return [f"probe {self._part_index + 1} of {len(self.parts)}"] if len(self.parts) > 1 else []

    def lines(self, width: int) -> Sequence[Line]:
        return self.part.lines(width, self._problems)

    def whole_text(self, width: int) -> Sequence[Line]:
        """Return the tables of all probes that measured a line, below one another."""
        nonempty_parts = [part for part in self.parts if part.line_rows.rows] or self.parts[:1]
        tables = [part.lines(width, self._problems if part is nonempty_parts[-1] else ()) for part in nonempty_parts]
        return [line for place, table in enumerate(tables) for line in (*([()] if place else []), *table)]

    def pinned(self, width: int) -> int:
        del width
        return _HEADING_LINES if self.part.line_rows.rows else 1

    def row_count(self) -> int:
        """Number of rows, without the notes."""
        return len(self.part.line_rows.rows)

    def gutter(self, width: int) -> int:
        """Return the whole row."""
        return width

    def ptx_line(self, number: int, width: int) -> int | None:
        """Return the PTX line of a row; None for other lines."""
        place = number - self.pinned(width)
        return self.part.rows[place].line or None if 0 <= place < len(self.part.rows) else None

    def spot(self, number: int, width: int) -> Spot:
        """Return the line by this probe."""
        spot = super().spot(number, width)
        return replace(spot, probe=self.part.probe) if spot else spot

    def turn_to(self, spot: Spot) -> bool:
        """Show the probe that the spot names, else one with the line if the shown one has not."""
        if spot.probe and self._turn_to_probe(spot.probe):
            return True
        if not spot.ptx or any(self.part.row_of(line) is not None for line in spot.ptx):
            return False
        parts_with_line = (part for part in self.parts if any(part.row_of(line) is not None for line in spot.ptx))
        matching_part = next(parts_with_line, None)
        return matching_part is not None and self._turn_to_probe(matching_part.probe)

    def place_of(self, ptx_line: int, width: int) -> int | None:
        """Return the first row of a line."""
        place = self.part.row_of(ptx_line)
        return None if place is None else place + self.pinned(width)

    def missing_reason(self, spot: Spot) -> str:
        """Most lines touch nothing that is measured."""
        if spot.probed_line is not None:
            return f"line {spot.probed_line} of probed.ptx is part of the probe and is not measured"
        if not spot.ptx:
            return ""
        probe_text = f" by -p {self.part.probe}" if len(self.parts) > 1 else ""
        return f"{long_position(spot.ptx[0])} was not measured{probe_text}"

    def no_target_reason(self, number: int, width: int) -> str:
        """Rows of no line, and notes."""
        del number, width
        return "this row has no line of code; choose another row"

    def target_view(self) -> str:
        """Return the code."""
        return "sass" if self.part.is_graft else "ptx"

    def target_view_at(self, number: int, width: int) -> str:
        """Return the source, if the line of the row is known there, else the code."""
        place = number - self.pinned(width)
        has_source = 0 <= place < len(self.part.rows) and self.part.rows[place].source is not None
        return "source" if has_source else self.target_view()

    def record(self) -> dict[str, Any]:
        """Return the JSON record of the first probe; the other probes have one each in ``other_records``."""
        first_record, *other_records = [part.record() for part in self.parts]
        return {**first_record, **({"others": other_records} if other_records else {})}

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield the lines of the first probe; of several probes, further columns for the others and the probe last."""
        if len(self.parts) == 1:
            yield from self.part.cells()
            return
        tables = [list(part.cells()) for part in self.parts]
        keys = list(dict.fromkeys(str(key) for head, *_ in tables for key in head))
        yield [*keys, "probe"]
        for part, (head, *rows) in zip(self.parts, tables, strict=True):
            for row in rows:
                values = dict(zip(map(str, head), row, strict=True))
                yield [*(values.get(key) for key in keys), part.probe]


def _read_parts(sources: Sequence[ViewSource], progress: Progress) -> tuple[list[ProbeLines], list[str]]:
    """Return the lines of each probe, those without a line last, and why a result could not be read.

    Raises TraceError if none can be read.
    """
    parts, errors = [], []
    for source in with_progress(sources, progress):
        try:
            parts.append(ProbeLines(source))
        except TraceError as error:
            errors.append(error)
    if not parts:
        raise errors[0]
    return sorted(parts, key=lambda part: not part.line_rows.rows), [printable(str(error)) for error in errors]


def _opcodes_if_readable(result: JoinedResult) -> dict[int, str]:
    """Return the names of the instructions that the probe is at."""
    try:
        return opcodes_of(result)
    except TraceError:
        return {}


def _ranking_order(spec: LineSpec, names: Sequence[str], rows: Sequence[LineRow]) -> ColumnOrder:
    """Return the order in which a probe lists its rows: by the first column that has it, the main one before others."""
    for name in sorted(names, key=lambda name: name != spec.main):
        values = [value for row in rows if (value := _sort_value(row, name)) is not None]
        falling = measure_named(spec.measures, name).better != "higher"
        if len(set(values)) > 1 and values == sorted(values, reverse=falling):
            return ColumnOrder(name, falling)
    return ColumnOrder()


def _sort_value(row: LineRow, key: str) -> Any:
    """Return the value that a row is sorted by; None for none."""
    if key == "line":
        return row.line or None
    if key == "source":
        return row.source and (row.source.file, row.source.line)
    value = row.values.get(key)
    return value if isinstance(value, int | float) else None


def _source_of(row: LineRow) -> str:
    return f"{PurePath(row.source.file).name}:{row.source.line}" if row.source else NOT_MEASURED


def _text_of(name: str) -> Callable[[LineRow], str]:
    return lambda row: full_text(row.values.get(name))


def _unavailable_reason(source: ViewSource) -> str | None:
    return no_result_reason(source, *KIND.probes)


KIND: Final = ViewKind(
    "lines",
    "Lines",
    "values per instruction, with PTX and source line: sectors, conflicts, lanes, time, NaNs",
    _unavailable_reason,
    LinesView,
    explanation=(
        "Each row is an instruction with its source line. The instruction is from pruned.ptx or, if the probe is in"
        " SASS, from the SASS. The most important rows come first. The columns are the values of one probe; “–”"
        " means not measured. If there are several probes, the page starts with the probe of the largest loss; press"
        " u to see the next probe. “tui-probe show lines” prints all probes.",
        "Sectors per request: with adjacent lanes, accesses of 4, 8 or 16 bytes per lane need 4, 8 or 16 sectors; more"
        " sectors are excessive. Conflict degree: shared memory wavefronts divided by the minimum number of"
        " wavefronts. Lanes: active lanes of a warp, at most 32.",
    ),
    order=20,
    fed_by=lambda: probe_names_where(lambda probe: probe.lines),
    all_probes=True,
)
