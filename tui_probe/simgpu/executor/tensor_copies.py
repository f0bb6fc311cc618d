"""Copies of tiles by tensor map, ``cp.async.bulk.tensor``, and maps that kernels make, ``tensormap`` (sm_90 on a GPU).

As for other bulk copies, bytes are there at once, and only the time until then is modelled. Tiles alone are copied:
neither im2col nor gathers, nor to several blocks of a cluster.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.tree import Memory
from tui_probe.simgpu.executor.access import Access
from tui_probe.simgpu.executor.forms import operands_of
from tui_probe.simgpu.executor.loads import state_space
from tui_probe.simgpu.executor.mbarrier_words import WORD_BYTES, Event
from tui_probe.simgpu.executor.mbarriers import happen_in_turn, words_of
from tui_probe.simgpu.executor.memory import AccessFault
from tui_probe.simgpu.executor.model import COPY_LATENCY, copy_cycles
from tui_probe.simgpu.executor.scalars import B128, TYPES, UNSIGNED, integer_literal
from tui_probe.simgpu.executor.tensor_maps import FIELDS, MAP_BYTES, TensorMap

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.memory import Space
    from tui_probe.simgpu.executor.operands import Binder, Operation
    from tui_probe.simgpu.executor.scalars import Value
    from tui_probe.simgpu.executor.tensor_maps import Tile

_HINTS: Final = ("tile", "L2::cache_hint")
_INTO_SHARED: Final = (
    ("shared::cluster", "global", "mbarrier::complete_tx::bytes"),
    ("shared::cta", "global", "mbarrier::complete_tx::bytes"),
)
_OUT_OF_SHARED: Final = ("global", "shared::cta", "bulk_group")


def build_tensor_copy(instruction: Instruction, bind: Binder) -> Operation:
    """``cp.async.bulk.tensor.dim.shared::….global….mbarrier::complete_tx::bytes [to], [map, {…}], [mbarrier]`` and
    ``cp.async.bulk.tensor.dim.global.shared::cta….bulk_group [map, {…}], [from]``.
    """
    form = tuple(part for part in instruction.modifiers[4:] if part not in _HINTS)
    has_hint = "L2::cache_hint" in instruction.modifiers
    if form in _INTO_SHARED:
        to, tensor, word, *_ = operands_of(instruction, 3 + has_hint)
        return _build_load(to, _Box(tensor, bind), word, bind)
    if form == _OUT_OF_SHARED:
        tensor, source, *_ = operands_of(instruction, 2 + has_hint)
        return _build_store(_Box(tensor, bind), source, bind)
    return bind.unsupported()


class _Box:
    """An operand ``[map, {coordinates}]``."""

    def __init__(self, operand: Operand, bind: Binder) -> None:
        if not isinstance(operand, Memory) or not operand.coordinates:
            bind.unsupported()
        self._coordinates = [bind.source(one, TYPES["s32"]) for one in operand.coordinates]
        self._map = Access(replace(operand, coordinates=()), "", _CHUNK, bind)
        bind.effects.starts_block = True

    def tile(self, own: Group) -> Tile:
        """Of a group of one lane. Raises SimulationError."""
        first = own.lanes.spread(self._map.address(own)).astype(np.uint64)
        chunks = [self._map.gathered(own, first + np.uint64(at), B128) for at in range(0, MAP_BYTES, _CHUNK)]
        tensor = TensorMap(b"".join(chunk.tobytes() for chunk in chunks))
        places = [int(own.lanes.spread(one.read(own.registers))[0]) for one in self._coordinates]
        return tensor.tile(places)


_CHUNK: Final = 16


def _build_load(to: Operand, box: _Box, word: Operand, bind: Binder) -> Operation:
    target, barrier, line = Access(to, "shared", _CHUNK, bind), Access(word, "shared", WORD_BYTES, bind), bind.line
    reads = tuple(bind.effects.reads)

    def copy(own: Group) -> None:
        tile = box.tile(own)
        kind = UNSIGNED[8 * tile.element_bytes]
        found = np.zeros(len(tile.addresses), kind)
        source = own.batch.memory
        found[tile.inside] = source.view(kind)[_reach(source, tile.addresses[tile.inside], tile, own, line)]
        start = int(own.lanes.spread(target.address(own))[0])
        shared = own.batch.shared
        shared.view(kind)[_reach(shared, tile.shared_addresses(start), tile, own, line)] = found
        time = int(own.batch.counters[own.lanes.warp[0]]) + COPY_LATENCY + copy_cycles(tile.bytes)
        happen_in_turn(own, line, words_of(barrier, own, line), [Event(transfer=-tile.bytes)], [time])

    return _by_lanes(copy, reads)


def _build_store(box: _Box, operand: Operand, bind: Binder) -> Operation:
    source, line = Access(operand, "shared", _CHUNK, bind), bind.line
    reads = tuple(bind.effects.reads)

    def copy(own: Group) -> None:
        tile = box.tile(own)
        kind = UNSIGNED[8 * tile.element_bytes]
        start = int(own.lanes.spread(source.address(own))[0])
        shared, target = own.batch.shared, own.batch.memory
        values = shared.view(kind)[_reach(shared, tile.shared_addresses(start), tile, own, line)]
        target.view(kind)[_reach(target, tile.addresses[tile.inside], tile, own, line)] = values[tile.inside]
        end = own.batch.counters[own.lanes.warp] + copy_cycles(tile.bytes)
        own.batch.bulk_reads.add(own.lanes, end)
        own.batch.bulk_writes.add(own.lanes, end + COPY_LATENCY)

    return _by_lanes(copy, reads)


def _by_lanes(copy: Callable[[Group], None], reads: tuple[int, ...]) -> Operation:
    def run(group: Group) -> None:
        for lane in range(group.lanes.count):
            copy(group.select(np.array([lane]), group.block, reads))

    return run


def _reach(space: Space, address: Value, tile: Tile, own: Group, line: int) -> Value:
    """Indices of a tile's elements in their space. Raises MemoryFaultError."""
    offset = space.offsets(address)
    try:
        space.check(offset, tile.element_bytes)
    except AccessFault as fault:
        raise fault.at(line, own.batch.describe(own.lanes, 0)) from None
    return space.indices(own.lanes, offset, tile.element_bytes)


def _build_map(instruction: Instruction, bind: Binder) -> Operation:
    if instruction.modifiers[0] == "replace":
        return _build_replacement(instruction, bind)
    return _build_published(instruction, bind)


def _build_replacement(instruction: Instruction, bind: Binder) -> Operation:
    """``tensormap.replace.tile.field{.space}.b1024.type [map], {entry,} value``."""
    start, size, count = FIELDS[instruction.modifiers[2]]
    operands = operands_of(instruction, 3 if count > 1 else 2)
    entry = integer_literal(getattr(operands[1], "text", "")) if count > 1 else 0
    if entry >= count:
        bind.unsupported()
    access = Access(operands[0], state_space(instruction), size, bind)
    value = bind.source(operands[-1], TYPES[f"b{8 * size}"])

    def run(group: Group) -> None:
        first = group.lanes.spread(access.address(group))
        place = first + first.dtype.type(start + size * entry)
        access.scatter(group, place, group.lanes.spread(value.read(group.registers)))

    return run


def _build_published(instruction: Instruction, bind: Binder) -> Operation:
    """``tensormap.cp_fenceproxy….sync.aligned [to], [from], 128``: a map from shared to global memory."""
    to, source, _ = operands_of(instruction, 3)
    writing, reading = Access(to, "global", _CHUNK, bind), Access(source, "shared", _CHUNK, bind)

    def run(group: Group) -> None:
        target, origin = (group.lanes.spread(one.address(group)) for one in (writing, reading))
        for at in range(0, MAP_BYTES, _CHUNK):
            chunk = reading.gathered(group, origin + origin.dtype.type(at), B128)
            writing.scatter(group, target + target.dtype.type(at), chunk)

    return run


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {"tensormap": _build_map}
