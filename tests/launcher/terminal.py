"""A pseudoterminal with a program in it."""

from __future__ import annotations

import contextlib
import os
import select
import termios
import tty
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.warm_start import start_on_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

LIMIT = 30  # seconds; reaching it means that something hangs


@dataclass
class Terminal:
    """Our end of the terminal, and the program that is the leader of its session."""

    descriptor: int
    pid: int
    seen: bytes = b""

    def type(self, keys: bytes) -> None:
        os.write(self.descriptor, keys)

    def read_until(self, text: bytes) -> bytes:
        """All that was shown until ``text`` came (from the last call on)."""
        while text not in self.seen:
            block = self._read()
            assert block, f"the terminal ended without {text!r}: {self.seen!r}"
            self.seen += block
        shown, _, self.seen = self.seen.partition(text)
        return shown + text

    def read_to_end(self) -> bytes:
        while block := self._read():
            self.seen += block
        return self.seen

    def wait(self, options: int = 0) -> int:
        """The wait status of the program."""
        return os.waitpid(self.pid, options)[1]

    def _read(self) -> bytes:
        assert select.select([self.descriptor], [], [], LIMIT)[0], f"nothing came for {LIMIT} s after {self.seen!r}"
        try:
            return os.read(self.descriptor, 65536)
        except OSError:  # the program and its children have closed the other end
            return b""


@contextlib.contextmanager
def terminal(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], size: tuple[int, int] = (24, 80)
) -> Iterator[Terminal]:
    """Start a command on a terminal of this size (rows, columns), which shows no echo and keeps line ends."""

    def set_attributes(terminal: int) -> None:
        attributes = termios.tcgetattr(terminal)
        attributes[tty.OFLAG] &= ~termios.OPOST
        attributes[tty.LFLAG] &= ~termios.ECHO
        attributes[tty.LFLAG] |= termios.NOFLSH  # else the kernel may drop what a program says immediately after ctrl+c
        termios.tcsetattr(terminal, termios.TCSANOW, attributes)
        termios.tcsetwinsize(terminal, size)

    pid, descriptor = start_on_terminal(command, folder, environment, set_attributes)
    try:
        yield Terminal(descriptor, pid)
    finally:
        os.close(descriptor)
        with contextlib.suppress(ChildProcessError, ProcessLookupError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                os.kill(pid, 9)
                os.waitpid(pid, 0)
