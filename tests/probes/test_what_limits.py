"""Requests of a launch equal those on paper: bytes, sectors, operations and instructions together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.probes.running import example, result_of, simulated
from tests.probes.specimens import MATMUL
from tui_probe.pages.findings_page import all_questions
from tui_probe.probes.what_limits import UnitDemand, analyse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SPECIMEN = MATMUL


@pytest.fixture
def demand_of(tmp_path: Path) -> Callable[..., UnitDemand]:
    def run(*arguments: Any, **options: Any) -> UnitDemand:
        return analyse(result_of(tmp_path, "what_limits", *arguments, **options))

    return run


def halves(*shape: int) -> np.ndarray[Any, Any]:
    return (np.arange(int(np.prod(shape))) % 13 - 6).astype(np.float16).reshape(shape)


def test_a_strided_store_moves_twice_the_sectors(demand_of: Callable[..., UnitDemand]) -> None:
    arguments = np.zeros(16384, np.uint32), np.uint32(8192)
    totals = demand_of(example("strided_store"), *arguments, grid=(32,), block=(256,))
    assert (totals.read, totals.written, totals.sectors) == (0, 4 * 8192, 2048)
    assert (totals.sums["store_requests"], totals.sums["memory_instructions"]) == (256, 256)
    assert totals.tensor_operations == totals.sums["fp32_operations"] == 0


def test_saxpy_is_one_multiply_add_per_element(demand_of: Callable[..., UnitDemand]) -> None:
    x, y = np.ones(5000, np.float32), np.ones(5000, np.float32)
    analysis = demand_of(example("saxpy"), y, x, np.float32(2), np.int32(5000), grid=(40,), block=(128,))
    assert (analysis.read, analysis.written) == (2 * 4 * 5000, 4 * 5000)
    assert analysis.sums["fp32_operations"] == 2 * 5000
    assert analysis.sums["fp32_instructions"] == -(-5000 // 32)
    assert analysis.sectors == 3 * 4 * 5000 // 32


def test_a_tiled_product_loads_a_word_per_multiply_add_and_a_part_of_four(demand_of: Callable[..., UnitDemand]) -> None:
    analysis = demand_of(MATMUL.text, *MATMUL.arguments, grid=MATMUL.grid, block=MATMUL.block)
    assert analysis.sums["fp32_operations"] == 2 * 64**3
    products, stores = 64**3 // 32, 2 * 4 * 64 * 64 // 32
    assert analysis.sums["fp32_instructions"] == products
    assert analysis.shared_requests == products + products // 4 + stores


def test_matrix_instructions_are_distinguished_by_operands(demand_of: Callable[..., UnitDemand]) -> None:
    m, n, k = 64, 64, 32
    a, b, c = halves(m, k), halves(k, n), np.zeros((m, n), np.float16)
    arguments = a, b, c, np.int32(m), np.int32(n), np.int32(k), *[np.zeros(1, np.uint64)] * 2
    analysis = demand_of(simulated("triton_matmul"), *arguments, grid=(1, 1), block=(128,), shared=3 * 8192)
    assert analysis.tensor_operations == analysis.tensor_as_half == 2 * m * n * k
    assert analysis.sums["fp32_operations"] == analysis.sums["half_operations"] == 0
    assert (analysis.read, analysis.written) == (2 * 2 * m * k, 2 * m * n)


def test_single_lane_occupies_the_pipe(demand_of: Callable[..., UnitDemand]) -> None:
    """Operations are of the lanes that execute them, instructions of their warps."""
    text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry alone(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<2>;
    .reg .f32 %f<2>;
    .reg .b64 %d;
    ld.param.u64 %d, [out];
    mov.u32 %r1, %tid.x;
    mov.f32 %f1, 0f3F800000;
    setp.ne.u32 %p, %r1, 3;
    @%p bra done;
    fma.rn.f32 %f1, %f1, %f1, %f1;
    add.f32 %f1, %f1, %f1;
    st.global.f32 [%d], %f1;
done:
    ret;
}
"""
    analysis = demand_of(text, np.zeros(1, np.float32))
    assert analysis.sums["fp32_operations"] == 3
    assert analysis.sums["fp32_instructions"] == 2
    assert (analysis.written, analysis.sectors) == (4, 1)


def test_people_look_for_it_as_the_roofline() -> None:
    (question,) = [other for other in all_questions() if other.probe == "what_limits"]
    assert "roofline" in question.search_words
