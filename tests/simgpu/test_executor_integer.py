"""Integer instructions agree with Python's integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simgpu.device import evaluate
from tests.simgpu.reference import Case, bits_of, check, check_uniform, clamp, rows, wrap

TYPES = ("u16", "s16", "u32", "s32", "u64", "s64")


def quotient(a: int, b: int) -> int:
    """Towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def divided(a: int, b: int) -> int:
    return quotient(a, b) if b else -1


def left_over(a: int, b: int) -> int:
    return a - quotient(a, b) * b if b else a


def wide(kind: str) -> str:
    return f"{kind[0]}{2 * bits_of(kind)}"


def arithmetic(kind: str) -> list[Case]:
    bits = bits_of(kind)
    two, three = f"{kind} {kind}", f"{kind} {kind} {kind}"

    def of(instruction: str, inputs: str, expected: object) -> Case:
        function = expected
        return Case(instruction, inputs, kind, lambda *row: wrap(function(*row), kind))  # type: ignore[operator]

    cases = [
        of(f"add.{kind} %d, %a, %b;", two, lambda a, b: a + b),
        of(f"sub.{kind} %d, %a, %b;", two, lambda a, b: a - b),
        of(f"mul.lo.{kind} %d, %a, %b;", two, lambda a, b: a * b),
        of(f"mul.hi.{kind} %d, %a, %b;", two, lambda a, b: (a * b) >> bits),
        of(f"mad.lo.{kind} %d, %a, %b, %c;", three, lambda a, b, c: a * b + c),
        of(f"mad.hi.{kind} %d, %a, %b, %c;", three, lambda a, b, c: ((a * b) >> bits) + c),
        of(f"div.{kind} %d, %a, %b;", two, divided),
        of(f"rem.{kind} %d, %a, %b;", two, left_over),
        of(f"min.{kind} %d, %a, %b;", two, min),
        of(f"max.{kind} %d, %a, %b;", two, max),
        of(f"sad.{kind} %d, %a, %b, %c;", three, lambda a, b, c: abs(a - b) + c),
    ]
    if bits < 64:
        double = wide(kind)
        cases += [
            Case(f"mul.wide.{kind} %d, %a, %b;", two, double, lambda a, b: a * b),
            Case(
                f"mad.wide.{kind} %d, %a, %b, %c;",
                f"{two} {double}",
                double,
                lambda a, b, c: wrap(a * b + c, double),
            ),
        ]
    if kind[0] == "s":
        cases += [of(f"neg.{kind} %d, %a;", kind, lambda a: -a), of(f"abs.{kind} %d, %a;", kind, abs)]
    return cases


def low24(value: int, kind: str) -> int:
    value &= 0xFFFFFF
    return value - (1 << 24) if kind == "s32" and value >> 23 else value


SATURATING = [
    Case("add.sat.s32 %d, %a, %b;", "s32 s32", "s32", lambda a, b: clamp(a + b, "s32")),
    Case("sub.sat.s32 %d, %a, %b;", "s32 s32", "s32", lambda a, b: clamp(a - b, "s32")),
    Case("mad.hi.sat.s32 %d, %a, %b, %c;", "s32 s32 s32", "s32", lambda a, b, c: clamp(((a * b) >> 32) + c, "s32")),
]
NARROW = [
    Case(
        f"mul24.{part}.{kind} %d, %a, %b;",
        f"{kind} {kind}",
        kind,
        lambda a, b, kind=kind, shift=shift: wrap((low24(a, kind) * low24(b, kind)) >> shift, kind),
    )
    for kind in ("u32", "s32")
    for part, shift in (("lo", 0), ("hi", 16))
] + [
    Case(
        "mad24.lo.s32 %d, %a, %b, %c;",
        "s32 s32 s32",
        "s32",
        lambda a, b, c: wrap(low24(a, "s32") * low24(b, "s32") + c, "s32"),
    )
]


CASES = [case for kind in TYPES for case in arithmetic(kind)] + SATURATING + NARROW


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_value_for_all_threads(case: Case) -> None:
    check_uniform(case)


@pytest.mark.parametrize("case", CASES, ids=str)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_arithmetic(case: Case, data: st.DataObject) -> None:
    check(case, data.draw(rows(case.inputs)))


@settings(max_examples=15, deadline=None)
@given(rows("u64 u64 u64 u64"))
def test_carries_make_sums_of_any_width(operands: list[tuple[int, int, int, int]]) -> None:
    """128-bit numbers as two 64-bit halves; first the low half of the result, then the high one."""
    inputs = [np.array(column, np.uint64) for column in zip(*operands, strict=True)]
    for first, second, function in (("add.cc", "addc", int.__add__), ("sub.cc", "subc", int.__sub__)):
        low = evaluate(f"{first}.u64 %d, %a, %c; {second}.u64 %b, %b, %e;", inputs, np.dtype(np.uint64))
        high = evaluate(f"{first}.u64 %a, %a, %c; {second}.u64 %d, %b, %e;", inputs, np.dtype(np.uint64))
        for (a, b, c, e), low_half, high_half in zip(operands, low.tolist(), high.tolist(), strict=True):
            exact = function((b << 64) + a, (e << 64) + c) % (1 << 128)
            assert (high_half << 64) + low_half == exact


@settings(max_examples=15, deadline=None)
@given(rows("u32 u32 u32 u32"))
def test_products_of_two_words_with_carries(operands: list[tuple[int, int, int, int]]) -> None:
    """a·b + (e:c), by mad.lo.cc and madc.hi."""
    inputs = [np.array(column, np.uint32) for column in zip(*operands, strict=True)]
    program = "mad.lo.cc.u32 %t0, %a, %b, %c; madc.hi.u32 %t1, %a, %b, %e; mov.b64 %d, {%t0, %t1};"
    result = evaluate(program, inputs, np.dtype(np.uint64))
    assert result.tolist() == [(a * b + (e << 32) + c) % (1 << 64) for a, b, c, e in operands]


def test_the_carry_of_one_thread_is_not_that_of_another() -> None:
    a = np.array([0xFFFFFFFF, 1, 0xFFFFFFFF], np.uint32)
    result = evaluate("add.cc.u32 %t0, %a, 1; addc.u32 %d, 0, 0;", [a], np.dtype(np.uint32))
    assert result.tolist() == [1, 0, 1]


def test_a_difference_leaves_the_carry_of_the_machine() -> None:
    """As ptxas has it: a - b is a + ~b + 1, and its carry, which ``addc`` takes, is 1 where nothing was borrowed."""
    a, b = np.array([0, 1, 5, 5], np.uint32), np.array([1, 0, 5, 6], np.uint32)
    result = evaluate("sub.cc.u32 %t0, %a, %b; addc.u32 %d, 0, 0;", [a, b], np.dtype(np.uint32))
    assert result.tolist() == [0, 1, 1, 0]
    result = evaluate("add.cc.u32 %t0, %a, %b; subc.u32 %d, 7, 0;", [a, ~b], np.dtype(np.uint32))
    assert result.tolist() == [6, 7, 6, 6]  # 0 + ~1, 1 + ~0, 5 + ~5 and 5 + ~6: one carries


@settings(max_examples=10, deadline=None)
@given(rows("u32 u32"))
def test_halfwords_side_by_side(operands: list[tuple[int, int]]) -> None:
    """``.u16x2`` and ``.s16x2`` work on both halves of a register."""
    columns = [np.array(column, np.uint32) for column in zip(*operands, strict=True)]
    a, b = (column.view(np.uint16) for column in columns)
    assert (evaluate("add.u16x2 %d, %a, %b;", columns, columns[0].dtype).view(np.uint16) == a + b).all()
    largest = evaluate("max.s16x2 %d, %a, %b;", columns, columns[0].dtype)
    assert (largest.view(np.int16) == np.maximum(a.view(np.int16), b.view(np.int16))).all()


def test_division_by_zero_does_not_stop_the_kernel() -> None:
    a = np.array([7, -7], np.int32)
    zero = np.zeros(2, np.int32)
    assert evaluate("div.s32 %d, %a, %b;", [a, zero], a.dtype).tolist() == [-1, -1]
    assert evaluate("rem.s32 %d, %a, %b;", [a, zero], a.dtype).tolist() == [7, -7]
