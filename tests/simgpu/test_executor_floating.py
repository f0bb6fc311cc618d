"""Floating-point instructions round as IEEE 754 says, checked with rational numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.simgpu.device import evaluate
from tests.simgpu.reference import DTYPES, Case, check, check_uniform, rational, rounded, rows, values

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

MODES = ("rn", "rz", "rm", "rp")


def finite(kind: str) -> st.SearchStrategy[float]:
    """Numbers, many of them of few bits, so that sums cancel and land halfway."""
    width = int(kind[1:])
    short = st.builds(math.ldexp, st.integers(-255, 255), st.integers(-20, 5) if width == 16 else st.integers(-40, 40))
    return short | values(kind).filter(math.isfinite)


def operands(kind: str, count: int) -> st.SearchStrategy[list[tuple[float, ...]]]:
    return st.lists(st.tuples(*[finite(kind)] * count), min_size=1, max_size=12)


def columns(given_: list[tuple[float, ...]], kind: str) -> list[np.ndarray[Any, Any]]:
    with np.errstate(over="ignore"):
        return [np.array(column, DTYPES[kind]) for column in zip(*given_, strict=True)]


def agree(
    instruction: str, given_: list[tuple[float, ...]], kind: str, exact: Callable[..., Fraction], mode: str = "rn"
) -> None:
    """The instruction gives the exact result, rounded. Signs of zeros are not compared."""
    inputs = columns(given_, kind)
    result = evaluate(instruction, inputs, DTYPES[kind]).astype(np.float64)
    for row, value in zip(zip(*inputs, strict=True), result.tolist(), strict=True):
        if all(np.isfinite(operand) for operand in row):
            wanted = rounded(exact(*(rational(operand) for operand in row)), kind, mode)
            assert value == wanted, f"{instruction} of {row}"


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=20, deadline=None)
@given(operands("f32", 3))
@example(
    [(1.0 + 2**-23, 1.0 + 2**-23, 2**-60), (1.0 + 2**-12, 1.0 + 2**-12, -(2.0**-80)), (2.0**-100, 2.0**-40, 2.0**-149)]
)
@example([(2**-12 * (1 + 2**-23), 2**-12 * (1 - 2**-23), 1 + 2**-23)])
@example([(2.0**-75 * (1 + 2**-23), 2.0**-75, 2.0**-149)])
@example([(2.0**-75, 2.0**-75, 0.0), (3e38, 3e38, 0.0), (-(2.0**-75), 2.0**-75, 2.0**-149), (0.0, 5.0, 0.0)])
def test_single_precision_is_rounded_once(mode: str, given_: list[tuple[float, ...]]) -> None:
    agree(f"fma.{mode}.f32 %d, %a, %b, %c;", given_, "f32", lambda a, b, c: a * b + c, mode)
    agree(f"add.{mode}.f32 %d, %a, %b;", [row[:2] for row in given_], "f32", lambda a, b: a + b, mode)
    agree(f"sub.{mode}.f32 %d, %a, %b;", [row[:2] for row in given_], "f32", lambda a, b: a - b, mode)
    agree(f"mul.{mode}.f32 %d, %a, %b;", [row[:2] for row in given_], "f32", lambda a, b: a * b, mode)


@settings(max_examples=20, deadline=None)
@given(operands("f64", 3))
@example([(1.0 + 2**-52, 1.0 + 2**-52, 2.0**-110), (1e300, 1e10, -1e308), (2.0**-600, 2.0**-600, 5e-324)])
@example([(2.0**-1000, 2.0**-74, 2.0**-1074), (1.7e308, 2.0, -1.7e308), (0.0, 1.0, 0.1)])
def test_double_precision_fma_is_rounded_once(given_: list[tuple[float, ...]]) -> None:
    agree("fma.rn.f64 %d, %a, %b, %c;", given_, "f64", lambda a, b, c: a * b + c)


@settings(max_examples=15, deadline=None)
@given(operands("f16", 3))
@example([(1.0009765625, 1.0009765625, 2.0**-24), (2.0**-12, 2.0**-13, 1.0), (60000.0, 2.0, 0.0)])
def test_half_precision_is_rounded_once(given_: list[tuple[float, ...]]) -> None:
    agree("fma.rn.f16 %d, %a, %b, %c;", given_, "f16", lambda a, b, c: a * b + c)
    agree("add.f16 %d, %a, %b;", [row[:2] for row in given_], "f16", lambda a, b: a + b)
    agree("mul.f16 %d, %a, %b;", [row[:2] for row in given_], "f16", lambda a, b: a * b)


@settings(max_examples=15, deadline=None)
@given(operands("f32", 3))
@example([(1.0078125, 1.0078125, 2.0**-30), (1.0, 1.0, 2.0**-100), (3.3e38, 2.0, 0.0)])
def test_bfloat16_is_rounded_once(given_: list[tuple[float, ...]]) -> None:
    """Each operand is cut to bfloat16 first; the result comes back as its bits."""
    inputs = [(column.view(np.uint32) >> 16).astype(np.uint16) for column in columns(given_, "f32")]
    numbers = [(column.astype(np.uint32) << 16).view(np.float32) for column in inputs]
    result = evaluate("fma.rn.bf16 %d, %a, %b, %c;", inputs, np.dtype(np.uint16))
    for row, value in zip(zip(*numbers, strict=True), (result.astype(np.uint32) << 16).view(np.float32), strict=True):
        a, b, c = (rational(operand) for operand in row)
        assert float(value) == rounded(a * b + c, "bf16")


@settings(max_examples=15, deadline=None)
@given(operands("f32", 2))
def test_division_and_roots_are_correctly_rounded(given_: list[tuple[float, ...]]) -> None:
    nonzero = [row for row in given_ if row[1] and row[0]] or [(1.0, 3.0)]
    agree("div.rn.f32 %d, %a, %b;", nonzero, "f32", lambda a, b: a / b)
    agree("rcp.rn.f32 %d, %b;", nonzero, "f32", lambda a, b: 1 / b)  # noqa: ARG005
    roots = evaluate("abs.f32 %a, %a; sqrt.rn.f32 %d, %a;", columns(nonzero, "f32")[:1], DTYPES["f32"])
    assert roots.tolist() == np.sqrt(np.abs(columns(nonzero, "f32")[0])).tolist()


@pytest.mark.parametrize("kind", ["f32", "f64", "f16"])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_minimum_and_maximum_prefer_numbers_to_nan(kind: str, data: st.DataObject) -> None:
    def least(a: float, b: float) -> float:
        return b if math.isnan(a) else a if math.isnan(b) else min(a, b)

    def most(a: float, b: float) -> float:
        return b if math.isnan(a) else a if math.isnan(b) else max(a, b)

    two = f"{kind} {kind}"
    given_ = data.draw(rows(two))
    check(Case(f"min.{kind} %d, %a, %b;", two, kind, least), given_)
    check(Case(f"max.{kind} %d, %a, %b;", two, kind, most), given_)


def test_zeros_have_an_order() -> None:
    zeros = [np.array([0.0, -0.0], np.float32), np.array([-0.0, 0.0], np.float32)]
    assert np.signbit(evaluate("min.f32 %d, %a, %b;", zeros, np.dtype(np.float32))).all()
    assert not np.signbit(evaluate("max.f32 %d, %a, %b;", zeros, np.dtype(np.float32))).any()


def test_nan_modifier_keeps_nan() -> None:
    operands_ = [np.array([np.nan, 1.0], np.float32), np.array([2.0, np.nan], np.float32)]
    assert np.isnan(evaluate("max.NaN.f32 %d, %a, %b;", operands_, np.dtype(np.float32))).all()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ex2.approx.f32": np.exp2,
    "lg2.approx.f32": np.log2,
    "sin.approx.f32": np.sin,
    "cos.approx.f32": np.cos,
    "tanh.approx.f32": np.tanh,
    "sqrt.approx.f32": np.sqrt,
    "rsqrt.approx.f32": lambda value: 1 / np.sqrt(value),
    "rcp.approx.f32": lambda value: 1 / value,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_near_those_of_numpy(name: str) -> None:
    values = np.linspace(0.01, 30, 1000).astype(np.float32)
    result = evaluate(f"{name} %d, %a;", [values], values.dtype)
    np.testing.assert_allclose(result, FUNCTIONS[name](values.astype(np.float64)), rtol=2e-7, atol=1e-7)


def test_special_values_of_functions() -> None:
    inf, nan = np.inf, np.nan
    values = np.array([0.0, inf, -inf, nan], np.float32)

    def of(name: str) -> list[float]:
        return evaluate(f"{name} %d, %a;", [values], values.dtype).tolist()

    assert str(of("ex2.approx.f32")) == str([1.0, inf, 0.0, nan])
    assert str(of("lg2.approx.f32")) == str([-inf, inf, nan, nan])
    assert str(of("rcp.approx.f32")) == str([inf, 0.0, -0.0, nan])


def test_flush_to_zero_and_saturation() -> None:
    values = np.array([1e-40, -1e-40, 0.5, 2.0, -3.0, np.nan], np.float32)
    ones = np.ones_like(values)
    flushed = evaluate("mul.ftz.f32 %d, %a, %b;", [values, ones], values.dtype)
    assert flushed[:3].tolist() == [0.0, 0.0, 0.5]
    assert np.signbit(flushed[:2]).tolist() == [False, True]
    assert evaluate("mul.f32 %d, %a, %b;", [values, ones], values.dtype)[0] != 0
    assert evaluate("add.sat.f32 %d, %a, 0f00000000;", [values], values.dtype)[2:].tolist() == [0.5, 1.0, 0.0, 0.0]
    rectified = evaluate(
        "fma.rn.relu.f16 %d, %a, %b, %b;", [np.array([-3, 3], np.float16), np.ones(2, np.float16)], np.dtype(np.float16)
    )
    assert rectified.tolist() == [0.0, 4.0]


def test_halves_in_pairs() -> None:
    pairs = np.array([[1.5, -2.0], [4.0, 0.25], [65504.0, -0.0]], np.float16)
    packed = pairs.copy().view(np.uint32)[:, 0]
    total = evaluate("fma.rn.f16x2 %d, %a, %a, %a;", [packed], np.dtype(np.uint32))
    with np.errstate(over="ignore"):
        wanted = (pairs.astype(np.float32) ** 2 + pairs.astype(np.float32)).astype(np.float16)
    assert total.view(np.float16).reshape(-1, 2).tolist() == wanted.tolist()
    assert (
        evaluate("neg.f16x2 %d, %a;", [packed], np.dtype(np.uint32)).view(np.float16).tolist()
        == (-pairs).reshape(-1).tolist()
    )
    assert evaluate("abs.bf16x2 %d, %a;", [np.array([0xBF80C000], np.uint32)], np.dtype(np.uint32)).tolist() == [
        0x3F804000
    ]


def brain(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return (bits.astype(np.uint32) << 16).view(np.float32)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF)), min_size=1, max_size=20))
@example([(0x0000, 0x7F80), (0x7F80, 0xFF80), (0x7FC0, 0x0001)])
def test_arithmetic_of_bfloat16(given_: list[tuple[int, int]]) -> None:
    inputs = [np.array(column, np.uint16) for column in zip(*given_, strict=True)]
    with np.errstate(invalid="ignore"):  # of NaNs that signal
        a, b = (brain(column).astype(np.float64) for column in inputs)
    number = np.isfinite(a) & np.isfinite(b)
    with np.errstate(invalid="ignore"):  # as infinity times zero, which is not compared
        exact = {"add": a + b, "sub": a - b, "mul": a * b, "min": np.fmin(a, b), "max": np.fmax(a, b)}
    for name, results in exact.items():
        result = brain(evaluate(f"{name}.bf16 %d, %a, %b;", inputs, inputs[0].dtype))
        expected = [rounded(rational(value), "bf16") for value in results[number]]
        assert result[number].tolist() == expected, name
    less = evaluate("setp.lt.bf16 %d, %a, %b;", inputs, np.dtype(np.bool_))
    assert less.tolist() == (a < b).tolist()
    assert (brain(evaluate("neg.bf16 %d, %a;", inputs[:1], inputs[0].dtype))[number] == -a[number]).all()
    truncated = evaluate("cvt.rzi.s32.bf16 %d, %a;", inputs[:1], np.dtype(np.int32))
    assert (truncated[number] == np.clip(np.trunc(a[number]), -(2.0**31), 2.0**31 - 1)).all()


def test_integers_to_bfloat16_are_rounded_once() -> None:
    values_ = np.array([1, 257, 258, 259, -16777217, 2**31 - 1, 33685505], np.int32)
    result = brain(evaluate("cvt.rn.bf16.s32 %d, %a;", [values_], np.dtype(np.uint16)))
    assert result.tolist() == [rounded(rational(value), "bf16") for value in values_]


def test_signs_and_classes() -> None:
    a, b = np.array([-1.0, 2.0], np.float32), np.array([5.0, -6.0], np.float32)
    assert evaluate("copysign.f32 %d, %a, %b;", [a, b], a.dtype).tolist() == [-5.0, 6.0]
    values = np.array([0.0, 1e-40, 1.0, np.inf, np.nan], np.float32)
    expected = {
        "finite": [True, True, True, False, False],
        "infinite": [False, False, False, True, False],
        "number": [True, True, True, True, False],
        "notanumber": [False, False, False, False, True],
        "normal": [False, False, True, False, False],
        "subnormal": [False, True, False, False, False],
    }
    for name, wanted in expected.items():
        assert evaluate(f"testp.{name}.f32 %d, %a;", [values], np.dtype(np.bool_)).tolist() == wanted


def single(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of doubles, rounded to single precision after its operands are."""
    return lambda *values: np.float32(function(*(np.float64(np.float32(value)) for value in values)))


UNIFORM = [
    Case("fma.rn.f32 %d, %a, %b, %c;", "f32 f32 f32", "f32", single(lambda a, b, c: a * b + c)),
    Case("fma.rn.ftz.f32 %d, %a, %b, %c;", "f32 f32 f32", "f32", single(lambda a, b, c: a * b + c)),
    Case("fma.rz.f32 %d, %a, %b, %c;", "f32 f32 f32", "f32", lambda *row: rounded_product(row, "rz")),
    Case(
        "fma.rn.f64 %d, %a, %b, %c;",
        "f64 f64 f64",
        "f64",
        lambda a, b, c: rounded(rational(a) * rational(b) + rational(c), "f64"),
    ),
    Case("add.sat.f32 %d, %a, %b;", "f32 f32", "f32", lambda a, b: min(max(np.float32(a) + np.float32(b), 0), 1)),
    Case("div.rn.f32 %d, %a, %b;", "f32 f32", "f32", lambda a, b: np.float32(a) / np.float32(b)),
    Case("min.f32 %d, %a, %b;", "f32 f32", "f32", min),
    Case("copysign.f64 %d, %a, %b;", "f64 f64", "f64", lambda a, b: math.copysign(b, a)),
    Case("abs.f16 %d, %a;", "f16", "f16", abs),
    Case(
        "fma.rn.f16 %d, %a, %b, %b;",
        "f16 f16",
        "f16",
        lambda a, b: np.float16(np.float64(np.float16(a)) * np.float16(b) + np.float16(b)),
    ),
    Case("abs.f32 %a, %a; ex2.approx.ftz.f32 %d, %a;", "f32", "f32", single(lambda a: np.exp2(abs(a)))),
    Case("cvt.rn.f32.f64 %d, %a;", "f64", "f32", np.float32),
    Case("cvt.rm.f32.f64 %d, %a;", "f64", "f32", lambda a: rounded(rational(a), "f32", "rm")),
    Case("cvt.rzi.s32.f32 %d, %a;", "f32", "s32", math.trunc),
    Case("cvt.rn.f32.s32 %d, %a;", "s32", "f32", np.float32),
    Case("setp.lt.f32 %d, %a, %b;", "f32 f32", "pred", lambda a, b: a < b),
    Case("setp.geu.and.f32 %d|%p1, %a, %b, %c;", "f32 f32 pred", "pred", lambda a, b, c: a >= b and c),
    Case("selp.f32 %d, %a, %b, %c;", "f32 f32 pred", "f32", lambda a, b, c: a if c else b),
    Case("slct.f32.s32 %d, %a, %b, %c;", "f32 f32 s32", "f32", lambda a, b, c: a if c >= 0 else b),
    Case("set.gt.u32.f32 %d, %a, %b;", "f32 f32", "u32", lambda a, b: 0xFFFFFFFF if a > b else 0),
    Case("mov.b64 %d, {%a, %b};", "u32 u32", "u64", lambda a, b: b << 32 | a),
    Case("mov.b64 {%t0, %d}, %a;", "u64", "u32", lambda a: a >> 32),
    Case(
        "setp.ne.u32 %p1, %b, 33; mov.u32 %d, 7; @%p1 add.u32 %d, %a, 1;",
        "u32 u32",
        "u32",
        lambda a, b: 7 if b == 33 else (a + 1) % 2**32,
    ),
]


def rounded_product(row: tuple[float, ...], mode: str) -> float:
    a, b, c = (rational(np.float32(value)) for value in row)
    return rounded(a * b + c, "f32", mode)


@pytest.mark.parametrize("case", UNIFORM, ids=str)
def test_one_value_for_all_threads(case: Case) -> None:
    check_uniform(case)


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@settings(max_examples=20, deadline=None)
@given(operands("f64", 3))
@example(
    [(1.0, 2**-60, -1.0), (1.7e308, 1.7e308, -1.7e308), (5e-324, 0.5, 5e-324), (-5e-324, 0.5, 0.0), (3.0, 7.0, 0.1)]
)
def test_directed_double_precision(mode: str, given_: list[tuple[float, ...]]) -> None:
    pairs_ = [row[:2] for row in given_]
    agree(f"fma.{mode}.f64 %d, %a, %b, %c;", given_, "f64", lambda a, b, c: a * b + c, mode)
    agree(f"add.{mode}.f64 %d, %a, %b;", pairs_, "f64", lambda a, b: a + b, mode)
    agree(f"sub.{mode}.f64 %d, %a, %b;", pairs_, "f64", lambda a, b: a - b, mode)
    agree(f"mul.{mode}.f64 %d, %a, %b;", pairs_, "f64", lambda a, b: a * b, mode)


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_directed_quotients_and_roots(kind: str, mode: str, data: st.DataObject) -> None:
    given_ = [row for row in data.draw(operands(kind, 2)) if columns([row], kind)[1][0]]
    if not given_:
        return
    agree(f"div.{mode}.{kind} %d, %a, %b;", given_, kind, lambda a, b: a / b, mode)
    agree(f"rcp.{mode}.{kind} %d, %b;", given_, kind, lambda _, b: 1 / b, mode)
    (squares,) = columns([(abs(row[0]),) for row in given_], kind)
    roots = evaluate(f"sqrt.{mode}.{kind} %d, %a;", [squares], DTYPES[kind])
    for square, root in zip(squares, roots, strict=True):
        above = np.nextafter(root, DTYPES[kind].type(np.inf))
        below = np.nextafter(root, DTYPES[kind].type(0))
        if mode == "rp":
            assert rational(root) ** 2 >= rational(square), "not below the root, and the next one is"
            assert not root or rational(below) ** 2 < rational(square)
        else:
            assert rational(root) ** 2 <= rational(square) < rational(above) ** 2


def test_sums_that_cancel_are_minus_zero_when_rounding_down() -> None:
    one, other = np.array([1.0, 0.0, 0.0, -0.0]), np.array([-1.0, -0.0, 0.0, -0.0])
    for instruction in ("add.rm.f64 %d, %a, %b;", "fma.rm.f64 %d, %a, 0d3FF0000000000000, %b;"):
        result = evaluate(instruction, [one, other], np.dtype(np.float64))
        assert np.signbit(result).tolist() == [True, True, False, True]
        short = instruction.replace("f64", "f32").replace("0d3FF0000000000000", "0f3F800000")
        result = evaluate(short, [one.astype(np.float32), other.astype(np.float32)], np.dtype(np.float32))
        assert np.signbit(result).tolist() == [True, True, False, True]


def brains(*numbers: float) -> np.ndarray[Any, Any]:
    return (np.array(numbers, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def test_extremes_of_bfloat16_and_of_sizes() -> None:
    a, b = brains(1, math.nan, -3, 2, math.nan), brains(2, 1, -4, math.nan, math.nan)
    smaller = evaluate("min.bf16 %d, %a, %b;", [a, b], np.dtype(np.uint16))
    assert smaller[:4].tolist() == brains(1, 1, -4, 2).tolist()
    with_nan = evaluate("max.NaN.bf16 %d, %a, %b;", [a, b], np.dtype(np.uint16))
    assert with_nan[[0, 2]].tolist() == brains(2, -3).tolist()
    assert ((with_nan[[1, 3, 4]] & 0x7FFF) > 0x7F80).all()
    x, y = np.array([1, -3, 5, -2], np.float32), np.array([-2, -4, 4, np.nan], np.float32)
    result = evaluate("min.xorsign.abs.f32 %d, %a, %b;", [x, y], np.dtype(np.float32))
    assert result[:3].tolist() == [-1, 3, 4]
    assert abs(result[3]) == 2
    assert np.isnan(evaluate("min.NaN.xorsign.abs.f32 %d, %a, %b;", [x, y], np.dtype(np.float32))[3])


def test_products_of_bfloat16_without_negative_ones() -> None:
    a, b, c = brains(2, -2, math.nan, 1, -0.0), brains(3, 3, 1, 1, 1), brains(1, 1, 1, -1, -0.0)
    result = evaluate("fma.rn.relu.bf16 %d, %a, %b, %c;", [a, b, c], np.dtype(np.uint16))
    assert result[[0, 1, 3, 4]].tolist() == brains(7, 0, 0, 0).tolist()
    assert result[2] & 0x7FFF > 0x7F80


def test_halves_too_small_to_be_normal_are_zero_with_ftz() -> None:
    tiny, factor = np.array([6e-8, -6e-8, 2.0], np.float16), np.array([1, 1, 2], np.float16)
    result = evaluate("mul.ftz.f16 %d, %a, %b;", [tiny, factor], np.dtype(np.float16))
    assert result.tolist() == [0, 0, 4]
    assert np.signbit(result).tolist() == [False, True, False]
    assert evaluate("mul.f16 %d, %a, %b;", [tiny, factor], np.dtype(np.float16)).tolist()[0] != 0
