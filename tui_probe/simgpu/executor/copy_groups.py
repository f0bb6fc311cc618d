"""When the asynchronous copies of each thread are done, and the groups that they were committed to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.lanes import Lanes

KEPT: Final = 32
"""Groups that are told apart; a wait can leave fewer than these pending."""


class CopyGroups:
    """The copies of one kind. Times are cycles since the start of the block, as a warp's counter is."""

    def __init__(self, place_count: int) -> None:
        self._open = np.zeros(place_count, np.int64)
        # The newest group first; all that are older than the others share the last column.
        self._ends = np.zeros((place_count, KEPT), np.int64)

    def add(self, lanes: Lanes, end: NDArray[np.int64]) -> None:
        """Each of ``lanes`` issued a copy that is done at ``end``, one per lane."""
        self._open[lanes.places] = np.maximum(self._open[lanes.places], end)

    def commit(self, lanes: Lanes) -> None:
        """What each lane issued since its last group becomes a group."""
        ends = self._ends[lanes.places]
        oldest = ends[:, -2:].max(axis=1)
        ends[:, 1:] = ends[:, :-1]
        ends[:, -1] = oldest
        ends[:, 0] = self._open[lanes.places]
        self._ends[lanes.places] = ends
        self._open[lanes.places] = 0

    def end_of_groups(self, lanes: Lanes, pending: int) -> NDArray[np.int64]:
        """When all groups but the ``pending`` newest are done, for each lane. ``pending`` is less than ``KEPT``."""
        ends: NDArray[np.int64] = self._ends[lanes.places, pending:].max(axis=1)
        return ends

    def end_of_all(self, lanes: Lanes) -> NDArray[np.int64]:
        """When all copies are done, in groups or not, for each lane."""
        return np.maximum(self._open[lanes.places], self.end_of_groups(lanes, 0))
