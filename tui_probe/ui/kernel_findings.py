"""What was found in kernels, for the table: read in the background, a little at a time, the largest shares first."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tui_probe.pages.findings.brief import Brief
    from tui_probe.pages.findings.found import Found
    from tui_probe.pages.kernel_row import KernelRow
    from tui_probe.trace.model import Trace
    from tui_probe.ui.feed import ProcessView
    from tui_probe.ui.views.view import Desk

PORTION = 0.1
"""Seconds of reading in a tick, or one kernel that takes longer."""
FEW = 8
"""Results up to which a kernel is read again with each that comes."""


def due(results: int, seen: int, *, running: bool) -> bool:
    """Is a kernel with so many results to be read again? Of many only as often as they double, and at the end."""
    return results > seen and (results <= FEW or results >= 2 * seen or not running)


def find_more(trace: Trace, rows: Iterable[KernelRow], seen: dict[int, int], *, running: bool) -> dict[int, Brief]:
    """What was found in the next kernels that have new results, by index. ``seen`` is how many each had when read."""
    wanted = [row for row in rows if due(row.results, seen.get(row.index, 0), running=running)]
    if not wanted:
        return {}
    from tui_probe.pages.findings.brief import brief

    found: dict[int, Brief] = {}
    end = time.monotonic() + PORTION
    for row in sorted(wanted, key=lambda row: -(row.time_share or 0.0)):
        found[row.index] = brief(trace, trace.kernels[row.index])
        seen[row.index] = row.results
        if time.monotonic() > end:
            break
    return found


class KernelFindings:
    """Looks at one process at a time: that which is shown."""

    def __init__(self, desk: Desk, tell: Callable[[ProcessView, Mapping[int, str]], None]) -> None:
        self.desk, self.tell = desk, tell
        self._busy = False
        self._done: ProcessView | None = None
        self._ran = True
        self._seen: dict[int, int] = {}
        self._trace: Trace | None = None
        self._found: dict[int, tuple[Found, ...]] = {}

    def look(self, process: ProcessView | None, *, running: bool) -> None:
        """Read a little of what is new; nothing where all of this was read, or is being read."""
        if process is None or process.trace is None or self._busy:
            return
        if process is self._done and running == self._ran:
            return
        if process.trace is not self._trace:
            self._trace, self._seen, self._found = process.trace, {}, {}
        self._busy = True
        job = partial(find_more, process.trace, process.kernels, self._seen, running=running)
        self.desk.analyses.submit((self, "findings"), job, partial(self._take, process, running))

    def found_in(self, index: int) -> tuple[Found, ...]:
        """What each probe found in a kernel of that process, as far as it was read."""
        return self._found.get(index, ())

    def _take(self, process: ProcessView, running: bool, found: dict[int, Brief]) -> None:
        self._busy = False
        if found:
            self._found |= {index: each.found for index, each in found.items()}
            self.tell(process, {index: each.words for index, each in found.items()})
        else:
            self._done, self._ran = process, running
