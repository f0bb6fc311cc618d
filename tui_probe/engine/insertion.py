"""Insert a probe into a kernel's PTX: at its entry and exits, around instructions, and in called functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.engine.additions import always_zero
from tui_probe.engine.call_state import CallState, KernelCallGraph, add_parameters, live_registers
from tui_probe.engine.expansion import SAMPLE_PARAMETERS
from tui_probe.engine.function_insertion import FunctionInsertion
from tui_probe.engine.kernel import Edits, UnusedNames, function_instructions, is_exit, mark_lines
from tui_probe.engine.kernel_texts import kernel_info
from tui_probe.engine.module_variables import SharedVariables, replay_hazard, share_variables
from tui_probe.engine.ptx_target import can_reduce, fit_to_probe
from tui_probe.engine.refusals import is_for_instructions, no_match_reason, refuse_unsupported
from tui_probe.engine.site_file import SiteNotes
from tui_probe.engine.snippet_functions import MAX_WRITTEN_OUT, SnippetFunctions
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
    shared_variables: SharedVariables | None = None,
    *,
    samples_blocks: bool = False,
) -> Insertion:
    """Put ``probe`` into a kernel, as edits; if ``samples_blocks``, so that only the blocks of a sample are probed.

    The kernel gets a ``.param .u64`` for each of ``probe_parameters(probe)``, then those that pass the sample, if it
    takes one, then one for each of the ``shared_variables``. Raises UnsupportedKernelError for a kernel in which the
    probe would miss something or cannot work.
    """
    refuse_unsupported(kernel, probe)
    return _Inserter(
        kernel, probe, names, edits, shared_variables or SharedVariables(), samples_blocks=samples_blocks
    ).insert()


def count_snippets(kernel: Kernel, probe: Probe) -> int:
    """Count the snippets at instructions that the probe would put into a kernel and its functions."""
    positions = [[position for position in point.positions if not position.is_kernel] for point in probe.points]
    instructions = [instruction for function in kernel.bodies for instruction in function_instructions(function)]
    forms = {(instruction.opcode, instruction.modifiers): instruction for instruction in instructions}
    snippets = {
        form: sum(any(matches(position, instruction) for position in point_positions) for point_positions in positions)
        for form, instruction in forms.items()
    }
    return sum(snippets[instruction.opcode, instruction.modifiers] for instruction in instructions)


def with_matched_maps(kernel: Kernel, probe: Probe) -> Probe:
    """Return the probe without its optional maps if a kernel and its functions have no instruction for them."""
    optional = tuple(point for point in probe.points if probe.saves_in_optional_map(point))
    if not optional or count_snippets(kernel, replace(probe, points=optional)):
        return probe
    return probe.without_optional_maps()


class _Inserter:
    """Puts one probe into one kernel and the functions that it calls."""

    def __init__(
        self,
        kernel: Kernel,
        probe: Probe,
        names: UnusedNames,
        edits: Edits,
        shared_variables: SharedVariables,
        *,
        samples_blocks: bool,
    ) -> None:
        self._kernel = kernel
        self._probe = probe
        self._names = names
        self._edits = edits
        self._shared_variables = shared_variables
        self._samples_blocks = samples_blocks
        self._notes = SiteNotes()
        self._callees = KernelCallGraph(kernel)
        positions = probe.positions
        self._has_kernel_code = any(position.is_kernel for position in positions) or any(
            own_map.cap != 1 for own_map in probe.maps
        )
        self._entry = self._function_insertion(kernel.entry, names)
        self._parts = {
            function.name: self._entry
            if function is kernel.entry
            else self._function_insertion(function, names.of_function(function.name), self._entry)
            for function in kernel.bodies
        }

    def _function_insertion(
        self, function: Function, names: UnusedNames, entry: FunctionInsertion | None = None
    ) -> FunctionInsertion:
        has_blocks = any(position.opcode == BLOCK for position in self._probe.positions)
        return FunctionInsertion(
            self._kernel,
            function,
            self._probe,
            names,
            self._edits,
            self._shared_variables,
            samples_blocks=self._samples_blocks,
            reduces=can_reduce(self._kernel.module),
            sites=entry.expander.sites if entry else None,
            ends_block=self._callees.is_call if has_blocks and self._callees.functions else None,
        )

    def insert(self) -> Insertion:
        """Insert the probe. Each step needs the ones before it: code at sites has the number of sites in it, code at
        exits leaves out what no site counts, and calls pass the registers that all this code mentions.
        """
        probed_names = {name for name, part in self._parts.items() if part.find(self._notes) or self._ends_kernel(part)}
        call_state = self._build_call_state(probed_names)
        site_snippets = self._insert_at_sites()
        entry_snippets, exit_snippets = self._snippets("before"), self._snippets("after")
        zero = always_zero([*site_snippets, *entry_snippets, *exit_snippets])
        for part in self._parts.values():
            part.expander.zero = zero
            self._insert_at_exits(part, exit_snippets)
            part.separate_clocks_from_barriers()
        call_state.find_needed_registers({name: part.mentioned_names() for name, part in self._parts.items()})
        for name in call_state.functions:
            self._insert_state_code(self._parts[name], call_state)
        call_state.insert_at_calls(self._entry)
        self._insert_at_entry(entry_snippets, call_state)  # last: it declares the registers of the kernel's code
        self._add_parameters()
        self._notes.keep_records(self._entry.expander.sites.instructions)
        is_unmatched = is_for_instructions(self._probe) and not site_snippets
        return Insertion(self._entry.expander.sites.lines, is_unmatched, self._notes)

    def _insert_at_sites(self) -> list[Snippet]:
        """Insert the code of all sites, and the functions that it calls. Return the snippets there.

        Raises UnsupportedKernelError for a probe of resident maps that has no site.
        """
        functions = self._snippet_functions()
        for part in self._parts.values():
            part.insert(functions)
        if functions is not None:
            first_span = min((function.span for function in self._kernel.bodies), key=lambda span: span.start)
            self._edits.insert_before(first_span, mark_lines(functions.lines, self._probe.name))
        snippets = [snippet for part in self._parts.values() for snippet in part.inserted_snippets]
        if not snippets and all(own_map.resident for own_map in self._probe.maps):
            raise UnsupportedKernelError(because("nothing-to-watch"))
        return snippets

    def _snippet_functions(self) -> SnippetFunctions | None:
        """Return the functions to call if snippets would make the kernel too long; None if they are written out."""
        reduces = can_reduce(self._kernel.module)
        live = live_registers(self._probe)
        functions = SnippetFunctions(self._probe, self._kernel.entry, self._names, live, reduces=reduces)
        snippets = [snippet for part in self._parts.values() for snippet in part.snippets()]
        callable_statements = sum(len(snippet.statements) for snippet in snippets if functions.can_call(snippet))
        return functions if callable_statements > MAX_WRITTEN_OUT else None

    def _snippets(self, side: Literal["before", "after"]) -> list[Snippet]:
        """Return the snippets at the kernel's entry, or at its exits."""
        points = [point for point in self._probe.points if any(position.is_kernel for position in point.positions)]
        snippets = [point.before if side == "before" else point.after for point in points]
        return [snippet for snippet in snippets if snippet]

    def _ends_kernel(self, part: FunctionInsertion) -> bool:
        """Return whether a called function has exits of the kernel that need code."""
        return self._has_kernel_code and any(
            instruction.opcode == "exit" for instruction in function_instructions(part.function)
        )

    def _build_call_state(self, probed_names: set[str]) -> CallState:
        """Compute the state passed to each function. Raises UnsupportedKernelError for a function that cannot be."""
        maps = [self._names.parameter(*parameter) for parameter in probe_parameters(self._probe)]
        with_maps = self._callees.with_callers(probed_names & self._callees.functions.keys())
        parameters = {name: list(maps) for name in sorted(with_maps)}
        for variable in self._shared_variables.variables:
            users = {name for name, names in self._shared_variables.uses_by_function.items() if variable in names}
            for name in sorted(self._callees.with_callers(users)):
                parameters.setdefault(name, []).append(self._names.parameter("variable", variable))
        self._callees.refuse(parameters)
        live = self._live_registers()
        constant_registers = frozenset([self._entry.sampling.place] if self._entry.sampling else ())
        return CallState(self._kernel, self._callees, self._names, self._edits, live, constant_registers, parameters)

    def _live_registers(self) -> dict[str, str]:
        """Return the registers that are live from the kernel's entry on, with their types."""
        registers = dict.fromkeys(self._entry.expander.live_registers(), "b32")
        if self._entry.sampling:
            registers[self._entry.sampling.place] = "b32"
        live = {name: self._probe.registers[name] for name in live_registers(self._probe)}
        return registers | {self._names.register(name, kind): kind for name, kind in live.items()}

    def _insert_at_entry(self, snippets: list[Snippet], call_state: CallState) -> None:
        """Insert the declarations of registers, then the code for the kernel's entry."""
        part = self._entry
        lines = [*self._sample_lines(), *part.expander.begin(part.sampling)]
        saves = any(isinstance(statement, Save) for snippet in snippets for statement in snippet.statements)
        lines += part.skip_outside_sample(part.expand_all(snippets)) if saves else part.expand_all(snippets)
        self._insert_first(part, [*call_state.declare(part.names), *part.names.declarations(), *lines])

    def _insert_state_code(self, part: FunctionInsertion, call_state: CallState) -> None:
        """Insert the code by which a called function uses the passed state."""
        call_state.insert_at_calls(part)
        for instruction in function_instructions(part.function):
            if instruction.opcode == "ret":
                part.insert_before(instruction.span, call_state.end(part))
        if _falls_off(part.function.body or ()):
            _insert_before_closing_brace(part, call_state.end(part))
        lines = call_state.begin(part)
        self._insert_first(part, [*part.names.declarations(), *lines])
        call_state.declare_parameters(part.function.name)

    def _insert_first(self, part: FunctionInsertion, lines: list[str]) -> None:
        """Insert lines before the first instruction, and before a label that a loop may return to."""
        nodes = part.function.body or ()
        first_node = next((node for node in nodes if isinstance(node, Instruction | Label | Scope)), None)
        if first_node is not None:
            part.insert_before(first_node.span, lines, goes_first=True)
        else:
            _insert_before_closing_brace(part, lines, goes_first=True)

    def _insert_at_exits(self, part: FunctionInsertion, snippets: list[Snippet]) -> None:
        """Insert at every exit: ``ret`` and ``exit``, predicated or not, and the end of the kernel's body; in a
        called function only ``exit``.
        """
        for instruction in function_instructions(part.function):
            if is_exit(instruction) and (part is self._entry or instruction.opcode == "exit"):
                lines = part.skip_outside_sample([*part.expand_all(snippets), *part.expander.end()])
                part.insert_before(instruction.span, part.branch_around(instruction, lines))
        if part is self._entry and _falls_off(part.function.body or ()):
            _insert_before_closing_brace(
                part, part.skip_outside_sample([*part.expand_all(snippets), *part.expander.end()])
            )

    def _sample_lines(self) -> list[str]:
        """Return lines for the kernel's entry that find out whether the block is in the sample."""
        sampling = self._entry.sampling
        if sampling is None:
            return []
        number = self._names.temporary("block", "b32")
        return sampling.begin(self._entry.addressing.block_number(number), number)

    def _add_parameters(self) -> None:
        maps = [self._names.parameter(*parameter) for parameter in probe_parameters(self._probe)]
        variables = [self._names.parameter("variable", name) for name in self._shared_variables.variables]
        sample = [self._names.parameter(*parameter) for parameter in SAMPLE_PARAMETERS] if self._samples_blocks else []
        add_parameters(self._kernel.module.source, self._kernel.entry, [*maps, *sample, *variables], self._edits)


def _insert_before_closing_brace(part: FunctionInsertion, lines: list[str], *, goes_first: bool = False) -> None:
    span = part.function.body_span
    if span is not None:
        part.insert_before(Span(span.end - 1, span.end, span.line), lines, goes_first=goes_first)


def _falls_off(body: Sequence[Statement]) -> bool:
    """Return whether threads can reach the end of a body and leave the kernel there."""
    nodes = list(statements_in(body))
    for node in reversed(nodes):
        if isinstance(node, Label) and any(node.name in _branch_labels(statement) for statement in nodes):
            return True
        if isinstance(node, Instruction):
            return node.predicate is not None or node.opcode not in _END_OPCODES
    return True


def _branch_labels(node: Statement) -> Iterable[str]:
    """Return the labels that a statement may branch to."""
    if isinstance(node, Instruction):
        return (operand.name for operand in node.operands if isinstance(operand, Symbol))
    return names_in(node.declaration) if isinstance(node, Label) else ()


@dataclass(frozen=True, slots=True)
class ProbedPtx:
    """A kernel with a probe in it: its PTX, the text of its kernel.info, and what was learned of the probe's sites."""

    ptx: str
    info: str
    notes: SiteNotes


def probed_kernel(kernel: Kernel, probe: Probe, *, samples_blocks: bool = False) -> tuple[str, str]:
    """Return the probed PTX of a kernel, and the text of its kernel.info. Raises UnsupportedKernelError."""
    ptx = build_probed_ptx(kernel, probe, samples_blocks=samples_blocks)
    return ptx.ptx, ptx.info


def build_probed_ptx(
    kernel: Kernel,
    probe: Probe,
    *,
    arch: int | None = None,
    samples_blocks: bool = False,
    note: Reason | None = None,
    max_registers: int = 0,
) -> ProbedPtx:
    """Insert a probe into a kernel for a device of ``arch`` (90 for sm_90; None: one that the PTX names).

    ``note`` is added to its kernel.info. ``max_registers`` of a thread: 0 for as many as the assembler takes. Raises
    UnsupportedKernelError.
    """
    kernel, probe = fit_to_probe(kernel, with_matched_maps(kernel, probe), arch)
    names, edits = UnusedNames(kernel.pruned), Edits(kernel.module.source)
    shared_variables = share_variables(kernel, names, edits)
    if max_registers and kernel.entry.body_span is not None:
        edits.insert_before(kernel.entry.body_span, mark_lines([f".maxnreg {max_registers}"], probe.name))
    insertion = insert_probe(kernel, probe, names, edits, shared_variables, samples_blocks=samples_blocks)
    info = kernel_info(
        kernel.entry.name,
        len(kernel.entry.parameters),
        map_slots(probe, insertion.sites),
        probe.callback,
        shared_variables.variables,
        replay_hazard(kernel),
        samples_blocks=samples_blocks,
        has_independent_blocks=not blocks_may_wait([kernel.entry, *kernel.functions]),
        reads_allocations=probe.reads_allocations,
        note=note or (no_match_reason(probe, kernel) if insertion.is_unmatched else None),
    )
    return ProbedPtx(kernel.apply_edits(edits), info, insertion.notes)
