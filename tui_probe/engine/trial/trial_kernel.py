"""The known kernel of the graft self-test.

It has all that a graft could break: lanes that leave early while others continue, at several places, in a loop too;
values in registers and in uniform registers across them; a barrier; loads and stores of global memory, some of them
guarded; shared memory; a store right before the end; a module variable and a constant, which the grafted module must
share with the original.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.grafting.snippet_ptx import ptx_version
from tui_probe.errors import ProbeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.engine.assembler import Assembler
    from tui_probe.probe_model.probe import Probe

TRIAL_KERNEL: Final = "trial"
BLOCKS: Final = 64
THREADS: Final = 128
THREADS_OF_GRID: Final = BLOCKS * THREADS
OUTPUT_WORD: Final = 4
"""Bytes that each thread loads, exchanges and stores."""
MAX_TURNS: Final = 7
"""Turns of the loops that cases put into it: a number of 3 bits, different between lanes or warps."""
MAX_SMS: Final = 4096
"""More than any device has: a larger ``%smid`` is a wrong record."""
ACTIVE_THREADS: Final = THREADS_OF_GRID - 37
"""Lanes behind these leave immediately, so that one warp is split and one has nothing to do."""
_PTX: Final = """\
.visible .global .align 4 .u32 trial_total;
.visible .const .align 4 .b8 trial_table[16];
.visible .entry trial(.param .u64 output, .param .u64 count)
{
	.reg .pred %p<8>;
	.reg .b32 %r<24>;
	.reg .b64 %rd<12>;
	.shared .align 4 .b8 exchanged[512];
	ld.param.u64 %rd1, [output];
	cvta.to.global.u64 %rd2, %rd1;
	ld.param.u32 %r1, [count];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.u32 %r5, %r2, %r3, %r4;
	mul.wide.u32 %rd3, %r5, 4;
	add.s64 %rd4, %rd2, %rd3;
	shl.b32 %r6, %r4, 2;
	mov.u32 %r7, exchanged;
	add.u32 %r8, %r7, %r6;
	mul.lo.u32 %r9, %r5, 2654435761;
	st.shared.u32 [%r8], %r9;
	bar.sync 0;
	setp.ge.u32 %p1, %r5, %r1;
	@%p1 exit;
	and.b32 %r19, %r4, 1;
	setp.eq.u32 %p4, %r19, 1;
	mov.u32 %r20, 0;
	@%p4 ld.global.u32 %r20, [%rd4];
	xor.b32 %r10, %r6, 508;
	add.u32 %r10, %r7, %r10;
	ld.shared.u32 %r11, [%r10];
	add.u32 %r11, %r11, %r20;
	and.b32 %r12, %r5, 3;
	shl.b32 %r12, %r12, 2;
	mov.u64 %rd5, trial_table;
	cvt.u64.u32 %rd6, %r12;
	add.s64 %rd7, %rd5, %rd6;
	ld.const.u32 %r13, [%rd7];
	mov.u32 %r14, 0;
	mov.u32 %r15, %r2;
$again:
	mad.lo.u32 %r11, %r11, %r13, %r15;
	add.u32 %r15, %r15, %r3;
	add.u32 %r14, %r14, 1;
	and.b32 %r16, %r11, 31;
	setp.eq.u32 %p2, %r16, 7;
	@!%p2 bra $goes_on;
	st.global.u32 [%rd4], %r11;
	atom.global.add.u32 %r17, [trial_total], %r14;
	exit;
$goes_on:
	setp.lt.u32 %p3, %r14, 100;
	@%p3 bra $again;
	add.u32 %r18, %r11, %r15;
	st.global.u32 [%rd4], %r18;
	red.global.add.u32 [trial_total], %r14;
	ret;
}
"""
"""Each thread reads the shared word of the thread at the other end of its block (508: the offset of the last word). The
odd multiplier 2654435761 gives each thread another word.
"""
_OTHERS_PTX: Final = """\
.visible .global .align 4 .u32 other_total;
.visible .global .align 8 .u64 other_address = other_total;
.visible .const .align 4 .b8 other_table[20];
.func (.param .b32 mixed) trial_mix(.param .b32 left, .param .b32 right)
{
	.reg .b32 %m<4>;
	ld.param.u32 %m1, [left];
	ld.param.u32 %m2, [right];
	xor.b32 %m3, %m1, %m2;
	mul.lo.u32 %m3, %m3, 40503;
	st.param.b32 [mixed], %m3;
	ret;
}
.visible .entry other(.param .u64 output)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	.shared .align 16 .b8 own[256];
	ld.param.u64 %rd1, [output];
	cvta.to.global.u64 %rd2, %rd1;
	ld.global.u32 %r1, [other_total];
	ld.const.u32 %r2, [other_table+4];
	add.u32 %r1, %r1, %r2;
	st.shared.u32 [own], %r1;
	ld.global.u64 %rd3, [other_address];
	st.global.u64 [%rd2], %rd3;
	ret;
}
"""
"""A second kernel, a function, and variables, for a cubin for which the trial's kernel is only a part."""
_SUM_PTX: Final = "	add.u32 %r18, %r11, %r15;\n"
"""Last addition of the kernel, which the form with other functions replaces by ``_CALL_PTX``."""
_LOOP_LABEL_PTX: Final = "$again:\n"
"""Head of the kernel's loop: the loop of a case is inserted in front of it."""
_BODY_PTX: Final = ".param .u64 count)\n{\n"
"""Start of the kernel's body."""
_RELEASE_PTX: Final = ".param .u64 count)\n.maxnreg 64\n{\n\tsetmaxnreg.dec.sync.aligned.u32 40;\n"
"""Start of a body whose warps release registers: 40 of 64 are enough for the kernel, but code of records may use none
above the kernel's.
"""
_RELEASE_VERSION: Final = "8.0"
"""First PTX version with ``setmaxnreg``."""
_CALL_PTX: Final = """\
	{
	.param .b32 left, right, mixed;
	st.param.b32 [left], %r11;
	st.param.b32 [right], %r15;
	call.uni (mixed), trial_mix, (left, right);
	ld.param.b32 %r18, [mixed];
	}
"""


class TrialFailedError(ProbeError):
    """Raised if a grafted kernel behaves differently from the original."""


class TrialCase(NamedTuple):
    """A probe to try, the bytes of each of its maps, and a check that raises TrialFailedError for wrong records."""

    probe: Probe
    map_bytes: tuple[int, ...]
    check: Callable[[bytes], None]
    is_marked: bool = False
    """True if it has a marked map of warps, whose address marks flat launches."""


def trial_cubin(
    arch: int, assembler: Assembler, *, with_others: bool = False, loop: str = "", few_registers: bool = False
) -> Cubin:
    """Assemble the kernel without a probe.

    ``with_others`` puts it next to another kernel and a function, which it calls. ``loop`` is PTX that each thread runs
    in front of the kernel's own loop. With ``few_registers`` its warps release registers. Raises ToolchainError.
    """
    version, target = ptx_version(arch), f"sm_{arch}"
    text = _replace_once(_PTX, _LOOP_LABEL_PTX, loop + _LOOP_LABEL_PTX)
    if with_others:
        text = _OTHERS_PTX + _replace_once(text, _SUM_PTX, _CALL_PTX)
    if few_registers:
        version, target = _RELEASE_VERSION, f"{target}a"
        text = _replace_once(text, _BODY_PTX, _RELEASE_PTX)
    with tempfile.TemporaryDirectory(prefix="tui-probe-") as folder:
        source, binary = Path(folder) / "trial.ptx", Path(folder) / "trial.bin"
        source.write_text(f".version {version}\n.target {target}\n.address_size 64\n{text}")
        assembler.assemble(source, binary, target, TRIAL_KERNEL)
        return Cubin.read(binary.read_bytes())


def _replace_once(text: str, part: str, replacement: str) -> str:
    """Replace the only occurrence of a part: without it, the self-test would pass on a kernel that lacks the case."""
    assert text.count(part) == 1, f"the kernel of the self-test has {part!r} {text.count(part)} times"
    return text.replace(part, replacement)
