"""That the command of a run that has ended ran before: looked for once, and said at the end of the line of state."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tui_probe.trace.recent import run_before
from tui_probe.ui import keys

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.ui.feed import ProcessView, Snapshot
    from tui_probe.ui.views.view import Desk


class EarlierRun:
    """``words`` are of the process that was looked at last; "" where its command did not run before."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._looked: Path | None = None
        self.words = ""

    def look(self, snapshot: Snapshot, process: ProcessView | None) -> None:
        """Look for an earlier run in the background, as soon as this one has ended."""
        if process is None or snapshot.running or not snapshot.loaded or process.directory == self._looked:
            return
        self._looked, self.words = process.directory, ""
        self._desk.tables.submit((self, "before"), partial(run_before, process.directory), self._take)

    def _take(self, before: Path | None) -> None:
        again = next(key for key in keys.in_scope("live") if key.id == "record")
        self.words = "" if before is None else f"{keys.shown(again.keys[0])} compares with the run before"
