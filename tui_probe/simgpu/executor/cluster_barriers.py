"""``barrier.cluster``: threads arrive, and later wait until all threads of their cluster that have not exited have.

A phase ends with the last arrival. What waits continues at the time of the latest of them, if that is later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tui_probe.simgpu.executor.faults import DeadlockError

if TYPE_CHECKING:
    from tui_probe.simgpu.executor.batch import Batch
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.lanes import Places


class ClusterBarriers:
    """The barriers of all clusters of a batch."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._clusters = batch.block_count // batch.launch.cluster_size
        # By place: whether a thread has arrived in the phase that goes on, and in which phase it arrived last.
        self._arrived = np.zeros(len(batch.alive), np.bool_)
        self._phase_of = np.zeros(len(batch.alive), np.int64)
        # By cluster: the phase that goes on, its latest arrival so far, and that of the one before.
        self._phase = np.zeros(self._clusters, np.int64)
        self._latest = np.zeros(self._clusters, np.int64)
        self._ended = np.zeros(self._clusters, np.int64)
        self._waiting: list[tuple[Group, int]] = []

    @property
    def any_waiting(self) -> bool:
        """Whether threads wait."""
        return bool(self._waiting)

    def _cluster(self, group: Group) -> Places:
        return group.lanes.block // self._batch.launch.cluster_size

    def arrive(self, group: Group) -> Group:
        """``group`` arrives, and goes on."""
        cluster, places = self._cluster(group), group.lanes.places
        self._arrived[places] = True
        self._phase_of[places] = self._phase[cluster]
        np.maximum.at(self._latest, cluster, self._batch.counters[group.lanes.warp])
        return group

    def wait(self, group: Group, line: int) -> None:
        """``group`` waits for the end of the phase in which it arrived."""
        self._waiting.append((group, line))

    def release(self) -> list[Group]:
        """The groups that go on."""
        if not self._waiting:
            return []
        self._end_phases()
        released, still = [], []
        for group, line in self._waiting:
            over = self._phase[self._cluster(group)] > self._phase_of[group.lanes.places]
            if not over.any():
                still.append((group, line))
                continue
            going = group if over.all() else group.split(over, group.block)
            if going is not group:
                still.append((group, line))
            counters, warps = self._batch.counters, going.lanes.warp
            counters[warps] = np.maximum(counters[warps], self._ended[self._cluster(going)])
            released.append(going)
        self._waiting = still
        return released

    def _end_phases(self) -> None:
        arrived = self._arrived.reshape(self._clusters, -1)
        missing = self._batch.alive.reshape(self._clusters, -1) & ~arrived
        ended = arrived.any(axis=1) & ~missing.any(axis=1)
        self._phase[ended] += 1
        self._ended[ended] = self._latest[ended]
        self._latest[ended] = 0
        arrived[ended] = False

    def check_deadlock(self) -> None:
        """Raises DeadlockError if threads wait."""
        for group, line in self._waiting:
            where = self._batch.describe(group.lanes, 0)
            raise DeadlockError(f"deadlock at barrier.cluster.wait, line {line}: {where} waits for its cluster")
