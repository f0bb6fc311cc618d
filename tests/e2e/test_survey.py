"""A run that names no probe: its report says which kernels are slow, in which line, and why."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ui.conftest import on_stage
from tests.ui.test_jumps import cursor_line
from tui_probe.pages.findings_page import trace_questions
from tui_probe.pages.run_report import LOSSES_TITLE
from tui_probe.probe_files import DEFAULT_PROBE
from tui_probe.probe_files.catalogue import built_in_sets
from tui_probe.trace.follow import open_trace
from tui_probe.ui.session import Session

from .conftest import EXAMPLE, Tool

if TYPE_CHECKING:
    from tui_probe.trace.model import Trace

PROGRAM = str(Path(__file__).parent / "programs" / "three_faults.py")


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory, natives: Path) -> tuple[Tool, str, Trace]:
    """The tool, the report of three kernels that are launched once, and their trace."""
    tool = Tool(tmp_path_factory.mktemp("survey"), natives)
    done = tool("run", "--sim", "--", sys.executable, PROGRAM)
    assert (done.returncode, done.stdout.splitlines()[:3]) == (0, ["strided 0 0", "conflicts 0 0", "four_blocks 0 0"])
    (log,) = tool.folder.glob("trace/*/event.log")
    return tool, done.stdout, open_trace(log.parent)


def first_look_of(report: str) -> str:
    """The first section of a report, with its broken lines joined."""
    return " ".join(report.partition(f"{LOSSES_TITLE}\n")[2].partition("\n\n")[0].split())


def measured(trace: Trace, name: str) -> bool:
    """Return whether a probe has a result of every kernel."""
    return all(name in kernel.named_probes and kernel.named_probes[name].result_rows for kernel in trace.kernels)


def test_report_names_the_small_grid(survey: tuple[Tool, str, Trace]) -> None:
    text = first_look_of(survey[1])
    grid = "4 blocks leave 4 of the 8 SMs of the GPU idle; 4 blocks leave 104 of the 108 SMs of an A100 idle"
    assert f"#2 four_blocks idle SMs: {grid}" in text


def test_report_names_the_strided_store_with_its_line(survey: tuple[Tool, str, Trace]) -> None:
    place = r"st\.global\.u32 PTX:\d+ faults\.cu:8"
    assert re.search(rf"! #0 strided uncoalesced: {place}, 32\.0 sectors", first_look_of(survey[1]))


def test_report_names_the_bank_conflicts_of_an_unrolled_line(survey: tuple[Tool, str, Trace]) -> None:
    """Each of the 16 loads loses 6 % of all passes, their line 97 %."""
    place = r"ld\.shared\.u32 PTX:\d+ faults\.cu:18 \(16 instructions\)"
    pattern = rf"! #1 conflicts bank conflicts: {place}, 32\.0× .* 97% of all wavefronts lost to conflicts"
    assert re.search(pattern, first_look_of(survey[1]))


def test_lines_of_a_kernel_begin_with_the_probe_of_its_largest_loss(survey: tuple[Tool, str, Trace]) -> None:
    tool, _, trace = survey
    lines = tool("show", "lines", f"{trace.directory}:1").stdout
    probes = ["smem_conflicts_by_line", "gmem_sectors_by_line", "divergence_by_line"]
    assert re.findall(r"conflicts, launch 1 of #1, -p (\w+)", lines) == probes
    assert re.search(r"^ +17  +32\.00 .*faults\.cu:18", lines, re.MULTILINE)
    data = json.loads(tool("show", "lines", f"{trace.directory}:1", "--format", "json").stdout)["data"]
    assert [data["probe"], *(other["probe"] for other in data["others"])] == probes
    brief = tool("report", "--brief", str(trace.directory)).stdout
    assert f"tui-probe show lines {trace.directory}:0\n" in brief or f"show lines {trace.directory}:1\n" in brief


async def test_screen_shows_the_probe_of_a_finding(survey: tuple[Tool, str, Trace]) -> None:
    """``!`` opens the table of bank conflicts, ``u`` the other probes, and the source has values of all probes."""
    async with on_stage(Session(traces=(survey[2].directory,)), (120, 40)) as stage:
        await stage.press("j", "enter", "exclamation_mark")
        assert "-p smem_conflicts_by_line" in stage.inside
        assert cursor_line(stage).split()[1:3] == ["17", "32.00"]
        await stage.press("u")
        assert "-p gmem_sectors_by_line" in stage.inside
        await stage.press("2")
        assert re.search(r"18 .*! bank conflicts", stage.inside), stage.inside
        shown = set()
        for _ in range(20):
            shown |= set(re.findall(r"-p (\w+)", stage.inside))
            await stage.press("u")
        assert shown == {"smem_conflicts_by_line", "gmem_sectors_by_line", "divergence_by_line"}


def test_probe_without_a_result_is_named(survey: tuple[Tool, str, Trace]) -> None:
    """A launch with counting probes has no times: that is in the report, the data and the open questions."""
    tool, report, trace = survey
    sentence = "not measured by -p block_sched: every kernel ran once, with other probes"
    assert sentence in " ".join(report.split())
    data = json.loads(tool("report", str(trace.directory), "--format", "json").stdout)
    assert [probe["probe"] for probe in data["run"]["probes_not_measured"]] == ["block_sched"]
    for kernel in data["kernels"]:
        assert {probe["probe"] for probe in kernel["probes"] if probe["not_measured"]} == {"block_sched"}
    asked = {question.option for question in trace_questions(trace)}
    assert "-p block_sched" in asked
    assert not {"-p gmem_sectors_by_line", "-p smem_conflicts_by_line"} & asked


def test_default_run_measures_every_kernel_with_all_probes(tool: Tool) -> None:
    done = tool("demo", "--sim", "--kernel", "strided_store", "--tracedir", "kept")
    assert done.returncode == 0, done.stderr
    (log,) = tool.folder.glob("kept/*/event.log")
    trace = open_trace(log.parent)
    assert [list(kernel.named_probes) for kernel in trace.kernels] == [list(built_in_sets()[DEFAULT_PROBE].choices)]
    assert all(measured(trace, name) for name in built_in_sets()[DEFAULT_PROBE].choices)
    assert "not measured by" not in done.stdout
    assert "running 100%" not in done.stdout
    assert "uncoalesced: st.global.u32 PTX:32 strided_store.cu:4, 8.0 sectors per request" in first_look_of(done.stdout)
    assert "strided_store.cu:4 st.global 8 sectors, ideal 4\n" in done.stdout, "the table names the worst line"


def test_benchmark_of_a_default_run_times_one_probe(tool: Tool) -> None:
    done = tool("run", "--sim", "--benchmark", "--no-report", "--", *EXAMPLE, "--kernel", "zero_fill")
    assert done.returncode == 0, done.stderr
    (log,) = tool.folder.glob("trace/*/event.log")
    info = open_trace(log.parent).run_info
    assert info is not None
    assert info.probes == (built_in_sets()[DEFAULT_PROBE].benchmark,)
