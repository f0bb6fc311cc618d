"""CUDA's mathematical functions and half precision, as nvcc spells them out, give what NumPy gives."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.simgpu.device import Device, kernel, module
from tests.simgpu.reference import rational, rounded

VALUES = np.concatenate([np.linspace(-8, 8, 161), [0.0, 1e-6, -30.0, 55.5, 1e4]])


def device() -> Device:
    """With the tables of coefficients of the module."""
    result = Device()
    result.load_variables(module("numbers"))
    return result


@pytest.fixture(scope="module")
def singles() -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    values = VALUES.astype(np.float32)
    output = np.zeros((12, len(values)), np.float32)
    device().launch(kernel("numbers", "singles"), output, values, np.int32(len(values)), grid=(3,), block=(64,))
    return output, values.astype(np.float64)


SINGLES = [
    np.exp,
    lambda x: np.log(np.abs(x) + 1),
    np.sin,
    lambda x: np.cos((x * 1000).astype(np.float32).astype(np.float64)),
    lambda x: np.abs(x) ** float(np.float32(1.7)),
    np.tanh,
    np.vectorize(math.erf),
    lambda x: np.fmod(x, float(np.float32(0.37))),
    lambda x: np.sqrt(np.abs(x)) / (x + 3),
    lambda x: np.arctan2(x, 2),
    lambda x: np.rint(x) + np.floor(x) + np.ceil(x) + np.trunc(x),
    lambda x: np.cbrt(x) + np.log1p(np.abs(x)) + np.exp2(x * 0.25),
]


@pytest.mark.parametrize("number", range(len(SINGLES)))
def test_single_precision_functions(number: int, singles: tuple[np.ndarray, np.ndarray]) -> None:  # type: ignore[type-arg]
    output, values = singles
    with np.errstate(all="ignore"):
        expected = SINGLES[number](values)
    in_range = np.isfinite(expected) & (np.abs(expected) < 3e38)
    np.testing.assert_allclose(output[number][in_range], expected[in_range], rtol=2e-6, atol=2e-6)
    assert np.isinf(output[number][np.isinf(expected.astype(np.float32))]).all()


def test_double_precision_functions() -> None:
    output = np.zeros((8, len(VALUES)))
    device().launch(kernel("numbers", "doubles"), output, VALUES, np.int32(len(VALUES)), grid=(2,), block=(128,))
    x = VALUES
    with np.errstate(all="ignore"):
        expected = [
            np.exp(x),
            np.log(np.abs(x) + 1),
            np.sin(x),
            np.abs(x) ** 1.7,
            x / (x * x + 3),
            np.sqrt(np.abs(x)) + np.cbrt(x),
            np.fmod(x, 0.37),
            1 / (x + 100.5),
        ]
    for found, wanted in zip(output, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-15)


def test_half_precision() -> None:
    values = np.linspace(-7, 9, 64).astype(np.float32)
    sums, pairs = np.zeros(64, np.float16), np.zeros((64, 2), np.float16)
    brains, numbers = np.zeros(64, np.uint16), np.zeros(64, np.float32)
    Device().launch(kernel("numbers", "halves"), sums, pairs, brains, numbers, values, block=(64,))
    half = values.astype(np.float16)
    brain = [rounded(rational(value), "bf16") for value in values]
    for i in range(64):
        h = rational(half[i])
        assert sums[i] == rounded(h * h + rational(half[i] + np.float16(0.5)), "f16")
        assert pairs[i].tolist() == [(half[i] + half[i]) * half[i], (-half[i] - half[i]) * half[i]]
        product = rounded(rational(brain[i]) * rational(1.5), "bf16")
        number = np.array([int(brains[i]) << 16], np.uint32).view(np.float32)[0]
        assert number in {
            rounded(rational(product) + rational(0.25), "bf16"),
            # The compiler may fuse the product and the sum.
            rounded(rational(brain[i]) * rational(1.5) + rational(0.25), "bf16"),
        }
        total = np.float32(half[i]) + np.float32(brain[i])
        assert numbers[i] == np.float32(total + np.float32(10 if half[i] > 0 else 0)) + np.rint(half[i])


def test_64_bit_integers() -> None:
    generator = np.random.default_rng(1)
    a = generator.integers(-(2**63), 2**63, 200)
    b = generator.integers(1, 2**63, 200) >> generator.integers(0, 60, 200)
    b = np.where(b == 0, 3, b) * np.where(generator.integers(0, 2, 200), 1, -1)
    output = np.zeros((8, 200), np.int64)
    Device().launch(kernel("numbers", "integers"), output, a, b, np.int32(200), grid=(2,), block=(128,))

    def low(value: int) -> int:
        return (value + 2**31) % 2**32 - 2**31

    def truncated(x: int, y: int) -> int:
        return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)

    for i, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        ux, uy, x32, y32 = x % 2**64, y % 2**64, low(x), low(y)
        quotient = truncated(x, y)
        first_bit = (ux & -ux).bit_length()
        tenth = y32 - truncated(y32, 10) * 10
        counted = ux.bit_count() + 64 - uy.bit_length() + first_bit + truncated(x32, 7) + tenth + ux % 2**32 // 1000
        both = (uy % 2**32) << 32 | ux % 2**32
        permuted = sum((both >> 8 * digit & 255) << 8 * place for place, digit in enumerate((0, 4, 1, 5)))
        funnel = ((uy % 2**32 << 32 | ux % 2**32) << 7 >> 32) % 2**32
        exact = [
            quotient,
            x - quotient * y,
            ux // uy,
            x * y >> 64,
            x * y + (x << (y & 63)) + (x >> (y & 31)),
            None,
            int(f"{ux:064b}"[::-1], 2) + permuted + funnel,
            None,
        ]
        # Sums of 32-bit numbers wrap in C where they are of type int or unsigned.
        exact[5] = counted % 2**32
        exact[7] = ((ux & 0xFFFFFF) * (uy & 0xFFFFFF) + abs(x32 - y32) + 3 + (x32 * y32 >> 32)) % 2**32
        column = output[:, i].tolist()
        for number, (given, wanted) in enumerate(zip(column, exact, strict=True)):
            bits = 32 if number in (5, 7) else 64
            assert given % 2**bits == wanted % 2**bits, number
