"""Guarded instructions: ``@%p add …`` acts on the lanes of its group for which the predicate holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.lanes import Places
    from tui_probe.simgpu.executor.operands import Effects, Operation, Source
    from tui_probe.simgpu.executor.scalars import Value


def guarded(operation: Operation, predicate: Source, effects: Effects) -> Operation:
    """``operation`` under a guard. Its targets count as read too: other lanes keep what they had."""
    writes = tuple(sorted(effects.writes))
    if effects.pure:
        return _guarded_pure(operation, predicate, writes)
    return _guarded_subset(operation, predicate, tuple(sorted(effects.reads)), writes)


def _guarded_pure(operation: Operation, predicate: Source, writes: tuple[int, ...]) -> Operation:
    def run(group: Group) -> None:
        registers = group.registers
        holds = predicate.read(registers)
        if not holds.ndim:
            if holds:
                operation(group)
            return
        before = [registers[index] for index in writes]
        operation(group)
        for index, old in zip(writes, before, strict=True):
            registers[index] = np.where(holds, registers[index], old)

    return run


def _guarded_subset(
    operation: Operation, predicate: Source, reads: tuple[int, ...], writes: tuple[int, ...]
) -> Operation:
    def run(group: Group) -> None:
        holds = predicate.read(group.registers)
        count = np.count_nonzero(holds) if holds.ndim else int(holds) * group.lanes.count
        if count == group.lanes.count:
            operation(group)
        elif count:
            chosen = np.flatnonzero(holds)
            inner = group.select(chosen, group.block, reads)
            operation(inner)
            for index in writes:
                group.registers[index] = _filled(group, chosen, group.registers[index], inner.registers[index])

    return run


def _filled(group: Group, chosen: Places, old: Value | None, new: Value) -> Value:
    """``old``, with ``new`` at the positions ``chosen``."""
    shape = (group.lanes.count, *new.shape[1:])
    filled = np.zeros(shape, new.dtype) if old is None else np.array(np.broadcast_to(old, shape))
    filled[chosen] = new
    return filled
