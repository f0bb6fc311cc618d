"""Reads files of Nsight Compute: reports, and CSV of the details page, the raw page, ``--metrics`` and the summary.

What is between the lines of a table (the program's own output, messages of ncu) is passed over, and said. A file may
hold several tables, of several processes and sessions.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.formats import NCU_DETAILS
from tui_probe.nsight.importers.mistaken import mistaken
from tui_probe.nsight.importers.ncu_layouts import Details, layout_of
from tui_probe.nsight.importers.ncu_lines import HEADING, Lines
from tui_probe.nsight.importers.ncu_rep import REPORT_MARK, read_report
from tui_probe.nsight.importers.ncu_rows import Rows
from tui_probe.nsight.importers.ncu_table import NcuFile, NcuTable, joined
from tui_probe.nsight.importers.text_file import first_bytes, lines_of, part_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tui_probe.nsight.importers.ncu_layouts import Layout

NO_PERMISSION: Final = "ERR_NVGPUCTRPERM"
HOW_TO_GET_PERMISSION: Final = (
    "this user may not read the GPU's performance counters (ERR_NVGPUCTRPERM): run ncu as root, or have the driver"
    " loaded with NVreg_RestrictProfilingToAdminUsers=0. Probes count requests, sectors, bytes and"
    " tensor operations without it: tui-probe probes lists them"
)
COLD_CACHE: Final = (
    "cold caches: unless it ran with --cache-control none, ncu flushes all caches before each pass of each launch, so"
    " DRAM traffic is that of a launch that finds nothing in L2"
)


def read_ncu(paths: Sequence[Path | str], progress: Callable[[float], object] = lambda _: None) -> NcuTable:
    """Files of Nsight Compute as one table. ImportFileError names the file that cannot be used, and what to do."""
    tables = [read_ncu_file(Path(path), part_of(progress, place, len(paths))) for place, path in enumerate(paths)]
    if not tables:
        raise ImportFileError("no file: name a CSV file that ncu wrote")
    return joined(tables)


def read_ncu_file(path: Path, progress: Callable[[float], object] = lambda _: None) -> NcuTable:
    """One file; ImportFileError if it holds no values."""
    if first_bytes(path, len(REPORT_MARK)) == REPORT_MARK:
        return read_report(path, progress)
    lines, rows = Lines(), Rows()
    tables = _read(lines, rows, lines_of(path, progress))
    if not rows.launches:
        raise ImportFileError(f"{path}: {_why_nothing(path, lines, tables)}")
    metrics, positions, factors = rows.metrics()
    launch, metric, value, words = rows.columns()
    if len(metric):
        value, metric = value * factors[metric], positions[metric]
    notes = tuple(_notes(lines, tables, rows))
    return NcuTable((NcuFile(str(path), notes),), rows.launches, metrics, launch, metric, value, words)


def _read(lines: Lines, rows: Rows, texts: Iterable[str]) -> int:
    """Read everything into ``rows``; returns how many tables there are."""
    layout: Layout | None = None
    before: tuple[Layout | None, int] = None, 0  # the table so far, while the same headings may be a repetition
    headings: list[str] = []
    tables = 0
    for cells in lines.rows(texts):
        if not cells[0].isdecimal() and HEADING in cells:
            found = layout_of(cells, tables)
            if found is not None:
                if cells != headings:
                    before = None, 0
                elif before[0] is None:
                    before = layout, tables
                headings, layout, tables = cells, found, tables + 1
                continue
        if isinstance(before[0], Details) and before[0].goes_on(cells):
            layout, tables = before
        before = None, 0
        if layout is None or not layout.read(cells, rows):
            lines.broken += 1
    return tables


def _why_nothing(path: Path, lines: Lines, tables: int) -> str:
    said = list(chain.from_iterable(lines.messages.values()))
    if any(NO_PERMISSION in message for message in said):
        return f"nothing was profiled, since {HOW_TO_GET_PERMISSION}"
    if lines.messages["ERROR"]:
        return f"no table; ncu says: {lines.messages['ERROR'][0]}"
    if any("No kernels were profiled" in message for message in said):
        return "no kernel was profiled: check ncu's filters, and --target-processes all where a child launches kernels"
    if tables:
        return "headings without any launch: the program launched no kernel, or the file is cut off"
    if (other := mistaken(path, "ncu")) is not None:
        return other
    return f"no table of Nsight Compute (no headings with ID and Kernel Name): make one with {NCU_DETAILS.made_with}"


def _notes(lines: Lines, tables: int, rows: Rows) -> Iterator[str]:
    """What a reader of the file's numbers should know."""
    for message in lines.messages["ERROR"]:
        yield HOW_TO_GET_PERMISSION if NO_PERMISSION in message else f"ncu said: {message}"
    for message in lines.messages["WARNING"]:
        if "Unable to access" in message or "Note:" in message:
            yield f"ncu said: {message}"
    if tables > 1:
        yield f"{tables} tables, one after another"
    if any(launch.invocations is not None for launch in rows.launches):
        yield (
            "a summary: averages over all launches of a kernel, the warm-up among them, which cannot be left out"
            " (import the details or the raw page for that)"
        )
    elif any(launch.grid is None for launch in rows.launches):
        yield "an older file, without grid and block: kernels are told apart by name alone"
    if lines.broken:
        number = f"{lines.broken:,}".replace(",", " ")
        look = "line looks like a row" if lines.broken == 1 else "lines look like rows"
        yield f"{number} {look} of a table and could not be read"
