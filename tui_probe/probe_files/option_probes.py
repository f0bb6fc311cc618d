"""Write probe files for options of ``run``: ``--phase load=attn.py:88-96`` and ``-p NAME@FILE:A-B``.

The probe of ``--phase`` is the built-in probe of phases with a table of these phases. Its name contains the phases,
``phases=load=attn.py:88-96+softmax=attn.py:101-110``, wherever a probe is named. The probe of ``NAME@FILE:A-B`` is the
probe NAME, limited to instructions of these lines. Both files are in the user's state directory, and are written again
if they are missing.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ProbeFileError, UsageError
from tui_probe.probe_files.templates import line_range_of, line_range_probe
from tui_probe.trace.user_state import update_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

PHASES_PREFIX: Final = "phases="
_PHASE: Final = re.compile(r"(?P<name>[A-Za-z_][\w.-]{0,30})=(?P<lines>[^=]+)", re.ASCII)
_SEPARATOR: Final = re.compile(r"\+(?=[A-Za-z_][\w.-]{0,30}=)", re.ASCII)
_POSITION: Final = re.compile(r"^position\s*=\s*\"phase\"", re.MULTILINE)
_MAX_PHASES: Final = 32
_LIMITED: Final = re.compile(r"(?P<probe>[^@]+)@(?P<lines>[^@]+:\d{1,9}(?:-\d{1,9})?)")
_ANALYSIS: Final = re.compile(r"^(?:callback|CALLBACK|analyze_hook)\s*=", re.MULTILINE)
"""A setting of a probe file that names its analysis; without it a probe with a built-in name uses the built-in one."""


def phases_probe(texts: Sequence[str]) -> str:
    """Return the name of the probe for phases of the form ``NAME=FILE:FIRST-LAST``. Raises UsageError for others."""
    phases = dict(map(_phase, texts))
    if len(phases) < len(texts):
        raise UsageError("--phase: two phases have the same name: choose different names")
    if len(phases) > _MAX_PHASES:
        raise UsageError(f"--phase: {len(phases)} phases, at most {_MAX_PHASES} are supported")
    return PHASES_PREFIX + "+".join(f"{name}={lines}" for name, lines in phases.items())


def _phase(text: str) -> tuple[str, str]:
    match = _PHASE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--phase {text}: write NAME=FILE:FIRST-LAST, such as load=attn.py:88-96")
    return match["name"], line_range_of(line_range_probe(match["lines"], f"--phase {match['name']}="))


def phases_in(name: str) -> dict[str, str]:
    """Return the source lines by phase in the name of a probe of ``--phase``; empty for another probe."""
    if not name.startswith(PHASES_PREFIX):
        return {}
    return dict(map(_phase, _SEPARATOR.split(name.removeprefix(PHASES_PREFIX))))


def records_phases(file: Path) -> bool:
    """Return whether a probe file has a point at the starts of phases."""
    return bool(_POSITION.search(file.read_text(encoding="utf-8", errors="replace")))


def write_phases_probe(name: str, files: Iterable[Path]) -> Path:
    """Write the file of the probe ``name`` of ``--phase``. ``files`` are those of the built-in probes.

    Raises UsageError for a wrong name, and ProbeFileError if the file cannot be written or no probe records phases.
    """
    base = next(filter(records_phases, files), None)
    if base is None:
        raise ProbeFileError("no installed probe records phases, which --phase needs; install tui-probe again")
    lines = "\n".join(f"{json.dumps(phase)} = {json.dumps(text)}" for phase, text in phases_in(name).items())
    mark = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:6]
    file, text = f"probes/phases_{mark}.toml", f"{base.read_text(encoding='utf-8')}\n[phases]\n{lines}\n"
    try:
        return update_state(file, text)
    except OSError as error:
        raise ProbeFileError(f"--phase: cannot save the generated probe: {error}") from error


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
        raise ProbeFileError(f"{name}@{lines}: {file} is written in Python: set pos of its functions to these lines")
    try:
        text = file.read_text(encoding="utf-8")
        mark = hashlib.sha1(f"{file.resolve()}@{lines}".encode(), usedforsecurity=False).hexdigest()[:6]
        analysis = "" if re.search(_ANALYSIS, text) else f"callback = {json.dumps(name)}\n"
        return update_state(f"probes/{name}_{mark}.toml", f"lines = {json.dumps(lines)}\n{analysis}{text}")
    except (OSError, UnicodeDecodeError) as error:
        raise ProbeFileError(f"{name}@{lines}: cannot save the generated probe: {error}") from error
