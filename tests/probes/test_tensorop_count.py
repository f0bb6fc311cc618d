"""Matrix instructions and multiply-adds are those of the products on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.engine.kernels import DATA, HEADER, inserted, probed
from tests.probes.running import example, result_of, simulated
from tests.probes.specimens import Specimen
from tui_probe.probe_files.loading import load_probe
from tui_probe.probes.tensorop_count import TensorOperations, analyse
from tui_probe.ptx.instruction_facts import multiply_adds
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Instruction

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TILES, HALVES = np.ones((3, 16, 8), np.float32), np.ones((3, 16, 16), np.float16)
SPECIMEN = Specimen(simulated("matrices"), (TILES * 0, HALVES, HALVES[:, :, :8].copy(), TILES), (1, 1, 1), (96, 1, 1))


@pytest.fixture
def counted(tmp_path: Path) -> Callable[..., TensorOperations]:
    def run(*arguments: Any, **options: Any) -> TensorOperations:
        return analyse(result_of(tmp_path, "tensorop_count", *arguments, **options))

    return run


def halves(*shape: int) -> np.ndarray[Any, Any]:
    return (np.arange(int(np.prod(shape))) % 13 - 6).astype(np.float16).reshape(shape)


@pytest.mark.parametrize(("m", "n", "k"), [(128, 192, 96), (64, 64, 32)])
def test_triton_matrix_product_is_2_m_n_k(counted: Callable[..., TensorOperations], m: int, n: int, k: int) -> None:
    a, b, c = halves(m, k), halves(k, n), np.zeros((m, n), np.float16)
    arguments = a, b, c, np.int32(m), np.int32(n), np.int32(k), *[np.zeros(1, np.uint64)] * 2
    counts = counted(simulated("triton_matmul"), *arguments, grid=(m // 64, n // 64), block=(128,), shared=3 * 8192)
    assert counts.operations == 2 * m * n * k
    assert counts == TensorOperations(m * n * k, m * n * k // (16 * 8 * 16), 0, 0, 0)


def test_tiles_at_the_edge_count_whole(counted: Callable[..., TensorOperations]) -> None:
    m, n, k = 100, 130, 70
    a, b, c = halves(m, k), halves(k, n), np.zeros((m, n), np.float16)
    arguments = a, b, c, np.int32(m), np.int32(n), np.int32(k), *[np.zeros(1, np.uint64)] * 2
    counts = counted(simulated("triton_matmul"), *arguments, grid=(2, 3), block=(128,), shared=3 * 8192)
    assert counts.operations == 2 * 128 * 192 * 96


def test_triton_attention_is_two_products(counted: Callable[..., TensorOperations]) -> None:
    length, rows, size = 96, 128, 64
    q, k, o = halves(rows, size) / 8, halves(length, size) / 8, np.zeros((rows, size), np.float16)
    arguments = q.astype(np.float16), k.astype(np.float16), k.astype(np.float16), o, np.float32(0.1), np.int32(length)
    extra = [np.zeros(1, np.uint64)] * 2
    counts = counted(simulated("triton_attention"), *arguments, *extra, grid=(2,), block=(128,), shared=3 * 8192)
    assert counts.operations == 2 * (2 * rows * length * size)


def test_wmma(counted: Callable[..., TensorOperations]) -> None:
    size = 48
    a, c = halves(size, size), np.ones((size, size), np.float32)
    arguments = np.zeros_like(c), a, a, c, np.int32(size), np.float32(1)
    counts = counted(simulated("matrices"), *arguments, grid=(3, 3), name="fragments")
    assert counts == TensorOperations(size**3, 0, 27, 0, 0)


def test_double_precision(counted: Callable[..., TensorOperations]) -> None:
    arguments = np.zeros((8, 8)), np.ones((8, 4)), np.ones((4, 8))
    counts = counted(simulated("matrices"), *arguments, name="fragments_double")
    assert counts == TensorOperations(8 * 8 * 4, 0, 1, 0, 0)


def test_a_kernel_without_matrix_instructions_counts_none(counted: Callable[..., TensorOperations]) -> None:
    counts = counted(example("zero_fill"), np.zeros(100, np.uint32), np.uint32(100), grid=(2,), block=(64,))
    assert counts == TensorOperations(0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("name", "threads", "total"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 32, 16 * 8 * 16),
        ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 32, 16 * 8 * 32),
        ("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc", 32, 8 * 8 * 128),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 32, 8 * 8 * 4),
        ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", 32, 4 * 8 * 8 * 4),
        ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", 32, 16 * 8 * 32),
        ("wmma.mma.sync.aligned.row.col.m32n8k16.f32.f32", 32, 32 * 8 * 16),
        ("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", 128, 64 * 256 * 16),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", 128, 64 * 8 * 16),
    ],
)
def test_shares_make_the_whole(name: str, threads: int, total: int) -> None:
    (instruction,) = parse(f"{HEADER}.entry k(){{ {name} %r1; }}").entries()[0].body or []
    assert isinstance(instruction, Instruction)
    share = multiply_adds(instruction)
    assert share is not None
    assert share * threads == total


def test_warpgroup_instructions_are_counted_where_they_stand() -> None:
    """Hopper's kernels do not run on the simulated GPU: the text tells."""
    text = (DATA / "attn_fwd.sm_90a.ptx").read_text()
    shares = [
        line
        for line in inserted(probed(text, parse(text).entries()[0].name, load_probe("tensorop_count")))
        if line.startswith("add.u64 %tp_multiply_adds")
    ]
    assert shares == [f"add.u64 %tp_multiply_adds, %tp_multiply_adds, {64 * 64 * 16 // 128};"] * 8
