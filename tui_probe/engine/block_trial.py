"""What the trial of grafts at basic blocks counts, and what that must be, worked out on paper.

The known kernel gets a loop, which each lane goes through another number of times and whose turns take one of two ways:
so its lanes part and meet again, and there are blocks of nothing but branches. What each way computes is counted by
lanes, a barrier by warps. The number of all instructions is the compiler's choice, but the classes must add up to it.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.engine.model import Field, Level, Map, Place, Probe, ProbePoint
from tui_probe.engine.positions import parse_positions
from tui_probe.engine.snippet import parse_snippet
from tui_probe.engine.trial_kernel import ACTIVE, KERNEL, THREADS_OF_GRID, WARP, Trial, TrialFailedError, trial_cubin
from tui_probe.ptx.instruction_classes import CLASSES

if TYPE_CHECKING:
    from tui_probe.engine.assemble import Assembler
    from tui_probe.sass.cubin import Cubin

_MOST_TURNS: Final = 7
_LOOP: Final = f"""\
	{{
	.reg .pred %q<2>;
	.reg .b32 %i<4>;
	.reg .f32 %f<2>;
	.reg .f64 %d<2>;
	cvt.rn.f32.u32 %f1, %r4;
	and.b32 %i1, %r5, {_MOST_TURNS};
	mov.u32 %i2, 0;
$turn:
	setp.ge.u32 %q0, %i2, %i1;
	@%q0 bra $turned;
	xor.b32 %i3, %i2, %r5;
	and.b32 %i3, %i3, 1;
	setp.eq.u32 %q1, %i3, 1;
	@%q1 bra $multiplied;
	add.rn.f32 %f1, %f1, 0f3F800000;
	sqrt.rn.f32 %f1, %f1;
	bra $counted;
$multiplied:
	cvt.f64.f32 %d1, %f1;
	mul.rn.f64 %d1, %d1, 0d3FF8000000000000;
	cvt.rn.f32.f64 %f1, %d1;
$counted:
	add.u32 %i2, %i2, 1;
	bra $turn;
$turned:
	cvt.rzi.u32.f32 %i3, %f1;
	add.u32 %r11, %r11, %i3;
	}}
"""
_TURNS: Final = [(thread, turn) for thread in range(ACTIVE) for turn in range(thread & _MOST_TURNS)]
EXPECTED: Final = {
    "sums": sum((thread ^ turn) % 2 == 0 for thread, turn in _TURNS),
    "products": sum((thread ^ turn) % 2 == 1 for thread, turn in _TURNS),
    "barriers": THREADS_OF_GRID // WARP,
    "threads": THREADS_OF_GRID,
}
_FIELDS: Final = (*EXPECTED, "instructions", "classes")
RECORD: Final = struct.Struct(f"<{len(_FIELDS)}Q")
_ENTERED: Final = """\
.reg .b32 %lanes;
.reg .pred %is_lowest;
activemask.b32 %lanes;
and.b32 %lanes, %lanes, %below;
setp.eq.u32 %is_lowest, %lanes, 0;
"""
_POINTS: Final = {
    "enter": ("block", _ENTERED),
    "instructions": ("block", "@%is_lowest add.u32 %instructions, %instructions, ISSUED;\n"),
    "classes": (
        ":".join(f"block.{name}" for name in CLASSES),
        "@%is_lowest add.u32 %classes, %classes, INSTRUCTIONS;\n",
    ),
    "barriers": ("block.barrier", "@%is_lowest add.u32 %barriers, %barriers, INSTRUCTIONS;\n"),
    "sums": ("add.f32:sub.f32", "add.u32 %sums, %sums, 1;\n"),
    "products": ("mul.f64", "add.u64 %products, %products, 1;\n"),
}


def block_cubin(arch: int, assembler: Assembler) -> Cubin:
    """The trial's kernel with the loop in it. Raises ToolchainError."""
    return trial_cubin(arch, assembler, loop=_LOOP)


def block_trial() -> Trial:
    """Counts of blocks, and of instructions that are counted by blocks."""
    registers: dict[str, str] = {}
    points = [_sums(registers)]
    for name, (position, text) in _POINTS.items():
        parsed = parse_snippet(text, Place(KERNEL, 0), KERNEL)
        registers.update(parsed.registers)
        points.append(ProbePoint(name, parse_positions(position), parsed.snippet, None))
    fields = tuple(Field(name, "u64", 8 * index) for index, name in enumerate(_FIELDS))
    own_map = Map(KERNEL, Level.WARP, fields, RECORD.size)
    probe = Probe(KERNEL, Path(KERNEL), "", "", registers, (own_map,), tuple(points))
    return Trial(probe, (THREADS_OF_GRID // WARP * RECORD.size,), check_blocks)


def check_blocks(content: bytes) -> None:
    """Raises TrialFailedError unless the records of all warps add up to what is expected."""
    sums = dict(zip(_FIELDS, (sum(values) for values in zip(*RECORD.iter_unpack(content), strict=True)), strict=True))
    for name, wanted in (EXPECTED | {"classes": sums["instructions"]}).items():
        if sums[name] != wanted:
            raise TrialFailedError(f"the grafted kernel counted {sums[name]} {name}, not {wanted}")
    if sums["instructions"] <= len(_TURNS) // WARP:
        raise TrialFailedError(f"the grafted kernel counted {sums['instructions']} instructions, which are too few")


def _sums(registers: dict[str, str]) -> ProbePoint:
    """What stands at the entry and at the ways out."""
    kept = [f"%{name}" for name in _FIELDS if name != "threads"]
    declared = f".reg .b32 {', '.join(name for name in kept if name != '%products')}, %below;\n.reg .b64 %products;\n"
    begin = declared + "mov.u32 %below, %lanemask_lt;\n"
    begin += "".join(f"mov.{'u64' if name == '%products' else 'u32'} {name}, 0;\n" for name in kept)
    before = parse_snippet(begin, Place(KERNEL, 0), KERNEL)
    values = ", ".join("1" if name == "threads" else f"%{name}" for name in _FIELDS)
    after = parse_snippet(f"ADD [ {KERNEL} ] {{{values}}};", Place(KERNEL, 0), KERNEL)
    registers.update(before.registers)
    return ProbePoint("sums", parse_positions("kernel"), before.snippet, after.snippet)
