"""Bytes counted by the probe are those that the kernels move on paper."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.engine.kernels import entry
from tests.probes.kernels import GENERIC
from tests.probes.running import example, result_of, simulated
from tui_probe.probes.gmem_bytes import MemoryBytes, analyse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def moved(tmp_path: Path) -> Callable[..., MemoryBytes]:
    def run(*arguments: Any, **options: Any) -> MemoryBytes:
        return analyse(result_of(tmp_path, "gmem_bytes", *arguments, **options))

    return run


expected = partial(
    MemoryBytes,
    loaded=0, stored=0, copied=0, bulk_loaded=0, bulk_stored=0, tensor_loads=0, tensor_stores=0, threads_missing=0,
)  # fmt: skip


def halves(*shape: int) -> np.ndarray[Any, Any]:
    return (np.arange(int(np.prod(shape))) % 13 - 6).astype(np.float16).reshape(shape)


@pytest.mark.parametrize(("name", "count"), [("coalesced_store", 8192), ("strided_store", 8192), ("zero_fill", 5001)])
def test_stores(moved: Callable[..., MemoryBytes], name: str, count: int) -> None:
    grid = (-(-count // 256),)
    counts = moved(example(name), np.zeros(2 * count, np.uint32), np.uint32(count), grid=grid, block=(256,))
    assert counts == expected(stored=4 * count)
    assert (counts.read, counts.written) == (0, 4 * count)


def test_saxpy(moved: Callable[..., MemoryBytes]) -> None:
    x, y = np.ones(5000, np.float32), np.ones(5000, np.float32)
    counts = moved(example("saxpy"), y, x, np.float32(2), np.int32(5000), grid=(40,), block=(128,))
    assert counts == expected(loaded=2 * 4 * 5000, stored=4 * 5000)


@pytest.mark.parametrize("size", [16, 64, 50])
def test_tiled_matrix_product(moved: Callable[..., MemoryBytes], size: int) -> None:
    """Each row of blocks reads all of b, each column of blocks all of a."""
    a, tiles = np.ones((size, size), np.float32), -(-size // 16)
    grid, block = (tiles, tiles), (16, 16)
    counts = moved(example("matmul"), np.zeros_like(a), a, a, np.int32(size), grid=grid, block=block)
    assert counts == expected(loaded=2 * tiles * 4 * size * size, stored=4 * size * size)


@pytest.mark.parametrize(("rows", "columns"), [(3, 64), (2, 100)])
def test_softmax_reads_each_row_three_times(moved: Callable[..., MemoryBytes], rows: int, columns: int) -> None:
    values = np.ones((rows, columns), np.float32)
    text, out = example("softmax"), np.zeros_like(values)
    counts = moved(text, out, values, np.int32(columns), grid=(rows,), block=(64,), shared=256)
    assert counts == expected(loaded=3 * values.nbytes, stored=values.nbytes)


def test_reduction_leaves_atomics_out(moved: Callable[..., MemoryBytes]) -> None:
    values = np.ones(1000, np.float32)
    counts = moved(example("reduction"), np.zeros(1, np.float32), values, np.int32(1000), grid=(3,), block=(96,))
    assert counts == expected(loaded=4000)


def test_cp_async_counts_what_it_reads(moved: Callable[..., MemoryBytes]) -> None:
    """Of b whole rows of 16 bytes, but only 6 bytes of the last three: the rest is filled with zeros."""
    depth = 64
    a, b = halves(16, depth), halves(depth, 8)
    d = np.zeros((16, 8), np.float16)
    counts = moved(simulated("matrices"), d, a, b, np.int32(depth), name="pipeline")
    assert counts == expected(copied=a.nbytes + b.nbytes - 3 * 10, stored=d.nbytes)
    assert counts.read == a.nbytes + b.nbytes - 30


def test_wmma_counts_whole_matrices(moved: Callable[..., MemoryBytes]) -> None:
    size, tiles = 48, 3
    a, c = halves(size, size), np.ones((size, size), np.float32)
    arguments = np.zeros_like(c), a, a, c, np.int32(size), np.float32(1)
    counts = moved(simulated("matrices"), *arguments, grid=(tiles, tiles), name="fragments")
    assert counts == expected(loaded=2 * tiles * a.nbytes + c.nbytes, stored=c.nbytes)


def test_triton_matrix_product(moved: Callable[..., MemoryBytes]) -> None:
    m, n, k = 100, 130, 70
    a, b, c = halves(m, k), halves(k, n), np.zeros((m, n), np.float16)
    extra = [np.zeros(1, np.uint64)] * 2
    arguments = a, b, c, np.int32(m), np.int32(n), np.int32(k), *extra
    counts = moved(simulated("triton_matmul"), *arguments, grid=(2, 3), block=(128,), shared=3 * 8192)
    assert counts == expected(loaded=3 * a.nbytes + 2 * b.nbytes, stored=c.nbytes)


def test_triton_attention(moved: Callable[..., MemoryBytes]) -> None:
    length, rows, size = 96, 128, 64
    q, k, o = halves(rows, size) / 8, halves(length, size) / 8, np.zeros((rows, size), np.float16)
    extra = [np.zeros(1, np.uint64)] * 2
    arguments = q.astype(np.float16), k.astype(np.float16), k.astype(np.float16), o, np.float32(0.1), np.int32(length)
    counts = moved(simulated("triton_attention"), *arguments, *extra, grid=(2,), block=(128,), shared=3 * 8192)
    assert counts == expected(loaded=q.nbytes + 2 * 2 * k.nbytes, stored=o.nbytes)


@pytest.mark.parametrize("target", ["sm_80", "sm_70"])
def test_addresses_without_a_space_count_where_they_are_global(moved: Callable[..., MemoryBytes], target: str) -> None:
    """The same sums where lanes cannot be summed by one instruction (before sm_80). Lanes leave by two exits."""
    text = entry(GENERIC, ".param .u64 out")
    text = text.replace("sm_80", target)
    counts = moved(text, np.zeros(64, np.uint64), block=(45,), grid=(2,))
    assert counts == expected(loaded=2 * (4 * 4 + 4), stored=2 * (5 * 8 + 1))
