"""Variables of a module: their bytes in device memory, and the addresses that go into them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeGuard

from tui_probe.errors import PtxError
from tui_probe.ptx.constants import fold_constant
from tui_probe.ptx.tree import Variable, statements_in
from tui_probe.simgpu.executor.scalars import TYPES, literal
from tui_probe.simgpu.executor.scope import name_inside, natural_align

if TYPE_CHECKING:
    from tui_probe.ptx.tree import Module

_REFERENCES: Final = ("texref", "samplerref", "surfref")
_SYMBOL: Final = re.compile(r"(?:generic\(\s*([\w$%]+)\s*\)|([A-Za-z_$%][\w$]*))(?:\s*([+-])\s*(\w+))?")


@dataclass(frozen=True, slots=True)
class Relocation:
    """Eight bytes at ``offset`` of a variable hold the address of ``symbol`` plus ``addend``."""

    offset: int
    symbol: str
    addend: int


@dataclass(frozen=True, slots=True)
class ModuleVariable:
    """A module-scope variable in ``space`` ``global`` or ``const``; both live in device memory.

    ``initial`` has ``size`` bytes. Addresses in it are to be filled in by ``relocations``.
    """

    name: str
    space: str
    size: int
    align: int
    initial: bytes
    relocations: tuple[Relocation, ...] = ()


def module_variables(module: Module) -> list[ModuleVariable]:
    """The module's variables in device memory, those that it defines itself, and those inside its functions.

    References to textures are none: the kernels that do not use them run.
    """
    outside = [_module_variable(item, item.name) for item in module.items if _is_placed(item)]
    inside = [
        node for function in module.functions() for node in statements_in(function.body or ()) if _is_placed(node)
    ]
    return outside + [_module_variable(node, name_inside(node)) for node in inside]


def _is_placed(node: object) -> TypeGuard[Variable]:
    if not isinstance(node, Variable) or node.space not in ("global", "const"):
        return False
    return node.linkage != "extern" and node.type not in _REFERENCES


def _module_variable(variable: Variable, name: str) -> ModuleVariable:
    kind = TYPES.get(variable.type)
    if kind is None:
        raise PtxError(f"{variable.name} has type .{variable.type}, whose size is unknown", variable.span.line)
    initial = bytearray(variable.size_bytes)
    relocations = []
    for number, written in enumerate(_initial_values(variable.initializer)):
        offset, text = number * kind.bytes, fold_constant(written)
        symbol = _SYMBOL.fullmatch(text)
        if symbol is not None:
            relocations.append(_relocation(offset, symbol))
        elif offset + kind.bytes <= len(initial):
            initial[offset : offset + kind.bytes] = literal(text, kind).tobytes()
    align = max(variable.align, natural_align(variable))
    return ModuleVariable(name, variable.space, variable.size_bytes, align, bytes(initial), tuple(relocations))


def _relocation(offset: int, match: re.Match[str]) -> Relocation:
    generic, plain, sign, number = match.groups()
    addend = int(number, 0) if number else 0
    return Relocation(offset, generic or plain, -addend if sign == "-" else addend)


def _initial_values(text: str) -> list[str]:
    """The values of an initialiser, in order. Nested braces of full rows flatten to that order."""
    stripped = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    return [part.strip() for part in re.split(r"[{},]", stripped) if part.strip()]
