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

_MAX_KNOWN: Final = 1000
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

    def named(self, name: str) -> str:
        """The function that a name stands for: an alias is another's."""
        return self._aliases.get(name, name)

    def called(self, instruction: Instruction) -> str:
        """The function with a body that a ``call`` names, or ""."""
        if instruction.opcode != "call":
            return ""
        names = (self.named(operand.name) for operand in instruction.operands if isinstance(operand, Symbol))
        return next((name for name in names if name in self.functions), "")

    def with_callers(self, names: Iterable[str]) -> set[str]:
        """The functions named, and those that call them directly or through others."""
        callers = set(names)
        waiting = list(callers)
        while waiting:
            name = waiting.pop()
            fresh = {caller for caller, called in self.calls.items() if name in called and caller in self.functions}
            waiting += fresh - callers
            callers |= fresh
        return callers

    @cached_property
    def calls(self) -> dict[str, set[str]]:
        """The functions that each calls by their names, the kernel included."""
        return {
            function.name: {
                name for instruction in function_instructions(function) if (name := self.called(instruction))
            }
            for function in self._kernel.bodies
        }

    def refuse(self, names: Iterable[str]) -> None:
        """Raise UnsupportedKernelError if one of these functions cannot be given more parameters."""
        chosen = set(names)
        for name in sorted(chosen):
            if name in self.reached(name):
                line = self.functions[name].span.line
                raise UnsupportedKernelError(because("function-recursive", line=line, function=name))
        for function in self._kernel.bodies:
            for instruction in function_instructions(function):
                if instruction.opcode != "call":
                    self._refuse_address(instruction, chosen)

    def _refuse_address(self, instruction: Instruction, chosen: set[str]) -> None:
        for operand in instruction.operands:
            if isinstance(operand, Symbol) and self.named(operand.name) in chosen:
                function = self.named(operand.name)
                raise UnsupportedKernelError(
                    because("function-by-pointer", line=instruction.span.line, function=function)
                )

    def reached(self, name: str) -> set[str]:
        """The functions that one calls, directly or through others."""
        reached: set[str] = set()
        waiting = [name]
        while waiting:
            fresh = self.calls[waiting.pop()] - reached
            reached |= fresh
            waiting += fresh
        return reached

    def declarations(self, name: str) -> list[Function]:
        """All declarations and the definition of a function, those of its aliases included."""
        return [declaration for declaration in self._kernel.functions if self.named(declaration.name) == name]


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
    known, live = _live_at_starts.get(id(snippet), (None, set[str]()))
    if known is not snippet:
        if len(_live_at_starts) >= _MAX_KNOWN:
            _live_at_starts.clear()
        live = _find_live_at_start(snippet)
        _live_at_starts[id(snippet)] = (snippet, live)
    return live


def _find_live_at_start(snippet: Snippet) -> set[str]:
    statements = snippet.statements
    labels = ((_label_name(statement), index) for index, statement in enumerate(statements))
    places = {label: index for label, index in labels if label}
    following = [_following_statements(statements, index, places) for index in range(len(statements))]
    read = [_registers_read(statement) for statement in statements]
    written = [_registers_always_written(statement) for statement in statements]
    live: list[set[str]] = [set() for _ in range(len(statements) + 1)]
    changed = True
    while changed:
        changed = False
        for index in reversed(range(len(statements))):
            live_here = set[str]().union(*(live[place] for place in following[index]))
            live_here = (live_here - written[index]) | read[index]
            if live_here != live[index]:
                live[index], changed = live_here, True
    return live[0]


def _label_name(statement: SnippetStatement) -> str:
    """The name of a label, or ""."""
    if not isinstance(statement, SnippetCode) or statement.instruction is not None:
        return ""
    return statement.text.partition(":")[0].strip()


def _following_statements(statements: Sequence[SnippetStatement], index: int, places: dict[str, int]) -> list[int]:
    """The statements that may run after one."""
    statement = statements[index]
    instruction = statement.instruction if isinstance(statement, SnippetCode) else None
    if instruction is None or instruction.opcode != "bra":
        return [index + 1]
    targets = [
        places[operand.name]
        for operand in instruction.operands
        if isinstance(operand, Symbol) and operand.name in places
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
    and ``steady`` those of them that no one writes but where the kernel begins.
    """

    def __init__(
        self,
        kernel: Kernel,
        callees: KernelCallGraph,
        names: UnusedNames,
        edits: Edits,
        registers: Mapping[str, str],
        steady: frozenset[str],
        parameters: Mapping[str, Sequence[str]],
    ) -> None:
        """``parameters`` are the kernel's, by the function that needs them, those of whom it calls included."""
        self._kernel = kernel
        self._callees = callees
        self._edits = edits
        self._parameters = parameters
        self._state = names.parameter("state", "")
        self._places = _saved_registers(registers, steady)
        self._needed: dict[str, list[SavedRegister]] = {}

    @property
    def functions(self) -> list[str]:
        """Return the names of the functions that get parameters."""
        return list(self._parameters)

    def settle(self, mentioned: Mapping[str, set[str]]) -> None:
        """Find what each function needs, from the names in what was put into it."""
        for name in self._parameters:
            reached = self._callees.reached(name) & self._parameters.keys()
            names = set[str]().union(*(mentioned.get(callee, set()) for callee in (name, *reached)))
            self._needed[name] = [register for register in self._places if register.name in names]

    def declare(self, names: UnusedNames) -> list[str]:
        """Lines for the kernel's entry: the memory, if any function needs it."""
        if not any(self._needed.values()):
            return []
        size = max(register.offset for register in self._places) + _STATE_ALIGNMENT
        names.temporary("state", "b64")
        return [f".local .align {_STATE_ALIGNMENT} .b8 {self._state}[{size}];"]

    def begin(self, part: FunctionInsertion) -> list[str]:
        """Lines for the entry of a called function."""
        needed = self._needed[part.function.name]
        return [*self._at_state(part), *self._loads(part, needed)] if needed else []

    def end(self, part: FunctionInsertion) -> list[str]:
        """Lines in front of a return from a called function."""
        needed = [register for register in self._needed[part.function.name] if register.changes]
        return [*self._at_state(part), *self._stores(part, needed)] if needed else []

    def insert_at_calls(self, part: FunctionInsertion) -> None:
        """Rewrite the calls in a function of those that are passed something."""
        for instruction in function_instructions(part.function):
            name = self._callees.called(instruction)
            if name in self._parameters:
                self._at_call(part, instruction, name)

    def _at_call(self, part: FunctionInsertion, call: Instruction, name: str) -> None:
        needed = self._needed[name]
        lines, arguments = [], []
        wide = part.names.temporary("passed", "b64")
        for parameter in self._parameters[name]:
            arguments.append(part.names.new_argument())
            lines += [f"ld.param.u64 {wide}, [{parameter}];", *_argument_lines(arguments[-1], wide)]
        if needed:
            arguments.append(part.names.new_argument())
            at_state = self._at_state(part)
            lines = [
                *at_state,
                *self._stores(part, needed),
                *lines,
                *_argument_lines(arguments[-1], self._address(part)),
            ]
            again = [register for register in needed if register.changes]
            part.after(call.span, [*at_state, *self._loads(part, again)], first=True)
        part.before(call.span, lines)
        was = " ".join(self._kernel.text(call.span).split())
        self._edits.replace(call.span, f"{print_instruction(_with_arguments(call, arguments))} {REPLACED_MARK}{was}")

    def _address(self, part: FunctionInsertion) -> str:
        return part.names.temporary("state", "b64")

    def _at_state(self, part: FunctionInsertion) -> list[str]:
        """Lines after which the register of the state's address holds it."""
        if part.function.kind == "entry":
            return [f"mov.u64 {self._address(part)}, {self._state};"]
        return [f"ld.param.u64 {self._address(part)}, [{self._state}];"]

    def _stores(self, part: FunctionInsertion, registers: Sequence[SavedRegister]) -> list[str]:
        return [line for register in registers for line in self._moved(part, register, stores=True)]

    def _loads(self, part: FunctionInsertion, registers: Sequence[SavedRegister]) -> list[str]:
        return [line for register in registers for line in self._moved(part, register, stores=False)]

    def _moved(self, part: FunctionInsertion, register: SavedRegister, *, stores: bool) -> list[str]:
        """Return the lines that move a register to local memory, or back. A predicate is 0 or 1 there."""
        place = self._address(part) + (f"+{register.offset}" if register.offset else "")
        part.names.declare(register.name, register.type)
        if register.type == "pred":
            truth = part.names.temporary("truth", "b32")
            if stores:
                return [f"selp.u32 {truth}, 1, 0, {register.name};", f"st.local.u32 [{place}], {truth};"]
            return [f"ld.local.u32 {truth}, [{place}];", f"setp.ne.u32 {register.name}, {truth}, 0;"]
        size = TYPE_BITS[register.type]
        if stores:
            return [f"st.local.b{size} [{place}], {register.name};"]
        return [f"ld.local.b{size} {register.name}, [{place}];"]

    def declare_parameters(self, name: str) -> None:
        """Give a function, wherever it is declared, its parameters."""
        added = [*self._parameters[name], *([self._state] if self._needed[name] else [])]
        for function in self._callees.declarations(name):
            add_parameters(self._kernel.module.source, function, added, self._edits)


def _saved_registers(registers: Mapping[str, str], steady: frozenset[str]) -> list[SavedRegister]:
    """Assign an offset to each register, wide ones first: no padding is needed."""
    saved, offset = [], 0
    for name in sorted(registers, key=lambda name: -TYPE_BITS.get(registers[name], 32)):
        saved.append(SavedRegister(name, registers[name], offset, name not in steady))
        offset += max(TYPE_BITS.get(registers[name], 32) // 8, 4)
    return saved


def _argument_lines(name: str, value: str) -> list[str]:
    return [f".param .b64 {name};", f"st.param.b64 [{name}], {value};"]


def _with_arguments(call: Instruction, arguments: Sequence[str]) -> Instruction:
    """A call of a function by its name with more arguments."""
    operands = list(call.operands)
    place = next(index for index, operand in enumerate(operands) if isinstance(operand, Symbol)) + 1
    more = tuple(Symbol(name) for name in arguments)
    if place < len(operands) and isinstance(given := operands[place], OperandList):
        operands[place] = OperandList((*given.elements, *more))
    else:
        operands.insert(place, OperandList(more))
    return replace(call, operands=tuple(operands), span=MADE_UP)


def add_parameters(source: str, function: Function, names: Sequence[str], edits: Edits) -> None:
    """Declare more parameters of 64 bits behind those that a function has."""
    declared = ",\n".join(f"\t.param .u64 {name}" for name in names)
    if not names:
        return
    if function.parameters:
        edits.at(function.parameters[-1].span.end, f",\n{declared}")
        return
    tokens = tokenize(source, function.span.start)
    name = next(token for token in tokens if token.text == function.name)
    following = next(tokens)
    if following.text == "(":
        edits.at(following.end, f"\n{declared}\n")
    else:
        edits.at(name.end, f"(\n{declared}\n)")
