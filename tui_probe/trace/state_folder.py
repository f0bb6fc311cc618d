"""What is kept in the user's state folder, and never in a trace. Where it cannot be kept, nothing else suffers."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def state_file(name: str) -> Path:
    """A file of ours."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111 - never raises
    return Path(base) / "tui-probe" / name


def read_state(name: str) -> str:
    """What it holds; "" where there is none."""
    try:
        return state_file(name).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def write_state(name: str, text: str) -> None:
    """Put this into it, where that can be."""
    with contextlib.suppress(OSError):
        keep_state(name, text)


def keep_state(name: str, text: str) -> Path:
    """Put this into it at once, so that another of us reads the one or the other. Raises OSError."""
    file = state_file(name)
    new = file.with_name(f"{file.name}.{os.getpid()}")
    file.parent.mkdir(parents=True, exist_ok=True)
    new.write_text(text, encoding="utf-8", errors="surrogateescape")
    new.replace(file)
    return file


def append_state(name: str, text: str) -> None:
    """Add this to its end, where that can be."""
    file = state_file(name)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8", errors="surrogateescape") as end:
            end.write(text)
