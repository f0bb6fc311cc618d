"""Pass probe state into called functions: the functions that need it, live registers, and parameters.

A probed module holds one kernel, so the functions in it are that kernel's own copies. Those in which something is
probed, or which use a variable of the original module, get more parameters: the addresses of the maps and variables
under the very names that the kernel has for them, and the address of a piece of the kernel's local memory. In that the
caller puts the registers that a probe holds before the call, and finds them again behind it::

    st.local.u32 [state], %tp_bytes;              the caller
    st.param.b64 [tp_argument1], …;               addresses of maps and variables
    call (result), function, (argument, tp_argument1, …);
    ld.local.u32 %tp_bytes, [state];

So a function's frame grows. Of functions that call themselves no one knows how deep they go, and the stack that the
program asked for may not do any more: these are refused, as are those that are called through pointers, since who calls
a pointer does not know of the parameters.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.kernel import function_instructions
from tui_probe.engine.snippet import written_registers
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.probe import Save, SnippetCode
from tui_probe.ptx.instruction_facts import TYPE_BITS
from tui_probe.ptx.lexer import tokenize
from tui_probe.ptx.operands import MADE_UP, print_instruction, print_operand
from tui_probe.ptx.references import alias_of, names_in
from tui_probe.ptx.tree import REPLACED_MARK, Directive, OperandList, Symbol
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tui_probe.engine.function_insertion import FunctionInsertion
    from tui_probe.engine.kernel import Edits, Kernel, UnusedNames
    from tui_probe.probe_model.probe import Probe, Snippet, SnippetStatement
    from tui_probe.ptx.tree import Function, Instruction

_MAX_CACHED: Final = 1000
"""Snippets whose live registers are remembered; then all are forgotten, so that a long run does not keep them."""
_live_at_starts: dict[int, tuple[Snippet, set[str]]] = {}
"""Registers live at the start of each snippet, by identity: hashing its statements would take as long as a search."""


class KernelCallGraph:
    """Calls between a kernel and its functions. Functions without a body do not count."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.functions = {function.name: function for function in kernel.bodies if function is not kernel.entry}
        aliases = (alias_of(item) for item in kernel.module.items if isinstance(item, Directive))
        self._aliases = {name: target for name, target in aliases if name}

    def resolve(self, name: str) -> str:
        """Return the function that a name stands for: itself, or the target of an alias."""
        return self._aliases.get(name, name)

    def callee_of(self, instruction: Instruction) -> str:
        """Return the function with a body that a ``call`` names, or ""."""
        if instruction.opcode != "call":
            return ""
        names = (self.resolve(operand.name) for operand in instruction.operands if isinstance(operand, Symbol))
        return next((name for name in names if name in self.functions), "")

    def is_call(self, instruction: Instruction) -> bool:
        """Return whether an instruction calls a function with a body."""
        return bool(self.callee_of(instruction))

    def with_callers(self, names: Iterable[str]) -> set[str]:
        """Return the functions named, and those that call them directly or through others."""
        callers = set(names)
        pending = list(callers)
        while pending:
            name = pending.pop()
            new_callers = {
                caller for caller, callees in self.calls.items() if name in callees and caller in self.functions
            }
            pending += new_callers - callers
            callers |= new_callers
        return callers

    @cached_property
    def calls(self) -> dict[str, set[str]]:
        """The functions that each calls by their names, the kernel included."""
        return {
            function.name: {
                name for instruction in function_instructions(function) if (name := self.callee_of(instruction))
            }
            for function in self._kernel.bodies
        }

    def refuse(self, names: Iterable[str]) -> None:
        """Raise UnsupportedKernelError if one of these functions cannot be given more parameters."""
        function_names = set(names)
        for name in sorted(function_names):
            if name in self.reachable_from(name):
                line = self.functions[name].span.line
                raise UnsupportedKernelError(because("function-recursive", line=line, function=name))
        for function in self._kernel.bodies:
            for instruction in function_instructions(function):
                if instruction.opcode != "call":
                    self._refuse_address(instruction, function_names)

    def _refuse_address(self, instruction: Instruction, function_names: set[str]) -> None:
        for operand in instruction.operands:
            if isinstance(operand, Symbol) and self.resolve(operand.name) in function_names:
                function = self.resolve(operand.name)
                raise UnsupportedKernelError(
                    because("function-by-pointer", line=instruction.span.line, function=function)
                )

    def reachable_from(self, name: str) -> set[str]:
        """Return the functions that one calls, directly or through others."""
        reachable: set[str] = set()
        pending = [name]
        while pending:
            callees = self.calls[pending.pop()] - reachable
            reachable |= callees
            pending += callees
        return reachable

    def declarations(self, name: str) -> list[Function]:
        """Return all declarations and the definition of a function, those of its aliases included."""
        return [declaration for declaration in self._kernel.functions if self.resolve(declaration.name) == name]


def live_registers(probe: Probe) -> list[str]:
    """Return the probe's own registers that carry a value from one snippet to another, so that a called function must
    receive them, in the order of their declaration.

    A register that a snippet sets before it reads it carries none. One that it may read first was set in another
    snippet, perhaps in another function.
    """
    snippets = [snippet for point in probe.points for snippet in (point.before, point.after) if snippet]
    live = set[str]().union(*(_live_at_start(snippet) for snippet in snippets))
    return [name for name in probe.registers if name in live]


def _live_at_start(snippet: Snippet) -> set[str]:
    """Return the registers live at the start of a snippet, computed once."""
    cached_snippet, live = _live_at_starts.get(id(snippet), (None, set[str]()))
    if cached_snippet is not snippet:
        if len(_live_at_starts) >= _MAX_CACHED:
            _live_at_starts.clear()
        live = _find_live_at_start(snippet)
        _live_at_starts[id(snippet)] = (snippet, live)
    return live


def _find_live_at_start(snippet: Snippet) -> set[str]:
    statements = snippet.statements
    labels = ((_label_name(statement), index) for index, statement in enumerate(statements))
    label_indices = {label: index for label, index in labels if label}
    successors = [_successor_indices(statements, index, label_indices) for index in range(len(statements))]
    read_registers = [_registers_read(statement) for statement in statements]
    overwritten_registers = [_registers_always_written(statement) for statement in statements]
    live: list[set[str]] = [set() for _ in range(len(statements) + 1)]
    is_changing = True
    while is_changing:
        is_changing = False
        for index in reversed(range(len(statements))):
            live_before = set[str]().union(*(live[successor] for successor in successors[index]))
            live_before = (live_before - overwritten_registers[index]) | read_registers[index]
            if live_before != live[index]:
                live[index], is_changing = live_before, True
    return live[0]


def _label_name(statement: SnippetStatement) -> str:
    """Return the name of a label, or ""."""
    if not isinstance(statement, SnippetCode) or statement.instruction is not None:
        return ""
    return statement.text.partition(":")[0].strip()


def _successor_indices(statements: Sequence[SnippetStatement], index: int, label_indices: dict[str, int]) -> list[int]:
    """Return the indices of the statements that may run after one."""
    statement = statements[index]
    instruction = statement.instruction if isinstance(statement, SnippetCode) else None
    if instruction is None or instruction.opcode != "bra":
        return [index + 1]
    targets = [
        label_indices[operand.name]
        for operand in instruction.operands
        if isinstance(operand, Symbol) and operand.name in label_indices
    ]
    return targets if instruction.predicate is None else [*targets, index + 1]


def _registers_always_written(statement: SnippetStatement) -> set[str]:
    if (
        not isinstance(statement, SnippetCode)
        or statement.instruction is None
        or statement.instruction.predicate is not None
    ):
        return set()
    return written_registers(statement)


def _registers_read(statement: SnippetStatement) -> set[str]:
    if isinstance(statement, Save):
        return set(statement.values)
    if not isinstance(statement, SnippetCode) or statement.instruction is None:
        return set()
    instruction = statement.instruction
    registers = set[str]().union(*(names_in(print_operand(operand)) for operand in instruction.operands[1:]))
    return registers | ({instruction.predicate.name} if instruction.predicate is not None else set())


_STATE_ALIGNMENT = 8
"""Bytes of the widest register: each has a place of that size."""


class SavedRegister(NamedTuple):
    """A register that is kept in local memory while a function is called. ``changes``: a function may write it."""

    name: str
    type: str
    offset: int
    changes: bool


class CallState:
    """State passed to each function. ``registers`` are those that hold something across calls, with their PTX types,
    and ``constant_registers`` those of them that no one writes but where the kernel begins.
    """

    def __init__(
        self,
        kernel: Kernel,
        callees: KernelCallGraph,
        names: UnusedNames,
        edits: Edits,
        registers: Mapping[str, str],
        constant_registers: frozenset[str],
        parameters: Mapping[str, Sequence[str]],
    ) -> None:
        """Assign offsets to ``registers``. ``parameters`` are those of the kernel that each function needs, also for
        the functions that it calls.
        """
        self._kernel = kernel
        self._callees = callees
        self._edits = edits
        self._parameters = parameters
        self._state = names.parameter("state", "")
        self._saved_registers = _assign_offsets(registers, constant_registers)
        self._registers_by_function: dict[str, list[SavedRegister]] = {}

    @property
    def functions(self) -> list[str]:
        """Return the names of the functions that get parameters."""
        return list(self._parameters)

    def find_needed_registers(self, names_by_function: Mapping[str, set[str]]) -> None:
        """Find what each function needs, from the names in what was put into it."""
        for name in self._parameters:
            callees = self._callees.reachable_from(name) & self._parameters.keys()
            names = set[str]().union(*(names_by_function.get(callee, set()) for callee in (name, *callees)))
            self._registers_by_function[name] = [
                register for register in self._saved_registers if register.name in names
            ]

    def declare(self, names: UnusedNames) -> list[str]:
        """Return lines for the kernel's entry: the memory, if any function needs it."""
        if not any(self._registers_by_function.values()):
            return []
        size = max(register.offset for register in self._saved_registers) + _STATE_ALIGNMENT
        names.temporary("state", "b64")
        return [f".local .align {_STATE_ALIGNMENT} .b8 {self._state}[{size}];"]

    def begin(self, part: FunctionInsertion) -> list[str]:
        """Return lines for the entry of a called function."""
        registers = self._registers_by_function[part.function.name]
        return [*self._state_lines(part), *self._loads(part, registers)] if registers else []

    def end(self, part: FunctionInsertion) -> list[str]:
        """Return lines in front of a return from a called function."""
        registers = [register for register in self._registers_by_function[part.function.name] if register.changes]
        return [*self._state_lines(part), *self._stores(part, registers)] if registers else []

    def insert_at_calls(self, part: FunctionInsertion) -> None:
        """Rewrite the calls in a function of those that are passed something."""
        for instruction in function_instructions(part.function):
            name = self._callees.callee_of(instruction)
            if name in self._parameters:
                self._rewrite_call(part, instruction, name)

    def _rewrite_call(self, part: FunctionInsertion, call: Instruction, name: str) -> None:
        registers = self._registers_by_function[name]
        lines, arguments = [], []
        address = part.names.temporary("passed", "b64")
        for parameter in self._parameters[name]:
            arguments.append(part.names.new_argument())
            lines += [f"ld.param.u64 {address}, [{parameter}];", *_argument_lines(arguments[-1], address)]
        if registers:
            arguments.append(part.names.new_argument())
            state_lines = self._state_lines(part)
            lines = [
                *state_lines,
                *self._stores(part, registers),
                *lines,
                *_argument_lines(arguments[-1], self._state_register(part)),
            ]
            changing_registers = [register for register in registers if register.changes]
            part.insert_after(call.span, [*state_lines, *self._loads(part, changing_registers)], goes_first=True)
        part.insert_before(call.span, lines)
        original_text = " ".join(self._kernel.text(call.span).split())
        self._edits.replace(
            call.span, f"{print_instruction(_add_arguments(call, arguments))} {REPLACED_MARK}{original_text}"
        )

    def _state_register(self, part: FunctionInsertion) -> str:
        return part.names.temporary("state", "b64")

    def _state_lines(self, part: FunctionInsertion) -> list[str]:
        """Return lines after which the register of the state's address holds it."""
        if part.function.kind == "entry":
            return [f"mov.u64 {self._state_register(part)}, {self._state};"]
        return [f"ld.param.u64 {self._state_register(part)}, [{self._state}];"]

    def _stores(self, part: FunctionInsertion, registers: Sequence[SavedRegister]) -> list[str]:
        return [line for register in registers for line in self._move(part, register, stores=True)]

    def _loads(self, part: FunctionInsertion, registers: Sequence[SavedRegister]) -> list[str]:
        return [line for register in registers for line in self._move(part, register, stores=False)]

    def _move(self, part: FunctionInsertion, register: SavedRegister, *, stores: bool) -> list[str]:
        """Return the lines that move a register to local memory, or back. A predicate is 0 or 1 there."""
        address = self._state_register(part) + (f"+{register.offset}" if register.offset else "")
        part.names.declare(register.name, register.type)
        if register.type == "pred":
            flag = part.names.temporary("truth", "b32")
            if stores:
                return [f"selp.u32 {flag}, 1, 0, {register.name};", f"st.local.u32 [{address}], {flag};"]
            return [f"ld.local.u32 {flag}, [{address}];", f"setp.ne.u32 {register.name}, {flag}, 0;"]
        size = TYPE_BITS[register.type]
        if stores:
            return [f"st.local.b{size} [{address}], {register.name};"]
        return [f"ld.local.b{size} {register.name}, [{address}];"]

    def declare_parameters(self, name: str) -> None:
        """Give a function, wherever it is declared, its parameters."""
        parameters = [*self._parameters[name], *([self._state] if self._registers_by_function[name] else [])]
        for function in self._callees.declarations(name):
            add_parameters(self._kernel.module.source, function, parameters, self._edits)


def _assign_offsets(registers: Mapping[str, str], constant_registers: frozenset[str]) -> list[SavedRegister]:
    """Assign an offset to each register, wide ones first: no padding is needed."""
    saved_registers, offset = [], 0
    for name in sorted(registers, key=lambda name: -TYPE_BITS.get(registers[name], 32)):
        saved_registers.append(SavedRegister(name, registers[name], offset, name not in constant_registers))
        offset += max(TYPE_BITS.get(registers[name], 32) // 8, 4)
    return saved_registers


def _argument_lines(name: str, value: str) -> list[str]:
    return [f".param .b64 {name};", f"st.param.b64 [{name}], {value};"]


def _add_arguments(call: Instruction, arguments: Sequence[str]) -> Instruction:
    """Return a call of a function by its name with arguments added."""
    operands = list(call.operands)
    call_index = (
        next(operand_index for operand_index, operand in enumerate(operands) if isinstance(operand, Symbol)) + 1
    )
    added_symbols = tuple(Symbol(name) for name in arguments)
    if call_index < len(operands) and isinstance(operand_list := operands[call_index], OperandList):
        operands[call_index] = OperandList((*operand_list.elements, *added_symbols))
    else:
        operands.insert(call_index, OperandList(added_symbols))
    return replace(call, operands=tuple(operands), span=MADE_UP)


def add_parameters(source: str, function: Function, names: Sequence[str], edits: Edits) -> None:
    """Declare more parameters of 64 bits behind those that a function has."""
    declarations = ",\n".join(f"\t.param .u64 {name}" for name in names)
    if not names:
        return
    if function.parameters:
        edits.insert_text(function.parameters[-1].span.end, f",\n{declarations}")
        return
    tokens = tokenize(source, function.span.start)
    name = next(token for token in tokens if token.text == function.name)
    next_token = next(tokens)
    if next_token.text == "(":
        edits.insert_text(next_token.end, f"\n{declarations}\n")
    else:
        edits.insert_text(name.end, f"(\n{declarations}\n)")
