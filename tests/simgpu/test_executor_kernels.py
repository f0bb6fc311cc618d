"""Kernels compiled by nvcc give what NumPy gives: the bundled examples, and control flow of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tui_probe.simgpu.examples
from tests.simgpu.device import Device, compiled, kernel
from tui_probe.errors import PtxError, SimulationError
from tui_probe.simgpu.executor import Machine, UnsupportedInstructionError, execute

EXAMPLES = Path(tui_probe.simgpu.examples.__path__[0]) / "kernels"


def example(name: str) -> Any:
    return compiled((EXAMPLES / f"{name}.ptx").read_text())


def numbers(count: int, seed: int = 1) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(count).astype(np.float32)


def integers(low: int, high: int, count: int, seed: int = 1) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(low, high, count, np.int32)


@pytest.mark.parametrize(("count", "block"), [(1, 32), (1000, 128), (5000, 96), (4096, 256), (100, 7)])
def test_stores_of_whole_and_partial_blocks(count: int, block: int) -> None:
    grid = (-(-count // block),)
    filled = np.full(count + 16, 5, np.uint32)
    Device().launch(example("zero_fill"), filled, np.uint32(count), grid=grid, block=(block,))
    assert filled.tolist() == [0] * count + [5] * 16
    strided = np.full(2 * count, 9, np.uint32)
    Device().launch(example("strided_store"), strided, np.uint32(count), grid=grid, block=(block,))
    assert strided[::2].tolist() == list(range(count))
    assert (strided[1::2] == 9).all()
    Device().launch(example("coalesced_store"), filled, np.uint32(count), grid=grid, block=(block,))
    assert filled.tolist() == [*range(count), *[5] * 16]


def test_saxpy_is_exact() -> None:
    x, y = numbers(5000), numbers(5000, 2)
    expected = (x.astype(np.float64) * 2.5 + y).astype(np.float32)
    Device().launch(example("saxpy"), y, x, np.float32(2.5), np.int32(5000), grid=(40,), block=(128,))
    assert (y == expected).all()


@pytest.mark.parametrize("size", [16, 64, 50])
def test_tiled_matrix_product(size: int) -> None:
    a, b = numbers(size * size).reshape(size, size), numbers(size * size, 2).reshape(size, size)
    c = np.zeros((size, size), np.float32)
    tiles = -(-size // 16)
    Device().launch(example("matmul"), c, a, b, np.int32(size), grid=(tiles, tiles), block=(16, 16))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("blocks", "threads"), [(1, 32), (4, 256), (3, 96)])
def test_reduction(blocks: int, threads: int) -> None:
    values, total = numbers(3000), np.zeros(1, np.float32)
    Device().launch(example("reduction"), total, values, np.int32(3000), grid=(blocks,), block=(threads,))
    np.testing.assert_allclose(total[0], values.astype(np.float64).sum(), rtol=1e-4)


def test_softmax_of_rows() -> None:
    rows = numbers(20 * 300).reshape(20, 300) * 4
    output = np.zeros_like(rows)
    Device().launch(example("softmax"), output, rows, np.int32(300), grid=(20,), block=(128,), shared=4 * 128)
    exact = np.exp(rows.astype(np.float64) - rows.max(1, keepdims=True))
    np.testing.assert_allclose(output, exact / exact.sum(1, keepdims=True), rtol=2e-6, atol=1e-9)


def test_nested_branches() -> None:
    values = integers(0, 32, 500)
    output = np.zeros(500, np.int32)
    Device().launch(kernel("divergence", "nested"), output, values, np.int32(500), grid=(4,), block=(128,))

    def expected(i: int) -> int:
        x = int(values[i])
        if x & 1:
            if x & 2:
                return x * 3 - (int(values[499 - i]) if x & 4 else 0)
            return x + 100
        return -x if x & 8 else sum(int(values[(i + k) % 500]) for k in range(x & 7))

    assert output.tolist() == [expected(i) for i in range(500)]


def test_loops_of_different_lengths() -> None:
    steps = np.zeros(1000, np.uint32)
    Device().launch(kernel("divergence", "collatz"), steps, np.uint32(1000), grid=(8,), block=(128,))

    def collatz(n: int) -> int:
        taken = 0
        while n != 1:
            n = 3 * n + 1 if n & 1 else n // 2
            taken += 1
        return taken

    assert steps.tolist() == [collatz(n) for n in range(1, 1001)]


def test_loops_with_several_ways_out() -> None:
    length, threads = 40, 192
    data = integers(-300, 1010, length * threads).reshape(threads, length)
    output = np.zeros((threads, 2), np.int32)
    Device().launch(
        kernel("divergence", "search"), output, data, np.int32(length), np.int32(55), grid=(2,), block=(96,)
    )
    expected = []
    for row in data.tolist():
        result, skipped = -1, 0
        for k, value in enumerate(row):
            if value < 0:
                skipped += 1
            elif value == 55 or value > 1000:
                result = k if value == 55 else -2
                break
        expected.append([result, skipped])
    assert output.tolist() == expected


def test_switch() -> None:
    values = integers(-1000, 1000, 600)
    output = np.full(600, 77, np.int32)
    Device().launch(kernel("divergence", "switched"), output, values, np.int32(600), grid=(5,), block=(128,))
    x = values.astype(np.int64)
    i = np.arange(600)
    choices = {
        0: x + 1,
        1: x * x,
        2: x ^ 0x55,
        3: values[(i * 7) % 600] + 4,
        4: np.full(600, 4),
        5: np.trunc(x / 3).astype(int),
        6: np.fmod(x, 5),
        7: -x,
        8: x << 3,
        9: np.array([int(value & 0xFFFFFFFF).bit_count() for value in x]),
        10: np.full(600, 77),
    }
    expected = np.full(600, -1)
    for key, result in choices.items():
        expected = np.where((x & 15) == key, result, expected)
    assert output.tolist() == expected.tolist()


def test_jump_table() -> None:
    choices = integers(0, 4, 96)
    output = np.zeros(96, np.int32)
    Device().launch(kernel("divergence", "jump_table"), output, choices, block=(96,))
    assert output.tolist() == [(100, 200, 302, -1)[choice] for choice in choices]


def test_registers_that_tell_of_the_machine() -> None:
    names = ["%nsmid", "%nwarpid", "%laneid", "%dynamic_smem_size", "%total_smem_size", "%gridid", "%clusterid.x"]
    names += ["%nclusterid.x", "%cluster_nctaid.x", "%cluster_ctarank", "%clock_hi", "%globaltimer_hi", "WARP_SZ"]
    moves = "\n".join(f"mov.u32 %v, {name}; st.global.u32 [%at+{4 * n}], %v;" for n, name in enumerate(names))
    source = f""".visible .entry machine(.param .u64 out) {{
        .reg .b32 %v; .reg .b64 %at; .shared .b32 word[3];
        ld.param.u64 %at, [out]; mad.wide.u32 %at, %ctaid.x, {4 * len(names)}, %at; {moves} ret; }}"""
    output = np.zeros((2, len(names)), np.uint32)
    device = Device(machine=Machine(sm_count=5, warp_slots_per_sm=40))
    device.launch(compiled(source), output, grid=(2,), block=(1,), shared=20, start_cycle=(7 << 32) + 5)
    nanoseconds = ((7 << 32) + 5) >> 32
    assert output[1].tolist() == [5, 40, 0, 20, 16 + 20, 0, 1, 2, 1, 0, 7, nanoseconds, 32]


def test_registers_that_this_device_does_not_have() -> None:
    with pytest.raises(UnsupportedInstructionError, match=r"unsupported instruction mov\.u32 at line 4"):
        Device().launch(compiled(".visible .entry counters() { .reg .b32 %r; mov.u32 %r, %pm0; ret; }"))
    with pytest.raises(PtxError, match=r"line 4: %rx is not declared"):
        compiled(".visible .entry typo() { .reg .b32 %r<3>; mov.u32 %r1, %rx; ret; }")


def test_registers_of_several_components() -> None:
    source = """.visible .entry components(.param .u64 out) {
        .reg .v2 .b32 %pair; .reg .b64 %rd;
        mov.u32 %pair.x, 3; add.u32 %pair.y, %pair.x, 4;
        ld.param.u64 %rd, [out]; st.global.v2.u32 [%rd], {%pair.y, %pair.x}; ret; }"""
    output = np.zeros(2, np.uint32)
    Device().launch(compiled(source), output)
    assert output.tolist() == [7, 3]


def test_launches_that_cannot_be() -> None:
    function = example("zero_fill")
    output = np.zeros(4, np.uint32)
    with pytest.raises(
        SimulationError, match=r"zero_fill: grid \(1, 1, 1\), block \(2048, 1, 1\): .* 1 to 1024 threads"
    ):
        Device().launch(function, output, np.uint32(4), block=(2048,))
    with pytest.raises(SimulationError, match=r"grid \(0, 1, 1\)"):
        Device().launch(function, output, np.uint32(4), grid=(0,))
    limited = compiled(".visible .entry limited() .maxntid 64, 2 { ret; }")
    assert limited.max_threads == 128
    with pytest.raises(SimulationError, match="1 to 128 threads"):
        Device().launch(limited, block=(129,))
    device = Device()
    with pytest.raises(SimulationError, match="zero_fill takes 12 bytes of parameters, not 8"):
        execute(
            function,
            memory=device.memory,
            grid=(1, 1, 1),
            block=(1, 1, 1),
            dynamic_shared_bytes=0,
            parameters=bytes(8),
            variables={},
            machine=Machine(),
            start_cycle=0,
        )


@pytest.mark.parametrize("grid", [(1,), (3, 2), (2, 2, 3)])
@pytest.mark.parametrize("block", [(32,), (8, 4), (3, 5, 2)])
def test_indices_in_three_dimensions(grid: tuple[int, ...], block: tuple[int, ...]) -> None:
    names = [f"%{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"]
    moves = "\n".join(f"mov.u32 %v{n}, {name}; st.global.u32 [%at+{4 * n}], %v{n};" for n, name in enumerate(names))
    source = f""".visible .entry indices(.param .u64 out) {{
        .reg .b32 %v<12>, %r<9>; .reg .b64 %at, %base;
        mov.u32 %r0, %tid.z; mov.u32 %r1, %ntid.y; mov.u32 %r2, %tid.y; mad.lo.u32 %r3, %r0, %r1, %r2;
        mov.u32 %r1, %ntid.x; mad.lo.u32 %r3, %r3, %r1, %tid.x;
        mov.u32 %r0, %ctaid.z; mad.lo.u32 %r4, %r0, %nctaid.y, %ctaid.y; mad.lo.u32 %r4, %r4, %nctaid.x, %ctaid.x;
        mul.lo.u32 %r5, %ntid.x, %ntid.y; mul.lo.u32 %r5, %r5, %ntid.z; mad.lo.u32 %r3, %r4, %r5, %r3;
        ld.param.u64 %base, [out]; mad.wide.u32 %at, %r3, 48, %base;
        {moves}
        ret; }}"""
    g, b = (*grid, 1, 1)[:3], (*block, 1, 1)[:3]
    blocks, threads = int(np.prod(g)), int(np.prod(b))
    output = np.zeros((blocks, threads, 12), np.uint32)
    Device().launch(compiled(source), output, grid=grid, block=block)
    for linear_block in range(blocks):
        for thread in range(threads):
            tid = [thread % b[0], thread // b[0] % b[1], thread // b[0] // b[1]]
            ctaid = [linear_block % g[0], linear_block // g[0] % g[1], linear_block // g[0] // g[1]]
            assert output[linear_block, thread].tolist() == [*tid, *b, *ctaid, *g]
