"""Clock reads behind barriers: none is where a warp reads it before the barrier is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.engine.kernels import BLOCK_SCHED, entry, probed
from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.assembler import Assembler
from tui_probe.probe_files.loading import load_probe
from tui_probe.sass.operations import operation_name
from tui_probe.sass.target import GraftTarget

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.sass.words import Word

WAIT = load_probe("barrier_wait")
PHASES = load_probe("phases")
FULL_STALL = 5
"""Stall cycles of a BAR, at least, behind which a warp waits for it."""
BARRIERS = ("bar.sync 0;", "barrier.sync 1, 64;", "bar.red.popc.u32 %r1, 0, %p1;")


def kernel(barrier: str, behind: str = "") -> str:
    return entry(
        f"""
	.reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p<2>;
	ld.param.u64 %rd1, [memory];
	mov.u32 %r2, %tid.x;
	setp.eq.u32 %p1, %r2, 3;
	mov.u32 %r1, 0;
	st.global.u32 [%rd1], %r2;
	{barrier}
	{behind}
	st.global.u32 [%rd1+4], %r1;
	ret;""",
        ".param .u64 memory",
    ).replace("sm_80", "sm_90")


@pytest.mark.parametrize("barrier", BARRIERS)
def test_clock_read_behind_barrier_is_separated_from_it(barrier: str) -> None:
    lines = [line.strip() for line in probed(kernel(barrier), probe=WAIT).splitlines()]
    behind = lines.index(barrier) + 1
    assert lines[behind].startswith("pmevent.mask 0;")
    assert any("%clock" in line for line in lines[behind + 1 :])


def test_barrier_without_clock_read_behind_it_is_unchanged() -> None:
    away = "st.global.u32 [%rd1], %r1;\n\tbra $next;\n$next:\n\tadd.u32 %r1, %r1, 1;"
    assert "pmevent" not in probed(kernel("bar.sync 0;", away), probe=BLOCK_SCHED)
    assert "pmevent" in probed(kernel("bar.sync 0;"), probe=BLOCK_SCHED)


def test_barrier_of_cluster_or_warp_is_unchanged() -> None:
    assert "pmevent" not in probed(kernel("bar.warp.sync 0xffffffff;"), probe=WAIT)
    assert "pmevent" not in probed(kernel("barrier.cluster.arrive; barrier.cluster.wait;"), probe=WAIT)


def barriers_of(text: str, folder: Path) -> list[Word]:
    """The BAR instructions of a kernel that ptxas made for sm_90."""
    source, image = folder / "kernel.ptx", folder / "kernel.cubin"
    source.write_text(text)
    Assembler().assemble(source, image, "sm_90", "")
    target = GraftTarget.from_cubin(Cubin.read(image.read_bytes()), "kernel")
    return [word for word in target.words if operation_name(word, target.arch).startswith("BAR")]


@pytest.mark.usefixtures("ptxas")
@pytest.mark.parametrize("probe", [WAIT, PHASES], ids=["barrier_wait", "phases"])
def test_machine_code_waits_at_barrier_before_it_reads_the_clock(probe: object, tmp_path: Path) -> None:
    # what ptxas makes of a kernel's own clock read shows what is avoided
    own = kernel("bar.sync 0;", "mov.u32 %r1, %clock;")
    assert [word.stall for word in barriers_of(own, tmp_path)] == [1]
    waiting = barriers_of(probed(kernel("bar.sync 0;"), probe=probe), tmp_path)  # type: ignore[arg-type]
    assert waiting
    assert min(word.stall for word in waiting) >= FULL_STALL
