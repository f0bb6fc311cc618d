"""The probe behind ``run --between attn.py:22-26``: what ``new-probe`` writes, with the words for these lines.

It is named by its lines, ``between=attn.py:22-26``, wherever a probe is named: in ``run.json``, and behind ``-p``. Its
file is kept in the user's state folder, and written again where it is missing.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ProbeFileError, UsageError
from tui_probe.probe_files.start_texts import text_between
from tui_probe.trace.state_folder import keep_state, read_state, state_file

if TYPE_CHECKING:
    from pathlib import Path

PREFIX: Final = "between="
_LINES: Final = re.compile(r"(?P<file>[^:]+):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")
_UNNAMED: Final = re.compile(r"[\"\\\x00-\x1f\x7f]")
_LONGEST: Final = 40
"""Characters of the lines that are in the name of the file."""


def between(text: str) -> str:
    """How the probe of ``FILE:FIRST-LAST`` is named. Raises UsageError where the text names no lines."""
    found = _LINES.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"--between {text}: write FILE:FIRST-LAST, such as attn.py:22-26, or FILE:LINE")
    if _UNNAMED.search(found["file"]):
        raise UsageError(f"--between {text}: a file with such characters in its name cannot be named")
    first, last = sorted((int(found["first"]), int(found["last"] or found["first"])))
    if not first:
        raise UsageError(f"--between {text}: lines count from 1")
    file = re.sub(r"^(\.\./)+", "", posixpath.normpath(found["file"]))
    return f"{PREFIX}{file}:{first}" + (f"-{last}" if last > first else "")


def lines_of(name: str) -> str:
    """The lines that a probe of this name is for; "" where it is another probe."""
    return name.removeprefix(PREFIX) if name.startswith(PREFIX) else ""


def write_between(name: str) -> Path:
    """The file of a probe that is named by its lines. Raises UsageError, and ProbeFileError where it cannot be kept."""
    lines = lines_of(between(lines_of(name)))
    words = re.sub(r"\W+", "_", lines, flags=re.ASCII).strip("_")[-_LONGEST:]
    mark = hashlib.sha1(lines.encode(), usedforsecurity=False).hexdigest()[:6]
    name, text = f"probes/between_{words}_{mark}.py", text_between(lines)
    try:
        return state_file(name) if read_state(name) == text else keep_state(name, text)
    except OSError as error:
        raise ProbeFileError(
            f"--between: its probe cannot be kept: {error}; tui-probe new-probe NAME --at {lines} writes one here"
        ) from error
