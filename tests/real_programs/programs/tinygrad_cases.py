"""Programs of tinygrad on its CUDA device, which asks the loader for libcuda.so; each against NumPy."""

from __future__ import annotations

import os

os.environ |= {"DEV": "CUDA", "JIT": "2"}  # without CUDA graphs

import numpy as np
from cases import case, run_all
from tinygrad import Tensor, TinyJit, dtypes

RNG = np.random.default_rng(0)


@case
def matrix_product():
    a, b = RNG.random((64, 48), np.float32), RNG.random((48, 32), np.float32)
    np.testing.assert_allclose((Tensor(a) @ Tensor(b)).numpy(), a @ b, rtol=1e-4)


@case
def softmax_and_reductions():
    x = RNG.standard_normal((20, 50)).astype(np.float32)
    exact = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(Tensor(x).softmax(1).numpy(), exact / exact.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(Tensor(x).argmax(1).numpy(), x.argmax(1))
    np.testing.assert_allclose(Tensor(x).cumsum(1).numpy(), np.cumsum(x, 1), rtol=1e-3, atol=1e-4)


@case
def convolution():
    x, w = RNG.random((1, 2, 8, 8), np.float32), RNG.random((3, 2, 3, 3), np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x[0], (3, 3), axis=(1, 2))
    expected = np.einsum("cijkl,ockl->oij", windows, w)
    np.testing.assert_allclose(Tensor(x).conv2d(Tensor(w)).numpy()[0], expected, rtol=1e-4)


@case
def gradients():
    x, w = RNG.standard_normal((10, 6)).astype(np.float32), RNG.standard_normal((6, 4)).astype(np.float32)
    weights = Tensor(w)
    (gradient,) = (Tensor(x) @ weights).relu().sum().gradient(weights)
    np.testing.assert_allclose(gradient.numpy(), x.T @ (x @ w > 0), rtol=1e-4, atol=1e-5)


@case
def half_precision_and_integers():
    x = RNG.standard_normal(100).astype(np.float16)
    np.testing.assert_allclose((Tensor(x) * 2 + 1).numpy(), x * np.float16(2) + np.float16(1), rtol=2e-3, atol=1e-3)
    n = RNG.integers(0, 1000, 100).astype(np.int32)
    np.testing.assert_array_equal((Tensor(n) // 7 % 5).cast(dtypes.int32).numpy(), n // 7 % 5)


@case
def a_jitted_function():
    @TinyJit
    def step(values):
        return (values * 2 + 1).realize()

    for start in range(4):
        values = np.arange(start, start + 16, dtype=np.float32)
        np.testing.assert_array_equal(step(Tensor(values).realize()).numpy(), values * 2 + 1)


run_all()
