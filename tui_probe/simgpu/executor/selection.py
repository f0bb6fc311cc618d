"""Comparisons, choices and moves: ``setp``, ``set``, ``selp``, ``slct``, ``mov``, ``cvta``, and hints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.ptx.tree import Immediate, Pair, Symbol, Vector
from tui_probe.simgpu.executor.checks.accesses import scope_of
from tui_probe.simgpu.executor.floating import flush_subnormals
from tui_probe.simgpu.executor.memory import GLOBAL_START, LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from tui_probe.simgpu.executor.rounding import from_bfloat16
from tui_probe.simgpu.executor.scalars import (
    PREDICATE,
    TYPES,
    U32,
    U64,
    UNSIGNED,
    ScalarType,
    Value,
    choose,
    join_pairs,
    join_words,
    last_type,
    operands_of,
    scalar,
    split_pairs,
    split_words,
    types_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation
    from tui_probe.simgpu.executor.threads import ThreadGroup

_COMPARISONS: Final[dict[str, Callable[..., Any]]] = {
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
_UNORDERED_OPPOSITES: Final = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt"}
"""Opposites of "unordered" comparisons, which also hold if an operand is NaN."""
_COMBINATIONS: Final[dict[str, Callable[..., Any]]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
_WINDOWS: Final = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAMETER_WINDOW, "global": 0, "const": 0}


def _ordered_not_equal(a: Value, b: Value) -> Value:
    result: Value = (a < b) | (a > b)
    return result


def _is_number(a: Value, b: Value) -> Value:
    result: Value = ~(np.isnan(a) | np.isnan(b))
    return result


def comparison(name: str, *, is_float: bool) -> Callable[..., Any]:
    """The function that compares two values. Raises KeyError for an unknown name."""
    if name == "ne":
        return _ordered_not_equal if is_float else np.not_equal
    if name in _UNORDERED_OPPOSITES:
        opposite = comparison(_UNORDERED_OPPOSITES[name], is_float=is_float)
        return lambda a, b: ~opposite(a, b)
    if name in ("num", "nan"):
        return _is_number if name == "num" else lambda a, b: ~_is_number(a, b)
    return _COMPARISONS[name]


def _instruction_comparison(instruction: Instruction, kind: ScalarType) -> Callable[..., Any]:
    """The comparison of an instruction whose operands have type ``kind``."""
    is_float = kind.kind in ("f", "bf")
    compare = comparison(instruction.modifiers[0], is_float=is_float)
    if kind.kind == "bf":
        return lambda a, b: compare(from_bfloat16(a), from_bfloat16(b))
    if "ftz" in instruction.modifiers and kind.name == "f32":
        return lambda a, b: compare(flush_subnormals(a), flush_subnormals(b))
    return compare


def _combination(instruction: Instruction) -> Callable[..., Any] | None:
    for modifier in instruction.modifiers[1:]:
        if modifier in _COMBINATIONS:
            return _COMBINATIONS[modifier]
    return None


def _build_set_predicate(instruction: Instruction, bind: Binder) -> Operation:
    """``setp.comparison{.combination}.type p{|q}, a, b{, c}``; q is the opposite comparison, combined alike."""
    kind = last_type(instruction)
    destination, a, b, *predicate_operands = operands_of(instruction, 3, 4)
    if kind.kind == "x2":
        return _build_set_predicates_of_pairs(instruction, kind, bind)
    compare = _instruction_comparison(instruction, kind)
    sources = (bind.source(a, kind), bind.source(b, kind))
    combine = _combination(instruction)
    if not isinstance(destination, Pair) and combine is None:
        return bind.build_pure(compare, bind.target(destination, PREDICATE), *sources)
    third = bind.predicate(predicate_operands[0]) if combine is not None else None
    operands = (destination.first, destination.second) if isinstance(destination, Pair) else (destination,)
    targets = [bind.target(operand, PREDICATE) for operand in operands]
    bind.effects.is_pure = True

    def run(group: ThreadGroup) -> None:
        registers = group.registers
        is_true = compare(sources[0].read(registers), sources[1].read(registers))
        third_value = None if third is None else third.read(registers)
        for target, result in zip(targets, (is_true, ~is_true), strict=False):
            target.write(registers, result if combine is None else combine(result, third_value))

    return run


def _build_set_predicates_of_pairs(instruction: Instruction, kind: ScalarType, bind: Binder) -> Operation:
    """``setp.comparison.f16x2 p|q, a, b``: p for the low halves, q for the high ones."""
    destination, a, b, *predicate_operands = operands_of(instruction, 3, 4)
    if not isinstance(destination, Pair):
        bind.unsupported()
    element = TYPES[kind.name.removesuffix("x2")]
    compare = _instruction_comparison(instruction, element)
    targets = [bind.target(operand, PREDICATE) for operand in (destination.first, destination.second)]
    sources = (bind.source(a, kind), bind.source(b, kind))
    combine = _combination(instruction)
    third = bind.predicate(predicate_operands[0]) if combine is not None else None
    bind.effects.is_pure = True

    def run(group: ThreadGroup) -> None:
        registers = group.registers
        results = compare(*(split_pairs(source.read(registers), element.dtype) for source in sources))
        for half, target in enumerate(targets):
            is_true = results[..., half]
            if combine is not None and third is not None:
                is_true = combine(is_true, third.read(registers))
            target.write(registers, is_true)

    return run


def _build_set(instruction: Instruction, bind: Binder) -> Operation:
    """``set.comparison{.combination}.dtype.stype d, a, b{, c}``: all ones (1.0 for floats) where it holds, else 0."""
    result_kind, kind = types_of(instruction, 2)
    target, a, b, *predicate_operands = operands_of(instruction, 3, 4)
    combine = _combination(instruction)
    sources = [bind.source(a, kind), bind.source(b, kind)]
    if combine is not None:
        sources.append(bind.predicate(predicate_operands[0]))
    if kind.kind == "x2":
        function = _pair_comparison(instruction, kind, result_kind, combine)
    else:
        compare = _instruction_comparison(instruction, kind)

        def function(x: Value, y: Value, *predicates: Value) -> Value:
            is_true = compare(x, y)
            return _truth_as_number(is_true if combine is None else combine(is_true, *predicates), result_kind)

    return bind.build_pure(function, bind.target(target, result_kind), *sources)


def _truth_as_number(is_true: Value, kind: ScalarType) -> Value:
    if kind.kind == "f":
        return choose(is_true, kind.dtype.type(1), kind.dtype.type(0))
    if kind.kind == "bf":
        return np.where(is_true, np.uint16(0x3F80), np.uint16(0))
    unsigned = UNSIGNED[kind.bits]
    masks: Value = np.where(is_true, ~unsigned.type(0), unsigned.type(0))
    return masks.view(kind.dtype)


def _pair_comparison(
    instruction: Instruction, kind: ScalarType, result_kind: ScalarType, combine: Callable[..., Any] | None
) -> Callable[..., Value]:
    element = TYPES[kind.name.removesuffix("x2")]
    # `set.….u32.f16x2` gives a mask of 16 ones for each half.
    element_result = element if result_kind.kind == "x2" else TYPES["u16"]
    compare = _instruction_comparison(instruction, element)

    def function(x: Value, y: Value, *predicates: Value) -> Value:
        is_true = compare(split_pairs(x, element.dtype), split_pairs(y, element.dtype))
        if combine is not None:
            is_true = combine(is_true, predicates[0][..., None])
        return join_pairs(_truth_as_number(is_true, element_result), U32)

    return function


COMPARISON_BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {
    "setp": _build_set_predicate,
    "set": _build_set,
}


def _identity(value: Value) -> Value:
    return value


def _select(x: Value, y: Value, condition: Value) -> Value:
    return choose(condition, x, y)


def _build_move(instruction: Instruction, bind: Binder) -> Operation:
    kind = last_type(instruction)
    target, source = operands_of(instruction, 2)
    if instruction.modifiers[0] in ("v2", "v4"):
        return _build_vector_move(target, source, kind, bind)
    if isinstance(source, Vector):
        return _build_pack(instruction, kind, bind)
    if isinstance(target, Vector):
        return _build_unpack(instruction, kind, bind)
    special = bind.special_reader(source)
    if special is not None:
        reader, type_ = special
        destination = bind.target(target, type_)
        bind.effects.is_pure = True

        def run(group: ThreadGroup) -> None:
            destination.write(group.registers, reader(group))

        return run
    # The address of a variable is an integer, no matter what the register that takes it is kept as.
    kind = TYPES[f"u{kind.bits}"] if isinstance(source, Symbol) else bind.stored_kind(target, kind)
    return bind.build_pure(_identity, bind.target(target, kind), bind.source(source, kind))


def _build_vector_move(target: Operand, source: Operand, kind: ScalarType, bind: Binder) -> Operation:
    """``mov.v2|v4.type d, a``: part by part."""
    if not isinstance(target, Vector) or not isinstance(source, Vector) or len(target.elements) != len(source.elements):
        return bind.unsupported()
    sources = [bind.source(element, kind) for element in source.elements]
    targets = [bind.target(element, kind) for element in target.elements]
    bind.effects.is_pure = True

    def run(group: ThreadGroup) -> None:
        registers = group.registers
        for part, value in zip(targets, [source.read(registers) for source in sources], strict=True):
            part.write(registers, value)

    return run


def _build_pack(instruction: Instruction, kind: ScalarType, bind: Binder) -> Operation:
    target, vector = operands_of(instruction, 2)
    assert isinstance(vector, Vector)
    part = TYPES[f"b{kind.bits // len(vector.elements)}"]
    sources = [bind.source(element, part) for element in vector.elements]
    dtype = UNSIGNED[kind.bits]
    storage = TYPES[f"b{kind.bits}"]
    return bind.build_pure(lambda *parts: join_words(parts, dtype), bind.target(target, storage), *sources)


def _build_unpack(instruction: Instruction, kind: ScalarType, bind: Binder) -> Operation:
    vector, source = operands_of(instruction, 2)
    assert isinstance(vector, Vector)
    part = TYPES[f"b{kind.bits // len(vector.elements)}"]
    packed = bind.source(source, TYPES[f"b{kind.bits}"])
    targets = [bind.target(element, part) for element in vector.elements]
    bind.effects.is_pure = True

    def run(group: ThreadGroup) -> None:
        registers = group.registers
        for target, value in zip(targets, split_words(packed.read(registers), part.dtype), strict=True):
            target.write(registers, value)

    return run


def _build_select(instruction: Instruction, bind: Binder) -> Operation:
    """``selp.type d, a, b, c``: a where predicate c holds, else b."""
    target, a, b, condition = operands_of(instruction, 4)
    kind = bind.stored_kind(target, last_type(instruction))
    sources = (bind.source(a, kind), bind.source(b, kind), bind.predicate(condition))
    return bind.build_pure(_select, bind.target(target, kind), *sources)


def _build_slct(instruction: Instruction, bind: Binder) -> Operation:
    """``slct.type.s32|f32 d, a, b, c``: a where c >= 0, else b."""
    target, a, b, condition = operands_of(instruction, 4)
    kind, condition_kind = types_of(instruction, 2)
    sources = (bind.source(a, kind), bind.source(b, kind), bind.source(condition, condition_kind))
    return bind.build_pure(lambda x, y, c: _select(x, y, c >= 0), bind.target(target, kind), *sources)


def _build_convert_address(instruction: Instruction, bind: Binder) -> Operation:
    """``cvta.space d, a`` and ``cvta.to.space d, a``."""
    *modifiers, size = instruction.modifiers
    kind = TYPES[size]
    window = _WINDOWS[modifiers[-1].partition("::")[0]]
    target, source = operands_of(instruction, 2)
    shift = scalar(window, kind.dtype)
    move: Callable[[Value], Value] = _identity
    if window:
        move = (lambda a: a - shift) if modifiers[0] == "to" else (lambda a: a + shift)
    return bind.build_pure(move, bind.target(target, kind), bind.source(source, kind))


def _build_is_in_space(instruction: Instruction, bind: Binder) -> Operation:
    """``isspacep.space p, a``: whether a generic address is in a space."""
    space = instruction.modifiers[0].partition("::")[0]
    window = _WINDOWS[space]
    target, source = operands_of(instruction, 2)
    window_start = scalar(window or GLOBAL_START, U64)
    size = scalar(WINDOW_BYTES, U64)

    def is_inside(address: Value) -> Value:
        return (address >= window_start) & (address - window_start < size) if window else address >= window_start

    return bind.build_pure(is_inside, bind.target(target, PREDICATE), bind.source(source, TYPES["u64"]))


def _build_no_operation(instruction: Instruction, bind: Binder) -> Operation:  # noqa: ARG001
    """Hints and fences: memory operations happen in program order anyway."""
    return _do_nothing


def _do_nothing(group: ThreadGroup) -> None:
    pass


def _build_fence(instruction: Instruction, bind: Binder) -> Operation:  # noqa: ARG001
    """``membar`` and ``fence``: only checks see a difference. Fences between proxies order no other threads."""
    if instruction.modifiers[:2] in (("proxy", "async"), ("proxy", "alias")):
        return _do_nothing
    scope = scope_of(instruction.modifiers)

    def run(group: ThreadGroup) -> None:
        if group.batch.checks is not None:
            group.batch.checks.order.release(group.lanes, scope)
            group.batch.checks.order.acquire(group.lanes, scope)

    return run


def _build_sleep(instruction: Instruction, bind: Binder) -> Operation:
    bind.effects.polls = True
    return _build_no_operation(instruction, bind)


def _build_policy(instruction: Instruction, bind: Binder) -> Operation:
    """``createpolicy``: a cache policy, which means nothing here."""
    zero = bind.source(Immediate("0"), TYPES["b64"])
    return bind.build_pure(_identity, bind.target(instruction.operands[0], TYPES["b64"]), zero)


MOVE_BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {
    "mov": _build_move,
    "selp": _build_select,
    "slct": _build_slct,
    "cvta": _build_convert_address,
    "isspacep": _build_is_in_space,
    "createpolicy": _build_policy,
    "nanosleep": _build_sleep,
    **dict.fromkeys(
        (
            "prefetch",
            "prefetchu",
            "discard",
            "applypriority",
            "pmevent",
            "griddepcontrol",
            "setmaxnreg",
        ),
        _build_no_operation,
    ),
    "membar": _build_fence,
    "fence": _build_fence,
}
