"""What is run: a fill of 32 MiB, one launch of it probed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.evals.evaluation import PROGRAMS, PYTHON, Collection

if TYPE_CHECKING:
    from tui_probe.evals.evaluation import Setting


def collect(setting: Setting) -> list[Collection]:
    """The trace of a plain fill."""
    elements = 1 << 14 if setting.simulated else 1 << 24
    program = (PYTHON, f"{PROGRAMS}/fill.py", "--elements", str(elements), "--times", "1")
    options = ("-p", "block_sched", "--launches", "all", "--no-source", "--max-trace-bytes", "64M")
    return [Collection("plain", (*program, "plain"), options)]
