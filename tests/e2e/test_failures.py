"""A kernel that failed is marked wherever it is shown, and its failure comes first."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.ui.conftest import on_stage
from tui_probe.ui.live.kernel_columns import COLUMNS
from tui_probe.ui.live.kernel_table import cell_role
from tui_probe.ui.session import Session

from .conftest import Tool

PROGRAM = [sys.executable, str(Path(__file__).with_name("programs") / "failing.py")]
STRAY = "CUDA_ERROR_ILLEGAL_ADDRESS ended the GPU context: illegal address 0x10 (4 bytes, global memory)"


def failures(tool: Tool, trace: Path) -> dict[str, str | None]:
    record = json.loads(tool("report", str(trace), "--format", "json").stdout)
    assert {kernel["status"] for kernel in record["kernels"]} == {"probed"}
    return {kernel["name"]: kernel["failure"] for kernel in record["kernels"]}


def test_failures_of_stray_access_have_its_source_line(tool: Tool) -> None:
    done, trace = tool.run([*PROGRAM, "refused", "stray"])
    assert done.stdout == tool.unprofiled(*PROGRAM, "refused", "stray").stdout
    reported = failures(tool, trace)
    assert str(reported["good"]).startswith("1 launch refused by the driver: CUDA_ERROR_INVALID_VALUE")
    assert str(reported["stray"]).startswith(STRAY)
    assert str(reported["stray"]).endswith("1 result dropped: CUDA_ERROR_ILLEGAL_ADDRESS")
    report = tool("report", str(trace), "--width", "300").stdout
    assert report.index(f"failed    ✘ #0 good: {reported['good']}") < report.index("#  kernel")
    assert f"failed    ✘ #1 stray: {STRAY} at line " in report
    assert " of probed.ptx (/home/ada/copy.cu:14)" in report
    assert report.count("probed ✘") == 2
    page = " ".join(tool("show", "summary", f"{trace}:1").stdout.split())
    assert page.startswith("stray failed ✘ CUDA_ERROR_ILLEGAL_ADDRESS ended the GPU context")
    assert "(/home/ada/copy.cu:14)" in page


def test_failures_of_several_probes_have_the_source_line(tool: Tool) -> None:
    """Whichever probe the launch had, and although line numbers of their texts differ."""
    _, trace = tool.run([*PROGRAM, "stray"], "-p", "dmat", "-p", "block_sched")
    page = " ".join(tool("show", "summary", f"{trace}:1").stdout.split())
    assert "probed.ptx (/home/ada/copy.cu:14), block" in page
    assert "/home/ada/copy.cu:14" in str(failures(tool, trace)["stray"])
    assert tool("report", str(trace)).stdout.startswith("failed    ✘ #1 stray: CUDA_ERROR_ILLEGAL_ADDRESS")


@pytest.mark.parametrize("word", ["stray", "trap"])
def test_failures_of_kernel_that_ran_unprobed(tool: Tool, word: str) -> None:
    """The simulated GPU names it; a kernel that was probed before it is not blamed."""
    _, trace = tool.run([*PROGRAM, word], "-k", "good")
    record = json.loads(tool("report", str(trace), "--format", "json").stdout)
    failure_of = {kernel["name"]: kernel["failure"] for kernel in record["kernels"]}
    assert "context" not in str(failure_of["good"])
    if record["run"]["context_failed"] is not None:
        assert "ended the GPU context" in str(failure_of[word])


def test_failures_of_good_run_are_none(tool: Tool) -> None:
    _, trace = tool.run(PROGRAM)
    assert failures(tool, trace) == {"good": None}
    assert "failed" not in tool("report", str(trace)).stdout


@pytest.mark.parametrize(("word", "mark", "role"), [("stray", "✘ probed", "bad"), ("good", "✔ probed", "probed")])
async def test_failed_kernel_is_red_in_table(tool: Tool, word: str, mark: str, role: str) -> None:
    """In a run of its own: the error of a kernel may drop the results of others."""
    _, trace = tool.run([*PROGRAM, word] if word == "stray" else PROGRAM)
    async with on_stage(Session(traces=(trace,)), (120, 24)) as stage:
        table = stage.live.table
        row = table.shown_rows[0]
        assert row.name == word
        assert mark in stage.text
        assert ("✘ #1 stray failed" in stage.text) == (word == "stray")
        roles = {column.key: cell_role(row, column) for column in COLUMNS}
        assert roles["status"] == role
        assert (roles["finding"] == "bad") == (word == "stray")
