"""Snapshots of a run and its processes for the screen, and of their kernels, renewed only for kernels that changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from tui_probe.trace.locate import LOG
from tui_probe.verdicts.kernel_snapshot import KernelSnapshot, kernel_snapshot, may_have_folder, snapshot_from_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from tui_probe.launcher.control import Recording
    from tui_probe.trace.event_types import Device
    from tui_probe.trace.model import Trace
    from tui_probe.verdicts.finding_summary import FindingSummary

FOLDERS_PER_UPDATE = 100
"""Kernel folders read together with the log: more than a screen has lines."""
MIN_SHARE_CHANGE = 5e-4
"""Smaller changes of a GPU time share keep the old snapshot, since each launch changes the shares of all kernels."""


@dataclass(frozen=True)
class ProcessView:
    """One process that launched kernels.

    ``probed`` counts kernels. ``problem`` is the reason why its trace cannot be read. ``dropped`` counts launches
    whose results were dropped, None until the process ends. ``trace`` keeps growing in the thread that follows it: its
    results may be read up to number ``results``.
    """

    directory: Path
    kernels: tuple[KernelSnapshot, ...] = ()
    trace: Trace | None = None
    devices: tuple[Device, ...] = ()
    probed_kernels: int = 0
    probe: str = ""
    launches: int = 0
    launches_probed: int = 0
    results: int = 0
    bytes_written: int = 0
    dropped_launches: int | None = None
    problem: str = ""
    damage: tuple[str, ...] = ()
    """Files of the trace that are damaged."""

    @property
    def event_log(self) -> Path:
        return self.directory / LOG


@dataclass(frozen=True)
class Snapshot:
    """State of a run at one moment.

    ``status`` is the exit status of the command, or minus the number of the signal that ended it; None while it runs,
    or if that is not known. ``pid`` is the process of the command, None if only its launcher knows it. ``started`` and
    ``ended`` are in seconds since 1970.
    """

    processes: tuple[ProcessView, ...] = ()
    command: str = ""
    pid: int | None = None
    is_running: bool = False
    status: int | None = None
    start_time: float | None = None
    end_time: float | None = None
    simulated: bool = False
    benchmark: bool = False
    stdout: Path | None = None
    stderr: Path | None = None
    recording: Recording | None = None
    """The switch and the budgets of the run; None where it cannot be reached, or has ended."""
    no_room: bool = False
    """The disk of the traces is, or was, full: not everything is kept."""
    is_loaded: bool = False
    failure: str = ""
    """The reason why the program ended with an error; "" if it did not, or nothing is known."""


class KernelSnapshots:
    """Latest snapshot of each kernel of one trace, from its log and, once read, from its folder.

    Reading a folder takes a tenth of a millisecond, so :meth:`update` reads only the first new ones.
    """

    def __init__(self) -> None:
        self._snapshots: dict[int, KernelSnapshot] = {}
        self._read_indices: set[int] = set()
        """Kernels whose folder was read."""
        self._unread: dict[int, None] = {}
        """Kernels whose folder is still to be read, in the order of their appearance."""
        self._findings: dict[int, FindingSummary] = {}

    @property
    def complete(self) -> bool:
        """True if all folders have been read."""
        return not self._unread

    def all_rows(self) -> tuple[KernelSnapshot, ...]:
        """Return the snapshots in the order in which the kernels appeared."""
        return tuple(self._snapshots.values())

    def clear(self) -> None:
        """Remove all snapshots, for another trace."""
        self._snapshots.clear()
        self._read_indices.clear()
        self._unread.clear()
        self._findings.clear()

    def update(self, trace: Trace, changed_indices: Iterable[int]) -> None:
        """Renew the snapshots of these kernels, up to ``FOLDERS_PER_UPDATE`` of them with a folder not read before."""
        device, folders_left = trace.state.device, FOLDERS_PER_UPDATE
        for index in sorted(changed_indices):
            kernel = trace.kernels[index]
            if index in self._read_indices or not may_have_folder(kernel):
                self._store(kernel_snapshot(kernel, device))
            elif folders_left:
                folders_left -= 1
                self._read_folder(trace, index)
            else:
                self._store(snapshot_from_log(kernel, device))
                self._unread[index] = None
        self._update_time_shares(trace)

    def take_findings(self, findings: Mapping[int, FindingSummary]) -> None:
        """Add findings of kernels, by index, to this and all later snapshots."""
        for index, summary in findings.items():
            self._findings[index] = summary
            if index in self._snapshots:
                self._store(self._snapshots[index])
        self._update_cycle_shares()

    def _store(self, row: KernelSnapshot) -> None:
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
        if row != self._snapshots.get(row.index):
            self._snapshots[row.index] = row

    def _update_time_shares(self, trace: Trace) -> None:
        """Set the share of GPU time of all kernels: the total also grows while a kernel is not launched."""
        total = trace.gpu_ns
        if total <= 0:
            self._update_cycle_shares()
            return
        for row in list(self._snapshots.values()):
            if row.gpu_time is not None:
                share = row.gpu_time.total_ns / total
                if row.time_share is None or abs(share - row.time_share) >= MIN_SHARE_CHANGE:
                    self._snapshots[row.index] = replace(row, time_share=share)

    def _update_cycle_shares(self) -> None:
        """Set the share of cycles, which stands in for untimed kernels if known for all kernels with results."""
        rows = list(self._snapshots.values())
        rows_with_results = [row for row in rows if row.results]
        total = sum((row.cycles or 0.0) * row.launches for row in rows_with_results)
        has_all_cycles = total > 0 and all(
            row.cycles is not None and row.time_share is None for row in rows if row.results
        )
        for row in rows:
            share = (
                row.cycles * row.launches / total if has_all_cycles and row.results and row.cycles is not None else None
            )
            if share != row.cycle_share:
                self._snapshots[row.index] = replace(row, cycle_share=share)

    def read_folders(self, trace: Trace, preferred_indices: Iterable[int], should_stop: Callable[[], bool]) -> bool:
        """Read unread folders, those of ``preferred_indices`` first, until ``should_stop`` returns True; at least one.

        Returns whether any folder was read.
        """
        any_read = False
        for index in chain(preferred_indices, list(self._unread)):
            if index in self._unread:
                self._read_folder(trace, index)
                any_read = True
                if should_stop():
                    break
        return any_read

    def _read_folder(self, trace: Trace, index: int) -> None:
        self._store(kernel_snapshot(trace.kernels[index], trace.state.device))
        self._read_indices.add(index)
        self._unread.pop(index, None)
