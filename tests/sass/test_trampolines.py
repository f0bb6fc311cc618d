"""Snippets in the middle of a kernel wait for all that they began."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.assembler import Assembler
from tui_probe.sass.inline_code import FreeRegisters, InlineCode
from tui_probe.sass.words import LDC, LDCU, NO_BARRIER, RZ, constant_offset, new_word, with_constant_offset

SUMS = """.version 7.8
.target sm_90
.address_size 64
.visible .entry snippet(.param .u64 output)
{
	.reg .b32 %value<3>, %sum<3>, %mark;
	.reg .b64 %address;
	mov.u32 %mark, 0;
	ld.volatile.shared.u32 %value1, [%mark+4096];
	ld.volatile.shared.u32 %value2, [%mark+8192];
	redux.sync.add.s32 %sum1, %value1, 0xffffffff;
	redux.sync.add.s32 %sum2, %value2, 0xffffffff;
	ld.param.u64 %address, [output];
	red.global.add.u32 [%address], %sum1;
	red.global.add.u32 [%address+4], %sum2;
	ret;
}
"""


@pytest.mark.parametrize("both", [False, True])
def test_a_barrier_for_results_and_operands_is_still_waited_for(both: bool, tmp_path: Path) -> None:
    """An instruction may have one barrier for both; those of marks, whose moves release none, are not waited for."""
    source, binary = tmp_path / "sums.ptx", tmp_path / "sums.cubin"
    source.write_text(SUMS)
    Assembler().assemble(source, binary, "sm_90", "snippet")
    cubin = Cubin.read(binary.read_bytes())
    if both:
        cubin = Cubin.read(with_one_barrier_for_both(cubin))
    snippet = InlineCode.from_cubin(cubin, "snippet", 0, may_exit=True)
    marks = {0x184, 0x188}
    released = {barrier for word in snippet.words if word.operation not in marks
                for barrier in (word.write_barrier, word.read_barrier)} - {NO_BARRIER}  # fmt: skip
    awaited = {barrier for word in snippet.words for barrier in range(6) if word.wait_mask >> barrier & 1}
    redux = [word for word in snippet.words if word.operation == 0x1C4]
    assert len(redux) == 2
    assert {word.write_barrier for word in redux} - {NO_BARRIER} <= awaited <= released | {5}


@pytest.mark.parametrize("opcode", [0x600 | LDCU, 0xA00 | LDC])
def test_parameters_of_a_snippet_are_read_behind_those_of_the_kernel(opcode: int) -> None:
    word = new_word(opcode, 1).with_field(16, 8, 0).with_field(24, 8, RZ)
    free = FreeRegisters(
        arch=100,
        base=0x380,
        probe_base=0x3D0,
        first_register=32,
        scratch=31,
        uniform={0: 8},
        predicates={},
        barriers=(0, 1, 2, 3, 4, 5),
        predicate_barriers=0,
        convergence=0,
        convergence_barriers={},
        registers=40,
    )
    for offset, expected in ((0x358, 0x358), (0x388, 0x388), (0x390, 0x3D0), (0x398, 0x3D8)):
        snippet = InlineCode(100, (with_constant_offset(word, offset),), 0x380, 0x390)
        (placed,) = snippet.place(free, {})
        assert constant_offset(placed) == expected


def with_one_barrier_for_both(cubin: Cubin) -> bytes:
    """The file with the read barrier of each REDUX that has a write barrier set to that."""
    image = bytearray(cubin.image)
    section = next(barrier for barrier in cubin.sections if barrier.name == ".text.snippet")
    for at in range(section.offset, section.end, 16):
        bits = int.from_bytes(image[at : at + 16], "little")
        write = bits >> 110 & 7
        if bits & 0x1FF == 0x1C4 and write != NO_BARRIER:
            image[at : at + 16] = (bits & ~(7 << 113) | write << 113).to_bytes(16, "little")
    return bytes(image)
