"""Asynchronous copies and stores: ``cp.async``, ``cp.async.bulk``, ``st.async``, and waits for groups of copies.

A copy is executed when it is issued; ``model`` gives the time at which it is complete, for threads that wait. Programs
that wait as they must see no difference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tui_probe.errors import SimulationError
from tui_probe.ptx.tree import Immediate, Memory, Vector
from tui_probe.simgpu.executor import loads_and_stores
from tui_probe.simgpu.executor.addressing import Access, LaneAccess
from tui_probe.simgpu.executor.async_state import MAX_TRACKED_GROUPS, WORD_BYTES, MBarrierEvent
from tui_probe.simgpu.executor.barrier_instructions import apply_events, build_tracking, words_of
from tui_probe.simgpu.executor.checks.accesses import (
    BULK_LOAD,
    BULK_STORE,
    COPY,
    LOAD,
    TRACKED_COPY,
    AccessKind,
)
from tui_probe.simgpu.executor.checks.copy_order import BULK_READS, BULK_WRITES
from tui_probe.simgpu.executor.clusters import MAX_BLOCKS, at_rank
from tui_probe.simgpu.executor.loads_and_stores import store, whole_type
from tui_probe.simgpu.executor.model import COPY_LATENCY, WARP_SIZE, copy_cycles
from tui_probe.simgpu.executor.scalars import (
    B128,
    CACHE_HINT,
    TYPES,
    U8,
    Value,
    integer_literal,
    last_type,
    operands_before_hint,
    operands_of,
)
from tui_probe.simgpu.executor.tensor_copies import build_tensor_copy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.memory import Space
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation, SourceOperand
    from tui_probe.simgpu.executor.program import Finish, Scheduling
    from tui_probe.simgpu.executor.threads import ThreadGroup


@dataclass(slots=True)
class CopyWait:
    """A wait for copies, which are complete at ``end``, a time per lane.

    ``pending`` groups may still be on their way, None: not even copies in no group. ``bulk`` are the parts of bulk
    copies that are awaited: ``BULK_WRITES``, ``BULK_READS``.
    """

    end: Callable[[ThreadGroup], NDArray[np.int64]]
    pending: int | None
    bulk: tuple[int, ...] = ()
    may_end: bool = False

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:  # noqa: ARG002
        return (following,)

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:  # noqa: ARG002
        def finish(group: ThreadGroup, scheduler: Scheduling) -> ThreadGroup | None:  # noqa: ARG001
            np.maximum.at(group.batch.counters, group.lanes.warp, self.end(group))
            if group.batch.checks is not None:
                order = group.batch.checks.order
                if self.bulk:
                    order.copies.bulk_awaited(group.lanes, self.pending or 0, self.bulk)
                else:
                    order.copies.awaited(group.lanes, self.pending)
            group.block = following
            return group

        return finish


def pending_groups(instruction: Instruction, bind: Binder) -> int:
    """Return the number of newest groups that a ``wait_group N`` leaves pending."""
    (operand,) = operands_of(instruction, 1)
    pending = integer_literal(operand.text) if isinstance(operand, Immediate) else MAX_TRACKED_GROUPS
    return pending if 0 <= pending < MAX_TRACKED_GROUPS else bind.unsupported()


# ``cp.async.bulk``: copies of whole runs of bytes, each by one thread (sm_90 on a GPU).
#
# Into shared memory, of other blocks of the cluster too, an mbarrier counts the bytes; out of it, groups tell when
# they are done. Masks of bytes are not supported.

_UNIT: Final = 16
"""Sizes and addresses of bulk copies are multiples of this many bytes (PTX ISA, cp.async.bulk)."""
_INTO_SHARED: Final = ("global", "mbarrier::complete_tx::bytes")
_INTO_ANOTHER: Final = ("shared::cluster", "shared::cta", "mbarrier::complete_tx::bytes")
_MULTICAST: Final = ("shared::cluster", *_INTO_SHARED, "multicast::cluster")
_OUT_OF_SHARED: Final = ("global", "shared::cta", "bulk_group")


class _MemoryOperand(NamedTuple):
    """An address operand, and the state space of its address."""

    operand: Operand
    space: str


def build_bulk(instruction: Instruction, bind: Binder) -> Operation:
    """``cp.async.bulk`` from global to shared memory and back, between blocks, and its ``commit_group``."""
    modifiers = tuple(modifier for modifier in instruction.modifiers[2:] if modifier != CACHE_HINT)
    if modifiers == ("commit_group",):
        return _commit_bulk
    if modifiers[0] == "tensor":
        return build_tensor_copy(instruction, bind)
    if modifiers[:1] in (("shared::cluster",), ("shared::cta",)) and modifiers[1:] == _INTO_SHARED:
        to, source, size, word = operands_before_hint(instruction, 4)
        return _build_into_shared(to, _MemoryOperand(source, "global"), size, word, bind)
    if modifiers == _INTO_ANOTHER:
        to, source, size, word = operands_of(instruction, 4)
        return _build_into_shared(to, _MemoryOperand(source, "shared"), size, word, bind)
    if modifiers == _MULTICAST:
        return _build_multicast(operands_before_hint(instruction, 5), bind)
    if modifiers[:1] == ("prefetch",):
        return _prefetch
    if modifiers == _OUT_OF_SHARED:
        to, source, size = operands_before_hint(instruction, 3)
        return _build_out_of_shared(to, source, size, bind)
    return bind.unsupported()


def build_bulk_wait(instruction: Instruction, bind: Binder) -> CopyWait:
    """``cp.async.bulk.wait_group{.read} N``."""
    pending = pending_groups(instruction, bind)
    if "read" in instruction.modifiers:
        parts: tuple[int, ...] = (BULK_READS,)
        return CopyWait(lambda group: group.batch.bulk_reads.end_of_groups(group.lanes, pending), pending, parts)
    parts = BULK_WRITES, BULK_READS
    return CopyWait(lambda group: group.batch.bulk_writes.end_of_groups(group.lanes, pending), pending, parts)


def _build_into_shared(to: Operand, source: _MemoryOperand, size: Operand, word: Operand, bind: Binder) -> Operation:
    """``[to], [source], size, [mbarrier]``."""
    copy = _build_bulk_copy(_MemoryOperand(to, "shared"), source, size, bind)
    access, line = Access(word, "shared", WORD_BYTES, bind), bind.line

    def run(group: ThreadGroup) -> None:
        sizes = copy(group)
        issued = group.batch.counters[group.lanes.warp].tolist()
        times = [now + COPY_LATENCY + copy_cycles(size) for now, size in zip(issued, sizes, strict=True)]
        mbarriers = words_of(access, group, line)
        if group.batch.checks is not None:
            group.batch.checks.order.copies.counted(mbarriers)
        apply_events(group, line, mbarriers, [MBarrierEvent(transfer=-size) for size in sizes], times)

    return run


def _build_multicast(operands: tuple[Operand, ...], bind: Binder) -> Operation:
    """``[to], [source], size, [mbarrier], mask``: to the same place in each block that the mask names."""
    to, source, size, word, mask = operands
    writing, reading = _UnitRun(to, "shared", bind, TRACKED_COPY), _UnitRun(source, "global", bind)
    access, line = Access(word, "shared", WORD_BYTES, bind), bind.line
    count, blocks = bind.source(size, TYPES["u32"]), bind.source(mask, TYPES["u16"])
    bind.effects.starts_block = True

    def run(group: ThreadGroup) -> None:
        lanes = group.lanes
        sizes, issued = _bulk_sizes(group, count, line), group.batch.counters[lanes.warp].tolist()
        sources, masks = reading.places(group, sizes), lanes.spread(blocks.read(group.registers)).tolist()
        targets, values = writing.addresses(group), lanes.spread(access.address(group))
        for lane, (origin, size) in enumerate(zip(sources, sizes, strict=True)):
            single = group.select(np.array([lane]), group.block, ())
            time = issued[lane] + COPY_LATENCY + copy_cycles(size)
            for rank in (rank for rank in range(MAX_BLOCKS) if masks[lane] >> rank & 1):
                (place,) = writing.places_at(single, at_rank(targets[lane : lane + 1], rank, single), [size])
                _copy_units(place, origin, size)
                word_there = words_of(access, single, line, at_rank(values[lane : lane + 1], rank, single))
                if single.batch.checks is not None:
                    single.batch.checks.order.copies.counted(word_there)
                apply_events(single, line, word_there, [MBarrierEvent(transfer=-size)], [time])

    return run


def _build_out_of_shared(to: Operand, source: Operand, size: Operand, bind: Binder) -> Operation:
    """``[to], [source], size``."""
    copy = _build_bulk_copy(_MemoryOperand(to, "global"), _MemoryOperand(source, "shared"), size, bind)

    def run(group: ThreadGroup) -> None:
        cycles = np.array([copy_cycles(size) for size in copy(group)], np.int64)
        issued = group.batch.counters[group.lanes.warp]
        group.batch.bulk_reads.add(group.lanes, issued + cycles)
        group.batch.bulk_writes.add(group.lanes, issued + cycles + COPY_LATENCY)
        if group.batch.checks is not None:
            group.batch.checks.order.copies.bulk_issued(group.lanes)

    return run


def _build_bulk_copy(
    to: _MemoryOperand, source: _MemoryOperand, size: Operand, bind: Binder
) -> Callable[[ThreadGroup], list[int]]:
    """Return the copy between operands; it returns the bytes that each lane copied."""
    written, read = (TRACKED_COPY, LOAD) if to.space == "shared" else (BULK_STORE, BULK_LOAD)
    writing, reading = _UnitRun(*to, bind, written), _UnitRun(*source, bind, read)
    count, line = bind.source(size, TYPES["u32"]), bind.line
    bind.effects.starts_block = True

    def run(group: ThreadGroup) -> list[int]:
        sizes = _bulk_sizes(group, count, line)
        places = zip(writing.places(group, sizes), reading.places(group, sizes), sizes, strict=True)
        for target, origin, size in places:
            _copy_units(target, origin, size)
        return sizes

    return run


def _bulk_sizes(group: ThreadGroup, count: SourceOperand, line: int) -> list[int]:
    """Return the bytes that each lane copies. Raises SimulationError."""
    sizes: list[int] = group.lanes.spread(count.read(group.registers)).tolist()
    if any(size % _UNIT or not size for size in sizes):
        raise SimulationError(f"cp.async.bulk at line {line} copies {sizes} bytes, not a multiple of {_UNIT}")
    return sizes


def _copy_units(target: tuple[Space, int], origin: tuple[Space, int], size: int) -> None:
    (to, first), (source, start), units = target, origin, size // _UNIT
    to.view(B128)[first : first + units] = source.view(B128)[start : start + units]


class _UnitRun:
    """An operand that names the first of several units of memory."""

    def __init__(self, operand: Operand, space: str, bind: Binder, kind: AccessKind = LOAD) -> None:
        self._access = Access(operand, space, _UNIT, bind, kind)

    def addresses(self, group: ThreadGroup) -> Value:
        """Return the address of each lane."""
        return group.lanes.spread(self._access.address(group))

    def places(self, group: ThreadGroup, sizes: list[int]) -> list[tuple[Space, int]]:
        """Return the space and the first unit of each lane. Raises MemoryFaultError if a unit is outside of it."""
        return self.places_at(group, self.addresses(group), sizes)

    def places_at(self, group: ThreadGroup, address: Value, sizes: list[int]) -> list[tuple[Space, int]]:
        """Return the space and element of each lane's place at other addresses."""
        (part,) = self._access.parts_at(group, address)
        last = address + np.array(sizes, address.dtype) - address.dtype.type(_UNIT)
        for _ in self._access.parts_at(group, last):
            pass
        places = [(part.space, int(first)) for first in group.lanes.spread(part.element)]
        self._check(group, places, sizes)
        return places

    def _check(self, group: ThreadGroup, places: list[tuple[Space, int]], sizes: list[int]) -> None:
        if group.batch.checks is None:
            return
        for position, ((space, first), size) in enumerate(zip(places, sizes, strict=True)):
            units = first + np.arange(size // _UNIT)
            self._access.check(group, LaneAccess(space, units, 0, np.full(len(units), position, np.intp)))


def _prefetch(group: ThreadGroup) -> None:
    """Do nothing: a prefetch only changes times, which the model does not follow."""


def _commit_bulk(group: ThreadGroup) -> None:
    group.batch.bulk_reads.commit(group.lanes)
    group.batch.bulk_writes.commit(group.lanes)
    if group.batch.checks is not None:
        group.batch.checks.order.copies.bulk_committed(group.lanes)


def build_copy_wait(instruction: Instruction, bind: Binder) -> CopyWait | None:
    """``cp.async.wait_group N``, ``cp.async.wait_all``, ``cp.async.bulk.wait_group{.read} N``; None for the others."""
    kind = instruction.modifiers[1] if len(instruction.modifiers) > 1 else ""
    if kind == "bulk" and "wait_group" in instruction.modifiers:
        return build_bulk_wait(instruction, bind)
    if kind == "wait_all":
        return CopyWait(lambda group: group.batch.copies.end_of_all(group.lanes), None)
    if kind != "wait_group":
        return None
    pending = pending_groups(instruction, bind)
    return CopyWait(lambda group: group.batch.copies.end_of_groups(group.lanes, pending), pending)


def _build_async(instruction: Instruction, bind: Binder) -> Operation:
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
    to, source, size_operand, *optional = operands_of(instruction, 3, 5)
    if not isinstance(size_operand, Immediate):
        bind.unsupported()
    if any("cache_hint" in modifier for modifier in instruction.modifiers):
        optional = optional[:-1]
    source_size = bind.source(optional[0], TYPES["u32"]) if optional else None
    size = integer_literal(size_operand.text)
    reading, writing = Access(source, "global", size, bind), Access(to, "shared", size, bind, COPY)
    single_bytes = [_byte_access(source, number, bind) for number in range(size)] if source_size else []
    reads = tuple(bind.effects.reads)
    unit = whole_type(size)
    note = _copy_clock(size)
    bind.effects.starts_block = True

    def run(group: ThreadGroup) -> None:
        note(group)
        if source_size is not None:
            wanted = source_size.read(group.registers)
            if (wanted < size).any():
                store(writing, group, _first_bytes(group, single_bytes, group.lanes.spread(wanted), reads))
                _note_issue(group)
                return
        for part in reading.parts(group):
            reading.check(group, part)
            store(writing, group, part.view(unit)[part.element])
        _note_issue(group)

    return run


def _note_issue(group: ThreadGroup) -> None:
    if group.batch.checks is not None:
        group.batch.checks.order.copies.issued(group.lanes)


def _byte_access(source: Operand, number: int, bind: Binder) -> Access:
    if not isinstance(source, Memory):
        return bind.unsupported()
    return Access(replace(source, offset=source.offset + number), "global", 1, bind)


def _first_bytes(group: ThreadGroup, single_bytes: list[Access], wanted: Value, reads: tuple[int, ...]) -> Value:
    """Return the first ``wanted`` bytes for each lane, and zeros after them."""
    size = len(single_bytes)
    copied = np.zeros((group.lanes.count, size), U8)
    for number, access in enumerate(single_bytes):
        positions = np.flatnonzero(wanted > number)
        if len(positions):
            chosen = group.select(positions, group.block, reads)
            for part in access.parts(chosen):
                access.check(chosen, part)
                copied[positions, number] = part.view(U8)[part.element]
    result: Value = copied.view(whole_type(size))[:, 0]
    return result


def _copy_clock(size: int) -> Operation:
    """Return the note of when ``size`` bytes per lane are copied: the lanes of a warp share one transfer."""
    cycles = COPY_LATENCY + np.array([copy_cycles(size * count) for count in range(WARP_SIZE + 1)], np.int64)

    def note(group: ThreadGroup) -> None:
        lanes, counters = group.lanes, group.batch.counters
        end = counters + cycles[np.bincount(lanes.warp, minlength=len(counters))]
        group.batch.copies.add(lanes, end[lanes.warp])

    return note


def _commit(group: ThreadGroup) -> None:
    group.batch.copies.commit(group.lanes)
    if group.batch.checks is not None:
        group.batch.checks.order.copies.committed(group.lanes)


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {"cp": _build_async}


# ``st.async``: stores to the shared memory of a block of the cluster whose bytes an mbarrier there counts (sm_90).
#
# A store is done as a copy of its bytes is, see ``model``.


def build_any_store(instruction: Instruction, bind: Binder) -> Operation:
    """``st`` in all its forms."""
    if "async" not in instruction.modifiers:
        return loads_and_stores.build_store(instruction, bind)
    if "mbarrier::complete_tx::bytes" not in instruction.modifiers:
        return bind.unsupported()
    to, stored, word = operands_of(instruction, 3)
    kind = last_type(instruction)
    size = kind.bytes * (len(stored.elements) if isinstance(stored, Vector) else 1)
    store = loads_and_stores.build_store_of(to, stored, kind, "shared", bind)
    access, line = Access(word, "shared", WORD_BYTES, bind), bind.line
    bind.effects.starts_block = True

    def run(group: ThreadGroup) -> None:
        store(group)
        lanes = group.lanes
        times = (group.batch.counters[lanes.warp] + COPY_LATENCY + copy_cycles(size)).tolist()
        events = [MBarrierEvent(transfer=-size)] * lanes.count
        apply_events(group, line, words_of(access, group, line), events, times)

    return run
