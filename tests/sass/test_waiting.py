"""Kernels whose blocks may wait for one another: PTX and the SASS that is made of it give the same answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.sass.conftest import ARCHITECTURES
from tui_probe.engine.grafting.stay_positions import blocks_may_wait as by_machine_code
from tui_probe.ptx.parser import parse
from tui_probe.ptx.waiting import blocks_may_wait as by_ptx
from tui_probe.sass.target import GraftTarget

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.binaries.cubin import Cubin

KERNEL = """.visible .entry kernel(.param .u64 memory)
{{
	.reg .pred %p<3>;
	.reg .b32 %r<9>;
	.reg .f32 %f<9>;
	.reg .b64 %rd<4>;
	.shared .align 8 .b8 tile[64];
	ld.param.u64 %rd1, [memory];
	cvta.to.global.u64 %rd2, %rd1;
again:
{body}
	st.global.u32 [%rd2+64], %r1;
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra again;
	ret;
}}
"""
FREE = [
    "ld.global.u32 %r1, [%rd2];",
    "ld.global.nc.u32 %r1, [%rd2];",
    "ld.u32 %r1, [%rd1];",
    "ld.global.cs.u32 %r1, [%rd2];",
    "ld.volatile.shared.u32 %r1, [tile];",
    "mov.u32 %r1, %tid.x; red.global.add.u32 [%rd2], %r1;",
    "atom.shared.add.u32 %r1, [tile], 1;",
    "bar.sync 0; ld.shared.u32 %r1, [tile]; bar.sync 0;",
    "ld.global.f32 %f1, [%rd2]; sqrt.rn.f32 %f2, %f1; cvt.rzi.u32.f32 %r1, %f2;",
    "ld.global.u32 %r1, [%rd2]; shfl.sync.bfly.b32 %r1, %r1, 1, 31, -1;",
]
WAITING = [
    "ld.volatile.global.u32 %r1, [%rd2];",
    "ld.acquire.gpu.global.u32 %r1, [%rd2];",
    "ld.relaxed.sys.global.u32 %r1, [%rd2];",
    "ld.global.cg.u32 %r1, [%rd2];",
    "ld.global.cv.u32 %r1, [%rd2];",
    "ld.volatile.u32 %r1, [%rd1];",
    "atom.global.add.u32 %r1, [%rd2], 1;",
    "atom.global.cas.b32 %r1, [%rd2], 0, 1;",
    "atom.add.u32 %r1, [%rd1], 1;",
    "membar.gl; ld.global.u32 %r1, [%rd2];",
    "fence.acq_rel.gpu; ld.global.u32 %r1, [%rd2];",
]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(("body", "waits"), [(text, False) for text in FREE] + [(text, True) for text in WAITING])
def test_both_say_the_same(assembled: Callable[[str, int | str], Cubin], arch: int, body: str, waits: bool) -> None:
    text = KERNEL.format(body=body)
    target = GraftTarget.from_cubin(assembled(text, arch), "kernel")
    assert by_machine_code(target.words, target.arch) == waits
    assert by_ptx(parse(f".version 8.0\n.target sm_80\n.address_size 64\n{text}").functions()) == waits


def test_calls_of_what_is_not_seen_may_wait() -> None:
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    outside = head + ".extern .func far();\n.visible .entry kernel()\n{\n\tcall.uni far;\n\tret;\n}\n"
    inside = head + ".func near()\n{\n\tret;\n}\n.visible .entry kernel()\n{\n\tcall.uni near;\n\tret;\n}\n"
    assert by_ptx(parse(outside).functions())
    assert not by_ptx(parse(inside).functions())
    waiting = inside.replace("{\n\tret;", "{\n\tmembar.gl;\n\tret;", 1)
    assert by_ptx(parse(waiting).functions())


def test_block_fences_are_excluded() -> None:
    text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry kernel()\n{{\n\t{};\n\tret;\n}}\n"
    assert not by_ptx(parse(text.format("fence.proxy.async")).functions())
    assert not by_ptx(parse(text.format("fence.mbarrier_init.release.cluster")).functions())
    assert by_ptx(parse(text.format("fence.sc.gpu")).functions())
