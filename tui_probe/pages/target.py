"""The command that a run started, for who would type it again."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tui_probe.draw.table import safe

if TYPE_CHECKING:
    from tui_probe.trace.model import Run


def target_of(trace: Run) -> str:
    """As words for a shell; COMMAND where the trace does not say."""
    run = trace.run_info
    told = shlex.join(run.command) if run is not None and run.command else trace.state.command
    return safe(told or "") or "COMMAND"
