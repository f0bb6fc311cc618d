"""Results and findings of each kernel, read in the background for the table and the page of results."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from tui_probe.draw import units
from tui_probe.ui.views.view import TextView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.trace.model import Trace
    from tui_probe.ui.live.snapshots import ProcessView
    from tui_probe.ui.views.view import ViewHost
    from tui_probe.verdicts.finding_summary import FindingSummary
    from tui_probe.verdicts.findings import ResultFindings
    from tui_probe.verdicts.kernel_snapshot import KernelSnapshot

PORTION_SECONDS = 0.1
"""Seconds of reading after which its outcome is shown; a kernel that takes longer is read whole."""
FEW_RESULTS = 8
"""Results up to which a kernel is read again with each new one."""
NOTABLE_SHARE = 0.01
"""Share of the program's time from which on a kernel without results is read."""

Outcome = TypeVar("Outcome")


def is_due(results: int, read_count: int, *, is_running: bool) -> bool:
    """Return whether to read a kernel with ``results`` results again, of which ``read_count`` were read.

    With many results only when they have doubled, and at the end of the run.
    """
    return results > read_count and (results <= FEW_RESULTS or results >= 2 * read_count or not is_running)


def due_rows(
    rows: Iterable[KernelSnapshot], read_counts: Mapping[int, int], *, is_running: bool
) -> list[KernelSnapshot]:
    """Return the kernels to read again; ``read_counts`` has the number of results of each that were read, by index."""
    return [row for row in rows if is_due(row.results, read_counts.get(row.index, 0), is_running=is_running)]


def read_portion(
    rows: Iterable[KernelSnapshot], read_counts: dict[int, int], read_kernel: Callable[[int], Outcome]
) -> dict[int, Outcome]:
    """Read kernels for ``PORTION_SECONDS``, those with most GPU time first. Return the outcomes by index.

    Adds the number of results of the kernels to ``read_counts``.
    """
    outcomes: dict[int, Outcome] = {}
    deadline = time.monotonic() + PORTION_SECONDS
    for row in sorted(rows, key=lambda row: row.share or 0.0, reverse=True):
        outcomes[row.index] = read_kernel(row.index)
        read_counts[row.index] = row.results
        if time.monotonic() > deadline:
            break
    return outcomes


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
    trace: Trace, rows: Iterable[KernelSnapshot], read_counts: dict[int, int], *, is_running: bool
) -> dict[int, FindingSummary]:
    """Return findings of the next kernels with new results, by index; ``read_counts`` as for ``read_portion``."""
    rows_to_read = due_rows(rows, read_counts, is_running=is_running)
    if not is_running:
        rows_to_read += [row for row in notable_without_results(trace, rows) if row.index not in read_counts]
    if not rows_to_read:
        return {}
    from tui_probe.verdicts.finding_summary import summarize_findings

    return read_portion(rows_to_read, read_counts, lambda index: summarize_findings(trace, trace.kernels[index]))


def computing_line() -> Line:
    """The line in place of findings that are not read yet."""
    return ((" findings        computing…", "dim"),)


class KernelFindings:
    """Findings of the kernels of the process that is shown, read in the background."""

    def __init__(
        self, view_host: ViewHost, add_findings: Callable[[ProcessView, Mapping[int, FindingSummary]], None]
    ) -> None:
        self.view_host, self._add_findings = view_host, add_findings
        self._is_busy = False
        self._finished_process: ProcessView | None = None
        """Process of which all was read."""
        self._was_running = True
        """True if it was running when all was read."""
        self._read_counts: dict[int, int] = {}
        """Number of results of each kernel that were read, by its index."""
        self._trace: Trace | None = None
        self._summaries: dict[int, FindingSummary] = {}

    def update(self, process: ProcessView | None, *, is_running: bool) -> None:
        """Read a little of what is new; nothing where all of this was read, or is being read."""
        if process is None or process.trace is None or self._is_busy:
            return
        if process is self._finished_process and is_running == self._was_running:
            return
        if process.trace is not self._trace:
            self._trace, self._read_counts, self._summaries = process.trace, {}, {}
        self._is_busy = True
        job = partial(find_more, process.trace, process.kernels, self._read_counts, is_running=is_running)
        self.view_host.analyses.submit((self, "findings"), job, partial(self._take, process, is_running))

    def has_read(self, index: int) -> bool:
        """Return whether results of a kernel of that process were read."""
        return index in self._summaries

    def results_of(self, index: int) -> tuple[ResultFindings, ...] | None:
        """Return what each probe found in a kernel of that process; None if no result of it was read yet."""
        return self._summaries[index].results if index in self._summaries else None

    def limits_of(self, index: int) -> tuple[str, ...]:
        """Return the limiter of a kernel of that process in words; none where it is not known."""
        return self._summaries[index].limited if index in self._summaries else ()

    def _take(self, process: ProcessView, is_running: bool, summaries: dict[int, FindingSummary]) -> None:
        self._is_busy = False
        if summaries:
            self._summaries |= summaries
            self._add_findings(process, summaries)
        else:
            self._finished_process, self._was_running = process, is_running


def next_kernels(
    trace: Trace, rows: Sequence[KernelSnapshot], read_counts: dict[int, int], cells: int, *, is_running: bool
) -> dict[int, list[str]]:
    """Return lines of the next kernels that have new results, by index; ``read_counts`` as for ``read_portion``."""
    rows_to_read = due_rows(rows, read_counts, is_running=is_running)
    if not rows_to_read:
        return {}
    from tui_probe.pages.views.results import kernel_results_lines

    def lines_of(index: int) -> list[str]:
        return list(kernel_results_lines(trace, trace.kernels[index], cells, len(rows)))

    return read_portion(rows_to_read, read_counts, lines_of)


class ResultsView(TextView):
    """Results of one process, kernel by kernel.

    A kernel is read again as its results double, and at the end; one with few as they come.
    """

    def __init__(self, view_host: ViewHost, name: str) -> None:
        super().__init__(view_host, name, "no result yet; results are saved after probed launches end")
        self._trace: Trace | None = None
        self._cells = 0
        self._is_busy = False
        self._read_counts: dict[int, int] = {}
        """Number of results of each kernel that were read, by its index."""
        self._kernel_lines: dict[int, list[str]] = {}
        self._finished_state: tuple[int, bool] | None = None
        """Results of the process when all were read, and whether it was running."""

    def update(self, process: ProcessView | None, *, is_running: bool) -> None:
        """Read a part of the results that were saved since the last update."""
        trace = process.trace if process else None
        if trace is not self._trace or self.width != self._cells:
            self._trace, self._cells, self._is_busy, self._finished_state = trace, self.width, False, None
            self._read_counts, self._kernel_lines = {}, {}
            self.show(())
        if trace is None or process is None or self._is_busy or not self._cells:
            return
        if self._finished_state == (process.results, is_running):
            return
        self._is_busy = True
        job = partial(next_kernels, trace, process.kernels, self._read_counts, self._cells - 2, is_running=is_running)
        take = partial(self._take, trace, process, self._read_counts, is_running)
        self.view_host.analyses.submit((self, "results"), job, take)

    def _take(
        self,
        trace: Trace,
        process: ProcessView,
        read_counts: dict[int, int],
        is_running: bool,
        lines: Mapping[int, list[str]],
    ) -> None:
        if trace is not self._trace or read_counts is not self._read_counts:
            return
        self._is_busy = False
        if not lines:
            self._finished_state = (process.results, is_running)
        self._kernel_lines.update(lines)
        self.show(self._lines(process))
        if lines:
            self.update(process, is_running=is_running)

    def _lines(self, process: ProcessView) -> list[Line]:
        """Return the lines of kernels, those with most GPU time first, then the number of results without a kernel."""
        shares = {row.index: row.share or 0.0 for row in process.kernels}
        lines: list[Line] = []
        for index in sorted(self._kernel_lines, key=lambda index: (-shares.get(index, 0.0), index)):
            lines += [((f" {line}", "" if line.startswith(" ") else "title"),) for line in self._kernel_lines[index]]
        unassigned_results = process.results - sum(row.results for row in process.kernels)
        if unassigned_results > 0:
            lines.append(((f" {units.counted(unassigned_results, 'result')} of unknown kernels", "bad"),))
        return lines
