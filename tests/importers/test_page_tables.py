"""Tables of imported files: columns without values, rows that look alike, commands that are copied."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.importers.export import call, kernel, span, tables, write_export
from tests.importers.files import details, identity, write
from tui_probe.cli.main import main
from tui_probe.draw.spans import wrap
from tui_probe.draw.table_content import PageTexts
from tui_probe.nsight.importers.ncu import read_ncu
from tui_probe.nsight.importers.nsys import read_nsys
from tui_probe.nsight.pages.ncu_pages import NcuReport, averages_page, kernels_page
from tui_probe.nsight.pages.nsys_pages import kernels_page as nsys_kernels_page
from tui_probe.nsight.pages.nsys_pages import ranges_page, sums_page, totals_page
from tui_probe.nsight.pages.nsys_profile import NsysSources
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


ALIKE = [
    f"void cutlass::Kernel<cutlass::gemm::GemmUniversal<cute::tuple<int, int>, {tile}, float>, {end}>(Params)"
    for tile in ("Tile<64, 64>", "Tile<64, 128>", "Tile<128, 64>")
    for end in ("1", "2")
]
"""Names that differ in their middle and at their end."""


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> NsysSources:
    """Kernels and ranges with names that are alike; kernels begin 100 ns apart."""
    names = [*ALIKE, *(f"layers.{i}.self_attention.{part}.forward_of_module" for i in range(9) for part in "qk")]
    where = [(place, place % len(names)) for place in range(2 * len(names))]
    kernels = [kernel(5_000_000 + 100 * place, 5_000_050 + 100 * place, place) for place, _ in where]
    there = tables(
        [(*row[:6], 100 + code, *row[7:]) for row, (_, code) in zip(kernels, where, strict=True)],
        [call(10 + 20 * place, 12 + 20 * place, place) for place, _ in where],
        [span(5 + 20 * place, 19 + 20 * place, names[code]) for place, code in where],
    )
    path = write_export(tmp_path_factory.mktemp("alike") / "x.sqlite", there)
    connection = sqlite3.connect(path)
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", [(100 + i, name) for i, name in enumerate(names)])
    connection.commit()
    connection.close()
    return NsysSources(read_nsys([path]))


@pytest.mark.parametrize("page", [totals_page, nsys_kernels_page, ranges_page, sums_page])
@pytest.mark.parametrize("width", [80, 120, 200])
def test_rows_never_look_alike(alike: NsysSources, page: Callable[[NsysSources], TablePage[Any]], width: int) -> None:
    lines = [*page(alike).text(width)]
    rows = lines[next(place for place, line in enumerate(lines) if line.startswith("─")) + 1 :]
    rows = rows[: len(page(alike).rows)]
    assert len({*rows}) == len(rows)
    cut = [row.rpartition("  ")[2] for row in rows if page in (totals_page, sums_page)]
    assert len({*cut}) == len(cut), "names only distinguish sums"


def test_names_have_a_third_of_the_table(alike: NsysSources) -> None:
    for page in (totals_page, nsys_kernels_page):
        *_, rule = (line for line in page(alike).text(120) if line.startswith("─"))
        assert len(rule.split()[-1]) >= 120 // 3


def test_columns_that_are_the_same_everywhere_are_left_out(tmp_path: Path, alike: NsysSources) -> None:
    """The file if there is one, the GPU if there is one, and marks that no row has."""
    heading = next(line for line in nsys_kernels_page(alike).text(200) if "stream  " in line)
    assert "GPU" not in heading
    assert "block  regs" in heading
    page = kernels_page(report_of(tmp_path, identity(0, NAME), identity(1, "g")))
    assert not [line for line in page.text(150) if line.startswith("file ")]


COMMAND = "ncu --metrics " + ",".join(f"l1tex__metric_number_{number}.sum" for number in range(6))


def test_commands_break_between_metrics_and_are_copied_whole() -> None:
    page = TablePage("x", "X", (), (), PageTexts(notes=[f"collect it with {COMMAND}", "a short note"]))
    lines = ["".join(text for text, _ in line).rstrip() for line in page.lines(80)]
    names = COMMAND.removeprefix("ncu --metrics ").split(",")
    assert all(any(name in line for line in lines) for name in names), "each name is whole in a line"
    assert f" note: collect it with {COMMAND}" in page.unbroken(lines)
    assert f" note: collect it with {COMMAND}" in page.unbroken(lines[:4]), "below the edge of the screen"
    assert " note: a short note" in page.unbroken(lines)
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
