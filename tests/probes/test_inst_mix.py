"""The instruction mix is that of the kernels on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.engine.kernels import HEADER, counting_probe, entry, toml_probe
from tests.probes.running import example, result_of, simulated
from tui_probe.errors import ProbeFileError
from tui_probe.probes.inst_mix import InstructionMix, analyse
from tui_probe.ptx.instruction_facts import CLASSES, class_of
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Instruction

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def mixed(tmp_path: Path) -> Callable[..., InstructionMix]:
    def run(*arguments: Any, **options: Any) -> InstructionMix:
        return analyse(result_of(tmp_path, "inst_mix", *arguments, **options))

    return run


def mix(**executed: int) -> InstructionMix:
    return InstructionMix(dict.fromkeys(CLASSES, 0) | executed, 0)


@pytest.mark.parametrize(("count", "inside"), [(8192, 256), (5000, 157), (0, 0)])
def test_strided_store(mixed: Callable[..., InstructionMix], count: int, inside: int) -> None:
    """All warps: 2 ld.param, 3 mov; mad, setp; bra, ret. Those inside: cvta; shl, mul, add; st."""
    analysis = mixed(example("strided_store"), np.zeros(16384, np.uint32), np.uint32(count), grid=(32,), block=(256,))
    assert analysis == mix(other=5 * 256 + inside, integer=2 * 256 + 3 * inside, branch=2 * 256, store=inside)
    assert analysis.share("fp32") is None


LOOP = """
.reg .pred %p<3>;
.reg .b32 %r<9>;
.reg .f32 %f<9>;
.reg .f64 %d<9>;
mov.u32 %r1, %tid.x;
mov.f32 %f1, 0f00000000;
$loop:
setp.eq.u32 %p1, %r1, 0;
@%p1 bra $end;
sub.u32 %r1, %r1, 1;
fma.rn.f32 %f1, %f1, %f1, %f1;
@%p1 add.f64 %d1, %d2, %d3;
bra $loop;
$end:
mov.u32 %r2, %tid.x;
and.b32 %r2, %r2, 1;
setp.eq.u32 %p2, %r2, 1;
@%p2 bra $odd;
mul.f64 %d1, %d1, %d1;
bra $join;
$odd:
bar.warp.sync 0x55555555;
$join:
bar.sync 0;
ret;
"""


def test_a_warp_goes_round_as_often_as_its_last_lane(mixed: Callable[..., InstructionMix]) -> None:
    """Threads 0 to 19: the loop's head is reached 20 times, its body 19 times; both sides of the branch run once.

    An addition under a predicate that never holds counts, since it is issued.
    """
    text = entry(LOOP.replace("bar.warp.sync 0x55555555", "bar.warp.sync 0xaaaaa"))
    analysis = mixed(text, block=(20,))
    assert analysis == mix(
        other=3, integer=20 + 19 + 2, branch=20 + 19 + 1 + 1 + 1, fp32=19, fp64=19 + 1, barrier=1 + 1
    )
    assert analysis.share("fp64") == 20 / 39


def test_matrix_product_through_tensor_cores(mixed: Callable[..., InstructionMix]) -> None:
    depth = 64
    a, b, d = np.ones((16, depth), np.float16), np.ones((depth, 8), np.float16), np.zeros((16, 8), np.float16)
    analysis = mixed(simulated("matrices"), d, a, b, np.int32(depth), name="pipeline").executed
    assert analysis["tensor"] == depth // 16
    assert analysis["load"] == 2 * depth // 16 + 2 * depth // 16
    assert analysis["store"] == 2 * 4, "two results of four bytes, stored byte by byte"
    assert analysis["barrier"] == 3 * depth // 16


@pytest.mark.parametrize(
    ("instruction", "name"),
    [
        ("add.rn.f32 %f1, %f2, %f3", "fp32"),
        ("set.lt.u32.f64 %r1, %d1, %d2", "fp64"),
        ("fma.rn.bf16x2 %r1, %r2, %r3, %r4", "bf16"),
        ("mul.wide.u32 %rd1, %r1, 4", "integer"),
        ("or.pred %p1, %p2, %p3", "integer"),
        ("ld.param.u64 %rd1, [x]", "other"),
        ("ld.const.u32 %r1, [x]", "load"),
        ("cvt.rn.f32.s32 %f1, %r1", "other"),
        ("red.global.add.u32 [%rd1], 1", "atomic"),
        ("redux.sync.add.u32 %r1, %r2, %r3", "other"),
        ("cp.async.cg.shared.global [%r1], [%rd1], 16", "load"),
        ("cp.async.commit_group", "other"),
        ("cp.async.wait_group 1", "barrier"),
        ("cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r1], %r2", "store"),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 0", "tensor"),
        ("wgmma.commit_group.sync.aligned", "other"),
        ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1}, [%rd1], %r2", "load"),
        ("mbarrier.arrive.shared.b64 %rd1, [%r1]", "barrier"),
    ],
)
def test_classes(instruction: str, name: str) -> None:
    (node,) = parse(f"{HEADER}.entry k(){{ {instruction}; }}").entries()[0].body or []
    assert isinstance(node, Instruction)
    assert class_of(node) == name


@pytest.mark.parametrize("position", ["block.fp8", "block.fp32.load", "block.!load"])
def test_a_block_has_one_of_the_classes(position: str) -> None:
    with pytest.raises(ProbeFileError, match="the classes of basic blocks are fp32, fp64"):
        counting_probe(position, "add.u64 %n, %n, 1;")


@pytest.mark.parametrize(
    ("position", "snippet", "words"),
    [
        ("ld.global", "add.u64 %n, %n, INSTRUCTIONS;", "available only at a block"),
        ("block:ld.global", "add.u64 %n, %n, INSTRUCTIONS;", "available only at a block"),
        ("block.load", "add.u64 %n, %n, BYTES;", "not available at blocks and source lines"),
    ],
)
def test_helpers_belong_to_their_positions(position: str, snippet: str, words: str) -> None:
    with pytest.raises(ProbeFileError, match=words):
        counting_probe(position, snippet)


def test_all_instructions_of_a_block(tmp_path: Path) -> None:
    probe = toml_probe(
        """
[map.n]
level = "thread"
regs = { n = "u32" }
[probe.frame]
position = "kernel"
before = ".reg .b32 %n; mov.u32 %n, 0;"
after = "SAVE [ n ] {%n};"
[probe.count]
position = "block"
before = "add.u32 %n, %n, INSTRUCTIONS;"
"""
    )
    text = entry("{ .reg .pred %p; .reg .b32 %r; mov.u32 %r, %tid.x; setp.lt.u32 %p, %r, 7; @%p bra $x; not.b32 %r, %r;"
                 "mov.u32 %r, 1; } $x: ret;")  # fmt: skip
    counts = result_of(tmp_path, probe, text).records(0, np.uint32)[0, :, 0]
    assert counts.tolist() == [4] * 7 + [6] * 25
