"""Programs that set parameters on a function and launch with cuLaunchGrid are probed as any other."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from .conftest import Tool

PROGRAM = Path(__file__).with_name("programs") / "launching_in_steps.py"


def test_launches_in_steps_are_probed_with_what_was_set(tool: Tool) -> None:
    result, directory = tool.run([sys.executable, str(PROGRAM)], "-p", "gmem_bytes", "--launches", "all")
    # 7, then 1, 10 and 100 for all; 100 once more for two blocks, and once more for the first.
    assert (result.returncode, result.stdout) == (0, "318 218 118\n")
    trace = open_trace(directory)
    assert [(kernel.name, kernel.launches) for kernel in trace.kernels] == [("add", 5)]
    assert trace.state.launches_probed == 5
    lines = (directory / "event.log").read_text().splitlines()
    shapes = [line.split(" shared ")[0] for line in lines if " block 32 1 1 " in line and line.startswith("[exec]")]
    assert shapes == [f"[exec] grid {width} 1 1 block 32 1 1" for width in (3, 3, 3, 2, 1)]
