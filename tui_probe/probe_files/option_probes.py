"""Probes that options of ``run`` make: ``--phase load=attn.py:88-96``, ``-p NAME@FILE:A-B``, and ``--shake N``.

The probe of phases is the built-in one with a table of these phases. Its name has the phases,
``phases=load=attn.py:88-96+softmax=attn.py:101-110``, wherever a probe is named. Its file is kept in the user's state
directory, and written again where it is missing.

The probe of delays holds warps up at barriers and memory accesses, by numbers that a seed decides. A delay depends on
the seed, the block, the warp, the instruction and how often the warp came to such instructions, so the same seed delays
the same places in each run. With an odd seed, one of eight visits of any instruction is delayed, for 64 to 32768
cycles. With an even seed, one of four instructions is slow, and half of its visits are delayed, for 512 to 32768
cycles: a loop that polls would otherwise be late itself, and cover that what it waits for comes too early.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ProbeFileError, UsageError
from tui_probe.probe_files.templates import line_range_of, line_range_probe
from tui_probe.trace.user_state import read_state, replace_state, state_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

PHASES_PREFIX: Final = "phases="
_PHASE: Final = re.compile(r"(?P<name>[A-Za-z_][\w.-]{0,30})=(?P<lines>[^=]+)", re.ASCII)
_SEPARATOR: Final = re.compile(r"\+(?=[A-Za-z_][\w.-]{0,30}=)", re.ASCII)
_POSITION: Final = re.compile(r"^position\s*=\s*\"phase\"", re.MULTILINE)
_MAX_PHASES: Final = 32


def phases_probe(texts: Sequence[str]) -> str:
    """Return the name of the probe of some ``NAME=FILE:FIRST-LAST``. Raises UsageError for a text that is not one."""
    phases = dict(map(_phase, texts))
    if len(phases) < len(texts):
        raise UsageError("--phase: several phases have one name: choose different names")
    if len(phases) > _MAX_PHASES:
        raise UsageError(f"--phase: {len(phases)} phases, at most {_MAX_PHASES} are supported")
    return PHASES_PREFIX + "+".join(f"{name}={lines}" for name, lines in phases.items())


def _phase(text: str) -> tuple[str, str]:
    match = _PHASE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--phase {text}: write NAME=FILE:FIRST-LAST, such as load=attn.py:88-96")
    try:
        return match["name"], line_range_of(line_range_probe(match["lines"]))
    except UsageError as error:
        raise UsageError(str(error).replace("--between", f"--phase {match['name']}=", 1)) from error


def phases_in(name: str) -> dict[str, str]:
    """The lines of each phase by name of a probe that is named by its phases; empty for another probe."""
    if not name.startswith(PHASES_PREFIX):
        return {}
    return dict(map(_phase, _SEPARATOR.split(name.removeprefix(PHASES_PREFIX))))


def records_phases(file: Path) -> bool:
    """Return whether a probe file has a point at the starts of phases."""
    return bool(_POSITION.search(file.read_text(encoding="utf-8", errors="replace")))


def write_phases_probe(name: str, files: Iterable[Path]) -> Path:
    """Write the file of a probe that is named by its phases. ``files`` are those of the built-in probes.

    Raises UsageError for a wrong name, and ProbeFileError if the file cannot be kept or no probe records phases.
    """
    base = next(filter(records_phases, files), None)
    if base is None:
        raise ProbeFileError("no installed probe records phases, which --phase needs; install tui-probe again")
    lines = "\n".join(f"{json.dumps(phase)} = {json.dumps(own)}" for phase, own in phases_in(name).items())
    mark = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:6]
    file, text = f"probes/phases_{mark}.toml", f"{base.read_text(encoding='utf-8')}\n[phases]\n{lines}\n"
    try:
        return state_file(file) if read_state(file) == text else replace_state(file, text)
    except OSError as error:
        raise ProbeFileError(f"--phase: its probe cannot be kept: {error}") from error


# ``-p NAME@FILE:A-B``: a probe file with the same text, and lines of source that its instructions must come from.

_LIMITED: Final = re.compile(r"(?P<probe>[^@]+)@(?P<lines>[^@]+:\d{1,9}(?:-\d{1,9})?)")


def limited_probe(name: str) -> tuple[str, str] | None:
    """Return probe and lines of ``NAME@attn.py:22-26``; None for another name.

    Raises UsageError for lines that cannot be.
    """
    match = _LIMITED.fullmatch(name)
    if match is None:
        return None
    try:
        return match["probe"], line_range_of(line_range_probe(match["lines"]))
    except UsageError as error:
        raise UsageError(str(error).replace("--between", f"-p {match['probe']}@", 1)) from error


def write_limited_probe(file: Path, name: str, lines: str) -> Path:
    """Write the file of probe ``name``, which is in ``file``, limited to instructions of ``lines``.

    Raises ProbeFileError if it is written in Python, or cannot be kept.
    """
    if file.suffix != ".toml":
        raise ProbeFileError(f"{name}@{lines}: {file} is written in Python: give its functions lines as a position")
    try:
        text = file.read_text(encoding="utf-8")
        mark = hashlib.sha1(f"{file.resolve()}@{lines}".encode(), usedforsecurity=False).hexdigest()[:6]
        analysis = "" if re.search(_ANALYSIS, text) else f"callback = {json.dumps(name)}\n"
        limited, place = f"lines = {json.dumps(lines)}\n{analysis}{text}", f"probes/{name}_{mark}.toml"
        return state_file(place) if read_state(place) == limited else replace_state(place, limited)
    except (OSError, UnicodeDecodeError) as error:
        raise ProbeFileError(f"{name}@{lines}: its probe cannot be kept: {error}") from error


_ANALYSIS: Final = re.compile(r"^(?:callback|CALLBACK|analyze_hook)\s*=", re.MULTILINE)

DELAYS: Final = "delays"
_DELAYS_TEXT: Final = '''\
[about]
title = "delays of warps"
measures = "nothing: a kernel that leaves other results with delays has threads that race"
weight = "heavy"
every_block = true
counts = false

[map.never]
level = "warp"
cap = 1

[map.never.regs]
block = "u32"

[probe.start]
position = "kernel"
before = """
.reg .b32 %visits, %hash, %part, %until;
.reg .pred %is_due, %is_early, %is_inside;
mov.u32 %visits, 0;
"""

[probe.access]
position = "bar:barrier:mbarrier:ld.!param.!const:st.!param:atom:red:cp.async:ldmatrix"
before = """
add.u32 %visits, %visits, 1;
mov.u32 %part, LINE;
setp.ge.u32 %is_due, %part, {first};
setp.le.and.u32 %is_due, %part, {last}, %is_due;
@!%is_due bra $inside;
mad.lo.u32 %hash, %part, 0xC2B2AE35, {seed};
{slow}mov.u32 %part, %tid.x;
shr.u32 %part, %part, 5;
mad.lo.u32 %hash, %part, 0x85EBCA6B, %hash;
mov.u32 %part, %tid.y;
mad.lo.u32 %hash, %part, 0x8DA6B343, %hash;
mov.u32 %part, %ctaid.x;
mad.lo.u32 %hash, %part, 0x9E3779B1, %hash;
mov.u32 %part, %ctaid.y;
mad.lo.u32 %hash, %part, 0xD8163841, %hash;
mad.lo.u32 %hash, %visits, 0x27D4EB2F, %hash;
shr.u32 %part, %hash, 15;
xor.b32 %hash, %hash, %part;
mul.lo.u32 %hash, %hash, 0x2C1B3C6D;
shr.u32 %part, %hash, 12;
xor.b32 %hash, %hash, %part;
and.b32 %part, %hash, {visits};
setp.ne.u32 %is_due, %part, 0;
@%is_due bra $inside;
shr.u32 %part, %hash, 3;
rem.u32 %part, %part, {lengths};
mov.u32 %hash, {shortest};
shl.b32 %hash, %hash, %part;
mov.u32 %until, %clock;
add.u32 %until, %until, %hash;
$again:
mov.u32 %part, %clock;
sub.u32 %part, %until, %part;
setp.gt.s32 %is_early, %part, 0;
@%is_early bra $again;
mov.u32 %part, %ctaid.z;
setp.ne.u32 %is_inside, %part, 65535;
@%is_inside bra $inside;
SAVE [ never ] {{%part}};
$inside:
"""
'''


_SLOW_INSTRUCTIONS: Final = """\
shr.u32 %part, %hash, 15;
xor.b32 %part, %part, %hash;
mul.lo.u32 %part, %part, 0x2C1B3C6D;
shr.u32 %part, %part, 30;
setp.ne.u32 %is_due, %part, 0;
@%is_due bra $inside;
"""
_ANY_VISIT: Final = {"slow": "", "visits": 7, "lengths": 10, "shortest": 64}
_SLOW_VISIT: Final = {"slow": _SLOW_INSTRUCTIONS, "visits": 1, "lengths": 7, "shortest": 512}


def delay_probe(seed: int, first: int = 0, last: int = 0x7FFFFFFF) -> str:
    """Return the text of a probe file. Instructions on lines ``first`` to ``last`` of pruned.ptx are delayed."""
    scattered = (seed * 0x9E3779B1 + 0x7F4A7C15) & 0xFFFFFFFF
    return _DELAYS_TEXT.format(seed=scattered, first=first, last=last, **(_ANY_VISIT if seed % 2 else _SLOW_VISIT))
