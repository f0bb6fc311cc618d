"""``cp.async.bulk``: copies of whole runs of bytes, each by one thread (sm_90 on a GPU).

Into shared memory an mbarrier counts the bytes; out of it, groups tell when they are done. Tensors, other blocks of a
cluster and masks of bytes are not supported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.errors import SimulationError
from tui_probe.simgpu.executor.access import Access
from tui_probe.simgpu.executor.copy_waits import CopyWait, pending_groups
from tui_probe.simgpu.executor.forms import operands_of
from tui_probe.simgpu.executor.mbarrier_words import WORD_BYTES, Event
from tui_probe.simgpu.executor.mbarriers import happen_in_turn, words_of
from tui_probe.simgpu.executor.model import COPY_LATENCY, copy_cycles
from tui_probe.simgpu.executor.scalars import B128, TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.memory import Space
    from tui_probe.simgpu.executor.operands import Binder, Operation

_UNIT: Final = 16
"""Bytes; sizes and addresses are multiples of it."""
_INTO_SHARED: Final = ("global", "mbarrier::complete_tx::bytes")
_OUT_OF_SHARED: Final = ("global", "shared::cta", "bulk_group")
_CACHE_HINT: Final = "L2::cache_hint"


def build_bulk(instruction: Instruction, bind: Binder) -> Operation:
    """``cp.async.bulk`` from global to shared memory and back, and its ``commit_group``."""
    modifiers = tuple(one for one in instruction.modifiers[2:] if one != _CACHE_HINT)
    if modifiers == ("commit_group",):
        return _commit
    has_hint = _CACHE_HINT in instruction.modifiers
    if modifiers[:1] in (("shared::cluster",), ("shared::cta",)) and modifiers[1:] == _INTO_SHARED:
        to, source, size, word, *_ = operands_of(instruction, 4 + has_hint)
        return _build_into_shared(to, source, size, word, bind)
    if modifiers == _OUT_OF_SHARED:
        to, source, size, *_ = operands_of(instruction, 3 + has_hint)
        return _build_out_of_shared(to, source, size, bind)
    return bind.unsupported()


def build_bulk_wait(instruction: Instruction, bind: Binder) -> CopyWait:
    """``cp.async.bulk.wait_group{.read} N``."""
    pending = pending_groups(instruction, bind)
    if "read" in instruction.modifiers:
        return CopyWait(lambda group: group.batch.bulk_reads.end_of_groups(group.lanes, pending))
    return CopyWait(lambda group: group.batch.bulk_writes.end_of_groups(group.lanes, pending))


def _build_into_shared(to: Operand, source: Operand, size: Operand, word: Operand, bind: Binder) -> Operation:
    """``[to], [source], size, [mbarrier]``."""
    copy = _build_copy((to, "shared"), (source, "global"), size, bind)
    access, line = Access(word, "shared", WORD_BYTES, bind), bind.line

    def run(group: Group) -> None:
        sizes = copy(group)
        issued = group.batch.counters[group.lanes.warp].tolist()
        times = [now + COPY_LATENCY + copy_cycles(one) for now, one in zip(issued, sizes, strict=True)]
        happen_in_turn(group, line, words_of(access, group, line), [Event(transfer=-one) for one in sizes], times)

    return run


def _build_out_of_shared(to: Operand, source: Operand, size: Operand, bind: Binder) -> Operation:
    """``[to], [source], size``."""
    copy = _build_copy((to, "global"), (source, "shared"), size, bind)

    def run(group: Group) -> None:
        cycles = np.array([copy_cycles(one) for one in copy(group)], np.int64)
        issued = group.batch.counters[group.lanes.warp]
        group.batch.bulk_reads.add(group.lanes, issued + cycles)
        group.batch.bulk_writes.add(group.lanes, issued + cycles + COPY_LATENCY)

    return run


def _build_copy(
    to: tuple[Operand, str], source: tuple[Operand, str], size: Operand, bind: Binder
) -> Callable[[Group], list[int]]:
    """The copy itself, each operand with its state space; it gives the bytes that each lane copied."""
    writing, reading = _Run(*to, bind), _Run(*source, bind)
    count, line = bind.source(size, TYPES["u32"]), bind.line
    bind.effects.starts_block = True

    def run(group: Group) -> list[int]:
        sizes: list[int] = group.lanes.spread(count.read(group.registers)).tolist()
        if any(one % _UNIT or not one for one in sizes):
            raise SimulationError(f"cp.async.bulk at line {line} copies {sizes} bytes: no multiples of {_UNIT}")
        for (target, first), (origin, start), one in zip(
            writing.places(group, sizes), reading.places(group, sizes), sizes, strict=True
        ):
            units = one // _UNIT
            target.view(B128)[first : first + units] = origin.view(B128)[start : start + units]
        return sizes

    return run


class _Run:
    """An operand that names the first of several units of memory."""

    def __init__(self, operand: Operand, space: str, bind: Binder) -> None:
        self._access = Access(operand, space, _UNIT, bind)

    def places(self, group: Group, sizes: list[int]) -> list[tuple[Space, int]]:
        """The space and the first unit of each lane. Raises MemoryFaultError if the first or last is outside it."""
        address = group.lanes.spread(self._access.address(group))
        (part,) = self._access.parts_at(group, address)
        last = address + np.array(sizes, address.dtype) - address.dtype.type(_UNIT)
        for _ in self._access.parts_at(group, last):
            pass
        return [(part.space, int(first)) for first in group.lanes.spread(part.element)]


def _commit(group: Group) -> None:
    group.batch.bulk_reads.commit(group.lanes)
    group.batch.bulk_writes.commit(group.lanes)
