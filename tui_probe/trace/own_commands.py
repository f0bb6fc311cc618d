"""The commands that this user has run, by their digests, in the user's state directory.

What a trace says of its origin is no evidence: one that comes from elsewhere, or was changed, names a command that this
user may never have seen.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final

from tui_probe.trace.state_folder import append_state, read_state, write_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.trace.run_info import RunInfo

FILE: Final = "commands"
MOST: Final = 4096
"""Commands that are remembered; of up to twice as many the oldest are dropped."""
_LINE: Final = 65
"""Bytes of a line: a digest in hexadecimal and its end."""


def remember_command(command: Sequence[str], folder: str, probe: str) -> None:
    """Remember a command as run.json has it, with its directory and probes."""
    line = f"{_digest(command, folder, probe)}\n"
    known = read_state(FILE)
    if line in known:
        return
    if len(known) >= 2 * MOST * _LINE:
        write_state(FILE, known[-MOST * _LINE :] + line)
    else:
        append_state(FILE, line)


def is_own_command(info: RunInfo) -> bool:
    """Whether this user has run the command of a trace, in its directory and with its probes."""
    return _digest(info.command, info.cwd or "", info.probe or "") in read_state(FILE).split("\n")


def _digest(command: Sequence[str], folder: str, probe: str) -> str:
    return hashlib.sha256(json.dumps([list(command), folder, probe]).encode()).hexdigest()
