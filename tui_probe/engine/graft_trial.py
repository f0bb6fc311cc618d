"""A trial of grafts on this machine's GPU: a known kernel, with and without a probe in its machine code, compared.

``python -m tui_probe.engine.graft_trial --arch 90`` says in one line of JSON how it went: ``passed``, ``failed`` with
words, or ``impossible`` with words; and how it went with values kept in slots. It has a process of its own, so that
nothing that goes wrong reaches the program.

What the kernel has in it is what grafts could break: lanes that leave early while others go on, at several places, in
a loop too; values in registers and in uniform registers across them; a barrier; shared memory; a store right before
the end; a module variable and a constant, which the grafted module must share with the original.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.engine.assemble import Assembler
from tui_probe.engine.cuda_calls import LIBRARY, Cuda
from tui_probe.engine.grafts import Grafter
from tui_probe.engine.model import Field, Level, Map, Place, Position, Probe, ProbePoint
from tui_probe.engine.snippet import parse_snippet
from tui_probe.engine.snippet_ptx import ptx_version
from tui_probe.errors import ProbeError
from tui_probe.sass.cubin import Cubin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.engine.cuda_calls import Module

KERNEL: Final = "trial"
BLOCKS: Final = 64
THREADS: Final = 128
ROUNDS: Final = 4
"""Launches: what goes wrong by chance of timing may need several."""

_WARP: Final = 32
_THREADS_OF_GRID: Final = BLOCKS * THREADS
_ACTIVE: Final = _THREADS_OF_GRID - 37
"""Lanes behind these leave at once, so that one warp is split."""
_RECORD: Final = struct.Struct("<QIIIxxxxxxxxxxxx")
_TABLE: Final = struct.pack("<4I", 3, 5, 7, 11)
_MOST_SMS: Final = 4096
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
	xor.b32 %r10, %r6, 508;
	add.u32 %r10, %r7, %r10;
	ld.shared.u32 %r11, [%r10];
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
_BEFORE: Final = ".reg .b32 %begin;\nmov.u32 %begin, %clock;\n"
_AFTER: Final = """\
.reg .b64 %end, %start, %wide;
.reg .b32 %elapsed;
LOCATE [ trial ];
mov.u64 %end, %clock64;
cvt.u32.u64 %elapsed, %end;
sub.u32 %elapsed, %elapsed, %begin;
cvt.u64.u32 %wide, %elapsed;
sub.u64 %start, %end, %wide;
SAVE [ trial ] {%start, %elapsed, %smid};
"""


class TrialFailedError(ProbeError):
    """A grafted kernel did something else than the original."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trial and say how it went."""
    parser = argparse.ArgumentParser(prog="tui_probe.engine.graft_trial")
    parser.add_argument("--arch", type=int, required=True, help="90 for a device of sm_90")
    parser.add_argument("--driver", default=LIBRARY)
    options = parser.parse_args(arguments)
    told = {"outcome": "passed", "words": "", "slots": "passed"}
    try:
        cuda = Cuda(options.driver, options.arch)
        run_trial(cuda, options.arch, Assembler())
        try:  # what goes wrong from here on is a matter of few kernels
            run_trial(cuda, options.arch, Assembler(), in_slots=True)
        except ProbeError as error:
            told["slots"] = str(error)
    except TrialFailedError as error:
        told = {"outcome": "failed", "words": str(error)}
    except ProbeError as error:
        told = {"outcome": "impossible", "words": str(error)}
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


def run_trial(cuda: Cuda, arch: int, assembler: Assembler, *, in_slots: bool = False) -> None:
    """Raises TrialFailedError where a grafted kernel does something else, ProbeError where there can be no trial."""
    cubin = trial_cubin(arch, assembler)
    made = Grafter(trial_probe(), assembler, sampled=False).graft(cubin, KERNEL, in_slots=in_slots)
    original = cuda.load(cubin.image)
    image = bytearray(made.probed)
    for patch in made.grafted.patches:
        address = original.variable(patch.name) + patch.addend
        size, shift = (8, 0) if patch.kind == "abs64" else (4, 32 if patch.kind == "abs32hi" else 0)
        image[patch.offset : patch.offset + size] = (address >> shift).to_bytes(8, "little")[:size]
    try:
        grafted = cuda.load(bytes(image))
        for turn in range(ROUNDS):  # with the code for launches of any shape, and with that for flat ones
            _compare(cuda, original, grafted, made.grafted.constants, flat=turn % 2)
    except TrialFailedError:
        raise
    except ProbeError as error:
        raise TrialFailedError(f"the grafted kernel: {error}") from error


def trial_cubin(arch: int, assembler: Assembler) -> Cubin:
    """The kernel without a probe. Raises ToolchainError."""
    with tempfile.TemporaryDirectory(prefix="tui-probe-") as folder:
        source, binary = Path(folder) / "trial.ptx", Path(folder) / "trial.bin"
        source.write_text(f".version {ptx_version(arch)}\n.target sm_{arch}\n.address_size 64\n{_PTX}")
        assembler.assemble(source, binary, f"sm_{arch}", KERNEL)
        return Cubin.read(binary.read_bytes())


def trial_probe() -> Probe:
    """When and where each warp ran."""
    place = Place("trial", 0)
    before, after = parse_snippet(_BEFORE, place, KERNEL), parse_snippet(_AFTER, place, KERNEL)
    fields = Field("start", "u64", 0), Field("elapsed", "u32", 8), Field("smid", "u32", 12)
    return Probe(
        KERNEL,
        Path("trial"),
        "",
        "",
        before.registers | after.registers,
        (Map(KERNEL, Level.WARP, fields, 16),),
        (ProbePoint(KERNEL, (Position(""),), before.snippet, after.snippet),),
    )


def _compare(cuda: Cuda, original: Module, grafted: Module, constants: Sequence[tuple[str, int]], *, flat: int) -> None:
    """Run both kernels, and compare what they leave behind."""
    cuda.write(original.variable("trial_table"), _TABLE)
    slots = _THREADS_OF_GRID // _WARP
    records = cuda.allocate(slots * _RECORD.size)
    left = []
    for module, added in ((original, []), (grafted, [records + flat * THREADS // _WARP])):
        output, total = cuda.allocate(_THREADS_OF_GRID * 4), original.variable("trial_total")
        cuda.write(total, bytes(4))
        for name, size in constants if added else ():
            cuda.write(grafted.variable(name), cuda.read(original.variable(name), size))
        cuda.launch(module.function(KERNEL), BLOCKS, THREADS, [output, _ACTIVE, *added])
        left.append((cuda.read(output, _THREADS_OF_GRID * 4), cuda.read(total, 4)))
    if left[0] != left[1]:
        what = "its output" if left[0][0] != left[1][0] else "the variable that it adds to"
        raise TrialFailedError(f"the grafted kernel changed {what}")
    check_records(cuda.read(records, slots * _RECORD.size))


def check_records(content: bytes) -> None:
    """Raises TrialFailedError unless every warp left one record that can be true."""
    found = list(_RECORD.iter_unpack(content))
    missing = sum(mark != 1 for *_, mark in found)
    if missing:
        raise TrialFailedError(f"{missing} of {len(found)} warps left no record")
    for start, elapsed, sm, _ in found:
        if not start or not elapsed or sm >= _MOST_SMS:
            raise TrialFailedError(f"a warp's record cannot be true: start {start}, {elapsed} cycles, SM {sm}")


if __name__ == "__main__":
    sys.exit(main())
