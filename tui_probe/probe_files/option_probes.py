"""Probe files that options of ``run`` need: templates, ``--between``, ``--phase``, and ``-p NAME@FILE:A-B``.

The probe of ``--between attn.py:22-26`` is what ``new-probe`` writes, with the words for these lines. The probe of
``--phase`` is the built-in probe of phases with a table of these phases. Wherever a probe is named, the name of these
two contains the lines: ``between=attn.py:22-26``, ``phases=load=attn.py:88-96+softmax=attn.py:101-110``. The probe of
``NAME@FILE:A-B`` is the probe NAME, limited to instructions of these lines. All files are in the user's state
directory, and are written again if they are missing.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ProbeFileError, UsageError
from tui_probe.trace.user_state import update_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

TEMPLATE_TITLE: Final = "Time that each warp spends between two places of a kernel"
PYTHON_TEMPLATE: Final = '''\
"""{title}.

This file is compiled by tui-probe, never run as Python.

{use}
"""

from tui_probe.dsl import Map, clock, probe, u64

# Registers of each thread, with their first values.
began: u64 = 0
spent: u64 = 0


# Each warp saves one record. With level="thread", each thread saves a record; with cap=16, up to 16 records.
@Map(level="warp")
class {name}:
    cycles: u64


# Positions: "kernel": entry and exits of the kernel. "ld.global:st.global": instructions, by opcode and modifiers.
# "attn.py:22" or "attn.py:22-26": source lines (compile with -lineinfo). "block", "loop": start of blocks and loops.
@probe(pos="{position}", before=True)
def enter():
    began = clock()


@probe(pos="{position}")
def leave():
    spent = spent + (clock() - began)


@probe(pos="kernel")
def finish():
    {name}.save(spent)
'''
TOML_TEMPLATE: Final = '''\
# Time that each warp spends between two places of a kernel.
#
{use}

[about]
title = "Time that each warp spends between two places of a kernel"
measures = "cycles that each warp spends between the two places"
unit = "cycles"

# Each warp saves one record. With level = "thread", each thread saves a record; with cap = 16, up to 16 records.
[map.{name}]
level = "warp"

[map.{name}.regs]
cycles = "u64"

# A register is declared at its first use and keeps its value.
[probe.whole]
position = "kernel"
before = """
.reg .b64 %began, %spent, %now;
mov.u64 %spent, 0;
"""
after = "SAVE [ {name} ] {{%spent}};"

# Positions: "ld.global:st.global": instructions, by opcode and modifiers. "attn.py:22" or "attn.py:22-26": source
# lines (compile with -lineinfo). "block", "loop": start of basic blocks and loops.
[probe.there]
position = "{position}"
before = "mov.u64 %began, %clock64;"
after = """
mov.u64 %now, %clock64;
sub.u64 %now, %now, %began;
add.u64 %spent, %spent, %now;
"""
'''
LINE_RANGE_PREFIX: Final = "between="
_LINE_RANGE: Final = re.compile(r"(?P<file>[^:]+):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")
_UNSAFE_CHARACTERS: Final = re.compile(r"[\"\\\x00-\x1f\x7f]")
_MAX_NAME_LENGTH: Final = 40
"""Characters of the lines that are in the name of the file."""
PHASES_PREFIX: Final = "phases="
_PHASE: Final = re.compile(r"(?P<name>[A-Za-z_][\w.-]{0,30})=(?P<lines>[^=]+)", re.ASCII)
_SEPARATOR: Final = re.compile(r"\+(?=[A-Za-z_][\w.-]{0,30}=)", re.ASCII)
_POSITION: Final = re.compile(r"^position\s*=\s*\"phase\"", re.MULTILINE)
_MAX_PHASES: Final = 32
_RECORDS: Final = re.compile(r"last|every:([1-9]\d{0,3})", re.ASCII)
"""First word in the name of a probe with which warps keep other records than their first: the last ones, or those of
every k-th iteration: ``phases=every:8+load=attn.py:88-96``.
"""
_INTERVALS: Final = tuple(str(1 << power) for power in range(1, 11))
_LEADER: Final = re.compile(r"^leader = true$", re.MULTILINE)
_LIMITED: Final = re.compile(r"(?P<probe>[^@]+)@(?P<lines>[^@]+:\d{1,9}(?:-\d{1,9})?)")
_ANALYSIS: Final = re.compile(r"^(?:callback|CALLBACK|analyze_hook)\s*=", re.MULTILINE)
"""A setting of a probe file that names its analysis; without it a probe with a built-in name uses the built-in one."""


def line_range_text(lines: str) -> str:
    """The text of a probe in Python for lines of source, ``FILE:FIRST-LAST``. Its map is called the same for any."""
    title = f"Time that each warp spends in {lines}, including inlined code"
    use = f"Generated for these lines. To get a file that you can edit: tui-probe new-probe NAME --at {lines}"
    return PYTHON_TEMPLATE.format(name="between", position=lines, title=title, use=use)


def line_range_probe(text: str, option: str = "--between") -> str:
    """Return the name of the probe of ``FILE:FIRST-LAST``, the value of ``option``.

    Raises UsageError, which names the option, for a text that is not of this form.
    """
    match = _LINE_RANGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{option} {text}: write FILE:FIRST-LAST, such as attn.py:22-26, or FILE:LINE")
    if _UNSAFE_CHARACTERS.search(match["file"]):
        raise UsageError(
            f"{option} {text}: the file name contains a quote, backslash or control character; rename the file"
        )
    first, last = sorted((int(match["first"]), int(match["last"] or match["first"])))
    if not first:
        raise UsageError(f"{option} {text}: lines count from 1")
    file = re.sub(r"^(\.\./)+", "", posixpath.normpath(match["file"]))
    return f"{LINE_RANGE_PREFIX}{file}:{first}" + (f"-{last}" if last > first else "")


def line_range_of(name: str) -> str:
    """The lines that a probe of this name is for; "" where it is another probe."""
    return name.removeprefix(LINE_RANGE_PREFIX) if name.startswith(LINE_RANGE_PREFIX) else ""


def write_line_range_probe(name: str) -> Path:
    """The file of a probe that is named by its lines. Raises UsageError, and ProbeFileError where it cannot be kept."""
    lines = line_range_of(line_range_probe(line_range_of(name)))
    slug = re.sub(r"\W+", "_", lines, flags=re.ASCII).strip("_")[-_MAX_NAME_LENGTH:]
    mark = hashlib.sha1(lines.encode(), usedforsecurity=False).hexdigest()[:6]
    name, text = f"probes/between_{slug}_{mark}.py", line_range_text(lines)
    try:
        return update_state(name, text)
    except OSError as error:
        raise ProbeFileError(
            f"--between: cannot save the generated probe ({error});"
            f" to write a probe for these lines to the current directory: tui-probe new-probe NAME --at {lines}"
        ) from error


def phase_records(text: str) -> str:
    """Return the records that warps keep: "" for the first ones, ``last`` or ``every:K``. Raises UsageError."""
    match = _RECORDS.fullmatch(text)
    if text == "first":
        return ""
    if match is None or (match[1] and match[1] not in _INTERVALS):
        raise UsageError(
            f"--phase-records {text}: write first, last or every:K, where K is a power of two from {_INTERVALS[0]} to"
            f" {_INTERVALS[-1]}, such as every:8"
        )
    return text


def phases_probe(texts: Sequence[str], records: str = "") -> str:
    """Return the name of the probe for phases of the form ``NAME=FILE:FIRST-LAST``. ``records`` are those that warps
    keep, see ``phase_records``. Raises UsageError for phases of another form.
    """
    phases = dict(map(_phase, texts))
    if len(phases) < len(texts):
        raise UsageError("--phase: two phases have the same name; choose different names")
    if len(phases) > _MAX_PHASES:
        raise UsageError(f"--phase: {len(phases)} phases, at most {_MAX_PHASES} are supported")
    assignments = [f"{name}={lines}" for name, lines in phases.items()]
    return PHASES_PREFIX + "+".join([*([records] if records else []), *assignments])


def _phase(text: str) -> tuple[str, str]:
    match = _PHASE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--phase {text}: write NAME=FILE:FIRST-LAST, such as load=attn.py:88-96")
    return match["name"], line_range_of(line_range_probe(match["lines"], f"--phase {match['name']}="))


def phases_in(name: str) -> dict[str, str]:
    """Return the source lines by phase in the name of a probe of ``--phase``; empty for another probe."""
    if not name.startswith(PHASES_PREFIX):
        return {}
    texts = _SEPARATOR.split(name.removeprefix(PHASES_PREFIX))
    return dict(map(_phase, texts[1:] if _RECORDS.fullmatch(texts[0]) else texts))


def _record_settings(name: str) -> str:
    """Return the lines of the map for the records that warps keep under the probe ``name`` of ``--phase``."""
    match = _RECORDS.fullmatch(_SEPARATOR.split(name.removeprefix(PHASES_PREFIX))[0])
    if match is None:
        return ""
    return "\nlatest = true" if match[1] is None else f"\nevery = {match[1]}"


def records_phases(file: Path) -> bool:
    """Return whether a probe file has a point at the starts of phases."""
    return bool(_POSITION.search(file.read_text(encoding="utf-8", errors="replace")))


def write_phases_probe(name: str, files: Iterable[Path]) -> Path:
    """Write the file of the probe ``name`` of ``--phase``. ``files`` are those of the built-in probes.

    Raises UsageError for a wrong name, and ProbeFileError if the file cannot be written or no probe records phases.
    """
    base = next(filter(records_phases, files), None)
    if base is None:
        raise ProbeFileError(
            "--phase needs a probe that records phases, and no such probe is installed; install tui-probe again"
        )
    lines = [f"{json.dumps(phase)} = {json.dumps(text)}\n" for phase, text in phases_in(name).items()]
    text = base.read_text(encoding="utf-8") + "".join(["\n[phases]\n", *lines] if lines else [])
    text = _LEADER.sub(rf"\g<0>{_record_settings(name)}", text)
    mark = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:6]
    file = f"probes/phases_{mark}.toml"
    try:
        return update_state(file, text)
    except OSError as error:
        raise ProbeFileError(f"--phase: cannot save the generated probe ({error})") from error


def limited_probe(name: str) -> tuple[str, str] | None:
    """Return probe and lines of ``NAME@attn.py:22-26``; None for another name.

    Raises UsageError for invalid lines.
    """
    match = _LIMITED.fullmatch(name)
    if match is None:
        return None
    return match["probe"], line_range_of(line_range_probe(match["lines"], f"-p {match['probe']}@"))


def write_limited_probe(file: Path, name: str, lines: str) -> Path:
    """Write a copy of ``file``, which contains the probe ``name``, limited to instructions of ``lines``.

    Raises ProbeFileError if the probe is written in Python, or the copy cannot be written.
    """
    if file.suffix != ".toml":
        raise ProbeFileError(
            f"{name}@{lines}: @LINES needs a probe in TOML, not Python; in {file}, set 'pos' of the functions to"
            f" '{lines}'"
        )
    try:
        text = file.read_text(encoding="utf-8")
        mark = hashlib.sha1(f"{file.resolve()}@{lines}".encode(), usedforsecurity=False).hexdigest()[:6]
        analysis = "" if re.search(_ANALYSIS, text) else f"callback = {json.dumps(name)}\n"
        return update_state(f"probes/{name}_{mark}.toml", f"lines = {json.dumps(lines)}\n{analysis}{text}")
    except (OSError, UnicodeDecodeError) as error:
        raise ProbeFileError(f"{name}@{lines}: cannot save the generated probe ({error})") from error
