"""Loads that the assembler merges: as many are left as there are in machine code, and none that it must keep apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_probe.engine.kernel import Kernel
from tui_probe.ptx.assembler_effects import alignments, merged_loads
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import instructions_in

CORPUS = Path(__file__).parents[1] / "data" / "ptx"
KERNEL = """.version 8.0
.target sm_80
.address_size 64
.extern .shared .align 8 .b8 dynamic[];
.visible .entry kernel(.param .u64 out)
{{
	.reg .pred %p<2>;
	.reg .b32 %r<20>;
	.reg .f32 %f<20>;
	.reg .b64 %rd<4>;
	.shared .align 4 .b8 tile[4096];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, tile;
{body}
	ret;
}}
"""
FOUR = """	ld.shared.f32 %f1, [{base}];
	ld.shared.f32 %f2, [{base}+4];
{between}	ld.shared.f32 %f3, [{base}+8];
	ld.shared.f32 %f4, [{base}+12];"""
ALIGNED = "	shl.b32 %r3, %r1, 4;\n	add.s32 %r4, %r2, %r3;\n"


def count_loads(text: str, name: str = "kernel") -> tuple[int, int]:
    """Loads of shared memory, and those that are part of no other one."""
    kernel = Kernel.of(parse(text), name)
    loads = [
        load
        for load in instructions_in(kernel.entry.body or ())
        if load.opcode == "ld" and {"shared", "shared::cta"} & {*load.modifiers}
    ]
    merged = merged_loads(kernel.entry, kernel.variables)
    return len(loads), sum(id(load) not in merged for load in loads)


@pytest.mark.parametrize(
    ("file", "name", "loads", "machine"),
    [
        ("tiled_matmul.sm_80.ptx", "tiled_matmul", 64, 40),
        ("nvrtc.sm_80.ptx", "block_sum", 7, 4),
        ("torch_layer_norm.sm_90a.ptx", "triton_red_fused_native_layer_norm_0", 5, 5),
        ("triton_softmax.sm_90a.ptx", "softmax", 4, 4),
    ],
)
def test_count_equals_that_of_nvdisasm(file: str, name: str, loads: int, machine: int) -> None:
    assert count_loads((CORPUS / file).read_text(), name) == (loads, machine)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (ALIGNED + FOUR.format(base="%r4", between=""), 1),
        (FOUR.format(base="tile", between=""), 1),
        (ALIGNED + FOUR.format(base="%r4", between="	st.shared.f32 [%r2], %f1;\n"), 2),
        (ALIGNED + FOUR.format(base="%r4", between="	bar.sync 0;\n"), 2),
        (ALIGNED + FOUR.format(base="%r4", between="	add.s32 %r4, %r4, 16;\n"), 2),
        (ALIGNED + FOUR.format(base="%r4", between="again:\n"), 2),
        (ALIGNED.replace("4;\n", "3;\n", 1) + FOUR.format(base="%r4", between=""), 2),
        (ALIGNED.replace("4;\n", "2;\n", 1) + FOUR.format(base="%r4", between=""), 4),
        (ALIGNED + FOUR.format(base="%r4", between="").replace("ld.", "ld.volatile."), 4),
        (ALIGNED + FOUR.format(base="%r4", between="").replace("\tld.", "\t@%p1 ld."), 4),
        ("	mov.u32 %r4, dynamic;\n" + FOUR.format(base="%r4", between=""), 2),
        (FOUR.format(base="%r1", between=""), 4),
    ],
    ids=[
        "aligned", "variable", "store between", "barrier between", "base written", "another block", "aligned to 8",
        "aligned to 4", "volatile", "guarded", "declared alignment", "unknown alignment",
    ],
)  # fmt: skip
def test_single_accesses(body: str, expected: int) -> None:
    assert count_loads(KERNEL.format(body=body)) == (4, expected)


def test_the_alignment_of_what_loops_add() -> None:
    body = """	mad.lo.s32 %r5, %r1, 48, 32;
	mul.wide.u32 %rd1, %r1, 8;
again:
	add.s32 %r5, %r5, 24;
	and.b32 %r6, %r1, -4;
	ld.shared.u32 %r7, [%r5];
	setp.lt.u32 %p1, %r5, 4096;
	@%p1 bra again;"""
    kernel = Kernel.of(parse(KERNEL.format(body=body)), "kernel")
    divisors = alignments(kernel.entry, {"tile": 16})
    assert {name: divisors[name] for name in ("%r1", "%r2", "%r5", "%rd1", "%r6", "%r7")} == {
        "%r1": 1, "%r2": 16, "%r5": 8, "%rd1": 8, "%r6": 4, "%r7": 1,
    }  # fmt: skip
