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

_CODE_HEADINGS: Final = 3
_CODE: Final = 14
"""Cells that an instruction has at least: its opcode."""
_CODE_ON_WIDE: Final = 24
"""Cells that an instruction has at least on wide pages: its opcode, and operands."""
_WIDE: Final = 100
"""Cells of a wide page."""
_MIN_NAME: Final = 16
"""Cells of the name of the kernel at least."""


class ProbeLines:
    """One launch, line by line, as one probe measured it."""

    def __init__(self, source: ViewSource) -> None:
        self.joined = read_joined(joined_sources(source))
        self.probe = self.joined.name
        self.lines_of, self.measured = line_rows(self.joined)
        path = source.kernel.file("pruned.ptx")
        self._ptx = read_start(path, PTX_TEXT).decode("utf-8", "replace").split("\n") if path else []
        info = source.kernel.read_info()
        self.graft = info is not None and info.graft is not None
        self._names = _opcodes_or_none(self.joined) if self.graft else {}
        self.rows: Sequence[LineRow] = self.measured.rows
        self.order = ColumnOrder()
        self._ranking = _ranking_order(self.lines_of, self.value_names(), self.measured.rows)

    def _code(self, row: LineRow) -> str:
        """The line of PTX; of machine code that was probed itself the name of the instruction."""
        if self.graft:
            return self._names.get(row.line, "")
        known = 1 <= row.line <= len(self._ptx)
        return " ".join(self._ptx[row.line - 1].split()) if known else ""

    def _columns(self, width: int) -> list[Column[LineRow]]:
        """The columns; on narrow pages those without a difference between rows are left out first."""
        names = self.value_names()
        values = {name: {row.values.get(name) for row in self.rows} for name in names}
        ranks = {name: place for place, name in enumerate(names, 2)}
        # A column without a difference between rows is left out before all others.
        ranks |= {name: rank + len(names) for name, rank in ranks.items() if len(values[name]) < 2}
        if len(values.get(self.lines_of.main, ())) > 1 or not self._ranking.key:
            ranks[self.lines_of.main] = 1 if self._ranking.key else 0
        ranks[self._ranking.key] = 0
        code_cells = _CODE_ON_WIDE if width >= _WIDE else _CODE
        return [
            Column("line", None, self._title("line"), self._place),
            *(Column(name, None, self._title(name), _text_of(name), rank=ranks[name]) for name in names),
            Column("source", None, self._title("source"), _source_of, right=False),
            Column("ptx", None, "instruction", self._code, right=False, narrow=code_cells),
        ]

    def value_names(self) -> list[str]:
        """The names of the values, in the order of their columns."""
        return list(dict.fromkeys(name for row in self.measured.rows for name in row.values))

    def _title(self, key: str) -> str:
        """The title of a column, with an arrow if the rows are sorted by it."""
        order = self.order if self.order.key else self._ranking
        return f"{self._heading(key)} {order.arrow(key)}".rstrip()

    def _heading(self, key: str) -> str:
        """The heading of a column."""
        if key == "line":
            return "offset" if self.graft else "PTX line"
        return key if key == "source" else measure_named(self.lines_of.measures, key).heading

    def sortable(self) -> Mapping[str, str]:
        """The columns of positions and numbers."""
        if len(self.measured.rows) < 2:
            return {}
        names = dict.fromkeys(
            name for row in self.measured.rows for name in row.values if _sort_value(row, name) is not None
        )
        return {key: self._heading(key) for key in ("line", *names, "source")}

    def sort(self, order: ColumnOrder) -> None:
        """Arrange the rows in this order."""
        self.order = order
        self.rows = order.arranged(self.measured.rows, lambda row: _sort_value(row, order.key))

    def _place(self, row: LineRow) -> str:
        return f"{row.line:#06x}" if self.graft else str(row.line)

    def lines(self, width: int, notes: Sequence[str] = ()) -> Sequence[Line]:
        """The table below a heading, with ``notes`` at its end."""
        first = self.joined.results[0]
        about = f", {self.joined.launch_label}, -p {self.probe}"
        head = shorten(first.kernel_name, max(width - 1 - len(about), _MIN_NAME)) + about
        empty = [] if self.measured.rows else [no_line_text(self.joined)]
        simulated = ["simulated GPU"] if first.simulated else []
        texts = [*self.measured.notes, *empty, *simulated, *notes]
        return titled_table(head, self._columns(width), self.rows, texts, width)

    def row_of(self, ptx_line: int) -> int | None:
        """The place of the first row of a line."""
        return next((place for place, row in enumerate(self.rows) if row.line == ptx_line), None)

    def record(self) -> dict[str, Any]:
        """Return the JSON record of every line with its values."""
        keys, *rows = self.cells()
        return {
            "launch": self.joined.newest_launch.number if self.joined.newest_launch else None,
            "probe": self.probe,
            "lines": [dict(zip(map(str, keys), row, strict=True)) for row in rows],
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield the headings, then a row per line."""
        names = self.value_names()
        place, code = ("offset", "opcode") if self.graft else ("line", "ptx")
        yield [place, "file", "source_line", *(name.replace(" ", "_") for name in names), code]
        for row in self.measured.rows:
            file, number = row.source if row.source else (None, None)
            yield [row.line, file, number, *(row.values.get(name) for name in names), self._code(row)]


class LinesView(Document):
    """Lines by one probe at a time, first that with the largest loss; ``unit`` goes to the next."""

    tells_at_once = True

    def __init__(self, source: ViewSource, progress: Progress) -> None:
        self.title = f"Lines of {source.kernel.demangled}"
        self.parts, self._problems = _read_parts(line_sources(source) or [source], progress)
        self._place = 0
        progress(1.0)

    @property
    def part(self) -> ProbeLines:
        """The lines that are shown."""
        return self.parts[self._place]

    def sortable(self) -> Mapping[str, str]:
        """The columns of positions and numbers."""
        return self.part.sortable()

    @property
    def sorted_column(self) -> str:
        """The key of the column that was chosen."""
        return self.part.order.key

    def sort_by(self, key: str) -> None:
        """The largest value first, of positions the first one; the same column again reverses the rows."""
        self.part.sort(self.part.order.choose(key, falling=key not in ("line", "source")))

    def commands(self) -> Mapping[str, str]:
        """The next probe."""
        return {"unit": f"next probe: {self._next.probe}"} if len(self.parts) > 1 else {}

    @property
    def _next(self) -> ProbeLines:
        return self.parts[(self._place + 1) % len(self.parts)]

    def press(self, command: str) -> str | None:
        """Go to the next probe."""
        if command == "unit":
            self._place = (self._place + 1) % len(self.parts)
        return None

    def choices(self) -> Mapping[str, Any]:
        """The probe and the order."""
        return {"order": self.part.order, "probe": self.part.probe}

    def choose(self, choices: Mapping[str, Any]) -> None:
        """Restore probe and order, if they exist."""
        self._turn_to_probe(choices["probe"])
        if choices["order"].key in self.sortable():
            self.part.sort(choices["order"])

    def _turn_to_probe(self, probe: str) -> bool:
        places = (place for place, part in enumerate(self.parts) if part.probe == probe)
        before, self._place = self._place, next(places, self._place)
        return self._place != before

    def status(self) -> list[str]:
        """The place of the shown probe among several."""
        return [f"probe {self._place + 1} of {len(self.parts)}"] if len(self.parts) > 1 else []

    def lines(self, width: int) -> Sequence[Line]:
        return self.part.lines(width, self._problems)

    def whole_text(self, width: int) -> Sequence[Line]:
        """The tables of all probes that measured a line, below one another."""
        filled = [part for part in self.parts if part.measured.rows] or self.parts[:1]
        tables = [part.lines(width, self._problems if part is filled[-1] else ()) for part in filled]
        return [line for place, table in enumerate(tables) for line in (*([()] if place else []), *table)]

    def pinned(self, width: int) -> int:
        del width
        return _CODE_HEADINGS if self.part.measured.rows else 1

    def row_count(self) -> int:
        """Number of rows, without the notes."""
        return len(self.part.measured.rows)

    def gutter(self, width: int) -> int:
        """The whole row."""
        return width

    def ptx_line(self, number: int, width: int) -> int | None:
        """Return the PTX line of a row; None for other lines."""
        place = number - self.pinned(width)
        return self.part.rows[place].line or None if 0 <= place < len(self.part.rows) else None

    def spot(self, number: int, width: int) -> Spot:
        """The line by this probe."""
        spot = super().spot(number, width)
        return replace(spot, probe=self.part.probe) if spot else spot

    def turn_to(self, spot: Spot) -> bool:
        """Show the probe that the spot names, else one with the line if the shown one has not."""
        if spot.probe and self._turn_to_probe(spot.probe):
            return True
        if not spot.ptx or any(self.part.row_of(line) is not None for line in spot.ptx):
            return False
        others = (part for part in self.parts if any(part.row_of(line) is not None for line in spot.ptx))
        other = next(others, None)
        return other is not None and self._turn_to_probe(other.probe)

    def place_of(self, ptx_line: int, width: int) -> int | None:
        """The first row of a line."""
        place = self.part.row_of(ptx_line)
        return None if place is None else place + self.pinned(width)

    def missing_reason(self, spot: Spot) -> str:
        """Most lines touch nothing that is measured."""
        if spot.probed is not None:
            return f"line {spot.probed} of probed.ptx is part of the probe and is not measured"
        if not spot.ptx:
            return ""
        by = f" by -p {self.part.probe}" if len(self.parts) > 1 else ""
        return f"{long_position(spot.ptx[0])} was not measured{by}"

    def no_target_reason(self, number: int, width: int) -> str:
        """Rows of no line, and notes."""
        del number, width
        return "this row has no line of code; choose another row"

    def target_view(self) -> str:
        """The code."""
        return "sass" if self.part.graft else "ptx"

    def target_view_at(self, number: int, width: int) -> str:
        """The source, if the line of the row is known there, else the code."""
        place = number - self.pinned(width)
        known = 0 <= place < len(self.part.rows) and self.part.rows[place].source is not None
        return "source" if known else self.target_view()

    def record(self) -> dict[str, Any]:
        """Return the JSON record of the first probe; the other probes have one each in ``others``."""
        first, *others = [part.record() for part in self.parts]
        return {**first, **({"others": others} if others else {})}

    def cells(self) -> Iterator[Sequence[object]]:
        """The lines of the first probe; of several probes, further columns for the others and the probe last."""
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
    return sorted(parts, key=lambda part: not part.measured.rows), [printable(str(error)) for error in errors]


def _opcodes_or_none(joined: JoinedResult) -> dict[int, str]:
    """The names of the instructions that the probe is at."""
    try:
        return opcodes_of(joined)
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
    """The value that a row is sorted by; None for none."""
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
