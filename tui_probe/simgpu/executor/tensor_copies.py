"""Tensor maps: their tiles, ``cp.async.bulk.tensor`` and ``tensormap`` (sm_90 on a GPU).

As for other bulk copies, bytes are there immediately, and only the time until then is modelled. Tiles only are copied:
neither im2col nor gathers, nor to several blocks of a cluster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.errors import SimulationError
from tui_probe.ptx.tree import Memory
from tui_probe.simgpu.executor.addressing import Access, state_space
from tui_probe.simgpu.executor.async_state import WORD_BYTES, MBarrierEvent
from tui_probe.simgpu.executor.barrier_instructions import apply_events, mbarrier_words
from tui_probe.simgpu.executor.checks.accesses import (
    BULK_LOAD,
    BULK_STORE,
    LOAD,
    STORE,
    TRACKED_COPY,
    AccessKind,
    CheckedAccess,
)
from tui_probe.simgpu.executor.memory import AccessFault
from tui_probe.simgpu.executor.model import COPY_LATENCY, copy_cycles
from tui_probe.simgpu.executor.scalars import (
    B128,
    CACHE_HINT,
    TYPES,
    UNSIGNED,
    integer_literal,
    operands_before_hint,
    operands_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.memory import Space
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation
    from tui_probe.simgpu.executor.scalars import Value
    from tui_probe.simgpu.executor.threads import ThreadGroup

# Tensor maps: what a tile of a tensor is, and where its elements are.
#
# A map has 128 bytes, whose layout is the device's own affair: here as in ``FIELDS``, and in the simulated driver's
# ``tensor_map.c``. Numbers mean what ``tensormap.replace`` of PTX takes; strides are bytes, without that of the
# innermost dimension, which comes first everywhere.

MAP_BYTES: Final = 128
DIMENSIONS: Final = 5
"""Maximum rank of a tensor map, by the PTX ISA."""
FIELDS: Final = {
    "global_address": (0, 8, 1),
    "rank": (8, 4, 1),
    "elemtype": (12, 4, 1),
    "interleave_layout": (16, 4, 1),
    "swizzle_mode": (20, 4, 1),
    "fill_mode": (24, 4, 1),
    "global_stride": (32, 8, 4),
    "global_dim": (64, 4, 5),
    "box_dim": (84, 4, 5),
    "element_stride": (104, 4, 5),
}
"""Offset in bytes, bytes of an entry, and how many there are, by name of a field in ``tensormap.replace``."""
_ELEMENT_BYTES: Final = (1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4)
"""Bytes by number of an element type in ``tensormap.replace``: u8, u16, u32, s32, u64, s64, f16, f32, f32.ftz, f64,
bf16, tf32, tf32.ftz.
"""
_SWIZZLE_SPANS: Final = (0, 32, 64, 128)
"""Bytes of a row that a swizzle mode exchanges pieces of."""
_SWIZZLE_PIECE: Final = 16
_MAX_TILE_BYTES: Final = 256 << 10
"""Bytes: more than there is shared memory."""
_IGNORED_MODIFIERS: Final = ("tile", CACHE_HINT)
"""Modifiers that change nothing here: tiles are the only form that is executed."""
_GLOBAL_TO_SHARED: Final = (
    ("shared::cluster", "global", "mbarrier::complete_tx::bytes"),
    ("shared::cta", "global", "mbarrier::complete_tx::bytes"),
)
_SHARED_TO_GLOBAL: Final = ("global", "shared::cta", "bulk_group")
_CHUNK_BYTES: Final = 16


@dataclass(frozen=True)
class Tile:
    """The elements of a box at some coordinates: their device addresses, and whether each is inside the tensor.

    ``offsets`` are bytes from the start of the tile in shared memory, where all are side by side.
    """

    element_bytes: int
    addresses: NDArray[np.uint64]
    is_inside: NDArray[np.bool_]
    offsets: NDArray[np.uint64]
    span: int

    @property
    def bytes(self) -> int:
        return len(self.addresses) * self.element_bytes

    def shared_addresses(self, start: int) -> NDArray[np.uint64]:
        """Return the shared addresses of the elements of a tile that begins at ``start``."""
        address = self.offsets + np.uint64(start)
        if self.span:
            address ^= (address >> np.uint64(7) & np.uint64(self.span // _SWIZZLE_PIECE - 1)) << np.uint64(4)
        return address


class TensorMap:
    """A map out of its bytes. Raises SimulationError for one that is not executed, or was not encoded."""

    def __init__(self, raw: bytes) -> None:
        fields = {name: _field_entries(raw, *place) for name, place in FIELDS.items()}
        self.rank = fields["rank"][0] + 1
        self._address = fields["global_address"][0]
        kind, mode = fields["elemtype"][0], fields["swizzle_mode"][0]
        if self.rank > DIMENSIONS or kind >= len(_ELEMENT_BYTES) or mode >= len(_SWIZZLE_SPANS) or not self._address:
            raise SimulationError("the tensor map was not encoded by cuTensorMapEncodeTiled or tensormap.replace")
        if fields["interleave_layout"][0] or fields["fill_mode"][0]:
            raise SimulationError("a tensor map with interleaved layout or NaN fill is not supported")
        self.element_bytes = _ELEMENT_BYTES[kind]
        self._span = _SWIZZLE_SPANS[mode]
        self._strides = [self.element_bytes, *fields["global_stride"]][: self.rank]
        self._extents, self._box, self._steps = (
            fields[name][: self.rank] for name in ("global_dim", "box_dim", "element_stride")
        )
        if not all(self._box) or not all(self._steps) or math.prod(self._box) * self.element_bytes > _MAX_TILE_BYTES:
            raise SimulationError(
                f"the box {self._box} or the element stride {self._steps} of a tensor map is not supported"
            )
        if self._span and self._box[0] * self.element_bytes != self._span:
            raise SimulationError(
                f"a tensor map with rows of {self._box[0]} elements, which do not fill its"
                f" swizzle span of {self._span} bytes"
            )

    def tile(self, coordinates: list[int]) -> Tile:
        """The box whose first element is at ``coordinates``."""
        counts = [-(-size // step) for size, step in zip(self._box, self._steps, strict=True)]
        linear = np.arange(int(np.prod(counts)), dtype=np.int64)
        address = np.full(len(linear), self._address, np.int64)
        is_inside = np.ones(len(linear), np.bool_)
        remaining = linear
        for count, step, extent, stride, origin in zip(
            counts, self._steps, self._extents, self._strides, coordinates, strict=True
        ):
            remaining, index = np.divmod(remaining, count)
            coordinate = origin + index * step
            is_inside &= (coordinate >= 0) & (coordinate < extent)
            address += coordinate * stride
        offsets = (linear * self.element_bytes).astype(np.uint64)
        return Tile(self.element_bytes, address.astype(np.uint64), is_inside, offsets, self._span)


def _field_entries(raw: bytes, start: int, size: int, count: int) -> list[int]:
    return [int.from_bytes(raw[start + size * n : start + size * (n + 1)], "little") for n in range(count)]


def build_tensor_copy(instruction: Instruction, bind: Binder) -> Operation:
    """``cp.async.bulk.tensor.dim.shared::….global….mbarrier::complete_tx::bytes [to], [map, {…}], [mbarrier]`` and
    ``cp.async.bulk.tensor.dim.global.shared::cta….bulk_group [map, {…}], [from]``.
    """
    form = tuple(part for part in instruction.modifiers[4:] if part not in _IGNORED_MODIFIERS)
    if form in _GLOBAL_TO_SHARED:
        destination, tensor, mbarrier = operands_before_hint(instruction, 3)
        return _build_tile_load(destination, _TensorOperand(tensor, bind), mbarrier, bind)
    if form == _SHARED_TO_GLOBAL:
        tensor, source = operands_before_hint(instruction, 2)
        return _build_tile_store(_TensorOperand(tensor, bind), source, bind)
    return bind.unsupported()


class _TensorOperand:
    """An operand ``[map, {coordinates}]``. Groups that copy its tile have a single lane."""

    def __init__(self, operand: Operand, bind: Binder) -> None:
        if not isinstance(operand, Memory) or not operand.coordinates:
            bind.unsupported()
        self._coordinates = [bind.source(coordinate, TYPES["s32"]) for coordinate in operand.coordinates]
        self._map = Access(replace(operand, coordinates=()), "", _CHUNK_BYTES, bind)
        bind.layout.min_access_bytes = 1  # only the map has the size of its elements
        bind.effects.starts_block = True

    def tile(self, one_lane: ThreadGroup) -> Tile:
        """Return the tile at the coordinates of a lane. Raises SimulationError."""
        map_address = one_lane.lanes.spread(self._map.address(one_lane)).astype(np.uint64)
        chunks = [
            self._map.gather(one_lane, map_address + np.uint64(offset), B128)
            for offset in range(0, MAP_BYTES, _CHUNK_BYTES)
        ]
        tensor = TensorMap(b"".join(chunk.tobytes() for chunk in chunks))
        coordinates = [
            int(one_lane.lanes.spread(coordinate.read(one_lane.registers))[0]) for coordinate in self._coordinates
        ]
        return tensor.tile(coordinates)


def _build_tile_load(destination: Operand, box: _TensorOperand, mbarrier: Operand, bind: Binder) -> Operation:
    target, barrier, line = (
        Access(destination, "shared", _CHUNK_BYTES, bind),
        Access(mbarrier, "shared", WORD_BYTES, bind),
        bind.line,
    )
    source_registers = tuple(bind.effects.source_registers)

    def copy(one_lane: ThreadGroup) -> None:
        tile = box.tile(one_lane)
        kind = UNSIGNED[8 * tile.element_bytes]
        values = np.zeros(len(tile.addresses), kind)
        source = one_lane.batch.memory
        source_indices = _element_indices(source, tile.addresses[tile.is_inside], tile, one_lane, line, LOAD)
        values[tile.is_inside] = source.view(kind)[source_indices]
        start = int(one_lane.lanes.spread(target.address(one_lane))[0])
        shared_memory = one_lane.batch.shared_memory
        target_indices = _element_indices(
            shared_memory, tile.shared_addresses(start), tile, one_lane, line, TRACKED_COPY
        )
        shared_memory.view(kind)[target_indices] = values
        end_cycle = int(one_lane.batch.counters[one_lane.lanes.warp[0]]) + COPY_LATENCY + copy_cycles(tile.bytes)
        mbarriers = mbarrier_words(barrier, one_lane, line)
        if one_lane.batch.checks is not None:
            one_lane.batch.checks.order.copies.record_mbarriers(mbarriers)
        apply_events(one_lane, line, mbarriers, [MBarrierEvent(tx_count=-tile.bytes)], [end_cycle])

    return _copy_lane_by_lane(copy, source_registers)


def _build_tile_store(box: _TensorOperand, operand: Operand, bind: Binder) -> Operation:
    source, line = Access(operand, "shared", _CHUNK_BYTES, bind), bind.line
    source_registers = tuple(bind.effects.source_registers)

    def copy(one_lane: ThreadGroup) -> None:
        tile = box.tile(one_lane)
        kind = UNSIGNED[8 * tile.element_bytes]
        start = int(one_lane.lanes.spread(source.address(one_lane))[0])
        shared_memory, target = one_lane.batch.shared_memory, one_lane.batch.memory
        values = shared_memory.view(kind)[
            _element_indices(shared_memory, tile.shared_addresses(start), tile, one_lane, line, BULK_LOAD)
        ]
        target_indices = _element_indices(target, tile.addresses[tile.is_inside], tile, one_lane, line, BULK_STORE)
        target.view(kind)[target_indices] = values[tile.is_inside]
        end_cycles = one_lane.batch.counters[one_lane.lanes.warp] + copy_cycles(tile.bytes)
        one_lane.batch.bulk_reads.add(one_lane.lanes, end_cycles)
        one_lane.batch.bulk_writes.add(one_lane.lanes, end_cycles + COPY_LATENCY)
        if one_lane.batch.checks is not None:
            one_lane.batch.checks.order.copies.record_bulk_issue(one_lane.lanes)

    return _copy_lane_by_lane(copy, source_registers)


def _copy_lane_by_lane(copy: Callable[[ThreadGroup], None], source_registers: tuple[int, ...]) -> Operation:
    def run(group: ThreadGroup) -> None:
        for lane in range(group.lanes.count):
            copy(group.select(np.array([lane]), group.block, source_registers))

    return run


def _element_indices(
    space: Space, address: Value, tile: Tile, one_lane: ThreadGroup, line: int, kind: AccessKind
) -> Value:
    """Check an access to a tile's elements, and return their indices in their space. Raises MemoryFaultError."""
    offset = space.offsets(address)
    try:
        space.check(offset, tile.element_bytes)
    except AccessFault as fault:
        raise fault.as_error(line, one_lane.batch.describe(one_lane.lanes, 0)) from None
    index = space.indices(one_lane.lanes, offset, tile.element_bytes)
    if one_lane.batch.checks is not None:
        lanes = np.zeros(len(index), np.intp)
        one_lane.batch.checks.access(CheckedAccess(kind, line, tile.element_bytes, space, index, one_lane.lanes, lanes))
    return index


def _build_tensormap(instruction: Instruction, bind: Binder) -> Operation:
    if instruction.modifiers[0] == "replace":
        return _build_replacement(instruction, bind)
    return _build_map_copy(instruction, bind)


def _build_replacement(instruction: Instruction, bind: Binder) -> Operation:
    """``tensormap.replace.tile.field{.space}.b1024.type [map], {entry,} value``."""
    start, size, count = FIELDS[instruction.modifiers[2]]
    operands = operands_of(instruction, 3 if count > 1 else 2)
    entry = integer_literal(getattr(operands[1], "text", "")) if count > 1 else 0
    if entry >= count:
        bind.unsupported()
    access = Access(operands[0], state_space(instruction), size, bind, STORE)
    value = bind.source(operands[-1], TYPES[f"b{8 * size}"])

    def run(group: ThreadGroup) -> None:
        map_address = group.lanes.spread(access.address(group))
        place = map_address + map_address.dtype.type(start + size * entry)
        access.scatter(group, place, group.lanes.spread(value.read(group.registers)))

    return run


def _build_map_copy(instruction: Instruction, bind: Binder) -> Operation:
    """``tensormap.cp_fenceproxy….sync.aligned [to], [from], 128``: a map from shared to global memory."""
    destination, source, _ = operands_of(instruction, 3)
    target_access, source_access = (
        Access(destination, "global", _CHUNK_BYTES, bind, STORE),
        Access(source, "shared", _CHUNK_BYTES, bind),
    )

    def run(group: ThreadGroup) -> None:
        target, origin = (group.lanes.spread(access.address(group)) for access in (target_access, source_access))
        for offset in range(0, MAP_BYTES, _CHUNK_BYTES):
            chunk = source_access.gather(group, origin + origin.dtype.type(offset), B128)
            target_access.scatter(group, target + target.dtype.type(offset), chunk)

    return run


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {"tensormap": _build_tensormap}
