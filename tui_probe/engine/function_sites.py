"""Sites of a probe in one function: instructions, source lines, basic blocks, loops, phases and retry loops."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Final

from tui_probe.engine.helper_values.helpers import Helpers
from tui_probe.engine.kernel import function_instructions, register_types
from tui_probe.engine.site_file import SiteSources, phase_fields
from tui_probe.probe_model.positions import (
    BARRIERS,
    BLOCK,
    IMMEDIATE,
    LOOP,
    MERGED,
    PHASE,
    RETRIED,
    SOURCE,
    UNBOUNDED,
    matches,
)
from tui_probe.ptx.assembler_effects import merged_loads
from tui_probe.ptx.control_flow import basic_blocks, loop_heads
from tui_probe.ptx.instruction_facts import class_of, sass_instruction_count
from tui_probe.ptx.tree import Immediate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from tui_probe.engine.kernel import Kernel, UnusedNames
    from tui_probe.engine.module_variables import SharedVariables
    from tui_probe.engine.site_file import SiteNotes
    from tui_probe.probe_model.positions import SourceRange
    from tui_probe.probe_model.probe import Probe, ProbePoint
    from tui_probe.ptx.phases import PhaseStart
    from tui_probe.ptx.tree import Function, Instruction
    from tui_probe.ptx.waiting import Edge, WaitLoop

_BRANCH_OPCODES: Final = frozenset({"bra", "brx", "ret", "exit", "trap", "call"})


@dataclass(frozen=True, slots=True)
class InstructionSite:
    """An instruction that a point is at, with its ``helpers``; it may be a rewritten one of the function."""

    instruction: Instruction
    point: ProbePoint
    helpers: Helpers


@dataclass(frozen=True, slots=True)
class BlockSite:
    """The first instruction of a basic block or loop.

    ``instruction_count`` is the number of instructions of the position's class in the block, ``sass_count`` the number
    of SASS instructions that they become; both are 0 for a loop.
    """

    head: Instruction
    point: ProbePoint
    instruction_count: int = 0
    sass_count: int = 0


@dataclass(frozen=True, slots=True)
class RunSite:
    """A run of instructions from the lines of source that a point is at."""

    instructions: Sequence[Instruction]
    point: ProbePoint


@dataclass(frozen=True, slots=True)
class PhaseSite:
    """The start of a phase."""

    start: PhaseStart
    point: ProbePoint


class RetryLoops:
    """The loops in one kernel that wait for what a point is at. Instructions are known by where they stand."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._loops: dict[str, dict[int, WaitLoop]] = {}

    def loop_of(self, instruction: Instruction, point: ProbePoint) -> WaitLoop | None:
        """Return the loop that retries an instruction; None if there is none, or if its point is not for loops."""
        return self._loops_of_point(point).get(instruction.span.start)

    def is_later_try(self, instruction: Instruction, point: ProbePoint) -> bool:
        """Return whether an instruction belongs to a loop that an earlier one is the site of."""
        loop = self.loop_of(instruction, point)
        return loop is not None and loop.tries[0].span.start != instruction.span.start

    def entries(self, instruction: Instruction, point: ProbePoint) -> tuple[Edge, ...]:
        """Return the edges into the loop of an instruction."""
        loop = self.loop_of(instruction, point)
        return loop.entries if loop else ()

    def exits(self, instruction: Instruction, point: ProbePoint) -> tuple[Edge, ...]:
        """Return the exits of the loop of an instruction."""
        loop = self.loop_of(instruction, point)
        return loop.exits if loop else ()

    def _loops_of_point(self, point: ProbePoint) -> dict[int, WaitLoop]:
        positions = [position for position in point.positions if position.retried]
        if not positions:
            return {}
        if point.name not in self._loops:
            from tui_probe.ptx.waiting import wait_loops  # few probes ask for loops

            loops = wait_loops(
                self._function, lambda instruction: any(matches(position, instruction) for position in positions)
            )
            self._loops[point.name] = {attempt.span.start: loop for loop in loops for attempt in loop.tries}
        return self._loops[point.name]


def source_runs(kernel: Kernel, function: Function, source_range: SourceRange) -> Iterator[list[Instruction]]:
    """Yield the runs of a kernel, or of a function of it, in order; none for code without source lines.

    A run is a longest sequence of instructions that came from these lines within a basic block: it is entered at its
    first and left behind its last one, no matter what branches do. A branch at its end stays outside, since nothing
    runs behind it. What a call in these lines was inlined to came from them, too. A line whose code the compiler put in
    several places has several runs; a snippet that adds up what it measures has the sum over all of them.
    """
    sources = SiteSources(kernel, kernel.image)
    for block in basic_blocks(function):
        straight_code = block[:-1] if block and block[-1].opcode in _BRANCH_OPCODES else block
        for is_inside, instructions in groupby(
            straight_code, key=lambda instruction: _is_from(sources, kernel.line_of(instruction), source_range)
        ):
            if is_inside:
                yield list(instructions)


def source_names(kernel: Kernel, phases: Sequence[tuple[str, SourceRange]]) -> Callable[[Instruction], str | None]:
    """Return a function that names the phase of an instruction by its source line: of nested ones OUTER/INNER.

    Its name is None, that of the code around it, if its line is in none of the files of phases: a library function that
    was inlined without a record of the call.
    """
    sources = SiteSources(kernel, kernel.image)
    outermost = sorted(phases, key=lambda phase: phase[1].first - phase[1].last)  # the longest range first

    def phase_name(instruction: Instruction) -> str | None:
        chain = sources.source_chain(kernel.line_of(instruction))
        if not any(source_range.is_of(source.file) for source in chain for _, source_range in phases):
            return None
        names = (
            name
            for source in reversed(chain)  # callers first
            for name, phase_range in outermost
            if phase_range.holds(source.file, source.line)
        )
        return "/".join(dict.fromkeys(names))

    return phase_name


def _is_from(sources: SiteSources, line: int, source_range: SourceRange) -> bool:
    return any(source_range.holds(source.file, source.line) for source in sources.source_chain(line))


def _sum_of_classes(counts: Counter[str], position_classes: Sequence[Collection[str]]) -> int:
    """Add up the counts of the classes that each position names; one that names none means all."""
    return sum(sum(counts[name] for name in names or counts) for names in position_classes)


class FunctionSites:
    """Sites of one probe in one function. How many there are must be known before anything is inserted."""

    def __init__(
        self,
        kernel: Kernel,
        function: Function,
        probe: Probe,
        names: UnusedNames,
        shared_variables: SharedVariables,
        ends_block: Callable[[Instruction], bool] | None,
    ) -> None:
        """Sort the points by opcode. Instructions for which ``ends_block`` holds end basic blocks."""
        self._kernel = kernel
        self._function = function
        self._probe = probe
        self._names = names
        self._shared_variables = shared_variables
        self._ends_block = ends_block
        self._types = register_types(function)
        self.retry_loops = RetryLoops(function)
        self.instructions: list[InstructionSite] = []
        self.blocks: list[BlockSite] = []
        self.runs: list[RunSite] = []
        self.phases: list[PhaseSite] = []
        self._by_opcode: dict[str, list[ProbePoint]] = defaultdict(list)
        for point in probe.points:
            for opcode in {position.opcode for position in point.positions}:
                self._by_opcode[opcode].append(point)

    def find(self, notes: SiteNotes) -> None:
        """Find the sites, and note them."""
        self.instructions = list(self._find_instructions(notes))
        self.blocks = list(self._find_blocks(notes))
        self.runs = list(self._find_runs(notes))
        self.phases = list(self._find_phases(notes))

    def site_instructions(self) -> Iterator[tuple[Instruction, ProbePoint]]:
        """Yield the instruction that each site is named by, and its point."""
        yield from ((site.instruction, site.point) for site in self.instructions)
        yield from ((site.head, site.point) for site in self.blocks)
        yield from ((site.instructions[0], site.point) for site in self.runs)
        yield from ((site.start.head, site.point) for site in self.phases)

    def _find_instructions(self, notes: SiteNotes) -> Iterator[InstructionSite]:
        """Yield the instructions that points are at and that have all values which the points read."""
        if not self._by_opcode.keys() - {"", BLOCK, LOOP, PHASE, SOURCE}:
            return
        for original in function_instructions(self._function):
            instruction = self._shared_variables.replacements.get(id(original), original)
            for point in self._by_opcode.get(original.opcode, ()):
                if any(matches(position, original, self._extra_modifiers(original)) for position in point.positions):
                    if self.retry_loops.is_later_try(original, point) or not self._is_within(original, point):
                        continue
                    space = self._kernel.named_space(original)
                    helpers = Helpers(instruction, self._types, self._names, self._kernel, self._function, space)
                    if all(helpers.applies_to(snippet) for snippet in (point.before, point.after) if snippet):
                        notes.add("instruction", original, instruction, point.name)
                        yield InstructionSite(instruction, point, helpers)
                    elif self._kernel.value_types(self._function).may_be_number(original):
                        notes.leave_out(original)

    def _is_within(self, instruction: Instruction, point: ProbePoint) -> bool:
        """Return whether an instruction comes from the lines of source that a point is limited to."""
        if point.within is None:
            return True
        return _is_from(self._sources, self._kernel.line_of(instruction), point.within)

    @cached_property
    def _sources(self) -> SiteSources:
        return SiteSources(self._kernel, self._kernel.image)

    @cached_property
    def _merged_loads(self) -> frozenset[int]:
        return merged_loads(self._function, self._kernel.variables)

    def _extra_modifiers(self, instruction: Instruction) -> tuple[str, ...]:
        """Return the modifiers that positions may name besides the instruction's own."""
        modifiers = (MERGED,) if instruction.opcode == "ld" and id(instruction) in self._merged_loads else ()
        if instruction.opcode in BARRIERS and isinstance(next(iter(instruction.operands), None), Immediate):
            modifiers = (IMMEDIATE,)
        elif self._has_retried_positions and instruction.span.start in self._retried_positions:
            modifiers = (*modifiers, RETRIED)
        space = self._kernel.named_space(instruction)
        return (*modifiers, space) if space else modifiers

    @cached_property
    def _has_retried_positions(self) -> bool:
        positions = (
            position for points in self._by_opcode.values() for point in points for position in point.positions
        )
        return any(RETRIED in position.modifiers for position in positions)

    @cached_property
    def _retried_positions(self) -> frozenset[int]:
        """Places of the strong loads and atomics that loops do nothing but try again."""
        from tui_probe.ptx.waiting import retried_reads  # few probes ask for loops

        return frozenset(instruction.span.start for instruction in retried_reads(self._function))

    def _find_blocks(self, notes: SiteNotes) -> Iterator[BlockSite]:
        """Yield each basic block that holds instructions of a point's class, and each loop."""
        for block in basic_blocks(self._function, self._ends_block) if self._by_opcode[BLOCK] else ():
            classes, issued = self._count_classes(block)
            for point in self._by_opcode[BLOCK]:
                position_classes = [position.modifiers for position in point.positions if position.opcode == BLOCK]
                if number := _sum_of_classes(classes, position_classes):
                    notes.add("block", block[0], block[0], point.name, block)
                    yield BlockSite(block[0], point, number, _sum_of_classes(issued, position_classes))
        for point in self._by_opcode[LOOP]:
            for head in self._loop_heads(point):
                notes.add("loop", head, head, point.name)
                yield BlockSite(head, point)

    def _count_classes(self, block: Sequence[Instruction]) -> tuple[Counter[str], Counter[str]]:
        """Count the instructions of a block by class, and the SASS instructions that they come to."""
        classes = Counter(class_of(instruction) for instruction in block)
        issued: Counter[str] = Counter()
        for instruction in block:
            if id(instruction) not in self._merged_loads:
                issued[class_of(instruction)] += sass_instruction_count(instruction)
        return classes, issued

    def _loop_heads(self, point: ProbePoint) -> list[Instruction]:
        if not all(UNBOUNDED in position.modifiers for position in point.positions if position.opcode == LOOP):
            return loop_heads(self._function)
        from tui_probe.ptx.counted_loops import unbounded_loop_heads  # few probes ask for loops

        probed_positions = {
            site.instruction.span.start for site in self.instructions if site.point.saved_maps & point.saved_maps
        }
        blocks = {block[0].span.start: block for block in basic_blocks(self._function)}
        heads = unbounded_loop_heads(self._function)
        return [
            head
            for head in heads
            if not any(instruction.span.start in probed_positions for instruction in blocks[head.span.start])
        ]

    def _find_runs(self, notes: SiteNotes) -> Iterator[RunSite]:
        """Yield each run of instructions from the source lines that a point is at."""
        for point in self._by_opcode[SOURCE]:
            for position in point.positions:
                for instructions in (
                    source_runs(self._kernel, self._function, position.source) if position.source else ()
                ):
                    notes.add("block", instructions[0], instructions[0], point.name, instructions)
                    yield RunSite(instructions, point)

    def _find_phases(self, notes: SiteNotes) -> Iterator[PhaseSite]:
        """Yield the first instructions of the phases of the kernel; code of called functions is part of the caller's
        phase.

        Records name a phase by its line, so of several phases in one line of PTX only the first is a site.
        """
        if not self._by_opcode[PHASE] or self._function is not self._kernel.entry:
            return
        from tui_probe.ptx.phases import phase_starts, with_sampling  # few probes ask for phases

        line_of = self._kernel.line_of
        names = source_names(self._kernel, self._probe.phases) if self._probe.phases else None
        by_line = groupby(phase_starts(self._function, names), key=lambda start: line_of(start.head))
        for start in with_sampling([next(line_starts) for _, line_starts in by_line], self._probe.every):
            loop = None if start.loop is None else line_of(start.loop)
            for point in self._by_opcode[PHASE]:
                notes.add("phase", start.head, start.head, point.name, phase=phase_fields(start, loop), main=start.main)
                yield PhaseSite(start, point)
