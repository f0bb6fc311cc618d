"""Loops that only try an instruction again are found, in the forms that compilers and libraries write."""

from __future__ import annotations

import pytest

from tests.engine.kernels import DATA, entry
from tui_probe.ptx.control_flow import basic_blocks, loop_heads, natural_loops
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Instruction
from tui_probe.ptx.waiting import WaitLoop, retried_reads, wait_loops

TRY = "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;"
CUTLASS = f"""mov.u32 %r2, 1;
{{
.reg .pred %p1;
LAB_WAIT:
{TRY}
@%p1 bra DONE;
bra LAB_WAIT;
DONE:
}}
ret;"""
TRITON = f"add.u32 %r2, %r1, 1;\n{{\n.reg .pred %p1;\nwaitLoop:\n{TRY}\n@!%p1 bra.uni waitLoop;\n}}\nret;"
NVCC = f"""mov.u32 %r2, 1;
$again:
{{
.reg .pred %p1;
{TRY}
selp.b32 %r5, 1, 0, %p1;
}}
setp.eq.s32 %p2, %r5, 0;
@%p2 bra $again;
ret;"""
SLEEPS = f"""mov.u32 %r9, 0;
bra.uni $try;
$count:
add.s32 %r9, %r9, 1;
$try:
{TRY}
@%p1 bra $done;
setp.lt.s32 %p2, %r9, 16;
@%p2 bra $count;
mov.u64 %rd1, %globaltimer;
nanosleep.u32 100;
bra.uni $try;
$done:
ret;"""
FIRST_TRY = f"""cp.async.commit_group;
{TRY}
@%p1 bra $done;
mov.u32 %r2, 0;
$again:
nanosleep.u32 100;
{TRY}
@!%p1 bra $again;
$done:
ret;"""
GIVES_UP = f"mov.u32 %r2, 0;\n$again:\n{TRY}\n@%p1 bra $done;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, 99;\n\
@%p2 bra $again;\ntrap;\n$done:\nret;"
WORKS = f"mov.u32 %r2, 0;\n$again:\n{TRY}\nld.shared.u32 %r2, [%r1];\n@!%p1 bra $again;\nret;"
COUNTS = f"mov.u32 %r2, 9;\n$again:\n{TRY}\nsub.u32 %r2, %r2, 1;\nsetp.ne.u32 %p2, %r2, 0;\n@%p2 bra $again;\nret;"
ENTERED_TWICE = f"@%p2 bra $middle;\n$again:\nmov.u32 %r2, 1;\n$middle:\n{TRY}\n@!%p1 bra $again;\nret;"
ALONE = f"mov.u32 %r2, 0;\n{TRY}\nret;"
GUARDED = f"mov.u32 %r2, 0;\n$again:\n@%p2 {TRY}\n@!%p1 bra $again;\nret;"


RING = """mov.u32 %r9, 0;
$slot:
ld.volatile.shared.u32 %r2, [%r1];
ld.volatile.shared.u32 %r3, [%r1+4];
sub.u32 %r4, %r2, %r3;
setp.gt.u32 %p1, %r4, 3;
@%p1 bra $slot;
st.shared.u32 [%r1+8], %r9;
ld.volatile.shared.u32 %r5, [%r1+12];
add.u32 %r9, %r9, 1;
setp.lt.u32 %p2, %r9, %r5;
@%p2 bra $slot;
$empty:
atom.shared.add.u32 %r6, [%r1], 0;
setp.eq.u32 %p3, %r6, 0;
@%p3 bra $skip;
bra $empty;
$skip:
atom.shared.add.u32 %r8, [%r1], 1;
ld.volatile.shared.u32 %r9, [%r1];
setp.gt.u32 %p2, %r9, %r8;
@%p2 bra $skip;
ld.relaxed.gpu.global.u32 %r7, [%rd1];
ret;"""


def test_reads_are_retried_in_a_loop_that_begins_with_the_one_around_it() -> None:
    retried = retried_reads(parse(entry(RING)).entries()[0])
    assert [(read.opcode, str(read.operands[0])) for read in retried] == [("ld", "%r2"), ("ld", "%r3"), ("atom", "%r6")]


def is_tried(instruction: Instruction) -> bool:
    return instruction.opcode == "mbarrier" and instruction.modifiers[0] in ("try_wait", "test_wait")


def found(body: str) -> list[WaitLoop]:
    return wait_loops(parse(entry(body)).entries()[0], is_tried)


def ways(loop: WaitLoop) -> list[str]:
    """Return its entries and exits: the opcode at each place, and the side."""
    return [
        " ".join(f"{edge.side} {edge.instruction.opcode}" for edge in edges) for edges in (loop.entries, loop.exits)
    ]


@pytest.mark.parametrize(
    ("body", "tries", "entry_", "exit_"),
    [
        (CUTLASS, 1, "behind mov", "taken bra"),
        (TRITON, 1, "behind add", "behind bra"),
        (NVCC, 1, "behind mov", "behind bra"),
        (SLEEPS, 1, "taken bra", "taken bra"),
        (FIRST_TRY, 2, "before mbarrier", "taken bra behind bra"),
        (GIVES_UP, 1, "behind mov", "taken bra behind bra"),
    ],
    ids=["cutlass", "triton", "nvcc", "sleeps", "first try", "gives up"],
)
def test_one_wait_in_each_form(body: str, tries: int, entry_: str, exit_: str) -> None:
    (loop,) = found(body)
    assert len(loop.tries) == tries
    assert ways(loop) == [entry_, exit_]


@pytest.mark.parametrize(
    "body",
    [WORKS, COUNTS, ENTERED_TWICE, ALONE, GUARDED],
    ids=["works", "counts", "entered twice", "alone", "guarded"],
)
def test_loops_that_do_more_than_wait(body: str) -> None:
    assert found(body) == []


def test_inner_loops_wait_and_outer_ones_work() -> None:
    """Labels of the same name in two scopes are two labels."""
    inner = CUTLASS.removesuffix("ret;")
    body = f"mov.u32 %r2, 0;\n$outer:\n{inner}\n{inner}\nadd.u32 %r2, %r2, 1;\n@%p2 bra $outer;\nret;"
    loops = found(body)
    assert [len(loop.tries) for loop in loops] == [1, 1]
    assert loops[0].exits[0].instruction is not loops[1].exits[0].instruction
    function = parse(entry(body)).entries()[0]
    assert [head.opcode for head in loop_heads(function)] == ["mov", "mbarrier", "mbarrier"]
    assert all(basic_blocks(function))


@pytest.mark.parametrize(
    ("file", "kernel", "tries"),
    [
        ("hopper", "uses_tma", [1]),
        ("jax_reduce", "input_reduce_fusion", [1]),
        ("transactions", "producer_consumer", [1] * 8),
        ("transactions", "library", [1, 1]),
        ("waits", "first_try", [2]),
        ("waits", "staged", [1, 1]),
    ],
)
def test_the_waits_of_compiled_kernels(file: str, kernel: str, tries: list[int]) -> None:
    module = parse((DATA / f"{file}.sm_90a.ptx").read_text())
    (function,) = [entry for entry in module.entries() if entry.name == kernel]
    assert [len(loop.tries) for loop in wait_loops(function, is_tried)] == tries


def test_loops_by_dominance() -> None:
    """Block 1 is above the head of its loop, 2; block 4 branches to itself; 6 cannot be reached."""
    leads_to = [[2], [2], [1, 3], [4], [4, 5], [], [2]]
    assert natural_loops(leads_to) == {2: {1, 2}, 4: {4}}
    assert natural_loops([]) == {}
    assert natural_loops([[1, 2], [2], [1]]) == {}, "two ways into a circle: neither block dominates the other"
