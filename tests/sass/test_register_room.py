"""Room for registers in kernels whose warps exchange them, and in those that use all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.sass import corpus
from tests.sass.test_wait_probe import ATTENTION, code_at, grafted
from tui_probe.binaries.cubin import Cubin
from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.register_room import RegisterRoom, last_register_end
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.words import MAX_REGISTERS, RESERVED, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

REGISTER = re.compile(r"(?<![A-Z0-9])R(\d+)")
ROLES = """
.visible .entry k(.param .u64 x, .param .u32 n) .maxntid 384 .minnctapersm 1
{{
	.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<200>;
	ld.param.u64 %d1, [x]; ld.param.u32 %r1, [n]; mov.u32 %r3, %tid.x; mul.wide.u32 %d3, %r3, 4;
	add.s64 %d2, %d1, %d3; setp.lt.u32 %p1, %r3, 128; @%p1 bra producer;
	setmaxnreg.inc.sync.aligned.u32 240;
{loads}
	bar.sync 1, 256;
{sums}
	st.global.f32 [%d2], %f0; ret;
producer:
	setmaxnreg.dec.sync.aligned.u32 {left};
	ld.global.f32 %f1, [%d2+4096]; add.f32 %f1, %f1, %f1; st.global.f32 [%d2+8192], %f1; ret; }}
"""
VALUES = 150


ALL_REGISTERS = """
.visible .entry k(.param .u64 x)
{{
	.reg .b64 %d<9>; .reg .f32 %f<300>;
	ld.param.u64 %d2, [x];
{loads}
{stores}
	ld.volatile.global.f32 %f1, [%d2]; add.f32 %f1, %f1, %f1; st.global.f32 [%d2], %f1; ret; }}
"""
FULL = 247


def roles(left: int) -> str:
    """A consumer that holds many values, and a producer with ``left`` registers."""
    loads = "\n".join(f"\tld.volatile.global.f32 %f{number}, [%d2+{number * 1536}];" for number in range(VALUES))
    sums = "\n".join(f"\tfma.rn.f32 %f0, %f{number}, %f{VALUES - number}, %f0;" for number in range(1, VALUES))
    return ROLES.format(loads=loads, sums=sums, left=left)


def test_register_bound_reaches_every_named_register(disassembled: Callable[[bytes], dict[int, str]]) -> None:
    images = [ATTENTION.read_bytes(), corpus.cubin("softmax.sm_100"), corpus.cubin("softmax.sm_120")]
    for image in images:
        cubin = Cubin.read(image)
        target = GraftTarget.of(cubin, next(iter(cubin.kernels)))
        texts = disassembled(image)
        for index, word in enumerate(target.words):
            named = [int(number) for number in REGISTER.findall(texts[index * WORD_BYTES])]
            assert max(named, default=-1) < max(last_register_end(word, target.arch), 0), texts[index * WORD_BYTES]


@pytest.mark.parametrize("left", [24, 40])
def test_clocks_have_room_in_each_role(assembled: Callable[[str, int | str], Cubin], left: int) -> None:
    target = GraftTarget.of(assembled(roles(left), "90a"), "k")
    assert target.fewest_registers == left < target.registers
    graph = FlowGraph.of(target)
    room = RegisterRoom.of(target, graph)
    result, waits = grafted(target)
    after = GraftTarget.of(Cubin.read(result.image), "k")
    assert result.registers == target.registers  # more would not fit into the block's registers
    limits = {room.limit(wait.site.index) for wait in waits.sites}
    assert limits >= {left, 240}
    for wait in waits.sites:
        clock = after.words[code_at(result.image, "k", wait.at) // WORD_BYTES].rd
        assert room.first_free(wait.site.index) <= clock < room.limit(wait.site.index) - RESERVED - 1


def test_full_kernel_has_clocks_in_registers_that_are_dead(assembled: Callable[[str, int | str], Cubin]) -> None:
    loads = "\n".join(f"\tld.volatile.global.f32 %f{number}, [%d2+{number * 4}];" for number in range(FULL))
    stores = "\n".join(f"\tst.volatile.global.f32 [%d2+{number * 4}], %f{number};" for number in range(FULL))
    target = GraftTarget.of(assembled(ALL_REGISTERS.format(loads=loads, stores=stores), 90), "k")
    assert target.registers > MAX_REGISTERS - 2
    result, waits = grafted(target)
    assert waits.sites
    assert result.registers <= MAX_REGISTERS
