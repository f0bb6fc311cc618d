"""Matrix instructions multiply, no matter what the places of the elements in the registers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simgpu.device import Device, compiled, kernel
from tests.simgpu.warpgroup_products import eight_bits
from tui_probe.errors import SimulationError
from tui_probe.simgpu.executor import DeadlockError


def halves(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float16)


def cut(values: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    """Singles with their low ``bits`` bits cleared."""
    return (values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFFFFF << bits & 0xFFFFFFFF)).view(np.float32)


def test_half_precision() -> None:
    a, b = halves(3, 16, 16), halves(3, 16, 8)
    c = np.random.default_rng(1).standard_normal((3, 16, 8)).astype(np.float32)
    d = np.zeros_like(c)
    Device().launch(kernel("matrices", "product_half"), d, a, b, c, block=(96,))
    exact = (a.astype(np.float64) @ b.astype(np.float64) + c).astype(np.float32)
    assert (d == exact).all()


def test_bfloat16() -> None:
    a, b = (
        cut(np.random.default_rng(seed).standard_normal(shape), 16) for seed, shape in ((1, (16, 16)), (2, (16, 8)))
    )
    c, d = np.ones((16, 8), np.float32), np.zeros((16, 8), np.float32)
    packed = [(matrix.view(np.uint32) >> 16).astype(np.uint16) for matrix in (a, b)]
    Device().launch(kernel("matrices", "product_brain"), d, *packed, c)
    assert (d == (a.astype(np.float64) @ b.astype(np.float64) + 1).astype(np.float32)).all()


def test_tf32_ignores_low_bits() -> None:
    a, b = (
        np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
        for seed, shape in ((1, (16, 8)), (2, (8, 8)))
    )
    d = np.zeros((16, 8), np.float32)
    Device().launch(kernel("matrices", "product_tf32"), d, a, b)
    assert (d == (cut(a, 13).astype(np.float64) @ cut(b, 13).astype(np.float64)).astype(np.float32)).all()


def test_bytes() -> None:
    generator = np.random.default_rng(1)
    a, b = generator.integers(-128, 128, (16, 32), np.int8), generator.integers(-128, 128, (32, 8), np.int8)
    c = generator.integers(-(2**31), 2**31, (16, 8)).astype(np.int32)
    d = np.zeros((16, 8), np.int32)
    Device().launch(kernel("matrices", "product_bytes"), d, a, b, c)
    assert (d == (a.astype(np.int64) @ b.astype(np.int64) + c).astype(np.int32)).all()


def test_asynchronous_copies_and_matrices_from_shared_memory() -> None:
    """The copy of b takes whole rows of 16 bytes, but only 6 bytes of the last three: the rest is zero."""
    depth = 64
    a, b = halves(16, depth), halves(depth, 8)
    d = np.zeros((16, 8), np.float16)
    Device().launch(kernel("matrices", "pipeline"), d, a, b, np.int32(depth))
    used = b.copy()
    used[depth - 3 :, 3:] = 0
    total = np.zeros((16, 8), np.float16)
    for k in range(0, depth, 16):
        exact = a[:, k : k + 16].astype(np.float64) @ used[k : k + 16].astype(np.float64) + total
        total = exact.astype(np.float16)
    assert (d == total).all()


def test_fragments() -> None:
    size = 48
    a, b = halves(size, size) / 4, halves(size, size) / 4
    a, b = a.astype(np.float16), b.astype(np.float16)
    c = np.random.default_rng(1).standard_normal((size, size)).astype(np.float32)
    d = np.zeros_like(c)
    Device().launch(
        kernel("matrices", "fragments"), d, a, b, c, np.int32(size), np.float32(0.5), grid=(3, 3), block=(32,)
    )
    np.testing.assert_allclose(d, 0.5 * (a.astype(np.float64) @ b.astype(np.float64).T) + c, rtol=1e-5, atol=1e-5)


def test_fragments_of_other_shapes_and_types() -> None:
    a, b = (
        cut(np.random.default_rng(seed).standard_normal(shape), 16) for seed, shape in ((1, (16, 32)), (2, (16, 8)))
    )
    d = np.zeros((32, 8), np.float32)
    packed = [(matrix.view(np.uint32) >> 16).astype(np.uint16) for matrix in (a, b)]
    Device().launch(kernel("matrices", "fragments_brain"), d, *packed)
    assert (d == (a.T.astype(np.float64) @ b.astype(np.float64) + 1).astype(np.float32)).all()
    x, y = np.random.default_rng(5).standard_normal((8, 4)), np.random.default_rng(6).standard_normal((4, 8))
    z = np.ones((8, 8))
    expected = z + x @ y
    Device().launch(kernel("matrices", "fragments_double"), z, x, y)
    np.testing.assert_allclose(z, expected, rtol=1e-14)


def test_transposition_in_registers() -> None:
    source = """.visible .entry transposes(.param .u64 data) {
        .reg .b32 %r<3>; .reg .b64 %rd;
        ld.param.u64 %rd, [data]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd, %r1, 4, %rd;
        ld.global.b32 %r2, [%rd]; movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r2; st.global.b32 [%rd], %r2; ret; }"""
    data = np.arange(128, dtype=np.uint16).reshape(2, 8, 8)
    before = data.copy()
    Device().launch(compiled(source), data, block=(64,))
    assert (data == before.swapaxes(1, 2)).all()


@pytest.mark.parametrize(("count", "form"), [(1, ""), (2, ".trans"), (4, ""), (4, ".trans")])
def test_matrices_stored_to_shared_memory(count: int, form: str) -> None:
    """Each of the first lanes gives the address of a row: here, every second 16 bytes."""
    names = ", ".join(f"%r{number}" for number in range(count))
    loads = " ".join(f"ld.global.b32 %r{number}, [%rd1+{128 * number}];" for number in range(count))
    source = f""".visible .entry stores(.param .u64 out, .param .u64 words) {{
        .shared .align 16 .b8 tile[1024]; .reg .b32 %r<12>; .reg .b64 %rd<4>;
        ld.param.u64 %rd1, [words]; ld.param.u64 %rd2, [out]; mov.u32 %r8, %tid.x;
        mad.wide.u32 %rd1, %r8, 4, %rd1; {loads}
        mov.u32 %r9, tile; mad.lo.u32 %r9, %r8, 32, %r9;
        stmatrix.sync.aligned.m8n8.x{count}{form}.shared.b16 [%r9], {{{names}}};
        bar.sync 0; mad.wide.u32 %rd2, %r8, 16, %rd2;
        ld.shared.v4.b32 {{%r0, %r1, %r2, %r3}}, [%r9]; st.global.v4.b32 [%rd2], {{%r0, %r1, %r2, %r3}}; ret; }}"""
    data = np.random.default_rng(1).integers(0, 2**32, (4, 32)).astype(np.uint32)
    out = np.zeros((32, 8), np.uint16)
    Device().launch(compiled(source), out, data)
    matrices = data[:count].view(np.uint16).reshape(count, 8, 8)
    rows = matrices.swapaxes(1, 2) if form else matrices
    assert (out[: 8 * count] == rows.reshape(-1, 8)).all()
    assert not out[8 * count :].any()


@pytest.mark.parametrize(("left", "right"), [("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e5m2", "e5m2")])
def test_numbers_of_eight_bits(left: str, right: str) -> None:
    source = f""".visible .entry multiplies(.param .u64 out, .param .u64 a, .param .u64 b) {{
        .reg .b32 %r<9>; .reg .f32 %f<4>; .reg .b64 %rd<4>;
        ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [out]; mov.u32 %r8, %tid.x;
        mad.wide.u32 %rd1, %r8, 16, %rd1; mad.wide.u32 %rd2, %r8, 8, %rd2; mad.wide.u32 %rd3, %r8, 16, %rd3;
        ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%rd1]; ld.global.v2.b32 {{%r4, %r5}}, [%rd2];
        mov.f32 %f0, 0f3F800000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
        mma.sync.aligned.m16n8k32.row.col.f32.{left}.{right}.f32
            {{%f0, %f1, %f2, %f3}}, {{%r0, %r1, %r2, %r3}}, {{%r4, %r5}}, {{%f0, %f1, %f2, %f3}};
        st.global.v4.f32 [%rd3], {{%f0, %f1, %f2, %f3}}; ret; }}"""
    generator = np.random.default_rng(1)
    codes = [generator.integers(0, 0x78, shape).astype(np.uint8) for shape in ((32, 4, 4), (32, 2, 4))]
    out = np.zeros((32, 4), np.float32)
    Device().launch(compiled(source), out, *codes)
    a, b = np.zeros((16, 32)), np.zeros((32, 8))
    for lane in range(32):
        row, place = lane // 4, lane % 4 * 4
        for register in range(4):
            first = place + 16 * (register // 2)
            a[row + 8 * (register % 2), first : first + 4] = eight_bits(left)[codes[0][lane, register]]
        for register in range(2):
            b[place + 16 * register : place + 16 * register + 4, row] = eight_bits(right)[codes[1][lane, register]]
    exact = (a @ b + 1).astype(np.float32)
    product = [
        [out[row % 8 * 4 + column // 2, column % 2 + 2 * (row // 8)] for column in range(8)] for row in range(16)
    ]
    np.testing.assert_allclose(product, exact, rtol=1e-6)


MULTIPLY = """.visible .entry multiplies() {{
    .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .pred %p;
    mov.u32 %r1, %tid.x; setp.lt.u32 %p, %r1, {limit};
    @%p {instead};
    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {{%f0,%f1,%f2,%f3}}, {{%r1,%r1}}, {{%r1}}, {{%f0,%f1,%f2,%f3}};
    ret; }}"""


def test_all_lanes_of_a_warp_take_part() -> None:
    Device().launch(compiled(MULTIPLY.format(limit=0, instead="ret")))
    with pytest.raises(SimulationError, match=r"matrix operation at line 8 needs all lanes of a warp"):
        Device().launch(compiled(MULTIPLY.format(limit=2, instead="ret")))
    with pytest.raises(DeadlockError):
        Device().launch(compiled(MULTIPLY.format(limit=2, instead="bar.sync 0")))


def test_unknown_shapes_are_reported() -> None:
    source = """.visible .entry sparse() { .reg .b32 %r<8>; .reg .f32 %f<8>;
    mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
        {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r2,%r3}, {%f0,%f1,%f2,%f3}, %r4, 0;
    ret; }"""
    with pytest.raises(SimulationError, match=r"unsupported instruction mma\.sp\.sync\.aligned\.m16n8k16.* at line 5"):
        Device().launch(compiled(source))
