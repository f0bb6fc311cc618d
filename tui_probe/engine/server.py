"""The engine as a server on a Unix socket: hooks ask it to prepare kernels.

    hook → engine   hello TAB 1 TAB pid                                    engine → hook   hello TAB 1
    hook → engine   prepare TAB id TAB kernel directory TAB sm_XY TAB kernel name TAB threads of the block launched
    engine → hook   ok TAB id TAB file  |  skipped TAB id TAB reason  |  failed TAB id TAB reason
    Of several probes there is such an answer for each, in their order; its files are in a folder of the probe's name.
    hook → engine   sample TAB id TAB kernel directory TAB sm_XY TAB kernel name TAB place of a probe TAB threads
    Places count from 0. One answer: the same kernel, made to measure the blocks of a sample, in a folder ``sampled``.
    A reason ends with its code: no PTX in image code no-ptx
    launcher → engine  cache TAB id         engine → launcher  ok TAB id TAB hits SPACE misses

One connection per process; requests of a connection are answered in order, connections at once. The launcher runs it
in a process of its own: ``launcher.engine_process``.
"""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.engine.answers import Answer
from tui_probe.engine.listening import listen_at
from tui_probe.engine.options import Options
from tui_probe.engine.several import Preparers
from tui_probe.reasons import because, listed_reasons

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from tui_probe.engine.assemble import Assembler
    from tui_probe.engine.cache import Cache
    from tui_probe.engine.model import Probe

PROTOCOL: Final = "1"

_NOT_UNDERSTOOD: Final = Answer.refusal("failed", because("request-unknown"))

_MAX_LINE: Final = 1 << 20


class EngineServer:
    """Serves one probe, and ``others``, on a socket, in threads of this process. Also a context manager."""

    def __init__(
        self,
        path: Path,
        probe: Probe,
        options: Options | None = None,
        assembler: Assembler | None = None,
        cache: Cache | None = None,
        others: Sequence[tuple[Probe, Options]] = (),
        listener: socket.socket | None = None,
    ) -> None:
        """``listener`` is at ``path`` already; without it one is made there by ``start``."""
        self._path = path
        self._preparers = Preparers([(probe, options or Options()), *others], assembler, cache)
        self._listener = listener
        self._lock = threading.Lock()
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._acceptor = threading.Thread(target=self._accept, name="engine", daemon=True)
        self._stopping = False

    def start(self) -> None:
        """Get ready, then take connections: where the server makes the socket, it is warm when the path exists.

        Raises LaunchError if the socket cannot be made there.
        """
        self._preparers.warm_up()
        if self._listener is None:
            self._listener = listen_at(self._path)
        self._acceptor.start()
        listed_reasons()  # read now, beside the start of the target: the first kernel with a reason would wait for it

    def stop(self) -> None:
        """Take no more requests; finish those under way and the assemblies that nobody waits for."""
        with self._lock:
            self._stopping = True
            connections = dict(self._connections)
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._acceptor.join()
            self._listener.close()
        self._path.unlink(missing_ok=True)
        for connection in connections:
            _shut(connection, socket.SHUT_RD)
        for thread in connections.values():
            thread.join()
        self._preparers.close()

    def __enter__(self) -> EngineServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _accept(self) -> None:
        assert self._listener is not None
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), name="connection", daemon=True)
            with self._lock:
                if self._stopping:
                    connection.close()
                    return
                self._connections[connection] = thread
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        """Answer the requests of one connection until it ends or the peer is gone."""
        try:
            with connection, connection.makefile("rb") as lines:
                while line := lines.readline(_MAX_LINE):
                    for answer in self._answers(line):
                        connection.sendall(answer.encode("utf-8", "replace"))
        except OSError:
            return
        finally:
            with self._lock:
                self._connections.pop(connection, None)

    def _answers(self, line: bytes) -> Iterator[str]:
        match line.decode("utf-8", "surrogateescape").rstrip("\n").split("\t"):
            case ["hello", version, _] if version == PROTOCOL:
                yield f"hello\t{PROTOCOL}\n"
            case ["hello", *_]:
                yield _line(Answer.refusal("failed", because("protocol", version=PROTOCOL)), "-")
            case ["prepare", request, directory, arch, name, threads] if threads.isdecimal():
                for answer in self._preparers.prepare(Path(directory), arch, name, int(threads)):
                    yield _line(answer, request)
            case ["sample", request, directory, arch, name, place, threads] if (place + threads).isdecimal():
                answer = self._preparers.prepare_sampled(int(place), Path(directory), arch, name, int(threads))
                yield _line(answer, request)
            case ["cache", request]:
                counts = self._preparers.counts
                yield f"ok\t{request}\t{counts.hits} {counts.misses}\n"
            case [_, request, *_]:
                yield _line(_NOT_UNDERSTOOD, request)
            case _:
                yield _line(_NOT_UNDERSTOOD, "-")


def _line(answer: Answer, request: str) -> str:
    return f"{answer.outcome}\t{request}\t{answer.written}\n"


def _shut(connection: socket.socket, how: int) -> None:
    """Shut a connection down; the other side may have done so already."""
    try:
        connection.shutdown(how)
    except OSError:
        connection.close()
