"""What a called function is given for a probe: addresses as parameters, registers in the kernel's local memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tui_probe.engine.edits import REPLACED
from tui_probe.engine.helpers import TYPE_BITS
from tui_probe.engine.walk import instructions
from tui_probe.ptx.lexer import lex
from tui_probe.ptx.printer import MADE_UP, print_instruction
from tui_probe.ptx.tree import Group, Symbol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.engine.callees import Callees
    from tui_probe.engine.edits import Edits
    from tui_probe.engine.function_insertion import FunctionInsertion
    from tui_probe.engine.kernel import Kernel
    from tui_probe.engine.names import Names
    from tui_probe.ptx.tree import Function, Instruction

_STATE_ALIGN = 8


@dataclass(frozen=True, slots=True)
class Kept:
    """A register that is kept in local memory while a function is called. ``changes``: a function may write it."""

    name: str
    type: str
    offset: int
    changes: bool


class Passing:
    """What each function is passed. ``registers`` are those that hold something across calls, with their PTX types, and
    ``steady`` those of them that nobody writes but where the kernel begins.
    """

    def __init__(
        self,
        kernel: Kernel,
        callees: Callees,
        names: Names,
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
        self._places = _places(registers, steady)
        self._needed: dict[str, list[Kept]] = {}

    def settle(self, mentioned: Mapping[str, set[str]]) -> None:
        """Find what each function needs, from the names in what was put into it."""
        for name in self._parameters:
            reached = self._callees.reached(name) & self._parameters.keys()
            names = set[str]().union(*(mentioned.get(each, set()) for each in (name, *reached)))
            self._needed[name] = [kept for kept in self._places if kept.name in names]

    def declare(self, names: Names) -> list[str]:
        """Lines for the kernel's entry: the memory, if any function needs it."""
        if not any(self._needed.values()):
            return []
        size = max(kept.offset for kept in self._places) + _STATE_ALIGN
        names.temporary("state", "b64")
        return [f".local .align {_STATE_ALIGN} .b8 {self._state}[{size}];"]

    def begin(self, part: FunctionInsertion) -> list[str]:
        """Lines for the entry of a called function."""
        needed = self._needed[part.function.name]
        return [*self._at_state(part), *self._loads(part, needed)] if needed else []

    def end(self, part: FunctionInsertion) -> list[str]:
        """Lines in front of a return from a called function."""
        needed = [kept for kept in self._needed[part.function.name] if kept.changes]
        return [*self._at_state(part), *self._stores(part, needed)] if needed else []

    def at_calls(self, part: FunctionInsertion) -> None:
        """Rewrite the calls in a function of those that are passed something."""
        for instruction in instructions(part.function):
            name = self._callees.called(instruction)
            if name in self._parameters:
                self._at_call(part, instruction, name)

    def _at_call(self, part: FunctionInsertion, call: Instruction, name: str) -> None:
        needed = self._needed[name]
        lines, arguments = [], []
        wide = part.names.temporary("passed", "b64")
        for parameter in self._parameters[name]:
            arguments.append(part.names.new_argument())
            lines += [f"ld.param.u64 {wide}, [{parameter}];", *_argument(arguments[-1], wide)]
        if needed:
            arguments.append(part.names.new_argument())
            at_state = self._at_state(part)
            lines = [*at_state, *self._stores(part, needed), *lines, *_argument(arguments[-1], self._address(part))]
            again = [kept for kept in needed if kept.changes]
            part.after(call.span, [*at_state, *self._loads(part, again)], first=True)
        part.before(call.span, lines)
        was = " ".join(self._kernel.text(call.span).split())
        self._edits.replace(call.span, f"{print_instruction(_with_arguments(call, arguments))} {REPLACED}{was}")

    def _address(self, part: FunctionInsertion) -> str:
        return part.names.temporary("state", "b64")

    def _at_state(self, part: FunctionInsertion) -> list[str]:
        """Lines after which the register of the state's address holds it."""
        if part.function.kind == "entry":
            return [f"mov.u64 {self._address(part)}, {self._state};"]
        return [f"ld.param.u64 {self._address(part)}, [{self._state}];"]

    def _stores(self, part: FunctionInsertion, kept: Sequence[Kept]) -> list[str]:
        return [line for one in kept for line in self._moved(part, one, stores=True)]

    def _loads(self, part: FunctionInsertion, kept: Sequence[Kept]) -> list[str]:
        return [line for one in kept for line in self._moved(part, one, stores=False)]

    def _moved(self, part: FunctionInsertion, kept: Kept, *, stores: bool) -> list[str]:
        """One register to local memory, or back. A predicate is 0 or 1 there."""
        place = self._address(part) + (f"+{kept.offset}" if kept.offset else "")
        part.names.declare(kept.name, kept.type)
        if kept.type == "pred":
            truth = part.names.temporary("truth", "b32")
            if stores:
                return [f"selp.u32 {truth}, 1, 0, {kept.name};", f"st.local.u32 [{place}], {truth};"]
            return [f"ld.local.u32 {truth}, [{place}];", f"setp.ne.u32 {kept.name}, {truth}, 0;"]
        size = TYPE_BITS[kept.type]
        if stores:
            return [f"st.local.b{size} [{place}], {kept.name};"]
        return [f"ld.local.b{size} {kept.name}, [{place}];"]

    def declare_parameters(self, name: str) -> None:
        """Give a function, wherever it is declared, its parameters."""
        added = [*self._parameters[name], *([self._state] if self._needed[name] else [])]
        for function in self._callees.declarations(name):
            add_parameters(self._kernel.module.source, function, added, self._edits)


def _places(registers: Mapping[str, str], steady: frozenset[str]) -> list[Kept]:
    """Where each register is kept, the wide ones first."""
    kept, offset = [], 0
    for name in sorted(registers, key=lambda each: -TYPE_BITS.get(registers[each], 32)):
        kept.append(Kept(name, registers[name], offset, name not in steady))
        offset += max(TYPE_BITS.get(registers[name], 32) // 8, 4)
    return kept


def _argument(name: str, value: str) -> list[str]:
    return [f".param .b64 {name};", f"st.param.b64 [{name}], {value};"]


def _with_arguments(call: Instruction, arguments: Sequence[str]) -> Instruction:
    """A call of a function by its name with more arguments."""
    operands = list(call.operands)
    place = next(index for index, operand in enumerate(operands) if isinstance(operand, Symbol)) + 1
    more = tuple(Symbol(name) for name in arguments)
    if place < len(operands) and isinstance(given := operands[place], Group):
        operands[place] = Group((*given.elements, *more))
    else:
        operands.insert(place, Group(more))
    return replace(call, operands=tuple(operands), span=MADE_UP)


def add_parameters(source: str, function: Function, names: Sequence[str], edits: Edits) -> None:
    """Declare more parameters of 64 bits behind those that a function has."""
    declared = ",\n".join(f"\t.param .u64 {name}" for name in names)
    if not names:
        return
    if function.parameters:
        edits.at(function.parameters[-1].span.end, f",\n{declared}")
        return
    tokens = lex(source, function.span.start)
    name = next(token for token in tokens if token.text == function.name)
    following = next(tokens)
    if following.text == "(":
        edits.at(following.end, f"\n{declared}\n")
    else:
        edits.at(name.end, f"(\n{declared}\n)")
