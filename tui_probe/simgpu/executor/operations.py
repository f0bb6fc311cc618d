"""Operations on registers: sources and results with conversions, and functions lifted to operations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from tui_probe.simgpu.executor.scalars import (
    SIGNED,
    UNSIGNED,
    DType,
    Registers,
    ScalarType,
    Value,
    scalar,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.simgpu.executor.threads import ThreadGroup

Operation: TypeAlias = "Callable[[ThreadGroup], None]"
Adapt: TypeAlias = "Callable[[Value], Value]"


@dataclass(frozen=True, slots=True)
class SourceOperand:
    """Source of an operand: a register index, and the conversion of its value to the requested type."""

    index: int
    adapt: Adapt | None = None

    def read(self, registers: Registers) -> Value:
        """The operand's value."""
        value = registers[self.index]
        return value if self.adapt is None else self.adapt(value)

    def inverse(self) -> SourceOperand:
        """The logical opposite, of a predicate."""
        if self.adapt is np.logical_not:
            return SourceOperand(self.index)
        return SourceOperand(self.index, np.logical_not)


@dataclass(frozen=True, slots=True)
class ResultOperand:
    """Destination of a result: a register index, and the conversion from the instruction's type to storage."""

    index: int
    adapt: Adapt | None = None

    def write(self, registers: Registers, value: Value) -> None:
        """Set the register."""
        registers[self.index] = value if self.adapt is None else self.adapt(value)


def wrap(value: int, dtype: DType) -> Value:
    """``value`` modulo the width of the unsigned ``dtype``."""
    return scalar(value & ((1 << 8 * dtype.itemsize) - 1), dtype)


@cache
def _view_adapter(dtype: DType) -> Adapt:
    def view(value: Value) -> Value:
        return value.view(dtype)

    return view


@cache
def _resize_adapter(source_dtype: DType, wide_dtype: DType, result_dtype: DType) -> Adapt:
    def resize(value: Value) -> Value:
        return value.view(source_dtype).astype(wide_dtype).view(result_dtype)

    return resize


def from_storage(bits: int, storage: DType, kind: ScalarType) -> Adapt | None:
    """Return the conversion of a register from ``storage`` to ``kind``: its low bits, or zero-extended."""
    if storage == kind.dtype or kind.kind == "pred":
        return None
    if bits == kind.bits:
        return _view_adapter(kind.dtype)
    return _resize_adapter(UNSIGNED[bits], UNSIGNED[kind.bits], kind.dtype)


def to_storage(bits: int, storage: DType, kind: ScalarType) -> Adapt | None:
    """Return the conversion from ``kind`` to the storage type; None if none is needed.

    Signed types are sign-extended to ``bits`` bits, others zero-extended.
    """
    if storage == kind.dtype or kind.kind == "pred":
        return None
    if bits == kind.bits:
        return _view_adapter(storage)
    table: Final = SIGNED if kind.kind == "s" else UNSIGNED
    return _resize_adapter(table[kind.bits], table[bits], storage)


def lift(function: Callable[..., Value], target: ResultOperand, sources: tuple[SourceOperand, ...]) -> Operation:
    """An operation that sets ``target`` to ``function`` of ``sources``."""
    if target.adapt is None and not any(source.adapt for source in sources):
        lift_plain = _LIFTS.get(len(sources))
        if lift_plain is not None:
            return lift_plain(function, target.index, *(source.index for source in sources))

    def run(group: ThreadGroup) -> None:
        registers = group.registers
        target.write(registers, function(*[source.read(registers) for source in sources]))

    return run


# ``lift`` without conversions, one function per number of sources: most executed instructions are of these forms, and
# indexing registers directly avoids ``SourceOperand.read``, the list of sources and argument unpacking.


def _lift1(function: Callable[..., Value], d: int, a: int) -> Operation:
    def run(group: ThreadGroup) -> None:
        registers = group.registers
        registers[d] = function(registers[a])

    return run


def _lift2(function: Callable[..., Value], d: int, a: int, b: int) -> Operation:
    def run(group: ThreadGroup) -> None:
        registers = group.registers
        registers[d] = function(registers[a], registers[b])

    return run


def _lift3(function: Callable[..., Value], d: int, a: int, b: int, c: int) -> Operation:
    def run(group: ThreadGroup) -> None:
        registers = group.registers
        registers[d] = function(registers[a], registers[b], registers[c])

    return run


_LIFTS: Final[dict[int, Callable[..., Operation]]] = {1: _lift1, 2: _lift2, 3: _lift3}
