"""The first ten minutes: each planted fault is found within three keys or one command after ``run``."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import Tool
from tests.recorded import DATA
from tests.ui.conftest import on_stage
from tui_probe.ui.session import Session

if TYPE_CHECKING:
    import subprocess

    from tests.ui.conftest import Stage

NCU = DATA / "ncu"
PROGRAM = str(Path(__file__).with_name("planted.py"))
ANSWERS = {
    "strided access": r"! uncoalesced: st\.global\.u32 PTX:\d+ planted\.cu:8, 32\.0 sectors per request, ideal 4",
    "bank conflicts": r"! bank conflicts: ld\.shared\.u32 PTX:\d+ planted\.cu:18 \(16 instructions\), 32\.0×",
    "out of bounds": r"! out of bounds: store of 4 B .* st\.global\.u32 PTX:\d+ planted\.cu:27, .* thread \(1, 0, 0\)",
    "uninitialized": r"! uninitialized: load of 4 B in shared memory, .* planted\.cu:18",
    "idle SMs": r"#3 nan, .*\n    ! idle SMs: 4 blocks leave 4 of the 8 SMs",
    "crash": r"^✘ #4 trap: CUDA_ERROR_LAUNCH_FAILED .*planted\.cu:44\), block \(0, 0, 0\), thread \(0, 0, 0\)",
}
LINE = r"strided .*planted\.cu:8 st\.global 32 sectors, ideal 4"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, natives: Path) -> tuple[Tool, subprocess.CompletedProcess[str]]:
    """A run of the program, which prints a report at its end."""
    tool = Tool(tmp_path_factory.mktemp("first"), natives)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUI_PROBE_SIM_CHECK", "1")  # as for users; other tests run without
        return tool, tool("run", "--sim", "--", sys.executable, PROGRAM)


def test_brief_answers_each_question(run: tuple[Tool, subprocess.CompletedProcess[str]]) -> None:
    tool, ended = run
    assert ended.returncode == 0, ended.stderr
    brief = tool("report", "--brief").stdout
    assert len(brief) <= 4000
    missing = [question for question, answer in ANSWERS.items() if not re.search(answer, brief, re.MULTILINE)]
    assert missing == [], brief


def test_report_of_run_begins_with_the_crash(run: tuple[Tool, subprocess.CompletedProcess[str]]) -> None:
    _, ended = run
    assert ended.stdout.lstrip().startswith("failed    ✘ #4 trap: CUDA_ERROR_LAUNCH_FAILED")


def test_first_nan_is_found_by_a_question_of_the_list(
    run: tuple[Tool, subprocess.CompletedProcess[str]],
) -> None:
    """``R`` and a digit choose the question, as below; this is the command that they start.

    A kernel that stores no numbers is not said to be free of NaN.
    """
    tool, _ = run
    kernels = ("nan", "strided")
    done = tool("run", "--sim", "-p", "nan_check", "--tracedir", "asked", "--", sys.executable, PROGRAM, *kernels)
    assert re.search(r"! .*NaN.* planted\.cu:35", " ".join(done.stdout.split())), done.stdout
    missing = "the kernel has no global store or matrix store of floating-point values"
    summary, lines = (" ".join(tool("show", page, "asked:strided").stdout.split()) for page in ("summary", "lines"))
    assert f"not measured {missing}" in summary
    assert (
        f"nan_check matched no instruction of this kernel, which has {missing.removeprefix('the kernel has ')}" in lines
    )
    (launch,) = json.loads(tool("show", "results", "asked:strided", "--format", "json").stdout)["data"]["launches"]
    assert launch["stores"] is None


async def shows(stage: Stage, pattern: str) -> None:
    """Wait for a text; findings come when the results of a kernel are read."""
    for _ in range(20):
        if re.search(pattern, stage.text):
            return
        await stage.refresh()
    raise AssertionError(f"{pattern} is not on the screen:\n{stage.text}")


async def test_screen_shows_crash_line_and_question(run: tuple[Tool, subprocess.CompletedProcess[str]]) -> None:
    """No key: the failed kernel in red; one: its first finding; two: the line; ``R``: the question of NaN."""
    tool, _ = run
    traces = sorted((tool.folder / "trace").glob("*/event.log"))
    async with on_stage(Session(traces=(traces[0].parent,)), (120, 40)) as stage:
        assert re.search(r"4\s+trap\s+✘", stage.text), stage.text
        await shows(stage, LINE)
        await shows(stage, r"past .*! planted\.cu:27 out of bounds: store of 4 B")
        await stage.press("R")
        digit = re.search(r"(\d) -p nan_check +where does the first NaN come from\?", stage.text)
        assert digit is not None, stage.text
        await stage.press(digit[1])
        assert stage.app.session.next_request is not None
        assert stage.app.session.next_request.options == ("-p", "nan_check"), "two keys start the run that answers it"


async def test_recorded_trace_shows_line_and_time_on_the_first_screen() -> None:
    """A trace of an H100 with a strided kernel; no golden shows it."""
    async with on_stage(Session(traces=(NCU / "stores_trace",)), (120, 40)) as stage:
        await shows(stage, r"strided .*stores\.cu:13")
        await stage.press("down", "enter", "exclamation_mark")
        assert re.search(r"uncoalesced: ld\.global\.f32 PTX:30 stores\.cu:13, 32\.0 sectors per request", stage.text)
