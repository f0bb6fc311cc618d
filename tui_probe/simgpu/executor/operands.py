"""Binding the operands of an instruction to indices into the registers of a thread group.

A register is stored as the NumPy type that most instructions use it as (``binding.common_types``): an ``.f32`` register
as float32, a ``.b32`` one that is added as ``s32`` as int32. Most operations then use the arrays as they are; others
view the same bits. The first use decides for a register that no instruction with a number type names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from tui_probe.errors import PtxError
from tui_probe.ptx.tree import Element, Immediate, Memory, Negated, Operand, Register, Sum, Symbol
from tui_probe.simgpu.executor.operations import (
    Adapt,
    Operation,
    ResultOperand,
    SourceOperand,
    from_storage,
    lift,
    to_storage,
    wrap,
)
from tui_probe.simgpu.executor.scalars import (
    BOOL,
    PREDICATE,
    TYPES,
    UNSIGNED,
    DType,
    ScalarType,
    UnsupportedFormError,
    Value,
    literal,
    scalar,
)
from tui_probe.simgpu.executor.scope import (
    DYNAMIC_OFFSET,
    AddressName,
    BytesName,
    Entity,
    FunctionName,
    GlobalName,
    Layout,
    Names,
    RegisterName,
    SharedName,
    natural_align,
)
from tui_probe.simgpu.executor.special import SPECIAL_REGISTERS, UNKNOWN_SPECIAL_REGISTERS, RegisterReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.simgpu.executor.threads import ThreadGroup


@dataclass(slots=True)
class Effects:
    """Facts about one instruction that the binder collected while it built the operation."""

    source_registers: set[int] = field(default_factory=set)
    """Indices of the registers that it reads."""
    target_registers: set[int] = field(default_factory=set)
    """Indices of the registers that it writes."""
    prelude: list[Operation] = field(default_factory=list)
    """Operations before it that compute its operands."""
    is_pure: bool = False
    """True if it only computes registers, so that a guard may compute it for all lanes and keep some."""
    starts_block: bool = False
    """True if it must be the first of its basic block: it reads the clock, or waits for other lanes of its warp."""
    members: SourceOperand | None = None
    """Mask of the lanes of its warp that it waits for; None if it waits for none."""
    polls: bool = False
    """True if a loop around it may be waiting for another thread."""


class Binder:
    """Binds operands for one kernel; ``storage`` holds the types that registers are kept as, where they are known."""

    def __init__(self, layout: Layout, storage: dict[int, DType] | None = None) -> None:
        self.layout = layout
        self.names = Names()
        self.line = 0
        self.effects = Effects()
        self._storage = storage or {}
        self._sink = layout.temporary_index("_")

    def begin(self, names: Names, line: int) -> None:
        """Start a new instruction."""
        self.names = names
        self.line = line
        self.effects = Effects()

    def initial_value(self, index: int) -> Value | None:
        """Initial value of a register; None for parameters of calls."""
        kind = self.layout.types.get(index)
        return None if kind is None else scalar(0, self._storage_of(RegisterName(index, kind)))

    def unsupported(self) -> NoReturn:
        """End the building of an instruction that the executor does not know."""
        raise UnsupportedFormError

    def entity(self, name: str) -> Entity:
        """Look up a name. Raises PtxError for an undeclared one."""
        entity = self.names.find(name)
        if entity is None:
            raise PtxError(f"{name} is not declared", self.line)
        return entity

    def source(self, operand: Operand, kind: ScalarType) -> SourceOperand:
        """Return the source of ``operand`` as a ``kind``."""
        match operand:
            case Immediate():
                return SourceOperand(self.layout.constant_index(literal(operand.text, kind)))
            case Register():
                return self._register_source(operand, kind)
            case Symbol():
                return self._symbol_source(operand, kind)
            case Element():
                return self._element_source(operand, kind)
            case Negated():
                return self._negated_source(operand, kind)
            case Sum():
                return self._sum_source(operand, kind)
        raise UnsupportedFormError

    def target(self, operand: Operand, kind: ScalarType) -> ResultOperand:
        """Return the target of a result of type ``kind``; a result in ``_`` is discarded."""
        if isinstance(operand, Register | Symbol) and operand.name == "_":
            return ResultOperand(self._sink)
        if not isinstance(operand, Register):
            self.unsupported()
        register = self._register(operand)
        if register is None:
            self.unsupported()
        self.effects.target_registers.add(register.index)
        self._set_storage(register, kind)
        return ResultOperand(register.index, to_storage(register.type.bits, self._storage_of(register), kind))

    def argument_target(self, entity: BytesName | RegisterName) -> ResultOperand:
        """Return the target of a function's argument of the declared type."""
        if isinstance(entity, BytesName):
            return ResultOperand(entity.index)
        return ResultOperand(entity.index, to_storage(entity.type.bits, self._storage_of(entity), entity.type))

    def result_source(self, entity: BytesName | RegisterName) -> SourceOperand:
        """Return the source of a function's result, converted to the declared type."""
        if isinstance(entity, BytesName):
            return SourceOperand(entity.index)
        return SourceOperand(entity.index, from_storage(entity.type.bits, self._storage_of(entity), entity.type))

    def predicate(self, operand: Operand) -> SourceOperand:
        """Return the source of a predicate, with or without ``!``."""
        return self.source(operand, PREDICATE)

    def stored_kind(self, operand: Operand, kind: ScalarType) -> ScalarType:
        """``kind`` with the type that register ``operand`` is kept as, if both have the same width.

        For instructions that only move bits: they then need no view.
        """
        register = self._register(operand) if isinstance(operand, Register) else None
        if register is None or register.type.bits != kind.bits or kind.kind == "pred":
            return kind
        return ScalarType(kind.name, kind.kind if kind.kind in "us" else "b", kind.bits, self._storage_of(register))

    def address(self, operand: Operand) -> tuple[SourceOperand, int]:
        """Return the address in brackets or of an element: its source (uint32 or uint64), and bytes to add to it."""
        if isinstance(operand, Element):
            return self._element_source(operand, TYPES["u64"]), 0
        if not isinstance(operand, Memory) or operand.coordinates:
            self.unsupported()
        match operand.base:
            case None:
                return self.source(Immediate(str(operand.offset)), TYPES["u64"]), 0
            case Symbol():
                symbol = Symbol(operand.base.name, operand.base.offset + operand.offset)
                return self._symbol_source(symbol, TYPES["u64"]), 0
            case Register():
                register = self._register(operand.base)
                bits = register.type.bits if register else 32
                return self._register_source(operand.base, TYPES[f"u{bits}"]), operand.offset
        raise UnsupportedFormError

    def special_reader(self, operand: Operand) -> tuple[RegisterReader, ScalarType] | None:
        """Return the reader and type of a special register, else None."""
        if not isinstance(operand, Register) or self.names.find(str(operand)) is not None:
            return None
        special = SPECIAL_REGISTERS.get(str(operand))
        if special is None:
            if UNKNOWN_SPECIAL_REGISTERS.fullmatch(operand.name):
                self.unsupported()
            return None
        self.effects.starts_block |= special.is_clock
        return special.read, TYPES[special.type]

    def build_pure(self, function: Callable[..., Value], target: ResultOperand, *sources: SourceOperand) -> Operation:
        """An operation that sets ``target`` to ``function`` of ``sources``, elementwise."""
        self.effects.is_pure = True
        return lift(function, target, sources)

    def _register(self, operand: Register) -> RegisterName | None:
        entity = self.names.find(str(operand))
        return entity if isinstance(entity, RegisterName) else None

    def _storage_of(self, register: RegisterName) -> DType:
        if register.type.kind == "pred":
            return BOOL
        default = register.type.dtype if register.type.kind == "f" else UNSIGNED[register.type.bits]
        return self._storage.setdefault(register.index, default)

    def _set_storage(self, register: RegisterName, kind: ScalarType) -> None:
        """Set the storage type of a register that has none yet: the type of its first use of the same width."""
        if kind.bits == register.type.bits and kind.is_number:
            self._storage.setdefault(register.index, kind.dtype)

    def _register_source(self, operand: Register, kind: ScalarType) -> SourceOperand:
        register = self._register(operand)
        if register is None:
            return self._special_source(operand, kind)
        self.effects.source_registers.add(register.index)
        self._set_storage(register, kind)
        return SourceOperand(register.index, from_storage(register.type.bits, self._storage_of(register), kind))

    def _special_source(self, operand: Register, kind: ScalarType) -> SourceOperand:
        special = self.special_reader(operand)
        if special is None:
            raise PtxError(f"{operand} is not declared", self.line)
        reader, type_ = special
        index = self.layout.temporary_index(str(operand))

        def run(group: ThreadGroup) -> None:
            group.registers[index] = reader(group)

        self.effects.prelude.append(run)
        return SourceOperand(index, from_storage(type_.bits, type_.dtype, kind))

    def _negated_source(self, operand: Negated, kind: ScalarType) -> SourceOperand:
        source = self.source(operand.operand, kind)
        negate: Adapt = np.logical_not if operand.sign == "!" else np.negative
        if source.adapt is None:
            return SourceOperand(source.index, negate)
        adapt = source.adapt
        return SourceOperand(source.index, lambda value: negate(adapt(value)))

    def _sum_source(self, operand: Sum, kind: ScalarType) -> SourceOperand:
        """Return a register plus a constant, modulo 2^bits of ``kind``."""
        if not kind.is_integer:
            self.unsupported()
        unsigned = TYPES[f"u{kind.bits}"]
        base, addend = self.source(operand.base, unsigned), wrap(operand.offset, unsigned.dtype)

        def total(value: Value) -> Value:
            result: Value = (value if base.adapt is None else base.adapt(value)) + addend
            return result.view(kind.dtype)

        return SourceOperand(base.index, total)

    def named_space(self, operand: Operand) -> str:
        """The state space of the shared or local variable that an address names; "" for another address."""
        name = operand.base.name if isinstance(operand, Memory) and isinstance(operand.base, Symbol) else ""
        name = operand.name if isinstance(operand, Element) else name
        match self.names.find(name):
            case SharedName():
                return "shared"
            case AddressName(("shared" | "local") as space):
                return space
        return ""

    def _symbol_source(self, symbol: Symbol, kind: ScalarType) -> SourceOperand:
        entity = self.entity(symbol.name)
        if not kind.is_integer:
            self.unsupported()
        dtype = UNSIGNED[kind.bits]
        match entity:
            case SharedName():
                return self._shared_source(self.layout.module_shared_offset(entity.variable), symbol.offset, dtype)
            case AddressName("shared"):
                return self._shared_source(entity.offset, symbol.offset, dtype)
            case AddressName("local"):
                return self._local_source(entity.offset + symbol.offset, dtype)
            case AddressName():
                return self._constant_source(entity.offset + symbol.offset, dtype)
            case GlobalName():
                name, offset = entity.name, symbol.offset
                index = self.layout.launch_value_index(
                    (name, offset, dtype), lambda launch: wrap(launch.address(name) + offset, dtype)
                )
                return SourceOperand(index)
            case FunctionName():
                return self._constant_source(self.layout.functions[entity.function.name], dtype)
            case BytesName():
                self.unsupported()
        raise PtxError(f"{symbol.name} has no address", self.line)

    def _element_source(self, operand: Element, kind: ScalarType) -> SourceOperand:
        """The address of ``table[%r3]``."""
        match self.entity(operand.name):
            case SharedName(variable):
                size = natural_align(variable)
            case AddressName(element=element) | GlobalName(element=element):
                size = element
            case _:
                self.unsupported()
        if isinstance(operand.index, Immediate):
            offset = size * int(literal(operand.index.text, TYPES["s64"]))
            return self._symbol_source(Symbol(operand.name, offset), kind)
        kind = TYPES[f"u{kind.bits}"]
        start, number = self._symbol_source(Symbol(operand.name), kind), self.source(operand.index, kind)
        index = self.layout.temporary_index(f"element {operand.name} {kind.dtype}")

        def run(group: ThreadGroup) -> None:
            registers = group.registers
            registers[index] = start.read(registers) + number.read(registers) * kind.dtype.type(size)

        self.effects.prelude.append(run)
        return SourceOperand(index)

    def _constant_source(self, value: int, dtype: DType) -> SourceOperand:
        return SourceOperand(self.layout.constant_index(wrap(value, dtype)))

    def _shared_source(self, base: int, offset: int, dtype: DType) -> SourceOperand:
        if base != DYNAMIC_OFFSET:
            return self._constant_source(base + offset, dtype)
        index = self.layout.launch_value_index(
            ("dynamic shared memory", offset, dtype), lambda launch: wrap(launch.dynamic_start + offset, dtype)
        )
        return SourceOperand(index)

    def _local_source(self, offset: int, dtype: DType) -> SourceOperand:
        index = self.layout.temporary_index(f"local {offset} {dtype}")

        def run(group: ThreadGroup) -> None:
            group.registers[index] = wrap(group.local_base + offset, dtype)

        self.effects.prelude.append(run)
        return SourceOperand(index)
