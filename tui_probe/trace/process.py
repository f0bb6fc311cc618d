"""Whether the process of a trace is still running on this machine."""

from __future__ import annotations

from pathlib import Path

from tui_probe.trace.secrets import MASK


def is_alive(pid: int | None, command: str) -> bool:
    """Whether a process of this number runs that was started with this command line.

    The command line guards against another process that has got the number since; a log holds its beginning, with
    blanks for the separators, and masks for secrets: what stands before the first of these has to be the same.
    """
    if pid is None:
        return False
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    text = words.replace(b"\0", b" ").decode("utf-8", "backslashreplace").strip()
    known, masked, _ = command.partition(MASK)
    return (
        bool(text) and bool(command) and (text.startswith(known[:512]) or (not masked and known.startswith(text[:512])))
    )
