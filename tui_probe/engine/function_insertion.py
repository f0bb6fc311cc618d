"""Insert the snippets of a probe at its sites in one function: their code, or calls of functions with it."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final

from tui_probe.engine.addressing import Addressing, BlockShape
from tui_probe.engine.expansion import ONLY_RECORD, Expander, ExpansionOptions, Sampling
from tui_probe.engine.function_sites import BlockSite, FunctionSites, PhaseSite
from tui_probe.engine.helper_values.helpers import Helpers, HelperValue
from tui_probe.engine.kernel import mark_lines
from tui_probe.engine.ptx_target import can_elect
from tui_probe.engine.record_layouts import RecordPosition
from tui_probe.engine.snippet import BLOCK_HELPER, ISSUED_HELPER, LINE_HELPER
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.probe import SnippetCode
from tui_probe.ptx.control_flow import basic_blocks
from tui_probe.ptx.instruction_facts import TYPE_BITS
from tui_probe.ptx.phase_names import is_block_barrier
from tui_probe.ptx.references import names_in
from tui_probe.ptx.tree import Register
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tui_probe.engine.kernel import Edits, Kernel, UnusedNames
    from tui_probe.engine.module_variables import SharedVariables
    from tui_probe.engine.site_file import SiteNotes
    from tui_probe.engine.site_records import SiteRecords
    from tui_probe.engine.snippet_functions import SnippetFunctions
    from tui_probe.probe_model.probe import Probe, ProbePoint, Snippet
    from tui_probe.ptx.tree import Function, Instruction, Span
    from tui_probe.ptx.waiting import Edge

_CLOCK: Final = re.compile(r"%clock|%globaltimer")
_PMTRIG: Final = "pmevent.mask 0;"


def _straight_line_key(site: PhaseSite) -> tuple[int, str]:
    """Return the key of phase starts that are always reached one after the other: block and point. The key of any other
    start is its own, and negative.

    So is that of a start that begins an iteration, in loops that record some iterations only: the other starts may be
    left out.
    """
    phase = site.start
    begins_sampled_iteration = phase.sample_every and phase.iterates
    is_in_block = all(edge.side == "before" and edge.instruction is phase.head for edge in phase.entry_edges)
    block = phase.block if is_in_block and not begins_sampled_iteration else -phase.head.span.start - 1
    return block, site.point.name


def _helper_values(helpers: Helpers, snippet: Snippet | None) -> dict[str, HelperValue]:
    return {name: helpers.value(name) for name in sorted(snippet.helpers)} if snippet else {}


class FunctionInsertion:
    """Puts one probe into one function: the kernel itself, or one that it calls."""

    def __init__(
        self,
        kernel: Kernel,
        function: Function,
        probe: Probe,
        names: UnusedNames,
        edits: Edits,
        shared_variables: SharedVariables,
        *,
        samples_blocks: bool,
        reduces: bool,
        sites: SiteRecords | None = None,
        ends_block: Callable[[Instruction], bool] | None = None,
    ) -> None:
        """Prepare the insertion. ``sites`` are those of the kernel; instructions for which ``ends_block`` holds end
        basic blocks.
        """
        self.function = function
        self.names = names
        self.sampling = Sampling(probe, names) if samples_blocks else None
        place = self.sampling.place if self.sampling else ""
        self.addressing = Addressing(names, BlockShape.from_entry(kernel.entry), place)
        options = ExpansionOptions(reduces=reduces, has_elect=can_elect(kernel.module))
        self.expander = Expander(probe, names, self.addressing, options, sites)
        self.inserted_snippets: list[Snippet] = []
        """Snippets at the sites, one for each place."""
        self._functions: SnippetFunctions | None = None
        self._lines: list[str] = []
        self._kernel = kernel
        self._probe = probe
        self._edits = edits
        self._sites = FunctionSites(kernel, function, probe, names, shared_variables, ends_block)

    def find(self, notes: SiteNotes) -> bool:
        """Find and note the sites, whose number must be known before code is written. Return whether there is any."""
        self._sites.find(notes)
        sites = list(self._sites.site_instructions())
        for instruction, point in sites:
            self.expander.sites.number_site(instruction, point, self._kernel.line_of(instruction))
        return bool(sites)

    def insert(self, functions: SnippetFunctions | None) -> None:
        """Insert snippets at all sites that were found. Long ones are called in ``functions``; None: all are written
        out.
        """
        self._functions = functions
        retry_loops = self._sites.retry_loops
        retry_sites = [site for site in self._sites.instructions if retry_loops.loop_of(site.instruction, site.point)]
        for site in self._sites.instructions:
            if not retry_loops.loop_of(site.instruction, site.point):
                self._insert_around(site.instruction, site.point, site.helpers)
        # The exit of one loop may be the edge into the next: snippets behind the one come first.
        for site in retry_sites:
            exit_snippet = site.point.after
            exits = retry_loops.exits(site.instruction, site.point)
            self._insert_on_edges(site.instruction, exit_snippet, exits, _helper_values(site.helpers, exit_snippet))
        for site in retry_sites:
            entry_snippet = site.point.before
            entries = retry_loops.entries(site.instruction, site.point)
            self._insert_on_edges(site.instruction, entry_snippet, entries, _helper_values(site.helpers, entry_snippet))
        for block in self._sites.blocks:
            self._insert_at_block(block)
        for run_site in self._sites.runs:
            self._insert_around_lines(run_site.instructions, run_site.point)
        for _, phase_sites in groupby(self._sites.phases, key=_straight_line_key):
            self._insert_at_phases(list(phase_sites))
        self._repeat_products()

    def _repeat_products(self) -> None:
        """Compute products again in front of their sums where snippets are between, so that ptxas still fuses them."""
        for product, reader in self._kernel.value_types(self.function).fused.pairs:
            if self._edits.has_edit_between(product.span.end, reader.span.start):
                self.insert_before(reader.span, [self._kernel.text(product.span)])

    def separate_clocks_from_barriers(self) -> None:
        """Put an instruction without effect between each barrier of a block and the clock reads that follow it.

        For sm_90 and later, ptxas gives a BAR that a clock read (CS2R) follows a stall count of 1 instead of 6. The
        warp then runs on before the barrier is complete: on an H200 even a clock read behind 20 dependent multiply-adds
        gave a time before the arrival of the last warp. Behind PMTRIG the count is 6. Its mask of 0 triggers no event.
        """
        clocks = self._edits.positions_of(_CLOCK)
        for barrier, end in self._barrier_ranges() if clocks else ():
            index = bisect_left(clocks, barrier.end)
            if index < len(clocks) and clocks[index] <= end:
                self.insert_after(barrier, [_PMTRIG], goes_first=True)

    def _barrier_ranges(self) -> Iterator[tuple[Span, int]]:
        """Yield each barrier of a block, and the position of the next one or of the next basic block."""
        for block, next_block in pairwise([*basic_blocks(self.function), None]):
            barriers = [instruction.span for instruction in block or () if is_block_barrier(instruction)]
            end = next_block[0].span.start if next_block else self.function.span.end
            yield from (
                (span, next_span.start if next_span else end) for span, next_span in pairwise([*barriers, None]) if span
            )

    def insert_before(self, span: Span, lines: Iterable[str], *, goes_first: bool = False) -> None:
        """Insert lines of PTX in front of a node."""
        self._edits.insert_before(span, self._mark(lines), goes_first=goes_first)

    def insert_after(self, span: Span, lines: Iterable[str], *, goes_first: bool = False) -> None:
        """Insert lines of PTX behind a node."""
        self._edits.insert_after(span, self._mark(lines), goes_first=goes_first)

    def mentioned_names(self) -> set[str]:
        """Return the names in all lines that were inserted so far."""
        return names_in("\n".join(self._lines))

    def skip_outside_sample(self, lines: list[str]) -> list[str]:
        """Return lines that only blocks of the sample run, if one is taken."""
        return self.sampling.skip_outside_sample(lines) if self.sampling else lines

    def expand_all(self, snippets: list[Snippet]) -> list[str]:
        """Return the lines of snippets that are at no instruction."""
        return [line for snippet in snippets for line in self.expander.expand(snippet, {})]

    def branch_around(self, instruction: Instruction, lines: list[str]) -> list[str]:
        """Return lines that only the lanes run in which the instruction's predicate holds."""
        if instruction.predicate is None or not lines:
            return lines
        skip = self.names.new_label()
        negation = "" if instruction.predicate_negated else "!"
        return [f"@{negation}{instruction.predicate} bra {skip};", *lines, f"{skip}:"]

    def _mark(self, lines: Iterable[str]) -> list[str]:
        lines = list(lines)
        self._lines += lines
        return mark_lines(lines, self._probe.name)

    def _limit_to_sample(self, snippet: Snippet, lines: list[str]) -> list[str]:
        return self.sampling.limit_to_sample(snippet, lines) if self.sampling else lines

    def _guard(self, instruction: Instruction, point: ProbePoint, snippet: Snippet, lines: list[str]) -> list[str]:
        """Return lines under the instruction's predicate: on each line where that is possible, else by a branch."""
        if instruction.predicate is None or not point.guarded:
            return lines
        if all(
            isinstance(s, SnippetCode) and s.instruction and s.instruction.predicate is None for s in snippet.statements
        ):
            guard = f"@{'!' if instruction.predicate_negated else ''}{instruction.predicate}"
            return [f"{guard} {line}" for line in lines]
        return self.branch_around(instruction, lines)

    def _insert_around_lines(self, instructions: Sequence[Instruction], point: ProbePoint) -> None:
        """Insert snippets before the first and behind the last instruction of a run, for all lanes that arrive."""
        for snippet, instruction, insert in (
            (point.before, instructions[0], self.insert_before),
            (point.after, instructions[-1], self.insert_after),
        ):
            if snippet:
                helpers = {LINE_HELPER: HelperValue(str(self._kernel.line_of(instructions[0])), "b32")}
                insert(
                    instruction.span,
                    self._limit_to_sample(snippet, self.expander.expand(snippet, helpers, instructions[0])),
                )
                self.inserted_snippets.append(snippet)

    def _insert_at_block(self, site: BlockSite) -> None:
        """Insert a snippet before a block's first instruction."""
        first_instruction, point = site.head, site.point
        if point.before:
            line = self._kernel.line_of(first_instruction)
            values = {BLOCK_HELPER: site.instruction_count, ISSUED_HELPER: site.sass_count, LINE_HELPER: line}
            helpers = {name: HelperValue(str(value), "b32") for name, value in values.items()}
            self.insert_before(
                first_instruction.span,
                self._limit_to_sample(point.before, self.expander.expand(point.before, helpers, first_instruction)),
            )
            self.inserted_snippets.append(point.before)

    def _insert_around(self, instruction: Instruction, point: ProbePoint, helpers: Helpers) -> None:
        self.inserted_snippets += [snippet for snippet in (point.before, point.after) if snippet]
        if point.before:
            values = {name: helpers.value(name) for name in sorted(point.before.helpers)}
            line_groups = dict.fromkeys(
                tuple(value.lines) for value in values.values()
            )  # those of a box set all its values
            lines = [line for group in line_groups for line in group]
            snippet_lines = self._call_or_expand(point.before, values, instruction)
            body = self._guard(instruction, point, point.before, snippet_lines)
            self.insert_before(instruction.span, self._limit_to_sample(point.before, [*lines, *body]))
        if point.after:
            self._insert_after(instruction, point, point.after, helpers)

    def _call_or_expand(self, snippet: Snippet, values: dict[str, HelperValue], instruction: Instruction) -> list[str]:
        """Return the lines of a snippet at an instruction, as a call where that is possible."""
        if self._functions is not None and self._functions.can_call(snippet):
            call = self._functions.call(self.names, snippet, values, instruction, self.expander.sites)
            if call is not None:
                return call
        return self.expander.expand(snippet, values, instruction)

    def snippets(self) -> list[Snippet]:
        """Return the snippets before the instructions that were found, one for each instruction."""
        return [site.point.before for site in self._sites.instructions if site.point.before]

    def _insert_on_edges(
        self,
        instruction: Instruction,
        snippet: Snippet | None,
        edges: Iterable[Edge],
        values: dict[str, HelperValue],
        position: RecordPosition = ONLY_RECORD,
    ) -> None:
        """Insert a snippet on edges: into a loop that retries ``instruction``, out of it, or to a phase."""
        if snippet is None:
            return
        self.inserted_snippets.append(snippet)
        for edge in edges:
            lines = self._limit_to_sample(snippet, self.expander.expand(snippet, values, instruction, position))
            if edge.side == "behind":
                self.insert_after(edge.instruction.span, lines)
            else:
                self.insert_before(
                    edge.instruction.span,
                    self.branch_around(edge.instruction, lines) if edge.side == "taken" else lines,
                )

    def _insert_at_phases(self, sites: Sequence[PhaseSite]) -> None:
        """Insert snippets at the starts of phases, those of one basic block in order."""
        for index, site in enumerate(sites):
            start, snippet = site.start, site.point.before
            if snippet:
                line = {LINE_HELPER: HelperValue(str(self._kernel.line_of(start.head)), "b32")}
                shares_address = self.expander.shares_address(snippet, len(sites))
                position = RecordPosition(index, len(sites)) if shares_address else ONLY_RECORD
                position = replace(position, samples_iterations=start.sample_every > 0, begins_iteration=start.iterates)
                self._insert_on_edges(start.head, snippet, start.entry_edges, line, position)

    def _insert_after(self, instruction: Instruction, point: ProbePoint, snippet: Snippet, helpers: Helpers) -> None:
        """Insert a snippet behind an instruction. Operands that the instruction overwrites are copied before it."""
        overwritten = helpers.written_registers()
        values: dict[str, HelperValue] = {}
        kept_lines: list[str] = []
        lines: list[str] = []
        for name in sorted(snippet.helpers):
            value = helpers.value(name)
            if name != "OUT" and value.sources & overwritten:
                kept_lines += value.lines
                values[name] = self._keep(name, value, kept_lines, instruction.span.line)
            else:
                lines += value.lines
                values[name] = value
        guard = instruction
        if instruction.predicate is not None and instruction.predicate.name in overwritten and point.guarded:
            guard = self._keep_predicate(instruction, kept_lines)
        body = self._guard(guard, point, snippet, self.expander.expand(snippet, values, instruction))
        self.insert_before(instruction.span, kept_lines)
        self.insert_after(instruction.span, self._limit_to_sample(snippet, [*lines, *body]))

    def _keep(self, helper: str, value: HelperValue, lines: list[str], line: int) -> HelperValue:
        """Copy a helper's value to a register of its own."""
        bits = TYPE_BITS.get(value.type, 0)
        if not bits:
            raise UnsupportedKernelError(because("helper-overwritten", line=line, helper=helper))
        name = self.names.temporary(f"kept_{helper.lower()}_b{bits}", f"b{bits}")
        lines.append(f"mov.b{bits} {name}, {value.operand};")
        return HelperValue(name, f"b{bits}")

    def _keep_predicate(self, instruction: Instruction, lines: list[str]) -> Instruction:
        """Copy a predicate that the instruction overwrites. Return the instruction as if guarded by the copy."""
        name = self.names.temporary("kept_predicate", "pred")
        lines.append(f"mov.pred {name}, {instruction.predicate};")
        return replace(instruction, predicate=Register(name))
