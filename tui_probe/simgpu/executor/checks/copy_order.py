"""Completion of asynchronous copies: from which time on one is complete for its thread, and for others.

A ``cp.async`` and a bulk copy out of shared memory are complete for their thread when it has waited for their group,
and for others behind a barrier after that. A copy whose bytes an mbarrier counts is complete when a thread has waited
for a phase of that mbarrier.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tui_probe.simgpu.executor.async_state import CopyGroups
from tui_probe.simgpu.executor.checks.access_clock import BULK, COPIED, TIME_BITS, TRACKED, contain_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.checks.access_clock import LaunchClock
    from tui_probe.simgpu.executor.lanes import Lanes, Places


BULK_WRITES, BULK_READS = 0, 1
"""Parts of a bulk copy out of shared memory that threads wait for: both, or only that its source was read."""


class CopyOrder:
    """Copies of the threads of a batch. Its arrays have a time per place of a thread in the batch."""

    def __init__(self, clock: LaunchClock, place_count: int) -> None:
        self.clock = clock
        self.is_used = False
        """True once a copy was made: most kernels make none, and skip all of this."""
        self._place_count = place_count
        self._phase_ends: dict[int, int] = {}
        """Time of the last end of a phase, by word of an mbarrier."""
        self._awaited_phase_ends: dict[int, int] = {}
        """End of the last phase that some thread has waited for, by word of an mbarrier."""
        self._tracked_words: dict[int, int] = {}
        """Word of the mbarrier that counts the bytes of a copy, by the copy's time."""
        self._uncounted: list[int] = []
        self._bulk_reads: set[int] = set()
        """Times of reads by bulk copies; their other accesses are writes."""

    @cached_property
    def _bulk(self) -> BulkCopies:
        return BulkCopies(self._place_count)

    @cached_property
    def _groups(self) -> CopyGroups:
        return CopyGroups(self._place_count)

    @cached_property
    def _own_ends(self) -> NDArray[np.int64]:
        """Time until which the thread's copies are complete for itself."""
        return np.zeros(self._place_count, np.int64)

    @cached_property
    def _published_ends(self) -> NDArray[np.int64]:
        """Time until which the thread's copies are complete for others."""
        return np.zeros(self._place_count, np.int64)

    def publish(self, places: Places | slice) -> None:
        """Complete for others the copies that the threads at these places have waited for: they meet others."""
        if self.is_used:
            self._published_ends[places] = self._own_ends[places]
            self._bulk.publish(places)

    # -- cp.async

    @contain_errors
    def record_issue(self, lanes: Lanes) -> None:
        """Record that each lane has issued a ``cp.async``."""
        self.is_used = True
        self._groups.add(lanes, np.full(lanes.count, self.clock.time))

    @contain_errors
    def record_commit(self, lanes: Lanes) -> None:
        """Record that each lane commits its copies as a group."""
        self._groups.commit(lanes)

    @contain_errors
    def record_wait(self, lanes: Lanes, pending: int | None) -> None:
        """Record that each lane has waited for its groups but the ``pending`` newest; for all copies if None."""
        ends = self._groups.end_of_all(lanes) if pending is None else self._groups.end_of_groups(lanes, pending)
        self._own_ends[lanes.places] = np.maximum(self._own_ends[lanes.places], ends)

    @contain_errors
    def record_tracking(self, lanes: Lanes) -> None:
        """Record that an mbarrier tracks the copies of each lane so far."""
        self._own_ends[lanes.places] = self._published_ends[lanes.places] = self.clock.time

    # -- copies whose bytes an mbarrier counts

    def record_tracked_copy(self) -> None:
        """Record that the last access is that of a copy whose bytes an mbarrier counts."""
        self.is_used = True
        self._uncounted.append(self.clock.time)

    @contain_errors
    def record_mbarriers(self, words: Places) -> None:
        """Record that the mbarriers at ``words`` count the bytes of the copies since the last call, in their order."""
        self._tracked_words.update(zip(self._uncounted, words.tolist(), strict=False))
        self._uncounted.clear()

    @contain_errors
    def record_phase_end(self, word: int, parity: int, time: int) -> None:  # noqa: ARG002 - a watcher of mbarriers
        """Record the end of a phase of the mbarrier."""
        self._phase_ends[word] = self.clock.time

    def record_phase_waits(self, words: Places) -> None:
        """Record that threads have waited for a phase of each of these mbarriers."""
        for word in np.unique(words).tolist():
            self._awaited_phase_ends[word] = self._phase_ends.get(word, 0)

    # -- bulk copies out of shared memory

    def record_bulk_access(self, *, is_read: bool) -> None:
        """Record that the last access is the read or the write of a bulk copy out of shared memory."""
        self.is_used = True
        if is_read:
            self._bulk_reads.add(self.clock.time)

    @contain_errors
    def record_bulk_issue(self, lanes: Lanes) -> None:
        """Record that each lane has issued a bulk copy out of shared memory."""
        self._bulk.groups.add(lanes, np.full(lanes.count, self.clock.time))

    @contain_errors
    def record_bulk_commit(self, lanes: Lanes) -> None:
        """Record that each lane commits these copies as a group."""
        self._bulk.groups.commit(lanes)

    @contain_errors
    def record_bulk_wait(self, lanes: Lanes, pending: int, parts: Sequence[int]) -> None:
        """Record that each lane has waited for these parts of its groups but the ``pending`` newest."""
        self._bulk.wait(lanes, pending, parts)

    # -- order

    def are_complete(
        self,
        is_ordered: NDArray[np.bool_],
        stamps: NDArray[np.uint64],
        places: Places,
        is_own_thread: NDArray[np.bool_],
        is_in_cluster: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        """Return ``is_ordered``, per stamp, without the accesses of copies that are not complete.

        ``places`` are the threads of the stamps, 0 for one that is not ``is_in_cluster``. ``is_own_thread`` is True
        where the thread that accesses the byte now made the copy itself.
        """
        kind, times = stamps & np.uint64(BULK), (stamps >> np.uint64(TIME_BITS)).astype(np.int64)
        is_copied, is_tracked, is_bulk = kind == COPIED, kind == TRACKED, kind == BULK
        if is_copied.any():
            ends = np.maximum(self._published_ends[places], np.where(is_own_thread, self._own_ends[places], 0))
            is_ordered = is_ordered & (~is_copied | (times <= ends))
        if is_bulk.any():
            distinct, number = np.unique(times, return_inverse=True)
            is_read = np.array([time in self._bulk_reads for time in distinct.tolist()])[number]
            ends = self._bulk.end_times(places, np.where(is_read, BULK_READS, BULK_WRITES), is_own_thread)
            is_ordered = is_ordered & (~is_bulk | ~is_in_cluster | (times <= ends))
        if is_tracked.any():
            is_ordered = np.where(is_tracked, times <= self._awaited_ends(times, is_tracked), is_ordered)
        return is_ordered

    def _awaited_ends(self, times: NDArray[np.int64], is_tracked: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return, per time of a tracked copy, the end of the last awaited phase of its mbarrier; -1: none."""
        ends = np.full(len(times), -1)
        for number in np.flatnonzero(is_tracked).tolist():
            ends[number] = self._awaited_phase_ends.get(self._tracked_words.get(int(times[number]), -1), -1)
        return ends


class BulkCopies:
    """Bulk copies out of shared memory: times until which those of a thread are complete, and have been read, by place;
    for the thread itself, and for others, who need a barrier behind its wait.
    """

    def __init__(self, place_count: int) -> None:
        self.groups = CopyGroups(place_count)
        # Rows are ``BULK_WRITES`` and ``BULK_READS``.
        self._own_ends = np.zeros((2, place_count), np.int64)
        self._published_ends = np.zeros((2, place_count), np.int64)

    def wait(self, lanes: Lanes, pending: int, parts: Sequence[int]) -> None:
        """Each lane waits for these parts of its groups but the ``pending`` newest."""
        ends = self.groups.end_of_groups(lanes, pending)
        for part in parts:
            self._own_ends[part, lanes.places] = np.maximum(self._own_ends[part, lanes.places], ends)

    def publish(self, places: Places | slice) -> None:
        """Complete for others the copies that threads have waited for."""
        self._published_ends[:, places] = self._own_ends[:, places]

    def end_times(self, places: Places, parts: NDArray[np.int64], is_own: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the time until which a part of the copies of the thread at each place is complete."""
        end_times: NDArray[np.int64] = np.where(
            is_own, self._own_ends[parts, places], self._published_ends[parts, places]
        )
        return end_times
