"""Share module variables with the original module: rewrite their uses, and refuse what cannot be shared.

A probed kernel is a module of its own, and with it would come second copies of every ``.global`` and
``.const`` variable: the program would look for its results in the first. So each variable that the kernel
uses becomes a parameter that holds the variable's address in the original module. Constant memory has
an address in global memory as well, at which the kernel then reads it.

Text that is only printed (``vprintf``, ``__assertfail``) and the tables of CUDA's mathematical functions
cannot be changed by anyone; of those the probed module keeps its own copy.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from tui_probe.engine.kernel import function_instructions, mark_lines
from tui_probe.errors import UnsupportedKernelError
from tui_probe.ptx.operands import MADE_UP, print_instruction, print_operand
from tui_probe.ptx.references import direct_references, names_in
from tui_probe.ptx.tree import (
    INSERTED_MARK,
    REPLACED_MARK,
    Element,
    Function,
    Instruction,
    Memory,
    Operand,
    Raw,
    Register,
    Sum,
    Symbol,
    Variable,
    Vector,
    statements_in,
)
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.engine.kernel import Edits, Kernel, UnusedNames
    from tui_probe.reasons import Reason

_PRINTERS: Final = frozenset({"vprintf", "__assertfail"})
_REFERENCE_TYPES: Final = frozenset({"texref", "samplerref", "surfref"})
_MATH_TABLE_PREFIX: Final = "__cudart_"
"""Prefix of the tables of CUDA's mathematical functions, e.g. 2/pi for the reduction of large arguments."""


def is_only_printed(kernel: Kernel, name: str) -> bool:
    """Return whether a variable's address goes nowhere but to ``vprintf`` and ``__assertfail``."""
    if any(name in direct_references(variable) for variable in kernel.variables):
        return False
    functions = (kernel.entry, *kernel.functions)
    return all(_is_only_printed_in(function, name) for function in functions if name in direct_references(function))


def _is_only_printed_in(function: Function, name: str) -> bool:
    """Follow the address through moves and conversions to the parameters of calls."""
    sequence = list(function_instructions(function))
    holders: set[str] = set()
    for index, instruction in enumerate(sequence):
        sources = set(_operand_names(instruction.operands[1:]))
        if name in _operand_names(instruction.operands[:1]):
            return False
        if name not in sources and not sources & holders:
            continue
        if instruction.opcode in ("mov", "cvta") and isinstance(instruction.operands[0], Register):
            holders.add(instruction.operands[0].name)
        elif not _is_for_printing(instruction, sequence[index + 1 :]):
            return False
    return True


def _is_for_printing(store: Instruction, following: Sequence[Instruction]) -> bool:
    """Return whether a store passes an argument to the next call, directly or in ``vprintf``'s buffer."""
    if store.opcode != "st" or not {"param", "local"} & set(store.modifiers):
        return False
    calls = (instruction for instruction in following if instruction.opcode == "call")
    for call in islice(calls, 1):
        return bool(_PRINTERS.intersection(_operand_names(call.operands)))
    return False


def _operand_names(operands: Sequence[Operand]) -> Iterator[str]:
    """Yield the registers and symbols in operands."""
    for operand in operands:
        match operand:
            case Register(name=name) | Symbol(name=name) | Memory(base=Register(name=name) | Symbol(name=name)):
                yield name
            case Element(name, index):
                yield name
                yield from _operand_names((index,))
            case Vector(elements):
                yield from _operand_names(elements)


@dataclass(frozen=True, slots=True)
class SharedVariables:
    """The variables in parameter order, and the instructions that use them, rewritten, by ``id`` of the original.

    ``uses_by_function`` are the variables that each function uses itself which the kernel calls.
    """

    variables: tuple[str, ...] = ()
    replacements: dict[int, Instruction] = field(default_factory=dict)
    uses_by_function: dict[str, frozenset[str]] = field(default_factory=dict)


def share_variables(kernel: Kernel, names: UnusedNames, edits: Edits) -> SharedVariables:
    """Rewrite a kernel so that it uses the original module's variables.

    The parameters themselves (``names.parameter("variable", name)``) and the registers are for the caller to declare.
    Raises UnsupportedKernelError where sharing is not possible.
    """
    _refuse_local_variables(kernel, ("global",))
    _refuse_function_addresses(kernel)
    shared_variables = _share_variables(kernel, names, edits)
    _refuse_indirect_calls(kernel)  # last, since the other reasons say more
    return shared_variables


def _share_variables(kernel: Kernel, names: UnusedNames, edits: Edits) -> SharedVariables:
    variables = {v.name: v for v in kernel.variables if v.space in ("global", "const", "tex")}
    if not variables:
        return SharedVariables()
    private_names = {name for name, variable in variables.items() if _is_private(kernel, variable)}
    uses = {function.name: direct_references(function) & variables.keys() - private_names for function in kernel.bodies}
    shared_names = [name for name in variables if any(name in names for names in uses.values())]
    functions = {function.name for function in kernel.functions}
    for name in shared_names:
        _refuse_unsharable(variables[name], functions)
    if not shared_names:
        return SharedVariables()
    constants = {name for name in shared_names if variables[name].space == "const"}
    if constants:
        _refuse_foreign_constants(kernel, constants)
    replacements: dict[int, Instruction] = {}
    for function in kernel.bodies:
        function_names = names if function is kernel.entry else names.of_function(function.name)
        registers = {
            name: function_names.temporary(f"variable{index}", "b64")
            for index, name in enumerate(shared_names)
            if name in uses[function.name]
        }
        replacements |= _Rewriter(kernel, function_names, edits, registers, constants).rewrite_function(function)
    _drop_declarations(_unused_variables(variables, private_names), edits)
    del uses[kernel.entry.name]
    return SharedVariables(
        tuple(shared_names), replacements, {name: frozenset(names) for name, names in uses.items() if names}
    )


def replay_hazard(kernel: Kernel) -> Reason | None:
    """Return why the kernel must not run a second time in place of one run, or None.

    What it prints would appear twice, what it allocates would stay.
    """
    for function in (kernel.entry, *kernel.functions):
        for instruction in function_instructions(function):
            callee = called_function(instruction)
            if callee in ("vprintf", "malloc", "free"):
                return because("calls-host", function=callee)
    return None


def called_function(instruction: Instruction) -> str:
    """Return the function that a ``call`` names; "" for another instruction, or an indirect call."""
    if instruction.opcode != "call":
        return ""
    return next((operand.name for operand in instruction.operands if isinstance(operand, Symbol)), "")


def _is_private(kernel: Kernel, variable: Variable) -> bool:
    """Return whether nothing can tell a copy of the variable from the variable."""
    if not variable.initializer or variable.linkage:
        return False
    if variable.name.startswith(_MATH_TABLE_PREFIX):
        return True
    return variable.space == "global" and variable.type == "b8" and is_only_printed(kernel, variable.name)


def _refuse_local_variables(kernel: Kernel, spaces: tuple[str, ...]) -> None:
    """Refuse variables inside functions, in these spaces. No program finds them by name: constants may be copied."""
    for function in (kernel.entry, *kernel.functions):
        for node in statements_in(function.body or ()):
            if isinstance(node, Variable) and node.space in spaces:
                details = {"function": function.name, "variable": node.name, "space": node.space}
                raise UnsupportedKernelError(because("local-variable", line=node.span.line, **details))


def _refuse_function_addresses(kernel: Kernel) -> None:
    """Refuse addresses of functions that leave the kernel: another kernel that calls one would reach a function of the
    probed module, which has other constants. An address that is only called here is allowed.
    """
    names = {function.name for function in kernel.functions}
    for function in (kernel.entry, *kernel.functions):
        function_by_register: dict[str, str] = {}  # by register: the function whose address it has
        for instruction in function_instructions(function):
            if instruction.opcode == "call":
                continue
            for operand in instruction.operands:
                register = operand.base if isinstance(operand, Sum) else operand
                if isinstance(register, Register) and register.name in function_by_register:
                    _refuse_address(instruction, function_by_register[register.name])
            symbols = [operand.name for operand in instruction.operands if isinstance(operand, Symbol)]
            for name in names.intersection(symbols):
                target = instruction.operands[0]
                if instruction.opcode != "mov" or not isinstance(target, Register):
                    _refuse_address(instruction, name)
                else:
                    function_by_register[target.name] = name


def _refuse_indirect_calls(kernel: Kernel) -> None:
    """Refuse calls of addresses from memory. They lead into the original module, which the probed one was not compiled
    with: such a call ends in an invalid program counter on the GPU.
    """
    names = {function.name for function in kernel.functions}
    for function in (kernel.entry, *kernel.functions):
        function_registers: set[str] = set()
        for instruction in function_instructions(function):
            registers = [operand.name for operand in instruction.operands if isinstance(operand, Register)]
            if instruction.opcode == "call" and not function_registers.issuperset(registers):
                raise UnsupportedKernelError(because("indirect-call", line=instruction.span.line))
            if any(isinstance(operand, Symbol) and operand.name in names for operand in instruction.operands):
                function_registers.update(registers[:1])


def _refuse_address(instruction: Instruction, function: str) -> None:
    raise UnsupportedKernelError(because("function-address", line=instruction.span.line, function=function))


def _refuse_unsharable(variable: Variable, functions: set[str]) -> None:
    if variable.type in _REFERENCE_TYPES or variable.space == "tex":
        raise UnsupportedKernelError(because("reference-variable", line=variable.span.line, variable=variable.name))
    if pointed_functions := names_in(variable.initializer) & functions:
        raise UnsupportedKernelError(
            because(
                "function-pointer", line=variable.span.line, variable=variable.name, function=min(pointed_functions)
            )
        )


def _refuse_foreign_constants(kernel: Kernel, constants: set[str]) -> None:
    """Refuse constant memory that is not a shared variable: once an address is in a register, the two look alike."""
    _refuse_local_variables(kernel, ("const",))
    name = min(constants)
    if any(".const" in kernel.text(parameter.span).split() for parameter in kernel.entry.parameters):
        raise UnsupportedKernelError(because("constant-parameter", line=kernel.entry.span.line, variable=name))
    for function in (kernel.entry, *kernel.functions):
        for instruction in function_instructions(function):
            if "const" not in instruction.modifiers:
                continue
            if instruction.opcode not in ("ld", "ldu", "cvta"):
                details = {"variable": name, "opcode": instruction.opcode, "function": function.name}
                raise UnsupportedKernelError(because("constant-reached", line=instruction.span.line, **details))


def _unused_variables(variables: dict[str, Variable], private_names: set[str]) -> list[Variable]:
    """Return the variables that the probed module no longer mentions."""
    needed_names: set[str] = set()
    pending = set(private_names)
    while pending:
        name = pending.pop()
        needed_names.add(name)
        pending |= (names_in(variables[name].initializer) & variables.keys()) - needed_names
    kept_declarations = {variables[name].span.start for name in needed_names}
    return [variable for variable in variables.values() if variable.span.start not in kept_declarations]


def _drop_declarations(variables: list[Variable], edits: Edits) -> None:
    """Remove declarations, so that the probed module has no copies of these variables."""
    declarations = {variable.span.start: variable.span for variable in variables}
    for start, span in declarations.items():
        names = ", ".join(variable.name for variable in variables if variable.span.start == start)
        edits.replace(span, f"{INSERTED_MARK}the original module has {names}")


class _Rewriter:
    """Replaces the uses of shared variables in one function."""

    def __init__(
        self, kernel: Kernel, names: UnusedNames, edits: Edits, registers: dict[str, str], constants: set[str]
    ) -> None:
        self._kernel = kernel
        self._names = names
        self._registers = registers
        self._constants = constants
        self._edits = edits

    def rewrite_function(self, function: Function) -> dict[int, Instruction]:
        """Rewrite every use in a function; the rewritten instructions by the ``id`` of the original ones."""
        replacements = {}
        for instruction in function_instructions(function):
            lines: list[str] = []
            replacement = self._rewrite(instruction, lines)
            if replacement is not None:
                replacements[id(instruction)] = replacement
                original = " ".join(self._kernel.text(instruction.span).split())
                self._edits.insert_before(instruction.span, mark_lines(lines, "module variables"))
                self._edits.replace(instruction.span, f"{_instruction_text(replacement)} {REPLACED_MARK}{original}")
        return replacements

    def _rewrite(self, instruction: Instruction, lines: list[str]) -> Instruction | None:
        """Return an instruction with addresses in registers instead of variables; add the lines that fill them."""
        operands = tuple(
            self._rewrite_operand(operand, lines, instruction.span.line) for operand in instruction.operands
        )
        opcode, modifiers = instruction.opcode, instruction.modifiers
        if self._constants and "const" in modifiers:
            opcode, modifiers = self._to_global_memory(opcode, modifiers)
        if not lines and modifiers == instruction.modifiers:
            return None
        return replace(instruction, opcode=opcode, operands=operands, modifiers=modifiers)

    def _to_global_memory(self, opcode: str, modifiers: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Return opcode and modifiers for global memory instead of constant memory: ``ld.const`` becomes ``ld.global``,
        and ``cvta`` a ``mov``, since an address of global memory is its own generic address.
        """
        if opcode == "cvta":
            return "mov", (modifiers[-1],)
        return "ld", tuple("global" if modifier == "const" else modifier for modifier in modifiers)

    def _rewrite_operand(self, operand: Operand, lines: list[str], line: int) -> Operand:
        match operand:
            case Symbol(name, offset) if name in self._registers:
                register = self._load(name, lines)
                if offset:
                    lines.append(f"add.s64 {register}, {register}, {offset};")
                return Register(register)
            case Memory(base=Symbol(name, symbol_offset), offset=offset) if name in self._registers:
                return Memory(Register(self._load(name, lines)), symbol_offset + offset, operand.coordinates)
            case Vector(elements):
                return Vector(tuple(self._rewrite_operand(element, lines, line) for element in elements))
            case Element(name) if name in self._registers:
                text = repr(print_operand(operand))
                raise UnsupportedKernelError(because("variable-in-operand", line=line, variable=name, operand=text))
            case Raw(text) if names_in(text) & self._registers.keys():
                variable = min(names_in(text) & self._registers.keys())
                raise UnsupportedKernelError(
                    because("variable-in-operand", line=line, variable=variable, operand=repr(text))
                )
        return operand

    def _load(self, name: str, lines: list[str]) -> str:
        lines.append(f"ld.param.u64 {self._registers[name]}, [{self._names.parameter('variable', name)}];")
        return self._registers[name]


def _instruction_text(instruction: Instruction) -> str:
    return print_instruction(replace(instruction, span=MADE_UP))
