"""Loops that no count ends."""

from __future__ import annotations

import pytest

from tests.engine.kernels import entry
from tui_probe.ptx.counted_loops import unbounded_loop_heads
from tui_probe.ptx.parser import parse

LOOP = "$again:\n{body}\n@%p1 bra $again;"


def loop(body: str, before: str = "") -> str:
    return f"{before}\n{LOOP.format(body=body)}"


COUNTED = [
    loop("add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, %r2;"),
    loop("add.u32 %r1, %r1, -3;\nsetp.gt.s32 %p1, %r1, %r2;"),
    loop("setp.gt.s32 %p1, %r2, %r1;\nadd.s32 %r1, %r1, 7;"),
    loop("add.u32 %r3, %r1, 4;\nmov.u32 %r1, %r3;\nsetp.ne.u32 %p1, %r3, 64;", "mov.u32 %r1, 0;"),
    loop("ld.global.u32 %r3, [%rd1];\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 9;"),
    loop("shr.u32 %r1, %r1, 1;\nsetp.ne.u32 %p1, %r1, 0;"),
    loop("mov.u32 %r3, %r1;\nshr.s32 %r1, %r3, 1;\nsetp.gt.s32 %p1, %r3, 3;"),
    loop("add.s32 %r1, %r1, -1;\nsetp.ne.s32 %p1, %r1, %r2;"),
    # the grid's step, unrolled twice
    loop("add.s32 %r3, %r1, %r2;\nadd.s32 %r1, %r3, %r2;\nsetp.lt.s32 %p1, %r1, %r4;",
         "mov.u32 %r5, %nctaid.x;\nmov.u32 %r6, %ntid.x;\nmul.lo.s32 %r2, %r5, %r6;"),
    # a loop that nvcc unrolled: it counts down the iterations that are not in the rest, which is counted down behind it
    loop("add.s32 %r1, %r1, -4;\nsetp.ne.s32 %p1, %r1, 0;",
         "ld.param.u32 %r2, [count];\nand.b32 %r3, %r2, 3;\nsub.s32 %r1, %r2, %r3;")
    + "\n$rest:\nadd.s32 %r3, %r3, -1;\nsetp.ne.s32 %p2, %r3, 0;\n@%p2 bra $rest;",
    loop("add.s32 %r4, %r4, 4;\nadd.s32 %r5, %r1, %r4;\nsetp.ne.s32 %p1, %r5, 0;",
         "ld.param.u32 %r2, [count];\nand.b32 %r3, %r2, 3;\nsub.s32 %r1, %r3, %r2;\nmov.u32 %r4, 0;"),
    loop("add.s64 %rd2, %rd2, 4;\ncvt.u32.u64 %r1, %rd2;\nsetp.ne.b32 %p1, %r1, 24;", "mov.b64 %rd2, 0;"),
    loop("add.u32 %r1, %r1, 1;\nld.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p2, %r3, 0;\n"
         "setp.lt.u32 %p3, %r1, %r2;\nand.pred %p1, %p2, %p3;"),
]  # fmt: skip
UNBOUNDED = {
    "polled": loop("ld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;"),
    "skipped": "$again:\nld.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra $again;\n"
    "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 9;\n@%p1 bra $again;",
    "step skipped": loop("setp.eq.u32 %p2, %r3, 0;\n@%p2 add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 9;"),
    "endless": "$again:\nadd.u32 %r1, %r1, 1;\nbra $again;",
    "compares nothing that changes": loop("setp.ne.u32 %p1, %r1, %r2;"),
    "no counter": loop("mad.lo.u32 %r1, %r1, %r1, 2;\nsetp.ne.u32 %p1, %r1, %r2;"),
    "other counter": loop("add.u32 %r3, %r3, 1;\nxor.b32 %r1, %r1, 5;\nsetp.ne.u32 %p1, %r1, %r2;"),
    "clock": loop("mov.u32 %r1, %clock;\nsetp.lt.u32 %p1, %r1, %r2;"),
    "step of a parameter": loop("add.s32 %r1, %r1, %r3;\nsetp.lt.s32 %p1, %r1, %r2;", "ld.param.u32 %r3, [count];"),
    "step of a quotient": loop("add.s32 %r1, %r1, %r3;\nsetp.lt.s32 %p1, %r1, %r2;", "shr.u32 %r3, %ntid.x, 5;"),
    "step 0": loop("add.s32 %r1, %r1, 0;\nsetp.lt.s32 %p1, %r1, %r2;"),
    "away from the bound": loop("add.s32 %r1, %r1, -1;\nsetp.lt.s32 %p1, %r1, %r2;"),
    "doubled": loop("shl.b32 %r1, %r1, 1;\nsetp.lt.s32 %p1, %r1, %r2;"),
    "steps over": loop("add.s32 %r1, %r1, 2;\nsetp.ne.s32 %p1, %r1, %r2;", "mov.u32 %r1, 0;"),
    "8 bits": loop("add.s16 %rs1, %rs1, 1;\ncvt.u32.u16 %r3, %rs1;\nand.b32 %r1, %r3, 255;\n"
                   "setp.lt.s32 %p1, %r1, %r2;"),
    "32 of 64 bits": loop("add.s32 %r1, %r1, 1;\ncvt.u64.u32 %rd2, %r1;\nsetp.lt.u64 %p1, %rd2, %rd1;"),
    "bound moves": loop("add.s32 %r1, %r1, 1;\nadd.s32 %r2, %r2, 1;\nsetp.lt.s32 %p1, %r1, %r2;"),
    "set back": loop("add.s32 %r3, %r1, 1;\nselp.b32 %r1, 0, %r3, %p2;\nsetp.lt.s32 %p1, %r1, %r2;"),
    "collatz": loop("mad.lo.s32 %r4, %r1, 3, 1;\nshr.u32 %r5, %r1, 1;\nselp.b32 %r1, %r4, %r5, %p2;\n"
                    "setp.gt.s32 %p1, %r1, 1;"),
    "both must hold": loop("add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p3, %r1, %r2;\nor.pred %p1, %p2, %p3;"),
    "count from a division by 0": loop(
        "add.s32 %r1, %r1, -4;\nsetp.ne.s32 %p1, %r1, 0;",
        "ld.param.u32 %r2, [count];\ndiv.u32 %r4, 6, %r2;\nand.b32 %r3, %r4, 3;\nsub.s32 %r1, %r4, %r3;",
    ),
}  # fmt: skip


def unbounded(text: str) -> int:
    registers = ".reg .pred %p<4>;\n.reg .b16 %rs<2>;\n.reg .b32 %r<7>;\n.reg .b64 %rd<3>;\n"
    return len(unbounded_loop_heads(parse(entry(f"{registers}{text}\nret;")).entries()[0]))


@pytest.mark.parametrize("text", COUNTED)
def test_count_ends_loop(text: str) -> None:
    assert unbounded(text) == 0


@pytest.mark.parametrize("name", UNBOUNDED)
def test_no_count_ends_loop(name: str) -> None:
    assert unbounded(UNBOUNDED[name]) == 1
