"""Names in a kernel: their meaning, and the places of its registers and variables."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Final, TypeAlias

from tui_probe.errors import PtxError, SimulationError
from tui_probe.ptx.references import alias_of
from tui_probe.ptx.tree import Directive, Function, Label, Variable
from tui_probe.simgpu.executor.scalars import PREDICATE, TYPES, DType, ScalarType, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tui_probe.ptx.tree import Module, Statement

DYNAMIC_OFFSET: Final = -1
"""Offset of a shared variable without extent: where the static ones end, which is known at the end."""


@dataclass(frozen=True, slots=True)
class RegisterName:
    """A register: its index in a group's registers and its declared type."""

    index: int
    type: ScalarType


@dataclass(frozen=True, slots=True)
class AddressName:
    """A variable at a fixed offset of its space: ``shared``, ``local`` (of its function), ``param`` (of the kernel).

    ``element`` is the size of one of its elements in bytes.
    """

    space: str
    offset: int
    element: int = 1


@dataclass(frozen=True, slots=True)
class GlobalName:
    """A variable in device memory, placed by the loader of the module; ``element`` bytes are one of its elements."""

    name: str
    element: int = 1


@dataclass(frozen=True, slots=True)
class BytesName:
    """A parameter of a device function or of a call: a register that holds ``size`` bytes per lane."""

    index: int
    size: int


@dataclass(frozen=True, slots=True)
class LabelName:
    """A place to branch to; ``key`` is unique in the kernel. ``declaration`` holds ``.branchtargets`` and the like."""

    key: int
    declaration: str


@dataclass(frozen=True, slots=True)
class FunctionName:
    """A function of the module."""

    function: Function


@dataclass(frozen=True, slots=True)
class SharedName:
    """A module-scope variable in shared memory; a kernel that uses it gets room for it."""

    variable: Variable


Entity: TypeAlias = RegisterName | AddressName | SharedName | GlobalName | BytesName | LabelName | FunctionName


class Names:
    """Names visible in one ``{ … }``, and those of the scopes around it."""

    def __init__(self, outer: Names | None = None) -> None:
        self._entities: dict[str, Entity] = {}
        self._outer_names = outer

    def declare(self, name: str, entity: Entity) -> None:
        """Make ``name`` mean ``entity`` here and in inner scopes."""
        self._entities[name] = entity

    def find(self, name: str) -> Entity | None:
        """Look up ``name`` in this scope."""
        names: Names | None = self
        while names is not None:
            entity = names._entities.get(name)
            if entity is not None:
                return entity
            names = names._outer_names
        return None


@dataclass(slots=True)
class Launch:
    """Facts about a launch before its blocks run."""

    parameters: bytes
    variables: Mapping[str, int]
    dynamic_shared_bytes: int
    dynamic_start: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] = (0, 0, 0)
    """Blocks of a cluster in x, y, z; all 0 for a launch without clusters."""
    workspace: int = 0
    """Device address of the memory for the barrier of a cooperative grid, 0 for any other."""

    @property
    def cluster_size(self) -> int:
        """Blocks of a cluster, 1 without clusters."""
        return max(prod(self.cluster), 1)

    def address(self, variable: str) -> int:
        """The device address of a module variable. Raises SimulationError if it was given none."""
        if variable not in self.variables:
            raise SimulationError(f"the module variable {variable} has no address: is it defined in another module?")
        return self.variables[variable]

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, static and dynamic."""
        return self.dynamic_start + self.dynamic_shared_bytes


@dataclass(slots=True)
class Layout:
    """Registers, constants and static memory of one kernel and the functions that it calls.

    ``template`` holds the value of each register index at the start: constants, and None for the rest.
    ``launch_values`` fills in what only the launch tells. ``functions`` gives the address of each function.
    """

    functions: Mapping[str, int] = field(default_factory=dict)
    template: list[Value] = field(default_factory=list)
    launch_values: list[tuple[int, Callable[[Launch], Value]]] = field(default_factory=list)
    types: dict[int, ScalarType] = field(default_factory=dict)
    shared_bytes: int = 0
    shared_align: int = 16
    min_access_bytes: int = 16
    """The fewest bytes that an instruction accesses."""
    _constants: dict[object, int] = field(default_factory=dict)
    _module_shared: dict[str, int] = field(default_factory=dict)
    _labels: int = 0

    @property
    def dynamic_start(self) -> int:
        """Start of dynamic shared memory."""
        return -(-self.shared_bytes // self.shared_align) * self.shared_align

    def add_register(self, value: Value | None = None) -> int:
        """A new register index."""
        self.template.append(value)  # type: ignore[arg-type]
        return len(self.template) - 1

    def add_typed_register(self, kind: ScalarType) -> int:
        """A new register index for a declared register."""
        index = self.add_register()
        self.types[index] = kind
        return index

    def constant_index(self, value: Value) -> int:
        """The index that holds the scalar ``value``."""
        key = (value.dtype, value.tobytes())
        index = self._constants.get(key)
        if index is None:
            index = self._constants[key] = self.add_register(value)
        return index

    def launch_value_index(self, key: tuple[str, str | int, DType], value: Callable[[Launch], Value]) -> int:
        """The index that holds what ``value`` gives for the launch; equal keys share it."""
        index = self._constants.get(key)
        if index is None:
            index = self._constants[key] = self.add_register()
            self.launch_values.append((index, value))
        return index

    def temporary_index(self, key: str) -> int:
        """An index for a value that an operation computes for itself; equal keys share it."""
        index = self._constants.get(key)
        if index is None:
            index = self._constants[key] = self.add_register()
        return index

    def flag_index(self, name: str) -> int:
        """The index of a predicate that instructions set and read without naming it."""
        index = self.temporary_index(name)
        self.types[index] = PREDICATE
        return index

    def new_label(self) -> int:
        """A new label key."""
        self._labels += 1
        return self._labels

    def module_shared_offset(self, variable: Variable) -> int:
        """The offset of a module-scope shared variable, which takes room at its first use."""
        if variable.name not in self._module_shared:
            self._module_shared[variable.name] = self.add_shared(variable)
        return self._module_shared[variable.name]

    def add_shared(self, variable: Variable) -> int:
        """The offset of a new shared variable; ``DYNAMIC_OFFSET`` for one without extent."""
        align = max(variable.align, natural_align(variable))
        if variable.linkage == "extern" or not variable.size_bytes:
            self.shared_align = max(self.shared_align, align)
            return DYNAMIC_OFFSET
        offset = -(-self.shared_bytes // align) * align
        self.shared_bytes = offset + variable.size_bytes
        return offset


def natural_align(variable: Variable) -> int:
    """The alignment of a variable that declares none: the size of its element."""
    return TYPES[variable.type].bytes * variable.vector if variable.type in TYPES else 1


def module_names(module: Module) -> Names:
    """The module's functions and its variables in device memory."""
    names = Names()
    for item in module.items:
        if isinstance(item, Function):
            existing = names.find(item.name)
            if not (isinstance(existing, FunctionName) and item.body is None):
                names.declare(item.name, FunctionName(item))
        elif isinstance(item, Variable) and item.space in ("global", "const"):
            names.declare(item.name, GlobalName(item.name, natural_align(item)))
        elif isinstance(item, Variable) and item.space == "shared":
            names.declare(item.name, SharedName(item))
    for name, target in aliases(module).items():
        entity = names.find(target)
        if isinstance(entity, FunctionName):
            names.declare(name, entity)
    return names


def aliases(module: Module) -> dict[str, str]:
    """Return the name of the function behind each name that an ``.alias`` gives."""
    targets = dict(alias_of(item) for item in module.items if isinstance(item, Directive) and item.name == "alias")
    return {name: targets.get(target, target) for name, target in targets.items()}


class FunctionScope:
    """The outermost scope of a function, and how much local memory its variables take."""

    def __init__(self, layout: Layout, outer: Names) -> None:
        self.layout = layout
        self.names = Names(outer)
        self.local_bytes = 0

    def declare_kernel_parameters(self, parameters: Iterable[Variable]) -> None:
        """The parameters of a kernel, at the offsets where the launch puts them."""
        for variable, offset in parameter_offsets(parameters):
            self.names.declare(variable.name, AddressName("param", offset))

    def declare_formal(self, variable: Variable) -> list[BytesName | RegisterName]:
        """A parameter or result of a device function; several names for a vector of registers."""
        self.declare(variable, self.names)
        parts = register_parts(variable) if variable.space == "reg" else [variable.name]
        variables = [self.names.find(part) for part in parts]
        return [entity for entity in variables if isinstance(entity, BytesName | RegisterName)]

    def declare_body(self, body: Iterable[Statement], names: Names) -> None:
        """The declarations and labels of a ``{ … }``, not those of scopes inside it."""
        for statement in body:
            if isinstance(statement, Variable):
                self.declare(statement, names)
            elif isinstance(statement, Label):
                names.declare(statement.name, LabelName(self.layout.new_label(), statement.declaration))

    def declare(self, variable: Variable, names: Names) -> None:
        """Give a variable of a body its place."""
        if variable.space == "reg":
            self._declare_registers(variable, names)
        elif variable.space == "shared":
            names.declare(
                variable.name, AddressName("shared", self.layout.add_shared(variable), natural_align(variable))
            )
        elif variable.space == "local":
            align = max(variable.align, natural_align(variable))
            offset = -(-self.local_bytes // align) * align
            self.local_bytes = offset + variable.size_bytes
            names.declare(variable.name, AddressName("local", offset, natural_align(variable)))
        elif variable.space == "param":
            names.declare(variable.name, BytesName(self.layout.add_register(), variable.size_bytes))
        elif variable.space in ("global", "const"):
            names.declare(variable.name, GlobalName(name_inside(variable), natural_align(variable)))
        else:
            message = f"a variable in .{variable.space}, which the simulated GPU does not have"
            raise PtxError(message, variable.span.line)

    def _declare_registers(self, variable: Variable, names: Names) -> None:
        kind = TYPES.get(variable.type)
        if kind is None:
            raise PtxError(f"a register of unknown type .{variable.type}", variable.span.line)
        for part in register_parts(variable):
            names.declare(part, RegisterName(self.layout.add_typed_register(kind), kind))


def name_inside(variable: Variable) -> str:
    """Return the module's name of a variable that a function declares; no program finds it by its own name."""
    return f"$__{variable.name}__{variable.span.start}"


def register_parts(variable: Variable) -> list[str]:
    """The names of the scalar registers that a declaration makes: ``r0``, ``r1`` of ``r<2>``, ``v.x``, ``v.y``."""
    register_names = [f"{variable.name}{number}" for number in range(variable.count)] or [variable.name]
    parts = [""] if variable.vector == 1 else [f".{part}" for part in "xyzw"[: variable.vector]]
    return [name + part for name in register_names for part in parts]


def parameter_offsets(parameters: Iterable[Variable]) -> Iterator[tuple[Variable, int]]:
    """Yield each parameter of a kernel with its offset in bytes."""
    end = 0
    for variable in parameters:
        align = max(variable.align, natural_align(variable))
        offset = -(-end // align) * align
        yield variable, offset
        end = offset + variable.size_bytes
