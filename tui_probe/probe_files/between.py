"""The probe behind ``run --between attn.py:22-26``: what ``new-probe`` writes, kept in the user's state folder.

It is kept because ``--again`` finds a probe by its file. The same lines have the same file.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from tui_probe.engine.model import SOURCE
from tui_probe.engine.positions import parse_positions
from tui_probe.errors import UsageError
from tui_probe.probe_files.starts import start_of
from tui_probe.trace.state_folder import state_file

if TYPE_CHECKING:
    from pathlib import Path


def probe_between(lines: str) -> Path:
    """The file of a probe that measures how long each warp is between lines of source, ``FILE:FIRST-LAST``.

    Raises UsageError where that names no lines, and where the file cannot be kept.
    """
    _refuse(lines)
    name, text = start_of(re.sub(r"\W+", "_", f"between_{lines}", flags=re.ASCII), "python", lines)
    file = state_file("probes") / name
    new = file.with_name(f"{name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(text, encoding="utf-8")
        new.replace(file)
    except OSError as error:
        raise UsageError(
            f"--between: its probe cannot be kept: {error}; tui-probe new-probe NAME --at {lines} writes one here"
        ) from error
    return file


def _refuse(lines: str) -> None:
    try:
        positions = parse_positions(lines)
    except ValueError as error:
        raise UsageError(f"--between: {error}") from error
    if any(position.opcode != SOURCE for position in positions):
        raise UsageError(f"--between {lines}: name lines of source, such as attn.py:22-26")
