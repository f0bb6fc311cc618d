"""A module's kernels and variables, as a driver needs to know them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeGuard

import numpy as np

from tui_probe.errors import PtxError
from tui_probe.ptx.constants import folded
from tui_probe.ptx.instructions import statements_in
from tui_probe.ptx.tree import Variable
from tui_probe.simgpu.executor.compiler import compile_program
from tui_probe.simgpu.executor.memory import FUNCTION_WINDOW
from tui_probe.simgpu.executor.scalars import TYPES, literal
from tui_probe.simgpu.executor.scope import Layout, aliases, module_names, name_inside, natural_align, parameter_offsets

if TYPE_CHECKING:
    from tui_probe.ptx.tree import Function, Module
    from tui_probe.simgpu.executor.program import Program


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel parameter: where it is in the buffer of parameters, in bytes."""

    offset: int
    size: int
    align: int


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


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled kernel. ``local_bytes`` is per thread; ``max_threads`` per block, 0 if the PTX sets no limit.

    ``cluster`` are the blocks of a cluster that the PTX asks for, in x, y, z; all 0 if it asks for none.
    """

    name: str
    parameters: tuple[Parameter, ...]
    static_shared_bytes: int
    local_bytes: int
    max_threads: int
    program: Program
    layout: Layout
    cluster: tuple[int, int, int] = (0, 0, 0)

    @property
    def parameter_bytes(self) -> int:
        """Size of the buffer of parameters."""
        return max((parameter.offset + parameter.size for parameter in self.parameters), default=0)


def compile_kernel(module: Module, entry: str) -> Kernel:
    """Compiles the kernel ``entry``. Raises PtxError if the module has none of this name."""
    function = next((kernel for kernel in module.entries() if kernel.name == entry), None)
    if function is None or function.body is None:
        known = ", ".join(kernel.name for kernel in module.entries()) or "none"
        raise PtxError(f"no kernel {entry} in the module; its kernels: {known}")
    layout = Layout(functions=function_addresses(module))
    program = compile_program(function, layout, module_names(module))
    parameters = tuple(
        Parameter(offset, variable.size_bytes, max(variable.align, natural_align(variable)))
        for variable, offset in parameter_offsets(function.parameters)
    )
    # Each function once: what recursion needs on top is made room for when it happens.
    local_bytes = sum(-(-code.local_bytes // 16) * 16 for code in program.functions.values())
    threads, cluster = _max_threads(function), _cluster(function)
    return Kernel(entry, parameters, layout.shared_bytes, local_bytes, threads, program, layout, cluster)


def _cluster(function: Function) -> tuple[int, int, int]:
    text = function.attributes.get("reqnctapercluster")
    if text is None:
        return 0, 0, 0
    x, y, z = ([int(number) for number in re.findall(r"\d+", text)] + [1, 1])[:3]
    return x, y, z


def _max_threads(function: Function) -> int:
    for name in ("reqntid", "maxntid"):
        text = function.attributes.get(name)
        if text is not None:
            return int(np.prod([int(number) for number in re.findall(r"\d+", text.replace(name, ""))]))
    return 0


def function_addresses(module: Module) -> dict[str, int]:
    """The address by which a pointer names each function of the module."""
    names = dict.fromkeys(function.name for function in module.functions())
    addresses = {name: FUNCTION_WINDOW + 16 * (number + 1) for number, name in enumerate(names)}
    return addresses | {name: addresses[target] for name, target in aliases(module).items() if target in addresses}


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


_REFERENCES: Final = ("texref", "samplerref", "surfref")
_SYMBOL: Final = re.compile(r"(?:generic\(\s*([\w$%]+)\s*\)|([A-Za-z_$%][\w$]*))(?:\s*([+-])\s*(\w+))?")


def _module_variable(variable: Variable, name: str) -> ModuleVariable:
    kind = TYPES.get(variable.type)
    if kind is None:
        raise PtxError(f"{variable.name} has type .{variable.type}, which has no size here", variable.span.line)
    initial = bytearray(variable.size_bytes)
    relocations = []
    for number, written in enumerate(_initial_values(variable.initializer)):
        offset, text = number * kind.bytes, folded(written)
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
