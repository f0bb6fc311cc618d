"""Kernels that Triton compiled for sm_80 give what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.simgpu.device import Device, kernel
from tui_probe.simgpu.executor import Execution


def launch(name: str, *arguments: Any, grid: tuple[int, ...], shared: int) -> Execution:
    """Triton's kernels take pointers to scratch memory last, which these do not use."""
    function = kernel(name, name)
    unused = [np.uint64(0)] * (len(function.parameters) - len(arguments))
    return Device().launch(function, *arguments, *unused, grid=grid, block=(128,), shared=shared)


def normal(*shape: int, dtype: Any = np.float16) -> np.ndarray[Any, Any]:
    return np.random.default_rng(len(shape) + shape[0]).standard_normal(shape).astype(dtype)


def test_softmax() -> None:
    values = normal(6, 800, dtype=np.float32)
    output = np.zeros_like(values)
    launch("triton_softmax", output, values, np.int32(800), np.int32(800), grid=(6,), shared=16)
    exact = np.exp(values.astype(np.float64) - values.max(1, keepdims=True))
    np.testing.assert_allclose(output, exact / exact.sum(1, keepdims=True), rtol=1e-5, atol=1e-9)


def test_matrix_product() -> None:
    m, n, k = 100, 130, 96
    a, b, c = normal(m, k), normal(k, n), np.zeros((m, n), np.float16)
    launch("triton_matmul", a, b, c, np.int32(m), np.int32(n), np.int32(k), grid=(2, 3), shared=3 * 8192)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, exact, rtol=1e-3, atol=1e-3)


def test_attention() -> None:
    length, size = 128, 64
    q, k, v = normal(length, size), normal(length + 1, size)[1:], normal(length + 2, size)[2:]
    o = np.zeros_like(q)
    scale = np.float32(np.log2(np.e) / 8)
    launch("triton_attention", q, k, v, o, scale, np.int32(length), grid=(2,), shared=3 * 8192)
    scores = q.astype(np.float64) @ k.T.astype(np.float64) / 8
    weights = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(o, weights / weights.sum(1, keepdims=True) @ v.astype(np.float64), atol=2e-3)


def test_scan_histogram_and_maximum() -> None:
    values = np.random.default_rng(1).integers(0, 100, 1000, np.int32)
    before, bins, largest = values.copy(), np.zeros(16, np.int32), np.zeros(1, np.int32)
    launch("triton_scan", values, bins, largest, np.int32(1000), grid=(4,), shared=64)
    assert bins.tolist() == np.bincount(before % 16, minlength=16).tolist()
    assert largest[0] == before.max()
    for first in range(0, 1000, 256):
        assert values[first : first + 256].tolist() == np.cumsum(before[first : first + 256]).tolist()
