"""State of a user, kept in the state directory: views of traces, recently opened traces, commands that were run.

A trace does not prove its origin: one from elsewhere, or a changed one, may name a command that this user has never
run. Only digests of commands are stored, since commands may contain secrets.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tui_probe.input_limits import parse_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.trace.run_info import RunInfo

VIEWS_FILE: Final = "places.json"
MAX_VIEWS: Final = 200
"""Traces whose views are remembered, the most recent ones: the file is read whole."""
OPENED_FILE: Final = "recent"
MAX_OPENED: Final = 50
"""Max recently opened traces kept in the state."""
COMMANDS_FILE: Final = "commands"
MAX_COMMANDS: Final = 4096
"""Commands that are remembered; of up to twice as many the oldest are dropped."""
_DIGEST_LINE: Final = 65
"""Bytes of a line: a digest in hexadecimal and its end."""


def state_file(name: str) -> Path:
    """Return the path of a file in the state directory."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111 - never raises
    return Path(base) / "tui-probe" / name


def read_state(name: str) -> str:
    """Read the state of this name; "" where there is none."""
    try:
        return state_file(name).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def read_state_record(name: str) -> dict[str, Any]:
    """Read a JSON object; an empty one where there is none, or the file is damaged."""
    try:
        record = parse_json(read_state(name) or "{}")
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def write_state(name: str, text: str) -> None:
    """Write a state file. Failure is silent: state is a convenience, and a home directory may be read-only."""
    with contextlib.suppress(OSError):
        replace_state(name, text)


def replace_state(name: str, text: str) -> Path:
    """Replace a state file in one step, so that another process reads the old text or the new. Raises OSError."""
    file = state_file(name)
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary.write_text(text, encoding="utf-8", errors="surrogateescape")
    temporary.replace(file)
    return file


def update_state(name: str, text: str) -> Path:
    """Write a state file unless it already has this text, and return its path. Raises OSError."""
    return state_file(name) if read_state(name) == text else replace_state(name, text)


def append_state(name: str, text: str) -> None:
    """Append to a state file, if it can be written."""
    file = state_file(name)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8", errors="surrogateescape") as end:
            end.write(text)


@dataclass(frozen=True)
class LastView:
    """Kernel by index, page of the live screen, and page of the kernel's own screen, "" if that was not open.

    ``line`` is the line of ``pruned.ptx`` at the cursor there, None for none. ``column`` is the sort column of the
    table, "" for its default order.
    """

    kernel: int | None = None
    page: str = ""
    kernel_page: str = ""
    column: str = ""
    reverse: bool = False
    line: int | None = None


def last_view(trace: Path) -> LastView | None:
    """Return the last view of a trace; None if unknown. Fields of other types, from a damaged file, are dropped."""
    state = read_state_record(VIEWS_FILE).get(str(trace.absolute()))
    if not isinstance(state, dict):
        return None
    usual = asdict(LastView())
    values = {name: value for name, value in state.items() if name in usual and type(value) is type(usual[name])}
    numbers = {name: state[name] for name in ("kernel", "line") if type(state.get(name)) is int}
    return LastView(**values | numbers)


def save_last_view(trace: Path, place: LastView) -> None:
    """Save the last view of a trace."""
    name = str(trace.absolute())
    other_views = [(path, view) for path, view in read_state_record(VIEWS_FILE).items() if path != name]
    views = dict([*other_views, (name, asdict(place))][-MAX_VIEWS:])
    write_state(VIEWS_FILE, json.dumps(views))


def opened_traces() -> list[Path]:
    """Return the recently opened traces, the last opened first; some may be gone."""
    return [Path(line) for line in read_state(OPENED_FILE).splitlines() if line.startswith("/")][:MAX_OPENED]


def remember_opened(trace: Path) -> None:
    """Put a trace first in the list of recently opened ones. Failure to write is ignored."""
    path = trace.absolute()
    if "\n" in str(path):
        return
    lines = [str(path), *(str(other) for other in opened_traces() if other != path)][:MAX_OPENED]
    write_state(OPENED_FILE, "".join(f"{line}\n" for line in lines))


def remember_command(command: Sequence[str], folder: str, probe: str) -> None:
    """Remember a command as run.json has it, with its directory and probes."""
    line = f"{_digest(command, folder, probe)}\n"
    digests = read_state(COMMANDS_FILE)
    if line in digests:
        return
    if len(digests) >= 2 * MAX_COMMANDS * _DIGEST_LINE:
        write_state(COMMANDS_FILE, digests[-MAX_COMMANDS * _DIGEST_LINE :] + line)
    else:
        append_state(COMMANDS_FILE, line)


def is_own_command(info: RunInfo) -> bool:
    """True if this user has run the command of a trace, in its directory and with its probes."""
    return _digest(info.command, info.cwd or "", info.probe or "") in read_state(COMMANDS_FILE).split("\n")


def _digest(command: Sequence[str], folder: str, probe: str) -> str:
    return hashlib.sha256(json.dumps([list(command), folder, probe]).encode()).hexdigest()
