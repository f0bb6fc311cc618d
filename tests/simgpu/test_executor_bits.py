"""Logic, shift and bit-field instructions agree with Python's integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simgpu.device import evaluate
from tests.simgpu.reference import DTYPES, Case, bits_of, check, check_uniform, rows, wrap

if TYPE_CHECKING:
    from collections.abc import Callable


def unsigned(value: int, kind: str) -> int:
    return value & ((1 << bits_of(kind)) - 1)


def shifted_left(kind: str) -> Case:
    bits = bits_of(kind)
    return Case(f"shl.b{bits} %d, %a, %b;", f"{kind} u32", kind, lambda a, n: wrap(a << n, kind) if n < bits else 0)


def shifted_right(kind: str) -> Case:
    return Case(f"shr.{kind} %d, %a, %b;", f"{kind} u32", kind, lambda a, n: a >> min(n, 64))


def field(value: int, position: int, length: int, kind: str) -> int:
    """bfe, bit by bit as the PTX reference gives it."""
    top = bits_of(kind) - 1
    position, length = position & 255, length & 255
    is_signed = kind[0] == "s" and length > 0
    sign = (value >> min(position + length - 1, top)) & 1 if is_signed else 0
    result = 0
    for bit in range(top + 1):
        inside = bit < length and position + bit <= top
        result |= ((value >> (position + bit)) & 1 if inside else sign) << bit
    return wrap(result, kind)


def inserted(a: int, b: int, position: int, length: int, kind: str) -> int:
    """bfi, bit by bit as the PTX reference gives it."""
    top = bits_of(kind) - 1
    position, length = position & 255, length & 255
    result = b
    for bit in range(length):
        if position + bit > top:
            break
        result &= ~(1 << (position + bit))
        result |= ((a >> bit) & 1) << (position + bit)
    return result


def permuted(a: int, b: int, selector: int) -> int:
    both = (b << 32) | a
    result = 0
    for number in range(4):
        nibble = (selector >> (4 * number)) & 15
        byte = (both >> (8 * (nibble & 7))) & 255
        if nibble & 8:
            byte = 255 if byte & 128 else 0
        result |= byte << (8 * number)
    return result


def funnel(direction: str, mode: str, a: int, b: int, count: int) -> int:
    count = count & 31 if mode == "wrap" else min(count, 32)
    both = (b << 32) | a
    return (both >> count) & 0xFFFFFFFF if direction == "r" else (both << count) >> 32 & 0xFFFFFFFF


def highest(value: int) -> int:
    if value < 0:
        value = ~value
    return (value.bit_length() - 1) & 0xFFFFFFFF


def nth_set(mask: int, base: int, offset: int) -> int:
    """fns, as the PTX reference gives it."""
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    step, left, position = (1, offset, base) if offset > 0 else (-1, -offset, base)
    while 0 <= position < 32:
        left -= mask >> position & 1
        if left == 0:
            return position
        position += step
    return 0xFFFFFFFF


KINDS = ("u16", "u32", "u64")
WORDS = ("u32", "u64")
LOGIC = [
    case
    for kind in KINDS
    for case in (
        Case(f"and.b{bits_of(kind)} %d, %a, %b;", f"{kind} {kind}", kind, lambda a, b: a & b),
        Case(f"or.b{bits_of(kind)} %d, %a, %b;", f"{kind} {kind}", kind, lambda a, b: a | b),
        Case(f"xor.b{bits_of(kind)} %d, %a, %b;", f"{kind} {kind}", kind, lambda a, b: a ^ b),
        Case(f"not.b{bits_of(kind)} %d, %a;", kind, kind, lambda a, kind=kind: unsigned(~a, kind)),
        Case(f"cnot.b{bits_of(kind)} %d, %a;", kind, kind, lambda a: int(a == 0)),
    )
]
PREDICATES = [
    Case("and.pred %d, %a, %b;", "pred pred", "pred", lambda a, b: a and b),
    Case("xor.pred %d, %a, %b;", "pred pred", "pred", lambda a, b: a != b),
    Case("not.pred %d, %a;", "pred", "pred", lambda a: not a),
]
SHIFTS = [shifted_left(kind) for kind in KINDS] + [shifted_right(kind) for kind in (*KINDS, "s16", "s32", "s64")]
FUNNELS = [
    Case(
        f"shf.{direction}.{mode}.b32 %d, %a, %b, %c;",
        "u32 u32 u32",
        "u32",
        lambda a, b, c, direction=direction, mode=mode: funnel(direction, mode, a, b, c),
    )
    for direction in "lr"
    for mode in ("clamp", "wrap")
]
COUNTS = [
    case
    for kind in WORDS
    for case in (
        Case(f"clz.b{bits_of(kind)} %d, %a;", kind, "u32", lambda a, kind=kind: bits_of(kind) - a.bit_length()),
        Case(f"popc.b{bits_of(kind)} %d, %a;", kind, "u32", lambda a: a.bit_count()),
        Case(
            f"brev.b{bits_of(kind)} %d, %a;",
            kind,
            kind,
            lambda a, kind=kind: int(f"{a:0{bits_of(kind)}b}"[::-1], 2),
        ),
    )
] + [Case(f"bfind.{kind} %d, %a;", kind, "u32", lambda a: highest(a)) for kind in ("u32", "s32", "u64", "s64")]
FIELDS = [
    Case(f"bfe.{kind} %d, %a, %b, %c;", f"{kind} u32 u32", kind, lambda a, b, c, kind=kind: field(a, b, c, kind))
    for kind in ("u32", "s32", "u64", "s64")
] + [
    Case(
        f"bfi.b{bits_of(kind)} %d, %a, %b, %c, %e;",
        f"{kind} {kind} u32 u32",
        kind,
        lambda a, b, c, d, kind=kind: inserted(a, b, c, d, kind),
    )
    for kind in WORDS
]
OTHERS = [
    Case("prmt.b32 %d, %a, %b, %c;", "u32 u32 u32", "u32", permuted),
    Case("bfind.shiftamt.u32 %d, %a;", "u32", "u32", lambda a: 32 - a.bit_length() if a else 0xFFFFFFFF),
    Case(
        "and.b32 %b, %b, 31; fns.b32 %d, %a, %b, %c;",
        "u32 u32 s32",
        "u32",
        lambda a, b, c: nth_set(a, b & 31, c),
    ),
    Case(
        "and.b32 %b, %b, 31; rem.s32 %c, %c, 9; fns.b32 %d, %a, %b, %c;",
        "u32 u32 s32",
        "u32",
        lambda a, b, c: nth_set(a, b & 31, abs(c) % 9 * (1 if c >= 0 else -1)),
    ),
]


CASES = LOGIC + PREDICATES + SHIFTS + FUNNELS + COUNTS + FIELDS + OTHERS


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_value_for_all_threads(case: Case) -> None:
    check_uniform(case)


@pytest.mark.parametrize("case", CASES, ids=str)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_agrees_with_python(case: Case, data: st.DataObject) -> None:
    check(case, data.draw(rows(case.inputs)))


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_fields_at_every_position(kind: str, data: st.DataObject) -> None:
    """Positions and lengths around the width, which random words would seldom hit."""
    small = st.integers(0, 70)
    operands = data.draw(
        st.lists(st.tuples(st.integers(0, (1 << bits_of(kind)) - 1), small, small), min_size=1, max_size=12)
    )
    columns = [
        np.array(column, dtype)
        for column, dtype in zip(
            zip(*operands, strict=True), (DTYPES[f"u{bits_of(kind)}"], np.uint32, np.uint32), strict=True
        )
    ]
    result = evaluate(f"bfe.{kind} %d, %a, %b, %c;", columns, DTYPES[kind]).tolist()
    assert result == [field(a, b, c, kind) for a, b, c in operands]
    base = np.full(len(operands), 0x5A5A5A5A, columns[0].dtype)
    result = evaluate(f"bfi.b{bits_of(kind)} %d, %a, %e, %b, %c;", [*columns, base], base.dtype).tolist()
    assert result == [inserted(a, 0x5A5A5A5A, b, c, kind) for a, b, c in operands]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 255), rows("u32 u32 u32"))
def test_lop3_is_its_table(table: int, operands: list[tuple[int, int, int]]) -> None:
    columns = [np.array(column, np.uint32) for column in zip(*operands, strict=True)]
    result = evaluate(f"lop3.b32 %d, %a, %b, %c, {table:#x};", columns, np.dtype(np.uint32))
    for (a, b, c), given_ in zip(operands, result.tolist(), strict=True):
        for bit in range(32):
            index = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1)
            assert given_ >> bit & 1 == table >> index & 1


@pytest.mark.parametrize(("name", "combine"), [("or", any), ("and", all)])
def test_lop3_with_a_predicate(name: str, combine: Callable[[list[bool]], bool]) -> None:
    a = np.array([1, 0, 1, 0], np.uint32)
    flags = np.array([True, True, False, False])
    result = evaluate(f"lop3.{name}.b32 %t0|%d, %a, %a, %a, 0x80, %b;", [a, flags], np.dtype(np.bool_))
    assert result.tolist() == [combine([bool(x), bool(flag)]) for x, flag in zip(a, flags, strict=True)]


@pytest.mark.parametrize("mode", ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"])
def test_permute_modes(mode: str) -> None:
    """Bytes 0 to 7 of the operands are numbered so, and each mode picks as the PTX reference's table says."""
    patterns: dict[str, list[str]] = {
        "f4e": ["3210", "4321", "5432", "6543"],
        "b4e": ["5670", "6701", "7012", "0123"],
        "rc8": ["0000", "1111", "2222", "3333"],
        "ecl": ["3210", "3211", "3222", "3333"],
        "ecr": ["0000", "1110", "2210", "3210"],
        "rc16": ["1010", "3232", "1010", "3232"],
    }
    low = np.full(4, 0x03020100, np.uint32)
    result = evaluate(
        f"prmt.b32.{mode} %d, %a, %b, %c;", [low, low + 0x04040404, np.arange(4, dtype=np.uint32)], low.dtype
    )
    assert result.tolist() == [int("".join(f"0{digit}" for digit in pattern), 16) for pattern in patterns[mode]]


def bytes_of(value: int, kind: str, width: int = 8) -> list[int]:
    return [wrap(value >> shift, f"{kind}{width}") for shift in range(0, 32, width)]


@pytest.mark.parametrize("kinds", ["s32.s32", "u32.u32", "s32.u32", "u32.s32"])
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_dot_products(kinds: str, data: st.DataObject) -> None:
    first, second = kinds[0], kinds[4]
    result = "s32" if "s" in (first, second) else "u32"

    def four(a: int, b: int, c: int) -> int:
        return wrap(sum(p * q for p, q in zip(bytes_of(a, first), bytes_of(b, second), strict=True)) + c, result)

    def two(a: int, b: int, c: int) -> int:
        halves = bytes_of(a, first, 16)
        return wrap(sum(p * q for p, q in zip(halves, bytes_of(b, second)[2:], strict=True)) + c, result)

    inputs = f"u32 u32 {result}"
    check(Case(f"dp4a.{kinds} %d, %a, %b, %c;", inputs, result, four), data.draw(rows(inputs)))
    check(Case(f"dp2a.hi.{kinds} %d, %a, %b, %c;", inputs, result, two), data.draw(rows(inputs)))


@pytest.mark.parametrize(
    ("mode", "start", "length"), [("clamp", 4, 8), ("clamp", 40, 8), ("clamp", 28, 8), ("wrap", 36, 8)]
)
def test_bit_masks(mode: str, start: int, length: int) -> None:
    operands = [np.array([value], np.uint32) for value in (start, length)]
    found: Any = evaluate(f"bmsk.{mode}.b32 %d, %a, %b;", operands, np.dtype(np.uint32))[0]
    position = start & 31 if mode == "wrap" else start
    assert found == (((1 << length) - 1) << position) & 0xFFFFFFFF
