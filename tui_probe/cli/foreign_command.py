"""The question before the command of a trace runs that this user has not run before."""

from __future__ import annotations

import os
import sys
import termios
from contextlib import suppress
from typing import TYPE_CHECKING

from tui_probe.errors import UsageError

from .output import shell_word

if TYPE_CHECKING:
    from pathlib import Path


def confirm_command(trace: Path, folder: Path, command: str) -> None:
    """Show the command whole, and ask on the terminal. UsageError where it is not to run, or nobody can be asked."""
    where = f"cd {shell_word(folder)}"
    if not (os.isatty(0) and os.isatty(2)):
        raise UsageError(
            f"{trace}: you have not run its command on this machine, so it runs only after a question on a terminal."
            f" To run it: {where} && {command}"
        )
    with suppress(termios.error):
        termios.tcflush(0, termios.TCIFLUSH)  # keys that were pressed before the question do not answer it
    sys.stderr.write(f"You have not run the command of {shell_word(trace)} on this machine. It is:\n\n")
    sys.stderr.write(f"  {where}\n  {command}\n\nRun it? Type yes: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != "yes":
        raise UsageError(f"{trace}: its command was not run")
