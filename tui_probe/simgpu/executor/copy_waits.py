"""Waits for the asynchronous copies of a thread: for all of them, or for those of older groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tui_probe.ptx.tree import Immediate
from tui_probe.simgpu.executor.copy_groups import KEPT
from tui_probe.simgpu.executor.forms import operands_of
from tui_probe.simgpu.executor.scalars import integer_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.ptx.tree import Instruction
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.program import Finish, Scheduling


@dataclass(slots=True)
class CopyWait:
    """A wait for copies, which are done at ``end``, one per lane."""

    end: Callable[[Group], NDArray[np.int64]]
    may_end: bool = False

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:  # noqa: ARG002
        return (following,)

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:  # noqa: ARG002
        def finish(group: Group, scheduler: Scheduling) -> Group | None:  # noqa: ARG001
            np.maximum.at(group.batch.counters, group.lanes.warp, self.end(group))
            group.block = following
            return group

        return finish


def pending_groups(instruction: Instruction, bind: Binder) -> int:
    """How many of the newest groups a ``wait_group N`` leaves pending."""
    (operand,) = operands_of(instruction, 1)
    pending = integer_literal(operand.text) if isinstance(operand, Immediate) else KEPT
    return pending if 0 <= pending < KEPT else bind.unsupported()
