"""``cp.async``: copies from global to shared memory that a warp makes, and waits for them.

A copy is made when it is issued; when it is done is known from ``model``, for those who wait. Programs that wait as
they must see no difference.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.tree import Immediate, Memory
from tui_probe.simgpu.executor.access import Access
from tui_probe.simgpu.executor.bulk_copy import build_bulk, build_bulk_wait
from tui_probe.simgpu.executor.copy_waits import CopyWait, pending_groups
from tui_probe.simgpu.executor.forms import operands_of
from tui_probe.simgpu.executor.loads import store, whole_type
from tui_probe.simgpu.executor.mbarriers import build_tracking
from tui_probe.simgpu.executor.model import COPY_LATENCY, WARP_SIZE, copy_cycles
from tui_probe.simgpu.executor.scalars import TYPES, U8, Value, integer_literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.operands import Binder, Operation


def build_copy_wait(instruction: Instruction, bind: Binder) -> CopyWait | None:
    """``cp.async.wait_group N``, ``cp.async.wait_all``, ``cp.async.bulk.wait_group{.read} N``; None for the others."""
    kind = instruction.modifiers[1] if len(instruction.modifiers) > 1 else ""
    if kind == "bulk" and "wait_group" in instruction.modifiers:
        return build_bulk_wait(instruction, bind)
    if kind == "wait_all":
        return CopyWait(lambda group: group.batch.copies.end_of_all(group.lanes))
    if kind != "wait_group":
        return None
    pending = pending_groups(instruction, bind)
    return CopyWait(lambda group: group.batch.copies.end_of_groups(group.lanes, pending))


def _build(instruction: Instruction, bind: Binder) -> Operation:
    """``cp.async`` in all its forms but the waits."""
    kind = instruction.modifiers[1] if len(instruction.modifiers) > 1 else ""
    match kind:
        case "commit_group":
            return _commit
        case "mbarrier":
            return build_tracking(instruction, bind)
        case "bulk":
            return build_bulk(instruction, bind)
        case "ca" | "cg":
            return _build_copy(instruction, bind)
    return bind.unsupported()


def _build_copy(instruction: Instruction, bind: Binder) -> Operation:
    """``cp.async.ca|cg.shared.global [to], [from], size{, source size}{, policy}``; zeros after the source."""
    to, source, size_operand, *rest = operands_of(instruction, 3, 5)
    if not isinstance(size_operand, Immediate):
        bind.unsupported()
    has_policy = any("cache_hint" in modifier for modifier in instruction.modifiers)
    given = bind.source(rest[0], TYPES["u32"]) if len(rest) > has_policy else None
    size = integer_literal(size_operand.text)
    reading, writing = Access(source, "global", size, bind), Access(to, "shared", size, bind)
    single_bytes = [_byte(source, number, bind) for number in range(size)] if given else []
    reads = tuple(bind.effects.reads)
    whole = whole_type(size)
    note = _clock(size)
    bind.effects.starts_block = True

    def run(group: Group) -> None:
        note(group)
        if given is not None:
            wanted = given.read(group.registers)
            if (wanted < size).any():
                store(writing, group, _first_bytes(group, single_bytes, group.lanes.spread(wanted), reads))
                return
        for part in reading.parts(group):
            store(writing, group, part.view(whole)[part.element])

    return run


def _byte(source: Operand, number: int, bind: Binder) -> Access:
    if not isinstance(source, Memory):
        return bind.unsupported()
    return Access(replace(source, offset=source.offset + number), "global", 1, bind)


def _first_bytes(group: Group, single_bytes: list[Access], wanted: Value, reads: tuple[int, ...]) -> Value:
    """The first ``wanted`` bytes for each lane, and zeros after them."""
    size = len(single_bytes)
    copied = np.zeros((group.lanes.count, size), U8)
    for number, access in enumerate(single_bytes):
        positions = np.flatnonzero(wanted > number)
        if len(positions):
            for part in access.parts(group.select(positions, group.block, reads)):
                copied[positions, number] = part.view(U8)[part.element]
    result: Value = copied.view(whole_type(size))[:, 0]
    return result


def _clock(size: int) -> Operation:
    """Notes when ``size`` bytes for each lane are copied, those of a warp together."""
    cycles = COPY_LATENCY + np.array([copy_cycles(size * count) for count in range(WARP_SIZE + 1)], np.int64)

    def note(group: Group) -> None:
        lanes, counters = group.lanes, group.batch.counters
        end = counters + cycles[np.bincount(lanes.warp, minlength=len(counters))]
        group.batch.copies.add(lanes, end[lanes.warp])

    return note


def _commit(group: Group) -> None:
    group.batch.copies.commit(group.lanes)


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {"cp": _build}
