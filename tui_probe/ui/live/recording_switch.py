"""Recording switch of a run that the screen follows, and the budgets of the run that are exhausted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.errors import ControlError
from tui_probe.launcher.control import ControlPage, page_of_trace

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

BUDGET_NAMES = {"trace_bytes": "trace", "result_files": "result files", "log_bytes": "log"}
BUDGET_OPTIONS = {name: f"--max-{name.replace('_', '-')}" for name in BUDGET_NAMES}


@dataclass(frozen=True)
class Recording:
    """State of recording, and the names of the budgets that are exhausted."""

    on: bool
    reached: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """Options of ``run`` that raise the limits."""


class RecordingSwitch:
    """Recording switch of a run, found through its traces. One thread calls ``look``; any may call ``toggle``."""

    def __init__(self) -> None:
        self._page: ControlPage | None = None

    def look(self, traces: Iterable[Path]) -> Recording | None:
        """Read the state; None if the run has no control page, or belongs to another user."""
        if self._page is None:
            self._page = next(filter(None, map(_control_page, traces)), None)
        if self._page is None:
            return None
        reached = [name for name, budget in self._page.budgets().items() if budget.reached]
        return Recording(
            self._page.is_on,
            tuple(BUDGET_NAMES[name] for name in reached),
            tuple(BUDGET_OPTIONS[name] for name in reached),
        )

    def toggle(self) -> bool | None:
        """Toggle recording; return whether it is on now, or None if ``look`` has found no switch."""
        page = self._page
        if page is None:
            return None
        page.switch(not page.is_on)
        return page.is_on


def _control_page(trace: Path) -> ControlPage | None:
    """Open the control page of the run of a trace; None if it cannot be opened."""
    path = page_of_trace(trace)
    try:
        return None if path is None else ControlPage.open(path)
    except ControlError:
        return None
