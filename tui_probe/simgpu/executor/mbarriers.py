"""``mbarrier`` instructions but for waits, see ``mbarrier_waits``; what an mbarrier is, see ``mbarrier_words``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.simgpu.executor.access import Access
from tui_probe.simgpu.executor.faults import MBarrierError
from tui_probe.simgpu.executor.forms import operands_of
from tui_probe.simgpu.executor.loads import state_space
from tui_probe.simgpu.executor.mbarrier_words import MAX_COUNT, WORD_BYTES, Event
from tui_probe.simgpu.executor.model import instruction_cost
from tui_probe.simgpu.executor.scalars import TYPES, U32, U64

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.lanes import Places
    from tui_probe.simgpu.executor.operands import Binder, Operation, Source
    from tui_probe.simgpu.executor.scalars import Value


def words_of(access: Access, group: Group, line: int, address: Value | None = None) -> Places:
    """The index of each lane's mbarrier among the words of shared memory, or of that at ``address``.

    Raises MBarrierError.
    """
    words = np.empty(group.lanes.count, np.intp)
    for part in access.parts(group) if address is None else access.parts_at(group, address):
        chosen = slice(None) if part.positions is None else part.positions
        if part.space.name != "shared":
            position = 0 if part.positions is None else int(part.positions[0])
            where = group.batch.describe(group.lanes, position)
            raise MBarrierError(f"an mbarrier in {part.space.name} memory at line {line}, {where}")
        words[chosen] = part.element + part.first
    return words


def happen_in_turn(group: Group, line: int, words: Places, each: Sequence[Event], times: Sequence[int]) -> list[int]:
    """An event for each lane, in their order; the words before them. Raises MBarrierError."""
    mbarriers, memory = group.batch.mbarriers, group.batch.shared
    before = []
    for position, (word, event, time) in enumerate(zip(words.tolist(), each, times, strict=True)):
        before.append(int(memory.view(U64)[word]))
        if problem := mbarriers.happen(word, event, time):
            where = group.batch.describe(group.lanes, position)
            raise MBarrierError(f"mbarrier at line {line}, {where}: {problem}")
    return before


def _build(instruction: Instruction, bind: Binder) -> Operation:
    """``mbarrier.init|inval|arrive|arrive_drop|expect_tx|complete_tx|pending_count``; for waits, see mbarrier_waits."""
    kind = instruction.modifiers[0] if instruction.modifiers else ""
    bind.effects.starts_block = kind != "pending_count"
    match kind:
        case "init":
            return _build_initialisation(instruction, bind)
        case "inval":
            return _build_invalidation(instruction, bind)
        case "arrive" | "arrive_drop":
            return _build_arrival(instruction, bind)
        case "expect_tx" | "complete_tx":
            return _build_transaction(instruction, bind)
        case "pending_count":
            return _build_pending_count(instruction, bind)
    return bind.unsupported()


def word_access(operand: Operand, instruction: Instruction, bind: Binder) -> Access:
    """The access to the mbarrier that ``operand`` names, which may be that of another block of the cluster."""
    return Access(operand, state_space(instruction), WORD_BYTES, bind)


def _build_initialisation(instruction: Instruction, bind: Binder) -> Operation:
    """``mbarrier.init{.shared}.b64 [address], count``."""
    address, count_operand = operands_of(instruction, 2)
    access, count, line = word_access(address, instruction, bind), bind.source(count_operand, TYPES["u32"]), bind.line

    def run(group: Group) -> None:
        counts = group.lanes.spread(count.read(group.registers)).tolist()
        for position, word in enumerate(words_of(access, group, line).tolist()):
            if problem := group.batch.mbarriers.initialise(word, counts[position]):
                where = group.batch.describe(group.lanes, position)
                raise MBarrierError(f"mbarrier.init at line {line}, {where}: {problem}")

    return run


def _build_invalidation(instruction: Instruction, bind: Binder) -> Operation:
    """``mbarrier.inval{.shared}.b64 [address]``."""
    (address,) = operands_of(instruction, 1)
    access, line = word_access(address, instruction, bind), bind.line

    def run(group: Group) -> None:
        for word in words_of(access, group, line).tolist():
            group.batch.mbarriers.invalidate(word)

    return run


def _build_arrival(instruction: Instruction, bind: Binder) -> Operation:
    """``mbarrier.arrive{_drop}{.noComplete|.expect_tx}….b64 state, [address]{, count}``; of expect_tx a tx-count."""
    state, address, *rest = operands_of(instruction, 2, 3)
    access, target = word_access(address, instruction, bind), bind.target(state, TYPES["b64"])
    count = bind.source(rest[0], TYPES["u32"]) if rest else None
    drops = instruction.modifiers[0] == "arrive_drop"
    expects, may_end = "expect_tx" in instruction.modifiers, "noComplete" not in instruction.modifiers
    if expects and count is None:
        bind.unsupported()

    def event(number: int) -> Event:
        arrivals = 1 if expects else number
        return Event(arrivals, number if expects else 0, arrivals if drops else 0, may_end)

    run = _build_events(instruction, bind, access, count, event)

    def arrive(group: Group) -> None:
        target.write(group.registers, np.array(run(group), U64))

    return arrive


def _build_transaction(instruction: Instruction, bind: Binder) -> Operation:
    """``mbarrier.expect_tx|complete_tx….b64 [address], bytes``."""
    address, size = operands_of(instruction, 2)
    sign = 1 if instruction.modifiers[0] == "expect_tx" else -1
    access = word_access(address, instruction, bind)
    count = bind.source(size, TYPES["u32"])
    run = _build_events(instruction, bind, access, count, lambda number: Event(transfer=sign * number))

    def transact(group: Group) -> None:
        run(group)

    return transact


def _build_events(
    instruction: Instruction, bind: Binder, access: Access, count: Source | None, event: Callable[[int], Event]
) -> Callable[[Group], list[int]]:
    """What makes an event of each lane's number, 1 where there is none, and gives the words before them."""
    cycles, line = instruction_cost(instruction.opcode, instruction.modifiers), bind.line

    def run(group: Group) -> list[int]:
        lanes = group.lanes
        numbers = [1] * lanes.count if count is None else lanes.spread(count.read(group.registers)).tolist()
        times = (group.batch.counters[lanes.warp] + cycles).tolist()
        return happen_in_turn(group, line, words_of(access, group, line), [event(one) for one in numbers], times)

    return run


def _build_pending_count(instruction: Instruction, bind: Binder) -> Operation:
    """``mbarrier.pending_count.b64 count, state``."""
    written, state = operands_of(instruction, 2)
    target, source = bind.target(written, TYPES["u32"]), bind.source(state, TYPES["b64"])

    def run(group: Group) -> None:
        target.write(group.registers, (source.read(group.registers) & np.uint64(MAX_COUNT)).astype(U32))

    return run


def build_tracking(instruction: Instruction, bind: Binder) -> Operation:
    """``cp.async.mbarrier.arrive{.noinc}….b64 [address]``: an arrival when the thread's copies so far are done.

    Without ``noinc`` the phase expects one arrival more, so that only its end is put off.
    """
    (address,) = operands_of(instruction, 1)
    access, line = word_access(address, instruction, bind), bind.line
    event = Event(arrivals=1 if "noinc" in instruction.modifiers else 0)
    bind.effects.starts_block = True

    def run(group: Group) -> None:
        lanes = group.lanes
        end = np.maximum(group.batch.copies.end_of_all(lanes), group.batch.counters[lanes.warp])
        happen_in_turn(group, line, words_of(access, group, line), [event] * lanes.count, end.tolist())

    return run


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {"mbarrier": _build}
