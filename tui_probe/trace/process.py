"""Whether the process of a trace is still running on this machine."""

from __future__ import annotations

from pathlib import Path


def is_alive(pid: int | None, command: str) -> bool:
    """Whether a process of this number runs that was started with this command line.

    The command line guards against another process that has got the number since; a log holds its beginning, with
    blanks for the separators.
    """
    if pid is None:
        return False
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    text = words.replace(b"\0", b" ").decode("utf-8", "backslashreplace").strip()
    return bool(text) and bool(command) and (text.startswith(command[:512]) or command.startswith(text[:512]))
