"""What the commands say: messages on stderr, data on stdout."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import sys
from typing import TYPE_CHECKING

from tui_probe.draw.printable import printable, printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tui_probe.draw.spans import Line


def put(text: str | Iterable[str], *, ascii_only: bool = False) -> None:
    """Text, or lines, on stdout, safe to show whatever names stand in them; only with ASCII signs if ``ascii_only``.

    Pieces may hold several lines; a newline is added to each piece that does not end with one.
    """
    for piece in (text,) if isinstance(text, str) else text:
        for line in piece.removesuffix("\n").split("\n"):
            sys.stdout.write(f"{_ascii(printable(line)) if ascii_only else printable(line)}\n")


def _ascii(text: str) -> str:
    from tui_probe.draw.spans import to_ascii

    return to_ascii(text)


def put_coloured(lines: Iterable[Line], *, ascii_only: bool = False) -> None:
    """Lines on stdout, in the colours of a terminal where it is one."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        from tui_probe.draw.spans import plain

        put((plain(line).rstrip() for line in lines), ascii_only=ascii_only)
        return
    from tui_probe.draw.palette import ANSI

    for line in lines:
        shown = ((_ascii(printable(text)) if ascii_only else printable(text), role) for text, role in line)
        coloured = "".join(ANSI.style(role).render(text) if role else text for text, role in shown)
        sys.stdout.write(f"{coloured.rstrip()}\n")


def shell_word(path: Path) -> str:
    """A path as it may stand in a command that a person is to paste."""
    return shlex.quote(str(path))


def complain(text: str) -> None:
    """Why a command ends, on stderr."""
    sys.stderr.write(f"tui-probe: error: {printable_lines(text)}\n")


def inform(text: str, descriptor: int = 2) -> None:
    """A line of our own on stderr (or on what was stderr), at once. If nobody takes it, nothing else suffers."""
    with contextlib.suppress(OSError):
        os.write(descriptor, f"[info] {_said(text)}\n".encode(errors="surrogateescape"))


def warn(text: str) -> None:
    """Something that went wrong and did not end the command. If nobody takes the words, nothing else suffers."""
    with contextlib.suppress(OSError):
        os.write(2, f"tui-probe: {_said(text)}\n".encode(errors="surrogateescape"))


def _said(text: str) -> str:
    """Scripts find the traces in it, so names of files keep bytes that are not UTF-8."""
    return printable_lines(text, raw_bytes=True)


def write_behind_output() -> None:
    """Have stdout end where its file does: the program may have gone back in it."""
    with contextlib.suppress(OSError):  # a pipe or a terminal
        os.lseek(1, 0, os.SEEK_END)


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
