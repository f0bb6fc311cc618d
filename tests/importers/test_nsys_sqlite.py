"""Exports with one trap each."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importers.export import (
    COPY,
    KERNEL,
    OTHER_THREAD,
    PROCESS,
    RANGE,
    call,
    kernel,
    span,
    tables,
    write_export,
)
from tests.importers.files import real
from tests.trace.make import TraceWriter
from tui_probe.errors import ImportFileError
from tui_probe.nsight.analysis.projection import project
from tui_probe.nsight.analysis.stream_times import gaps
from tui_probe.nsight.importers.nsys import read_nsys
from tui_probe.nsight.importers.nsys_model import NsysReport, ProjectedRange
from tui_probe.nsight.pages.nsys_pages import kernels_page
from tui_probe.nsight.pages.nsys_profile import NsysSources
from tui_probe.trace.follow import open_trace


def projected(report: NsysReport) -> list[ProjectedRange]:
    assert report.ranges is not None
    return [*project(report.kernels, report.ranges)]


def test_a_range_runs_from_its_first_kernel_to_its_last(tmp_path: Path) -> None:
    path = write_export(
        tmp_path / "x.sqlite",
        tables([kernel(100, 150, 1), kernel(300, 400, 2)], [call(10, 12, 1), call(20, 22, 2)], [span(5, 9000, "step")]),
    )
    (each,) = projected(read_nsys([path]))
    assert (each.name, each.start, each.end, each.kernels, each.busy) == ("step", 100, 400, 2, 150)
    assert (each.host_start, each.host_end, each.level) == (5, 9000, 0)


def test_ranges_are_projected_on_each_stream(tmp_path: Path) -> None:
    kernels = [kernel(100, 150, 1, stream=7), kernel(120, 400, 2, stream=8)]
    calls = [call(10, 12, 1), call(20, 22, 2)]
    path = write_export(tmp_path / "x.sqlite", tables(kernels, calls, [span(5, 30, "step")]))
    assert [(row.stream and row.stream.number, row.start, row.end) for row in projected(read_nsys([path]))] == [
        (7, 100, 150),
        (8, 120, 400),
    ]


def test_launch_of_another_thread_is_outside_the_range(tmp_path: Path) -> None:
    calls = [call(10, 12, 1), call(20, 22, 2, thread=OTHER_THREAD)]
    path = write_export(
        tmp_path / "x.sqlite", tables([kernel(100, 150, 1), kernel(300, 400, 2)], calls, [span(5, 30, "step")])
    )
    (each,) = projected(read_nsys([path]))
    assert (each.kernels, each.end) == (1, 150)


def test_a_call_that_only_begins_in_a_range_is_not_in_it(tmp_path: Path) -> None:
    path = write_export(tmp_path / "x.sqlite", tables([kernel(100, 150, 1)], [call(10, 40, 1)], [span(5, 30, "step")]))
    assert projected(read_nsys([path])) == []


def test_host_only_ranges_are_excluded_and_do_not_nest(tmp_path: Path) -> None:
    ranges = [span(0, 90, "outer"), span(1, 4, "sleep"), span(5, 50, "inner"), span(200, 300, "idle")]
    path = write_export(tmp_path / "x.sqlite", tables([kernel(100, 150, 1)], [call(10, 12, 1)], ranges))
    assert [(row.name, row.level) for row in projected(read_nsys([path]))] == [("outer", 0), ("inner", 1)]


def test_text_in_either_column_and_other_events(tmp_path: Path) -> None:
    ranges = [
        span(0, 90, None, text_id=3),
        span(1, 80, "start/end", kind=60),
        span(2, 70, "a mark", kind=34),
        span(-5, None, "a domain", kind=75),
    ]
    path = write_export(tmp_path / "x.sqlite", tables([kernel(100, 150, 1)], [call(10, 12, 1)], ranges))
    assert [row.name for row in projected(read_nsys([path]))] == ["registered", "start/end"]


def test_correlation_is_within_a_process(tmp_path: Path) -> None:
    foreign = (10, 12, 8 << 24 | 11, 1, 2)
    path = write_export(
        tmp_path / "x.sqlite", tables([kernel(100, 150, 1)], [foreign], [span(5, 30, "step", thread=8 << 24 | 11)])
    )
    report = read_nsys([path])
    assert projected(report) == []
    assert report.notes[0] == "kernels not assigned to an NVTX range, because their launch calls are missing: 1"


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "no CUDA API calls"),
        ("NVTX_EVENTS", "no NVTX ranges"),
        ("CUPTI_ACTIVITY_KIND_KERNEL", "no kernels"),
    ],
)
def test_missing_tables_are_reported(tmp_path: Path, left_out: str, said: str) -> None:
    there = tables([kernel(100, 150, 1)], [call(10, 12, 1)], [span(5, 30, "step")])
    del there[left_out]
    report = read_nsys([write_export(tmp_path / "x.sqlite", there)])
    assert any(said in note for note in report.notes)


def test_missing_columns_are_unknown_or_reported(tmp_path: Path) -> None:
    few = ("start", "end", "streamId", "demangledName")
    path = write_export(tmp_path / "a.sqlite", {"CUPTI_ACTIVITY_KIND_KERNEL": (few, [(100, 150, 7, 1)])})
    kernels = read_nsys([path]).kernels
    assert kernels.shape.tolist() == [[-1] * 6]
    assert kernels.registers.tolist() == [-1]
    assert kernels.shared.tolist() == [-1]
    path = write_export(tmp_path / "b.sqlite", {"CUPTI_ACTIVITY_KIND_KERNEL": (few[1:], [(150, 7, 1)])})
    with pytest.raises(ImportFileError, match=r"b\.sqlite: table CUPTI_ACTIVITY_KIND_KERNEL has no column start"):
        read_nsys([path])


LAST = 2**63 - 1


@pytest.mark.parametrize(("start", "end"), [(LAST, LAST), (-(2**63), 5), (100, LAST), (150, 100), (1 << 62, 1 << 62)])
def test_kernels_at_impossible_times_are_excluded_and_reported(tmp_path: Path, start: int, end: int) -> None:
    kernels, calls = [kernel(100, 150, 1), kernel(start, end, 2)], [call(10, 12, 1), call(start, end, 2)]
    path = write_export(tmp_path / "x.sqlite", tables(kernels, calls, [span(5, 30, "step"), span(start, end, "odd")]))
    report = read_nsys([path])
    assert report.kernels.start.tolist() == [100]
    why = "excluded because of impossible times (out of range, or an end before its start); export the report again"
    assert report.notes == (f"1 NVTX range {why}", f"1 kernel {why}")
    assert [(row.name, row.duration) for row in projected(report)] == [("step", 50)]
    seen = "\n".join(kernels_page(NsysSources(report)).text(100))
    assert "1 kernel, 1 stream, 1 projected range" in seen
    assert "50 ns" in seen


def nulled(row: tuple[object, ...], *columns: int) -> tuple[object, ...]:
    return tuple(None if place in columns else cell for place, cell in enumerate(row))


def test_rows_without_times_are_left_out_and_counted(tmp_path: Path) -> None:
    complete = kernel(100, 150, 1)
    there = tables(
        [complete, nulled(complete, 1), nulled(complete, 1), nulled(complete, 0), nulled(complete, 0, 1)],
        [call(10, 12, 1), nulled(call(20, 22, 2), 1), nulled(call(30, 32, 3), 0)],
        [span(5, 30, "step"), nulled(span(6, 30, "odd"), 0)],
    )
    there["CUPTI_ACTIVITY_KIND_MEMCPY"] = (COPY, [nulled((1, 2, 0, 7, PROCESS), 1)] * 2)
    report = read_nsys([write_export(tmp_path / "x.sqlite", there)])
    assert report.kernels.start.tolist() == [100]
    assert [(row.name, row.kernels) for row in projected(report)] == [("step", 1)]
    running = "excluded because the end is missing (still running when the recording ended)"
    assert report.notes == (
        "1 NVTX range excluded because the start is missing; export the report again",
        f"2 kernels {running}",
        "2 kernels excluded because the start is missing; export the report again",
        f"2 copies {running}",
    )
    nulled_export = write_export(tmp_path / "y.sqlite", tables([nulled(complete, 1)], [], []))
    with pytest.raises(
        ImportFileError, match=re.escape(f"1 kernel {running}; no kernels and no NVTX ranges were recorded")
    ):
        read_nsys([nulled_export])


def test_names_that_are_missing_are_replaced_and_counted(tmp_path: Path) -> None:
    complete = kernel(100, 150, 1)
    rows = [nulled(complete, 6), (*nulled(complete, 6)[:7], 4, *complete[8:]), (*complete[:6], 99, *complete[7:])]
    path = write_export(tmp_path / "x.sqlite", tables(rows, [], []))
    report = read_nsys([path])
    names = sorted(report.kernels.names[code] for code in report.kernels.name.tolist())
    assert names == ["g(int)", "kernel without a name", "string 99"]
    assert report.notes[0].startswith("1 string missing in the file (table StringIds), shown as “string 99”")
    short = {"CUPTI_ACTIVITY_KIND_KERNEL": (("start", "end", "streamId", "shortName"), [(100, 150, None, 1)])}
    kernels = read_nsys([write_export(tmp_path / "short.sqlite", short)]).kernels
    assert (kernels.names[kernels.name[0]], kernels.stream.tolist()) == ("f(int)", [-1])


def test_a_grid_that_cannot_be_is_not_known(tmp_path: Path) -> None:
    path = write_export(tmp_path / "x.sqlite", tables([kernel(100, 150, 1, grid=-4)], [], []))
    (row,) = kernels_page(NsysSources(read_nsys([path]))).rows
    assert (row.grid, row.blocks, row.has_few_blocks) == (None, None, None)


def test_a_cell_that_is_no_number_says_what_to_do(tmp_path: Path) -> None:
    for table, rows in {"CUPTI_ACTIVITY_KIND_KERNEL": 0, "CUPTI_ACTIVITY_KIND_RUNTIME": 1, "NVTX_EVENTS": 2}.items():
        there = [[kernel(100, 150, 1)], [call(10, 12, 1)], [span(5, 30, "step")]]
        there[rows] = [("junk", *there[rows][0][1:])]
        path = write_export(tmp_path / f"{table}.sqlite", tables(*there))
        with pytest.raises(ImportFileError, match=rf"{table}\.sqlite: table {table} has a value "):
            read_nsys([path])


def test_why_there_are_gaps(tmp_path: Path) -> None:
    kernels = [kernel(100, 200, 1), kernel(300, 400, 2), kernel(500, 600, 3), kernel(1000, 1100, 4)]
    calls = [call(10, 12, 1), call(20, 22, 2), call(450, 460, 3), call(900, 910, 4)]
    there = tables(kernels, calls, []) | {"CUPTI_ACTIVITY_KIND_MEMCPY": (COPY, [(610, 900, 0, 7, PROCESS)])}
    report = read_nsys([write_export(tmp_path / "x.sqlite", there)])
    every = gaps(report.kernels, report.copies)
    assert [(gap.start, gap.length, gap.delay, gap.cause) for gap in every] == [
        (600, 400, 300, "copy"),
        (200, 100, -180, "other"),
        (400, 100, 50, "host"),
    ]


def test_files_that_are_no_export(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE songs (title)")
    connection.commit()
    connection.close()
    with pytest.raises(ImportFileError, match=r"other\.sqlite: an sqlite file without the tables"):
        read_nsys([other])
    empty = write_export(tmp_path / "empty.sqlite", {})
    with pytest.raises(ImportFileError, match="no kernels and no NVTX ranges"):
        read_nsys([empty])
    report = tmp_path / "run.nsys-rep"
    report.write_bytes(b"\x01\x02")
    with pytest.raises(ImportFileError, match="nsys export --type sqlite"):
        read_nsys([report])
    with pytest.raises(ImportFileError, match="must be the only file"):
        read_nsys([empty, empty])
    with pytest.raises(ImportFileError):
        read_nsys([])


def test_the_file_is_only_read(tmp_path: Path) -> None:
    path = write_export(tmp_path / "x y%20?#.sqlite", tables([kernel(1, 2, 1)], [], []))
    before = path.read_bytes()
    path.chmod(0o444)
    assert len(read_nsys([path]).kernels) == 1
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return real(tmp_path_factory.mktemp("nsys"), "nsys/sample.sqlite").read_bytes()[: 256 << 10]


@given(at=st.integers(100, 200_000), instead=st.binary(min_size=1, max_size=300))
def test_a_damaged_export_gives_a_report_or_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, recorded: bytes, at: int, instead: bytes
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "x.sqlite"
    path.write_bytes(recorded[:at] + instead + recorded[at + len(instead) :])
    assert reads(path)


def test_a_table_whose_definition_is_no_text(tmp_path: Path) -> None:
    """The complaint of sqlite quotes it, and is then no text either."""
    path = write_export(tmp_path / "x.sqlite", tables([kernel(1, 2, 1)], [], []))
    damaged = path.read_bytes().replace(b'CREATE TABLE "StringIds" (', b'CREATE TABLE "StringIds" \xff')
    assert damaged != path.read_bytes()
    path.write_bytes(damaged)
    with pytest.raises(ImportFileError, match="nsys export --type sqlite") as raised:
        read_nsys([path])
    assert str(raised.value).startswith(f"{path}: ")


CELLS = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=4), st.floats(), st.binary(max_size=4))


@given(
    kernels=st.lists(st.tuples(*[CELLS] * len(KERNEL)), max_size=3),
    ranges=st.lists(st.tuples(*[CELLS] * len(RANGE)), max_size=3),
)
def test_any_cells(
    tmp_path_factory: pytest.TempPathFactory, kernels: list[tuple[object, ...]], ranges: list[tuple[object, ...]]
) -> None:
    path = tmp_path_factory.mktemp("cells") / "x.sqlite"
    assert reads(write_export(path, tables(kernels, [call(10, 12, 1)], ranges)))


def reads(path: Path) -> bool:
    """Return whether a file gives a report, not an error that names it; any other error is raised."""
    try:
        report = read_nsys([path])
    except ImportFileError as error:
        return str(error).startswith(f"{path}: ")
    gaps(report.kernels, report.copies)
    return report.ranges is None or len(project(report.kernels, report.ranges)) >= 0


def test_kernels_name_what_the_probes_saw(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "Nov21_101010_42")
    writer.start()
    writer.kernel(3, "_Z1fi")
    path = write_export(tmp_path / "x.sqlite", tables([kernel(1, 2, 1), kernel(3, 4, 2, name=4)], [], []))
    page = kernels_page(NsysSources(read_nsys([path]), traces=[open_trace(writer.directory)]))
    assert [row.trace_label for row in page.rows] == ["Nov21_101010_42 #3 probed", None]
    assert "Nov21_101010_42 #3 probed" in "\n".join(page.text(120))
