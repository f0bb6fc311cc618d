"""The engine's socket: connections and first messages, also before the engine is ready, and the form of answers.

A hook gives an engine up that does not answer its first message within a second. Reading the engine's code may take
longer on a busy machine, so this module needs little; requests wait until there is something to answer them.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import signal
import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final, Literal, NamedTuple, Protocol

from tui_probe.errors import LaunchError
from tui_probe.reasons import Reason, read_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

PROTOCOL: Final = "1"
HELLO: Final = f"hello\t{PROTOCOL}\n"
AHEAD_SUFFIX: Final = ".ahead"
"""Suffix of the socket for images, behind the path of the engine's own, as in ahead.c."""
_NOTE_PREFIX: Final = "under-way."
_NUMBERS: Final = itertools.count()
_MAX_LINE: Final = 1 << 20
"""Bytes of a request: names of C++ kernels may be long."""
_TRANSIENT_ERRORS: Final = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ECONNABORTED, errno.EINTR}
)
"""Errors of ``accept`` that end, mostly when other connections do."""
_ACCEPT_PAUSE: Final = 0.05
"""Seconds before the next try."""
_MAX_REASON_LENGTH: Final = 500
"""Characters of a reason in an answer: errors of ptxas may have many lines."""


def listen_at(path: Path) -> socket.socket:
    """Return a socket that accepts connections once ``path`` exists. Raises LaunchError if it cannot be made there."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    unready_path = path.with_name(f".{path.name[:20]}.{os.getpid()}")
    try:
        listener.bind(str(unready_path))
        listener.listen(socket.SOMAXCONN)
        unready_path.rename(path)
    except OSError as error:
        listener.close()
        raise LaunchError(f"{path}: cannot create the engine's socket: {error.strerror or error}") from error
    return listener


def receive_at(path: Path) -> socket.socket:
    """Return a socket for images that hooks send, as ``ahead`` describes, next to the engine's own at ``path``.

    Raises LaunchError if it cannot be made there.
    """
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        receiver.bind(f"{path}{AHEAD_SUFFIX}")
    except OSError as error:
        receiver.close()
        raise LaunchError(f"{path}: cannot create the engine's socket: {error.strerror or error}") from error
    return receiver


class KernelNote(NamedTuple):
    """A kernel under way: the directory of its image, the device and its name."""

    directory: str
    arch: str
    name: str


@contextlib.contextmanager
def keep_kernel_note(notes: Path | None, directory: Path, arch: str, name: str) -> Iterator[None]:
    """Keep a note of a kernel in ``notes`` while it is under way; None: none is kept."""
    note = None if notes is None else notes / f"{_NOTE_PREFIX}{os.getpid()}.{next(_NUMBERS)}"
    if note is not None:
        with contextlib.suppress(OSError):  # the disk is full
            note.write_text(json.dumps(KernelNote(str(directory), arch, name)))
    try:
        yield
    finally:
        if note is not None:
            note.unlink(missing_ok=True)


def read_kernel_notes(notes: Path) -> list[KernelNote]:
    """Return the kernels that were under way when their processes were ended."""
    kernels = []
    for note in sorted(notes.glob(f"{_NOTE_PREFIX}*")):
        with contextlib.suppress(OSError, ValueError, TypeError):  # not whole
            kernels.append(KernelNote(*json.loads(note.read_text())))
    return kernels


class Listener(Protocol):
    """Source of connections: a socket that listens, or another process."""

    def accept(self) -> tuple[socket.socket, object]:
        """Return the next connection. Raises OSError."""

    def shutdown(self, how: int, /) -> None:
        """Take no more."""

    def close(self) -> None:
        """Close it."""


class Reception:
    """Serves each connection in a thread of this process."""

    def __init__(self, listener: Listener) -> None:
        from concurrent.futures import Future  # with logging, which the launcher need not read

        self._listener = listener
        self._answers: Future[Callable[[bytes], Iterator[str]]] = Future()
        self._hand_over: Callable[[socket.socket], bool] | None = None
        self._lock = threading.Lock()
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._acceptor = threading.Thread(target=self._accept, name="engine", daemon=True)
        self._stop_event = threading.Event()

    def start(self) -> None:
        """Take connections."""
        self._acceptor.start()

    def open(
        self, answers: Callable[[bytes], Iterator[str]], hand_over: Callable[[socket.socket], bool] | None = None
    ) -> None:
        """Answer requests by the lines of ``answers`` from now on.

        ``hand_over`` may take a connection that comes while another one is served here, and then serves only that one.
        """
        self._hand_over = hand_over
        self._answers.set_result(answers)

    def wait(self) -> None:
        """Wait until no more connections come."""
        self._acceptor.join()

    def stop(self) -> None:
        """Take no more requests, and finish those under way."""
        with self._lock:
            self._stop_event.set()
            connections = dict(self._connections)
        with contextlib.suppress(OSError):  # the other side has ended it
            self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listener.close()
        for connection in connections:
            _shut_down(connection, socket.SHUT_RD)
        for thread in connections.values():
            thread.join()

    def _accept(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the main thread
        while not self._stop_event.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError as error:
                if error.errno not in _TRANSIENT_ERRORS:
                    return
                self._stop_event.wait(_ACCEPT_PAUSE)
            else:
                self._receive(connection)

    def _receive(self, connection: socket.socket) -> None:
        if self._connections and self._hand_over is not None and self._hand_over(connection):
            return
        thread = threading.Thread(target=self._serve, args=(connection,), name="connection", daemon=True)
        with self._lock:
            if self._stop_event.is_set():
                connection.close()
                return
            self._connections[connection] = thread
        try:
            thread.start()
        except RuntimeError:  # there may be no more threads for now
            with self._lock:
                del self._connections[connection]
            connection.close()

    def _serve(self, connection: socket.socket) -> None:
        """Answer the requests of one connection until it ends or the peer is gone."""
        try:
            with connection, connection.makefile("rb") as lines:
                while line := lines.readline(_MAX_LINE):
                    _skip_rest(lines, line)
                    for answer in self._reply(line):
                        connection.sendall(answer.encode("utf-8", "replace"))
        except OSError:
            return
        finally:
            with self._lock:
                self._connections.pop(connection, None)

    def _reply(self, line: bytes) -> Iterator[str]:
        if not line.endswith(b"\n"):
            line = b"\n"  # too long: no request
        match line.rstrip(b"\n").split(b"\t"):
            case [b"hello", version, _] if version == PROTOCOL.encode():
                yield HELLO
            case _:
                yield from self._answers.result()(line)


def _shut_down(connection: socket.socket, how: int) -> None:
    """Shut a connection down; the other side may have done so already."""
    try:
        connection.shutdown(how)
    except OSError:
        connection.close()


def _skip_rest(lines: BinaryIO, line: bytes) -> None:
    """Read a line that is too long to its end, so that what follows is read as the next request."""
    while line and not line.endswith(b"\n"):
        line = lines.readline(_MAX_LINE)


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer about a kernel: ``ok`` with the file to load, ``skipped`` or ``failed`` with a reason.

    ``text`` is on one line: the file, or the words of the reason. ``code`` is that of the reason, None for ``ok``.
    ``later``: another answer about the same probe follows. ``key`` is that of the kernel in the cache, if it is kept.
    """

    outcome: Literal["ok", "skipped", "failed", "later"]
    text: str
    code: str | None = None
    key: str = ""

    @classmethod
    def refusal(cls, outcome: Literal["skipped", "failed"], reason: Reason) -> Answer:
        """Return the answer for a kernel that is not probed; a very long reason is cut."""
        return cls(outcome, *reason.shortened(_MAX_REASON_LENGTH))

    @classmethod
    def read(cls, line: str) -> Answer:
        """Return the answer in a line: its ``outcome``, an id, and the file or the reason. Raises ValueError."""
        match line.removesuffix("\n").split("\t", 2):
            case ["ok", _, text]:
                return cls("ok", text)
            case ["skipped" | "failed" as outcome, _, reason_text]:
                return cls(outcome, *read_reason(reason_text))
        raise ValueError(f"no answer: {line!r}")

    @property
    def reason(self) -> Reason | None:
        """Reason for which it is not probed."""
        return None if self.code is None else Reason(self.text, self.code)

    @property
    def reply_text(self) -> str:
        """Text that the hook receives."""
        return self.text if self.reason is None else self.reason.written


LATER_ANSWER: Final = Answer("later", "")
