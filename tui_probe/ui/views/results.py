"""The page of results: what was measured of each kernel in a few lines, computed in the background."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.ui.kernel_findings import due
from tui_probe.ui.views.text import TextView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.pages.kernel_row import KernelRow
    from tui_probe.trace.model import Trace
    from tui_probe.ui.feed import ProcessView
    from tui_probe.ui.views.view import Desk

PORTION = 0.1
"""Seconds of reading after which lines are shown."""


def next_kernels(
    trace: Trace, rows: Sequence[KernelRow], seen: dict[int, int], cells: int, *, running: bool
) -> dict[int, list[str]]:
    """Lines of the next kernels that have new results, by index; those with most GPU time first."""
    wanted = [row for row in rows if due(row.results, seen.get(row.index, 0), running=running)]
    if not wanted:
        return {}
    from tui_probe.pages.results_report import lines_of_kernel

    found, end = dict[int, list[str]](), time.monotonic() + PORTION
    for row in sorted(wanted, key=lambda row: -(row.time_share or 0.0)):
        found[row.index] = list(lines_of_kernel(trace, trace.kernels[row.index], cells, len(rows)))
        seen[row.index] = row.results
        if time.monotonic() > end:
            break
    return found


class ResultsView(TextView):
    """Results of one process, kernel by kernel.

    A kernel is read again as its results double, and at the end; one with few as they come.
    """

    def __init__(self, desk: Desk, name: str) -> None:
        super().__init__(desk, name, "no result yet: a probed launch saves one when it is drained")
        self._trace: Trace | None = None
        self._cells = 0
        self._busy = False
        self._seen: dict[int, int] = {}
        self._of: dict[int, list[str]] = {}
        self._done: tuple[int, bool] | None = None

    def look(self, process: ProcessView | None, *, running: bool) -> None:
        """Read a part of what was saved since the last look."""
        trace = process.trace if process else None
        if trace is not self._trace or self.width != self._cells:
            self._trace, self._cells, self._busy, self._done = trace, self.width, False, None
            self._seen, self._of = {}, {}
            self.show(())
        if trace is None or process is None or self._busy or not self._cells:
            return
        if self._done == (process.results, running):
            return
        self._busy = True
        job = partial(next_kernels, trace, process.kernels, self._seen, self._cells - 2, running=running)
        take = partial(self._take, trace, process, self._seen, running)
        self.desk.analyses.submit((self, "results"), job, take)

    def _take(
        self, trace: Trace, process: ProcessView, seen: dict[int, int], running: bool, found: Mapping[int, list[str]]
    ) -> None:
        if trace is not self._trace or seen is not self._seen:
            return
        self._busy = False
        if not found:
            self._done = (process.results, running)
        self._of.update(found)
        self.show(self._lines(process))
        if found:
            self.look(process, running=running)

    def _lines(self, process: ProcessView) -> list[Line]:
        """The kernels with most GPU time first, then what nobody knows the kernel of."""
        shares = {row.index: row.time_share or 0.0 for row in process.kernels}
        lines: list[Line] = []
        for index in sorted(self._of, key=lambda index: (-shares.get(index, 0.0), index)):
            lines += [((f" {line}", "" if line.startswith(" ") else "title"),) for line in self._of[index]]
        strays = process.results - sum(row.results for row in process.kernels)
        if strays > 0:
            lines.append(((f" {units.counted(strays, 'result')} of which the log does not say the kernel", "bad"),))
        return lines
