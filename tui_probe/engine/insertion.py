"""A probe into a kernel's PTX: entry, every way out, and around instructions."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tui_probe.engine.addressing import Addressing, BlockShape
from tui_probe.engine.edits import marked
from tui_probe.engine.expansion import Expander
from tui_probe.engine.helpers import TYPE_BITS, Helpers, HelperValue
from tui_probe.engine.model import BLOCK, LOOP, SOURCE, Code, Probe, ProbePoint, Save, Snippet
from tui_probe.engine.module_variables import SharedVariables
from tui_probe.engine.positions import matches
from tui_probe.engine.refusals import refuse_unsupported
from tui_probe.engine.retries import Retries
from tui_probe.engine.sampling import PARAMETERS, Sampling
from tui_probe.engine.site_notes import SiteNotes
from tui_probe.engine.snippet import BLOCK_HELPER, LINE_HELPER
from tui_probe.engine.source_runs import source_runs
from tui_probe.engine.storage import parameters
from tui_probe.engine.summation import can_reduce, never_counted
from tui_probe.engine.walk import instructions, is_way_out, register_types
from tui_probe.errors import UnsupportedKernelError
from tui_probe.ptx.basic_blocks import basic_blocks, loop_heads
from tui_probe.ptx.instruction_classes import class_of
from tui_probe.ptx.instructions import statements_in
from tui_probe.ptx.lexer import lex
from tui_probe.ptx.references import names_in
from tui_probe.ptx.tree import Instruction, Label, Register, Scope, Span, Statement, Symbol
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.engine.edits import Edits
    from tui_probe.engine.kernel import Kernel
    from tui_probe.engine.names import Names
    from tui_probe.ptx.wait_loops import Edge

_ENDS: Final = frozenset({"ret", "exit", "bra", "brx", "trap"})


@dataclass(frozen=True, slots=True)
class Insertion:
    """What a probe met: the lines in ``pruned.ptx`` of the ``sites`` of each map that keeps them, by its name.

    ``in_vain`` tells that it is for instructions of which the kernel has none. ``notes`` tell of every site.
    """

    sites: dict[str, list[int]]
    in_vain: bool
    notes: SiteNotes


def insert_probe(
    kernel: Kernel,
    probe: Probe,
    names: Names,
    edits: Edits,
    shared: SharedVariables | None = None,
    *,
    sampled: bool = False,
) -> Insertion:
    """Put ``probe`` into a kernel, as edits; if ``sampled``, so that only the blocks of a sample are probed.

    The kernel gets a ``.param .u64`` for each of ``parameters(probe)``, then those that tell it the sample, if it takes
    one, then one for each variable of ``shared``. Raises UnsupportedKernelError for a kernel in which the probe would
    miss something or cannot work.
    """
    refuse_unsupported(kernel, probe)
    return _Inserter(kernel, probe, names, edits, shared or SharedVariables(), sampled=sampled).run()


class _Inserter:
    """Puts one probe into one kernel."""

    def __init__(
        self, kernel: Kernel, probe: Probe, names: Names, edits: Edits, shared: SharedVariables, *, sampled: bool
    ) -> None:
        self._source = kernel.module.source
        self._kernel = kernel
        self._entry = kernel.entry
        self._body: list[Statement] = kernel.entry.body or []
        self._probe = probe
        self._names = names
        self._edits = edits
        self._shared = shared
        self._sampling = Sampling(probe, names) if sampled else None
        place = self._sampling.place if self._sampling else ""
        self._addressing = Addressing(names, BlockShape.of(kernel.entry), place)
        self._expander = Expander(probe, names, self._addressing, reduces=can_reduce(kernel.module))
        self._inserted: list[Snippet] = []
        self._notes = SiteNotes()
        self._types: dict[str, str] = {}
        self._retries = Retries(kernel.entry)
        self._by_opcode: dict[str, list[ProbePoint]] = defaultdict(list)
        for point in probe.points:
            for opcode in {position.opcode for position in point.positions}:
                self._by_opcode[opcode].append(point)

    def run(self) -> Insertion:
        self._types = register_types(self._entry)
        probed, starts = list(self._probed()), list(self._block_starts())
        runs = list(self._source_runs())
        for instruction, point, _ in (*probed, *starts, *((run[0], point, 0) for run, point in runs)):
            self._expander.sites.note(instruction, point, self._kernel.line_of(instruction))
        retried = [one for one in probed if self._retries.loop_of(one[0], one[1])]
        for instruction, point, helpers in probed:
            if not self._retries.loop_of(instruction, point):
                self._around(instruction, point, helpers)
        # The way out of one loop may be the way into the next: what is behind the one comes first.
        for instruction, point, helpers in retried:
            self._at_ways(instruction, point.after, self._retries.exits(instruction, point), helpers)
        for instruction, point, helpers in retried:
            self._at_ways(instruction, point.before, self._retries.entries(instruction, point), helpers)
        for first, point, number in starts:
            self._at_block(first, point, number)
        for run, point in runs:
            self._at_lines(run, point)
        everywhere = [snippet for point in self._by_opcode[""] for snippet in (point.before, point.after) if snippet]
        self._expander.zero = never_counted([*self._inserted, *everywhere])
        self._at_exits([point.after for point in self._by_opcode[""] if point.after])
        self._at_entry([point.before for point in self._by_opcode[""] if point.before])
        maps = [self._names.parameter(*each) for each in parameters(self._probe)]
        variables = [self._names.parameter("variable", name) for name in self._shared.variables]
        sample = [self._names.parameter(*each) for each in PARAMETERS] if self._sampling else []
        self._add_parameters([*maps, *sample, *variables])
        self._notes.keep(self._expander.sites.instructions)
        in_vain = self._is_for_instructions() and not self._inserted
        return Insertion(self._expander.sites.lines, in_vain, self._notes)

    def _is_for_instructions(self) -> bool:
        """A kernel without a loop is nothing to remark on."""
        positions = [position for point in self._probe.points for position in point.positions]
        return any(not position.is_kernel and position.opcode != LOOP for position in positions)

    def _mark(self, lines: Iterable[str]) -> list[str]:
        return marked(lines, self._probe.name)

    def _at_entry(self, snippets: list[Snippet]) -> None:
        """Registers, then what runs first: before the first instruction, and before a label a loop may return to."""
        lines = [*self._sample(), *self._expander.begin()]
        saves = any(isinstance(statement, Save) for snippet in snippets for statement in snippet.statements)
        lines += self._only_inside(self._written(snippets)) if saves else self._written(snippets)
        lines = self._names.declarations() + lines
        first = next((node for node in self._body if isinstance(node, Instruction | Label | Scope)), None)
        if first is not None:
            self._edits.before(first.span, self._mark(lines), first=True)
        else:
            self._before_closing_brace(lines, first=True)

    def _before_closing_brace(self, lines: list[str], *, first: bool = False) -> None:
        span = self._entry.body_span
        if span is not None:
            self._edits.before(Span(span.end - 1, span.end, span.line), self._mark(lines), first=first)

    def _at_exits(self, snippets: list[Snippet]) -> None:
        """Every way out: ``ret`` and ``exit``, under a predicate or not, and the end of the body."""
        for instruction in instructions(self._entry):
            if is_way_out(instruction):
                lines = self._only_inside([*self._written(snippets), *self._expander.end()])
                self._edits.before(instruction.span, self._mark(self._branched(instruction, lines)))
        if _falls_off(self._body):
            self._before_closing_brace(self._only_inside([*self._written(snippets), *self._expander.end()]))

    def _sample(self) -> list[str]:
        """Lines for the kernel's entry, behind which it is known whether the block is in the sample."""
        if self._sampling is None:
            return []
        number = self._names.temporary("block", "b32")
        return self._sampling.begin(self._addressing.block(number), number)

    def _only_inside(self, lines: list[str]) -> list[str]:
        return self._sampling.only_inside(lines) if self._sampling else lines

    def _of_snippet(self, snippet: Snippet, lines: list[str]) -> list[str]:
        return self._sampling.of_snippet(snippet, lines) if self._sampling else lines

    def _written(self, snippets: list[Snippet]) -> list[str]:
        return [line for snippet in snippets for line in self._expander.lines(snippet, {})]

    def _branched(self, instruction: Instruction, lines: list[str]) -> list[str]:
        """Lines that only the lanes run in which the instruction's predicate holds."""
        if instruction.predicate is None or not lines:
            return lines
        skip = self._names.new_label()
        unless = "" if instruction.predicate_negated else "!"
        return [f"@{unless}{instruction.predicate} bra {skip};", *lines, f"{skip}:"]

    def _guarded(self, instruction: Instruction, point: ProbePoint, snippet: Snippet, lines: list[str]) -> list[str]:
        """Lines under the instruction's predicate: on each line where that is possible, else by a branch."""
        if instruction.predicate is None or not point.guarded:
            return lines
        if all(isinstance(s, Code) and s.instruction and s.instruction.predicate is None for s in snippet.statements):
            guard = f"@{'!' if instruction.predicate_negated else ''}{instruction.predicate}"
            return [f"{guard} {line}" for line in lines]
        return self._branched(instruction, lines)

    def _probed(self) -> Iterator[tuple[Instruction, ProbePoint, Helpers]]:
        """The instructions that points are at, those that a point has nothing to do at left out."""
        if not self._by_opcode.keys() - {"", BLOCK, LOOP, SOURCE}:
            return
        for original in instructions(self._entry):
            instruction = self._shared.rewritten.get(id(original), original)
            for point in self._by_opcode.get(original.opcode, ()):
                if any(matches(position, original) for position in point.positions):
                    if self._retries.is_later_try(original, point):
                        continue
                    helpers = Helpers(instruction, self._types, self._names, self._kernel)
                    if all(helpers.tells(snippet) for snippet in (point.before, point.after) if snippet):
                        self._notes.add("instruction", original, instruction, point.name)
                        yield instruction, point, helpers
                    elif self._kernel.value_types.untold(original):
                        self._notes.leave_out(original)

    def _block_starts(self) -> Iterator[tuple[Instruction, ProbePoint, int]]:
        """The first instruction of each basic block that holds instructions of a point's class, and how many; and of
        each loop.
        """
        if self._by_opcode[BLOCK]:
            for block in basic_blocks(self._entry):
                classes = Counter(class_of(instruction) for instruction in block)
                for point in self._by_opcode[BLOCK]:
                    wanted = [position.modifiers for position in point.positions if position.opcode == BLOCK]
                    number = sum(sum(classes[name] for name in names or classes) for names in wanted)
                    if number:
                        self._notes.add("block", block[0], block[0], point.name, block)
                        yield block[0], point, number
        for first in loop_heads(self._entry) if self._by_opcode[LOOP] else ():
            for point in self._by_opcode[LOOP]:
                self._notes.add("loop", first, first, point.name)
                yield first, point, 0

    def _source_runs(self) -> Iterator[tuple[list[Instruction], ProbePoint]]:
        """The instructions of lines of source that points are at, run by run."""
        for point in self._by_opcode[SOURCE]:
            for position in point.positions:
                for run in source_runs(self._kernel, position.source) if position.source else ():
                    self._notes.add("block", run[0], run[0], point.name, run)
                    yield run, point

    def _at_lines(self, run: Sequence[Instruction], point: ProbePoint) -> None:
        """Snippets in front of the first and behind the last instruction of a run, for all lanes that come by."""
        for snippet, at, put in (
            (point.before, run[0], self._edits.before),
            (point.after, run[-1], self._edits.after),
        ):
            if snippet:
                helpers = {LINE_HELPER: HelperValue(str(self._kernel.line_of(run[0])), "b32")}
                lines = self._of_snippet(snippet, self._expander.lines(snippet, helpers, run[0]))
                put(at.span, self._mark(lines))
                self._inserted.append(snippet)

    def _at_block(self, first: Instruction, point: ProbePoint, number: int) -> None:
        """A snippet in front of a block's ``first`` instruction; ``number`` are those of the position's class."""
        if point.before:
            line = self._kernel.line_of(first)
            helpers = {BLOCK_HELPER: HelperValue(str(number), "b32"), LINE_HELPER: HelperValue(str(line), "b32")}
            lines = self._of_snippet(point.before, self._expander.lines(point.before, helpers, first))
            self._edits.before(first.span, self._mark(lines))
            self._inserted.append(point.before)

    def _around(self, instruction: Instruction, point: ProbePoint, helpers: Helpers) -> None:
        self._inserted += [snippet for snippet in (point.before, point.after) if snippet]
        if point.before:
            values = {name: helpers.value(name) for name in sorted(point.before.helpers)}
            lines = [line for value in values.values() for line in value.lines]
            inside = self._expander.lines(point.before, values, instruction)
            body = self._guarded(instruction, point, point.before, inside)
            self._edits.before(instruction.span, self._mark(self._of_snippet(point.before, [*lines, *body])))
        if point.after:
            self._after(instruction, point, point.after, helpers)

    def _at_ways(
        self, instruction: Instruction, snippet: Snippet | None, ways: Iterable[Edge], helpers: Helpers
    ) -> None:
        """A snippet on all ways into a loop that tries ``instruction`` again, or on all ways out."""
        if snippet is None:
            return
        self._inserted.append(snippet)
        values = {name: helpers.value(name) for name in sorted(snippet.helpers)}
        for way in ways:
            lines = self._of_snippet(snippet, self._expander.lines(snippet, values, instruction))
            if way.side == "behind":
                self._edits.after(way.instruction.span, self._mark(lines))
            else:
                taken = self._branched(way.instruction, lines) if way.side == "taken" else lines
                self._edits.before(way.instruction.span, self._mark(taken))

    def _after(self, instruction: Instruction, point: ProbePoint, snippet: Snippet, helpers: Helpers) -> None:
        """A snippet behind an instruction. Operands that the instruction overwrites are kept from before it."""
        overwritten = helpers.overwritten()
        values: dict[str, HelperValue] = {}
        kept: list[str] = []
        lines: list[str] = []
        for name in sorted(snippet.helpers):
            value = helpers.value(name)
            if name != "OUT" and value.sources & overwritten:
                kept += value.lines
                values[name] = self._keep(name, value, kept, instruction.span.line)
            else:
                lines += value.lines
                values[name] = value
        guard = instruction
        if instruction.predicate is not None and instruction.predicate.name in overwritten and point.guarded:
            guard = self._keep_predicate(instruction, kept)
        body = self._guarded(guard, point, snippet, self._expander.lines(snippet, values, instruction))
        self._edits.before(instruction.span, self._mark(kept))
        self._edits.after(instruction.span, self._mark(self._of_snippet(snippet, [*lines, *body])))

    def _keep(self, helper: str, value: HelperValue, lines: list[str], at: int) -> HelperValue:
        """Copy a helper's value to a register of its own."""
        bits = TYPE_BITS.get(value.type, 0)
        if not bits:
            raise UnsupportedKernelError(because("helper-overwritten", line=at, helper=helper))
        name = self._names.temporary(f"kept_{helper.lower()}_b{bits}", f"b{bits}")
        lines.append(f"mov.b{bits} {name}, {value.operand};")
        return HelperValue(name, f"b{bits}")

    def _keep_predicate(self, instruction: Instruction, lines: list[str]) -> Instruction:
        """Copy a predicate that the instruction overwrites; the instruction as if guarded by the copy."""
        name = self._names.temporary("kept_predicate", "pred")
        lines.append(f"mov.pred {name}, {instruction.predicate};")
        return replace(instruction, predicate=Register(name))

    def _add_parameters(self, names: Sequence[str]) -> None:
        declared = ",\n".join(f"\t.param .u64 {name}" for name in names)
        if self._entry.parameters:
            self._edits.at(self._entry.parameters[-1].span.end, f",\n{declared}")
            return
        tokens = lex(self._source, self._entry.span.start)
        name = next(token for token in tokens if token.text == self._entry.name)
        following = next(tokens)
        if following.text == "(":
            self._edits.at(following.end, f"\n{declared}\n")
        else:
            self._edits.at(name.end, f"(\n{declared}\n)")


def _falls_off(body: Sequence[Statement]) -> bool:
    """Tell whether threads can reach the end of a body and leave the kernel there."""
    nodes = list(statements_in(body))
    for node in reversed(nodes):
        if isinstance(node, Label) and any(node.name in _mentioned(other) for other in nodes):
            return True
        if isinstance(node, Instruction):
            return node.predicate is not None or node.opcode not in _ENDS
    return True


def _mentioned(node: Statement) -> Iterable[str]:
    """The labels that a statement may lead to."""
    if isinstance(node, Instruction):
        return (operand.name for operand in node.operands if isinstance(operand, Symbol))
    return names_in(node.declaration) if isinstance(node, Label) else ()
