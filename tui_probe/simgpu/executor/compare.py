"""Comparisons: ``setp`` and ``set`` (PTX ISA reference, sections 9.7.5 and 9.7.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.ptx.tree import Pair
from tui_probe.simgpu.executor.floating import flushed
from tui_probe.simgpu.executor.forms import last_type, operands_of, types_of
from tui_probe.simgpu.executor.rounding import from_bfloat16
from tui_probe.simgpu.executor.scalars import PREDICATE, TYPES, U32, UNSIGNED, ScalarType, Value, choose
from tui_probe.simgpu.executor.words import pairs, unpaired

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.operands import Binder, Operation

_ORDERED: Final[dict[str, Callable[..., Any]]] = {
    "eq": np.equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    # Unsigned comparisons by their old names.
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
# "Unordered" comparisons also hold if an operand is NaN: they are the opposite of the opposite.
_OPPOSITES: Final = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt"}
_COMBINES: Final[dict[str, Callable[..., Any]]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def _ordered_not_equal(a: Value, b: Value) -> Value:
    result: Value = (a < b) | (a > b)
    return result


def _is_number(a: Value, b: Value) -> Value:
    result: Value = ~(np.isnan(a) | np.isnan(b))
    return result


def comparison(name: str, is_float: bool) -> Callable[..., Any]:
    """The function that compares two values. Raises KeyError for an unknown name."""
    if name == "ne":
        return _ordered_not_equal if is_float else np.not_equal
    if name in _OPPOSITES:
        opposite = comparison(_OPPOSITES[name], is_float)
        return lambda a, b: ~opposite(a, b)
    if name in ("num", "nan"):
        return _is_number if name == "num" else lambda a, b: ~_is_number(a, b)
    return _ORDERED[name]


def _compared(instruction: Instruction, kind: ScalarType) -> Callable[..., Any]:
    """The comparison of an instruction whose operands have type ``kind``."""
    is_float = kind.kind in ("f", "bf")
    compare = comparison(instruction.modifiers[0], is_float)
    if kind.kind == "bf":
        return lambda a, b: compare(from_bfloat16(a), from_bfloat16(b))
    if "ftz" in instruction.modifiers and kind.name == "f32":
        return lambda a, b: compare(flushed(a), flushed(b))
    return compare


def _combination(instruction: Instruction) -> Callable[..., Any] | None:
    for modifier in instruction.modifiers[1:]:
        if modifier in _COMBINES:
            return _COMBINES[modifier]
    return None


def _build_set_predicate(instruction: Instruction, bind: Binder) -> Operation:
    """``setp.comparison{.combination}.type p{|q}, a, b{, c}``; q is the opposite comparison, combined alike."""
    kind = last_type(instruction)
    written, a, b, *rest = operands_of(instruction, 3, 4)
    if kind.kind == "x2":
        return _build_set_predicates_of_pairs(instruction, kind, bind)
    compare = _compared(instruction, kind)
    sources = (bind.source(a, kind), bind.source(b, kind))
    combine = _combination(instruction)
    if not isinstance(written, Pair) and combine is None:
        return bind.pure(compare, bind.target(written, PREDICATE), *sources)
    combined = bind.predicate(rest[0]) if combine is not None else None
    operands = (written.first, written.second) if isinstance(written, Pair) else (written,)
    targets = [bind.target(operand, PREDICATE) for operand in operands]
    bind.effects.pure = True

    def run(group: Group) -> None:
        registers = group.registers
        holds = compare(sources[0].read(registers), sources[1].read(registers))
        other = None if combined is None else combined.read(registers)
        for target, result in zip(targets, (holds, ~holds), strict=False):
            target.write(registers, result if combine is None else combine(result, other))

    return run


def _build_set_predicates_of_pairs(instruction: Instruction, kind: ScalarType, bind: Binder) -> Operation:
    """``setp.comparison.f16x2 p|q, a, b``: p for the low halves, q for the high ones."""
    written, a, b, *rest = operands_of(instruction, 3, 4)
    if not isinstance(written, Pair):
        bind.unsupported()
    element = TYPES[kind.name.removesuffix("x2")]
    compare = _compared(instruction, element)
    targets = [bind.target(operand, PREDICATE) for operand in (written.first, written.second)]
    sources = (bind.source(a, kind), bind.source(b, kind))
    combine = _combination(instruction)
    combined = bind.predicate(rest[0]) if combine is not None else None
    bind.effects.pure = True

    def run(group: Group) -> None:
        registers = group.registers
        both = compare(*(pairs(source.read(registers), element.dtype) for source in sources))
        for half, target in enumerate(targets):
            holds = both[..., half]
            if combine is not None and combined is not None:
                holds = combine(holds, combined.read(registers))
            target.write(registers, holds)

    return run


def _build_set(instruction: Instruction, bind: Binder) -> Operation:
    """``set.comparison{.combination}.dtype.stype d, a, b{, c}``: all ones (1.0 for floats) where it holds, else 0."""
    written_kind, kind = types_of(instruction, 2)
    target, a, b, *rest = operands_of(instruction, 3, 4)
    combine = _combination(instruction)
    sources = [bind.source(a, kind), bind.source(b, kind)]
    if combine is not None:
        sources.append(bind.predicate(rest[0]))
    if kind.kind == "x2":
        function = _set_of_pairs(instruction, kind, written_kind, combine)
    else:
        compare = _compared(instruction, kind)

        def function(x: Value, y: Value, *other: Value) -> Value:
            holds = compare(x, y)
            return _as_number(holds if combine is None else combine(holds, *other), written_kind)

    return bind.pure(function, bind.target(target, written_kind), *sources)


def _as_number(holds: Value, kind: ScalarType) -> Value:
    if kind.kind == "f":
        return choose(holds, kind.dtype.type(1), kind.dtype.type(0))
    if kind.kind == "bf":
        return np.where(holds, np.uint16(0x3F80), np.uint16(0))
    unsigned = UNSIGNED[kind.bits]
    masks: Value = np.where(holds, ~unsigned.type(0), unsigned.type(0))
    return masks.view(kind.dtype)


def _set_of_pairs(
    instruction: Instruction, kind: ScalarType, written: ScalarType, combine: Callable[..., Any] | None
) -> Callable[..., Value]:
    element = TYPES[kind.name.removesuffix("x2")]
    # `set.….u32.f16x2` gives a mask of 16 ones for each half.
    result = element if written.kind == "x2" else TYPES["u16"]
    compare = _compared(instruction, element)

    def function(x: Value, y: Value, *other: Value) -> Value:
        holds = compare(pairs(x, element.dtype), pairs(y, element.dtype))
        if combine is not None:
            holds = combine(holds, other[0][..., None])
        return unpaired(_as_number(holds, result), U32)

    return function


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {
    "setp": _build_set_predicate,
    "set": _build_set,
}
