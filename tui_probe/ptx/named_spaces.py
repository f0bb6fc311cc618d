"""The state space of accesses that name no space but the variable itself: ``st.u32 [tile], 7;``.

ptxas makes an access of the variable's space of them. The address of such a variable is an offset in its space: as a
generic address it would lie somewhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.ptx.opcodes import SPACES
from tui_probe.ptx.tree import Element, Function, Instruction, Memory, Scope, Symbol, Variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tui_probe.ptx.tree import Operand, Statement

_SPACES: Final = frozenset(SPACES)


def named_spaces(functions: Iterable[Function], variables: Iterable[Variable]) -> dict[int, str]:
    """By the identity (``id``) of each such instruction the space. ``variables`` are those of the module."""
    of_module = _spaces(variables)
    return {
        id(instruction): space
        for function in functions
        for instruction, space in _in_body(
            function.body or (), of_module | _spaces([*function.parameters, *function.returns])
        )
    }


def _spaces(nodes: Iterable[object]) -> dict[str, str]:
    return {node.name: node.space.partition("::")[0] for node in nodes if isinstance(node, Variable)}


def _in_body(statements: Iterable[Statement], outer: Mapping[str, str]) -> Iterator[tuple[Instruction, str]]:
    """The instructions of a scope, whose own names hide those around it."""
    statements = list(statements)
    spaces = {**outer, **_spaces(statements)}
    for node in statements:
        if isinstance(node, Scope):
            yield from _in_body(node.body, spaces)
        elif isinstance(node, Instruction) and _names_no_space(node):
            named = [spaces[name] for name in map(_variable, node.operands) if name in spaces]
            yield from ((node, space) for space in named[:1] if space in _SPACES)


def _names_no_space(instruction: Instruction) -> bool:
    return not any(modifier.partition("::")[0] in _SPACES for modifier in instruction.modifiers)


def _variable(operand: Operand) -> str:
    """The variable that an address names, or ""."""
    match operand:
        case Memory(base=Symbol(name=name), coordinates=()) | Element(name=name):
            return name
    return ""
