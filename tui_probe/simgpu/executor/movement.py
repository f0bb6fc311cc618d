"""Moving and choosing values: ``mov``, ``selp``, ``slct``, ``cvta``, ``isspacep``, and hints without effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.ptx.tree import Immediate, Symbol, Vector
from tui_probe.simgpu.executor.forms import last_type, operands_of, types_of
from tui_probe.simgpu.executor.memory import (
    GLOBAL_START,
    LOCAL_WINDOW,
    PARAMETER_WINDOW,
    SHARED_WINDOW,
    WINDOW_BYTES,
)
from tui_probe.simgpu.executor.scalars import PREDICATE, TYPES, U64, UNSIGNED, ScalarType, Value, choose, scalar
from tui_probe.simgpu.executor.words import join_words, split_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.operands import Binder, Operation

_WINDOWS: Final = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAMETER_WINDOW, "global": 0, "const": 0}


def _same(value: Value) -> Value:
    return value


def _chosen(x: Value, y: Value, holds: Value) -> Value:
    return choose(holds, x, y)


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
        read, type_ = special
        written = bind.target(target, type_)
        bind.effects.pure = True

        def run(group: Group) -> None:
            written.write(group.registers, read(group))

        return run
    # The address of a variable is an integer, whatever the register that takes it is kept as.
    kind = TYPES[f"u{kind.bits}"] if isinstance(source, Symbol) else bind.kept_as(target, kind)
    return bind.pure(_same, bind.target(target, kind), bind.source(source, kind))


def _build_vector_move(target: Operand, source: Operand, kind: ScalarType, bind: Binder) -> Operation:
    """``mov.v2|v4.type d, a``: part by part."""
    if not isinstance(target, Vector) or not isinstance(source, Vector) or len(target.elements) != len(source.elements):
        return bind.unsupported()
    sources = [bind.source(element, kind) for element in source.elements]
    targets = [bind.target(element, kind) for element in target.elements]
    bind.effects.pure = True

    def run(group: Group) -> None:
        registers = group.registers
        for part, value in zip(targets, [one.read(registers) for one in sources], strict=True):
            part.write(registers, value)

    return run


def _build_pack(instruction: Instruction, kind: ScalarType, bind: Binder) -> Operation:
    target, vector = operands_of(instruction, 2)
    assert isinstance(vector, Vector)
    part = TYPES[f"b{kind.bits // len(vector.elements)}"]
    sources = [bind.source(element, part) for element in vector.elements]
    dtype = UNSIGNED[kind.bits]
    kept = TYPES[f"b{kind.bits}"]
    return bind.pure(lambda *parts: join_words(parts, dtype), bind.target(target, kept), *sources)


def _build_unpack(instruction: Instruction, kind: ScalarType, bind: Binder) -> Operation:
    vector, source = operands_of(instruction, 2)
    assert isinstance(vector, Vector)
    part = TYPES[f"b{kind.bits // len(vector.elements)}"]
    whole = bind.source(source, TYPES[f"b{kind.bits}"])
    targets = [bind.target(element, part) for element in vector.elements]
    bind.effects.pure = True

    def run(group: Group) -> None:
        registers = group.registers
        for target, value in zip(targets, split_words(whole.read(registers), part.dtype), strict=True):
            target.write(registers, value)

    return run


def _build_select(instruction: Instruction, bind: Binder) -> Operation:
    """``selp.type d, a, b, c``: a where predicate c holds, else b."""
    target, a, b, condition = operands_of(instruction, 4)
    kind = bind.kept_as(target, last_type(instruction))
    sources = (bind.source(a, kind), bind.source(b, kind), bind.predicate(condition))
    return bind.pure(_chosen, bind.target(target, kind), *sources)


def _build_slct(instruction: Instruction, bind: Binder) -> Operation:
    """``slct.type.s32|f32 d, a, b, c``: a where c >= 0, else b."""
    target, a, b, condition = operands_of(instruction, 4)
    kind, tested = types_of(instruction, 2)
    sources = (bind.source(a, kind), bind.source(b, kind), bind.source(condition, tested))
    return bind.pure(lambda x, y, c: _chosen(x, y, c >= 0), bind.target(target, kind), *sources)


def _build_convert_address(instruction: Instruction, bind: Binder) -> Operation:
    """``cvta.space d, a`` and ``cvta.to.space d, a``."""
    *modifiers, size = instruction.modifiers
    kind = TYPES[size]
    window = _WINDOWS[modifiers[-1].partition("::")[0]]
    target, source = operands_of(instruction, 2)
    shift = scalar(window, kind.dtype)
    move: Callable[[Value], Value] = _same
    if window:
        move = (lambda a: a - shift) if modifiers[0] == "to" else (lambda a: a + shift)
    return bind.pure(move, bind.target(target, kind), bind.source(source, kind))


def _build_is_in_space(instruction: Instruction, bind: Binder) -> Operation:
    """``isspacep.space p, a``: whether a generic address lies in a space."""
    space = instruction.modifiers[0].partition("::")[0]
    window = _WINDOWS[space]
    target, source = operands_of(instruction, 2)
    first = scalar(window or GLOBAL_START, U64)
    size = scalar(WINDOW_BYTES, U64)

    def inside(address: Value) -> Value:
        return (address >= first) & (address - first < size) if window else address >= first

    return bind.pure(inside, bind.target(target, PREDICATE), bind.source(source, TYPES["u64"]))


def _build_nothing(instruction: Instruction, bind: Binder) -> Operation:  # noqa: ARG001
    """Hints and fences: memory operations happen in program order anyway."""
    return _do_nothing


def _do_nothing(group: Group) -> None:
    pass


def _build_sleep(instruction: Instruction, bind: Binder) -> Operation:
    bind.effects.polls = True
    return _build_nothing(instruction, bind)


def _build_policy(instruction: Instruction, bind: Binder) -> Operation:
    """``createpolicy``: a cache policy, which means nothing here."""
    zero = bind.source(Immediate("0"), TYPES["b64"])
    return bind.pure(_same, bind.target(instruction.operands[0], TYPES["b64"]), zero)


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {
    "mov": _build_move,
    "selp": _build_select,
    "slct": _build_slct,
    "cvta": _build_convert_address,
    "isspacep": _build_is_in_space,
    "createpolicy": _build_policy,
    "nanosleep": _build_sleep,
    **dict.fromkeys(
        (
            "membar",
            "fence",
            "prefetch",
            "prefetchu",
            "discard",
            "applypriority",
            "pmevent",
            "griddepcontrol",
            "setmaxnreg",
        ),
        _build_nothing,
    ),
}
