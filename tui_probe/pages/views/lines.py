"""What single instructions did: one row per line of PTX, with the line of source that it came from."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from tui_probe.analysis.known_sites import sites_of
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import wrap
from tui_probe.draw.table import Column, table
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.draw.view import Document
from tui_probe.errors import TraceError
from tui_probe.input_limits import PTX_TEXT
from tui_probe.probekit import probe_results
from tui_probe.probekit.kind import Kind
from tui_probe.probekit.measures import in_full, line_rows
from tui_probe.probekit.missing import missing
from tui_probe.probekit.registry import names_of
from tui_probe.trace.offset import where_in_full
from tui_probe.trace.plain_file import read_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.spot import Spot
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.kind import Source
    from tui_probe.probekit.lines import LineRow

_HEADINGS: Final = 3
_CODE: Final = 24


class LinesView(Document):
    """One launch, line by line."""

    tells_at_once = True

    def __init__(self, source: Source, progress: Progress) -> None:
        progress(0.0)
        self.result = probe_results.read(source)
        self.title = f"Lines of {source.kernel.demangled}"
        self.lines_of, self.found = line_rows(self.result)
        path = source.kernel.file("pruned.ptx")
        self._ptx = read_start(path, PTX_TEXT).decode("utf-8", "replace").split("\n") if path else []
        self._graft = source.kernel.info is not None and source.kernel.info.graft is not None
        self._names = _opcodes(source.kernel.folder) if self._graft else {}
        progress(1.0)

    def _code(self, row: LineRow) -> str:
        """The line of PTX; of machine code that was probed itself the name of the instruction."""
        if self._graft:
            return self._names.get(row.line, "")
        known = 1 <= row.line <= len(self._ptx)
        return " ".join(self._ptx[row.line - 1].split()) if known else ""

    def _columns(self) -> list[Column[LineRow]]:
        names = dict.fromkeys(name for row in self.found.rows for name in row.found)
        ranks = {name: place for place, name in enumerate(names, 1)} | {self.lines_of.main: 0}
        return [
            Column("line", None, "offset" if self._graft else "PTX line", self._place),
            *(Column(name, None, name, _text_of(name), rank=ranks[name]) for name in names),
            Column("source", None, "source", _source_of, False),
            Column("ptx", None, "instruction", self._code, False, narrow=_CODE),
        ]

    def _place(self, row: LineRow) -> str:
        return f"{row.line:#06x}" if self._graft else str(row.line)

    def lines(self, width: int) -> Sequence[Line]:
        head = shorten(f"{self.result.name}, {self.result.which}, -p {self.result.probe}", width - 1)
        lines: list[Line] = [((f" {head}", "title"),)]
        if self.found.rows:
            names, rule, *rest = table(self._columns(), self.found.rows, width - 1)
            lines += [((f" {names}", "head"),), ((f" {rule}", "rule"),), *(((f" {line}", ""),) for line in rest)]
        notes = self.found.notes if self.found.rows else [*self.found.notes, "nothing was recorded of any line"]
        for note in [*notes, *(["simulated GPU"] if self.result.simulated else [])]:
            lines += [((f" {part}", "dim"),) for part in wrap(note, width - 1)]
        return lines

    def pinned(self, width: int) -> int:
        del width
        return _HEADINGS if self.found.rows else 1

    def counted(self) -> int:
        """Without the notes."""
        return len(self.found.rows)

    def gutter(self, width: int) -> int:
        """The whole row."""
        return width

    def ptx_line(self, number: int, width: int) -> int | None:
        """Of a row that is of a line."""
        place = number - self.pinned(width)
        return self.found.rows[place].line or None if 0 <= place < len(self.found.rows) else None

    def place_of(self, ptx_line: int, width: int) -> int | None:
        """The first row of a line."""
        places = (place for place, row in enumerate(self.found.rows) if row.line == ptx_line)
        place = next(places, None)
        return None if place is None else place + self.pinned(width)

    def lacks(self, spot: Spot) -> str:
        """Most lines touch nothing that is measured."""
        if spot.probed is not None:
            return f"line {spot.probed} of probed.ptx is the probe's: nothing is measured of it"
        return f"nothing was measured of {where_in_full(spot.ptx[0])}" if spot.ptx else ""

    def nowhere(self, number: int, width: int) -> str:
        """Rows of no line, and notes."""
        del number, width
        return "this row is of no line of code: a row with a line leads there"

    def leads_to(self) -> str:
        """The code."""
        return "sass" if self._graft else "ptx"

    def record(self) -> dict[str, Any]:
        """Every line with what was found of it."""
        keys, *rows = self.cells()
        return {
            "launch": self.result.launch.number if self.result.launch else None,
            "probe": self.result.probe,
            "lines": [dict(zip(map(str, keys), row, strict=True)) for row in rows],
        }

    def cells(self) -> Iterator[Sequence[object]]:
        names = list(dict.fromkeys(name for row in self.found.rows for name in row.found))
        place, code = ("offset", "opcode") if self._graft else ("line", "ptx")
        yield [place, "file", "source_line", *(name.replace(" ", "_") for name in names), code]
        for row in self.found.rows:
            file, number = row.source if row.source else (None, None)
            yield [row.line, file, number, *(row.found.get(name) for name in names), self._code(row)]


def _opcodes(folder: Path | None) -> dict[int, str]:
    """The names of the instructions that the probe is at."""
    try:
        return {one.line: one.opcode for one in sites_of(folder).instructions()}
    except TraceError:
        return {}


def _source_of(row: LineRow) -> str:
    return f"{PurePath(row.source.file).name}:{row.source.line}" if row.source else NOT_MEASURED


def _text_of(name: str) -> Callable[[LineRow], str]:
    return lambda row: in_full(row.found.get(name))


def _missing(source: Source) -> str | None:
    return missing(source, *KIND.probes)


KIND: Final = Kind(
    "lines",
    "Lines",
    "what each instruction did, with its line of PTX and of source: sectors, conflicts, lanes, time, NaNs",
    _missing,
    LinesView,
    explanation=(
        "One row per instruction of pruned.ptx, or of machine code that was probed itself, with its line of source, the"
        " one that matters most first. The columns are what the probe measured; – means not measured.",
        "Sectors per request: 4 for 4 bytes per lane side by side, 8 for 8, 16 for 16; more than that is waste."
        " Degree: passes of shared memory over the fewest possible. Lanes: active ones, of 32 in a warp.",
    ),
    order=20,
    fed_by=lambda: names_of(lambda probe: probe.lines),
)
