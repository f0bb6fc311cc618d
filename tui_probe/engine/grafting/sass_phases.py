"""Phases of a kernel without PTX: its instructions as PTX of the same work, and where the record of each start goes.

A record is at an instruction that may be executed elsewhere: the first of the phase, or one of its neighbors. Where
only some ways lead to a start from other phases, as into a loop, the records are at the ends of the blocks before it.
If such a block can also be followed by code of the phase that it ends with, the record is at the start itself instead,
so that a loop may have a record for each iteration. It is there, too, if the block is in a loop that the start is not
in, or if the record would precede a copy, load or product of the phase that ends: then a record may be inside a
phase and begin nothing.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tui_probe.engine.grafting.stay_positions import is_strong_load
from tui_probe.errors import UnsupportedKernelError
from tui_probe.ptx.control_flow import Flow
from tui_probe.ptx.operands import MADE_UP
from tui_probe.ptx.parameters import BarrierArrays
from tui_probe.ptx.phase_names import ACCESSES, MARK, PRODUCT_WAIT, PRODUCTS, WAITS, work_of
from tui_probe.ptx.phases import flow_phases, with_every
from tui_probe.ptx.tree import Immediate, Instruction, Register
from tui_probe.reasons import because
from tui_probe.sass.address_origins import UNIFORM_BASE, AddressOrigins, AddressPaths, AddressTerm
from tui_probe.sass.bulk_copies import bulk_copy_of
from tui_probe.sass.flow import BRA_OPERATION, FlowGraph, is_conditional
from tui_probe.sass.operations import PRODUCT_OPERATIONS, matrix_product, operation_class, operation_name
from tui_probe.sass.uniform_registers import uniform_bits
from tui_probe.sass.wait_classes import barrier_number, is_mbarrier_arrival, is_mbarrier_wait, own_wait
from tui_probe.sass.wait_sites import fixed_offsets
from tui_probe.sass.words import BSYNC, CONTROL_FLOW, EXIT, IMMEDIATE, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from tui_probe.probe_model.probe import Probe
    from tui_probe.ptx.phases import PhaseStart
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

_BULK_LOAD: Final = ("cp", ("async", "bulk", "shared::cluster", "global", "mbarrier::complete_tx::bytes"))
_BULK_STORE: Final = ("cp", ("async", "bulk", "global", "shared::cta"))
_SAME_WORK: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "BRA": ("bra", ()), "BRX": ("brx", ()), "BRXU": ("brx", ()), "BSYNC": ("bra", ()), "WARPSYNC": ("bra", ()),
    "CALL": ("bra", ()), "EXIT": ("exit", ()), "RET": ("ret", ()),
    "ARRIVES": ("cp", ("async", "mbarrier", "arrive")), "LDGSTS": ("cp", ("async", "shared", "global")),
    "LDGDEPBAR": ("cp", ("async", "commit_group")), "DEPBAR": ("cp", ("async", "wait_group")),
    "UTMALDG": _BULK_LOAD, "UBLKCP": _BULK_LOAD,
    "UTMASTG": _BULK_STORE, "UTMAREDG": _BULK_STORE, "UBLKRED": _BULK_STORE,
    "PMTRIG": (MARK, ()), "ACQBULK": ("griddepcontrol", ("wait",)),
    "UGETNEXTWORKID": ("clusterlaunchcontrol", ("try_cancel", "mbarrier::complete_tx::bytes")),
    "UTCBAR": ("tcgen05", ("commit", "mbarrier::arrive::one")),
    **dict.fromkeys(("LDG", "LD"), ("ld", ("global",))),
    **dict.fromkeys(("STG", "ST", "RED", "REDG", "ATOM", "ATOMG"), ("st", ("global",))),
    **dict.fromkeys(("STS", "STSM"), ("st", ("shared",))),
    **dict.fromkeys(("SHFL", "REDUX", "CREDUX"), ("shfl", ())),
    **dict.fromkeys(("HGMMA", "IGMMA", "BGMMA", "QGMMA"), ("wgmma", ("mma_async",))),
    **dict.fromkeys(("HMMA", "IMMA", "BMMA", "DMMA", "QMMA", "UTCIMMA"), ("mma", ())),
}  # fmt: skip
_ARITHMETIC: Final = {work: ("add", (kind,)) for work, kind in (
    ("fp32", "f32"), ("fp64", "f64"), ("fp16", "f16"), ("bf16", "bf16"), ("integer", "u32"),
)}  # fmt: skip
_OTHER: Final[tuple[str, tuple[str, ...]]] = ("mov", ())
_FUNCTION_FIELD: Final = 74, 4
"""First bit and width of the function of MUFU."""
_EXPONENTIALS: Final = frozenset({2, 3})
"""MUFU.EX2 and MUFU.LG2."""
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
_NEAR: Final = 8
"""Instructions between the start of a phase and its record at most, and between products of which one waits for the
other.
"""


@dataclass(frozen=True, slots=True)
class SassPhase:
    """A phase with its record at byte offset ``at``; ``loop`` is the offset of the recorded loop around it, ``main``
    that of the instruction that does its work. ``inside``: warps may come there while they are in the phase already.
    """

    at: int
    start: PhaseStart
    loop: int | None
    main: int
    inside: bool = False


def _work_of_words(target: GraftTarget, graph: FlowGraph) -> list[Instruction]:
    """Return PTX of the same work for each instruction of a kernel."""
    code = [_same_work(word, target.arch) for word in target.words]
    for block in graph.blocks:
        for index in _serial_waits([code[number] for number in block]):
            code[block[index]] = Instruction(*_OTHER, (), MADE_UP)
    return code


def sass_phases(
    probe: Probe, target: GraftTarget, has_room: Callable[[int], bool] = lambda _: True
) -> tuple[list[SassPhase], int]:
    """Return the phases of a kernel in source order, and the number of starts that no instruction with room can record.

    Raises UnsupportedKernelError for a branch whose destination the file does not give, and for phases by source line
    in a kernel without lines.
    """
    graph = FlowGraph.of(target)
    code = _work_of_words(target, graph)
    number_of = {id(instruction): number for number, instruction in enumerate(code)}
    starts = _phase_starts(probe, target, graph, code, number_of)
    entries, records = _Entries(graph, starts, number_of), _RecordPlaces(target, graph, code, has_room)
    phases: list[SassPhase] = []
    missing = 0
    for start in starts:
        first = number_of[id(start.first)]
        if graph.block_at(first) not in graph.dominators:
            continue  # padding, or code that nothing leads to
        choices, inside = records.choices(start, first, entries.ends_before(start))
        for places in choices:
            if not places:
                missing += not _takes_no_time(graph, code, target.words, first)
                continue
            records.take(places[0])
            loop = None if start.loop is None else number_of[id(start.loop)] * WORD_BYTES
            main = number_of[id(start.main or start.first)] * WORD_BYTES
            phases.append(SassPhase(places[0] * WORD_BYTES, start, loop, main, inside))
    if not probe.every:
        return phases, missing
    counted = with_every([phase.start for phase in phases], probe.every, _entered_while_counting(graph, phases))
    return [replace(phase, start=start) for phase, start in zip(phases, counted, strict=True)], missing


def _phase_starts(
    probe: Probe, target: GraftTarget, graph: FlowGraph, code: Sequence[Instruction], number_of: Mapping[int, int]
) -> list[PhaseStart]:
    """Return the starts of the phases of a kernel, whose instructions are ``code`` in PTX."""
    names = names_by_line(probe, target) if probe.phases else None
    barriers, origins = _MbarrierNames(target, graph), AddressOrigins(target, graph)
    return flow_phases(
        flow_of(graph, code),
        None if names is None else lambda instruction: names(number_of[id(instruction)] * WORD_BYTES),
        lambda instruction: _products(target.words[number_of[id(instruction)]], target.arch),
        lambda instruction: origins.of_transfer(number_of[id(instruction)]),
        barriers=lambda instruction: barriers.of(number_of[id(instruction)]),
    )


class _RecordPlaces:
    """Instructions, by number, that may have the record of a start; each has one record at most."""

    def __init__(
        self, target: GraftTarget, graph: FlowGraph, code: Sequence[Instruction], has_room: Callable[[int], bool]
    ) -> None:
        self._target, self._graph, self._code = target, graph, code
        self._has_room = has_room
        self._fixed = fixed_offsets(target)
        self._taken = set[int]()

    def take(self, place: int) -> None:
        """Give an instruction its record."""
        self._taken.add(place)

    def choices(self, start: PhaseStart, first: int, ends: Sequence[int]) -> tuple[list[list[int]], bool]:
        """Return the instructions that may have each record of a start, the best first: near its ``first``
        instruction, or at each of the ``ends`` of blocks before it; and whether warps may come there in the phase.
        """
        target, graph, code, fixed = self._target, self._graph, self._code, self._fixed
        if not ends:
            block = graph.blocks[graph.block_at(first)]
            return [self._free(_places(target, code, block, first, fixed))], False
        at_ends = [self._free(_end_places(target, code, end, fixed)) for end in ends]
        delays_others = any(work_of(code[places[0]]) in _SLOW for places in at_ends if places)
        if start.iterates or not (delays_others or _leaves_loop(graph, ends, first)):
            return at_ends, False
        at_head = self._free(_places_at_head(target, code, graph, first, fixed))
        return ([at_head], True) if at_head else (at_ends, False)

    def _free(self, places: Iterable[int]) -> list[int]:
        return [place for place in places if place not in self._taken and self._has_room(place)]


def _entered_while_counting(graph: FlowGraph, phases: Sequence[SassPhase]) -> set[int]:
    """The innermost loops that may be entered behind iterations of such a loop without a record outside of it, which
    would end their count: not every start has a record.
    """
    last = {graph.block_at(phase.at // WORD_BYTES): phase.start for phase in sorted(phases, key=lambda own: own.at)}
    loops = set()
    for header in (phase for phase in phases if phase.start.iterates and phase.start.innermost):
        head = graph.block_at(header.at // WORD_BYTES)
        waiting = [before for before in graph.predecessors[head] if not graph.dominates(head, before)]
        seen = set(waiting)
        while waiting:
            block = waiting.pop()
            if block in last:
                loops |= {header.start.innermost} if last[block].innermost else set()
            else:
                fresh = set(graph.predecessors[block]) - seen
                seen |= fresh
                waiting += fresh
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
                self._arrays.made |= dict.fromkeys(self._offsets.get(number, ()), word.rb)

    def of(self, index: int) -> tuple[str, ...]:
        """Return the names of the mbarrier that an instruction may wait for or arrive at; none if it is unknown."""
        names = (self._arrays.name("shared", offset, _WINDOW) for offset in sorted(self._offsets.get(index, ())))
        return tuple(dict.fromkeys(names))

    def _search(self, index: int) -> frozenset[int]:
        """The offsets of the mbarrier of an instruction, without the index of its stage; none if they are unknown."""
        ends = [end for end in self._paths.ends(index, self._address(index)) if end.constant is None]
        self._arrays.indexed.update(end.offset for end in ends if end.indexed)
        return frozenset(end.offset for end in ends if end.offset >= _WINDOW)

    def _address(self, index: int) -> set[AddressTerm]:
        """The registers of the address of an mbarrier, and what is added to them; of a copy, behind its destination."""
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


def _serial_waits(block: Sequence[Instruction]) -> Iterator[int]:
    """Yield the waits of a block that ptxas puts between products which it cannot overlap: part of the products."""
    works = [work_of(instruction) for instruction in block]
    products = [index for index, instruction in enumerate(block) if "mma_async" in instruction.modifiers]
    for first, second in itertools.pairwise(products):
        between = range(first + 1, second)
        of_products = all(works[index] in (None, PRODUCTS, "compute", PRODUCT_WAIT) for index in between)
        if of_products and len(between) <= _NEAR:
            yield from (index for index in between if works[index] == PRODUCT_WAIT)


def _takes_no_time(graph: FlowGraph, code: Sequence[Instruction], words: Sequence[Word], first: int) -> bool:
    """Return whether a start needs no record: a block that only branches, reconverges or exits, or the loop that tries
    a wait again, which ptxas puts behind the other code; its time is that of the wait before it.
    """
    block, work = graph.block_at(first), work_of(code[first])
    if len(graph.blocks[block]) == 1 and (_jumps(words[first]) or words[first].opcode in (BSYNC, EXIT)):
        return True
    before = [graph.blocks[other] for other in graph.predecessors[block] if other != block]
    return work in WAITS and all(any(work_of(code[index]) == work for index in other) for other in before)


class _Entries:
    """The control flow edges at which phases start. Blocks are numbers of ``graph``, instructions of the kernel."""

    def __init__(self, graph: FlowGraph, starts: Sequence[PhaseStart], number_of: Mapping[int, int]) -> None:
        self._graph, self._number_of = graph, number_of
        self._edges: set[tuple[int, int]] = set()
        """(block, next block) of all edges with a start."""
        for start in starts:
            block = graph.block_at(number_of[id(start.first)])
            ends = self._ends(start)
            before = [graph.block_at(end) for end in ends] if ends else graph.predecessors[block]
            self._edges.update((source, block) for source in before)

    def ends_before(self, start: PhaseStart) -> list[int]:
        """The last instructions of the blocks that lead to a start from other phases.

        [] if all ways lead from other phases, or if such a block can be followed by code without a start.
        """
        ends = self._ends(start)
        sources = [self._graph.block_at(end) for end in ends]
        followed = ((source, block) for source in sources for block in self._graph.successors[source])
        return ends if self._edges.issuperset(followed) else []

    def _ends(self, start: PhaseStart) -> list[int]:
        ends = {self._number_of[id(way.instruction)] for way in start.ways if way.side != "before"}
        return sorted(end for end in ends if self._graph.block_at(end) in self._graph.dominators)


def names_by_line(probe: Probe, target: GraftTarget) -> Callable[[int], str | None]:
    """Return a function that names the phase at a byte offset by its source lines, as ``source_names`` does in PTX.

    Raises UnsupportedKernelError for a kernel without lines.
    """
    lines, calls = target.source_lines(), target.inlined_calls()
    if not lines:
        raise UnsupportedKernelError(because("no-source-lines"))
    outermost = sorted(probe.phases, key=lambda phase: phase[1].first - phase[1].last)

    def named(offset: int) -> str | None:
        places = [*reversed(calls.get(offset, ())), *([lines[offset]] if offset in lines else [])]
        if not any(wanted.is_of(file) for file, _ in places for _, wanted in outermost):
            return None
        names = (name for place in places for name, wanted in outermost if wanted.holds(*place))
        return "/".join(dict.fromkeys(names))

    return named


def flow_of(graph: FlowGraph, code: Sequence[Instruction]) -> Flow:
    falls = [number + 1 in following for number, following in enumerate(graph.successors)]
    jumps = [
        tuple(other for other in following if other != number + 1) for number, following in enumerate(graph.successors)
    ]
    return Flow([[code[index] for index in block] for block in graph.blocks], jumps, falls)


def _places(
    target: GraftTarget, code: Sequence[Instruction], block: range, first: int, fixed: Collection[int]
) -> Iterator[int]:
    """The instructions that may have the record of a start, the best first: of a wait those in front of it, else the
    wait itself, which the record then precedes. Behind a wait, its time would belong to the phase before it. No record
    of a wait precedes a product, which would be issued later.
    """
    word, is_free = target.words[first], first * WORD_BYTES not in fixed
    itself = [first] if is_free and (_may_move(word) or _jumps(word)) else []
    waits = work_of(code[first]) in WAITS
    products = [index for index in block[: first - block.start] if waits and work_of(code[index]) == PRODUCTS]
    before, behind = (
        [index for index in near if _is_ordinary(target, code, index, fixed)]
        for near in (
            range(first - 1, max(block.start - 1, first - 1 - _NEAR, *products), -1),
            range(first, min(block.stop, first + _NEAR)),
        )
    )
    yield from (*before, *itself, *behind) if waits else (*behind, *before, *itself)


def _places_at_head(
    target: GraftTarget, code: Sequence[Instruction], graph: FlowGraph, first: int, fixed: Collection[int]
) -> Iterator[int]:
    """Return the places for the record of a start at the start itself; behind blocks that only reconverge lanes."""
    block = graph.block_at(first)
    while len(graph.blocks[block]) == 1 and operation_name(target.words[first], target.arch) in _RECONVERGES:
        following = [other for other in graph.successors[block] if list(graph.predecessors[other]) == [block]]
        if len(following) != 1:
            break
        block, first = following[0], graph.blocks[following[0]].start
    return _places(target, code, graph.blocks[block], first, fixed)


def _leaves_loop(graph: FlowGraph, ends: Sequence[int], first: int) -> bool:
    """Return whether a block with one of ``ends`` is in a loop that an instruction is not in: it ends more often than
    the instruction runs.
    """
    inside = [loop.blocks for loop in graph.loops if graph.block_at(first) not in loop.blocks]
    return any(graph.block_at(end) in blocks for blocks in inside for end in ends)


def _end_places(target: GraftTarget, code: Sequence[Instruction], end: int, fixed: Collection[int]) -> Iterator[int]:
    """The instructions that may have a record at the end of a block, which is instruction ``end``, the best first."""
    stop = next((index for index in range(end, -1, -1) if work_of(code[index]) in WAITS), -1)
    order = range(end, max(stop, end - _NEAR), -1)
    yield from (index for index in order if _is_ordinary(target, code, index, fixed))
    if end * WORD_BYTES not in fixed and _jumps(target.words[end]):
        yield end


def _is_ordinary(target: GraftTarget, code: Sequence[Instruction], index: int, fixed: Collection[int]) -> bool:
    word = target.words[index]
    ordinary = word.is_unconditional and word.operation not in CONTROL_FLOW and work_of(code[index]) not in WAITS
    return ordinary and index * WORD_BYTES not in fixed and not word.never_runs


def _jumps(word: Word) -> bool:
    """Return whether an instruction is a branch that all lanes take."""
    return word.operation == BRA_OPERATION and not is_conditional(word)


def _may_move(word: Word) -> bool:
    return word.is_unconditional and word.operation not in CONTROL_FLOW and not word.never_runs


def _same_work(word: Word, arch: int) -> Instruction:
    """A PTX instruction of the same work. Of its operands only the number of a barrier is known."""
    opcode, modifiers = _kind(word, arch)
    operands: tuple[Immediate | Register, ...] = ()
    if opcode == "bar":
        number = barrier_number(word)
        operands = (Register("barrier") if number is None else Immediate(str(number)),)
    elif opcode == MARK:
        mask = word.field(*IMMEDIATE)
        operands = (Immediate(str(mask.bit_length() - 1) if mask.bit_count() == 1 else f"{mask:#x}"),)
    return Instruction(opcode, modifiers, operands, MADE_UP)


def _products(word: Word, arch: int) -> int | None:
    """Multiply-adds per lane; 0 for other instructions than matrix products, None if they are unknown."""
    if word.operation not in PRODUCT_OPERATIONS:
        return None if operation_class(word, arch) == "tensor" else 0
    try:
        return matrix_product(word, arch).share
    except UnsupportedKernelError:
        return None


def _kind(word: Word, arch: int) -> tuple[str, tuple[str, ...]]:
    if word.never_runs:
        return _OTHER
    match own_wait(word):
        case "barrier":
            return "bar", ("sync",)
        case "cluster":
            return "barrier", ("cluster", "wait")
        case "wgmma":
            return "wgmma", ("wait_group",)
    match name := operation_name(word, arch):
        case "SYNCS":
            if is_mbarrier_wait(word):
                return "mbarrier", ("try_wait",)
            return "mbarrier", ("arrive",) if is_mbarrier_arrival(word) else ("init",)
        case "WARPGROUP":
            return "wgmma", ("fence",)
        case "LDG" | "LD" if is_strong_load(word, arch):
            return "ld", ("acquire", "global")
        case "MUFU":
            return ("ex2", ()) if word.field(*_FUNCTION_FIELD) in _EXPONENTIALS else ("add", ("f32",))
    return _SAME_WORK.get(name, _ARITHMETIC.get(operation_class(word, arch), _OTHER))
