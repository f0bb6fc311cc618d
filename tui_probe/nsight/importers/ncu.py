"""Read files of Nsight Compute: reports, and CSV of the details page, the raw page, ``--metrics`` and the summary.

What is between the lines of a table (the program's own output, messages of ncu) is passed over, and said. A file may
hold several tables, of several processes and sessions.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ImportFileError
from tui_probe.input_limits import LINE_OF_CSV
from tui_probe.nsight.importers.file_kinds import mismatch_reason
from tui_probe.nsight.importers.file_reading import file_progress, first_bytes, lines_of
from tui_probe.nsight.importers.formats import NCU_DETAILS
from tui_probe.nsight.importers.ncu_layouts import DetailsLayout, ValueRows, layout_of
from tui_probe.nsight.importers.ncu_rep import REPORT_MARK, read_report
from tui_probe.nsight.importers.ncu_table import NcuFile, NcuTable, join_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tui_probe.nsight.importers.ncu_layouts import Layout

_ROW: Final = re.compile(r'"\d+","')
_UNITS: Final = re.compile(r'(?:"",){4}|,{4}')
_MESSAGE: Final = re.compile(r"==(ERROR|WARNING|PROF)== ?(.*)")
_MAX_LINES_PER_ROW: Final = 64
"""Lines that one row may go over, where a cell holds ends of lines."""
HEADING: Final = "Kernel Name"
NO_PERMISSION: Final = "ERR_NVGPUCTRPERM"
PERMISSION_ADVICE: Final = (
    "no permission to read the GPU's performance counters (ERR_NVGPUCTRPERM): run ncu as root, or load the driver with"
    " NVreg_RestrictProfilingToAdminUsers=0. Probes count requests, sectors, bytes and tensor operations without this"
    " permission: see tui-probe probes"
)
COLD_CACHE_NOTE: Final = (
    "cold caches: ncu flushes all caches before each pass, so each launch starts with an empty L2 and needs more"
    " DRAM traffic; with --cache-control none, ncu does not flush caches"
)


@dataclass(slots=True)
class NcuLines:
    """Separates the table, messages of ncu and the program's own output, in one pass, and counts what is not a table.

    A line of a table begins with a number in its first cell, or with an empty cell (the units of the raw page). A line
    in which the program wrote something without an end of line first is cut to where the table's part begins.
    """

    output_lines: int = 0
    """Lines of the program's own output."""
    unreadable: int = 0
    """Lines that begin like a row and cannot be read."""
    messages: dict[str, list[str]] = field(default_factory=lambda: {"ERROR": [], "WARNING": [], "PROF": []})

    def rows(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """Headings and rows as cells, in order. A quote that is left open never runs on into other rows."""
        pending = ""
        for line in lines:
            text = line.rstrip("\r\n")
            if pending and _ROW.match(text):  # a new row: the one before it was cut off
                self.unreadable += 1
                pending = ""
            if pending:
                pending = self._append_line(pending, text)
                if not pending.count('"') % 2:
                    yield from self._cells(pending)
                    pending = ""
                continue
            part = self._table_part(text)
            if part is None:
                continue
            cells = _quoted_cells(part)
            if cells is not None:
                yield cells
            elif part.count('"') % 2:
                pending = part
            else:
                yield from self._cells(part)
        self.unreadable += bool(pending)

    def _append_line(self, pending: str, text: str) -> str:
        """A row and the next line of its cell; nothing if the cell is too long."""
        if pending.count("\n") < _MAX_LINES_PER_ROW and len(pending) + len(text) < LINE_OF_CSV.maximum:
            return f"{pending}\n{text}"
        self.unreadable += 1
        return ""

    def _cells(self, text: str) -> Iterator[list[str]]:
        """The cells of any row; none if it cannot be read."""
        try:
            cells = next(csv.reader([text]), [])
        except csv.Error:
            self.unreadable += 1
            return
        if cells:
            yield cells

    def _table_part(self, text: str) -> str | None:
        """The part of a line that is of a table, None if there is none."""
        if _ROW.match(text):
            return text
        message = _MESSAGE.match(text)
        if message is not None:
            self.messages[message[1]].append(message[2].strip())
            return None
        if HEADING in text:
            return text[_heading_start(text) :]
        if _UNITS.match(text) or (text[:1].isdigit() and text.count(",") > 8):
            return text
        begin = _ROW.search(text)
        if begin is not None and text.count('","', begin.start()) > 8:
            return text[begin.start() :]
        self.output_lines += bool(text.strip())
        return None


def _quoted_cells(text: str) -> list[str] | None:
    """The cells of a row as ncu writes it, each in quotes and without quotes in it, perhaps ended by a comma.

    Several times faster than ``csv``. A quote in a cell is written twice, so the number of quotes tells whether there
    is any; then the answer is None.
    """
    body = text[1:-2] if text.endswith('",') else text[1:-1] if text.endswith('"') else None
    if body is None or not text.startswith('"'):
        return None
    cells = body.split('","')
    return cells if text.count('"') == 2 * len(cells) else None


def _heading_start(text: str) -> int:
    """Return the position at which the headings begin in a line."""
    positions = (text.find(heading) for heading in ('"ID",', '"Process ID",', '"Device Name",', "ID,", "Process ID,"))
    found_positions = [start for start in positions if start >= 0]
    return min(found_positions, default=0)


def read_ncu(paths: Sequence[Path | str], progress: Callable[[float], object] = lambda _: None) -> NcuTable:
    """Files of Nsight Compute as one table. ImportFileError names the file that cannot be used, and what to do."""
    tables = [read_ncu_file(Path(path), file_progress(progress, place, len(paths))) for place, path in enumerate(paths)]
    if not tables:
        raise ImportFileError("no file: pass a CSV file from ncu")
    return join_tables(tables)


def read_ncu_file(path: Path, progress: Callable[[float], object] = lambda _: None) -> NcuTable:
    """Read one file. Raises ImportFileError if it holds no values."""
    if first_bytes(path, len(REPORT_MARK)) == REPORT_MARK:
        return read_report(path, progress)
    lines, rows = NcuLines(), ValueRows()
    tables = _read_tables(lines, rows, lines_of(path, progress))
    if not rows.launches:
        raise ImportFileError(f"{path}: {_no_values_reason(path, lines, tables)}")
    metrics, positions, factors = rows.metrics()
    launch, metric, value, texts = rows.columns()
    if len(metric):
        value, metric = value * factors[metric], positions[metric]
    notes = tuple(_notes(lines, tables, rows))
    return NcuTable((NcuFile(str(path), notes),), rows.launches, metrics, launch, metric, value, texts)


def _read_tables(lines: NcuLines, rows: ValueRows, texts: Iterable[str]) -> int:
    """Read everything into ``rows``; returns how many tables there are."""
    layout: Layout | None = None
    previous_table: tuple[Layout | None, int] = None, 0  # the table so far, while the same headings may be a repetition
    headings: list[str] = []
    tables = 0
    for cells in lines.rows(texts):
        if not cells[0].isdecimal() and HEADING in cells:
            new_layout = layout_of(cells, tables)
            if new_layout is not None:
                if cells != headings:
                    previous_table = None, 0
                elif previous_table[0] is None:
                    previous_table = layout, tables
                headings, layout, tables = cells, new_layout, tables + 1
                continue
        if isinstance(previous_table[0], DetailsLayout) and previous_table[0].is_continued_by(cells):
            layout, tables = previous_table
        previous_table = None, 0
        if layout is None or not layout.read(cells, rows):
            lines.unreadable += 1
    return tables


def _no_values_reason(path: Path, lines: NcuLines, tables: int) -> str:
    messages = list(chain.from_iterable(lines.messages.values()))
    if any(NO_PERMISSION in message for message in messages):
        return f"nothing was profiled: {PERMISSION_ADVICE}"
    if lines.messages["ERROR"]:
        return f"no table; message of ncu: {lines.messages['ERROR'][0]}"
    if any("No kernels were profiled" in message for message in messages):
        return "no kernel was profiled: check ncu's filters; for child processes use --target-processes all"
    if tables:
        return "a header without launches: the program launched no kernel, or the file is truncated"
    if (reason := mismatch_reason(path, "ncu")) is not None:
        return reason
    return f"not an Nsight Compute CSV (no columns ID and Kernel Name); make such a file with {NCU_DETAILS.made_with}"


def _notes(lines: NcuLines, tables: int, rows: ValueRows) -> Iterator[str]:
    """Yield notes for a reader of the file's numbers."""
    for message in lines.messages["ERROR"]:
        yield PERMISSION_ADVICE if NO_PERMISSION in message else f"ncu reports: {message}"
    for message in lines.messages["WARNING"]:
        if "Unable to access" in message or "Note:" in message:
            yield f"ncu reports: {message}"
    if tables > 1:
        yield f"the file contains {tables} tables"
    if any(launch.invocations is not None for launch in rows.launches):
        yield (
            "a summary: averages over all launches of a kernel, including the warm-up"
            " (to exclude the warm-up, import the details or the raw page)"
        )
    elif any(launch.grid is None for launch in rows.launches):
        yield "an older file, without grid and block: kernels are distinguished by name only"
    if lines.unreadable:
        number = f"{lines.unreadable:,}".replace(",", " ")
        yield f"{number} table {'row' if lines.unreadable == 1 else 'rows'} could not be read"
