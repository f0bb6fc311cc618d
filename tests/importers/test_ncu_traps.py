"""Contents of Nsight Compute files besides a plain table, one trap per test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.importers.files import DETAILS, IDENTITY, details, identity, line, write
from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.ncu import PERMISSION_ADVICE, read_ncu
from tui_probe.nsight.importers.ncu_table import Metric, NcuTable

BYTES = ("Command line profiler metrics", "dram__bytes.sum", "byte")


def table_of(folder: Path, text: str, encoding: str = "utf-8") -> NcuTable:
    return read_ncu([write(folder, text, encoding=encoding)])


def row(number: int, value: str, kernel: str = "f(int)", process: int = 7) -> str:
    return line([*identity(number, kernel, process=process), *BYTES, value])


def values(table: NcuTable, name: str = "dram__bytes.sum") -> list[float]:
    return table.column(name).tolist()


def test_output_of_the_program_and_messages_between_rows(tmp_path: Path) -> None:
    text = "\n".join(
        [
            "==PROF== Connected to process 7 (/bin/app)",
            "step 1, loss 0.5",
            line(DETAILS),
            row(0, "32"),
            '{"json": "of, the, program"}',
            '==PROF== Profiling "f": 0%....50%....100% - 3 passes',
            '100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, "a", "b"',
            row(1, "64"),
            'it says "hello',
            row(2, "96"),
            "==PROF== Disconnected from process 7",
        ]
    )
    assert values(table_of(tmp_path, text)) == [32, 64, 96]


def test_a_row_behind_output_without_an_end_of_line(tmp_path: Path) -> None:
    text = f"epoch 1... {line(DETAILS)}\n{row(0, '32')}\n[ 50%]\r[100%]{row(1, '64')}\n"
    assert values(table_of(tmp_path, text)) == [32, 64]


def test_several_headers_begin_new_sessions(tmp_path: Path) -> None:
    text = f"{line(DETAILS)}\n{row(0, '32')}\n{row(1, '64')}\n\n{line(DETAILS)}\n{row(0, '96')}\n"
    table = table_of(tmp_path, text)
    assert values(table) == [32, 64, 96]
    assert [len(session) for session in table.sessions()] == [2, 1]
    assert "2 tables" in table.files[0].notes[0]


def test_the_same_headings_again_do_not_part_a_session(tmp_path: Path) -> None:
    text = "\n".join([line(DETAILS), row(0, "32"), row(1, "64"), line(DETAILS), line(DETAILS), row(2, "96")])
    table = table_of(tmp_path, text)
    assert [len(session) for session in table.sessions()] == [3]
    assert not table.files[0].notes


def test_a_row_that_ends_before_what_names_its_launch(tmp_path: Path) -> None:
    last = [name for name in DETAILS if name != "Grid Size"] + ["Grid Size"]
    table = table_of(tmp_path, f"{line(last)}\n{line(['0', *'7abcdefghi', 'dram__bytes.sum', 'byte', '32'])}\n")
    assert values(table) == [32]
    assert table.launches[0].grid is None


def test_processes_are_distinguished(tmp_path: Path) -> None:
    text = "\n".join([line(DETAILS), row(0, "32"), row(1, "64", process=8), row(2, "96")])
    assert [len(session) for session in table_of(tmp_path, text).sessions()] == [2, 1]


def test_rules_have_more_cells_and_metrics_fewer(tmp_path: Path) -> None:
    rules = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")
    text = "\n".join(
        [
            line([*DETAILS, *rules]),
            row(0, "32") + ",",
            line([*identity(0, "f(int)"), "MemoryWorkloadAnalysis", "", "", "", "R", "OPT", 'use "less", now', "", ""]),
            row(1, "64") + ",",
        ]
    )
    table = table_of(tmp_path, text)
    assert values(table) == [32, 64]
    assert len(table) == 2


def test_older_files_have_no_shape_and_a_time(tmp_path: Path) -> None:
    headings = [*IDENTITY[:5], "Kernel Time", "Context", "Stream", *DETAILS[11:]]
    cells = ["0", "7", "app", "host", "f(int)", "2021-Jan-01 10:00:00", "1", "7", *BYTES, "32"]
    table = table_of(tmp_path, f"{line(headings)}\n{line(cells)}\n")
    assert values(table) == [32]
    assert table.launches[0].grid is None
    assert table.launches[0].block is None
    assert "without grid and block" in table.files[0].notes[0]


@pytest.mark.parametrize("page", ["details", "raw"])
def test_nvtx_columns(tmp_path: Path, page: str) -> None:
    nvtx = [
        "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
        "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
    ]
    cells = identity(0, "f(int)")
    named = [*cells[:4], "1 <default domain>:outer", "", *cells[4:]]
    headings = [*IDENTITY[:4], *nvtx, *IDENTITY[4:]]
    if page == "details":
        text = f"{line([*headings, *DETAILS[11:]])}\n{line([*named, *BYTES, '32'])}\n"
    else:
        units = line([""] * len(headings) + ["byte"])
        text = f"{line([*headings, 'dram__bytes.sum'])}\n{units}\n{line([*named, '32'])}\n"
    table = table_of(tmp_path, text)
    assert values(table) == [32]
    assert (table.launches[0].kernel, table.launches[0].grid) == ("f(int)", (4, 1, 1))
    assert len(table.metrics) == 1


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1,024", "2.50"], [1024, 2.5]),
        (["1.024", "2,50"], [1024, 2.5]),
        (["196.456.177.859,63", "1.024"], [196456177859.63, 1024]),
        (["196,456,177,859.63", "1,024"], [196456177859.63, 1024]),
        (["1.024", "2.048"], [1024, 2048]),
        (["1,024", "2,048"], [1024, 2048]),
        (["12\u202f319\u202f469", "2,50"], [12319469, 2.5]),
        (["12'319'469", "2.50"], [12319469, 2.5]),
        (["0.123", "7"], [0.123, 7]),
    ],
)
def test_separators_of_other_locales(tmp_path: Path, texts: list[str], expected: list[float]) -> None:
    text = "\n".join([line(DETAILS), *(row(number, value) for number, value in enumerate(texts))])
    assert values(table_of(tmp_path, text)) == expected


@pytest.mark.parametrize(
    ("unit", "value", "expected"),
    [
        ("ns", "2,336", ("ns", 2336)), ("nsecond", "2,336", ("ns", 2336)), ("us", "2.34", ("ns", 2340)),
        ("usecond", "2.34", ("ns", 2340)), ("msecond", "2.5", ("ns", 2.5e6)), ("second", "2", ("ns", 2e9)),
        ("byte/s", "10", ("byte/s", 10)), ("byte/second", "10", ("byte/s", 10)),
        ("Gbyte/second", "1.5", ("byte/s", 1.5e9)), ("Mbyte/s", "1.5", ("byte/s", 1.5e6)),
        ("Kbyte", "1.5", ("byte", 1500)), ("Mbyte", "1.5", ("byte", 1.5e6)), ("hz", "5", ("hz", 5)),
        ("cycle/second", "5", ("hz", 5)), ("cycle/nsecond", "1.5", ("hz", 1.5e9)), ("Ghz", "1.5", ("hz", 1.5e9)),
        ("Kbyte/block", "1.5", ("byte/block", 1500)), ("%", "5", ("%", 5)), ("inst/cycle", "5", ("inst/cycle", 5)),
        ("register/thread", "5", ("register/thread", 5)), ("sector", "5", ("sector", 5)), ("", "5", ("", 5)),
        ("of my own", "5", ("of my own", 5)),
    ],
)  # fmt: skip
def test_units_in_base_units(tmp_path: Path, unit: str, value: str, expected: tuple[str, float]) -> None:
    table = table_of(tmp_path, details([(identity(0, "f"), {("S", "m", unit): value})]))
    assert table.metrics[0].unit == expected[0]
    assert table.column("m")[0] == pytest.approx(expected[1])


@pytest.mark.parametrize("text", ["", "n/a", "no data", "nan", "(!) nan", "N/A"])
def test_nothing_measured_is_no_number_and_no_word(tmp_path: Path, text: str) -> None:
    table = table_of(tmp_path, details([(identity(0, "f"), {BYTES: text})]))
    assert np.isnan(table.column("dram__bytes.sum")).all()
    assert table.texts == {}


def test_a_value_with_its_instances(tmp_path: Path) -> None:
    table = table_of(tmp_path, details([(identity(0, "f"), {BYTES: "4 (1; 3)"})]))
    assert values(table) == [4]


def test_the_same_name_in_two_sections(tmp_path: Path) -> None:
    cells = {("A", "Memory Throughput", "%"): "50", ("B", "Memory Throughput", "byte/s"): "1,000"}
    table = table_of(tmp_path, details([(identity(0, "f"), cells)]))
    assert table.column("Memory Throughput", "A").tolist() == [50]
    assert table.column("Memory Throughput", "B").tolist() == [1000]
    assert table.column("Memory Throughput", unit="%").tolist() == [50]


def test_a_summary_has_no_launches(tmp_path: Path) -> None:
    headings = (
        "Process ID", "Process Name", "Host Name", "Kernel Name", "Block Size", "Grid Size", "Device", "CC",
        "Invocations", "Section Name", "Metric Name", "Metric Unit", "Minimum", "Maximum", "Average",
    )  # fmt: skip
    cells = ("7", "app", "host", "f(int)", "(64, 1, 1)", "(4, 1, 1)", "0", "9.0", "8", *BYTES, "10", "30", "20")
    table = table_of(tmp_path, f"{line(headings)}\n{line(cells)}\n")
    (launch,) = table.launches
    assert (launch.number, launch.invocations, launch.grid) == (None, 8, (4, 1, 1))
    assert values(table) == [20]
    assert values(table, "dram__bytes.sum (maximum)") == [30]
    assert table.is_summary
    assert list(table.sessions()) == []
    assert "warm-up" in table.files[0].notes[0]


def test_cells_without_quotes(tmp_path: Path) -> None:
    cells = [*identity(0, "f"), *BYTES, "32"]
    cells[7] = cells[8] = '"(4, 1, 1)"'
    assert values(table_of(tmp_path, f"{','.join(DETAILS)}\n{','.join(cells)}\n")) == [32]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_other_encodings(tmp_path: Path, encoding: str) -> None:
    text = details([(identity(0, "fµ"), {BYTES: "32"})])
    table = table_of(tmp_path, text, encoding)
    assert values(table) == [32]
    assert table.launches[0].kernel == "fµ"


def test_a_file_that_was_cut_off(tmp_path: Path) -> None:
    text = details([(identity(number, "f"), {BYTES: "32"}) for number in range(3)])
    table = table_of(tmp_path, text.rstrip()[:-5])
    assert values(table) == [32, 32]
    assert any("could not be read" in note for note in table.files[0].notes)


def test_a_raw_page_without_units(tmp_path: Path) -> None:
    text = f"{line([*IDENTITY, 'a', 'b'])}\n{line([*identity(0, 'f'), '1', '2'])}\n"
    table = table_of(tmp_path, text)
    assert table.metrics == [Metric("raw", "a", ""), Metric("raw", "b", "")]
    assert table.column("b").tolist() == [2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("hello\n", "no columns ID"),
        (f"{line(DETAILS)}\n", "no kernel"),
        ("==WARNING== No kernels were profiled.\n", "no kernel was profiled"),
        ("==ERROR== Failed to connect.\n", "Failed to connect"),
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", PERMISSION_ADVICE),
    ],
)
def test_a_file_with_nothing_in_it_says_why(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ImportFileError) as caught:
        read_ncu([path])
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


def test_cut_off_report_is_named(tmp_path: Path) -> None:
    """With NVIDIA's package and without it."""
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(b"NVR\0\x01\x02")
    with pytest.raises(ImportFileError, match=r"run\.ncu-rep: (a report|the report has no kernels)"):
        read_ncu([path])


def test_missing_permission_is_reported_with_a_table(tmp_path: Path) -> None:
    text = f"==ERROR== ERR_NVGPUCTRPERM\n{details([(identity(0, 'f'), {BYTES: '32'})])}"
    assert PERMISSION_ADVICE in table_of(tmp_path, text).files[0].notes


@pytest.mark.parametrize("what", ["missing", "directory", "none"])
def test_no_such_file(tmp_path: Path, what: str) -> None:
    paths = {"missing": [tmp_path / "missing.csv"], "directory": [tmp_path], "none": []}[what]
    with pytest.raises(ImportFileError):
        read_ncu(paths)
