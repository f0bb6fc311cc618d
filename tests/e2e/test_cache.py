"""The cache of prepared kernels, as a user sees it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tui_probe.trace.follow import open_trace

from .conftest import EXAMPLE, Tool

PROGRAMS = Path(__file__).parent / "programs"
COMMAND = [*EXAMPLE, "--kernel", "saxpy"]


def counts(trace: Path) -> object:
    return json.loads((trace / "run.json").read_text())["cache"]


def test_hits_are_in_the_record(tool: Tool) -> None:
    first, trace = tool.run(COMMAND)
    assert "cache" not in first.stderr
    assert counts(trace) == {"hits": 0, "misses": 1}
    second, trace = tool.run(COMMAND)
    assert second.stdout == "saxpy ok\n"
    assert second.stderr.splitlines()[1:] == []  # scripts read the trace in the last word of it
    assert counts(trace) == {"hits": 1, "misses": 0}
    (kernel,) = open_trace(trace).kernels
    assert (kernel.status, len(kernel.results)) == ("probed", 1)


def test_kernels_launched_once_are_probed_in_the_first_run(tool: Tool) -> None:
    """As on a GPU, launches wait a second in all: the kernels are prepared while the program does something else."""
    cache = Path(os.environ["XDG_CACHE_HOME"]) / "tui-probe" / "kernels"
    entries = 4 + 1  # kernels, and the PTX that they are from
    command = [sys.executable, str(PROGRAMS / "waits_for_kernels.py"), str(cache), str(entries)]
    result, trace = tool.run(["env", "TUI_PROBE_PATIENT=", *command])
    assert result.stdout == "5\n", result.stderr
    kernels = open_trace(trace).kernels
    assert [(kernel.name, kernel.status, len(kernel.results)) for kernel in kernels] == [
        (name, "probed", 1) for name in ("first", "second", "third", "fourth")
    ]
    for kernel in kernels:
        log = next(trace.glob(f"kernel/{kernel.index}_*/process.log")).read_text()
        assert "prepared ahead of this launch" in log
    assert counts(trace) == {"hits": 0, "misses": 4}


def test_without_the_cache(tool: Tool) -> None:
    for _ in range(2):
        result, trace = tool.run(COMMAND, "--no-cache")
        assert "cache" not in result.stderr
        assert counts(trace) is None
