"""Numbers of eight bits: all codes, and rounding against rational numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simgpu.device import evaluate
from tests.simgpu.reference import values

PAIR = np.dtype(np.uint16)
FORMATS = {"e4m3x2": (4, 3, 7), "e5m2x2": (5, 2, 15)}
LARGEST = {"e4m3x2": 448, "e5m2x2": 57344}


def number(code: int, name: str) -> float:
    """Return the value of a code: one sign bit, then exponent, fraction and bias of the format."""
    _, fraction_bits, bias = FORMATS[name]
    sign = -1.0 if code >> 7 else 1.0
    exponent, fraction = (code & 0x7F) >> fraction_bits, code & ((1 << fraction_bits) - 1)
    if name == "e4m3x2" and code & 0x7F == 0x7F:
        return math.nan
    if name == "e5m2x2" and exponent == 31:
        return math.nan if fraction else sign * math.inf
    leading = fraction / (1 << fraction_bits) + (1 if exponent else 0)
    return math.ldexp(sign * leading, max(exponent, 1) - bias)


def nearest(value: float, name: str) -> int:
    """The code for ``value``, of two the even one; saturated, and 0x7F for NaN."""
    if math.isnan(value):
        return 0x7F
    sign = 0x80 if math.copysign(1, value) < 0 else 0
    size = min(abs(value), float(LARGEST[name]))
    codes = [code for code in range(0x7F) if number(code, name) <= LARGEST[name]]
    return sign | min(codes, key=lambda code: (abs(Fraction(number(code, name)) - Fraction(size)), code & 1))


@pytest.mark.parametrize("name", FORMATS)
def test_every_code_is_a_half(name: str) -> None:
    codes = np.arange(256, dtype=np.uint16)
    result = evaluate(f"cvt.rn.f16x2.{name} %d, %a;", [codes | (codes[::-1] << 8)], np.dtype(np.uint32))
    halves = result.view(np.float16).reshape(-1, 2)
    expected = [number(code, name) for code in range(256)]
    assert np.array_equal(halves[:, 0], np.array(expected, np.float16), equal_nan=True)
    assert np.array_equal(halves[:, 1], np.array(expected[::-1], np.float16), equal_nan=True)
    nan = result.view(np.uint16).reshape(-1, 2)[0x7F, 0]
    assert nan == 0x7FFF
    positive = evaluate(f"cvt.rn.relu.f16x2.{name} %d, %a;", [codes], np.dtype(np.uint32)).view(np.float16)[::2]
    assert not (positive < 0).any()


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("source", ["f32", "f16x2"])
def test_every_code_comes_back(name: str, source: str) -> None:
    codes = [code for code in range(256) if math.isfinite(number(code, name))]
    exact = np.array([number(code, name) for code in codes], np.float32)
    if source == "f32":
        result = evaluate(f"cvt.rn.satfinite.{name}.f32 %d, %a, %b;", [exact[::-1], exact], PAIR)
    else:
        pairs = np.stack([exact, exact[::-1]], axis=-1).astype(np.float16).view(np.uint32)[:, 0]
        result = evaluate(f"cvt.rn.satfinite.{name}.f16x2 %d, %a;", [pairs], PAIR)
    assert (result & 0xFF).tolist() == codes
    assert (result >> 8).tolist() == codes[::-1]


NEAR: st.SearchStrategy[Any] = st.builds(math.ldexp, st.integers(-(2**6), 2**6), st.integers(-20, 12)) | values("f32")


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_rounding_is_to_the_nearest_code(name: str, data: st.DataObject) -> None:
    given_ = np.array(data.draw(st.lists(NEAR, min_size=1, max_size=12)), np.float32)
    result = evaluate(f"cvt.rn.satfinite.{name}.f32 %d, 0f00000000, %a;", [given_], PAIR)
    assert result.tolist() == [nearest(float(value), name) for value in given_]


EDGES = [1e9, -np.inf, np.nan, -0.0]


@pytest.mark.parametrize(
    ("name", "edges", "expected"),
    [
        ("e4m3x2", [448, 464, 465, 2**-9, 2**-10, 1.5 * 2**-10, *EDGES], [126, 126, 126, 1, 0, 1, 126, 254, 127, 128]),
        ("e5m2x2", [57344, 61440, 2**-16, 2**-17, 1.5 * 2**-17, *EDGES], [123, 123, 1, 0, 1, 123, 251, 127, 128]),
    ],
)
def test_edges(name: str, edges: list[float], expected: list[int]) -> None:
    given_ = np.array(edges, np.float32)
    assert evaluate(f"cvt.rn.satfinite.{name}.f32 %d, 0f00000000, %a;", [given_], PAIR).tolist() == expected
    rectified = evaluate(f"cvt.rn.satfinite.relu.{name}.f32 %d, 0f00000000, %a;", [given_[:-1]], PAIR).tolist()
    assert rectified == [0 if code & 0x80 else code for code in expected[:-1]]
