"""Special registers (PTX ISA reference, section 10)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tui_probe.simgpu.executor.scalars import BOOL, U32, Value, scalar

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.simgpu.executor.threads import ThreadGroup

RegisterReader: TypeAlias = "Callable[[ThreadGroup], Value]"
# Those that PTX has and this device does not.
UNKNOWN_SPECIAL_REGISTERS: Final = re.compile(r"%pm\d(_64)?|%reserved_smem_.*|%current_graph_exec")


@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """``read`` gives the value for the lanes of a group, of the PTX type ``type``.

    ``is_clock`` marks those whose value depends on when they are read, ``is_placed`` those that depend on
    where and when their block runs.
    """

    type: str
    read: RegisterReader
    is_clock: bool = False
    is_placed: bool = False


def _cached_reader(read: RegisterReader) -> RegisterReader:
    """``read``, asked once for each set of lanes."""

    def read_cached(group: ThreadGroup) -> Value:
        value: Value | None = group.lanes.cache.get(read_cached)
        if value is None:
            value = group.lanes.cache[read_cached] = read(group)
        return value

    return read_cached


def _component(linear: Value, size: tuple[int, int, int], axis: int) -> Value:
    """Component ``axis`` of indices that count x first, then y, then z, as uint32."""
    if size[axis] == 1:
        return scalar(0, U32)
    if axis:
        linear = linear // int(np.prod(size[:axis]))
    if axis < 2 and any(extent > 1 for extent in size[axis + 1 :]):
        linear = linear % size[axis]
    return linear.astype(np.uint32)


def _thread_index(axis: int) -> RegisterReader:
    return _cached_reader(lambda group: _component(group.lanes.thread, group.batch.launch.block, axis))


def _block_index(axis: int) -> RegisterReader:
    def read(group: ThreadGroup) -> Value:
        blocks = _component(group.batch.block_indices, group.batch.launch.grid, axis)
        return _spread_blocks(group, blocks)

    return _cached_reader(read)


def _spread_blocks(group: ThreadGroup, values: Value) -> Value:
    """``values``, one per block of the batch, for each lane; a scalar for a batch of one block."""
    if not values.ndim:
        return values
    result: Value = values[0] if len(values) == 1 else values[group.lanes.block]
    return result


def _extent_reader(read_extent: Callable[[ThreadGroup], tuple[int, int, int]], axis: int) -> RegisterReader:
    return lambda group: scalar(read_extent(group)[axis], U32)


def _constant_reader(value: int) -> RegisterReader:
    constant = scalar(value, U32)
    return lambda _: constant


def _clock(group: ThreadGroup) -> Value:
    batch = group.batch
    cycles: Value = batch.start_cycles[group.lanes.block] + batch.counters[group.lanes.warp]
    return cycles.astype(np.uint64)


def _clock_low(group: ThreadGroup) -> Value:
    return _clock(group).astype(np.uint32)


def _clock_high(group: ThreadGroup) -> Value:
    return (_clock(group) >> np.uint64(32)).astype(np.uint32)


def _global_timer(group: ThreadGroup) -> Value:
    # Whole milliseconds first: cycles times a million would overflow after some hours of device time.
    clock = np.uint64(group.batch.machine.clock_khz)
    milliseconds, cycles = np.divmod(_clock(group), clock)
    nanoseconds: Value = milliseconds * np.uint64(1_000_000) + cycles * np.uint64(1_000_000) // clock
    return nanoseconds


def _timer_low(group: ThreadGroup) -> Value:
    return _global_timer(group).astype(np.uint32)


def _timer_high(group: ThreadGroup) -> Value:
    return (_global_timer(group) >> np.uint64(32)).astype(np.uint32)


def _warp_slot(group: ThreadGroup) -> Value:
    lanes, batch = group.lanes, group.batch
    warps = lanes.places_per_block // 32
    slots: Value = batch.slots[lanes.block] * warps + lanes.thread // 32
    return slots.astype(np.uint32)


def _lane_mask_reader(mask: Callable[[Any], Any]) -> RegisterReader:
    table = np.array([mask(lane) & 0xFFFFFFFF for lane in range(32)], np.uint32)

    def read(group: ThreadGroup) -> Value:
        result: Value = table[group.lanes.lane]
        return result

    return _cached_reader(read)


def _warp_slots(group: ThreadGroup) -> Value:
    return scalar(group.batch.machine.warp_slots_per_sm, U32)


def _sm(group: ThreadGroup) -> Value:
    return _spread_blocks(group, group.batch.sms)


def _sm_count(group: ThreadGroup) -> Value:
    return scalar(group.batch.machine.sm_count, U32)


def _dynamic_shared_size(group: ThreadGroup) -> Value:
    return scalar(group.batch.launch.dynamic_shared_bytes, U32)


def _shared_size(group: ThreadGroup) -> Value:
    return scalar(group.batch.launch.shared_bytes, U32)


def _grid(group: ThreadGroup) -> tuple[int, int, int]:
    return group.batch.launch.grid


def _cluster(group: ThreadGroup) -> tuple[int, int, int]:
    x, y, z = group.batch.launch.cluster
    return max(x, 1), max(y, 1), max(z, 1)


def _grid_of_clusters(group: ThreadGroup) -> tuple[int, int, int]:
    (x, y, z), (width, height, depth) = _grid(group), _cluster(group)
    return x // width, y // height, z // depth


def _cluster_reader(axis: int, function: np.ufunc) -> RegisterReader:
    """``function`` of the index of a block and the extent of a cluster."""
    index = _block_index(axis)

    def read(group: ThreadGroup) -> Value:
        result: Value = function(index(group), scalar(_cluster(group)[axis], U32))
        return result

    return _cached_reader(read)


def _rank_in_cluster(group: ThreadGroup) -> Value:
    return (group.lanes.block % group.batch.launch.cluster_size).astype(np.uint32)


def _block(group: ThreadGroup) -> tuple[int, int, int]:
    return group.batch.launch.block


def _vector_registers() -> dict[str, SpecialRegister]:
    registers = {}
    for register in (
        "%tid",
        "%ntid",
        "%ctaid",
        "%nctaid",
        "%clusterid",
        "%nclusterid",
        "%cluster_ctaid",
        "%cluster_nctaid",
    ):
        registers[f"{register}.w"] = SpecialRegister("u32", _constant_reader(0))
    for axis, name in enumerate("xyz"):
        registers[f"%tid.{name}"] = SpecialRegister("u32", _thread_index(axis))
        registers[f"%ntid.{name}"] = SpecialRegister("u32", _extent_reader(_block, axis))
        registers[f"%ctaid.{name}"] = SpecialRegister("u32", _block_index(axis))
        registers[f"%nctaid.{name}"] = SpecialRegister("u32", _extent_reader(_grid, axis))
        registers[f"%clusterid.{name}"] = SpecialRegister("u32", _cluster_reader(axis, np.floor_divide))
        registers[f"%cluster_ctaid.{name}"] = SpecialRegister("u32", _cluster_reader(axis, np.remainder))
        registers[f"%nclusterid.{name}"] = SpecialRegister("u32", _extent_reader(_grid_of_clusters, axis))
        registers[f"%cluster_nctaid.{name}"] = SpecialRegister("u32", _extent_reader(_cluster, axis))
    return registers


def _constant_registers() -> dict[str, SpecialRegister]:
    zeros = ["%gridid", *(f"%envreg{number}" for number in range(32))]
    return {name: SpecialRegister("u32", _constant_reader(0)) for name in zeros} | {
        # Where cooperative groups look for the memory of the grid's barrier.
        "%envreg1": SpecialRegister("u32", lambda group: scalar(group.batch.launch.workspace >> 32, U32)),
        "%envreg2": SpecialRegister("u32", lambda group: scalar(group.batch.launch.workspace & 0xFFFFFFFF, U32)),
        "%cluster_ctarank": SpecialRegister("u32", _cached_reader(_rank_in_cluster)),
        "%cluster_nctarank": SpecialRegister("u32", lambda group: scalar(group.batch.launch.cluster_size, U32)),
        "%is_explicit_cluster": SpecialRegister("pred", lambda group: scalar(any(group.batch.launch.cluster), BOOL)),
    }


SPECIAL_REGISTERS: Final[dict[str, SpecialRegister]] = {
    **_vector_registers(),
    **_constant_registers(),
    "%laneid": SpecialRegister("u32", _cached_reader(lambda group: group.lanes.lane.astype(np.uint32))),
    "%warpid": SpecialRegister("u32", _cached_reader(_warp_slot), is_placed=True),
    "%nwarpid": SpecialRegister("u32", _warp_slots),
    "%smid": SpecialRegister("u32", _cached_reader(_sm), is_placed=True),
    "%nsmid": SpecialRegister("u32", _sm_count),
    "%lanemask_eq": SpecialRegister("u32", _lane_mask_reader(lambda lane: 1 << lane)),
    "%lanemask_le": SpecialRegister("u32", _lane_mask_reader(lambda lane: (2 << lane) - 1)),
    "%lanemask_lt": SpecialRegister("u32", _lane_mask_reader(lambda lane: (1 << lane) - 1)),
    "%lanemask_ge": SpecialRegister("u32", _lane_mask_reader(lambda lane: -1 << lane)),
    "%lanemask_gt": SpecialRegister("u32", _lane_mask_reader(lambda lane: -2 << lane)),
    "%clock": SpecialRegister("u32", _clock_low, is_clock=True, is_placed=True),
    "%clock_hi": SpecialRegister("u32", _clock_high, is_clock=True, is_placed=True),
    "%clock64": SpecialRegister("u64", _clock, is_clock=True, is_placed=True),
    "%globaltimer": SpecialRegister("u64", _global_timer, is_clock=True, is_placed=True),
    "%globaltimer_lo": SpecialRegister("u32", _timer_low, is_clock=True, is_placed=True),
    "%globaltimer_hi": SpecialRegister("u32", _timer_high, is_clock=True, is_placed=True),
    "%dynamic_smem_size": SpecialRegister("u32", _dynamic_shared_size),
    "%total_smem_size": SpecialRegister("u32", _shared_size),
    "%aggr_smem_size": SpecialRegister("u32", _shared_size),
}
