"""A probe written in the Python language, from the file to the analysis."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tui_probe.pages.views import kind_of
from tui_probe.probekit.probe_results import count_viewable
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.finding_summary import summarize_findings

from .conftest import SAXPY, Tool

PROBE = Path(__file__).parent / "probes" / "lifetime.py"


def test_a_python_probe_runs_and_is_kept_as_toml(tool: Tool) -> None:
    result, trace = tool.run(SAXPY, "-p", str(PROBE))
    assert (result.returncode, result.stdout) == (0, "saxpy ok\n")
    (kernel,) = open_trace(trace).kernels
    assert (kernel.status, len(kernel.results)) == ("probed", 1)
    copied = tomllib.loads((trace / "probe.toml").read_text())
    assert copied["map"]["block_sched"]["regs"] == {"start": "u64", "elapsed": "u32", "smid": "u32"}
    (result_file,) = (trace / "result").iterdir()
    summary = subprocess.run(
        [sys.executable, "-I", trace / "read.py", result_file], capture_output=True, text=True, check=True
    ).stdout
    assert "  block_sched: 512 records; 64 blocks have 8 slots each; a slot has room for 1\n" in summary
    assert "64 blocks, cycles per slot: " in tool("report", str(trace), "--page", "blocks").stdout


def test_custom_probe_counts_are_on_results_page(tool: Tool) -> None:
    """Sums by field of a map that lanes add to; of records how many, and what is in their fields."""
    programs = Path(__file__).parents[1] / "dsl" / "programs"
    run, trace = tool.run(SAXPY, "-p", str(programs / "sites.py"))
    assert run.returncode == 0
    page = tool("report", str(trace), "--page", "results").stdout
    assert "#0 saxpy  sites\n  launch 0: accesses executed 49 152, accesses moved 196 608," in page
    run, trace = tool.run(SAXPY, "-p", str(programs / "dmat.py"))
    rows = json.loads(tool("report", str(trace), "--page", "results", "--format", "json").stdout)["results"]
    value_of = {row["figure"]: row["value"] for row in rows}
    assert {row["probe"] for row in rows} == {"dmat"}
    assert (value_of["dmat.kept"], value_of["dmat.attempts"]) == (3 * 16384, 3 * 16384)
    assert 0 < value_of["dmat.address.least"] < value_of["dmat.address.most"]


def test_finding_of_custom_probe_is_its_first_value(tool: Tool, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "tui_probe", "new-probe", "gap"], cwd=tmp_path, check=True)
    trace = open_trace(tool.run(SAXPY, "-p", str(tmp_path / "gap.py"))[1])
    kernel = next(kernel for kernel in trace.kernels if kernel.status == "probed")
    assert re.fullmatch(r"gap: median [\d ]+ cycles, max [\d ]+", summarize_findings(trace, kernel).words)
    why = count_viewable(trace, kind_of("lines"))[1] or ""
    assert re.match("the kernel was probed with gap.*: run with -p", why)
