"""``mbarrier``: barriers in shared memory that count arrivals and the bytes of asynchronous copies (sm_80, sm_90).

An object is one word of 64 bits, of which PTX leaves open what is where. Here:

    bits  0 to 19   arrivals that its phase still waits for
    bits 20 to 39   arrivals that each phase waits for
    bits 40 to 60   bytes of copies that are expected and not yet there (tx-count), signed
    bit  63         the parity of the phase, which changes with each

A phase ends when no arrival and no byte is missing. What ``mbarrier.arrive`` returns, the state, is the word before it.
When phases end is known to the executor alone, see ``model``. PTX leaves open what happens beyond the limits of these
numbers, or to a word that was not initialised; here it ends the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.simgpu.executor.access import Access
from tui_probe.simgpu.executor.faults import DeadlockError, MBarrierError
from tui_probe.simgpu.executor.forms import operands_of
from tui_probe.simgpu.executor.loads import state_space
from tui_probe.simgpu.executor.model import instruction_cost
from tui_probe.simgpu.executor.scalars import TYPES, U32, U64

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.batch import Batch
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.lanes import Places
    from tui_probe.simgpu.executor.mbarrier_waits import Trying
    from tui_probe.simgpu.executor.operands import Binder, Operation, Source

MAX_COUNT: Final = (1 << 20) - 1
PARITY_BIT: Final = 63
WORD_BYTES: Final = 8
MOST_TRIES: Final = 10_000
"""How often all threads may try in vain while no mbarrier changes, until that counts as a deadlock."""
_EXPECTED_BIT: Final = 20
_BYTES_BIT: Final = 40
_BYTES_BITS: Final = 21


@dataclass(slots=True)
class Word:
    """What a word says: ``missing`` and ``expected`` arrivals, ``transfer`` bytes to come, and the phase's parity."""

    missing: int
    expected: int
    transfer: int
    parity: int

    @classmethod
    def of(cls, bits: int) -> Word:
        """The contents of a word of shared memory."""
        transfer = bits >> _BYTES_BIT & (1 << _BYTES_BITS) - 1
        sign = transfer >> _BYTES_BITS - 1
        expected = bits >> _EXPECTED_BIT & MAX_COUNT
        return cls(bits & MAX_COUNT, expected, transfer - (sign << _BYTES_BITS), bits >> PARITY_BIT)

    def bits(self) -> int:
        """The word for shared memory."""
        transfer = self.transfer & (1 << _BYTES_BITS) - 1
        return self.missing | self.expected << _EXPECTED_BIT | transfer << _BYTES_BIT | self.parity << PARITY_BIT

    def problem(self) -> str:
        """What no phase can be, or ""."""
        if not self.expected:
            return "the mbarrier is not initialised"
        if not 0 <= self.missing <= MAX_COUNT:
            return "more arrivals than the phase expects"
        return "" if abs(self.transfer) <= MAX_COUNT else f"more than {MAX_COUNT} bytes to come"


@dataclass(frozen=True, slots=True)
class Event:
    """What one lane does to an mbarrier.

    ``arrivals`` are done, ``dropped`` ones fewer are expected by later phases; ``transfer`` bytes are to come, negative
    for those that are there. ``may_end`` tells whether it may be what ends the phase.
    """

    arrivals: int = 0
    transfer: int = 0
    dropped: int = 0
    may_end: bool = True


class MBarriers:
    """The mbarriers of a batch of blocks, and the threads that try them. Words are named by their index in shared
    memory, times are cycles since the start of the block.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        # When the phase before the present one ended, and the last event of the present one so far.
        self._ended: dict[int, int] = {}
        self._latest: dict[int, int] = {}
        self.trying: list[Trying] = []
        self._changes = 0
        self._seen = 0
        self._in_vain = 0

    def initialise(self, word: int, count: int) -> str:
        """Begins with phase 0, which expects ``count`` arrivals. The problem, if there is one."""
        if not 1 <= count <= MAX_COUNT:
            return f"a count of {count}, which must be from 1 to {MAX_COUNT}"
        self._store(word, Word(count, count, 0, 0))
        self._ended[word] = self._latest[word] = 0
        return ""

    def invalidate(self, word: int) -> None:
        """Ends the use of a word as an mbarrier."""
        self._batch.shared.view(U64)[word] = 0

    def happen(self, word: int, event: Event, time: int) -> str:
        """An event at ``time``; what is wrong with it, or ""."""
        now = Word.of(int(self._batch.shared.view(U64)[word]))
        if problem := now.problem():
            return problem
        now.missing -= event.arrivals
        now.expected -= event.dropped
        now.transfer += event.transfer
        self._latest[word] = max(self._latest.get(word, 0), time)
        # All threads may have dropped out: then no phase follows.
        if now.missing or now.transfer:
            problem = now.problem() if now.expected else ""
        elif event.may_end:
            self._end(word, now)
        else:
            problem = "it ends the phase, which noComplete must not"
        if not problem:
            self._store(word, now)
        return problem

    def _end(self, word: int, now: Word) -> None:
        self._ended[word] = time = max(self._latest[word], self._ended.get(word, 0))
        for each in self.trying:
            each.phase_ended(word, now.parity, time)
        now.missing, now.parity = now.expected, 1 - now.parity
        self._latest[word] = time

    def _store(self, word: int, now: Word) -> None:
        self._batch.shared.view(U64)[word] = now.bits()
        self._changes += 1

    def ended(self, words: Places, parity: NDArray[np.bool_]) -> NDArray[np.int64]:
        """For each lane when the phase of that ``parity`` of its word ended; -1 if that is not known yet."""
        is_over = (self._batch.shared.view(U64)[words] >> np.uint64(PARITY_BIT)).astype(np.bool_) != parity
        times = [self._ended.get(word, 0) if over else -1 for word, over in zip(words.tolist(), is_over, strict=True)]
        return np.array(times, np.int64)

    @property
    def any_waiting(self) -> bool:
        """Whether threads try an mbarrier."""
        return bool(self.trying)

    def release(self) -> list[Group]:
        """The groups that go on, for what they try has happened."""
        return self._answered([each for each in self.trying if each.any_known])

    def give_up(self) -> list[Group]:
        """All groups that try an mbarrier go on, though nothing has happened. Raises DeadlockError after many times."""
        self._in_vain = self._in_vain + 1 if self._seen == self._changes else 0
        self._seen = self._changes
        if self._in_vain > MOST_TRIES:
            raise DeadlockError(f"deadlock at an mbarrier, {self.trying[0].describe()} waits for a phase without end")
        return self._answered(list(self.trying), give_up=True)

    def _answered(self, those: list[Trying], *, give_up: bool = False) -> list[Group]:
        groups = []
        for each in those:
            self.trying.remove(each)
            rest = None if give_up else each.split_unknown()
            if rest is not None:
                self.trying.append(rest)
            groups.append(each.answer())
        return groups


def words_of(access: Access, group: Group, line: int) -> Places:
    """The index of each lane's mbarrier among the words of shared memory. Raises MBarrierError."""
    words = np.empty(group.lanes.count, np.intp)
    for part in access.parts(group):
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
    """The access to the mbarrier that ``operand`` names. That of another block of a cluster is not supported."""
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
