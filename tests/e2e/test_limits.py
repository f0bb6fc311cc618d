"""Limiters of kernels in table and report: counted on the simulated GPU, with times as on an H100."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import tui_probe.simgpu.examples
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.finding_summary import summarize_findings

from .conftest import Tool

DEMO = Path(tui_probe.simgpu.examples.__path__[0]) / "demo.py"
H100 = "[init] device 0 sms 132 clock 1980000 cc 9.0 name NVIDIA H100 80GB HBM3"


def as_on_an_h100(trace: Path, ns: int) -> None:
    """A trace of the simulated GPU as if each launch had taken so long on another one."""
    run = json.loads((trace / "run.json").read_text())
    run["driver"] = {"path": "/usr/lib/libcuda.so.1", "simulated": False}
    (trace / "run.json").write_text(json.dumps(run))
    log = re.sub(r"^\[(init\] device|time\] launch) .*\n", "", (trace / "event.log").read_text(), flags=re.MULTILINE)
    times = "".join(f"[time] launch {i} kernel {i} key {i} original ns {ns} for 1\n" for i in range(7))
    (trace / "event.log").write_text(f"{H100}\n{log}{times}")


def test_limiter_precedes_counts(tool: Tool) -> None:
    _, trace = tool.run([sys.executable, str(DEMO)], "-p", "what_limits")
    read = open_trace(trace)
    assert not any("launch" in summarize_findings(read, kernel).text for kernel in read.kernels), (
        "no times on a simulated GPU"
    )
    as_on_an_h100(trace, 2000)
    read = open_trace(trace)
    findings = [summarize_findings(read, kernel).text.removeprefix("! ") for kernel in read.kernels]
    limiter = re.compile(r"launch; (?:(?:small grid|idle SMs): \d+ blocks |\S+ k?M?B read, )")
    assert all(limiter.match(finding.replace("\u00a0", " ")) for finding in findings), findings
    report = tool("report", str(trace), "--page", "summary").stdout
    assert report.count("launch bound: 2.00 µs is close to launch overhead\n") == 7
