"""``cp.async.bulk``: copies of whole runs of bytes, each by one thread (sm_90 on a GPU).

Into shared memory, of other blocks of the cluster too, an mbarrier counts the bytes; out of it, groups tell when they
are done. Masks of bytes are not supported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.errors import SimulationError
from tui_probe.simgpu.executor.access import Access
from tui_probe.simgpu.executor.clusters import MAX_BLOCKS, at_rank
from tui_probe.simgpu.executor.copy_waits import CopyWait, pending_groups
from tui_probe.simgpu.executor.forms import operands_of
from tui_probe.simgpu.executor.mbarrier_words import WORD_BYTES, Event
from tui_probe.simgpu.executor.mbarriers import happen_in_turn, words_of
from tui_probe.simgpu.executor.model import COPY_LATENCY, copy_cycles
from tui_probe.simgpu.executor.scalars import B128, TYPES
from tui_probe.simgpu.executor.tensor_copies import build_tensor_copy

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.memory import Space
    from tui_probe.simgpu.executor.operands import Binder, Operation, Source
    from tui_probe.simgpu.executor.scalars import Value

_UNIT: Final = 16
"""Bytes; sizes and addresses are multiples of it."""
_INTO_SHARED: Final = ("global", "mbarrier::complete_tx::bytes")
_INTO_ANOTHER: Final = ("shared::cluster", "shared::cta", "mbarrier::complete_tx::bytes")
_MULTICAST: Final = ("shared::cluster", *_INTO_SHARED, "multicast::cluster")
_OUT_OF_SHARED: Final = ("global", "shared::cta", "bulk_group")
_CACHE_HINT: Final = "L2::cache_hint"


def build_bulk(instruction: Instruction, bind: Binder) -> Operation:
    """``cp.async.bulk`` from global to shared memory and back, between blocks, and its ``commit_group``."""
    modifiers = tuple(one for one in instruction.modifiers[2:] if one != _CACHE_HINT)
    if modifiers == ("commit_group",):
        return _commit
    has_hint = _CACHE_HINT in instruction.modifiers
    if modifiers[0] == "tensor":
        return build_tensor_copy(instruction, bind)
    if modifiers[:1] in (("shared::cluster",), ("shared::cta",)) and modifiers[1:] == _INTO_SHARED:
        to, source, size, word, *_ = operands_of(instruction, 4 + has_hint)
        return _build_into_shared(to, (source, "global"), size, word, bind)
    if modifiers == _INTO_ANOTHER:
        to, source, size, word = operands_of(instruction, 4)
        return _build_into_shared(to, (source, "shared"), size, word, bind)
    if modifiers == _MULTICAST:
        return _build_multicast(operands_of(instruction, 5 + has_hint), bind)
    if modifiers[:1] == ("prefetch",):
        return _prefetch
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


def _build_into_shared(
    to: Operand, source: tuple[Operand, str], size: Operand, word: Operand, bind: Binder
) -> Operation:
    """``[to], [source], size, [mbarrier]``."""
    copy = _build_copy((to, "shared"), source, size, bind)
    access, line = Access(word, "shared", WORD_BYTES, bind), bind.line

    def run(group: Group) -> None:
        sizes = copy(group)
        issued = group.batch.counters[group.lanes.warp].tolist()
        times = [now + COPY_LATENCY + copy_cycles(one) for now, one in zip(issued, sizes, strict=True)]
        happen_in_turn(group, line, words_of(access, group, line), [Event(transfer=-one) for one in sizes], times)

    return run


def _build_multicast(operands: tuple[Operand, ...], bind: Binder) -> Operation:
    """``[to], [source], size, [mbarrier], mask``: to the same place in each block that the mask names."""
    to, source, size, word, mask, *_ = operands
    writing, reading = _Run(to, "shared", bind), _Run(source, "global", bind)
    access, line = Access(word, "shared", WORD_BYTES, bind), bind.line
    count, blocks = bind.source(size, TYPES["u32"]), bind.source(mask, TYPES["u16"])
    bind.effects.starts_block = True

    def run(group: Group) -> None:
        lanes = group.lanes
        sizes, issued = _sizes(group, count, line), group.batch.counters[lanes.warp].tolist()
        sources, masks = reading.places(group, sizes), lanes.spread(blocks.read(group.registers)).tolist()
        targets, words = writing.addresses(group), lanes.spread(access.address(group))
        for lane, (origin, one) in enumerate(zip(sources, sizes, strict=True)):
            own = group.select(np.array([lane]), group.block, ())
            time = issued[lane] + COPY_LATENCY + copy_cycles(one)
            for rank in (rank for rank in range(MAX_BLOCKS) if masks[lane] >> rank & 1):
                (place,) = writing.places_at(own, at_rank(targets[lane : lane + 1], rank, own), [one])
                _copy(place, origin, one)
                word_there = words_of(access, own, line, at_rank(words[lane : lane + 1], rank, own))
                happen_in_turn(own, line, word_there, [Event(transfer=-one)], [time])

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
        sizes = _sizes(group, count, line)
        for target, origin, one in zip(writing.places(group, sizes), reading.places(group, sizes), sizes, strict=True):
            _copy(target, origin, one)
        return sizes

    return run


def _sizes(group: Group, count: Source, line: int) -> list[int]:
    """How many bytes each lane copies. Raises SimulationError."""
    sizes: list[int] = group.lanes.spread(count.read(group.registers)).tolist()
    if any(one % _UNIT or not one for one in sizes):
        raise SimulationError(f"cp.async.bulk at line {line} copies {sizes} bytes: no multiples of {_UNIT}")
    return sizes


def _copy(target: tuple[Space, int], origin: tuple[Space, int], size: int) -> None:
    (to, first), (source, start), units = target, origin, size // _UNIT
    to.view(B128)[first : first + units] = source.view(B128)[start : start + units]


class _Run:
    """An operand that names the first of several units of memory."""

    def __init__(self, operand: Operand, space: str, bind: Binder) -> None:
        self._access = Access(operand, space, _UNIT, bind)

    def addresses(self, group: Group) -> Value:
        """The address of each lane."""
        return group.lanes.spread(self._access.address(group))

    def places(self, group: Group, sizes: list[int]) -> list[tuple[Space, int]]:
        """The space and the first unit of each lane. Raises MemoryFaultError if the first or last is outside it."""
        return self.places_at(group, self.addresses(group), sizes)

    def places_at(self, group: Group, address: Value, sizes: list[int]) -> list[tuple[Space, int]]:
        """The same for other addresses."""
        (part,) = self._access.parts_at(group, address)
        last = address + np.array(sizes, address.dtype) - address.dtype.type(_UNIT)
        for _ in self._access.parts_at(group, last):
            pass
        return [(part.space, int(first)) for first in group.lanes.spread(part.element)]


def _prefetch(group: Group) -> None:
    """A hint."""


def _commit(group: Group) -> None:
    group.batch.bulk_reads.commit(group.lanes)
    group.batch.bulk_writes.commit(group.lanes)
