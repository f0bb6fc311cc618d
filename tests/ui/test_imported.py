"""The screen of imported files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.importers.export import call, kernel, span, tables, write_export
from tests.importers.files import real
from tests.ui.conftest import Stage
from tests.ui.fakes import Gate
from tests.ui.pages_stage import SIZE, check_pages, showing
from tests.ui.test_kernel_screen import let_run
from tui_probe.errors import ImportFileError
from tui_probe.nsight.analysis.launch_selection import IterationPlan
from tui_probe.nsight.pages.opening import open_imported
from tui_probe.pages.table_page import TablePage
from tui_probe.probekit.page_kinds import LazyPage, PageSet
from tui_probe.ui.screens.paged import PagedScreen

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

NCU = {"kernels": "1", "metrics": "m", "traffic": "t", "sectors": "s", "critical": "c", "averages": "a"}
NSYS = {"totals": "1", "kernels": "k", "ranges": "r", "gaps": "g", "timeline": "7"}


def shown(files: list[Path], size: tuple[int, int], ascii_only: bool = False) -> AbstractAsyncContextManager[Stage]:
    """The application, showing files, on a headless terminal."""
    return showing(open_imported(files, IterationPlan(warm_up=3)), size, ascii_only=ascii_only)


def attention(folder: Path) -> list[Path]:
    return [real(folder, f"h200/ncu/attention_{name}.csv") for name in ("flash", "triton")]


@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
async def test_pages_of_ncu(tmp_path: Path, ascii_only: bool) -> None:
    async with shown(attention(tmp_path), SIZE, ascii_only) as stage:
        await check_pages(stage, "imported-ncu", NCU)


@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
async def test_pages_of_nsys(tmp_path: Path, ascii_only: bool) -> None:
    async with shown([real(tmp_path, "nsys/sample.sqlite")], SIZE, ascii_only) as stage:
        await check_pages(stage, "imported-nsys", NSYS)


async def test_pages_scroll_search_and_filter(tmp_path: Path) -> None:
    async with shown([real(tmp_path, "nsys/sample.sqlite")], (100, 30)) as stage:
        await stage.press("0", "k", "G")
        assert "compete for L2" in stage.text or "Blocks share L2" in stage.text
        await stage.press("g", "ampersand", *"gemv2T", "enter")
        assert "gemv2T" in stage.text
        assert "cupy_fill" not in stage.text
        await stage.press("escape", "slash", *"cupy_fill", "enter")
        assert "cupy_fill" in stage.text


async def test_rows_lead_to_their_launches_and_back(tmp_path: Path) -> None:
    async with shown([real(tmp_path, "nsys/sample.sqlite")], (120, 30)) as stage:
        await stage.press("down", "enter")
        assert "only kernel" in stage.text
        assert "with fewer blocks than SMs" not in stage.text, "that is said of all launches"
        assert "splitKreduce_kernel" in stage.text
        assert "gemv2T" not in stage.text
        assert "row 1 of 432" in stage.text
        await stage.press("escape")
        assert "gemv2T" in stage.text
        assert "row 2 of 10" in stage.text, "the row that was left"
        await stage.press("0", "k")
        assert "of 3 689" in stage.text, "all launches"
        await stage.press("0", "r", "down", "down", "enter")
        assert "only range" in stage.text
        await stage.press("0", "k")
        assert "only range" in stage.text
        await stage.press("escape")
        assert "of 3 689" in stage.text


async def test_kernels_of_ncu_lead_to_their_values_and_back(tmp_path: Path) -> None:
    async with shown(attention(tmp_path), (120, 30)) as stage:
        await stage.until(lambda: "row 1 of" in stage.inside, "no page")
        assert stage.inside.split("\n")[-1].startswith(" Enter metrics")
        rows = stage.inside.split("\n")
        assert " flash_fwd_kernel" in next(line for line in rows if line.startswith("▌"))
        await stage.press("enter")
        assert "only kernel" in stage.inside
        values = [line for line in stage.inside.split("\n") if "flash_fwd_kernel" in line]
        assert len(values) > 15
        assert not any("flash_attention" in line or "reduce" in line for line in stage.inside.split("\n")[6:-2])
        await stage.press("escape")
        assert stage.inside.split("\n") == rows


def rows_of(stage: Stage) -> list[str]:
    """The lines of the page, without title, tabs, state and keys."""
    return stage.inside.split("\n")[2:-2]


async def test_titles_of_columns_stay(tmp_path: Path) -> None:
    async with shown([real(tmp_path, "nsys/sample.sqlite")], (100, 20)) as stage:
        await stage.press("0", "k")
        await stage.until(lambda: "row 1 of 3 689" in stage.inside, "no page")
        assert rows_of(stage)[0].startswith(" files")
        for key in ("pagedown", "pagedown", "up", "up", "pageup"):
            await stage.press(key)
            assert [line.split()[:2] for line in rows_of(stage) if "duration" not in line].count(["#", "start"]) == 1
            assert sum(line.startswith("▌") for line in rows_of(stage)) == 1
        await stage.press("pagedown", "pagedown")
        assert rows_of(stage)[0].split()[:2] == ["#", "start"]
        assert rows_of(stage)[1].strip().startswith("──")
        for _ in range(40):
            await stage.press("up")
            assert sum(line.startswith("▌") for line in rows_of(stage)) == 1
        await stage.press("G")
        assert sum(line.startswith("▌") for line in rows_of(stage)) == 1


async def test_titles_stand_above_rows_that_pass_a_filter(tmp_path: Path) -> None:
    async with shown([real(tmp_path, "nsys/sample.sqlite")], (100, 20)) as stage:
        await stage.press("0", "k", "ampersand", *"gemv2T", "enter")
        await stage.until(lambda: "only “gemv2T”" in stage.inside, "no filter")
        assert rows_of(stage)[0].split()[:2] == ["#", "start"]
        assert rows_of(stage)[2].startswith("▌")
        await stage.press("pagedown", "pagedown")
        assert rows_of(stage)[0].split()[:2] == ["#", "start"]
        await stage.pilot.click("#page", offset=(5, 4))
        await stage.settle()
        assert rows_of(stage)[4].startswith("▌")


async def test_rows_are_sorted_by_any_column_both_ways(tmp_path: Path) -> None:
    async with shown([real(tmp_path, "nsys/sample.sqlite")], (120, 30)) as stage:
        seen = []
        for _ in range(3):
            await stage.press("o")
            seen.append(next(part for part in stage.text.split(" · ") if "sorted" in part or "descending" in part))
        assert "by launches, descending" in stage.text
        first = next(line for line in stage.text.splitlines() if "cupy" in line or "Reduce" in line)
        assert " 609 " in first
        await stage.press("O", "O", "O")
        assert "in original order" in stage.text
        await stage.press("O")
        assert "by kernel, descending" in stage.text
        await stage.press(*"oooo")
        assert "by launches, descending" in stage.text
        await stage.press("r")
        assert "by launches, ascending" in stage.text
        first = next(line for line in stage.text.splitlines() if "cupy" in line or "Reduce" in line)
        assert "cupy_fill" in first


async def test_columns_are_chosen_by_the_keys_of_the_kernel_table(tmp_path: Path) -> None:
    def heading() -> list[str]:
        return next(line for line in stage.inside.splitlines() if " total" in line and " launches" in line).split()

    async with shown([real(tmp_path, "nsys/sample.sqlite")], (120, 30)) as stage:
        assert heading()[:3] == ["share", "total", "launches"]
        await stage.press("right", "right", "right")
        assert "by launches, descending" in stage.inside
        assert heading()[:3] == ["share", "total", "launches↓"]
        await stage.press("r")
        assert heading()[:3] == ["share", "total", "launches↑"]
        await stage.press("s", "t")
        assert heading()[:3] == ["share", "total↓", "launches"]
        await stage.press("s", "t")
        assert heading()[:3] == ["share", "total↑", "launches"], "the same column again reverses the rows"


async def test_only_columns_that_are_seen_are_sorted_by(tmp_path: Path) -> None:
    async with shown([real(tmp_path, "nsys/sample.sqlite")], (80, 24)) as stage:
        await stage.press("0", "r")
        seen = []
        while "in original order" not in seen and len(seen) < 20:
            await stage.press("o")
            seen.append(stage.inside.partition("sorted ")[2].splitlines()[0].strip())
        assert not [words for words in seen if "GPU" in words or "host" in words]
        assert seen[-1] == "in original order"


async def test_the_timeline_answers_keys(tmp_path: Path) -> None:
    path = write_export(
        tmp_path / "x.sqlite",
        tables(
            [kernel(100, 1100, 1), kernel(2000, 3000, 2)], [call(10, 12, 1), call(20, 22, 2)], [span(5, 30, "step")]
        ),
    )
    async with shown([path], (100, 20)) as stage:
        await stage.press("7")
        assert "f(int)" in stage.text
        assert "┣step" in stage.text
        before = stage.text
        await stage.press("w")
        assert stage.text != before
        await stage.press("full_stop")
        assert "from 2.00 µs" in stage.text
        await stage.press("m", "g", "m")
        assert "× to ×: 1.90 µs" in stage.text


async def test_quitting(tmp_path: Path) -> None:
    async with shown(attention(tmp_path), (80, 24)) as stage:
        await stage.press("greater_than_sign")
        assert "Metrics" in stage.text
        await stage.press("9")
        assert "this screen has no page 9" in stage.text
        await stage.press("question_mark")
        assert " Keys " in stage.text
        await stage.press("question_mark", "ctrl+q")
        assert stage.app.return_code in (0, None)
        assert not stage.app.is_running


async def test_exports(tmp_path: Path) -> None:
    async with shown(attention(tmp_path), (80, 24)) as stage:
        await stage.press("0", "t", "e", "c")
        (written,) = list((tmp_path / "cwd").iterdir())
        assert written.read_text().startswith("program,process,iterations")


async def test_making_a_page_can_be_stopped_and_gone_on_with() -> None:
    gate = Gate()

    def slow() -> TablePage[str]:
        gate.wait()
        return TablePage("slow", "Slow", (), ())

    pages = [LazyPage("first", "First", lambda: TablePage("first", "First", (), ())),
             LazyPage("slow", "Slow", slow)]  # fmt: skip
    async with showing(PageSet("two pages", pages), (80, 24)) as stage:
        gate.close()
        await stage.pilot.press("0", "s")
        await let_run(stage)
        screen = stage.app.screen
        assert isinstance(screen, PagedScreen)
        screen.tick()
        screen.tick()
        await stage.until(lambda: "reading Slow" in stage.text, "it does not say what it does")
        await stage.pilot.press("escape")
        await let_run(stage)
        assert "stopped" in stage.text
        assert stage.app.is_running
        gate.open.set()
        await stage.settle()
        assert "stopped" in stage.text
        await stage.press("0", "s")
        assert "nothing to show" in stage.text


async def test_a_page_that_could_not_be_made_is_tried_again() -> None:
    attempts = []

    def page() -> TablePage[str]:
        attempts.append(0)
        if len(attempts) == 1:
            raise ImportFileError("x.csv: cut off")
        return TablePage("first", "First", (), ())

    pages = [LazyPage(name, name.title(), page) for name in ("first", "second")]
    async with showing(PageSet("two pages", pages), (80, 24)) as stage:
        assert "x.csv: cut off" in stage.text
        await stage.press("0", "s", "1")
        assert "x.csv" not in stage.text
        assert "nothing to show" in stage.text


async def test_pages_of_files_have_no_worst_place_that_was_measured(tmp_path: Path) -> None:
    async with shown(attention(tmp_path), (100, 30)) as stage:
        assert "! worst" not in stage.text
        await stage.press("exclamation_mark")
        assert "this page has no hotspot" in stage.text


async def test_names_are_searched_in_the_timeline(tmp_path: Path) -> None:
    async with shown([real(tmp_path, "nsys/sample.sqlite")], (100, 24)) as stage:
        await stage.press("7", "slash", *"Step 40", "enter")
        assert "Step 40 to 50" in stage.text.split("\n")[-2]
        await stage.press("slash", *"Compute", "enter")
        first = stage.text.split("\n")[-2]
        await stage.press("n")
        assert "Compute" in stage.text.split("\n")[-2] != first
        await stage.press("N")
        assert stage.text.split("\n")[-2] == first
        await stage.press("slash", *"nowhere", "enter")
        assert "no name contains “nowhere”" in stage.text
        await stage.press("escape")
        assert "Timeline" in stage.text


async def test_text_after_a_refusal_presses_no_keys(tmp_path: Path) -> None:
    async with shown([real(tmp_path, "nsys/sample.sqlite")], (100, 24)) as stage:
        await stage.press("7")
        state = stage.text.split("\n")[:-1]
        await stage.press("ampersand", *"Step 40")
        assert "this page has no lines to filter" in stage.text.split("\n")[-1]
        await stage.press("enter")
        assert stage.text.split("\n")[:-1] == state
        await stage.press("0", "r")
        assert "on host" in stage.text


async def test_under_a_range_all_that_counts_is_of_it(tmp_path: Path) -> None:
    async with shown([real(tmp_path, "nsys/sample.sqlite")], (120, 40)) as stage:
        await stage.press("0", "r", "down", "down", "enter", "0", "k")
        assert "85 of 3 689 kernels" in stage.text
        assert "40 of 85 kernels with fewer blocks than SMs" in stage.text
        assert "only      range Step 0 to 10" in stage.text
        await stage.press("1")
        assert "85 of 3 689 kernels" in stage.text
        assert "row 1 of 9" in stage.text
        await stage.press("0", "g")
        assert "of 3 688 gaps next to matches" in stage.text
        await stage.press("1", "enter")
        assert "only kernel gemv2T_kernel_val<int,int,…uble>> in range Step 0 to 10 · row 1 of 10" in stage.text
        await stage.press("escape")
        assert "only range Step 0 to 10 · row 1 of 9" in stage.text
        await stage.press("escape")
        assert "all rows are shown again" in stage.text
        assert "row 1 of 10" in stage.text
        await stage.press("0", "k")
        assert "of 3 689" in stage.text


async def test_a_range_leads_to_its_kernels_and_these_to_their_launches(tmp_path: Path) -> None:
    async with shown([real(tmp_path, "nsys/sample.sqlite")], (120, 40)) as stage:
        await stage.press("0", "r", "down", "down")
        range_row = next(line for line in stage.inside.split("\n") if "row 3 of" in line)
        await stage.press("enter")
        assert "only range Step 0 to 10 · row 1 of 9" in stage.inside
        titles = next(line for line in stage.inside.split("\n") if "p99" in line).split()
        assert titles == ["share", "total", "launches", "mean", "median", "p99", "max", "kernel"]
        await stage.press("e", "j")
        (written,) = list((tmp_path / "cwd").iterdir())
        record = json.loads(written.read_text())["data"]
        assert record["only"]["range"] == "Step 0 to 10"
        assert sum(row["share"] for row in record["totals"]) == pytest.approx(1.0)
        assert sum(row["launches"] for row in record["totals"]) == 85
        await stage.press("down", "enter")
        assert "in range Step 0 to 10 · row 1 of" in stage.inside
        await stage.press("q")
        assert "only range Step 0 to 10 · row 2 of 9" in stage.inside
        await stage.press("q")
        assert range_row in stage.inside, "the range that was left"
        await stage.press("q", "escape")
        assert "Ctrl-Q quits" in stage.inside
        assert range_row in stage.inside
