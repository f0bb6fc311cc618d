"""The probe behind ``run --phase load=attn.py:88-96``: the built-in probe of phases with a table of these phases.

Its name has the phases, ``phases=load=attn.py:88-96+softmax=attn.py:101-110``, wherever a probe is named. Its file is
kept in the user's state directory, and written again where it is missing.
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
