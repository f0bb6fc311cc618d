"""A probe written in the Python language, from the file to the analysis."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from tui_probe.trace.follow import open_trace

from .conftest import EXAMPLE, Tool

PROBE = Path(__file__).parent / "probes" / "lifetime.py"


def test_a_python_probe_runs_and_is_kept_as_toml(tool: Tool) -> None:
    result, trace = tool.run([*EXAMPLE, "--kernel", "saxpy"], "-p", str(PROBE))
    assert (result.returncode, result.stdout) == (0, "saxpy ok\n")
    (kernel,) = open_trace(trace).kernels
    assert (kernel.status, len(kernel.results)) == ("probed", 1)
    kept = tomllib.loads((trace / "probe.toml").read_text())
    assert kept["map"]["block_sched"]["regs"] == {"start": "u64", "elapsed": "u32", "smid": "u32"}
    (result_file,) = (trace / "result").iterdir()
    summary = subprocess.run(
        [sys.executable, "-I", trace / "read.py", result_file], capture_output=True, text=True, check=True
    ).stdout
    assert "  block_sched: 512 records in 64 blocks of 8 slots with room for 1\n" in summary
    assert "No.block:64 Running:" in tool("report", str(trace), "--page", "blocks").stdout
