"""Cases of the graft self-test that count: at basic blocks and at single instructions, with counts worked out on paper.

Blocks: the known kernel gets a loop, whose number of iterations differs between lanes, with a branch to one of two
paths: so its lanes diverge and reconverge, and there are blocks of nothing but branches. The operations of each path
are counted by lanes, a barrier by warps. The number of all instructions is the compiler's choice, but the classes must
add up to it.

Instructions: requests are instructions that a warp executes with at least one lane; sectors and words are distinct
pieces of 32 and of 4 bytes that they touch. Stores are counted in bytes only: how many lanes leave a loop together is
the compiler's choice, what they store is not.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.engine.snippet import parse_snippet
from tui_probe.engine.trial.trial_kernel import (
    ACTIVE_THREADS,
    MAX_TURNS,
    OUTPUT_WORD,
    THREADS_OF_GRID,
    TRIAL_KERNEL,
    TrialCase,
    TrialFailedError,
    trial_cubin,
)
from tui_probe.probe_model.positions import Position, parse_positions
from tui_probe.probe_model.probe import Field, FileLocation, Level, Map, Probe, ProbePoint
from tui_probe.ptx.instruction_facts import CLASSES
from tui_probe.trace.launch_shape import SECTOR_BYTES, WARP_SIZE

if TYPE_CHECKING:
    from tui_probe.binaries.cubin import Cubin
    from tui_probe.engine.assembler import Assembler

_LOOP_PTX: Final = f"""\
	{{
	.reg .pred %q<2>;
	.reg .b32 %i<4>;
	.reg .f32 %f<2>;
	.reg .f64 %d<2>;
	cvt.rn.f32.u32 %f1, %r4;
	and.b32 %i1, %r5, {MAX_TURNS};
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
_TURNS: Final = [(thread, turn) for thread in range(ACTIVE_THREADS) for turn in range(thread & MAX_TURNS)]
EXPECTED_BLOCK_COUNTS: Final = {
    "sums": sum((thread ^ turn) % 2 == 0 for thread, turn in _TURNS),
    "products": sum((thread ^ turn) % 2 == 1 for thread, turn in _TURNS),
    "barriers": THREADS_OF_GRID // WARP_SIZE,
    "threads": THREADS_OF_GRID,
}
_BLOCK_FIELDS: Final = (*EXPECTED_BLOCK_COUNTS, "instructions", "classes")
BLOCK_RECORD: Final = struct.Struct(f"<{len(_BLOCK_FIELDS)}Q")
_BLOCK_SNIPPET: Final = """\
.reg .b32 %lanes;
.reg .pred %is_lowest;
activemask.b32 %lanes;
and.b32 %lanes, %lanes, %below;
setp.eq.u32 %is_lowest, %lanes, 0;
"""
_BLOCK_POINTS: Final = {
    "enter": ("block", _BLOCK_SNIPPET),
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
    """Return the trial's kernel with the loop in it. Raises ToolchainError."""
    return trial_cubin(arch, assembler, loop=_LOOP_PTX)


def block_trial() -> TrialCase:
    """Return the case that counts blocks, and instructions that are counted by blocks."""
    registers: dict[str, str] = {}
    points = [_block_sums(registers)]
    for name, (position, text) in _BLOCK_POINTS.items():
        parsed = parse_snippet(text, FileLocation(TRIAL_KERNEL, 0), TRIAL_KERNEL)
        registers.update(parsed.registers)
        points.append(ProbePoint(name, parse_positions(position), parsed.snippet, None))
    fields = tuple(Field(name, "u64", 8 * index) for index, name in enumerate(_BLOCK_FIELDS))
    own_map = Map(TRIAL_KERNEL, Level.WARP, fields, BLOCK_RECORD.size)
    probe = Probe(TRIAL_KERNEL, Path(TRIAL_KERNEL), "", "", registers, (own_map,), tuple(points))
    return TrialCase(probe, (THREADS_OF_GRID // WARP_SIZE * BLOCK_RECORD.size,), check_blocks)


def check_blocks(content: bytes) -> None:
    """Raise TrialFailedError unless the records of all warps add up to what is expected."""
    sums = dict(
        zip(
            _BLOCK_FIELDS, (sum(values) for values in zip(*BLOCK_RECORD.iter_unpack(content), strict=True)), strict=True
        )
    )
    for name, expected_sum in (EXPECTED_BLOCK_COUNTS | {"classes": sums["instructions"]}).items():
        if sums[name] != expected_sum:
            raise TrialFailedError(f"the probed kernel counted {sums[name]} {name}, not {expected_sum}")
    if sums["instructions"] <= len(_TURNS) // WARP_SIZE:
        raise TrialFailedError(f"the probed kernel counted {sums['instructions']} instructions, which are too few")


def _block_sums(registers: dict[str, str]) -> ProbePoint:
    """Return the code at the entry and at the exits."""
    fields = [f"%{name}" for name in _BLOCK_FIELDS if name != "threads"]
    declared = f".reg .b32 {', '.join(name for name in fields if name != '%products')}, %below;\n.reg .b64 %products;\n"
    begin = declared + "mov.u32 %below, %lanemask_lt;\n"
    begin += "".join(f"mov.{'u64' if name == '%products' else 'u32'} {name}, 0;\n" for name in fields)
    entry_code = parse_snippet(begin, FileLocation(TRIAL_KERNEL, 0), TRIAL_KERNEL)
    values = ", ".join("1" if name == "threads" else f"%{name}" for name in _BLOCK_FIELDS)
    exit_code = parse_snippet(f"ADD [ {TRIAL_KERNEL} ] {{{values}}};", FileLocation(TRIAL_KERNEL, 0), TRIAL_KERNEL)
    registers.update(entry_code.registers)
    return ProbePoint("sums", parse_positions("kernel"), entry_code.snippet, exit_code.snippet)


_FULL_WARPS: Final = ACTIVE_THREADS // WARP_SIZE
_ACTIVE_WARPS: Final = _FULL_WARPS + 1
_WARPS: Final = THREADS_OF_GRID // WARP_SIZE
_SECTORS_OF_WARP: Final = WARP_SIZE * OUTPUT_WORD // SECTOR_BYTES
_READING_THREADS: Final = ACTIVE_THREADS // 2
"""Every second lane loads from global memory; those of the last warp that is split touch all its sectors, too."""
EXPECTED_INSTRUCTION_COUNTS: Final = {
    "load_requests": _ACTIVE_WARPS,
    "load_sectors": _ACTIVE_WARPS * _SECTORS_OF_WARP,
    "load_bytes": _READING_THREADS * OUTPUT_WORD,
    "store_bytes": ACTIVE_THREADS * OUTPUT_WORD,
    "shared_requests": _WARPS + _ACTIVE_WARPS,
    "shared_words": THREADS_OF_GRID + ACTIVE_THREADS,
    "shared_bytes": (THREADS_OF_GRID + ACTIVE_THREADS) * OUTPUT_WORD,
    "threads": THREADS_OF_GRID,
}
INSTRUCTION_RECORD: Final = struct.Struct(f"<{len(EXPECTED_INSTRUCTION_COUNTS)}Q")
_SITE_MAP_BYTES: Final = 1 << 20
_COUNT_REGISTERS: Final = """\
.reg .b64 %piece;
.reg .b32 %lanes, %same, %lower, %request, %own, %size;
.reg .pred %is_first;
"""
_COUNT_SNIPPET: Final = """\
activemask.b32 %lanes;
shr.u64 %piece, ADDR, SHIFT;
match.any.sync.b64 %same, %piece, %lanes;
mov.u32 %lower, %lanemask_lt;
and.b32 %lanes, %lanes, %lower;
setp.eq.u32 %is_first, %lanes, 0;
selp.u32 %request, 1, 0, %is_first;
and.b32 %same, %same, %lower;
setp.eq.u32 %is_first, %same, 0;
selp.u32 %own, 1, 0, %is_first;
mov.u32 %size, BYTES;
"""
_COUNT_KINDS: Final = {
    "load": ((Position("ld", ("global",)),), ("load_requests", "load_sectors", "load_bytes"), 5),
    "store": ((Position("st", ("global",)),), ("", "", "store_bytes"), 5),
    "shared": (
        (Position("ld", ("shared",)), Position("st", ("shared",), ("async", "bulk"))),
        ("shared_requests", "shared_words", "shared_bytes"),
        2,
    ),
}


def instruction_trials() -> list[TrialCase]:
    """Return the cases with sums in registers that live while the kernel runs, and with a record per instruction."""
    by_warp = TrialCase(_count_probe(Level.WARP), (_WARPS * INSTRUCTION_RECORD.size,), check_counts)
    return [by_warp, TrialCase(_count_probe(Level.SITE), (_SITE_MAP_BYTES,), check_counts_of_sites)]


def check_counts(content: bytes) -> None:
    """Raise TrialFailedError unless the records of all warps add up to what is expected."""
    _compare_counts(content, EXPECTED_INSTRUCTION_COUNTS)


def check_counts_of_sites(content: bytes) -> None:
    """Check records of instructions, which count no threads that end."""
    _compare_counts(content, EXPECTED_INSTRUCTION_COUNTS | {"threads": 0})


def _compare_counts(content: bytes, expected_counts: dict[str, int]) -> None:
    sums = [sum(values) for values in zip(*INSTRUCTION_RECORD.iter_unpack(content), strict=True)]
    for (name, expected_sum), total in zip(expected_counts.items(), sums, strict=True):
        if total != expected_sum:
            raise TrialFailedError(f"the probed kernel counted {total} {name.replace('_', ' ')}, not {expected_sum}")


def _count_probe(level: Level) -> Probe:
    registers: dict[str, str] = {}
    points = [_count_point(kind, level, registers) for kind in _COUNT_KINDS]
    if level is Level.WARP:
        points.insert(0, _instruction_sums(registers))
    fields = tuple(Field(name, "u64", 8 * index) for index, name in enumerate(EXPECTED_INSTRUCTION_COUNTS))
    own_map = Map(TRIAL_KERNEL, level, fields, INSTRUCTION_RECORD.size)
    return Probe(TRIAL_KERNEL, Path(TRIAL_KERNEL), "", "", registers, (own_map,), tuple(points))


def _instruction_sums(registers: dict[str, str]) -> ProbePoint:
    """Return the code at the entry and at the exits."""
    names = [f"%{name}" for name in EXPECTED_INSTRUCTION_COUNTS if name != "threads"]
    clear_text = f".reg .b32 {', '.join(names)};\n" + "".join(f"mov.u32 {name}, 0;\n" for name in names)
    entry_code = parse_snippet(clear_text, FileLocation(TRIAL_KERNEL, 0), TRIAL_KERNEL)
    exit_code = parse_snippet(
        f"ADD [ {TRIAL_KERNEL} ] {{{', '.join(names)}, 1}};", FileLocation(TRIAL_KERNEL, 0), TRIAL_KERNEL
    )
    registers.update(entry_code.registers)
    return ProbePoint("sums", (Position(""),), entry_code.snippet, exit_code.snippet)


def _count_point(kind: str, level: Level, registers: dict[str, str]) -> ProbePoint:
    positions, names, shift = _COUNT_KINDS[kind]
    registers_by_name = {name: value for name, value in zip(names, ("%request", "%own", "%size"), strict=True) if name}
    text = _COUNT_REGISTERS + _COUNT_SNIPPET.replace("SHIFT", str(shift))
    if level is Level.WARP:
        text += "".join(f"add.u32 %{name}, %{name}, {value};\n" for name, value in registers_by_name.items())
    else:
        values = ", ".join(registers_by_name.get(name, "0") for name in EXPECTED_INSTRUCTION_COUNTS)
        text += f"ADD [ {TRIAL_KERNEL} ] {{{values}}};\n"
    parsed = parse_snippet(text, FileLocation(TRIAL_KERNEL, 0), TRIAL_KERNEL)
    registers.update(parsed.registers)
    return ProbePoint(kind, positions, parsed.snippet, None)
