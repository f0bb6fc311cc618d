"""Results and findings of each kernel, read in the background for the table and the page of results."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.ui.views.view import TextView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.trace.model import Trace
    from tui_probe.ui.live.snapshots import ProcessView
    from tui_probe.ui.views.view import Desk
    from tui_probe.verdicts.finding_summary import FindingSummary
    from tui_probe.verdicts.findings import ResultFindings
    from tui_probe.verdicts.kernel_snapshot import KernelSnapshot

FINDING_PORTION = 0.1
"""Seconds of reading in a tick, or one kernel that takes longer."""
FEW_RESULTS = 8
"""Results up to which a kernel is read again with each that comes."""
NOTABLE_SHARE = 0.01
"""The part of the program's time from which on a kernel without results is read."""
RESULT_PORTION = 0.1
"""Seconds of reading after which lines are shown."""


def due(results: int, seen: int, *, running: bool) -> bool:
    """Return whether to read a kernel with ``results`` results again: many only when they have doubled, and at the
    end.
    """
    return results > seen and (results <= FEW_RESULTS or results >= 2 * seen or not running)


def notable_without_results(trace: Trace, rows: Iterable[KernelSnapshot]) -> Iterator[KernelSnapshot]:
    """Yield kernels without results whose launches may tell something: one with a fault, or with time.

    A trace may have thousands of such kernels; those with little time are not read.
    """
    from tui_probe.verdicts.simulator_findings import faulty_kernels

    faulty = faulty_kernels(trace)
    for row in rows:
        if not row.results and (row.failures or row.name in faulty or (row.share or 0.0) >= NOTABLE_SHARE):
            yield row


def find_more(
    trace: Trace, rows: Iterable[KernelSnapshot], seen: dict[int, int], *, running: bool
) -> dict[int, FindingSummary]:
    """Return findings of the next kernels with new results, by index. ``seen``: number of results of each when read."""
    wanted = [row for row in rows if due(row.results, seen.get(row.index, 0), running=running)]
    if not running:
        wanted += [row for row in notable_without_results(trace, rows) if row.index not in seen]
    if not wanted:
        return {}
    from tui_probe.verdicts.finding_summary import summarize_findings

    summaries: dict[int, FindingSummary] = {}
    end = time.monotonic() + FINDING_PORTION
    for row in sorted(wanted, key=lambda row: -(row.share or 0.0)):
        summaries[row.index] = summarize_findings(trace, trace.kernels[row.index])
        seen[row.index] = row.results
        if time.monotonic() > end:
            break
    return summaries


def computing_line() -> Line:
    """The line in place of findings that are not read yet."""
    return ((" findings        computing…", "dim"),)


class KernelFindings:
    """Looks at one process at a time: that which is shown."""

    def __init__(self, desk: Desk, add_findings: Callable[[ProcessView, Mapping[int, FindingSummary]], None]) -> None:
        self.desk, self._add_findings = desk, add_findings
        self._busy = False
        self._done: ProcessView | None = None
        self._ran = True
        self._seen: dict[int, int] = {}
        self._trace: Trace | None = None
        self._summaries: dict[int, FindingSummary] = {}

    def update(self, process: ProcessView | None, *, running: bool) -> None:
        """Read a little of what is new; nothing where all of this was read, or is being read."""
        if process is None or process.trace is None or self._busy:
            return
        if process is self._done and running == self._ran:
            return
        if process.trace is not self._trace:
            self._trace, self._seen, self._summaries = process.trace, {}, {}
        self._busy = True
        job = partial(find_more, process.trace, process.kernels, self._seen, running=running)
        self.desk.analyses.submit((self, "findings"), job, partial(self._take, process, running))

    def has_read(self, index: int) -> bool:
        """Return whether results of a kernel of that process were read."""
        return index in self._summaries

    def found_in(self, index: int) -> tuple[ResultFindings, ...] | None:
        """Return what each probe found in a kernel of that process; None if no result of it was read yet."""
        return self._summaries[index].results if index in self._summaries else None

    def limits_of(self, index: int) -> tuple[str, ...]:
        """Return the limiter of a kernel of that process in words; none where it is not known."""
        return self._summaries[index].limited if index in self._summaries else ()

    def _take(self, process: ProcessView, running: bool, summaries: dict[int, FindingSummary]) -> None:
        self._busy = False
        if summaries:
            self._summaries |= summaries
            self._add_findings(process, summaries)
        else:
            self._done, self._ran = process, running


def next_kernels(
    trace: Trace, rows: Sequence[KernelSnapshot], seen: dict[int, int], cells: int, *, running: bool
) -> dict[int, list[str]]:
    """Lines of the next kernels that have new results, by index; those with most GPU time first."""
    wanted = [row for row in rows if due(row.results, seen.get(row.index, 0), running=running)]
    if not wanted:
        return {}
    from tui_probe.pages.views.results import kernel_results_lines

    lines, end = dict[int, list[str]](), time.monotonic() + RESULT_PORTION
    for row in sorted(wanted, key=lambda row: -(row.share or 0.0)):
        lines[row.index] = list(kernel_results_lines(trace, trace.kernels[row.index], cells, len(rows)))
        seen[row.index] = row.results
        if time.monotonic() > end:
            break
    return lines


class ResultsView(TextView):
    """Results of one process, kernel by kernel.

    A kernel is read again as its results double, and at the end; one with few as they come.
    """

    def __init__(self, desk: Desk, name: str) -> None:
        super().__init__(desk, name, "no result yet; results are saved after probed launches end")
        self._trace: Trace | None = None
        self._cells = 0
        self._busy = False
        self._seen: dict[int, int] = {}
        self._of: dict[int, list[str]] = {}
        self._done: tuple[int, bool] | None = None

    def update(self, process: ProcessView | None, *, running: bool) -> None:
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
        self,
        trace: Trace,
        process: ProcessView,
        seen: dict[int, int],
        running: bool,
        lines: Mapping[int, list[str]],
    ) -> None:
        if trace is not self._trace or seen is not self._seen:
            return
        self._busy = False
        if not lines:
            self._done = (process.results, running)
        self._of.update(lines)
        self.show(self._lines(process))
        if lines:
            self.update(process, running=running)

    def _lines(self, process: ProcessView) -> list[Line]:
        """The kernels with most GPU time first, then what no one knows the kernel of."""
        shares = {row.index: row.share or 0.0 for row in process.kernels}
        lines: list[Line] = []
        for index in sorted(self._of, key=lambda index: (-shares.get(index, 0.0), index)):
            lines += [((f" {line}", "" if line.startswith(" ") else "title"),) for line in self._of[index]]
        strays = process.results - sum(row.results for row in process.kernels)
        if strays > 0:
            lines.append(((f" {units.counted(strays, 'result')} of unknown kernels", "bad"),))
        return lines
