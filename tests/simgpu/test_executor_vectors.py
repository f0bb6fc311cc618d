"""Registers that are vectors: their parts, and wherever PTX takes them whole."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simgpu.device import Device, compiled

DECLARATIONS = """
    .reg .v2 .u32 pair, other; .reg .v4 .u32 four, copy; .reg .v2 .u32 many<3>; .reg .v2 .f32 reals; .reg .v4 .f32 q;
    .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<4>;"""
TABLE = ".global .align 16 .b32 table[8] = {10, 11, 12, 13, 14, 15, 16, 17};"


def last_registers(instructions: str, block: tuple[int, ...] = (1,), grid: tuple[int, ...] = (1,)) -> list[int]:
    """Return ``%r1`` to ``%r4`` of the last thread."""
    stores = "".join(f"st.global.u32 [%rd1+{4 * i}], %r{i + 1};" for i in range(4))
    source = f"""{TABLE} .visible .entry moves(.param .u64 out) {{ {DECLARATIONS}
        {instructions} ld.param.u64 %rd1, [out]; {stores} ret; }}"""
    device, output = Device(), np.zeros(4, np.uint32)
    device.variables["table"] = device.upload(np.arange(10, 18, dtype=np.uint32))
    device.launch(compiled(source), output, block=block, grid=grid)
    result: list[int] = output.tolist()
    return result


@pytest.mark.parametrize(
    ("instructions", "expected"),
    [
        (
            "mov.v2.u32 pair, {1, 2}; mov.u32 %r1, pair.x; mov.u32 %r2, pair.y;",
            [1, 2, 0, 0],
        ),
        (
            "mov.v2.u32 pair, {1, 2}; mov.v2.u32 pair, {pair.y, pair.x}; mov.v2.u32 {%r1, %r2}, pair;",
            [2, 1, 0, 0],
        ),
        (
            "ld.global.v4.u32 four, [table+16]; mov.v4.u32 copy, four; mov.v4.u32 {%r1,%r2,%r3,%r4}, copy;",
            [14, 15, 16, 17],
        ),
        (
            "ld.global.v4.u32 four, [table]; mov.u32 %r1, four.r; mov.u32 %r2, four.g; add.u32 %r3, four.b, four.a;",
            [10, 11, 25, 0],
        ),
        (
            "mov.b32 pair.x, 3; mov.b32 pair.y, 4; mov.b64 %rd2, pair; cvt.u32.u64 %r1, %rd2; "
            "shr.u64 %rd2, %rd2, 32; cvt.u32.u64 %r2, %rd2;",
            [3, 4, 0, 0],
        ),
        (
            "mov.b64 pair, 0x100000002; mov.u32 %r1, pair.x; mov.u32 %r2, pair.y;",
            [2, 1, 0, 0],
        ),
        (
            "mov.v2.u32 many2, {5, 6}; mov.u32 %r1, many2.x; mov.u32 %r2, many2.y;",
            [5, 6, 0, 0],
        ),
        (
            "mov.v2.u32 pair, {8, 9}; st.global.v2.u32 [table], pair; ld.global.v2.u32 other, [table]; "
            "mov.v2.u32 {%r1, %r2}, other;",
            [8, 9, 0, 0],
        ),
        (
            "mov.v2.f32 reals, {0f3F800000, 1.0 + 1.0}; mov.b32 %r1, reals.x; mov.b32 %r2, reals.y;",
            [0x3F800000, 0x40000000, 0, 0],
        ),
        (
            "mov.v2.u32 {%r1, _}, {7, 8};",
            [7, 0, 0, 0],
        ),
    ],
)
def test_whole_vectors(instructions: str, expected: list[int]) -> None:
    assert last_registers(instructions) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("%tid", [3, 1, 2, 0]), ("%ntid", [4, 2, 3, 0]), ("%ctaid", [1, 2, 0, 0]), ("%nctaid", [2, 3, 1, 0])],
)
def test_special_registers_are_vectors_of_four(name: str, expected: list[int]) -> None:
    instructions = f"mov.v4.u32 four, {name}; mov.v4.u32 {{%r1, %r2, %r3, %r4}}, four;"
    assert last_registers(instructions, block=(4, 2, 3), grid=(2, 3)) == expected
