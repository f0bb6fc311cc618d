"""What the commands say: messages on stderr, data on stdout."""

from __future__ import annotations

import contextlib
import os
import select
import sys


def inform(text: str, descriptor: int = 2) -> None:
    """A line of our own on stderr (or on what was stderr), at once. If nobody takes it, nothing else suffers."""
    with contextlib.suppress(OSError):
        os.write(descriptor, f"[info] {text}\n".encode(errors="surrogateescape"))


def warn(text: str) -> None:
    """Something that went wrong and did not end the command. If nobody takes the words, nothing else suffers."""
    with contextlib.suppress(OSError):
        os.write(2, f"tui-probe: {text}\n".encode(errors="surrogateescape"))


def discard_output() -> None:
    """Whoever read stdout has left, as `head` does. Without this Python would complain when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def let_go_of_lost_terminal() -> None:
    """After a screen: if its terminal has hung up, our ends of it become /dev/null, as there is nobody to write to."""
    poll = select.poll()
    for descriptor in range(3):
        poll.register(descriptor, 0)  # says nothing but that it has hung up
    for descriptor, _ in poll.poll(0):
        os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)


def on_terminal() -> bool:
    """Can a screen be shown: a terminal at every end, which can place text?"""
    return all(os.isatty(descriptor) for descriptor in range(3)) and os.environ.get("TERM", "dumb") != "dumb"
