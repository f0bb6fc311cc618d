"""Insert a probe into one function: at instructions, source lines, basic blocks, loops and retry loops."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Final

from tui_probe.engine.addressing import Addressing, BlockShape
from tui_probe.engine.expansion import ONLY_RECORD, Expander, Sampling
from tui_probe.engine.helpers import TYPE_BITS, Helpers, HelperValue
from tui_probe.engine.kernel import function_instructions, mark_lines, register_types
from tui_probe.engine.recording import RecordTurn
from tui_probe.engine.site_file import SiteSources, phase_fields
from tui_probe.engine.snippet import BLOCK_HELPER, ISSUED_HELPER, LINE_HELPER
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.positions import MERGED, UNBOUNDED, matches
from tui_probe.probe_model.probe import BLOCK, LOOP, PHASE, SOURCE, SnippetCode
from tui_probe.ptx.control_flow import basic_blocks, loop_heads
from tui_probe.ptx.instruction_facts import class_of, sass_instruction_count
from tui_probe.ptx.merged_loads import merged_loads
from tui_probe.ptx.phases import phase_starts
from tui_probe.ptx.references import names_in
from tui_probe.ptx.tree import Register
from tui_probe.ptx.waiting import unbounded_loop_heads
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tui_probe.engine.kernel import Edits, Kernel, UnusedNames
    from tui_probe.engine.module_variables import SharedVariables
    from tui_probe.engine.site_file import SiteNotes
    from tui_probe.engine.snippet_functions import SnippetFunctions
    from tui_probe.engine.sums.site_records import SiteRecords
    from tui_probe.probe_model.probe import Probe, ProbePoint, Snippet, SourceRange
    from tui_probe.ptx.phases import PhaseStart
    from tui_probe.ptx.tree import Function, Instruction, Span
    from tui_probe.ptx.waiting import Edge, WaitLoop


class RetryLoops:
    """The loops in one kernel that wait for what a point is at. Instructions are known by where they stand."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._loops: dict[str, dict[int, WaitLoop]] = {}

    def loop_of(self, instruction: Instruction, point: ProbePoint) -> WaitLoop | None:
        """The loop that tries an instruction; None if it is in no such loop, or its point does not ask for one."""
        return self._of_point(point).get(instruction.span.start)

    def is_later_try(self, instruction: Instruction, point: ProbePoint) -> bool:
        """Return whether an instruction belongs to a loop that an earlier one is the site of."""
        loop = self.loop_of(instruction, point)
        return loop is not None and loop.tries[0].span.start != instruction.span.start

    def entries(self, instruction: Instruction, point: ProbePoint) -> tuple[Edge, ...]:
        """The ways into the loop of an instruction."""
        loop = self.loop_of(instruction, point)
        return loop.entries if loop else ()

    def exits(self, instruction: Instruction, point: ProbePoint) -> tuple[Edge, ...]:
        """The exits of the loop of an instruction."""
        loop = self.loop_of(instruction, point)
        return loop.exits if loop else ()

    def _of_point(self, point: ProbePoint) -> dict[int, WaitLoop]:
        wanted = [position for position in point.positions if position.retried]
        if not wanted:
            return {}
        if point.name not in self._loops:
            from tui_probe.ptx.waiting import wait_loops  # few probes ask for loops

            loops = wait_loops(
                self._function, lambda instruction: any(matches(position, instruction) for position in wanted)
            )
            self._loops[point.name] = {attempt.span.start: loop for loop in loops for attempt in loop.tries}
        return self._loops[point.name]


# Lines of source as a position: the instructions that came from them, in runs that are entered and left as one.
#
# What a call in these lines was inlined to came from them, too: a warp that goes through them goes through that.
#
# A run is a longest sequence of such instructions within a basic block: it is entered at its first and left behind
# its last one, no matter what branches do. A branch at its end stays outside, since nothing runs behind it. A line
# whose code the compiler put in several places has several runs; a snippet that adds up what it measures has the sum
# over all of them.

_BRANCH_OPCODES: Final = frozenset({"bra", "brx", "ret", "exit", "trap", "call"})


def source_runs(kernel: Kernel, function: Function, wanted: SourceRange) -> Iterator[list[Instruction]]:
    """The runs of a kernel or of a function of it, in its order; none where nothing tells its lines."""
    sources = SiteSources(kernel, kernel.image)
    for block in basic_blocks(function):
        straight = block[:-1] if block and block[-1].opcode in _BRANCH_OPCODES else block
        for is_of, run in groupby(
            straight, key=lambda instruction: _is_from(sources, kernel.line_of(instruction), wanted)
        ):
            if is_of:
                yield list(run)


def source_names(kernel: Kernel, phases: Sequence[tuple[str, SourceRange]]) -> Callable[[Instruction], str | None]:
    """Return a function that names the phase of an instruction by its source line: of nested ones OUTER/INNER.

    Its name is None, that of the code around it, if its line is in none of the files of phases: a library function that
    was inlined without a record of the call.
    """
    sources = SiteSources(kernel, kernel.image)
    outermost = sorted(phases, key=lambda phase: phase[1].first - phase[1].last)

    def named(instruction: Instruction) -> str | None:
        places = sources.places(kernel.line_of(instruction))
        if not any(wanted.is_of(place.file) for place in places for _, wanted in phases):
            return None
        callers_first = reversed(places)
        names = (name for place in callers_first for name, wanted in outermost if wanted.holds(place.file, place.line))
        return "/".join(dict.fromkeys(names))

    return named


def _straight_line(start: tuple[PhaseStart, ProbePoint]) -> tuple[int, str]:
    """Key of starts that are always reached one after the other: block and point; of others their own."""
    phase, point = start
    within = all(way.side == "before" and way.instruction is phase.first for way in phase.ways)
    return (phase.block if within else -phase.first.span.start - 1), point.name


def _values(helpers: Helpers, snippet: Snippet | None) -> dict[str, HelperValue]:
    return {name: helpers.value(name) for name in sorted(snippet.helpers)} if snippet else {}


def _is_from(sources: SiteSources, line: int, wanted: SourceRange) -> bool:
    return any(wanted.holds(place.file, place.line) for place in sources.places(line))


class FunctionInsertion:
    """Puts one probe into one function: the kernel itself, or one that it calls.

    ``inserted`` are the snippets at its sites.
    """

    def __init__(
        self,
        kernel: Kernel,
        function: Function,
        probe: Probe,
        names: UnusedNames,
        edits: Edits,
        shared: SharedVariables,
        *,
        sampled: bool,
        reduces: bool,
        sites: SiteRecords | None = None,
        ends: Callable[[Instruction], bool] | None = None,
    ) -> None:
        """``sites`` are those of the kernel. Instructions for which ``ends`` holds end basic blocks."""
        self.function = function
        self.names = names
        self.sampling = Sampling(probe, names) if sampled else None
        place = self.sampling.place if self.sampling else ""
        self.addressing = Addressing(names, BlockShape.of(kernel.entry), place)
        self.expander = Expander(probe, names, self.addressing, reduces=reduces, sites=sites)
        self.inserted: list[Snippet] = []
        self.functions: SnippetFunctions | None = None
        """Functions that long snippets are called in; None: all are written out."""
        self._lines: list[str] = []
        self._kernel = kernel
        self._probe = probe
        self._edits = edits
        self._shared = shared
        self._ends = ends
        self._types = register_types(function)
        self._retries = RetryLoops(function)
        self._probed: list[tuple[Instruction, ProbePoint, Helpers]] = []
        self._starts: list[tuple[Instruction, ProbePoint, int, int]] = []
        self._runs: list[tuple[list[Instruction], ProbePoint]] = []
        self._phases: list[tuple[PhaseStart, ProbePoint]] = []
        self._by_opcode: dict[str, list[ProbePoint]] = defaultdict(list)
        for point in probe.points:
            for opcode in {position.opcode for position in point.positions}:
                self._by_opcode[opcode].append(point)

    def find(self, notes: SiteNotes) -> bool:
        """Find the sites and note them: how many there are must be known before anything is written. Whether any is."""
        self._probed = list(self._find_probed(notes))
        self._starts = list(self._find_starts(notes))
        self._runs = list(self._find_runs(notes))
        self._phases = list(self._find_phases(notes))
        starts = [start[:2] for start in self._starts] + [(run[0], point) for run, point in self._runs]
        starts += [(phase.first, point) for phase, point in self._phases]
        for instruction, point in (*(probed[:2] for probed in self._probed), *starts):
            self.expander.sites.note(instruction, point, self._kernel.line_of(instruction))
        return bool(self._probed or self._starts or self._runs or self._phases)

    def insert(self) -> None:
        """Put snippets at all sites that were found."""
        retried = [probed for probed in self._probed if self._retries.loop_of(probed[0], probed[1])]
        for instruction, point, helpers in self._probed:
            if not self._retries.loop_of(instruction, point):
                self._around(instruction, point, helpers)
        # The exit of one loop may be the way into the next: what is behind the one comes first.
        for instruction, point, helpers in retried:
            self._at_ways(
                instruction, point.after, self._retries.exits(instruction, point), _values(helpers, point.after)
            )
        for instruction, point, helpers in retried:
            entries = self._retries.entries(instruction, point)
            self._at_ways(instruction, point.before, entries, _values(helpers, point.before))
        for start in self._starts:
            self._at_block(*start)
        for run, point in self._runs:
            self._at_lines(run, point)
        for _, starts in groupby(self._phases, key=_straight_line):
            self._at_phases(list(starts))
        self._repeat_products()

    def _repeat_products(self) -> None:
        """Compute products again in front of their sums where snippets are between, so that ptxas still fuses them."""
        for product, reader in self._kernel.value_types(self.function).fused.pairs:
            if self._edits.any_between(product.span.end, reader.span.start):
                self.before(reader.span, [self._kernel.text(product.span)])

    def before(self, span: Span, lines: Iterable[str], *, first: bool = False) -> None:
        """Insert lines of PTX in front of a node."""
        self._edits.before(span, self._mark(lines), first=first)

    def after(self, span: Span, lines: Iterable[str], *, first: bool = False) -> None:
        """Insert lines of PTX behind a node."""
        self._edits.after(span, self._mark(lines), first=first)

    def mentioned(self) -> set[str]:
        """The names in all that was put in so far."""
        return names_in("\n".join(self._lines))

    def skip_outside_sample(self, lines: list[str]) -> list[str]:
        """Lines that only blocks of the sample run, if one is taken."""
        return self.sampling.skip_outside_sample(lines) if self.sampling else lines

    def written(self, snippets: list[Snippet]) -> list[str]:
        """The lines of snippets that are at no instruction."""
        return [line for snippet in snippets for line in self.expander.lines(snippet, {})]

    def branched(self, instruction: Instruction, lines: list[str]) -> list[str]:
        """Lines that only the lanes run in which the instruction's predicate holds."""
        if instruction.predicate is None or not lines:
            return lines
        skip = self.names.new_label()
        unless = "" if instruction.predicate_negated else "!"
        return [f"@{unless}{instruction.predicate} bra {skip};", *lines, f"{skip}:"]

    def _mark(self, lines: Iterable[str]) -> list[str]:
        lines = list(lines)
        self._lines += lines
        return mark_lines(lines, self._probe.name)

    def _of_snippet(self, snippet: Snippet, lines: list[str]) -> list[str]:
        return self.sampling.of_snippet(snippet, lines) if self.sampling else lines

    def _guarded(self, instruction: Instruction, point: ProbePoint, snippet: Snippet, lines: list[str]) -> list[str]:
        """Lines under the instruction's predicate: on each line where that is possible, else by a branch."""
        if instruction.predicate is None or not point.guarded:
            return lines
        if all(
            isinstance(s, SnippetCode) and s.instruction and s.instruction.predicate is None for s in snippet.statements
        ):
            guard = f"@{'!' if instruction.predicate_negated else ''}{instruction.predicate}"
            return [f"{guard} {line}" for line in lines]
        return self.branched(instruction, lines)

    def _find_probed(self, notes: SiteNotes) -> Iterator[tuple[Instruction, ProbePoint, Helpers]]:
        """The instructions that points are at, those that a point has nothing to do at left out."""
        if not self._by_opcode.keys() - {"", BLOCK, LOOP, PHASE, SOURCE}:
            return
        for original in function_instructions(self.function):
            instruction = self._shared.rewritten.get(id(original), original)
            for point in self._by_opcode.get(original.opcode, ()):
                if any(matches(position, original, self._also(original)) for position in point.positions):
                    if self._retries.is_later_try(original, point) or not self._is_within(original, point):
                        continue
                    space = self._kernel.named_space(original)
                    helpers = Helpers(instruction, self._types, self.names, self._kernel, self.function, space)
                    if all(helpers.tells(snippet) for snippet in (point.before, point.after) if snippet):
                        notes.add("instruction", original, instruction, point.name)
                        yield instruction, point, helpers
                    elif self._kernel.value_types(self.function).untold(original):
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
    def _merged(self) -> frozenset[int]:
        return merged_loads(self.function, self._kernel.variables)

    def _also(self, instruction: Instruction) -> tuple[str, ...]:
        """Return the modifiers that positions may name besides the instruction's own."""
        merged = (MERGED,) if instruction.opcode == "ld" and id(instruction) in self._merged else ()
        space = self._kernel.named_space(instruction)
        return (*merged, space) if space else merged

    def _find_starts(self, notes: SiteNotes) -> Iterator[tuple[Instruction, ProbePoint, int, int]]:
        """The first instruction of each basic block that holds instructions of a point's class, how many, and how many
        of the machine they come to; and of each loop.
        """
        if self._by_opcode[BLOCK]:
            for block in basic_blocks(self.function, self._ends):
                classes = Counter(class_of(instruction) for instruction in block)
                come_to: Counter[str] = Counter()
                for instruction in block:
                    come_to[class_of(instruction)] += (
                        0 if id(instruction) in self._merged else sass_instruction_count(instruction)
                    )
                for point in self._by_opcode[BLOCK]:
                    wanted = [position.modifiers for position in point.positions if position.opcode == BLOCK]
                    number = sum(sum(classes[name] for name in names or classes) for names in wanted)
                    if number:
                        notes.add("block", block[0], block[0], point.name, block)
                        yield (
                            block[0],
                            point,
                            number,
                            sum(sum(come_to[name] for name in names or come_to) for names in wanted),
                        )
        for point in self._by_opcode[LOOP]:
            for first in self._loop_heads(point):
                notes.add("loop", first, first, point.name)
                yield first, point, 0, 0

    def _find_phases(self, notes: SiteNotes) -> Iterator[tuple[PhaseStart, ProbePoint]]:
        """The first instructions of the phases of the kernel; code of called functions is part of the caller's phase.

        Records name a phase by its line, so of several phases in one line of PTX only the first is a site.
        """
        if not self._by_opcode[PHASE] or self.function is not self._kernel.entry:
            return
        line_of = self._kernel.line_of
        names = source_names(self._kernel, self._probe.phases) if self._probe.phases else None
        for _, starts in groupby(phase_starts(self.function, names), key=lambda start: line_of(start.first)):
            start = next(starts)
            loop = None if start.loop is None else line_of(start.loop)
            for point in self._by_opcode[PHASE]:
                notes.add(
                    "phase", start.first, start.first, point.name, phase=phase_fields(start, loop), main=start.main
                )
                yield start, point

    def _loop_heads(self, point: ProbePoint) -> list[Instruction]:
        if not all(UNBOUNDED in position.modifiers for position in point.positions if position.opcode == LOOP):
            return loop_heads(self.function)
        probed = {instruction.span.start for instruction, _, _ in self._probed}
        blocks = {block[0].span.start: block for block in basic_blocks(self.function)}
        heads = unbounded_loop_heads(self.function)
        return [head for head in heads if not any(own.span.start in probed for own in blocks[head.span.start])]

    def _find_runs(self, notes: SiteNotes) -> Iterator[tuple[list[Instruction], ProbePoint]]:
        """The instructions of lines of source that points are at, run by run."""
        for point in self._by_opcode[SOURCE]:
            for position in point.positions:
                for run in source_runs(self._kernel, self.function, position.source) if position.source else ():
                    notes.add("block", run[0], run[0], point.name, run)
                    yield run, point

    def _at_lines(self, run: Sequence[Instruction], point: ProbePoint) -> None:
        """Snippets in front of the first and behind the last instruction of a run, for all lanes that come by."""
        for snippet, at, put in ((point.before, run[0], self.before), (point.after, run[-1], self.after)):
            if snippet:
                helpers = {LINE_HELPER: HelperValue(str(self._kernel.line_of(run[0])), "b32")}
                put(at.span, self._of_snippet(snippet, self.expander.lines(snippet, helpers, run[0])))
                self.inserted.append(snippet)

    def _at_block(self, first: Instruction, point: ProbePoint, number: int, come_to: int) -> None:
        """A snippet in front of a block's ``first`` instruction; ``number`` are those of the position's class, which
        ``come_to`` as many of the machine.
        """
        if point.before:
            values = {BLOCK_HELPER: number, ISSUED_HELPER: come_to, LINE_HELPER: self._kernel.line_of(first)}
            helpers = {name: HelperValue(str(value), "b32") for name, value in values.items()}
            self.before(first.span, self._of_snippet(point.before, self.expander.lines(point.before, helpers, first)))
            self.inserted.append(point.before)

    def _around(self, instruction: Instruction, point: ProbePoint, helpers: Helpers) -> None:
        self.inserted += [snippet for snippet in (point.before, point.after) if snippet]
        if point.before:
            values = {name: helpers.value(name) for name in sorted(point.before.helpers)}
            lines = [line for value in values.values() for line in value.lines]
            inside = self._called(point.before, values, instruction)
            body = self._guarded(instruction, point, point.before, inside)
            self.before(instruction.span, self._of_snippet(point.before, [*lines, *body]))
        if point.after:
            self._after(instruction, point, point.after, helpers)

    def _called(self, snippet: Snippet, values: dict[str, HelperValue], instruction: Instruction) -> list[str]:
        """A snippet at an instruction, as a call where it can be one."""
        if self.functions is not None and self.functions.takes(snippet):
            sites = self.expander.sites
            if (call := self.functions.call(self.names, snippet, values, instruction, sites)) is not None:
                return call
        return self.expander.lines(snippet, values, instruction)

    def snippets(self) -> list[Snippet]:
        """The snippets in front of the instructions that were found, as often as they will be there."""
        return [point.before for _, point, _ in self._probed if point.before]

    def _at_ways(
        self,
        instruction: Instruction,
        snippet: Snippet | None,
        ways: Iterable[Edge],
        values: dict[str, HelperValue],
        turn: RecordTurn = ONLY_RECORD,
    ) -> None:
        """A snippet on all ways into a loop that tries ``instruction`` again, on all exits, or on those to a phase."""
        if snippet is None:
            return
        self.inserted.append(snippet)
        for way in ways:
            lines = self._of_snippet(snippet, self.expander.lines(snippet, values, instruction, turn))
            if way.side == "behind":
                self.after(way.instruction.span, lines)
            else:
                self.before(
                    way.instruction.span, self.branched(way.instruction, lines) if way.side == "taken" else lines
                )

    def _at_phases(self, starts: Sequence[tuple[PhaseStart, ProbePoint]]) -> None:
        """Snippets at the starts of phases, those of one basic block in order."""
        for index, (start, point) in enumerate(starts):
            if point.before:
                line = {LINE_HELPER: HelperValue(str(self._kernel.line_of(start.first)), "b32")}
                turn = (
                    RecordTurn(index, len(starts))
                    if self.expander.takes_turns(point.before, len(starts))
                    else ONLY_RECORD
                )
                self._at_ways(start.first, point.before, start.ways, line, turn)

    def _after(self, instruction: Instruction, point: ProbePoint, snippet: Snippet, helpers: Helpers) -> None:
        """A snippet behind an instruction. Operands that the instruction overwrites are kept from before it."""
        overwritten = helpers.overwritten()
        values: dict[str, HelperValue] = {}
        before_lines: list[str] = []
        lines: list[str] = []
        for name in sorted(snippet.helpers):
            value = helpers.value(name)
            if name != "OUT" and value.sources & overwritten:
                before_lines += value.lines
                values[name] = self._keep(name, value, before_lines, instruction.span.line)
            else:
                lines += value.lines
                values[name] = value
        guard = instruction
        if instruction.predicate is not None and instruction.predicate.name in overwritten and point.guarded:
            guard = self._keep_predicate(instruction, before_lines)
        body = self._guarded(guard, point, snippet, self.expander.lines(snippet, values, instruction))
        self.before(instruction.span, before_lines)
        self.after(instruction.span, self._of_snippet(snippet, [*lines, *body]))

    def _keep(self, helper: str, value: HelperValue, lines: list[str], at: int) -> HelperValue:
        """Copy a helper's value to a register of its own."""
        bits = TYPE_BITS.get(value.type, 0)
        if not bits:
            raise UnsupportedKernelError(because("helper-overwritten", line=at, helper=helper))
        name = self.names.temporary(f"kept_{helper.lower()}_b{bits}", f"b{bits}")
        lines.append(f"mov.b{bits} {name}, {value.operand};")
        return HelperValue(name, f"b{bits}")

    def _keep_predicate(self, instruction: Instruction, lines: list[str]) -> Instruction:
        """Copy a predicate that the instruction overwrites; the instruction as if guarded by the copy."""
        name = self.names.temporary("kept_predicate", "pred")
        lines.append(f"mov.pred {name}, {instruction.predicate};")
        return replace(instruction, predicate=Register(name))
