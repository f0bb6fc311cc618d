"""What the trial of grafts at single instructions counts, and what that must be, worked out on paper.

Requests are instructions that a warp executes with at least one lane; sectors and words are distinct pieces of 32 and
of 4 bytes that they touch. Stores are counted in bytes alone: how many lanes leave a loop together is the compiler's
choice, what they store is not.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from tui_probe.engine.model import Field, Level, Map, Place, Position, Probe, ProbePoint
from tui_probe.engine.snippet import parse_snippet
from tui_probe.engine.trial_kernel import ACTIVE, KERNEL, THREADS_OF_GRID, WARP, Trial, TrialFailedError

_FULL_WARPS: Final = ACTIVE // WARP
_ACTIVE_WARPS: Final = _FULL_WARPS + 1
_WARPS: Final = THREADS_OF_GRID // WARP
_WORD: Final = 4
_SECTORS_OF_WARP: Final = WARP * _WORD // 32
_READING: Final = ACTIVE // 2
"""Every second lane loads from global memory; those of the last warp that is split touch all its sectors, too."""
EXPECTED: Final = {
    "load_requests": _ACTIVE_WARPS,
    "load_sectors": _ACTIVE_WARPS * _SECTORS_OF_WARP,
    "load_bytes": _READING * _WORD,
    "store_bytes": ACTIVE * _WORD,
    "shared_requests": _WARPS + _ACTIVE_WARPS,
    "shared_words": THREADS_OF_GRID + ACTIVE,
    "shared_bytes": (THREADS_OF_GRID + ACTIVE) * _WORD,
    "threads": THREADS_OF_GRID,
}
RECORD: Final = struct.Struct(f"<{len(EXPECTED)}Q")
_MAP_OF_SITES: Final = 1 << 20
_DECLARED: Final = """\
.reg .b64 %piece;
.reg .b32 %lanes, %same, %lower, %request, %own, %size;
.reg .pred %is_first;
"""
_COUNTED: Final = """\
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
_KINDS: Final = {
    "load": ((Position("ld", ("global",)),), ("load_requests", "load_sectors", "load_bytes"), 5),
    "store": ((Position("st", ("global",)),), ("", "", "store_bytes"), 5),
    "shared": (
        (Position("ld", ("shared",)), Position("st", ("shared",), ("async", "bulk"))),
        ("shared_requests", "shared_words", "shared_bytes"),
        2,
    ),
}


def instruction_trials() -> list[Trial]:
    """Sums in registers that live while the kernel runs, and a record for each instruction."""
    by_warp = Trial(_probe(Level.WARP), (_WARPS * RECORD.size,), check_counts)
    return [by_warp, Trial(_probe(Level.SITE), (_MAP_OF_SITES,), check_counts_of_sites)]


def check_counts(content: bytes) -> None:
    """Raises TrialFailedError unless the records of all warps add up to what is expected."""
    _compare(content, EXPECTED)


def check_counts_of_sites(content: bytes) -> None:
    """The same of records of instructions, which know no threads that end."""
    _compare(content, EXPECTED | {"threads": 0})


def _compare(content: bytes, expected: dict[str, int]) -> None:
    sums = [sum(values) for values in zip(*RECORD.iter_unpack(content), strict=True)]
    for (name, wanted), found in zip(expected.items(), sums, strict=True):
        if found != wanted:
            raise TrialFailedError(f"the grafted kernel counted {found} {name.replace('_', ' ')}, not {wanted}")


def _probe(level: Level) -> Probe:
    registers: dict[str, str] = {}
    points = [_point(kind, level, registers) for kind in _KINDS]
    if level is Level.WARP:
        points.insert(0, _sums(registers))
    fields = tuple(Field(name, "u64", 8 * index) for index, name in enumerate(EXPECTED))
    own_map = Map(KERNEL, level, fields, RECORD.size)
    return Probe(KERNEL, Path(KERNEL), "", "", registers, (own_map,), tuple(points))


def _sums(registers: dict[str, str]) -> ProbePoint:
    """What stands at the entry and at the ways out."""
    names = [f"%{name}" for name in EXPECTED if name != "threads"]
    set_ = f".reg .b32 {', '.join(names)};\n" + "".join(f"mov.u32 {name}, 0;\n" for name in names)
    before = parse_snippet(set_, Place(KERNEL, 0), KERNEL)
    after = parse_snippet(f"ADD [ {KERNEL} ] {{{', '.join(names)}, 1}};", Place(KERNEL, 0), KERNEL)
    registers.update(before.registers)
    return ProbePoint("sums", (Position(""),), before.snippet, after.snippet)


def _point(kind: str, level: Level, registers: dict[str, str]) -> ProbePoint:
    positions, names, shift = _KINDS[kind]
    counted = {name: value for name, value in zip(names, ("%request", "%own", "%size"), strict=True) if name}
    text = _DECLARED + _COUNTED.replace("SHIFT", str(shift))
    if level is Level.WARP:
        text += "".join(f"add.u32 %{name}, %{name}, {value};\n" for name, value in counted.items())
    else:
        values = ", ".join(counted.get(name, "0") for name in EXPECTED)
        text += f"ADD [ {KERNEL} ] {{{values}}};\n"
    parsed = parse_snippet(text, Place(KERNEL, 0), KERNEL)
    registers.update(parsed.registers)
    return ProbePoint(kind, positions, parsed.snippet, None)
