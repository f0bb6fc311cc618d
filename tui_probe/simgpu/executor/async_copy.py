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
from tui_probe.simgpu.executor.barrier_instructions import apply_events, build_tracking, mbarrier_words
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
    """A wait for copies, which are complete at ``end_cycles``, a time per lane.

    ``pending_groups`` groups may still be on their way, None: not even copies in no group. ``bulk_parts`` are the parts
    of bulk copies that are awaited: ``BULK_WRITES``, ``BULK_READS``.
    """

    end_cycles: Callable[[ThreadGroup], NDArray[np.int64]]
    pending_groups: int | None
    bulk_parts: tuple[int, ...] = ()
    may_end: bool = False

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:  # noqa: ARG002
        return (following,)

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:  # noqa: ARG002
        def finish(group: ThreadGroup, scheduler: Scheduling) -> ThreadGroup | None:  # noqa: ARG001
            np.maximum.at(group.batch.counters, group.lanes.warp, self.end_cycles(group))
            if group.batch.checks is not None:
                order = group.batch.checks.order
                if self.bulk_parts:
                    order.copies.record_bulk_wait(group.lanes, self.pending_groups or 0, self.bulk_parts)
                else:
                    order.copies.record_wait(group.lanes, self.pending_groups)
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

_UNIT_BYTES: Final = 16
"""Sizes and addresses of bulk copies are multiples of this many bytes (PTX ISA, cp.async.bulk)."""
_GLOBAL_TO_SHARED: Final = ("global", "mbarrier::complete_tx::bytes")
_SHARED_TO_CLUSTER: Final = ("shared::cluster", "shared::cta", "mbarrier::complete_tx::bytes")
_MULTICAST: Final = ("shared::cluster", *_GLOBAL_TO_SHARED, "multicast::cluster")
_SHARED_TO_GLOBAL: Final = ("global", "shared::cta", "bulk_group")


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
    if modifiers[:1] in (("shared::cluster",), ("shared::cta",)) and modifiers[1:] == _GLOBAL_TO_SHARED:
        destination, source, size, mbarrier = operands_before_hint(instruction, 4)
        return _build_copy_to_shared(destination, _MemoryOperand(source, "global"), size, mbarrier, bind)
    if modifiers == _SHARED_TO_CLUSTER:
        destination, source, size, mbarrier = operands_of(instruction, 4)
        return _build_copy_to_shared(destination, _MemoryOperand(source, "shared"), size, mbarrier, bind)
    if modifiers == _MULTICAST:
        return _build_multicast(operands_before_hint(instruction, 5), bind)
    if modifiers[:1] == ("prefetch",):
        return _prefetch
    if modifiers == _SHARED_TO_GLOBAL:
        destination, source, size = operands_before_hint(instruction, 3)
        return _build_copy_from_shared(destination, source, size, bind)
    return bind.unsupported()


def build_bulk_wait(instruction: Instruction, bind: Binder) -> CopyWait:
    """``cp.async.bulk.wait_group{.read} N``."""
    pending = pending_groups(instruction, bind)
    if "read" in instruction.modifiers:
        parts: tuple[int, ...] = (BULK_READS,)
        return CopyWait(lambda group: group.batch.bulk_reads.end_of_groups(group.lanes, pending), pending, parts)
    parts = BULK_WRITES, BULK_READS
    return CopyWait(lambda group: group.batch.bulk_writes.end_of_groups(group.lanes, pending), pending, parts)


def _build_copy_to_shared(
    destination: Operand, source: _MemoryOperand, size: Operand, mbarrier: Operand, bind: Binder
) -> Operation:
    """``[to], [source], size, [mbarrier]``."""
    copy = _build_bulk_copy(_MemoryOperand(destination, "shared"), source, size, bind)
    access, line = Access(mbarrier, "shared", WORD_BYTES, bind), bind.line

    def run(group: ThreadGroup) -> None:
        sizes = copy(group)
        issue_cycles = group.batch.counters[group.lanes.warp].tolist()
        end_cycles = [
            issue_cycle + COPY_LATENCY + copy_cycles(size)
            for issue_cycle, size in zip(issue_cycles, sizes, strict=True)
        ]
        mbarriers = mbarrier_words(access, group, line)
        if group.batch.checks is not None:
            group.batch.checks.order.copies.record_mbarriers(mbarriers)
        apply_events(group, line, mbarriers, [MBarrierEvent(tx_count=-size) for size in sizes], end_cycles)

    return run


def _build_multicast(operands: tuple[Operand, ...], bind: Binder) -> Operation:
    """``[to], [source], size, [mbarrier], mask``: to the same place in each block that the mask names."""
    destination, source, size, mbarrier, mask = operands
    targets_run, sources_run = _UnitRun(destination, "shared", bind, TRACKED_COPY), _UnitRun(source, "global", bind)
    access, line = Access(mbarrier, "shared", WORD_BYTES, bind), bind.line
    count, blocks = bind.source(size, TYPES["u32"]), bind.source(mask, TYPES["u16"])
    bind.effects.starts_block = True

    def run(group: ThreadGroup) -> None:
        lanes = group.lanes
        sizes, issue_cycles = _bulk_sizes(group, count, line), group.batch.counters[lanes.warp].tolist()
        sources, masks = sources_run.places(group, sizes), lanes.spread(blocks.read(group.registers)).tolist()
        targets, mbarrier_addresses = targets_run.addresses(group), lanes.spread(access.address(group))
        for lane, (origin, size) in enumerate(zip(sources, sizes, strict=True)):
            one_lane = group.select(np.array([lane]), group.block, ())
            end_cycle = issue_cycles[lane] + COPY_LATENCY + copy_cycles(size)
            for rank in (rank for rank in range(MAX_BLOCKS) if masks[lane] >> rank & 1):
                (place,) = targets_run.places_at(one_lane, at_rank(targets[lane : lane + 1], rank, one_lane), [size])
                _copy_units(place, origin, size)
                target_mbarrier = mbarrier_words(
                    access, one_lane, line, at_rank(mbarrier_addresses[lane : lane + 1], rank, one_lane)
                )
                if one_lane.batch.checks is not None:
                    one_lane.batch.checks.order.copies.record_mbarriers(target_mbarrier)
                apply_events(one_lane, line, target_mbarrier, [MBarrierEvent(tx_count=-size)], [end_cycle])

    return run


def _build_copy_from_shared(destination: Operand, source: Operand, size: Operand, bind: Binder) -> Operation:
    """``[to], [source], size``."""
    copy = _build_bulk_copy(_MemoryOperand(destination, "global"), _MemoryOperand(source, "shared"), size, bind)

    def run(group: ThreadGroup) -> None:
        cycles = np.array([copy_cycles(size) for size in copy(group)], np.int64)
        issue_cycles = group.batch.counters[group.lanes.warp]
        group.batch.bulk_reads.add(group.lanes, issue_cycles + cycles)
        group.batch.bulk_writes.add(group.lanes, issue_cycles + cycles + COPY_LATENCY)
        if group.batch.checks is not None:
            group.batch.checks.order.copies.record_bulk_issue(group.lanes)

    return run


def _build_bulk_copy(
    destination: _MemoryOperand, source: _MemoryOperand, size: Operand, bind: Binder
) -> Callable[[ThreadGroup], list[int]]:
    """Return the copy between operands; it returns the bytes that each lane copied."""
    store_kind, load_kind = (TRACKED_COPY, LOAD) if destination.space == "shared" else (BULK_STORE, BULK_LOAD)
    targets, sources = _UnitRun(*destination, bind, store_kind), _UnitRun(*source, bind, load_kind)
    count, line = bind.source(size, TYPES["u32"]), bind.line
    bind.effects.starts_block = True

    def run(group: ThreadGroup) -> list[int]:
        sizes = _bulk_sizes(group, count, line)
        places = zip(targets.places(group, sizes), sources.places(group, sizes), sizes, strict=True)
        for target, origin, size in places:
            _copy_units(target, origin, size)
        return sizes

    return run


def _bulk_sizes(group: ThreadGroup, count: SourceOperand, line: int) -> list[int]:
    """Return the bytes that each lane copies. Raises SimulationError."""
    sizes: list[int] = group.lanes.spread(count.read(group.registers)).tolist()
    if any(size % _UNIT_BYTES or not size for size in sizes):
        raise SimulationError(f"cp.async.bulk at line {line} copies {sizes} bytes, not a multiple of {_UNIT_BYTES}")
    return sizes


def _copy_units(target: tuple[Space, int], origin: tuple[Space, int], size: int) -> None:
    (target_space, target_unit), (source_space, source_unit), units = target, origin, size // _UNIT_BYTES
    target_space.view(B128)[target_unit : target_unit + units] = source_space.view(B128)[
        source_unit : source_unit + units
    ]


class _UnitRun:
    """An operand that names the first of several units of memory."""

    def __init__(self, operand: Operand, space: str, bind: Binder, kind: AccessKind = LOAD) -> None:
        self._access = Access(operand, space, _UNIT_BYTES, bind, kind)

    def addresses(self, group: ThreadGroup) -> Value:
        """Return the address of each lane."""
        return group.lanes.spread(self._access.address(group))

    def places(self, group: ThreadGroup, sizes: list[int]) -> list[tuple[Space, int]]:
        """Return the space and the first unit of each lane. Raises MemoryFaultError if a unit is outside of it."""
        return self.places_at(group, self.addresses(group), sizes)

    def places_at(self, group: ThreadGroup, address: Value, sizes: list[int]) -> list[tuple[Space, int]]:
        """Return the space and element of each lane's place at other addresses."""
        (part,) = self._access.parts_at(group, address)
        last_address = address + np.array(sizes, address.dtype) - address.dtype.type(_UNIT_BYTES)
        for _ in self._access.parts_at(group, last_address):
            pass
        places = [(part.space, int(first_unit)) for first_unit in group.lanes.spread(part.element)]
        self._check(group, places, sizes)
        return places

    def _check(self, group: ThreadGroup, places: list[tuple[Space, int]], sizes: list[int]) -> None:
        if group.batch.checks is None:
            return
        for position, ((space, first_unit), size) in enumerate(zip(places, sizes, strict=True)):
            units = first_unit + np.arange(size // _UNIT_BYTES)
            self._access.check(group, LaneAccess(space, units, 0, np.full(len(units), position, np.intp)))


def _prefetch(group: ThreadGroup) -> None:
    """Do nothing: a prefetch only changes times, which the model does not follow."""


def _commit_bulk(group: ThreadGroup) -> None:
    group.batch.bulk_reads.commit(group.lanes)
    group.batch.bulk_writes.commit(group.lanes)
    if group.batch.checks is not None:
        group.batch.checks.order.copies.record_bulk_commit(group.lanes)


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
    destination, source, size_operand, *optional_operands = operands_of(instruction, 3, 5)
    if not isinstance(size_operand, Immediate):
        bind.unsupported()
    if any("cache_hint" in modifier for modifier in instruction.modifiers):
        optional_operands = optional_operands[:-1]
    source_size = bind.source(optional_operands[0], TYPES["u32"]) if optional_operands else None
    size = integer_literal(size_operand.text)
    load, target = Access(source, "global", size, bind), Access(destination, "shared", size, bind, COPY)
    single_bytes = [_byte_access(source, number, bind) for number in range(size)] if source_size else []
    source_registers = tuple(bind.effects.source_registers)
    copy_type = whole_type(size)
    add_completion = _completion_recorder(size)
    bind.effects.starts_block = True

    def run(group: ThreadGroup) -> None:
        add_completion(group)
        if source_size is not None:
            byte_counts = source_size.read(group.registers)
            if (byte_counts < size).any():
                store(
                    target, group, _first_bytes(group, single_bytes, group.lanes.spread(byte_counts), source_registers)
                )
                _check_issue(group)
                return
        for part in load.parts(group):
            load.check(group, part)
            store(target, group, part.view(copy_type)[part.element])
        _check_issue(group)

    return run


def _check_issue(group: ThreadGroup) -> None:
    if group.batch.checks is not None:
        group.batch.checks.order.copies.record_issue(group.lanes)


def _byte_access(source: Operand, number: int, bind: Binder) -> Access:
    if not isinstance(source, Memory):
        return bind.unsupported()
    return Access(replace(source, offset=source.offset + number), "global", 1, bind)


def _first_bytes(
    group: ThreadGroup, single_bytes: list[Access], byte_counts: Value, source_registers: tuple[int, ...]
) -> Value:
    """Return the first ``byte_counts`` bytes for each lane, and zeros after them."""
    size = len(single_bytes)
    copied_bytes = np.zeros((group.lanes.count, size), U8)
    for number, access in enumerate(single_bytes):
        positions = np.flatnonzero(byte_counts > number)
        if len(positions):
            lanes_with_byte = group.select(positions, group.block, source_registers)
            for part in access.parts(lanes_with_byte):
                access.check(lanes_with_byte, part)
                copied_bytes[positions, number] = part.view(U8)[part.element]
    result: Value = copied_bytes.view(whole_type(size))[:, 0]
    return result


def _completion_recorder(size: int) -> Operation:
    """Return the note of when ``size`` bytes per lane are copied: the lanes of a warp share one transfer."""
    cycles = COPY_LATENCY + np.array([copy_cycles(size * count) for count in range(WARP_SIZE + 1)], np.int64)

    def add_completion(group: ThreadGroup) -> None:
        lanes, counters = group.lanes, group.batch.counters
        end = counters + cycles[np.bincount(lanes.warp, minlength=len(counters))]
        group.batch.copies.add(lanes, end[lanes.warp])

    return add_completion


def _commit(group: ThreadGroup) -> None:
    group.batch.copies.commit(group.lanes)
    if group.batch.checks is not None:
        group.batch.checks.order.copies.record_commit(group.lanes)


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
    destination, stored_value, mbarrier = operands_of(instruction, 3)
    kind = last_type(instruction)
    size = kind.bytes * (len(stored_value.elements) if isinstance(stored_value, Vector) else 1)
    store = loads_and_stores.build_store_of(destination, stored_value, kind, "shared", bind)
    access, line = Access(mbarrier, "shared", WORD_BYTES, bind), bind.line
    bind.effects.starts_block = True

    def run(group: ThreadGroup) -> None:
        store(group)
        lanes = group.lanes
        times = (group.batch.counters[lanes.warp] + COPY_LATENCY + copy_cycles(size)).tolist()
        events = [MBarrierEvent(tx_count=-size)] * lanes.count
        apply_events(group, line, mbarrier_words(access, group, line), events, times)

    return run
