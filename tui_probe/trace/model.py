"""A trace as it is now: its kernels, launches, results and the state of its process.

A :class:`Trace` is filled by :class:`tui_probe.trace.follow.TraceFollower`, once for a finished trace and again and
again for one that is being written. What the trace does not tell is None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.trace.kernel import Kernel, Kernels
from tui_probe.trace.probing import Status
from tui_probe.trace.run import Run, State

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Kernel", "Kernels", "Run", "State", "Status", "Trace"]


class Trace(Run):
    """A trace directory: a run and its kernels."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.kernels = Kernels()
