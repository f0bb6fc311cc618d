"""Tables of imported files: columns without values, rows that look alike, commands that are copied."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.importers.files import details, identity, write
from tui_probe.cli.main import main
from tui_probe.draw.spans import wrap
from tui_probe.draw.table_content import PageTexts
from tui_probe.nsight.importers.ncu import read_ncu
from tui_probe.nsight.pages.ncu_pages import NcuReport, averages_page, kernels_page
from tui_probe.pages.table_page import TablePage

BYTES = ("Command line profiler metrics", "dram__bytes.sum", "byte")
NAME = "a_kernel_with_a_long_name_of_fifty_one_characters_x(int)"


def report_of(folder: Path, *launches: list[str]) -> NcuReport:
    return NcuReport(read_ncu([write(folder, details((cells, {BYTES: "1"}) for cells in launches))]))


@pytest.mark.parametrize("on_screen", [True, False])
def test_columns_without_values_leave_their_room_to_names(tmp_path: Path, on_screen: bool) -> None:
    page = kernels_page(report_of(tmp_path, identity(0, NAME), identity(1, "g")))
    lines = ["".join(text for text, _ in line) for line in page.lines(150)] if on_screen else [*page.text(150)]
    heading = next(line for line in lines if "launches  kept" in line)
    assert not {"mean", "p99", "share", "total"} & {*heading.split()}
    assert NAME in "\n".join(lines)


def test_rows_that_differ_in_their_grid_show_it(tmp_path: Path) -> None:
    shapes = [identity(number, NAME, grid=f"({grid}, 1, 1)") for number, grid in enumerate((4, 8, 16))]
    report = report_of(tmp_path, *shapes)
    for page in (kernels_page(report), averages_page(report)):
        rows = [line for line in page.text(60) if "a_kernel" in line]
        assert len(rows) == 3
        assert [row for row in rows if " 16 " in row]


def test_averages_of_processes_and_sections_are_distinguished(tmp_path: Path) -> None:
    metrics = {(section, "Memory Throughput", "%"): "1" for section in ("Speed Of Light", "Memory Workload")}
    text = details((identity(0, "f", process=process), metrics) for process in (7, 8))
    page = averages_page(NcuReport(read_ncu([write(tmp_path, text)])))
    rows = [line for line in page.text(100) if " f " in line]
    assert len({*rows}) == len(rows) == 4


COMMAND = "ncu --metrics " + ",".join(f"l1tex__metric_number_{number}.sum" for number in range(6))


def test_commands_break_between_metrics_and_are_copied_whole() -> None:
    page = TablePage("x", "X", (), (), PageTexts(notes=[f"collect it with {COMMAND}", "a short note"]))
    lines = ["".join(text for text, _ in line).rstrip() for line in page.lines(80)]
    names = COMMAND.removeprefix("ncu --metrics ").split(",")
    assert all(any(name in line for line in lines) for name in names), "each name is whole in a line"
    assert f"note: collect it with {COMMAND}" in page.unbroken(lines)
    assert f"note: collect it with {COMMAND}" in page.unbroken(lines[:4]), "below the edge of the screen"
    assert "note: a short note" in page.unbroken(lines)
    assert any(COMMAND in line for line in page.text(80, whole_commands=True))


def test_commands_are_on_one_line_outside_of_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, details([(identity(0, "f"), {BYTES: "1"})]))
    assert main(["import", "ncu", str(path), "--page", "traffic", "--width", "60"]) == 0
    wanted = "--metrics dram__bytes.sum,lts__t_bytes.sum,l1tex__t_bytes.sum"
    assert wanted in capsys.readouterr().out


def test_wrap_cuts_lists_at_commas() -> None:
    assert wrap("take aaaa,bbbb,cccc,dddd now", 12) == ["take aaaa,", "bbbb,cccc,", "dddd now"]
    assert wrap("take aaaaaaaa,bbbbbbbb,cc", 12) == ["take", "aaaaaaaa,", "bbbbbbbb,cc"]
    assert wrap("abcdefghijklmno", 6) == ["abcdef", "ghijkl", "mno"]
