"""Sources of the feed: rows of kernels, the recording switch with its budgets, and memory returned to the system."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from tui_probe.errors import ControlError
from tui_probe.launcher.control import ControlPage, page_of_trace
from tui_probe.verdicts.kernel_snapshot import KernelSnapshot, kernel_snapshot, may_have_folder, snapshot_from_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from tui_probe.trace.model import Trace
    from tui_probe.verdicts.finding_summary import FindingSummary

AT_ONCE = 100
"""Folders read together with the log: more than a screen has lines."""
LEAST_CHANGE = 5e-4
"""A share that changed by less is not shown anew: every launch changes those of all kernels."""
BUDGET_NAMES = {"trace_bytes": "trace", "result_files": "result files", "log_bytes": "log"}
BUDGET_OPTIONS = {name: f"--max-{name.replace('_', '-')}" for name in BUDGET_NAMES}
RETURN_INTERVAL = 120.0
"""Seconds after which it is given back again."""


class KernelRows:
    """Rows are made anew only for kernels that changed. A folder takes a tenth of a millisecond to read."""

    def __init__(self) -> None:
        self._rows: dict[int, KernelSnapshot] = {}
        self._read: set[int] = set()
        self._unread: dict[int, None] = {}
        self._findings: dict[int, FindingSummary] = {}

    @property
    def complete(self) -> bool:
        """True if all directories have been read."""
        return not self._unread

    def all(self) -> tuple[KernelSnapshot, ...]:
        """The rows, in the order in which their kernels appeared."""
        return tuple(self._rows.values())

    def clear(self) -> None:
        """Forget all."""
        self._rows.clear()
        self._read.clear()
        self._unread.clear()
        self._findings.clear()

    def update(self, trace: Trace, changed: Iterable[int]) -> None:
        """Make the rows of these kernels anew; folders are read of the first that were never read before."""
        device, left = trace.state.device, AT_ONCE
        for index in sorted(changed):
            kernel = trace.kernels[index]
            if index in self._read or not may_have_folder(kernel):
                self._put(kernel_snapshot(kernel, device))
            elif left:
                left -= 1
                self._read_row(trace, index)
            else:
                self._put(snapshot_from_log(kernel, device))
                self._unread[index] = None
        self._share(trace)

    def find(self, findings: Mapping[int, FindingSummary]) -> None:
        """Take what was found in kernels, by index."""
        for index, found in findings.items():
            self._findings[index] = found
            if index in self._rows:
                self._put(self._rows[index])
        self._share_cycles()

    def _put(self, row: KernelSnapshot) -> None:
        summary = self._findings.get(row.index)
        if summary is not None:
            row = replace(
                row,
                finding=summary.words,
                limiter=summary.limiter,
                worst_line=summary.worst_line,
                brief=summary.brief,
                first=summary.first,
                cycles=summary.cycles,
            )
        if row != self._rows.get(row.index):
            self._rows[row.index] = row

    def _share(self, trace: Trace) -> None:
        """Shares of the GPU time are parts of a whole that grows also while a kernel rests."""
        total = trace.gpu_ns
        if total <= 0:
            self._share_cycles()
            return
        for row in list(self._rows.values()):
            if row.gpu_time is not None:
                share = row.gpu_time.total_ns / total
                if row.time_share is None or abs(share - row.time_share) >= LEAST_CHANGE:
                    self._rows[row.index] = replace(row, time_share=share)

    def _share_cycles(self) -> None:
        """Set shares without times: of the cycles of all launches, if known for all kernels with results."""
        rows = list(self._rows.values())
        measured = [row for row in rows if row.results]
        total = sum((row.cycles or 0.0) * row.launches for row in measured)
        known = total > 0 and all(row.cycles is not None and row.time_share is None for row in rows if row.results)
        for row in rows:
            share = row.cycles * row.launches / total if known and row.results and row.cycles is not None else None
            if share != row.cycle_share:
                self._rows[row.index] = replace(row, cycle_share=share)

    def read(self, trace: Trace, wanted: Iterable[int], enough: Callable[[], bool]) -> bool:
        """Read at least one folder, of the ``wanted`` first, until it is ``enough``; whether any was left to read."""
        some = False
        for index in chain(wanted, list(self._unread)):
            if index in self._unread:
                self._read_row(trace, index)
                some = True
                if enough():
                    break
        return some

    def _read_row(self, trace: Trace, index: int) -> None:
        self._put(kernel_snapshot(trace.kernels[index], trace.state.device))
        self._read.add(index)
        self._unread.pop(index, None)


@dataclass(frozen=True)
class Recording:
    """State of recording, and the names of the budgets that are exhausted."""

    on: bool
    reached: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """Options of ``run`` that raise the limits."""


class RecordingSwitch:
    """Finds the control page of a run by its traces. ``look`` is for one thread, ``turn`` for any."""

    def __init__(self) -> None:
        self._page: ControlPage | None = None

    def look(self, traces: Iterable[Path]) -> Recording | None:
        """Read the state; None if the run has no page, or belongs to another user."""
        if self._page is None:
            self._page = next(filter(None, map(page_at, traces)), None)
        if self._page is None:
            return None
        reached = [name for name, budget in self._page.budgets().items() if budget.reached]
        return Recording(
            self._page.is_on,
            tuple(BUDGET_NAMES[name] for name in reached),
            tuple(BUDGET_OPTIONS[name] for name in reached),
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


def return_free_memory() -> None:
    """Return free pages to the system, where the C library (glibc) can: it does so by itself only at the heap's end."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
