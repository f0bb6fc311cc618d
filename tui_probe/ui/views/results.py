"""The page of results: a line each, computed in the background, the newest last."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import Line, pad
from tui_probe.ui.views.text import TextView

if TYPE_CHECKING:
    from tui_probe.pages.result_lines import ResultLine
    from tui_probe.trace.model import Trace
    from tui_probe.ui.feed import ProcessView
    from tui_probe.ui.views.view import Desk

PORTION = 0.1
"""Seconds of work after which lines are shown."""
MOST_LINES = 20_000
NAME_CELLS = 18
"""Of a kernel's name; more would push a block schedule off a screen of 80 columns."""


def next_lines(trace: Trace, first: int, last: int) -> tuple[int, list[ResultLine]]:
    """Analyse results from ``first`` on for a tenth of a second; returns where to go on, and their lines."""
    end = time.monotonic() + PORTION
    lines = []
    from tui_probe.pages.result_lines import result_lines

    for line in result_lines(trace, first, last):
        lines.append(line)
        if time.monotonic() > end:
            break
    return first + len(lines), lines


class ResultsView(TextView):
    """Results of one process. Follows the end until it is scrolled up."""

    def __init__(self, desk: Desk, name: str) -> None:
        super().__init__(desk, name, "no result yet: a probed launch saves one when it is drained")
        self._trace: Trace | None = None
        self._done = 0
        self._busy = False
        self._all: list[Line] = []

    def look(self, process: ProcessView | None) -> None:
        """Analyse what was saved since the last look."""
        trace = process.trace if process else None
        if trace is not self._trace:
            self._trace, self._done, self._all, self._busy = trace, 0, [], False
            self.show(())
        if trace is None or process is None or self._busy or self._done >= process.results:
            return
        self._busy = True
        job = partial(next_lines, trace, self._done, process.results)
        self.desk.analyses.submit((self, "results"), job, partial(self._take, trace, process))

    def _take(self, trace: Trace, process: ProcessView, result: tuple[int, list[ResultLine]]) -> None:
        if trace is not self._trace:
            return
        self._busy = False
        self._done, lines = result
        at_end = self.top >= len(self._all) - self.height
        names = {row.index: row.demangled for row in process.kernels}
        self._all += [self._line(line, names) for line in lines]
        del self._all[:-MOST_LINES]
        if at_end:
            self.top = len(self._all)
        self.show(self._all)
        self.look(process)

    @staticmethod
    def _line(line: ResultLine, names: dict[int, str]) -> Line:
        name = names.get(line.kernel, "") if line.kernel is not None else ""
        return (
            (" " + pad(line.launch, 12) + " ", "dim"),
            (pad(shorten(name, NAME_CELLS), NAME_CELLS), "soft"),
            ("  ", ""),
            (line.words, "bad" if line.failed else ""),
        )
