"""The instructions ``bar`` and ``barrier``, ``bar.warp.sync``, and ``barrier.cluster``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.ptx.tree import Immediate
from tui_probe.simgpu.executor.barriers import Barrier, Reduction, WarpBarrier
from tui_probe.simgpu.executor.scalars import PREDICATE, TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.barriers import Barriers
    from tui_probe.simgpu.executor.control import Control
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.program import Finish, Scheduling


@dataclass(slots=True)
class AtBarrier:
    """``bar`` and ``barrier`` in all forms: lanes ``arrive`` and go on from the next block."""

    arrive: Callable[[Barriers, Group], Group | None]
    may_end: bool = False

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:  # noqa: ARG002
        return (following,)

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:  # noqa: ARG002
        def finish(group: Group, scheduler: Scheduling) -> Group | None:
            group.block = following
            return self.arrive(scheduler.barriers, group)

        return finish


def is_barrier(instruction: Instruction) -> bool:
    """Whether the instruction is one of this module."""
    return instruction.opcode in ("bar", "barrier")


def build_barrier(instruction: Instruction, bind: Binder) -> Control:
    """``bar.sync a{, b}``, ``bar.arrive a, b``, ``bar.red.popc.u32 d, a{, b}, {!}c``, ``bar.warp.sync mask``."""
    if "cluster" in instruction.modifiers:
        return _build_cluster_barrier(instruction, bind)
    modifiers = [modifier for modifier in instruction.modifiers if modifier not in ("cta", "aligned")]
    operands = list(instruction.operands)
    if modifiers[:2] == ["warp", "sync"]:
        of_warp = WarpBarrier(bind.source(operands[0], TYPES["u32"]), bind.line)
        return AtBarrier(lambda barriers, group: barriers.arrive_in_warp(of_warp, group))
    reduction = None
    if modifiers and modifiers[0] == "red":
        target = bind.target(operands.pop(0), TYPES["u32"] if modifiers[1] == "popc" else PREDICATE)
        reduction = Reduction(modifiers[1], bind.predicate(operands.pop()), target)
    elif modifiers not in (["sync"], ["arrive"]):
        bind.unsupported()
    number: Operand = operands[0] if operands else Immediate("0")
    count = bind.source(operands[1], TYPES["u32"]) if len(operands) > 1 else None
    arrives_only = modifiers[0] == "arrive"
    barrier = Barrier(bind.source(number, TYPES["u32"]), count, arrives_only, reduction, bind.line)
    return AtBarrier(lambda barriers, group: barriers.arrive(barrier, group))


def _build_cluster_barrier(instruction: Instruction, bind: Binder) -> Control:
    """``barrier.cluster.arrive{.release|.relaxed}{.aligned}`` and ``barrier.cluster.wait{.acquire}{.aligned}``."""
    line = bind.line

    def wait(barriers: Barriers, group: Group) -> Group | None:
        barriers.of_clusters.wait(group, line)
        return None

    if instruction.modifiers[1:2] == ("arrive",):
        return AtBarrier(lambda barriers, group: barriers.of_clusters.arrive(group))
    return AtBarrier(wait) if instruction.modifiers[1:2] == ("wait",) else bind.unsupported()
