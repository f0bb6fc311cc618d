"""Insert a probe into a kernel's PTX: at its entry and exits, around instructions, and in called functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.engine.additions import always_zero
from tui_probe.engine.call_state import CallState, KernelCallGraph, add_parameters, live_registers
from tui_probe.engine.expansion import SAMPLE_PARAMETERS
from tui_probe.engine.function_insertion import MAX_WRITTEN_OUT, FunctionInsertion, SnippetFunctions
from tui_probe.engine.kernel import Edits, UnusedNames, function_instructions, is_exit, mark_lines
from tui_probe.engine.kernel_texts import kernel_info
from tui_probe.engine.module_variables import SharedVariables, replay_hazard, share_variables
from tui_probe.engine.ptx_target import can_reduce, fit_to_probe
from tui_probe.engine.refusals import is_for_instructions, no_match_reason, refuse_unsupported
from tui_probe.engine.site_file import SiteNotes
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.positions import BLOCK, matches
from tui_probe.probe_model.probe import Save
from tui_probe.probe_model.storage import map_slots, probe_parameters
from tui_probe.ptx.references import names_in
from tui_probe.ptx.tree import Instruction, Label, Scope, Span, Statement, Symbol, statements_in
from tui_probe.ptx.waiting import blocks_may_wait
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tui_probe.engine.kernel import Kernel
    from tui_probe.probe_model.probe import Probe, Snippet
    from tui_probe.ptx.tree import Function
    from tui_probe.reasons import Reason

_END_OPCODES: Final = frozenset({"ret", "exit", "bra", "brx", "trap"})


@dataclass(frozen=True, slots=True)
class Insertion:
    """Sites of a probe: the lines in ``pruned.ptx`` of the ``sites`` of each map that keeps them, by its name.

    ``is_unmatched``: it is for instructions that the kernel does not have. ``notes`` report every site.
    """

    sites: dict[str, list[int]]
    is_unmatched: bool
    notes: SiteNotes


def insert_probe(
    kernel: Kernel,
    probe: Probe,
    names: UnusedNames,
    edits: Edits,
    shared: SharedVariables | None = None,
    *,
    sampled: bool = False,
) -> Insertion:
    """Put ``probe`` into a kernel, as edits; if ``sampled``, so that only the blocks of a sample are probed.

    The kernel gets a ``.param .u64`` for each of ``probe_parameters(probe)``, then those that tell it the sample, if it
    takes one, then one for each variable of ``shared``. Raises UnsupportedKernelError for a kernel in which the probe
    would miss something or cannot work.
    """
    refuse_unsupported(kernel, probe)
    return _Inserter(kernel, probe, names, edits, shared or SharedVariables(), sampled=sampled).run()


def count_snippets(kernel: Kernel, probe: Probe) -> int:
    """Count the snippets at instructions that the probe would put into a kernel and its functions."""
    positions = [[position for position in point.positions if not position.is_kernel] for point in probe.points]
    instructions = [instruction for function in kernel.bodies for instruction in function_instructions(function)]
    forms = {(instruction.opcode, instruction.modifiers): instruction for instruction in instructions}
    snippets = {
        form: sum(any(matches(position, instruction) for position in wanted) for wanted in positions)
        for form, instruction in forms.items()
    }
    return sum(snippets[instruction.opcode, instruction.modifiers] for instruction in instructions)


def with_matched_maps(kernel: Kernel, probe: Probe) -> Probe:
    """The probe without its optional maps if a kernel and its functions have no instruction that they are for."""
    optional = tuple(point for point in probe.points if probe.saves_in_optional_map(point))
    if not optional or count_snippets(kernel, replace(probe, points=optional)):
        return probe
    return probe.without_optional_maps()


class _Inserter:
    """Puts one probe into one kernel and the functions that it calls."""

    def __init__(
        self, kernel: Kernel, probe: Probe, names: UnusedNames, edits: Edits, shared: SharedVariables, *, sampled: bool
    ) -> None:
        self._kernel = kernel
        self._probe = probe
        self._names = names
        self._edits = edits
        self._shared = shared
        self._sampled = sampled
        self._notes = SiteNotes()
        self._callees = KernelCallGraph(kernel)
        positions = probe.positions
        self._at_kernel = any(position.is_kernel for position in positions) or any(
            own_map.cap != 1 for own_map in probe.maps
        )
        self._entry = self._part(kernel.entry, names)
        self._parts = {
            function.name: self._entry
            if function is kernel.entry
            else self._part(function, names.of_function(function.name), self._entry)
            for function in kernel.bodies
        }

    def _part(
        self, function: Function, names: UnusedNames, entry: FunctionInsertion | None = None
    ) -> FunctionInsertion:
        splits = any(position.opcode == BLOCK for position in self._probe.positions)
        return FunctionInsertion(
            self._kernel,
            function,
            self._probe,
            names,
            self._edits,
            self._shared,
            sampled=self._sampled,
            reduces=can_reduce(self._kernel.module),
            sites=entry.expander.sites if entry else None,
            ends=(lambda instruction: bool(self._callees.called(instruction)))
            if splits and self._callees.functions
            else None,
        )

    def run(self) -> Insertion:
        probed = {name for name, part in self._parts.items() if part.find(self._notes) or self._leaves(part)}
        call_state = self._call_state(probed)
        functions = self._snippet_functions()
        for part in self._parts.values():
            part.functions = functions
            part.insert()
        if functions is not None:
            first = min((function.span for function in self._kernel.bodies), key=lambda span: span.start)
            self._edits.before(first, mark_lines(functions.lines, self._probe.name))
        inserted = [snippet for part in self._parts.values() for snippet in part.inserted]
        if not inserted and all(own_map.resident for own_map in self._probe.maps):
            raise UnsupportedKernelError(because("nothing-to-watch"))
        before, after = self._snippets("before"), self._snippets("after")
        zero = always_zero([*inserted, *before, *after])
        for part in self._parts.values():
            part.expander.zero = zero
            self._at_exits(part, after)
            part.separate_clocks_from_barriers()
        call_state.settle({name: part.mentioned() for name, part in self._parts.items()})
        for name in call_state.functions:
            self._in_function(self._parts[name], call_state)
        call_state.insert_at_calls(self._entry)
        self._at_entry(before, call_state)
        self._add_parameters()
        self._notes.keep(self._entry.expander.sites.instructions)
        is_unmatched = is_for_instructions(self._probe) and not inserted
        return Insertion(self._entry.expander.sites.lines, is_unmatched, self._notes)

    def _snippet_functions(self) -> SnippetFunctions | None:
        """The functions to call where snippets would make the kernel too long; None where they are written out."""
        reduces = can_reduce(self._kernel.module)
        held = live_registers(self._probe)
        functions = SnippetFunctions(self._probe, self._kernel.entry, self._names, held, reduces=reduces)
        snippets = [snippet for part in self._parts.values() for snippet in part.snippets()]
        called = sum(len(snippet.statements) for snippet in snippets if functions.takes(snippet))
        return functions if called > MAX_WRITTEN_OUT else None

    def _snippets(self, side: Literal["before", "after"]) -> list[Snippet]:
        """The snippets at the kernel's entry, or at its exits."""
        points = [point for point in self._probe.points if any(position.is_kernel for position in point.positions)]
        snippets = [point.before if side == "before" else point.after for point in points]
        return [snippet for snippet in snippets if snippet]

    def _leaves(self, part: FunctionInsertion) -> bool:
        """Return whether something is to be done where a called function ends the kernel."""
        return self._at_kernel and any(
            instruction.opcode == "exit" for instruction in function_instructions(part.function)
        )

    def _call_state(self, probed: set[str]) -> CallState:
        """Compute the state passed to each function. Raises UnsupportedKernelError for a function that cannot be."""
        maps = [self._names.parameter(*parameter) for parameter in probe_parameters(self._probe)]
        with_maps = self._callees.with_callers(probed & self._callees.functions.keys())
        needs = {name: list(maps) for name in sorted(with_maps)}
        for variable in self._shared.variables:
            users = {name for name, used in self._shared.used.items() if variable in used}
            for name in sorted(self._callees.with_callers(users)):
                needs.setdefault(name, []).append(self._names.parameter("variable", variable))
        self._callees.refuse(needs)
        held = self._live_registers()
        steady = frozenset([self._entry.sampling.place] if self._entry.sampling else ())
        return CallState(self._kernel, self._callees, self._names, self._edits, held, steady, needs)

    def _live_registers(self) -> dict[str, str]:
        """The registers that hold something from the kernel's entry on, with their types."""
        held = dict.fromkeys(self._entry.expander.live_registers(), "b32")
        if self._entry.sampling:
            held[self._entry.sampling.place] = "b32"
        live = {name: self._probe.registers[name] for name in live_registers(self._probe)}
        return held | {self._names.register(name, kind): kind for name, kind in live.items()}

    def _at_entry(self, snippets: list[Snippet], call_state: CallState) -> None:
        """Registers, then what runs first."""
        part = self._entry
        lines = [*self._sample(), *part.expander.begin(part.sampling)]
        saves = any(isinstance(statement, Save) for snippet in snippets for statement in snippet.statements)
        lines += part.skip_outside_sample(part.written(snippets)) if saves else part.written(snippets)
        self._first(part, [*call_state.declare(part.names), *part.names.declarations(), *lines])

    def _in_function(self, part: FunctionInsertion, call_state: CallState) -> None:
        """Insert the code by which a called function uses the passed state."""
        call_state.insert_at_calls(part)
        for instruction in function_instructions(part.function):
            if instruction.opcode == "ret":
                part.before(instruction.span, call_state.end(part))
        if _falls_off(part.function.body or ()):
            _insert_before_closing_brace(part, call_state.end(part))
        lines = call_state.begin(part)
        self._first(part, [*part.names.declarations(), *lines])
        call_state.declare_parameters(part.function.name)

    def _first(self, part: FunctionInsertion, lines: list[str]) -> None:
        """Insert lines before the first instruction, and before a label that a loop may return to."""
        nodes = part.function.body or ()
        first = next((node for node in nodes if isinstance(node, Instruction | Label | Scope)), None)
        if first is not None:
            part.before(first.span, lines, first=True)
        else:
            _insert_before_closing_brace(part, lines, first=True)

    def _at_exits(self, part: FunctionInsertion, snippets: list[Snippet]) -> None:
        """Insert at every exit: ``ret`` and ``exit``, predicated or not, and the end of the kernel's body; in a
        called function only ``exit``.
        """
        for instruction in function_instructions(part.function):
            if is_exit(instruction) and (part is self._entry or instruction.opcode == "exit"):
                lines = part.skip_outside_sample([*part.written(snippets), *part.expander.end()])
                part.before(instruction.span, part.branched(instruction, lines))
        if part is self._entry and _falls_off(part.function.body or ()):
            _insert_before_closing_brace(
                part, part.skip_outside_sample([*part.written(snippets), *part.expander.end()])
            )

    def _sample(self) -> list[str]:
        """Lines for the kernel's entry, behind which it is known whether the block is in the sample."""
        sampling = self._entry.sampling
        if sampling is None:
            return []
        number = self._names.temporary("block", "b32")
        return sampling.begin(self._entry.addressing.block(number), number)

    def _add_parameters(self) -> None:
        maps = [self._names.parameter(*parameter) for parameter in probe_parameters(self._probe)]
        variables = [self._names.parameter("variable", name) for name in self._shared.variables]
        sample = [self._names.parameter(*parameter) for parameter in SAMPLE_PARAMETERS] if self._sampled else []
        add_parameters(self._kernel.module.source, self._kernel.entry, [*maps, *sample, *variables], self._edits)


def _insert_before_closing_brace(part: FunctionInsertion, lines: list[str], *, first: bool = False) -> None:
    span = part.function.body_span
    if span is not None:
        part.before(Span(span.end - 1, span.end, span.line), lines, first=first)


def _falls_off(body: Sequence[Statement]) -> bool:
    """Return whether threads can reach the end of a body and leave the kernel there."""
    nodes = list(statements_in(body))
    for node in reversed(nodes):
        if isinstance(node, Label) and any(node.name in _branch_labels(other) for other in nodes):
            return True
        if isinstance(node, Instruction):
            return node.predicate is not None or node.opcode not in _END_OPCODES
    return True


def _branch_labels(node: Statement) -> Iterable[str]:
    """The labels that a statement may lead to."""
    if isinstance(node, Instruction):
        return (operand.name for operand in node.operands if isinstance(operand, Symbol))
    return names_in(node.declaration) if isinstance(node, Label) else ()


@dataclass(frozen=True, slots=True)
class ProbedPtx:
    """A kernel with a probe in it: its PTX, the text of its kernel.info, and what was learned of the probe's sites."""

    ptx: str
    info: str
    notes: SiteNotes


def probed_kernel(kernel: Kernel, probe: Probe, *, sampled: bool = False) -> tuple[str, str]:
    """The probed PTX of a kernel, and the text of its kernel.info. Raises UnsupportedKernelError."""
    probed = build_probed_ptx(kernel, probe, sampled=sampled)
    return probed.ptx, probed.info


def build_probed_ptx(
    kernel: Kernel,
    probe: Probe,
    *,
    arch: int | None = None,
    sampled: bool = False,
    note: Reason | None = None,
    max_registers: int = 0,
) -> ProbedPtx:
    """Insert a probe into a kernel for a device of ``arch`` (90 for sm_90; None: one that the PTX names).

    ``note`` is added to its kernel.info. ``max_registers`` of a thread: 0 for as many as the assembler takes. Raises
    UnsupportedKernelError.
    """
    kernel, probe = fit_to_probe(kernel, with_matched_maps(kernel, probe), arch)
    names, edits = UnusedNames(kernel.pruned), Edits(kernel.module.source)
    shared = share_variables(kernel, names, edits)
    if max_registers and kernel.entry.body_span is not None:
        edits.before(kernel.entry.body_span, mark_lines([f".maxnreg {max_registers}"], probe.name))
    inserted = insert_probe(kernel, probe, names, edits, shared, sampled=sampled)
    info = kernel_info(
        kernel.entry.name,
        len(kernel.entry.parameters),
        map_slots(probe, inserted.sites),
        probe.callback,
        shared.variables,
        replay_hazard(kernel),
        sampled=sampled,
        independent=not blocks_may_wait([kernel.entry, *kernel.functions]),
        reads_allocations=probe.reads_allocations,
        note=note or (no_match_reason(probe, kernel) if inserted.is_unmatched else None),
    )
    return ProbedPtx(kernel.edited(edits), info, inserted.notes)
