"""A run without a screen: the program's streams and signals are passed on, with a copy of its output in a log.

Pipes and terminals are pumped: bytes are passed on immediately and unchanged. The target inherits files, devices,
sockets and closed descriptors as they are: it sees their errors, seeks in them and truncates them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pty
import select
import signal
import stat
import sys
import termios
import threading
import tty
from contextlib import closing
from typing import TYPE_CHECKING

from . import signals
from .session import read_end_code, toolchain
from .target import SignalScope, StandardStreams

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .session import Session

BLOCK = 1 << 16
"""Capacity of a pipe on Linux: one read takes all that a writer can have left in it."""
OWN_LINE = b"[info] trace in "
"""Begins our line that precedes what the target writes to a file."""
READER_LIMIT = 0.3
"""Seconds that a run which was asked to end waits for those who read its output and do not."""


class Pump:
    """Copies one stream of the target to one of our file descriptors and to a log.

    The target writes to ``target_end``: a pipe, or a raw pseudo-terminal where ``destination`` is a terminal, so that
    the target finds a terminal there too. Bytes are neither changed nor held back.
    """

    def __init__(
        self, destination: int, log: Path, limit: int | None = None, before_write: Callable[[], object] = lambda: None
    ) -> None:
        self.destination = destination
        self._before_write = before_write
        """Called before bytes are passed on."""
        self.is_terminal = os.isatty(destination)
        self._source, self.target_end = raw_terminal() if self.is_terminal else os.pipe()
        self._log: int | None = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._log_room = limit
        self.is_truncated = False
        """The log has no more than ``limit`` bytes, and there were more."""
        self.failure: str | None = None
        """Problem with passing on the target's output."""
        self._stop_request, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._copy_stream, name=f"pump-{log.name}", daemon=True)
        self.copy_window_size()

    def start(self) -> None:
        """Call once the target has its end."""
        os.close(self.target_end)
        self._thread.start()

    def finish(self, seconds: float | None = None) -> bool:
        """Pass on what was written so far. True if the stream has ended, False if some process still holds it open.

        A reader of tui-probe that takes nothing for that many ``seconds`` gets no more: True, the log has what was
        read.
        """
        os.close(self._stop)
        self._thread.join(seconds)
        return self._source < 0 or self._thread.is_alive()

    def abandon(self) -> None:
        """Close our end: who writes to the other one is to know that no one reads it."""
        if self._source >= 0:
            os.close(self._source)
            self._source = -1

    def carry_on(self) -> None:
        """Copy, in this thread, until the stream ends."""
        self._copy_until(None)

    def copy_window_size(self) -> None:
        """Give the target's terminal the size of tui-probe."""
        if self.is_terminal:
            with contextlib.suppress(termios.error):  # the stream has ended
                termios.tcsetwinsize(self._source, termios.tcgetwinsize(self.destination))

    def _copy_stream(self) -> None:
        if self._copy_until(self._stop_request):
            self._drain()
        os.close(self._stop_request)

    def _copy_until(self, stop: int | None) -> bool:
        """Copy until the stream ends, or ``stop`` does: True then."""
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        if stop is not None:
            poll.register(stop, select.POLLIN)
        if is_anonymous_pipe(self.destination):
            poll.register(self.destination, 0)  # says nothing but that its reader has left
        while True:
            events = dict(poll.poll())
            if self.destination in events:
                self._leave_reader()
                return False
            if self._source in events and not self._copy_block():
                return False
            if stop in events:
                return True

    def _leave_reader(self) -> None:
        """Close the pipe so that the target's next write fails, as it would without us. Waiting output is lost."""
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        if dict(poll.poll(0)).get(self._source, 0) & select.POLLIN:
            self._copy_block()
        self.abandon()

    def _drain(self) -> None:
        """Copy what waits now. A process that still writes, for ever perhaps, does not hold us up."""
        bytes_waiting = int.from_bytes(fcntl.ioctl(self._source, termios.FIONREAD, bytes(4)), sys.byteorder)
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        while events := poll.poll(0):
            if events[0][1] & select.POLLHUP:  # no one can write any more
                self.carry_on()
                return
            if bytes_waiting <= 0:
                return
            bytes_waiting -= self._copy_block()

    def _copy_block(self) -> int:
        """Copy what is there. The number of bytes; 0 when the stream has ended, or no one takes it any more."""
        try:
            data = os.read(self._source, BLOCK)
        except OSError as error:
            if error.errno != errno.EIO:  # what a pseudo-terminal says at its end
                raise
            data = b""
        self._keep(data)
        if data and self._pass_on(data):
            return len(data)
        self.abandon()
        return 0

    def _pass_on(self, data: bytes) -> bool:
        """Return False if no one reads our stream any more: closing the source then tells the target."""
        self._before_write()
        try:
            write_all(self.destination, data)
        except OSError as error:
            self.failure = error.strerror
            return False
        return True

    def _keep(self, data: bytes) -> None:
        """Append to the log; its limit and a full disk end the copy, not the stream."""
        if self._log_room is not None:
            self.is_truncated = self.is_truncated or len(data) > self._log_room
            data = data[: self._log_room]
            self._log_room -= len(data)
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
        except BlockingIOError:  # someone made our stream non-blocking
            select.select([], [descriptor], [])


class InheritedStream:
    """A stream that the target has as we have it: a file, a device, a socket, or a closed descriptor.

    What was appended to a regular file meanwhile is copied to ``log`` at the end.
    """

    target_end = None
    """The target inherits it. ``open_standard_streams`` lets no one inherit what stands in for a closed one."""
    failure = None

    def __init__(self, descriptor: int, log: Path, limit: int | None = None) -> None:
        self._descriptor, self._log, self._limit = descriptor, log, limit
        self._begin = appending_at(descriptor)
        self.is_truncated = False
        log.touch()

    def start(self) -> None:
        """Do nothing; a pump starts its thread here."""

    def copy_window_size(self) -> None:
        """Do nothing; a pump copies the terminal's size here."""

    def finish(self, seconds: float | None = None) -> bool:  # noqa: ARG002 - as for a pump
        """Copy what was appended. True: the stream has ended for us."""
        if self._begin is not None:
            with contextlib.suppress(OSError):  # a file that we may only write, or a full disk
                self._copy(self._begin)
        return True

    def _copy(self, begin: int) -> None:
        size = os.fstat(self._descriptor).st_size - begin
        remaining = size if self._limit is None else min(size, self._limit)
        self.is_truncated = remaining < size
        with open(f"/proc/self/fd/{self._descriptor}", "rb") as source, self._log.open("ab") as log:  # noqa: PTH123
            source.seek(begin)
            if source.read(len(OWN_LINE)) == OWN_LINE:
                remaining -= len(OWN_LINE) + len(source.readline())
            else:
                source.seek(begin)
            while remaining > 0 and (block := source.read(min(remaining, BLOCK))):
                log.write(block)
                remaining -= len(block)


def appending_at(descriptor: int) -> int | None:
    """Return the offset of the next write to a regular file; None for anything else."""
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode):
        return None
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND:
        return state.st_size
    return os.lseek(descriptor, 0, os.SEEK_CUR)


def is_pumped(descriptor: int) -> bool:
    """Return whether a stream is a pipe or a terminal."""
    return os.isatty(descriptor) or stat.S_ISFIFO(os.fstat(descriptor).st_mode)


def is_anonymous_pipe(descriptor: int) -> bool:
    """Return whether no other reader can follow one that has left."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}").startswith("pipe:")  # noqa: PTH115 - it names no path
    except OSError:
        return False


def streams_for(
    stdout: int, stderr: int, stdout_log: Path, stderr_log: Path, limit: int | None, before_stderr: Callable[[], object]
) -> list[Pump | InheritedStream]:
    """Return a pump per stream; a single one, into ``stdout_log``, if both are one file: only that keeps their order.

    ``before_stderr`` is called before something is passed on to stderr.
    """

    def stream(descriptor: int, log: Path, before_write: Callable[[], object]) -> Pump | InheritedStream:
        return (
            Pump(descriptor, log, limit, before_write)
            if is_pumped(descriptor)
            else InheritedStream(descriptor, log, limit)
        )

    stderr_log.touch()
    if os.path.sameopenfile(stdout, stderr):
        return [stream(stdout, stdout_log, before_stderr)]
    return [stream(stdout, stdout_log, lambda: None), stream(stderr, stderr_log, before_stderr)]


def run_with_passthrough(session: Session, meanwhile: Callable[[], object] = lambda: None) -> int:
    """Run the session's target to its end with our own standard streams. Returns ``Popen.returncode``.

    ``meanwhile`` is work that would otherwise be done after the target's end; it is done when this returns.
    """

    def run_meanwhile() -> None:
        toolchain()
        read_end_code()
        meanwhile()

    thread = threading.Thread(target=run_meanwhile, name="meanwhile")
    with signals.held_back() as mask, closing(signals.Witness()) as witness:
        spool, limit = session.spool, session.options.output_limit()
        output = streams_for(1, 2, spool.stdout, spool.stderr, limit, session.announce_first_trace)
        target = session.start(
            StandardStreams(None, output[0].target_end, output[-1].target_end), SignalScope.SHARED, mask
        )
        for stream in output:
            stream.start()
        thread.start()  # with the signals held back, which must not be taken there

        def resize() -> None:
            for stream in output:
                stream.copy_window_size()

        returncode = signals.wait(target, session.poll, resize, witness.has_seen)
    _finish_streams(output, READER_LIMIT if target.asked_to_end else None, before_fork=thread.join)
    session.lost_output = lost_output(output)
    session.finish(returncode, is_truncated=any(stream.is_truncated for stream in output))
    thread.join()
    return returncode


def _finish_streams(
    output: list[Pump | InheritedStream], patience: float | None, before_fork: Callable[[], object]
) -> None:
    """Pass on what is left in the streams; a process of its own does so for those that a child process holds open.

    ``before_fork`` waits for the work of other threads: a process that is forked while modules are read could read
    none itself.
    """
    pumps = [stream for stream in output if isinstance(stream, Pump)]
    left_open = [stream for stream in output if not stream.finish(patience)]
    open_pumps = [pump for pump in pumps if pump in left_open]
    if open_pumps:
        before_fork()
    fork_remaining_pumps(open_pumps, [pump for pump in pumps if pump not in open_pumps])


def lost_output(output: list[Pump | InheritedStream]) -> list[str]:
    """Return a message per stream that could not be passed on whole."""
    return [
        f"part of the program's {name} was lost ({stream.failure})"
        for name, stream in zip(("stdout", "stderr"), output, strict=False)
        if stream.failure
    ]


def fork_remaining_pumps(pumps: list[Pump], ended_pumps: list[Pump]) -> None:
    """Fork a process that outlives us, for streams that a process other than the target still holds open."""
    if not pumps or os.fork():
        return
    try:
        for pump in ended_pumps:
            pump.abandon()
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        for number in (signal.SIGINT, signal.SIGQUIT):  # the writers decide when the stream ends
            signal.signal(number, signal.SIG_IGN)
        threads = [threading.Thread(target=pump.carry_on) for pump in pumps]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        os._exit(0)
