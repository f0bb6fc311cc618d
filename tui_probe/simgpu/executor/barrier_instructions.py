"""Barrier instructions: ``bar``, ``barrier``, ``barrier.cluster`` and ``mbarrier`` with its waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.tree import Immediate
from tui_probe.simgpu.executor.addressing import Access, LaneAccess, state_space
from tui_probe.simgpu.executor.async_state import MAX_COUNT, PARITY_BIT, WORD_BYTES, MBarrierEvent
from tui_probe.simgpu.executor.checks.accesses import ARRIVAL, LOAD, STORE, AccessKind
from tui_probe.simgpu.executor.faults import MBarrierError
from tui_probe.simgpu.executor.model import TRY_WAIT_CYCLES, instruction_cost
from tui_probe.simgpu.executor.phase_waits import PhaseWait
from tui_probe.simgpu.executor.scalars import PREDICATE, TYPES, U32, U64, operands_of
from tui_probe.simgpu.executor.waiting_threads import Barrier, Reduction, WarpBarrier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.lanes import Places
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation, ResultOperand, SourceOperand
    from tui_probe.simgpu.executor.program import Control, Finish, Scheduling
    from tui_probe.simgpu.executor.scalars import Value
    from tui_probe.simgpu.executor.threads import ThreadGroup
    from tui_probe.simgpu.executor.waiting_threads import Barriers


@dataclass(slots=True)
class BarrierArrival:
    """``bar`` and ``barrier`` in all forms: lanes ``arrive`` and continue from the next block.

    ``is_of_block``: all threads of a block have to execute this instruction together.
    """

    arrive: Callable[[Barriers, ThreadGroup], ThreadGroup | None]
    may_end: bool = False
    is_of_block: bool = False

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:  # noqa: ARG002
        return (following,)

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:  # noqa: ARG002
        def finish(group: ThreadGroup, scheduler: Scheduling) -> ThreadGroup | None:
            group.block = following
            return self.arrive(scheduler.barriers, group)

        return finish


def is_barrier(instruction: Instruction) -> bool:
    """Return True for an instruction of this module."""
    return instruction.opcode in ("bar", "barrier")


def build_barrier(instruction: Instruction, bind: Binder) -> Control:
    """``bar.sync a{, b}``, ``bar.arrive a, b``, ``bar.red.popc.u32 d, a{, b}, {!}c``, ``bar.warp.sync mask``."""
    if "cluster" in instruction.modifiers:
        return _build_cluster_barrier(instruction, bind)
    modifiers = [modifier for modifier in instruction.modifiers if modifier not in ("cta", "aligned")]
    operands = list(instruction.operands)
    if modifiers[:2] == ["warp", "sync"]:
        warp_barrier = WarpBarrier(bind.source(operands[0], TYPES["u32"]), bind.line)
        return BarrierArrival(lambda barriers, group: barriers.arrive_in_warp(warp_barrier, group))
    reduction = None
    if modifiers and modifiers[0] == "red":
        target = bind.target(operands.pop(0), TYPES["u32"] if modifiers[1] == "popc" else PREDICATE)
        reduction = Reduction(modifiers[1], bind.predicate(operands.pop()), target)
    elif modifiers not in (["sync"], ["arrive"]):
        bind.unsupported()
    number: Operand = operands[0] if operands else Immediate("0")
    count = bind.source(operands[1], TYPES["u32"]) if len(operands) > 1 else None
    arrives_only = modifiers[0] == "arrive"
    is_aligned = instruction.opcode == "bar" or "aligned" in instruction.modifiers
    barrier = Barrier(bind.source(number, TYPES["u32"]), count, arrives_only, reduction, bind.line, is_aligned)
    is_of_block = is_aligned and count is None
    return BarrierArrival(lambda barriers, group: barriers.arrive(barrier, group), is_of_block=is_of_block)


def _build_cluster_barrier(instruction: Instruction, bind: Binder) -> Control:
    """``barrier.cluster.arrive{.release|.relaxed}{.aligned}`` and ``barrier.cluster.wait{.acquire}{.aligned}``."""
    line = bind.line

    def wait(barriers: Barriers, group: ThreadGroup) -> ThreadGroup | None:
        barriers.cluster_barriers.wait(group, line)
        return None

    if instruction.modifiers[1:2] == ("arrive",):
        return BarrierArrival(lambda barriers, group: barriers.cluster_barriers.arrive(group))
    return BarrierArrival(wait) if instruction.modifiers[1:2] == ("wait",) else bind.unsupported()


def mbarrier_words(access: Access, group: ThreadGroup, line: int, address: Value | None = None) -> Places:
    """The index of each lane's mbarrier among the words of shared memory, or of that at ``address``.

    Raises MBarrierError.
    """
    indices = np.empty(group.lanes.count, np.intp)
    for part in access.parts(group) if address is None else access.parts_at(group, address):
        positions = slice(None) if part.positions is None else part.positions
        if part.space.name != "shared":
            position = 0 if part.positions is None else int(part.positions[0])
            location = group.batch.describe(group.lanes, position)
            text = f"an mbarrier in {part.space.name} memory, not in shared memory"
            raise MBarrierError(f"{text}, at line {line}, {location}", text)
        indices[positions] = part.element + part.first_element
    return indices


def apply_events(
    group: ThreadGroup, line: int, words: Places, events: Sequence[MBarrierEvent], times: Sequence[int]
) -> list[int]:
    """Apply an event of each lane, in their order. Return the words before them. Raises MBarrierError."""
    mbarriers, memory = group.batch.mbarriers, group.batch.shared_memory
    earlier_words = []
    if group.batch.checks is not None:
        group.batch.checks.order.arrive("mbarrier", words, group.lanes)
    for position, (word, event, time) in enumerate(zip(words.tolist(), events, times, strict=True)):
        earlier_words.append(int(memory.view(U64)[word]))
        if problem := mbarriers.apply_event(word, event, time):
            location = group.batch.describe(group.lanes, position)
            raise MBarrierError(f"mbarrier at line {line}, {location}: {problem}", problem)
    return earlier_words


def _build_mbarrier(instruction: Instruction, bind: Binder) -> Operation:
    """``mbarrier.init|inval|arrive|arrive_drop|expect_tx|complete_tx|pending_count``; for waits, see ``TryWait``."""
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


def mbarrier_access(operand: Operand, instruction: Instruction, bind: Binder, kind: AccessKind = LOAD) -> Access:
    """The access to the mbarrier that ``operand`` names, which may be that of another block of the cluster."""
    return Access(operand, state_space(instruction), WORD_BYTES, bind, kind)


def _build_initialisation(instruction: Instruction, bind: Binder) -> Operation:
    """``mbarrier.init{.shared}.b64 [address], count``."""
    address, count_operand = operands_of(instruction, 2)
    access = Access(address, state_space(instruction), WORD_BYTES, bind, STORE)
    count, line = bind.source(count_operand, TYPES["u32"]), bind.line

    def run(group: ThreadGroup) -> None:
        counts = group.lanes.spread(count.read(group.registers)).tolist()
        mbarriers = mbarrier_words(access, group, line)
        access.check(group, LaneAccess(group.batch.shared_memory, mbarriers))
        for position, word in enumerate(mbarriers.tolist()):
            if problem := group.batch.mbarriers.initialise(word, counts[position]):
                location = group.batch.describe(group.lanes, position)
                raise MBarrierError(f"mbarrier.init at line {line}, {location}: {problem}", problem)

    return run


def _build_invalidation(instruction: Instruction, bind: Binder) -> Operation:
    """``mbarrier.inval{.shared}.b64 [address]``."""
    (address,) = operands_of(instruction, 1)
    access, line = mbarrier_access(address, instruction, bind), bind.line

    def run(group: ThreadGroup) -> None:
        for word in mbarrier_words(access, group, line).tolist():
            group.batch.mbarriers.invalidate(word)

    return run


def _build_arrival(instruction: Instruction, bind: Binder) -> Operation:
    """``mbarrier.arrive{_drop}{.noComplete|.expect_tx}….b64 state, [address]{, count}``; of expect_tx a tx-count."""
    state, address, *count_operands = operands_of(instruction, 2, 3)
    access, target = mbarrier_access(address, instruction, bind, ARRIVAL), bind.target(state, TYPES["b64"])
    count = bind.source(count_operands[0], TYPES["u32"]) if count_operands else None
    drops_count = instruction.modifiers[0] == "arrive_drop"
    expects_bytes, may_end = "expect_tx" in instruction.modifiers, "noComplete" not in instruction.modifiers
    if expects_bytes and count is None:
        bind.unsupported()

    def event(number: int) -> MBarrierEvent:
        arrivals = 1 if expects_bytes else number
        return MBarrierEvent(arrivals, number if expects_bytes else 0, arrivals if drops_count else 0, may_end)

    run = _build_events(instruction, bind, access, count, event)

    def arrive(group: ThreadGroup) -> None:
        target.write(group.registers, np.array(run(group), U64))

    return arrive


def _build_transaction(instruction: Instruction, bind: Binder) -> Operation:
    """``mbarrier.expect_tx|complete_tx….b64 [address], bytes``."""
    address, size = operands_of(instruction, 2)
    sign = 1 if instruction.modifiers[0] == "expect_tx" else -1
    access = mbarrier_access(address, instruction, bind, ARRIVAL)
    count = bind.source(size, TYPES["u32"])
    run = _build_events(instruction, bind, access, count, lambda number: MBarrierEvent(tx_count=sign * number))

    def transact(group: ThreadGroup) -> None:
        run(group)

    return transact


def _build_events(
    instruction: Instruction,
    bind: Binder,
    access: Access,
    count: SourceOperand | None,
    event: Callable[[int], MBarrierEvent],
) -> Callable[[ThreadGroup], list[int]]:
    """Return a function that makes an event of each lane's number, default 1, and returns the earlier words."""
    cycles, line = instruction_cost(instruction.opcode, instruction.modifiers), bind.line

    def run(group: ThreadGroup) -> list[int]:
        lanes = group.lanes
        numbers = [1] * lanes.count if count is None else lanes.spread(count.read(group.registers)).tolist()
        times = (group.batch.counters[lanes.warp] + cycles).tolist()
        mbarriers = mbarrier_words(access, group, line)
        access.check(group, LaneAccess(group.batch.shared_memory, mbarriers))
        return apply_events(group, line, mbarriers, [event(number) for number in numbers], times)

    return run


def _build_pending_count(instruction: Instruction, bind: Binder) -> Operation:
    """``mbarrier.pending_count.b64 count, state``."""
    destination, state = operands_of(instruction, 2)
    target, source = bind.target(destination, TYPES["u32"]), bind.source(state, TYPES["b64"])

    def run(group: ThreadGroup) -> None:
        target.write(group.registers, (source.read(group.registers) & np.uint64(MAX_COUNT)).astype(U32))

    return run


def build_tracking(instruction: Instruction, bind: Binder) -> Operation:
    """``cp.async.mbarrier.arrive{.noinc}….b64 [address]``: an arrival when the thread's copies so far are done.

    Without ``noinc`` the phase expects one arrival more, so that only its end is put off.
    """
    (address,) = operands_of(instruction, 1)
    access, line = mbarrier_access(address, instruction, bind), bind.line
    event = MBarrierEvent(arrivals=1 if "noinc" in instruction.modifiers else 0)
    bind.effects.starts_block = True

    def run(group: ThreadGroup) -> None:
        lanes = group.lanes
        end = np.maximum(group.batch.copies.end_of_all(lanes), group.batch.counters[lanes.warp])
        if group.batch.checks is not None:
            group.batch.checks.order.copies.record_tracking(lanes)
        apply_events(group, line, mbarrier_words(access, group, line), [event] * lanes.count, end.tolist())

    return run


MBARRIER_BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {"mbarrier": _build_mbarrier}


# ``mbarrier.try_wait`` and ``mbarrier.test_wait``: threads that ask whether a phase of an mbarrier is over.
#
# They wait until that is known, or nothing else can continue; then their warp's counter tells what they had seen.

_NANOSECONDS_PER_MILLISECOND: Final = 1_000_000
"""Clocks are in kHz: cycles in a millisecond."""


@dataclass(slots=True)
class TryWait:
    """The instruction.

    ``phase`` is a state or, with ``is_by_parity``, a parity; ``nanoseconds`` is the longest time to wait.
    """

    access: Access
    phase: SourceOperand
    is_by_parity: bool
    may_wait: bool
    nanoseconds: SourceOperand | None
    target: ResultOperand
    line: int
    may_end: bool = False

    def successors(self, labels: Mapping[int, int], following: int) -> Sequence[int]:  # noqa: ARG002
        return (following,)

    def finish(self, labels: Mapping[int, int], following: int, polls: bool) -> Finish:  # noqa: ARG002
        def finish(group: ThreadGroup, scheduler: Scheduling) -> ThreadGroup | None:
            phase_wait = self._phase_wait(group)
            group.block = following
            return scheduler.phase_waits.begin(phase_wait)

        return finish

    def _phase_wait(self, group: ThreadGroup) -> PhaseWait:
        barriers = mbarrier_words(self.access, group, self.line)
        parity, limit = self._parity(group), self._max_wait_cycles(group)
        has_ended = group.batch.mbarriers.phase_ends(barriers, parity)
        return PhaseWait(self.target, self.line, group, barriers, parity, limit, has_ended)

    def _parity(self, group: ThreadGroup) -> NDArray[np.bool_]:
        phase = group.lanes.spread(self.phase.read(group.registers))
        bit = phase & np.uint32(1) if self.is_by_parity else phase >> np.uint64(PARITY_BIT)
        return bit.astype(np.bool_)

    def _max_wait_cycles(self, group: ThreadGroup) -> NDArray[np.int64]:
        """Return for how many cycles each lane may wait."""
        if self.nanoseconds is None:
            return np.full(group.lanes.count, TRY_WAIT_CYCLES if self.may_wait else 0, np.int64)
        time = group.lanes.spread(self.nanoseconds.read(group.registers)).astype(np.int64)
        return time * group.batch.machine.clock_khz // _NANOSECONDS_PER_MILLISECOND


def build_try_wait(instruction: Instruction, bind: Binder) -> TryWait | None:
    """``mbarrier.test_wait|try_wait{.parity}….b64 over, [address], phase{, nanoseconds}``; None for the others."""
    kind = instruction.modifiers[0] if instruction.modifiers else ""
    if kind not in ("test_wait", "try_wait"):
        return None
    may_wait, is_by_parity = kind == "try_wait", "parity" in instruction.modifiers
    destination, address, phase, *limit_operands = operands_of(instruction, 3, 4 if may_wait else 3)
    return TryWait(
        access=mbarrier_access(address, instruction, bind),
        phase=bind.source(phase, TYPES["u32" if is_by_parity else "b64"]),
        is_by_parity=is_by_parity,
        may_wait=may_wait,
        nanoseconds=bind.source(limit_operands[0], TYPES["u32"]) if limit_operands else None,
        target=bind.target(destination, PREDICATE),
        line=bind.line,
    )
