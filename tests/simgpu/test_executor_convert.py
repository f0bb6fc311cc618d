"""Conversions agree with exact rounding of rational numbers and with saturation of integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simgpu.device import evaluate
from tests.simgpu.reference import (
    DTYPES,
    Case,
    bits_of,
    check,
    clamp,
    limits,
    rational,
    rounded,
    rows,
    values,
    wrap,
)

INTEGERS = [f"{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64)]
ROUND = {"rni": lambda x: round(x), "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


def stored(kind: str) -> str:
    """Registers have at least 16 bits; a narrower value is extended to that."""
    return f"{kind[0]}16" if bits_of(kind) == 8 else kind


def between_integers(to: str, source: str) -> list[Case]:
    return [
        Case(f"cvt.{to}.{source} %d, %a;", stored(source), stored(to), lambda a: wrap(wrap(a, source), to)),
        Case(f"cvt.sat.{to}.{source} %d, %a;", stored(source), stored(to), lambda a: clamp(wrap(a, source), to)),
    ]


@pytest.mark.parametrize("to", INTEGERS)
@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_between_integers(to: str, data: st.DataObject) -> None:
    for source in INTEGERS:
        given_ = data.draw(rows(stored(source)))
        for case in between_integers(to, source):
            check(case, given_)


def to_integer(value: float, to: str, source: str, how: str) -> int:
    if math.isnan(value):
        return limits(to)[0] if to[0] == "s" and (source == "f64" or to == "s64") else nan_of_unsigned(to, source)
    if math.isinf(value):
        return limits(to)[value > 0]
    return clamp(int(ROUND[how](rational(value))), to)


def nan_of_unsigned(to: str, source: str) -> int:
    return 1 << (bits_of(to) - 1) if to[0] == "u" and (source == "f64" or to == "u64") else 0


@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
@pytest.mark.parametrize("how", ROUND)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_to_integers(source: str, how: str, data: st.DataObject) -> None:
    halves = st.integers(-70, 70).map(lambda twice: (twice / 2,))
    given_ = data.draw(st.lists(halves | st.tuples(values(source)), min_size=1, max_size=12))
    for to in ("s32", "u32", "s64", "u64", "s16"):
        instruction = f"cvt.{how}.{to}.{source} %d, %a;"
        check(Case(instruction, source, to, lambda a, to=to: to_integer(a, to, source, how)), given_)


@pytest.mark.parametrize("to", ["f16", "f32", "f64"])
@pytest.mark.parametrize("source", ["s32", "u32", "s64", "u64", "u16"])
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_from_integers(to: str, source: str, data: st.DataObject) -> None:
    given_ = data.draw(rows(source))
    modes = ("rn", "rz", "rm", "rp") if to in ("f32", "f64") else ("rn",)
    for mode in modes:
        check(
            Case(
                f"cvt.{mode}.{to}.{source} %d, %a;", source, to, lambda a, mode=mode: rounded(rational_of(a), to, mode)
            ),
            given_,
        )


def rational_of(value: int) -> Any:
    from fractions import Fraction

    return Fraction(value)


def exact(value: float, to: str, mode: str) -> float:
    if not math.isfinite(value):
        return value
    return rounded(rational(value), to, mode)


NARROWING = [("f32", "f64", mode) for mode in ("rn", "rz", "rm", "rp")] + [
    ("f16", "f32", "rn"),
    ("f16", "f32", "rz"),
    ("f16", "f64", "rn"),
]


@pytest.mark.parametrize(("to", "source", "mode"), NARROWING)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_to_shorter_floats(to: str, source: str, mode: str, data: st.DataObject) -> None:
    near = st.builds(lambda n, e: math.ldexp(n, e), st.integers(-(2**26), 2**26), st.integers(-45, 5))
    given_ = data.draw(st.lists(st.tuples(values(source) | near), min_size=1, max_size=12))
    inputs = np.array([row[0] for row in given_], DTYPES[source])
    check(
        Case(f"cvt.{mode}.{to}.{source} %d, %a;", source, to, lambda a: exact(a, to, mode)),
        [(float(value),) for value in inputs],
    )


@settings(max_examples=12, deadline=None)
@given(rows("f32 f32"))
def test_to_bfloat16(given_: list[tuple[float, float]]) -> None:
    columns = [np.array(column, np.float32) for column in zip(*given_, strict=True)]
    result = evaluate("cvt.rn.bf16x2.f32 %d, %a, %b;", columns, np.dtype(np.uint32))
    for row, packed in zip(zip(*columns, strict=True), result.tolist(), strict=True):
        # The first operand is the upper half.
        for value, bits in zip(row, (packed >> 16, packed & 0xFFFF), strict=True):
            number = float(np.array([bits << 16], np.uint32).view(np.float32)[0])
            wanted = exact(float(value), "bf16", "rn")
            assert number == wanted or (math.isnan(number) and math.isnan(wanted))


def test_halves_to_and_from_a_register() -> None:
    a, b = np.array([1.5, -2.0], np.float32), np.array([0.25, 65504.0], np.float32)
    packed = evaluate("cvt.rn.f16x2.f32 %d, %a, %b;", [a, b], np.dtype(np.uint32))
    assert packed.view(np.float16).tolist() == [0.25, 1.5, 65504.0, -2.0]


def test_integral_floats_and_saturation() -> None:
    values_ = np.array([-1.5, 0.5, 1.5, 2.7, np.nan], np.float32)
    single = np.dtype(np.float32)
    assert evaluate("cvt.rni.f32.f32 %d, %a;", [values_], single)[:4].tolist() == [-2.0, 0.0, 2.0, 3.0]
    assert evaluate("cvt.rmi.f32.f32 %d, %a;", [values_], single)[:4].tolist() == [-2.0, 0.0, 1.0, 2.0]
    assert evaluate("cvt.sat.f32.f32 %d, %a;", [values_], single).tolist() == [0.0, 0.5, 1.0, 1.0, 0.0]
    tiny = np.array([1e-40], np.float32)
    assert evaluate("cvt.ftz.f32.f32 %d, %a;", [tiny], single).tolist() == [0.0]
    assert evaluate("cvt.rn.relu.f16.f32 %d, %a;", [values_[:2]], np.dtype(np.float16)).tolist() == [0.0, 0.5]


def test_tf32_keeps_ten_bits_of_fraction() -> None:
    values_ = np.array([1 + 2**-11, 1 + 2**-12, -1 - 3 * 2**-11, np.inf], np.float32)
    result = evaluate("cvt.rna.tf32.f32 %d, %a;", [values_], np.dtype(np.float32))
    assert result.tolist() == [1 + 2**-10, 1.0, -1 - 2**-9, np.inf]


def test_packing_saturates() -> None:
    a, b, c = (np.array([value], np.int32) for value in (300, -5, 0x1234))
    result = evaluate("cvt.pack.sat.u8.s32.b32 %d, %a, %b, %c;", [a, b, c], np.dtype(np.uint32))
    assert result.tolist() == [0x1234FF00]
    result = evaluate("cvt.pack.sat.s16.s32 %d, %a, %b;", [a * 1000, b], np.dtype(np.uint32))
    assert result.tolist() == [0x7FFFFFFB]


def test_tf32_rounds_as_specified() -> None:
    values_ = np.array([1 + 2**-11, 1 + 3 * 2**-11, -1 - 3 * 2**-12, np.inf], np.float32)
    single = np.dtype(np.float32)
    assert evaluate("cvt.rn.tf32.f32 %d, %a;", [values_], single).tolist() == [1.0, 1 + 2**-9, -1 - 2**-10, np.inf]
    assert evaluate("cvt.rz.tf32.f32 %d, %a;", [values_], single).tolist() == [1.0, 1 + 2**-10, -1.0, np.inf]
    assert evaluate("cvt.rn.relu.tf32.f32 %d, %a;", [values_], single)[2] == 0.0


def test_satfinite_keeps_results_finite() -> None:
    values_ = np.array([1e6, -np.inf, 65519.0, 65520.0, np.nan, 1.5], np.float32)
    result = evaluate("cvt.rn.satfinite.f16.f32 %d, %a;", [values_], np.dtype(np.uint16))
    assert result.tolist() == [0x7BFF, 0xFBFF, 0x7BFF, 0x7BFF, 0x7FFF, 0x3E00]
    largest = np.array([3.4028234e38, -3.4028234e38, np.inf, np.nan, 1.5], np.float32)
    result = evaluate("cvt.rn.satfinite.bf16.f32 %d, %a;", [largest], np.dtype(np.uint16))
    assert result.tolist() == [0x7F7F, 0xFF7F, 0x7F7F, 0x7FFF, 0x3FC0]
    result = evaluate("cvt.rna.satfinite.tf32.f32 %d, %a;", [largest], np.dtype(np.uint32))
    assert result.tolist() == [0x7F7FE000, 0xFF7FE000, 0x7F7FE000, 0x7FFFFFFF, 0x3FC00000]


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@pytest.mark.parametrize("read", ["f32", "f64", "s32", "u64", "s16"])
def test_directed_conversions_to_halves(mode: str, read: str) -> None:
    generator = np.random.default_rng(4)
    if read[0] == "f":
        given_ = (generator.standard_normal(300) * 10.0 ** generator.integers(-9, 6, 300)).astype(DTYPES[read])
    else:
        given_ = generator.integers(0, 2**15, 300).astype(DTYPES[read]) * DTYPES[read].type(3)
    result = evaluate(f"cvt.{mode}.f16.{read} %d, %a;", [given_], np.dtype(np.float16))
    for value, half in zip(given_, result.astype(np.float64).tolist(), strict=True):
        assert half == rounded(rational(value), "f16", mode), value


@pytest.mark.parametrize("form", ["rn.relu.f16.f32", "rz.relu.bf16.f32", "rn.relu.tf32.f32"])
def test_relu_gives_no_negative_zero(form: str) -> None:
    kind = np.dtype(np.uint32 if "tf32" in form else np.uint16)
    result = evaluate(f"cvt.{form} %d, %a;", [np.array([-0.0, -1.0, 0.0], np.float32)], kind)
    assert not result.any()


def test_halves_of_subnormal_singles_are_rounded_with_ftz_as_without() -> None:
    tiny = np.array([1e-40, -1e-40], np.float32)
    for mode, expected in (("rm", [0, 0x8001]), ("rp", [1, 0x8000]), ("rn", [0, 0x8000])):
        assert evaluate(f"cvt.{mode}.ftz.f16.f32 %d, %a;", [tiny], np.dtype(np.uint16)).tolist() == expected
