"""The target's output: passed on at once and unchanged, with a copy in a log file."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pty
import select
import sys
import termios
import threading
import tty
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCK = 1 << 16


class Pump:
    """Copies one stream of the target to one of our file descriptors and to a log.

    The target writes to ``target_end``: a pipe, or a raw pseudo-terminal where ``destination`` is a terminal, so that
    the target finds a terminal there too. Bytes are neither changed nor held back.
    """

    def __init__(
        self, destination: int, log: Path, limit: int | None = None, before: Callable[[], object] = lambda: None
    ) -> None:
        self.destination = destination
        self._before = before
        """Called before bytes are passed on."""
        self.is_terminal = os.isatty(destination)
        self._source, self.target_end = raw_terminal() if self.is_terminal else os.pipe()
        self._log: int | None = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._room = limit
        self.cut = False
        """The log has no more than ``limit`` bytes, and there were more."""
        self._stop_request, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._run, name=f"pump-{log.name}", daemon=True)
        self.copy_window_size()

    def start(self) -> None:
        """Call once the target has its end."""
        os.close(self.target_end)
        self._thread.start()

    def finish(self, seconds: float | None = None) -> bool:
        """Pass on what was written so far. True if the stream has ended, False if some process still holds it open.

        A reader of ours that takes nothing for so many ``seconds`` gets no more: True, the log has what was read.
        """
        os.close(self._stop)
        self._thread.join(seconds)
        return self._source < 0 or self._thread.is_alive()

    def abandon(self) -> None:
        """In a process that carries on with other streams: who writes to this one is to know that nobody reads it."""
        if self._source >= 0:
            os.close(self._source)
            self._source = -1

    def carry_on(self) -> None:
        """Copy, in this thread, until the stream ends."""
        while self._copy_block():
            pass

    def copy_window_size(self) -> None:
        """Give the target's terminal the size of ours."""
        if self.is_terminal:
            with contextlib.suppress(termios.error):  # the stream has ended
                termios.tcsetwinsize(self._source, termios.tcgetwinsize(self.destination))

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        poll.register(self._stop_request, select.POLLIN)
        stopping = False
        while not stopping:
            ready = dict(poll.poll())
            if self._source in ready and not self._copy_block():
                break
            stopping = self._stop_request in ready
        else:
            self._drain()
        os.close(self._stop_request)

    def _drain(self) -> None:
        """Copy what waits now. A process that still writes, for ever perhaps, does not hold us up."""
        waiting = int.from_bytes(fcntl.ioctl(self._source, termios.FIONREAD, bytes(4)), sys.byteorder)
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        while ready := poll.poll(0):
            if ready[0][1] & select.POLLHUP:  # nobody can write any more
                self.carry_on()
                return
            if waiting <= 0:
                return
            waiting -= self._copy_block()

    def _copy_block(self) -> int:
        """Copy what is there. The number of bytes; 0 when the stream has ended, or nobody takes it any more."""
        try:
            data = os.read(self._source, BLOCK)
        except OSError as error:
            if error.errno != errno.EIO:  # what a pseudo-terminal says at its end
                raise
            data = b""
        self._keep(data)
        if data and self._pass_on(data):
            return len(data)
        os.close(self._source)
        self._source = -1
        return 0

    def _pass_on(self, data: bytes) -> bool:
        """False when nobody reads our stream any more: closing the source then tells the target."""
        self._before()
        try:
            write_all(self.destination, data)
        except OSError:
            return False
        return True

    def _keep(self, data: bytes) -> None:
        """Append to the log; its limit and a full disk end the copy, not the stream."""
        if self._room is not None:
            self.cut = self.cut or len(data) > self._room
            data = data[: self._room]
            self._room -= len(data)
        if self._log is not None and data:
            try:
                write_all(self._log, data)
            except OSError:
                os.close(self._log)
                self._log = None


def raw_terminal() -> tuple[int, int]:
    """A pseudo-terminal that changes no byte: (our end, the target's end)."""
    ours, target = pty.openpty()
    tty.setraw(target)
    return ours, target


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:  # somebody made our stream non-blocking
            select.select([], [descriptor], [])


def pumps_for(
    stdout: int, stderr: int, stdout_log: Path, stderr_log: Path, limit: int | None, before_stderr: Callable[[], object]
) -> list[Pump]:
    """One pump per stream; a single one, into ``stdout_log``, where both are one file: only that keeps their order.

    ``before_stderr`` is called before something is passed on to stderr.
    """
    stderr_log.touch()
    if os.path.sameopenfile(stdout, stderr) and not is_null(stdout):
        return [Pump(stdout, stdout_log, limit, before_stderr)]
    return [Pump(stdout, stdout_log, limit), Pump(stderr, stderr_log, limit, before_stderr)]


def is_null(descriptor: int) -> bool:
    return os.path.samestat(os.fstat(descriptor), Path(os.devnull).stat())
