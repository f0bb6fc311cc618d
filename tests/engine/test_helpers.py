"""OUT, IN1, IN2, IN3, ADDR and BYTES stand for what the probed instruction has there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.engine.kernels import counting_probe, entry, inserted, probed, toml_probe
from tui_probe.errors import UnsupportedKernelError

if TYPE_CHECKING:
    from collections.abc import Callable

REGISTERS = """
.reg .pred %p<3>;
.reg .b16 %h<3>;
.reg .b32 %r<9>;
.reg .f32 %f<9>;
.reg .b64 %rd<9>;
"""


def lines_for(instruction: str, snippet: str, position: str, where: str = "before") -> list[str]:
    probe = counting_probe(position, **{where: snippet})
    text = probed(
        entry(REGISTERS + instruction + "\nret;", ".param .u64 x", module=".shared .b32 tile[4];"), probe=probe
    )
    return inserted(text)


@pytest.mark.parametrize(
    ("instruction", "size"),
    [
        ("ld.global.u8 %r1, [%rd1];", 1),
        ("ld.global.b16 %h1, [%rd1];", 2),
        ("ld.global.f32 %f1, [%rd1];", 4),
        ("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];", 16),
        ("ld.global.nc.L1::evict_last.v2.u64 {%rd2, %rd3}, [%rd1];", 16),
        ("ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", 32),
        ("ld.global.b128 %q, [%rd1];", 16),
    ],
)
def test_bytes(instruction: str, size: int) -> None:
    assert f"add.u64 %tp_n, %tp_n, {size};" in lines_for(instruction, "add.u64 %n, %n, BYTES;", "ld.global")


def test_bytes_of_copies() -> None:
    fixed = "cp.async.cg.shared.global [%r1], [%rd1], 16;"
    assert "add.u64 %tp_n, %tp_n, 16;" in lines_for(fixed, "add.u64 %n, %n, BYTES;", "cp.async")
    assert "add.u64 %tp_n, %tp_n, 16;" in lines_for(fixed, "add.u64 %n, %n, IN2;", "cp.async.cg")
    bulk = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, [%r3];"
    assert "mad.wide.u32 %tp_n, %r2, 1, %tp_n;" in lines_for(bulk, "mad.wide.u32 %n, BYTES, 1, %n;", "cp.async.bulk")


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ("16, %r2", ["add.u64 %tp_n, %tp_n, %r2;"]),
        ("16, 6", ["add.u64 %tp_n, %tp_n, 6;"]),
        ("16, %rd2", ["add.u64 %tp_n, %tp_n, 16;"]),
        ("16, %r2, %rd2", ["add.u64 %tp_n, %tp_n, %r2;"]),
        ("16, %p1", ["selp.b32 %tp__bytes, 0, 16, %p1;", "add.u64 %tp_n, %tp_n, %tp__bytes;"]),
    ],
    ids=["size", "number", "policy", "size and policy", "ignore"],
)
def test_bytes_of_a_copy_are_those_that_it_reads(operands: str, expected: list[str]) -> None:
    copy = f"cp.async.cg.shared.global [%r1], [%rd1], {operands};"
    lines = lines_for(copy, "add.u64 %n, %n, BYTES;", "cp.async")
    start = lines.index(expected[0])
    assert lines[start : start + len(expected)] == expected


@pytest.mark.parametrize(
    ("instruction", "share"),
    [
        ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1}, [%rd1], %r2;", 16),
        ("wmma.load.b.sync.aligned.row.m8n32k16.global.bf16 {%r1}, [%rd1], %r2;", 32),
        ("wmma.load.a.sync.aligned.row.m16n16k8.global.tf32 {%r1}, [%rd1], %r2;", 16),
        ("wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%f1}, [%rd1], %r2;", 32),
        ("wmma.store.d.sync.aligned.row.m8n8k32.global.s32 [%rd1], {%r1}, %r2;", 8),
        ("wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r1}, [%rd1], %r2;", 4),
    ],
)
def test_bytes_of_a_matrix_are_a_lanes_share(instruction: str, share: int) -> None:
    assert f"add.u64 %tp_n, %tp_n, {share};" in lines_for(instruction, "add.u64 %n, %n, BYTES;", "wmma.global")


@pytest.mark.parametrize(
    ("instruction", "position", "expected"),
    [
        ("ld.global.u32 %r1, [%rd1];", "ld.global", ["mov.u64 %tp_n, %rd1;"]),
        (
            "ld.global.u32 %r1, [%rd1+16];",
            "ld.global",
            ["add.s64 %tp__addr, %rd1, 16;", "mov.u64 %tp_n, %tp__addr;"],
        ),
        (
            "ld.global.u32 %r1, [%rd1+-8];",
            "ld.global",
            ["add.s64 %tp__addr, %rd1, -8;", "mov.u64 %tp_n, %tp__addr;"],
        ),
        (
            "ld.shared.u32 %r1, [%r2+4];",
            "ld.shared",
            ["cvt.u64.u32 %tp__addr, %r2;", "add.s64 %tp__addr, %tp__addr, 4;", "mov.u64 %tp_n, %tp__addr;"],
        ),
        ("ld.shared.u32 %r1, [tile];", "ld.shared", ["mov.u64 %tp__addr, tile;", "mov.u64 %tp_n, %tp__addr;"]),
        ("ld.shared.u32 %r1, tile[%r2];", "ld.shared", ["mov.u64 %tp__addr, tile[%r2];", "mov.u64 %tp_n, %tp__addr;"]),
        ("cp.async.ca.shared.global [%r1], [%rd2], 4;", "cp.async", ["mov.u64 %tp_n, %rd2;"]),
        ("cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r1], %r2;", "cp.async", ["mov.u64 %tp_n, %rd3;"]),
        ("@%p1 st.global.u32 [%rd1], %r1;", "st.global", ["@%p1 mov.u64 %tp_n, %rd1;"]),
        ("red.global.add.u32 [%rd1], 1;", "red", ["mov.u64 %tp_n, %rd1;"]),
    ],
)
def test_addr_is_64_bits_wide(instruction: str, position: str, expected: list[str]) -> None:
    lines = lines_for(instruction, "mov.u64 %n, ADDR;", position)
    start = lines.index(expected[0])
    assert lines[start : start + len(expected)] == expected


def test_operands_in_order() -> None:
    fma = "fma.rn.f32 %f1, %f2, %f3, %f4;"
    snippet = ".reg .f32 %x; add.f32 %x, IN1, IN2; add.f32 %x, %x, IN3; add.f32 %x, %x, OUT; cvt.rni.u64.f32 %n, %x;"
    lines = lines_for(fma, snippet, "fma", "after")
    for expected in ("%f2, %f3", "%tp_x, %f4", "%tp_x, %f1"):
        assert f"add.f32 %tp_x, {expected};" in lines


def test_an_operand_that_is_overwritten_is_kept_for_the_snippet_behind() -> None:
    lines = lines_for("ld.global.u64 %rd1, [%rd1+8];", "mov.u64 %n, ADDR; add.u64 %n, %n, OUT;", "ld.global", "after")
    copy_line = lines.index("mov.b64 %tp__kept_addr_b64, %tp__addr;")
    assert lines[copy_line - 1] == "add.s64 %tp__addr, %rd1, 8;"
    assert lines[copy_line + 1 : copy_line + 3] == ["mov.u64 %tp_n, %tp__kept_addr_b64;", "add.u64 %tp_n, %tp_n, %rd1;"]


@pytest.mark.parametrize(
    ("instruction", "position", "helper", "reason"),
    [
        ("mov.u32 %r1, %r2;", "mov", "ADDR", "does not access memory"),
        ("mov.u32 %r1, %r2;", "mov", "IN2", "2 operands"),
        ("bar.sync 0;", "bar", "BYTES", "BYTES"),
        ("mov.u32 %r1, %r2;", "mov", "MULTIPLY_ADDS", "not a matrix product"),
        ("cp.async.wait_all;", "cp.async", "BYTES", "no operand gives the size"),
    ],
)
def test_a_helper_that_an_instruction_lacks(instruction: str, position: str, helper: str, reason: str) -> None:
    with pytest.raises(UnsupportedKernelError, match=reason) as caught:
        lines_for(instruction, f"mov.u64 %n, {helper};", position)
    assert instruction.split()[0].rstrip(";") in str(caught.value)


@pytest.mark.parametrize(
    ("value", "field", "expected"),
    [
        ("%clock64", "u64", ["mov.u64 %tp__value0_b64, %clock64;", "st.global.b64 [%tp__address], %tp__value0_b64;"]),
        ("%smid", "u64", ["mov.u32 %tp__value0_b32, %smid;", "cvt.u64.u32 %tp__value0_b64, %tp__value0_b32;"]),
        ("%clock64", "u32", ["mov.u64 %tp__value0_b64, %clock64;", "cvt.u32.u64 %tp__value0_b32, %tp__value0_b64;"]),
        ("%tid.x", "u32", ["mov.u32 %tp__value0_b32, %tid.x;", "st.global.b32 [%tp__address], %tp__value0_b32;"]),
        ("7", "u64", ["mov.u64 %tp__value0_b64, 7;", "st.global.b64 [%tp__address], %tp__value0_b64;"]),
        ("IN1", "u32", ["cvt.u32.u16 %tp__value0_b32, %h1;", "st.global.b32 [%tp__address], %tp__value0_b32;"]),
        ("OUT", "u64", ["mov.b32 %tp__raw0_b32, %f1;", "cvt.u64.u32 %tp__value0_b64, %tp__raw0_b32;"]),
        ("OUT", "u32", ["st.global.b32 [%tp__address], %f1;"]),
    ],
)
def test_saved_values_take_the_width_of_the_field(
    value: str, field: str, expected: list[str], accepts: Callable[[str], int]
) -> None:
    probe = toml_probe(
        f"""
[map.m]
level = "thread"
regs = {{ x = "{field}" }}
[probe.p]
position = "cvt"
after = "SAVE [ m ] {{{value}}};"
"""
    )
    text = probed(entry(REGISTERS + "cvt.f32.f16 %f1, %h1;\nret;"), probe=probe)
    lines = inserted(text)
    start = lines.index(expected[0])
    assert lines[start : start + len(expected)] == expected
    accepts(text)


GENERIC = "ld.!global.!shared.!local.!const.!param:st.!global.!shared.!local.!param"


def count_matches(instruction: str, position: str) -> int:
    return "\n".join(lines_for(instruction, "add.u64 %n, %n, 77;", position)).count(", 77;")


@pytest.mark.parametrize("address", ["[tile]", "[tile + 4 * 2]", "[tile+-0x4]", "tile[%r1]"])
def test_generic_access_by_name_is_in_the_space_of_the_variable(address: str) -> None:
    for instruction in (f"ld.u32 %r2, {address};", f"@%p1 st.u32 {address}, 7;"):
        assert count_matches(instruction, GENERIC) == 0
        assert count_matches(instruction, "ld.shared:st.shared") == 1
    assert count_matches("ld.u32 %r2, [%rd1];", GENERIC) == 1


def test_address_of_generic_access_by_name_is_generic() -> None:
    generic = "\n".join(lines_for("ld.u32 %r2, [tile+4];", "add.u64 %n, %n, ADDR;", "ld"))
    assert (
        "mov.u64 %tp__addr, tile;\nadd.s64 %tp__addr, %tp__addr, 4;\ncvta.shared.u64 %tp__addr, %tp__addr;" in generic
    )
    assert "cvta" not in "\n".join(lines_for("ld.shared.u32 %r2, [tile];", "add.u64 %n, %n, ADDR;", "ld"))


def test_operand_with_an_offset_is_added_up() -> None:
    lines = "\n".join(lines_for("add.s64 %rd1, %rd2 + 4, %rd3;", "add.u64 %n, %n, IN1;", "add"))
    assert "add.s64 %tp__in1_b64, %rd2, 4;\nadd.u64 %tp_n, %tp_n, %tp__in1_b64;" in lines
