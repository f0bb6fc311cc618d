"""Phases of a kernel without PTX, and the instruction at which each start is recorded.

A record is at an instruction that may be executed elsewhere: the first of the phase, or one of its neighbors. Where
only some edges lead to a start from other phases, as into a loop, the records are at the ends of the blocks before it.
If such a block can also be followed by code of the phase that it ends with, the record is at the start itself instead,
so that a loop may have a record for each iteration. It is there, too, if the block is in a loop that the start is not
in, or if the record would precede a copy, load or product of the phase that ends: then a record may be inside a
phase and begin nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.grafting.same_work import same_work_code, thread_multiply_adds
from tui_probe.errors import UnsupportedKernelError
from tui_probe.ptx.control_flow import Flow
from tui_probe.ptx.parameters import BarrierArrays
from tui_probe.ptx.phase_names import ACCESSES, PRODUCTS, WAITS, work_of
from tui_probe.ptx.phases import flow_phases, with_sampling
from tui_probe.reasons import because
from tui_probe.sass.address_origins import UNIFORM_BASE, AddressOrigins, AddressPaths, AddressTerm
from tui_probe.sass.bulk_copies import bulk_copy_of
from tui_probe.sass.flow import BRA_OPERATION, FlowGraph, is_conditional
from tui_probe.sass.operations import operation_name
from tui_probe.sass.uniform_registers import uniform_bits
from tui_probe.sass.wait_sites import fixed_offsets
from tui_probe.sass.words import BSYNC, CONTROL_FLOW, EXIT, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tui_probe.probe_model.probe import Probe
    from tui_probe.ptx.phases import PhaseStart
    from tui_probe.ptx.tree import Instruction
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

_SYNCS_OFFSET, _SYNCS_UNIFORM = (40, 24), 64
"""First bit and width of the offset in the address of SYNCS, and first bit of its uniform register."""
_INITIALIZES: Final = 0x1B2
"""SYNCS.EXCH with a uniform address: it makes a barrier."""
_COPY_REGISTERS: Final = 32
"""Field of the first uniform register of a bulk copy: the destination, then the mbarrier."""
_WINDOW: Final = 0x400
"""Address of the first byte of a block's shared memory on architectures with clusters."""
_FIRST_WITH_WINDOW: Final = 90
"""First architecture with clusters."""
_SLOW: Final = frozenset({*ACCESSES, PRODUCTS})
"""Works whose instructions may hold a warp: a record in front of one would take its time from the phase that ends."""
_RECONVERGES: Final = frozenset({"BSYNC", "WARPSYNC"})
_MAX_DISTANCE: Final = 8
"""Maximum number of instructions between the start of a phase and its record."""


@dataclass(frozen=True, slots=True)
class SassPhase:
    """A phase with its record at a byte ``offset``.

    ``loop`` is the offset of the recorded loop around it, ``main`` that of the instruction that does its work.
    ``may_be_inside``: warps may come there while they are in the phase already.
    """

    offset: int
    start: PhaseStart
    loop: int | None
    main: int
    may_be_inside: bool = False


def sass_phases(
    probe: Probe, target: GraftTarget, has_room: Callable[[int], bool] = lambda _: True
) -> tuple[list[SassPhase], int]:
    """Return the phases of a kernel in source order, and the number of starts that no instruction with room can record.

    Raises UnsupportedKernelError for a branch whose destination the file does not give, and for phases by source line
    in a kernel without lines.
    """
    graph = FlowGraph.from_target(target)
    code = same_work_code(target, graph)
    number_of = {id(instruction): number for number, instruction in enumerate(code)}
    starts = _phase_starts(probe, target, graph, code, number_of)
    entries, records = _Entries(graph, starts, number_of), _RecordPlaces(target, graph, code, has_room)
    phases: list[SassPhase] = []
    missing_starts = 0
    for start in starts:
        first = number_of[id(start.head)]
        if graph.block_at(first) not in graph.dominators:
            continue  # padding, or code that nothing leads to
        choice = records.choose(start, first, entries.ends_before(start))
        for indices in choice.candidates:
            if not indices:
                missing_starts += not _takes_no_time(graph, code, target.words, first)
                continue
            records.take(indices[0])
            loop = None if start.loop is None else number_of[id(start.loop)] * WORD_BYTES
            main = number_of[id(start.main or start.head)] * WORD_BYTES
            phases.append(SassPhase(indices[0] * WORD_BYTES, start, loop, main, choice.may_be_inside))
    if not probe.every:
        return phases, missing_starts
    counted_starts = with_sampling(
        [phase.start for phase in phases], probe.every, _entered_while_counting(graph, phases)
    )
    return [replace(phase, start=start) for phase, start in zip(phases, counted_starts, strict=True)], missing_starts


def _phase_starts(
    probe: Probe, target: GraftTarget, graph: FlowGraph, code: Sequence[Instruction], number_of: Mapping[int, int]
) -> list[PhaseStart]:
    """Return the starts of the phases of a kernel, whose instructions are ``code`` in PTX."""
    names = names_by_line(probe, target) if probe.phases else None
    barriers, origins = _MbarrierNames(target, graph), AddressOrigins(target, graph)
    return flow_phases(
        flow_of(graph, code),
        None if names is None else lambda instruction: names(number_of[id(instruction)] * WORD_BYTES),
        lambda instruction: thread_multiply_adds(target.words[number_of[id(instruction)]], target.arch),
        lambda instruction: origins.transfer_parameters(number_of[id(instruction)]),
        barriers=lambda instruction: barriers.names_at(number_of[id(instruction)]),
    )


class _RecordChoice(NamedTuple):
    """Instructions that may have each record of a start, the best first."""

    candidates: list[list[int]]
    may_be_inside: bool = False
    """True if warps may come there while they are in the phase already."""


class _RecordPlaces:
    """Instructions, by number, that may have the record of a start; each has one record at most."""

    def __init__(
        self, target: GraftTarget, graph: FlowGraph, code: Sequence[Instruction], has_room: Callable[[int], bool]
    ) -> None:
        self._target, self._graph, self._code = target, graph, code
        self._has_room = has_room
        self._fixed = fixed_offsets(target)
        self._recorded = set[int]()

    def take(self, index: int) -> None:
        """Give an instruction its record."""
        self._recorded.add(index)

    def choose(self, start: PhaseStart, first: int, ends: Sequence[int]) -> _RecordChoice:
        """Return the instructions that may have the records of a start: near its ``first`` instruction, or at each of
        the ``ends`` of blocks before it.
        """
        if not ends:
            block = self._graph.blocks[self._graph.block_at(first)]
            return _RecordChoice([self._free(self._near_start(block, first))])
        at_ends = [self._free(self._near_end(end)) for end in ends]
        delays_phase = any(work_of(self._code[indices[0]]) in _SLOW for indices in at_ends if indices)
        if start.iterates or not (delays_phase or self._leaves_loop(ends, first)):
            return _RecordChoice(at_ends)
        at_head = self._free(self._near_head(first))
        return _RecordChoice([at_head], may_be_inside=True) if at_head else _RecordChoice(at_ends)

    def _free(self, indices: Iterable[int]) -> list[int]:
        """Return the instructions that have no record yet, and room for one."""
        return [index for index in indices if index not in self._recorded and self._has_room(index)]

    def _near_start(self, block: range, first: int) -> Iterator[int]:
        """Yield the instructions near the start of a phase: behind it, before it, then the start itself.

        For a wait those in front of it come first, then the wait itself, which the record then precedes: behind the
        wait, its time would belong to the phase before it. No record of a wait precedes a product, which would be
        issued later.
        """
        is_wait = work_of(self._code[first]) in WAITS
        products = [
            index for index in block[: first - block.start] if is_wait and work_of(self._code[index]) == PRODUCTS
        ]
        stop = max(block.start - 1, first - 1 - _MAX_DISTANCE, *products)
        preceding = [index for index in range(first - 1, stop, -1) if self._is_ordinary(index)]
        following = [
            index for index in range(first, min(block.stop, first + _MAX_DISTANCE)) if self._is_ordinary(index)
        ]
        word = self._target.words[first]
        itself = [first] if not self._is_fixed(first) and (_may_move(word) or _jumps(word)) else []
        yield from (*preceding, *itself, *following) if is_wait else (*following, *preceding, *itself)

    def _near_head(self, first: int) -> Iterator[int]:
        """Yield the instructions near the start of a phase, behind blocks that only reconverge lanes."""
        graph, block = self._graph, self._graph.block_at(first)
        while len(graph.blocks[block]) == 1 and self._reconverges(first):
            successors = [number for number in graph.successors[block] if list(graph.predecessors[number]) == [block]]
            if len(successors) != 1:
                break
            block, first = successors[0], graph.blocks[successors[0]].start
        return self._near_start(graph.blocks[block], first)

    def _near_end(self, end: int) -> Iterator[int]:
        """Yield the instructions near the end of a block, which is instruction ``end``, the last one first."""
        last_wait = next((index for index in range(end, -1, -1) if work_of(self._code[index]) in WAITS), -1)
        indices = range(end, max(last_wait, end - _MAX_DISTANCE), -1)
        yield from (index for index in indices if self._is_ordinary(index))
        if not self._is_fixed(end) and _jumps(self._target.words[end]):
            yield end

    def _leaves_loop(self, ends: Sequence[int], first: int) -> bool:
        """Return whether a block with one of ``ends`` is in a loop that an instruction is not in: it ends more often
        than the instruction runs.
        """
        graph = self._graph
        loop_blocks = [loop.blocks for loop in graph.loops if graph.block_at(first) not in loop.blocks]
        return any(graph.block_at(end) in blocks for blocks in loop_blocks for end in ends)

    def _is_ordinary(self, index: int) -> bool:
        return _may_move(self._target.words[index]) and not (
            self._is_fixed(index) or work_of(self._code[index]) in WAITS
        )

    def _is_fixed(self, index: int) -> bool:
        return index * WORD_BYTES in self._fixed

    def _reconverges(self, index: int) -> bool:
        return operation_name(self._target.words[index], self._target.arch) in _RECONVERGES


def _entered_while_counting(graph: FlowGraph, phases: Sequence[SassPhase]) -> set[int]:
    """Return the innermost loops that warps may enter from iterations of another one without a record in between.

    Such a record would end the count of the iterations, but not every start has one.
    """
    last_starts = {
        graph.block_at(phase.offset // WORD_BYTES): phase.start
        for phase in sorted(phases, key=lambda record: record.offset)
    }
    loops = set()
    for header in (phase for phase in phases if phase.start.iterates and phase.start.innermost_loop_number):
        head = graph.block_at(header.offset // WORD_BYTES)
        pending = [predecessor for predecessor in graph.predecessors[head] if not graph.dominates(head, predecessor)]
        visited = set(pending)
        while pending:
            block = pending.pop()
            if block in last_starts:
                loops |= {header.start.innermost_loop_number} if last_starts[block].innermost_loop_number else set()
            else:
                unvisited = set(graph.predecessors[block]) - visited
                visited |= unvisited
                pending += unvisited
    return loops


class _MbarrierNames:
    """Names of mbarriers by the constant part of their address in shared memory: ``shared+2048[2]``.

    Registers are followed back over the blocks on all ways, through moves and sums.
    """

    def __init__(self, target: GraftTarget, graph: FlowGraph) -> None:
        self._target, self._paths = target, AddressPaths(target, graph)
        self._arrays = BarrierArrays()
        self._offsets = {number: self._search(number) for block in graph.dominators for number in graph.blocks[block]}
        for number, word in enumerate(target.words):
            if word.operation == _INITIALIZES:
                self._arrays.arrival_counts |= dict.fromkeys(self._offsets.get(number, ()), word.rb)

    def names_at(self, index: int) -> tuple[str, ...]:
        """Return the names of the mbarrier that an instruction may wait for or arrive at; none if it is unknown."""
        names = (self._arrays.name("shared", offset, _WINDOW) for offset in sorted(self._offsets.get(index, ())))
        return tuple(dict.fromkeys(names))

    def _search(self, index: int) -> frozenset[int]:
        """Return the offsets of the mbarrier of an instruction, without the index of its stage; none if unknown."""
        ends = [end for end in self._paths.find_ends(index, self._address(index)) if end.constant is None]
        self._arrays.indexed_offsets.update(end.offset for end in ends if end.is_indexed)
        return frozenset(end.offset for end in ends if end.offset >= _WINDOW)

    def _address(self, index: int) -> set[AddressTerm]:
        """Return the registers of the address of an mbarrier, with the offsets added to them.

        Of a bulk copy, that is the register behind its destination.
        """
        word, arch = self._target.words[index], self._target.arch
        bits = uniform_bits(arch)
        if arch < _FIRST_WITH_WINDOW:
            return set()
        if operation_name(word, arch) == "SYNCS":
            offset, uniform = word.field(*_SYNCS_OFFSET), word.field(_SYNCS_UNIFORM, bits)
            if word.operation == _INITIALIZES:
                return {AddressTerm(UNIFORM_BASE + word.ra, offset)}
            return {AddressTerm(word.ra, offset), AddressTerm(UNIFORM_BASE + uniform, offset)}
        copy = bulk_copy_of(word, arch)
        if copy is None or not copy.is_load or copy.is_prefetch:
            return set()
        return {AddressTerm(UNIFORM_BASE + word.field(_COPY_REGISTERS, bits) + 1, 0)}


def _takes_no_time(graph: FlowGraph, code: Sequence[Instruction], words: Sequence[Word], first: int) -> bool:
    """Return whether a start needs no record: a block that only branches, reconverges or exits, or the loop that tries
    a wait again, which ptxas puts behind the other code; its time is that of the wait before it.
    """
    block, work = graph.block_at(first), work_of(code[first])
    if len(graph.blocks[block]) == 1 and (_jumps(words[first]) or words[first].opcode in (BSYNC, EXIT)):
        return True
    predecessors = [graph.blocks[predecessor] for predecessor in graph.predecessors[block] if predecessor != block]
    return work in WAITS and all(any(work_of(code[index]) == work for index in indices) for indices in predecessors)


class _Entries:
    """The control flow edges at which phases start. Blocks are numbers of ``graph``, instructions of the kernel."""

    def __init__(self, graph: FlowGraph, starts: Sequence[PhaseStart], number_of: Mapping[int, int]) -> None:
        self._graph, self._number_of = graph, number_of
        self._edges: set[tuple[int, int]] = set()
        """(block, next block) of all edges with a start."""
        for start in starts:
            block = graph.block_at(number_of[id(start.head)])
            ends = self._source_ends(start)
            sources = [graph.block_at(end) for end in ends] if ends else graph.predecessors[block]
            self._edges.update((source, block) for source in sources)

    def ends_before(self, start: PhaseStart) -> list[int]:
        """Return the last instructions of the blocks that lead to a start from other phases.

        [] if all ways lead from other phases, or if such a block can be followed by code without a start.
        """
        ends = self._source_ends(start)
        sources = [self._graph.block_at(end) for end in ends]
        followed = ((source, block) for source in sources for block in self._graph.successors[source])
        return ends if self._edges.issuperset(followed) else []

    def _source_ends(self, start: PhaseStart) -> list[int]:
        ends = {self._number_of[id(way.instruction)] for way in start.entry_edges if way.side != "before"}
        return sorted(end for end in ends if self._graph.block_at(end) in self._graph.dominators)


def names_by_line(probe: Probe, target: GraftTarget) -> Callable[[int], str | None]:
    """Return a function that names the phase at a byte offset by its source lines, as ``source_names`` does in PTX.

    Raises UnsupportedKernelError for a kernel without lines.
    """
    lines, calls = target.source_lines(), target.inlined_calls()
    if not lines:
        raise UnsupportedKernelError(because("no-source-lines"))
    outermost = sorted(probe.phases, key=lambda phase: phase[1].first - phase[1].last)

    def name_at(offset: int) -> str | None:
        places = [*reversed(calls.get(offset, ())), *([lines[offset]] if offset in lines else [])]
        if not any(location.is_of(file) for file, _ in places for _, location in outermost):
            return None
        names = (name for place in places for name, wanted in outermost if wanted.holds(*place))
        return "/".join(dict.fromkeys(names))

    return name_at


def flow_of(graph: FlowGraph, code: Sequence[Instruction]) -> Flow:
    """Return the control flow of a kernel over its ``code`` in PTX."""
    falls_through = [number + 1 in successors for number, successors in enumerate(graph.successors)]
    jumps = [
        tuple(successor for successor in successors if successor != number + 1)
        for number, successors in enumerate(graph.successors)
    ]
    return Flow([[code[index] for index in block] for block in graph.blocks], jumps, falls_through)


def _jumps(word: Word) -> bool:
    """Return whether an instruction is a branch that all lanes take."""
    return word.operation == BRA_OPERATION and not is_conditional(word)


def _may_move(word: Word) -> bool:
    return word.is_unconditional and word.operation not in CONTROL_FLOW and not word.never_runs
