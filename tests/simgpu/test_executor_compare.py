"""Comparisons, also of numbers with NaN, and moves between registers of different widths."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simgpu.device import evaluate
from tests.simgpu.reference import Case, check, check_uniform, rows

if TYPE_CHECKING:
    from collections.abc import Callable

ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
COMBINATIONS: dict[str, Callable[[bool, bool], bool]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}


def of_numbers(name: str) -> Callable[[float, float], bool]:
    """A comparison of floats: without NaN as usual; with NaN the plain ones fail and those ending in u hold."""
    plain = name.removesuffix("u") if name not in ORDERED else name

    def compare(a: float, b: float) -> bool:
        unordered = math.isnan(a) or math.isnan(b)
        if name in ("num", "nan"):
            return unordered == (name == "nan")
        return name.endswith("u") if unordered else ORDERED[plain](a, b)

    return compare


INTEGERS = [
    Case(f"setp.{name}.{kind} %d, %a, %b;", f"{kind} {kind}", "pred", ORDERED[UNSIGNED.get(name, name)])
    for kind in ("u16", "s16", "u32", "s32", "u64", "s64")
    for name in (*ORDERED, *(UNSIGNED if kind[0] == "u" else ()))
]
FLOATS = [
    Case(f"setp.{name}.{kind} %d, %a, %b;", f"{kind} {kind}", "pred", of_numbers(name))
    for kind in ("f16", "f32", "f64")
    for name in (*ORDERED, *(f"{name}u" for name in ORDERED), "num", "nan")
]


@pytest.mark.parametrize("case", INTEGERS + FLOATS, ids=str)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_comparisons(case: Case, data: st.DataObject) -> None:
    kind = case.inputs.split()[0]
    given_ = data.draw(rows(case.inputs))
    # Random numbers are seldom equal.
    check(case, [*given_, *((first, first) for first, _ in given_)])
    if kind[0] == "f":
        check(case, [(math.nan, first) for first, _ in given_] + [(1.0, math.nan), (math.nan, math.nan)])


@pytest.mark.parametrize("case", INTEGERS[::3] + FLOATS[::3], ids=str)
def test_comparisons_of_one_value_for_all_threads(case: Case) -> None:
    check_uniform(case)


@pytest.mark.parametrize("name", COMBINATIONS)
def test_combinations_and_opposites(name: str) -> None:
    """``setp.lt.and p|q, a, b, c``: p is (a < b) and c, q is not (a < b) and c."""
    combine = COMBINATIONS[name]
    a, b = np.array([1, 2, 1, 2], np.int32), np.array([2, 1, 2, 1], np.int32)
    c = np.array([True, True, False, False])
    for negation, sign in (("", False), ("!", True)):
        given_ = [bool(x) != sign for x in c]
        first = evaluate(f"setp.lt.{name}.s32 %d|%p1, %a, %b, {negation}%c;", [a, b, c], np.dtype(np.bool_))
        second = evaluate(f"setp.lt.{name}.s32 %p1|%d, %a, %b, {negation}%c;", [a, b, c], np.dtype(np.bool_))
        less = (a < b).tolist()
        assert first.tolist() == [combine(p, q) for p, q in zip(less, given_, strict=True)]
        assert second.tolist() == [combine(not p, q) for p, q in zip(less, given_, strict=True)]


def test_set_gives_masks_and_ones() -> None:
    a, b = np.array([1, 5, 3], np.float32), np.array([2, 5, np.nan], np.float32)
    assert evaluate("set.lt.u32.f32 %d, %a, %b;", [a, b], np.dtype(np.uint32)).tolist() == [0xFFFFFFFF, 0, 0]
    assert evaluate("set.geu.f32.f32 %d, %a, %b;", [a, b], np.dtype(np.float32)).tolist() == [0, 1, 1]
    c = np.array([True, False, True])
    assert evaluate("set.le.xor.s32.f32 %d, %a, %b, %c;", [a, b, c], np.dtype(np.int32)).tolist() == [0, -1, -1]


def test_comparisons_of_pairs() -> None:
    a = np.array([[1, 2], [3, np.nan]], np.float16).view(np.uint32)[:, 0]
    b = np.array([[2, 1], [3, 0]], np.float16).view(np.uint32)[:, 0]
    low = evaluate("setp.le.f16x2 %d|%p1, %a, %b;", [a, b], np.dtype(np.bool_))
    high = evaluate("setp.le.f16x2 %p1|%d, %a, %b;", [a, b], np.dtype(np.bool_))
    assert (low.tolist(), high.tolist()) == ([True, True], [False, False])
    masks = evaluate("set.gt.u32.f16x2 %d, %a, %b;", [a, b], np.dtype(np.uint32))
    assert masks.tolist() == [0xFFFF0000, 0]


def test_flushed_comparisons() -> None:
    tiny = np.array([1e-40], np.float32)
    zero = np.zeros(1, np.float32)
    assert evaluate("setp.eq.ftz.f32 %d, %a, %b;", [tiny, zero], np.dtype(np.bool_)).tolist() == [True]
    assert evaluate("setp.eq.f32 %d, %a, %b;", [tiny, zero], np.dtype(np.bool_)).tolist() == [False]


WORD = "u64"


@pytest.mark.parametrize(
    "case",
    [
        Case("mov.b64 {%t0, %t1}, %a; mov.b64 %d, {%t1, %t0};", WORD, WORD, lambda a: a >> 32 | (a & 0xFFFFFFFF) << 32),
        Case(
            ".reg .b16 %h<4>; mov.b64 {%h0, %h1, %h2, %h3}, %a; mov.b64 %d, {%h3, %h2, %h1, %h0};",
            WORD,
            WORD,
            lambda a: int.from_bytes(np.array([a], np.uint64).view(np.uint16)[::-1].tobytes(), "little"),
        ),
        Case(
            ".reg .b16 %h<2>; mov.b32 {%h0, _}, %a; mov.b32 {_, %h1}, %a; mov.b32 %d, {%h1, %h0};",
            "u32",
            "u32",
            lambda a: a >> 16 | (a & 0xFFFF) << 16,
        ),
        Case(".reg .b128 %w; mov.b128 %w, {%a, %b}; mov.b128 {_, %d}, %w;", "u64 u64", WORD, lambda _a, b: b),
        Case("mov.b32 %d, 0f3FC00000;", "u32", "u32", lambda _: 0x3FC00000),
        Case("mov.u32 %d, -1;", "u32", "u32", lambda _: 0xFFFFFFFF),
        Case("cvt.u16.u32 %d, %a;", "u32", "u16", lambda a: a & 0xFFFF),
        Case("selp.b32 %d, %a, 0x10, %b;", "u32 pred", "u32", lambda a, b: a if b else 16),
        Case(
            "mov.pred %p0, %a; @!%p0 mov.u32 %d, %b; @%p0 mov.u32 %d, 5;", "pred u32", "u32", lambda a, b: 5 if a else b
        ),
    ],
    ids=str,
)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_moves(case: Case, data: st.DataObject) -> None:
    check(case, data.draw(rows(case.inputs)))
