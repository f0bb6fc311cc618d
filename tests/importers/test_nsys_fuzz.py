"""Any tables, columns and cells of Nsight Systems give pages that can be drawn, or an error of tui-probe."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from tests.importers.export import COPY, KERNEL, PROCESS, RANGE, THREAD, write_export
from tests.importers.test_nsys_csv import RANGES, SUMS, TRACE
from tui_probe.draw.csv_table import csv_lines
from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.nsys import read_nsys
from tui_probe.nsight.pages.nsys_pages import gaps_page, kernels_page, ranges_page
from tui_probe.nsight.pages.nsys_profile import NsysSources
from tui_probe.nsight.pages.timeline import StreamTimeline
from tui_probe.pages.table_page import page_lines

SCHEMA = {
    "StringIds": ("id", "value"),
    "CUPTI_ACTIVITY_KIND_KERNEL": KERNEL,
    "CUPTI_ACTIVITY_KIND_RUNTIME": ("start", "end", "globalTid", "correlationId", "nameId"),
    "CUPTI_ACTIVITY_KIND_MEMCPY": COPY,
    "CUPTI_ACTIVITY_KIND_MEMSET": COPY,
    "NVTX_EVENTS": RANGE,
    "TARGET_INFO_GPU": ("id", "name", "smCount"),
    "META_DATA_EXPORT": ("name", "value"),
}
LIKELY = st.sampled_from([0, 1, 2, 3, 4, 7, 59, 60, 100, 150, 2**31, PROCESS, THREAD])
ODD = st.one_of(
    st.none(),
    st.sampled_from([-1, 2**62, 2**63 - 1, -(2**63)]),
    st.integers(-(2**63), 2**63 - 1),
    st.text(max_size=4),
    st.floats(),
    st.binary(max_size=4),
)
CELL = st.one_of(LIKELY, LIKELY, LIKELY, ODD)


@st.composite
def tables(draw: st.DrawFn) -> dict[str, tuple[list[str], list[tuple[object, ...]]]]:
    """Some of the tables, each with most of its columns in any order, and rows of mostly valid cells."""
    drawn = {}
    for name, known in SCHEMA.items():
        if draw(st.integers(0, 5)) == 0:
            continue
        missing = draw(st.sets(st.sampled_from(known), max_size=2)) if draw(st.booleans()) else set()
        columns = draw(st.permutations([*(set(known) - missing), *draw(st.sampled_from([[], ["more"]]))]))
        rows = st.tuples(*[CELL if draw(st.integers(0, 3)) == 0 else LIKELY] * len(columns))
        drawn[name] = (columns, draw(st.lists(rows, max_size=4)))
    return {name: (columns, rows) for name, (columns, rows) in drawn.items() if columns}


def shows(path: Path) -> bool:
    """Return whether a file gives pages, not an error that names it; any other error is raised."""
    try:
        sources = NsysSources(read_nsys([path]))
    except ImportFileError as error:
        return str(error).startswith(f"{path}: ") and len(str(error)) > len(f"{path}: ")
    for page in (kernels_page, ranges_page, gaps_page):
        for form in ("table", "json", "csv", "md"):
            list(page_lines(page(sources), form, width=80))
        assert all(page(sources).lines(80))
    timeline = StreamTimeline(sources)
    assert len(timeline.draw(80, 24)) == 24
    for command in timeline.commands():
        timeline.press(command)
        assert len(timeline.draw(80, 24)) == 24
    return len(list(csv.reader(io.StringIO("\n".join(csv_lines(timeline.cells())))))) > 0


@given(tables())
def test_any_schema_and_cells(made: dict[str, tuple[list[str], list[tuple[object, ...]]]]) -> None:
    with TemporaryDirectory() as folder:
        strings = made.pop("StringIds", None)
        path = write_export(Path(folder) / "x.sqlite", made | ({"StringIds": strings} if strings else {}))
        assert shows(path)


REPORT_LINES = [line for text in (TRACE, RANGES, SUMS) for line in text.splitlines()]
NUMBERS = st.one_of(st.integers(), st.floats(), st.just("1e308"), st.just("nan"), st.just("-0"), st.text(max_size=3))


@given(st.lists(st.tuples(st.sampled_from(REPORT_LINES), st.integers(0, 20), NUMBERS), min_size=1, max_size=12))
def test_reports_in_csv_with_any_cell_changed(changes: list[tuple[str, int, object]]) -> None:
    lines = []
    for line, at, instead in changes:
        cells = next(csv.reader([line]))
        if not line.startswith(("Start (ns)", "Name,", "Time (%)")):
            cells[at % len(cells)] = str(instead)
        written = io.StringIO()
        csv.writer(written, lineterminator="").writerow(cells)
        lines.append(written.getvalue())
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
        assert shows(path)
