"""What the commands say: messages on stderr, data on stdout."""

from __future__ import annotations

import os
import sys


def inform(text: str, descriptor: int = 2) -> None:
    """A line of our own on stderr (or on what was stderr), at once."""
    os.write(descriptor, f"[info] {text}\n".encode(errors="surrogateescape"))


def warn(text: str) -> None:
    """Something that went wrong and did not end the command."""
    os.write(2, f"tui-probe: {text}\n".encode(errors="surrogateescape"))


def discard_output() -> None:
    """Whoever read stdout has left, as `head` does. Without this Python would complain when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def on_terminal() -> bool:
    """Can a screen be shown: a terminal at every end, which can place text?"""
    return all(os.isatty(descriptor) for descriptor in range(3)) and os.environ.get("TERM", "dumb") != "dumb"
