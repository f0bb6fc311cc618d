"""Phases of a kernel: stretches of code by loop and by the work that dominates in them, and where each begins.

Runs of the same work (:mod:`tui_probe.ptx.phase_names`) that follow each other, in one block or across blocks, are one
phase; a wait is a phase of its own. Loops with little work are one phase and have no iterations. Where ``names`` give a
phase to instructions, only these names and the loops make phases.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from tui_probe.ptx.control_flow import Flow, LoopStages
from tui_probe.ptx.instruction_facts import class_of, multiply_adds
from tui_probe.ptx.parameters import address_parameters, barrier_names
from tui_probe.ptx.phase_names import (
    ACCESSES,
    INTEGER,
    MAX_SHORT_RUN,
    MBARRIER,
    NAMED_BARRIER,
    OTHER_WORK,
    POLLING,
    PRODUCTS,
    WAITS,
    WEIGHTS,
    Run,
    barrier_number,
    marked_phases,
    runs_of,
    work_of,
)
from tui_probe.ptx.waiting import Edge

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from tui_probe.ptx.control_flow import Block, Stage
    from tui_probe.ptx.tree import Function, Instruction

_MIN_WEIGHT: Final = 16
"""Min weight of a run that is a phase of its own: a record takes about 20 cycles."""
_MIN_LOOP: Final = 96
"""Min weight of the body of a loop without waits whose iterations are recorded."""
_MIN_NAMED: Final = 4
"""Min instructions of a named phase; fewer were moved there by the compiler. A wait is a phase by itself."""
_ITERATIONS: Final = 16
"""Assumed iterations of a loop that is a phase as a whole."""
_SIGNALS: Final = ("arrive", "arrive_drop", "complete_tx")
_LATER_SIGNALS: Final = "mbarrier::"
"""Prefix of the modifier of an instruction that arrives at an mbarrier when it is complete."""


class SignaledBarrier(NamedTuple):
    """An mbarrier that code arrives at; its copies that arrive there read the memory of the kernel's ``parameters``."""

    name: str
    parameters: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PhaseStart:
    """The start of a phase at one instruction. A phase has several starts where it is entered at several places."""

    head: Instruction
    """The instruction at which the phase starts."""
    entry_edges: tuple[Edge, ...]
    """Control flow edges that lead to ``head`` from other phases.

    Starts of one block whose only edge is ``before`` their ``head`` are always reached one after the other.
    """
    work: str
    """The kind of work, or the name that the user gave the phase."""
    stage: Stage
    loop: Instruction | None = None
    """The first instruction of the innermost recorded loop around the start."""
    depth: int = 0
    """The number of recorded loops around the start."""
    iterates: bool = False
    """True if each execution begins an iteration of ``loop``."""
    signals: bool = False
    """True if code of the phase arrives at an mbarrier or issues a copy that does."""
    instructions: int = 0
    """Instructions of the whole phase."""
    moved_count: int = 0
    """Instructions of the phase that another named phase claims."""
    block: int = 0
    """Index of the basic block that contains ``head``."""
    is_named: bool = False
    """True if the user gave the phase the name in ``work``."""
    multiply_adds: int | None = 0
    """Multiply-adds of a thread from here to the end of the phase, in ``mma`` and ``wgmma``; None if unknown."""
    waits: tuple[str, ...] = ()
    """The kinds of waits in a phase that the user named."""
    parameters: tuple[int, ...] = ()
    """Numbers of the kernel's parameters whose memory the phase loads, copies or stores."""
    barriers: tuple[str, ...] = ()
    """Shared variables with the mbarriers that the phase waits for; ``barrier 1`` at a named barrier."""
    signals_first: bool = False
    """True for a wait in front of which its code signals."""
    signaled: tuple[SignaledBarrier, ...] = ()
    """The mbarriers that code of the phase from here on arrives at, if they are known."""
    main: Instruction | None = None
    """The first instruction from here on that does the phase's work, for its source line; None if none is known."""
    innermost_loop_number: int = 0
    """Number of ``loop`` from 1 if no recorded loop is inside it; 0 for another loop."""
    sample_every: int = 0
    """K if the phase is recorded in the first of K iterations of ``loop`` only; 0: in each iteration."""


_Key: TypeAlias = "tuple[str | None, tuple[str, ...], Stage, tuple[int, ...]]"
"""Key of a phase: its work, the barriers that it waits at, its stage, and the heads of the loops around."""


@dataclass(slots=True)
class _PhaseFacts:
    """Facts about the code of a phase, collected from all its runs."""

    instructions: int = 0
    moved_count: int = 0
    """Instructions that another named phase claims."""
    signals: bool = False
    waits: dict[str, None] = field(default_factory=dict)
    """The kinds of waits, as keys in the order of the code."""
    parameters: set[int] = field(default_factory=set)
    """Numbers of the parameters whose memory the phase accesses."""
    barriers: dict[str, None] = field(default_factory=dict)
    """Names of the mbarriers that it waits for, as keys in the order of the code."""


def phase_starts(function: Function, names: Callable[[Instruction], str | None] | None = None) -> list[PhaseStart]:
    """Return the starts of the phases of a function in source order.

    ``names`` returns the phase of an instruction: "" for none, None for that of the code around it. Without ``names``
    phases have the names of marks in the code, or else of their kind of work.
    """
    return flow_phases(
        Flow.from_function(function),
        names,
        _product_multiply_adds,
        address_parameters(function),
        barrier_names(function),
    )


def flow_phases(
    flow: Flow,
    names: Callable[[Instruction], str | None] | None,
    multiply_adds: Callable[[Instruction], int | None],
    parameters: Callable[[Instruction], tuple[int, ...]] = lambda _: (),
    barriers: Callable[[Instruction], tuple[str, ...]] = lambda _: (),
) -> list[PhaseStart]:
    """Return the starts of the phases of code with this flow, as ``phase_starts``.

    ``multiply_adds`` returns the multiply-adds per thread of an instruction; None if they are unknown. ``parameters``
    returns the numbers of the parameters that an access gets its address from, ``barriers`` the names of the mbarriers
    of a wait.
    """
    flow = flow.join_blocks()
    return _Phases(flow, names or marked_phases(flow), multiply_adds, parameters, barriers).find_starts()


def with_sampling(
    starts: Sequence[PhaseStart], sample_every: int, unknown_loops: Collection[int] = ()
) -> list[PhaseStart]:
    """Return the starts, recorded in innermost loops only in the first of ``sample_every`` iterations (0: in all).

    All iterations are recorded in ``unknown_loops`` (by number), and in loops whose iterations have no start.
    """
    loops = {start.innermost_loop_number for start in starts if start.iterates and sample_every}
    sampled_loops = loops - {0, *unknown_loops}
    return [
        replace(start, sample_every=sample_every) if start.innermost_loop_number in sampled_loops else start
        for start in starts
    ]


def _product_multiply_adds(instruction: Instruction) -> int | None:
    is_product = {"mma", "mma_async"} & {instruction.opcode, *instruction.modifiers}
    return multiply_adds(instruction) if is_product else 0


class _Phases:
    """Finds the phases of code with a flow: its runs, their facts, and the starts."""

    def __init__(
        self,
        flow: Flow,
        names: Callable[[Instruction], str | None] | None,
        multiply_adds: Callable[[Instruction], int | None],
        parameters: Callable[[Instruction], tuple[int, ...]],
        barriers: Callable[[Instruction], tuple[str, ...]],
    ) -> None:
        self._names = names
        self._parameters, self._barriers = parameters, barriers
        self._multiply_adds = multiply_adds
        self._flow = flow
        self._loops = LoopStages(flow, _is_recorded)
        self._loop_works: dict[int, tuple[str | None, int]] = {}
        # Min weight of a phase. Without names the weight estimates cycles; with them it counts instructions.
        self._min_weight = _MIN_WEIGHT if names is None else _MIN_NAMED
        self._works = [[self._work(instruction) for instruction in block] for block in self._flow.blocks]

    def _work(self, instruction: Instruction) -> str | None:
        return work_of(instruction) if self._names is None else self._names(instruction)

    def _weight(self, work: str) -> int:
        return WEIGHTS[work] if self._names is None else 1

    @cached_property
    def _name_counts(self) -> Counter[str]:
        """The instructions of each name that the user gave."""
        return Counter(name for names in self._works for name in names if name) if self._names else Counter()

    def _block_runs(self, index: int) -> list[Run]:
        """Return the runs of a block; one for a block of a loop that is a phase as a whole."""
        block, works = self._flow.blocks[index], self._works[index]
        head = self._loops.unchosen_heads.get(index)
        if head is None or self._names is not None:
            return runs_of(block, works, self._weight, self._min_weight, self._name_counts)
        return [Run(*self._loop_work(head, block))]

    def _loop_work(self, head: int, block: Block) -> tuple[str | None, Block, int]:
        """Return the work of a loop that is a phase as a whole, for one of its blocks, and its weight."""
        if head not in self._loop_works:
            works = [work for index in self._loops.loops[head] for work in self._works[index] if work]
            weight = _ITERATIONS * (sum(WEIGHTS[work] for work in works) or 1)
            code = (instruction for index in self._loops.loops[head] for instruction in self._flow.blocks[index])
            polls = any(map(_polls, code))
            self._loop_works[head] = POLLING if polls and set(works) == {"global load"} else _dominant(works), weight
        work, weight = self._loop_works[head]
        return work, block, weight

    @cached_property
    def _runs(self) -> list[list[Run]]:
        """The runs of all blocks. A light block without waits continues what runs before it in its stage."""
        runs = [self._block_runs(index) for index in range(len(self._loops.successors))]
        for index, block_runs in enumerate(runs):
            for run in block_runs:
                run.barriers = self._barriers_of(index, run)
        for index, (run, *following_runs) in enumerate(runs):
            if not following_runs and not run.waits and not run.has_wait and run.weight < self._min_weight:
                neighbors = self._neighbors(runs, index)
                neighbor = neighbors[0] if neighbors else run
                run.moved_count += len(run.code) if self._names and run.work and neighbor.work != run.work else 0
                run.work, run.barriers = neighbor.work or OTHER_WORK, neighbor.barriers
        if self._names is None:
            self._name_unnamed_runs(runs)
        return runs

    def _name_unnamed_runs(self, runs: list[list[Run]]) -> None:
        """Give the runs without a kind of work one name per stage and loop, so that they begin no more phases."""
        groups: dict[tuple[Stage, tuple[int, ...]], list[Run]] = {}
        for index, stretch in enumerate(runs):
            for run in stretch:
                if run.work in (None, OTHER_WORK):
                    groups.setdefault(
                        (self._loops.stages[index], tuple(self._loops.enclosing_heads[index])), []
                    ).append(run)
        for unnamed_runs in groups.values():
            work = (
                INTEGER
                if _is_integer([instruction for run in unnamed_runs for instruction in run.code])
                else OTHER_WORK
            )
            for run in unnamed_runs:
                run.work = work

    def _barriers_of(self, index: int, run: Run) -> tuple[str, ...]:
        """Return the barriers that a run waits at; none if one of them is unknown."""
        if run.work not in (NAMED_BARRIER, MBARRIER):
            return ()
        head = self._loops.unchosen_heads.get(index)
        code = (
            run.code
            if head is None
            else [instruction for number in self._loops.loops[head] for instruction in self._flow.blocks[number]]
        )
        names = [self._names_of_barrier(instruction) for instruction in code if work_of(instruction) == run.work]
        return tuple(dict.fromkeys(name for barrier_names in names for name in barrier_names)) if all(names) else ()

    def _names_of_barrier(self, wait: Instruction) -> tuple[str, ...]:
        if work_of(wait) == MBARRIER:
            return self._barriers(wait)
        number = barrier_number(wait)
        return () if number is None else (f"barrier {number}",)

    def _neighbors(self, runs: list[list[Run]], index: int) -> list[Run]:
        """Return the runs that a light block may continue: the next for a short loop head, else the preceding ones."""
        run, successors = runs[index][0], self._loops.successors[index]
        is_short = len(run.code) < MAX_SHORT_RUN and index not in self._loops.unchosen_heads
        if is_short and not run.work and index in self._loops.chosen_loops and len(successors) == 1:
            return [successor_run for successor_run in runs[successors[0]][:1] if successor_run.work]
        predecessors = [
            source
            for source in self._loops.predecessors[index]
            if source < index and self._loops.share_stage(source, index)
        ]
        last_runs = [runs[source][-1] for source in predecessors if runs[source][-1].work]
        return [end for end in last_runs if (is_short and not run.work) or not end.waits]

    def _key(self, index: int, run: Run) -> _Key:
        return run.work, run.barriers, self._loops.stages[index], tuple(self._loops.enclosing_heads[index])

    def find_starts(self) -> list[PhaseStart]:
        """Return all starts: each run, except those that continue the run at the end of every preceding block."""
        starts = []
        for index, runs in enumerate(self._runs):
            for place, run in enumerate(runs):
                iterates = place == 0 and index in self._loops.chosen_loops
                entry_edges = (
                    self._entry_edges(index, run) if place == 0 and not iterates else (Edge(run.code[0], "before"),)
                )
                if entry_edges:
                    starts.append(self._start(index, run, entry_edges, iterates=iterates))
        return starts

    def _entry_edges(self, index: int, run: Run) -> tuple[Edge, ...]:
        """Return the edges to a block's first run from other phases; its start where all edges come from others."""
        predecessors, blocks = self._loops.predecessors[index], self._flow.blocks
        sources = [
            source for source in predecessors if self._key(source, self._runs[source][-1]) != self._key(index, run)
        ]
        if (
            index == 0
            or len(sources) == len(predecessors)
            or any(blocks[source][-1].opcode == "brx" for source in sources)
        ):
            return (Edge(run.code[0], "before"),)
        branch_edges = [Edge(blocks[source][-1], "taken") for source in sources if index in self._flow.jumps[source]]
        fall_sources = [source for source in sources if self._flow.falls_through[source] and source + 1 == index]
        return (*branch_edges, *(Edge(blocks[source][-1], "behind") for source in fall_sources))

    def _start(self, index: int, run: Run, entry_edges: tuple[Edge, ...], *, iterates: bool) -> PhaseStart:
        heads, facts = self._loops.enclosing_heads[index], self._facts[self._key(index, run)]
        signals = (
            [instruction for instruction in self._code_from(index, run) if _signals(instruction)]
            if facts.signals
            else []
        )
        work, is_named = run.work or OTHER_WORK, self._names is not None and run.work not in (None, "", OTHER_WORK)
        return PhaseStart(
            head=run.code[0],
            entry_edges=entry_edges,
            work=work,
            stage=self._loops.stages[index],
            loop=self._flow.blocks[heads[-1]][0] if heads else None,
            depth=len(heads),
            iterates=iterates,
            signals=bool(signals),
            instructions=facts.instructions,
            moved_count=facts.moved_count,
            block=index,
            is_named=is_named,
            multiply_adds=self._multiply_adds_from(index, run),
            waits=tuple(facts.waits) if is_named else (),
            parameters=tuple(sorted(facts.parameters)),
            barriers=run.barriers or tuple(facts.barriers),
            signals_first=work in WAITS and bool(signals) and _is_before_wait(signals[0], run.code),
            signaled=self._signaled(signals),
            main=next((instruction for instruction in run.code if self._work(instruction) == work), None),
            innermost_loop_number=self._loops.innermost.get(heads[-1], 0) if heads else 0,
        )

    def _signaled(self, signals: Sequence[Instruction]) -> tuple[SignaledBarrier, ...]:
        """Return the barriers that code arrives at; none if one of them is unknown."""
        names = [self._barriers(instruction) for instruction in signals]
        parameters: dict[str, set[int]] = {name: set() for barrier_names in names for name in barrier_names}
        for signal, signal_names in zip(signals, names, strict=True):
            for name in signal_names if signal.opcode == "cp" else ():
                parameters[name].update(self._parameters(signal))
        parameters_by_name = parameters.items() if all(names) else ()
        return tuple(SignaledBarrier(name, tuple(sorted(numbers))) for name, numbers in parameters_by_name)

    def _multiply_adds_from(self, index: int, run: Run) -> int | None:
        code = self._code_from(index, run)
        counts = [self._multiply_adds(instruction) for instruction in code if work_of(instruction) == PRODUCTS]
        if index in self._loops.unchosen_heads and any(counts):
            return None
        return None if None in counts else sum(filter(None, counts))

    def _code_from(self, index: int, run: Run) -> Block:
        """Return the code of a phase from one of its starts on, with that of blocks that continue it."""
        key, code, visited = self._key(index, run), list(run.code), {index, *self._loops.chosen_loops}
        pending = [index] if run is self._runs[index][-1] else []
        while pending:
            for successor in self._loops.successors[pending.pop()]:
                first_run = self._runs[successor][0]
                if successor not in visited and self._key(successor, first_run) == key:
                    code += first_run.code
                    visited.add(successor)
                    pending += [successor] if len(self._runs[successor]) == 1 else []
        return code

    @cached_property
    def _facts(self) -> dict[_Key, _PhaseFacts]:
        facts: dict[_Key, _PhaseFacts] = {}
        for index, runs in enumerate(self._runs):
            for run in runs:
                self._add_facts(facts.setdefault(self._key(index, run), _PhaseFacts()), run)
        return facts

    def _add_facts(self, facts: _PhaseFacts, run: Run) -> None:
        facts.instructions += len(run.code)
        facts.moved_count += run.moved_count if self._names else 0
        facts.signals = facts.signals or any(map(_signals, run.code))
        for instruction in run.code:
            work = work_of(instruction)
            if work in WAITS:
                facts.waits[work] = None
                if work == MBARRIER:
                    facts.barriers.update(dict.fromkeys(self._barriers(instruction)))
            elif work in ACCESSES:
                facts.parameters.update(self._parameters(instruction))


def _is_recorded(loop: Block) -> bool:
    """Return whether the iterations of a loop are recorded: it waits or has much work, and is more than a wait."""
    works = [work_of(instruction) for instruction in loop]
    other_weight = sum(WEIGHTS[work] for work in works if work and work not in WAITS)
    has_wait = any(work in WAITS for work in works)
    return (has_wait and (other_weight > 0 or any(map(_signals, loop)))) or other_weight >= _MIN_LOOP


def _signals(instruction: Instruction) -> bool:
    """Return whether an instruction arrives at an mbarrier, by itself or when its copy or product is complete."""
    if any(name.startswith(_LATER_SIGNALS) for name in instruction.modifiers):
        return True
    return any(name in instruction.modifiers for name in _SIGNALS) and instruction.opcode in ("mbarrier", "cp")


def _is_before_wait(signal: Instruction, code: Block) -> bool:
    first_event = next(
        (instruction for instruction in code if instruction is signal or work_of(instruction) in WAITS), None
    )
    return first_event is signal


def _polls(instruction: Instruction) -> bool:
    """Return whether a load sees what other blocks store."""
    return instruction.opcode == "ld" and bool({"acquire", "relaxed", "volatile"} & set(instruction.modifiers))


def _is_integer(code: Block) -> bool:
    """Return whether integer arithmetic is a third of the instructions at least; many others are moves."""
    return 3 * sum(class_of(instruction) == "integer" for instruction in code) >= len(code)


def _dominant(works: Iterable[str | None]) -> str | None:
    weights: dict[str, int] = {}
    for work in works:
        if work is not None:
            weights[work] = weights.get(work, 0) + WEIGHTS[work]
    return max(weights, key=lambda work: weights[work], default=None)
