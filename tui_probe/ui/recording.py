"""The switch of the run that is shown, and which of its budgets are used up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.errors import ControlError
from tui_probe.launcher.control import ControlPage, page_of_trace

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

NAMES = {"trace_bytes": "trace", "result_files": "result files", "log_bytes": "log"}
OPTIONS = {name: f"--max-{name.replace('_', '-')}" for name in NAMES}


@dataclass(frozen=True)
class Recording:
    """Whether launches are recorded, and the budgets that have refused something, in words."""

    on: bool
    reached: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """Of ``run``, which raise them."""


class Switch:
    """Finds the control page of a run by its traces. ``look`` is for one thread, ``turn`` for any."""

    def __init__(self) -> None:
        self._page: ControlPage | None = None

    def look(self, traces: Iterable[Path]) -> Recording | None:
        """How it stands; None where the run has no page, or is another user's."""
        if self._page is None:
            self._page = next(filter(None, map(page_at, traces)), None)
        if self._page is None:
            return None
        reached = [name for name, budget in self._page.budgets().items() if budget.reached]
        return Recording(
            self._page.is_on, tuple(NAMES[name] for name in reached), tuple(OPTIONS[name] for name in reached)
        )

    def turn(self) -> bool | None:
        """Switch it over; whether it is on now. None where there is no switch."""
        page = self._page
        if page is None:
            return None
        page.switch(not page.is_on)
        return page.is_on


def page_at(trace: Path) -> ControlPage | None:
    """The control page of a trace's run, if it can be reached."""
    path = page_of_trace(trace)
    try:
        return None if path is None else ControlPage.open(path)
    except ControlError:
        return None
