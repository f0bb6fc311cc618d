"""The kernels of one trace as rows: at once what the log tells of all, then what their folders tell of each."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from tui_probe.pages.kernel_row import KernelRow, first_row_of, has_folder, row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tui_probe.trace.model import Trace

AT_ONCE = 100
"""Folders read together with the log: more than a screen has lines."""
LEAST_CHANGE = 5e-4
"""A share that changed by less is not shown anew: every launch changes those of all kernels."""


class KernelRows:
    """Rows are made anew only for kernels that changed. A folder takes a tenth of a millisecond to read."""

    def __init__(self) -> None:
        self._rows: dict[int, KernelRow] = {}
        self._read: set[int] = set()
        self._unread: dict[int, None] = {}
        self._findings: dict[int, str] = {}

    @property
    def complete(self) -> bool:
        """Have all folders been read?"""
        return not self._unread

    def all(self) -> tuple[KernelRow, ...]:
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
            if index in self._read or not has_folder(kernel):
                self._put(row_of(kernel, device))
            elif left:
                left -= 1
                self._read_row(trace, index)
            else:
                self._put(first_row_of(kernel, device))
                self._unread[index] = None
        self._share(trace)

    def find(self, findings: Mapping[int, str]) -> None:
        """Have these words on what was found in kernels, by index."""
        for index, words in findings.items():
            self._findings[index] = words
            if index in self._rows:
                self._put(self._rows[index])

    def _put(self, row: KernelRow) -> None:
        words = self._findings.get(row.index, "")
        self._rows[row.index] = row if row.finding == words else replace(row, finding=words)

    def _share(self, trace: Trace) -> None:
        """Shares of the GPU time are parts of a whole that grows also while a kernel rests."""
        whole = trace.gpu_ns
        if whole <= 0:
            return
        for row in list(self._rows.values()):
            if row.gpu_time is not None:
                share = row.gpu_time.total_ns / whole
                if row.time_share is None or abs(share - row.time_share) >= LEAST_CHANGE:
                    self._rows[row.index] = replace(row, time_share=share)

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
        self._put(row_of(trace.kernels[index], trace.state.device))
        self._read.add(index)
        self._unread.pop(index, None)
