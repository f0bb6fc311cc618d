"""When the asynchronous copies of each thread are done, and the groups that they were committed to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.tree import Immediate
from tui_probe.simgpu.executor.forms import operands_of
from tui_probe.simgpu.executor.scalars import integer_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.ptx.tree import Instruction
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.lanes import Lanes
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.program import Finish
    from tui_probe.simgpu.executor.scheduler import Scheduler

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


@dataclass(slots=True)
class CopyWait:
    """A wait for copies, which are done at ``end``, one per lane."""

    end: Callable[[Group], NDArray[np.int64]]
    may_end: bool = False

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:  # noqa: ARG002
        return (following,)

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:  # noqa: ARG002
        def finish(group: Group, scheduler: Scheduler) -> Group | None:  # noqa: ARG001
            np.maximum.at(group.batch.counters, group.lanes.warp, self.end(group))
            group.block = following
            return group

        return finish


def pending_groups(instruction: Instruction, bind: Binder) -> int:
    """How many of the newest groups a ``wait_group N`` leaves pending."""
    (operand,) = operands_of(instruction, 1)
    pending = integer_literal(operand.text) if isinstance(operand, Immediate) else KEPT
    return pending if 0 <= pending < KEPT else bind.unsupported()
