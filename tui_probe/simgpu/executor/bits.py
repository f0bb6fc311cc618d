"""Logic, shifts and bit fields (PTX ISA reference, sections 9.7.1 and 9.7.8), dot products of bytes."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.tree import Immediate, Pair
from tui_probe.simgpu.executor.scalars import (
    PREDICATE,
    TYPES,
    U8,
    U32,
    U64,
    UNSIGNED,
    DType,
    ScalarType,
    Value,
    integer_literal,
    join_words,
    last_type,
    operands_of,
    split_words,
    types_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation
    from tui_probe.simgpu.executor.threads import ThreadGroup

_U32: Final = TYPES["u32"]
_LOP3_FUNCTIONS: Final[dict[int, Callable[[Value, Value, Value], Value]]] = {
    0x80: lambda a, b, c: a & b & c,
    0x96: lambda a, b, c: a ^ b ^ c,
    0xFE: lambda a, b, c: a | b | c,
    0xE8: lambda a, b, c: (a & b) | (a & c) | (b & c),
    0xF8: lambda a, b, c: a | (b & c),
    0xEA: lambda a, b, c: (a & b) | c,
}
"""Functions of ``lop3`` that compilers ask for most, in fewer steps, by their tables."""
_PERMUTE_MODES: Final = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}
_ONES_OF_BYTE: Final = np.array([byte.bit_count() for byte in range(256)], U8)
_ONES_OF_HALF: Final = (_ONES_OF_BYTE[:, None] + _ONES_OF_BYTE).reshape(-1)
"""A table of 16 bits: half as many look-ups as one of bytes."""
_REVERSED_BYTES: Final = np.array([int(f"{byte:08b}"[::-1], 2) for byte in range(256)], U8)


def _logic_builder(function: Callable[..., Value], count: int = 3) -> Callable[[Instruction, Binder], Operation]:
    """A builder for bitwise logic, which works on any integer type the register is kept as."""

    def build(instruction: Instruction, bind: Binder) -> Operation:
        target, *sources = operands_of(instruction, count)
        kind = integer_storage(target, last_type(instruction), bind)
        return bind.build_pure(function, bind.target(target, kind), *(bind.source(source, kind) for source in sources))

    return build


def integer_storage(target: Operand, kind: ScalarType, bind: Binder) -> ScalarType:
    """``kind`` as ``target`` is kept, unless that is a float."""
    storage = bind.stored_kind(target, kind)
    return storage if storage.dtype.kind in "iu" else kind


def _shift_left(a: Value, count: Value) -> Value:
    bits = 8 * a.dtype.itemsize
    result: Value = a << np.minimum(count, bits - 1).astype(a.dtype)
    return np.where(count < bits, result, a.dtype.type(0))


def _shift_right(a: Value, count: Value) -> Value:
    """Counts past the width give zeros, or the sign."""
    bits = 8 * a.dtype.itemsize
    result: Value = a >> np.minimum(count, bits - 1).astype(a.dtype)
    return result if a.dtype.kind == "i" else np.where(count < bits, result, a.dtype.type(0))


def _shift_builder(
    function: Callable[[Value, Value], Value], ufunc: Callable[..., Value]
) -> Callable[[Instruction, Binder], Operation]:
    def build(instruction: Instruction, bind: Binder) -> Operation:
        target, a, count = operands_of(instruction, 3)
        kind = last_type(instruction)
        if instruction.opcode == "shl":
            kind = integer_storage(target, kind, bind)
        if isinstance(count, Immediate) and 0 <= integer_literal(count.text) < kind.bits:
            # A fixed count needs no check.
            amount = bind.source(Immediate(count.text), ScalarType("", kind.kind, kind.bits, kind.dtype))
            return bind.build_pure(ufunc, bind.target(target, kind), bind.source(a, kind), amount)
        return bind.build_pure(function, bind.target(target, kind), bind.source(a, kind), bind.source(count, _U32))

    return build


def _build_funnel_shift(instruction: Instruction, bind: Binder) -> Operation:
    """``shf.l|r.clamp|wrap.b32 d, a, b, c``: shifts the 64 bits b:a, and keeps the upper (l) or lower (r) half."""
    direction, mode = instruction.modifiers[:2]

    def shift(lower: Value, upper: Value, count: Value) -> Value:
        amount = (count & np.uint32(31) if mode == "wrap" else np.minimum(count, 32)).astype(U64)
        pair = (upper.astype(U64) << np.uint64(32)) | lower.astype(U64)
        if direction == "r":
            return (pair >> amount).astype(U32)
        return ((pair << amount) >> np.uint64(32)).astype(U32)

    return _build_u32(shift, instruction, bind)


def _build_u32(function: Callable[..., Value], instruction: Instruction, bind: Binder, count: int = 4) -> Operation:
    target, *sources = operands_of(instruction, count)
    return bind.build_pure(function, bind.target(target, _U32), *(bind.source(source, _U32) for source in sources))


def _build_lop3(instruction: Instruction, bind: Binder) -> Operation:
    """``lop3.b32 d, a, b, c, table``, also ``lop3.or|and.b32 d|p, a, b, c, table, q``."""
    if instruction.modifiers != ("b32",):
        return _build_lop3_predicate(instruction, bind)
    target, a, b, c, table = operands_of(instruction, 5)
    if not isinstance(table, Immediate):
        bind.unsupported()
    function = logic_function(integer_literal(table.text))
    sources = (bind.source(a, _U32), bind.source(b, _U32), bind.source(c, _U32))
    return bind.build_pure(function, bind.target(target, _U32), *sources)


def _build_lop3_predicate(instruction: Instruction, bind: Binder) -> Operation:
    destination, a, b, c, table, q = operands_of(instruction, 6)
    if not isinstance(destination, Pair) or not isinstance(table, Immediate):
        bind.unsupported()
    function = logic_function(integer_literal(table.text))
    target, flag = bind.target(destination.first, _U32), bind.target(destination.second, PREDICATE)
    sources = (bind.source(a, _U32), bind.source(b, _U32), bind.source(c, _U32))
    condition = bind.predicate(q)
    combine = np.logical_or if instruction.modifiers[0] == "or" else np.logical_and
    bind.effects.is_pure = True

    def run(group: ThreadGroup) -> None:
        registers = group.registers
        value = function(*(source.read(registers) for source in sources))
        is_true = condition.read(registers)
        target.write(registers, value)
        flag.write(registers, combine(value != 0, is_true))

    return run


def logic_function(table: int) -> Callable[[Value, Value, Value], Value]:
    """The bitwise function of three operands whose value for bits a, b, c is bit ``4a + 2b + c`` of ``table``."""
    terms = [index for index in range(8) if table >> index & 1]

    def apply(a: Value, b: Value, c: Value) -> Value:
        result: Value = np.zeros_like(a & b & c)
        for term in terms:
            result = result | ((a if term & 4 else ~a) & (b if term & 2 else ~b) & (c if term & 1 else ~c))
        return result

    return _LOP3_FUNCTIONS.get(table, apply)


def _build_permute(instruction: Instruction, bind: Binder) -> Operation:
    """``prmt.b32{.mode} d, a, b, selector``."""
    mode = next((modifier for modifier in instruction.modifiers if modifier != "b32"), "")
    function = permute_bytes if not mode else mode_permutation(mode)
    return _build_u32(function, instruction, bind)


def permute_bytes(a: Value, b: Value, selector: Value) -> Value:
    """Each nibble of ``selector`` picks one of the 8 bytes of b:a; with its top bit, that byte's sign."""
    pair = a.astype(U64) | (b.astype(U64) << np.uint64(32))
    result: Value = np.zeros_like(a & b & selector)
    for number in range(4):
        nibble = (selector >> np.uint32(4 * number)) & np.uint32(15)
        byte = (pair >> ((nibble & np.uint32(7)) * np.uint32(8)).astype(U64)).astype(U32) & np.uint32(0xFF)
        sign = np.where(byte & np.uint32(0x80), np.uint32(0xFF), np.uint32(0))
        result = result | (np.where(nibble & np.uint32(8), sign, byte) << np.uint32(8 * number))
    return result


def mode_permutation(mode: str) -> Callable[[Value, Value, Value], Value]:
    """``prmt`` whose selector's low two bits choose one of four patterns."""
    table = np.array(_PERMUTE_MODES[mode], U32)
    return lambda a, b, c: permute_bytes(a, b, table[c & np.uint32(3)])


def extract_field(a: Value, position: Value, length: Value) -> Value:
    """``bfe``: ``length`` bits of ``a`` from ``position``, zero- or sign-extended."""
    bits = 8 * a.dtype.itemsize
    unsigned = UNSIGNED[bits]
    start = position & np.uint32(255)
    size = length & np.uint32(255)
    if a.dtype.kind == "u":
        return _shift_right(a, start) & _low_mask(size, unsigned)
    # The sign bit is the last one of the field, or of the number where the field goes past it.
    last_bit = np.minimum(start + size - np.uint32(1), np.uint32(bits - 1))
    sign = (_shift_right(a.view(unsigned), last_bit) & unsigned.type(1)) != 0
    field = _shift_right(a.view(unsigned), start)
    # Bits past the end of the number count as its sign.
    width = np.minimum(size, np.uint32(bits) - np.minimum(start, np.uint32(bits)))
    mask = _low_mask(width, unsigned)
    extended = np.where(sign, field & mask | ~mask, field & mask)
    return np.where(size == 0, unsigned.type(0), extended).view(a.dtype)


def _low_mask(length: Value, dtype: DType) -> Value:
    """Ones in the low ``length`` bits."""
    return ~_shift_left(~np.zeros_like(length, dtype), length)


def insert_field(a: Value, b: Value, position: Value, length: Value) -> Value:
    """``bfi``: ``b`` with ``length`` bits from ``position`` on replaced by the low bits of ``a``."""
    start = position & np.uint32(255)
    mask = _shift_left(_low_mask(length & np.uint32(255), a.dtype), start)
    result: Value = (_shift_left(a, start) & mask) | (b & ~mask)
    return result


def _build_field(instruction: Instruction, bind: Binder) -> Operation:
    kind = last_type(instruction)
    target, *operands = operands_of(instruction, 4 if instruction.opcode == "bfe" else 5)
    sources = [bind.source(operand, kind) for operand in operands[:-2]]
    sources += [bind.source(operand, _U32) for operand in operands[-2:]]
    function = extract_field if instruction.opcode == "bfe" else insert_field
    return bind.build_pure(function, bind.target(target, kind), *sources)


def bit_length(value: Value) -> Value:
    """The position of the highest one, plus one; 0 for 0. ``value`` is unsigned, the result uint32."""
    length = np.zeros_like(value, U32)
    remaining = value
    step = 4 * value.dtype.itemsize
    while step:
        upper_half = remaining >> value.dtype.type(step)
        is_above = upper_half != 0
        length = length + np.where(is_above, np.uint32(step), np.uint32(0))
        remaining = np.where(is_above, upper_half, remaining)
        step //= 2
    result: Value = length + (remaining != 0)
    return result.astype(U32)


def count_ones(value: Value) -> Value:
    """The number of ones, as uint32."""
    halves = _ONES_OF_HALF[value.reshape((*value.shape, 1)).view(np.uint16)]
    count: Value = reduce(np.add, np.moveaxis(halves, -1, 0)).astype(U32)
    return count


def reverse_bits(value: Value) -> Value:
    """``brev``."""
    return join_words([_REVERSED_BYTES[byte] for byte in reversed(split_words(value, U8))], value.dtype)


def _leading_zeros(value: Value) -> Value:
    result: Value = np.uint32(8 * value.dtype.itemsize) - bit_length(value)
    return result


def bit_finder(*, shift_amount: bool) -> Callable[[Value], Value]:
    """``bfind``: the position of the highest bit that is not a sign bit, all ones if there is none.

    With ``shift_amount``, by how many bits it has to be shifted to the left to be the highest.
    """

    def find(value: Value) -> Value:
        unsigned = UNSIGNED[8 * value.dtype.itemsize]
        significant = np.where(value < 0, ~value, value) if value.dtype.kind == "i" else value
        position = bit_length(significant.view(unsigned)) - np.uint32(1)
        if not shift_amount:
            return position
        return np.where(position == np.uint32(0xFFFFFFFF), position, np.uint32(8 * value.dtype.itemsize - 1) - position)

    return find


def _count_builder(function: Callable[[Value], Value]) -> Callable[[Instruction, Binder], Operation]:
    """A builder for functions of one operand whose result is a 32-bit number."""

    def build(instruction: Instruction, bind: Binder) -> Operation:
        target, source = operands_of(instruction, 2)
        kind = last_type(instruction)
        return bind.build_pure(function, bind.target(target, _U32), bind.source(source, kind))

    return build


def _build_find(instruction: Instruction, bind: Binder) -> Operation:
    return _count_builder(bit_finder(shift_amount="shiftamt" in instruction.modifiers))(instruction, bind)


def find_nth_set(mask: Value, base: Value, offset: Value) -> Value:
    """``fns``: the ``offset``-th set bit from ``base`` on, downwards if it is negative; all ones if there is none."""
    shape = np.broadcast_shapes(mask.shape, base.shape, offset.shape)
    position = np.broadcast_to(base, shape).astype(np.int64)
    remaining = np.broadcast_to(np.abs(offset.astype(np.int64)), shape).copy()
    step = np.where(offset < 0, -1, 1)
    # An offset of 0 asks for the bit at base.
    remaining[...] = np.where(offset == 0, 1, remaining)
    positions = np.full(shape, 0xFFFFFFFF, U32)
    for distance in range(32):
        is_inside = (position >= 0) & (position < 32)
        is_set = is_inside & ((mask >> np.clip(position, 0, 31).astype(U32)) & np.uint32(1) != 0)
        is_set &= (offset != 0) | (distance == 0)
        remaining = remaining - is_set
        positions = np.where(is_set & (remaining == 0), position.astype(U32), positions)
        position = position + step
    return positions


def _build_find_nth(instruction: Instruction, bind: Binder) -> Operation:
    target, mask, base, offset = operands_of(instruction, 4)
    sources = (bind.source(mask, _U32), bind.source(base, _U32), bind.source(offset, TYPES["s32"]))
    return bind.build_pure(find_nth_set, bind.target(target, _U32), *sources)


def _build_mask(instruction: Instruction, bind: Binder) -> Operation:
    """``bmsk.clamp|wrap.b32 d, a, b``: ``b`` ones from bit ``a`` on."""
    wraps = "wrap" in instruction.modifiers

    def mask(start: Value, length: Value) -> Value:
        if wraps:
            start, length = start & np.uint32(31), length & np.uint32(31)
        return _shift_left(_low_mask(length, U32), start)

    return _build_u32(mask, instruction, bind, count=3)


def _build_dot(instruction: Instruction, bind: Binder) -> Operation:
    """``dp4a.atype.btype d, a, b, c``, and ``dp2a.lo|hi``: dot products of bytes (and halfwords), plus c."""
    a_kind, b_kind = types_of(instruction, 2)
    target, a, b, c = operands_of(instruction, 4)
    result = TYPES["s32" if "s" in (a_kind.kind, b_kind.kind) else "u32"]
    has_two_products = instruction.opcode == "dp2a"
    a_part = TYPES[f"{a_kind.kind}{16 if has_two_products else 8}"].dtype
    b_part = TYPES[f"{b_kind.kind}8"].dtype
    first_part = 2 if has_two_products and "hi" in instruction.modifiers else 0

    def dot(x: Value, y: Value, total: Value) -> Value:
        x_parts = split_words(x, a_part)
        y_parts = split_words(y, b_part)[first_part:]
        products = (p.astype(np.int64) * q.astype(np.int64) for p, q in zip(x_parts, y_parts, strict=False))
        exact_sum = sum(products, start=total.astype(np.int64))
        return np.asarray(exact_sum).astype(result.dtype)

    sources = (bind.source(a, _U32), bind.source(b, _U32), bind.source(c, result))
    return bind.build_pure(dot, bind.target(target, result), *sources)


def _build_cnot(instruction: Instruction, bind: Binder) -> Operation:
    target, source = operands_of(instruction, 2)
    kind = last_type(instruction)
    return bind.build_pure(lambda a: (a == 0).astype(kind.dtype), bind.target(target, kind), bind.source(source, kind))


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {
    "and": _logic_builder(np.bitwise_and),
    "or": _logic_builder(np.bitwise_or),
    "xor": _logic_builder(np.bitwise_xor),
    "not": _logic_builder(np.invert, 2),
    "cnot": _build_cnot,
    "shl": _shift_builder(_shift_left, np.left_shift),
    "shr": _shift_builder(_shift_right, np.right_shift),
    "shf": _build_funnel_shift,
    "lop3": _build_lop3,
    "prmt": _build_permute,
    "bfe": _build_field,
    "bfi": _build_field,
    "bfind": _build_find,
    "brev": _logic_builder(reverse_bits, 2),
    "clz": _count_builder(_leading_zeros),
    "popc": _count_builder(count_ones),
    "fns": _build_find_nth,
    "bmsk": _build_mask,
    "dp4a": _build_dot,
    "dp2a": _build_dot,
}
