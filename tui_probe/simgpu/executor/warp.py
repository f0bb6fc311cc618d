"""Warp-level operations: ``shfl``, ``vote``, ``match``, ``redux``, ``activemask``, ``elect``.

The lanes of a warp that are at the same instruction execute it together; the ``.sync`` forms first wait for the
lanes that their member mask names. A lane that reads from one that is not there keeps its own value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.ptx.tree import Pair
from tui_probe.simgpu.executor.bits import bit_length
from tui_probe.simgpu.executor.model import WARP_SIZE
from tui_probe.simgpu.executor.scalars import PREDICATE, TYPES, U32, Value, last_type, operands_of, scalar

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.lanes import Lanes, Places
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation, ResultOperand, SourceOperand
    from tui_probe.simgpu.executor.threads import ThreadGroup

_U32: Final = TYPES["u32"]
_ALL_LANES: Final = np.uint32(0xFFFFFFFF)
_REDUCTIONS: Final[dict[str, tuple[Any, Callable[[np.dtype[Any]], int]]]] = {
    "add": (np.add, lambda _: 0),
    "min": (np.minimum, lambda dtype: int(np.iinfo(dtype).max)),
    "max": (np.maximum, lambda dtype: int(np.iinfo(dtype).min)),
    "and": (np.bitwise_and, lambda _: 0xFFFFFFFF),
    "or": (np.bitwise_or, lambda _: 0),
    "xor": (np.bitwise_xor, lambda _: 0),
}


def _bind_members(operand: Operand, bind: Binder) -> SourceOperand:
    """Return the source of the member mask. Lanes wait at the start of the block until all members have come."""
    source = bind.source(operand, _U32)
    bind.effects.members = source
    return source


def _build_shuffle(instruction: Instruction, bind: Binder) -> Operation:
    """``shfl{.sync}.up|down|bfly|idx.b32 d{|p}, a, b, c{, members}``."""
    modifiers = [modifier for modifier in instruction.modifiers if modifier != "sync"]
    destination, a, b, c, *member_operands = operands_of(instruction, 4, 5)
    kind = TYPES[modifiers[1]]
    value_operand = destination.first if isinstance(destination, Pair) else destination
    kind = bind.stored_kind(value_operand, kind)
    target = bind.target(value_operand, kind)
    flag = bind.target(destination.second, PREDICATE) if isinstance(destination, Pair) else None
    value, lane, clamp = bind.source(a, kind), bind.source(b, _U32), bind.source(c, _U32)
    if member_operands:
        _bind_members(member_operands[0], bind)
    mode = modifiers[0]

    def run(group: ThreadGroup) -> None:
        registers = group.registers
        operand = value.read(registers)
        position, in_range = _cached_source_lanes(group.lanes, mode, lane.read(registers), clamp.read(registers))
        target.write(registers, operand[position] if operand.ndim else operand)
        if flag is not None:
            flag.write(registers, in_range)

    return run


def _cached_source_lanes(lanes: Lanes, mode: str, b: Value, c: Value) -> tuple[Places, Value]:
    """Return, per lane, the position in the group that it reads from, and whether its source lane is in range."""
    key = None if b.ndim or c.ndim else (mode, int(b), int(c))
    sources: tuple[Places, Value] | None = lanes.cache.get(key) if key else None
    if sources is None:
        sources = _source_lanes(lanes, mode, b, c)
        if key:
            lanes.cache[key] = sources
    return sources


def _source_lanes(lanes: Lanes, mode: str, b: Value, c: Value) -> tuple[Places, Value]:
    """Return source positions as PTX defines them: ``c`` has the clamp in its low bits and, from bit 8, the segment
    mask.
    """
    lane = lanes.lane.astype(np.int64)
    offset = (b & np.uint32(31)).astype(np.int64)
    segment = ((c >> np.uint32(8)) & np.uint32(31)).astype(np.int64)
    clamp = (c & np.uint32(31)).astype(np.int64)
    max_lane = (lane & segment) | (clamp & ~segment)
    min_lane = lane & segment
    source, in_range = {
        "up": lambda: (lane - offset, lane - offset >= max_lane),
        "down": lambda: (lane + offset, lane + offset <= max_lane),
        "bfly": lambda: (lane ^ offset, lane ^ offset <= max_lane),
        "idx": lambda: (min_lane | (offset & ~segment), (min_lane | (offset & ~segment)) <= max_lane),
    }[mode]()
    source = np.where(in_range, source, lane)
    position = lanes.position[lanes.warp * WARP_SIZE + source]
    own_positions = np.arange(lanes.count)
    return np.where(position < 0, own_positions, position), np.asarray(in_range)


def _build_vote(instruction: Instruction, bind: Binder) -> Operation:
    """``vote{.sync}.all|any|uni.pred p, {!}a{, members}`` and ``vote.ballot.b32 d, {!}a{, members}``."""
    modifiers = [modifier for modifier in instruction.modifiers if modifier != "sync"]
    destination, a, *member_operands = operands_of(instruction, 2, 3)
    mode = modifiers[0]
    target = bind.target(destination, _U32 if mode == "ballot" else PREDICATE)
    predicate = bind.predicate(a)
    members = _bind_members(member_operands[0], bind) if member_operands else None

    def run(group: ThreadGroup) -> None:
        registers, lanes = group.registers, group.lanes
        participants = lanes.active_bits[lanes.warp]
        if members is not None:
            participants = participants & members.read(registers)
        votes = lanes.ballot(predicate.read(registers))[lanes.warp] & participants
        target.write(registers, _vote_result(mode, votes, participants))

    return run


def _vote_result(mode: str, votes: Value, participants: Value) -> Value:
    if mode == "ballot":
        return votes
    if mode == "any":
        return np.not_equal(votes, 0)
    is_unanimous = np.equal(votes, participants)
    return is_unanimous if mode == "all" else is_unanimous | np.equal(votes, 0)


def _build_match(instruction: Instruction, bind: Binder) -> Operation:
    """``match.any.sync.type d, a, members`` and ``match.all.sync.type d{|p}, a, members``."""
    mode, kind = instruction.modifiers[0], last_type(instruction)
    destination, a, mask = operands_of(instruction, 3)
    value_operand = destination.first if isinstance(destination, Pair) else destination
    target = bind.target(value_operand, _U32)
    flag = bind.target(destination.second, PREDICATE) if isinstance(destination, Pair) else None
    value, members = bind.source(a, kind), _bind_members(mask, bind)

    def run(group: ThreadGroup) -> None:
        registers, lanes = group.registers, group.lanes
        participants = lanes.active_bits[lanes.warp] & members.read(registers)
        equal_lanes = _equal_lanes(lanes, lanes.spread(value.read(registers))) & participants
        if mode == "any":
            target.write(registers, equal_lanes)
            return
        is_uniform = equal_lanes == participants
        target.write(registers, np.where(is_uniform, participants, np.uint32(0)))
        if flag is not None:
            flag.write(registers, is_uniform)

    return run


def _by_warp(lanes: Lanes, value: Value, fill: Any) -> Value:
    """Return ``value`` as an array of shape (warps, 32), ``fill`` where a warp has no lane in the group."""
    table = np.full(lanes.place_count, fill, value.dtype)
    table[lanes.places] = value
    return table.reshape(-1, WARP_SIZE)


def _equal_lanes(lanes: Lanes, value: Value) -> Value:
    """Return, per lane, a mask of the lanes of its warp with the same value; absent lanes may be in it."""
    table = _by_warp(lanes, value, 0)
    if 2 * lanes.count < lanes.place_count:
        return _pack_mask(table[lanes.warp] == value[:, None])
    # Most lanes are there: the values of each warp are sorted, except where it has one value, as most warps have.
    masks = np.full(table.shape, _ALL_LANES, np.uint32)
    mixed_warps = np.flatnonzero((table != table[:, :1]).any(axis=1))
    if len(mixed_warps):
        masks[mixed_warps] = _group_masks(table[mixed_warps])
    return masks.reshape(-1)[lanes.places]


def _group_masks(table: Value) -> Value:
    """Return, per value of an array of shape (warps, 32), a mask of the lanes of its row that have the same."""
    order = table.argsort(axis=1, kind="stable")
    lane_bits = np.left_shift(np.uint32(1), order.astype(np.uint32)).reshape(-1)
    order += np.arange(0, table.size, WARP_SIZE)[:, None]
    places = order.reshape(-1)
    values = table.reshape(-1)[places]
    is_start = np.ones(len(places), np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_start[1:])
    is_start[::WARP_SIZE] = True
    run_starts = np.flatnonzero(is_start)
    masks = np.empty(len(places), np.uint32)
    masks[places] = np.repeat(np.bitwise_or.reduceat(lane_bits, run_starts), np.diff(run_starts, append=len(places)))
    return masks.reshape(table.shape)


def _pack_mask(table: Value) -> Value:
    """Return booleans of shape (lanes, 32) as one word per lane."""
    result: Value = np.packbits(table, axis=1, bitorder="little").view(np.dtype("<u4"))[:, 0]
    return result


def _build_reduction(instruction: Instruction, bind: Binder) -> Operation:
    """``redux.sync.op.type d, a, members``, for 32-bit integers."""
    operation, kind = instruction.modifiers[-2], last_type(instruction)
    function, neutral_of = _REDUCTIONS[operation]
    if not kind.is_integer:
        bind.unsupported()
    neutral = scalar(neutral_of(kind.dtype), kind.dtype)
    target, a, mask = operands_of(instruction, 3)
    destination = bind.target(target, kind)
    value, members = bind.source(a, kind), _bind_members(mask, bind)
    bit = np.arange(WARP_SIZE, dtype=np.uint32)

    def reduce_table(table: Value, participants: Value) -> Value:
        is_participant = (participants[:, None] >> bit) & np.uint32(1) != 0
        result: Value = function.reduce(np.where(is_participant, table, neutral), axis=1, dtype=kind.dtype)
        return result

    def run(group: ThreadGroup) -> None:
        registers, lanes = group.registers, group.lanes
        table = _by_warp(lanes, lanes.spread(value.read(registers)), neutral)
        participants = lanes.active_bits[lanes.warp] & members.read(registers)
        warp_participants = np.zeros(len(table), U32)
        warp_participants[lanes.warp] = participants
        if (warp_participants[lanes.warp] == participants).all():  # one reduction per warp, not one per lane
            destination.write(registers, reduce_table(table, warp_participants)[lanes.warp])
        else:
            destination.write(registers, reduce_table(table[lanes.warp], participants))

    return run


def _build_active_mask(instruction: Instruction, bind: Binder) -> Operation:
    """``activemask.b32 d``: the lanes of the warp that execute this together."""
    target = bind.target(instruction.operands[0], _U32)
    bind.effects.starts_block = True

    def run(group: ThreadGroup) -> None:
        target.write(group.registers, group.lanes.active_bits[group.lanes.warp])

    return run


def _build_elect(instruction: Instruction, bind: Binder) -> Operation:
    """``elect.sync d|p, members``: d names the lowest lane that is there, p holds for that lane only."""
    destination, mask = operands_of(instruction, 2)
    if not isinstance(destination, Pair):
        bind.unsupported()
    leader: ResultOperand = bind.target(destination.first, _U32)
    flag = bind.target(destination.second, PREDICATE)
    members = _bind_members(mask, bind)

    def run(group: ThreadGroup) -> None:
        registers, lanes = group.registers, group.lanes
        participants = lanes.active_bits[lanes.warp] & members.read(registers)
        leader_lane = bit_length(participants & (~participants + np.uint32(1))) - np.uint32(1)
        leader.write(registers, leader_lane)
        flag.write(registers, leader_lane == lanes.lane.astype(U32))

    return run


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {
    "shfl": _build_shuffle,
    "vote": _build_vote,
    "match": _build_match,
    "redux": _build_reduction,
    "activemask": _build_active_mask,
    "elect": _build_elect,
}
