"""Worker processes of the engine: one process of Python runs one thread at a time, however many processors there are.

The engine itself serves one connection. Those next to it go to workers in turn: a hook has a connection for each kernel
that it has prepared at a time. Next to each of these processes another one prepares counting probes of kernels without
PTX, which take ten times as long as the first probe of a kernel: in the same process launches would wait for both.
Other workers prepare kernels ahead of their launches, and are ended with the engine.
Workers are forked when they are first needed, by a process that has a single thread: a fork of the engine could copy a
lock that one of its threads holds.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import socket
import struct
import time
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tui_probe.engine.reception import Reception

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from concurrent.futures import Future

MAX_WORKERS: Final = 7
"""Worker limit: with the engine as many processes as a hook prepares kernels at a time (``MOST_THREADS`` of
background.c).
"""
MAX_AHEAD_WORKERS: Final = 6
"""Limit of workers that prepare ahead of launches. Each has about 15 MB of its own."""
AHEAD_NICENESS: Final = 5
"""Added to the niceness of these workers: on a full machine the program has three times as much of a processor. Not
more, since a launch may wait for a kernel that such a worker prepares.
"""
_PATIENT_KERNELS: Final = 3
"""Kernels of a run that wait for all of their probes as long as one may."""
_COUNTS: Final = struct.Struct("=QQ")
_SECONDS: Final = struct.Struct("=d")
_LAUNCHES: Final = b"\0"
"""Byte sent with the descriptor of a connection: for a worker of launches."""
_AHEAD: Final = b"\1"
"""Byte for a worker that prepares ahead of launches."""
_COUNTING: Final = b"\3"
"""Byte for a worker that prepares counting probes for another process."""
_READY_BYTE: Final = b"\2"
"""Byte sent back when workers have read their code."""


def usual_workers() -> int:
    """Return the number of workers for this machine: the program keeps a processor, the engine itself has one."""
    return min(MAX_WORKERS, max(len(os.sched_getaffinity(0)) - 1, 0))


def usual_ahead_workers() -> int:
    """Return the number of workers that prepare ahead: all processors but the one that the program keeps."""
    return min(MAX_AHEAD_WORKERS, max(len(os.sched_getaffinity(0)) - 1, 0))


class SharedCounts:
    """Hits and misses of the cache: of the engine (place 0), of each of the ``workers`` that serve launches, from 1 on,
    and then of those that prepare counting probes for these processes.

    All processes that are forked later can read them, and the one that made them.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._memory = mmap.mmap(-1, (1 + 2 * workers) * _COUNTS.size)

    def set(self, number: int, hits: int, misses: int) -> None:
        """Write those of one process, which no one else writes."""
        _COUNTS.pack_into(self._memory, number * _COUNTS.size, hits, misses)

    def total(self) -> tuple[int, int]:
        """Return the hits and misses of all processes."""
        hits, misses = zip(*_COUNTS.iter_unpack(self._memory[:]), strict=True)
        return sum(hits), sum(misses)


class SharedPatience:
    """Time that kernels with one of their probes wait for the others, in all processes forked from this one.

    Each waits for ``seconds`` at most. Launches of a run wait for about a second in all, which is of more use to
    kernels that have no probe yet.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waited_seconds = memoryview(mmap.mmap(-1, _SECONDS.size)).cast("d")

    def wait(self, answers: Collection[Future[Any]]) -> None:
        """Wait for the answers, as long as this kernel may and the run has not spent its time."""
        from concurrent.futures import wait  # see Reception

        start = time.monotonic()
        wait(answers, min(self._seconds, max(_PATIENT_KERNELS * self._seconds - self._waited_seconds[0], 0.0)))
        self._waited_seconds[0] += time.monotonic() - start  # of two processes at the same moment, one may be lost


class WorkerTask(NamedTuple):
    """Work of a worker: ``answers(place, counting)`` gives its answers to requests, ``finish`` ends it. ``counting`` is
    a connection to a worker that prepares counting probes for this one, None if there is none. ``read_code`` imports
    what workers mostly need, once for all, before the first one is forked.
    """

    answers: Callable[[int, socket.socket | None], Callable[[bytes], Iterator[str]]]
    finish: Callable[[], None]
    read_code: Callable[[], None] = lambda: None


class Workers:
    """Worker processes, ``limit`` for launches, as many for counting probes if these have a task, and ``ahead`` others
    at most.

    Construct it while no other thread of this process works.
    """

    def __init__(
        self,
        limit: int,
        task: WorkerTask,
        ahead: int = 0,
        ahead_task: WorkerTask | None = None,
        counting_task: WorkerTask | None = None,
    ) -> None:
        self._connections, requests = socket.socketpair()
        self._is_ready = self._has_declined = False
        self._pid = os.fork()
        if not self._pid:
            self._connections.close()
            teams = {
                _LAUNCHES: _Team(1, limit, task),
                _COUNTING: _Team(1 + limit, limit if counting_task else 0, counting_task or task),
                _AHEAD: _Team(1 + 2 * limit, ahead, ahead_task or task),
            }
            _run_and_exit(lambda: _Distributor(requests, teams).run())
        requests.close()

    def take(self, connection: socket.socket) -> bool:
        """Give a connection to a worker, which then serves only that one. False if none is free.

        False, too, for the first connection that comes while they read their code: the cache may have its kernel.
        """
        if not self._has_declined and not self.have_read_code():
            self._has_declined = True
            return False
        return self._send(_LAUNCHES, connection)

    def take_ahead(self, connection: socket.socket) -> bool:
        """Give a connection to a worker that prepares ahead of launches. False if there is none."""
        return self._send(_AHEAD, connection)

    def take_counting(self, connection: socket.socket) -> bool:
        """Give a connection to a worker that prepares counting probes. False if there is none."""
        return self._send(_COUNTING, connection)

    def have_read_code(self) -> bool:
        """Return whether workers serve a connection immediately."""
        if not self._is_ready:
            with contextlib.suppress(BlockingIOError):
                self._is_ready = self._connections.recv(1, socket.MSG_DONTWAIT) == _READY_BYTE
        return self._is_ready

    def _send(self, team: bytes, connection: socket.socket) -> bool:
        try:
            socket.send_fds(self._connections, [team], [connection.fileno()])
        except OSError:
            return False
        connection.close()
        return True

    def stop(self) -> None:
        """Let those of launches finish what is under way, and wait for the end of all."""
        self._connections.close()
        os.kill(self._pid, signal.SIGTERM)  # it need not read code for workers that no one will start
        os.waitpid(self._pid, 0)


class _ForwardedListener:
    """A listener for ``Reception`` whose connections come from another process; it ends when that does."""

    def __init__(self, source: socket.socket) -> None:
        self._source = source

    def accept(self) -> tuple[socket.socket, None]:
        """Return the next connection. Raises OSError at the end."""
        return self.receive()[0], None

    def receive(self) -> tuple[socket.socket, bytes]:
        """Return the next connection and the byte sent with it. Raises OSError at the end."""
        byte, descriptors, _, _ = socket.recv_fds(self._source, 1, 1)
        if not descriptors:
            raise OSError("connections are closed")
        return socket.socket(fileno=descriptors[0]), byte

    def shutdown(self, how: int) -> None:
        """Take no more."""
        self._source.shutdown(how)

    def close(self) -> None:
        """Close the socket that they come through."""
        self._source.close()


def _run_and_exit(work: Callable[[], None]) -> None:
    """Do the work in a process that was just forked, then end it in any case."""
    try:
        work()
        os._exit(0)
    except BaseException:  # noqa: BLE001  nothing of the engine's may run on in this process
        import traceback

        traceback.print_exc()
    finally:
        os._exit(1)


class _Team(NamedTuple):
    """Workers of one kind: places from ``first_number`` on, ``limit`` at most."""

    first_number: int
    limit: int
    task: WorkerTask


class _Worker(NamedTuple):
    pid: int
    sender: socket.socket


class _Distributor:
    """Hands connections to the workers of their team in turn, until the engine ends."""

    def __init__(self, requests: socket.socket, teams: Mapping[bytes, _Team]) -> None:
        self._requests, self._teams = requests, teams
        self._counters = {byte: count() for byte in teams}
        self._workers: dict[int, _Worker] = {}

    def run(self) -> None:
        """Work until no more connections come. Workers that prepare ahead do not finish what is under way."""
        listener = _ForwardedListener(self._requests)
        # Until it has workers, which finish what is under way, the engine ends it by SIGTERM.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        self._teams[_LAUNCHES].task.read_code()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        with contextlib.suppress(OSError):  # the engine has ended; so does the loop
            self._requests.send(_READY_BYTE)
        while True:
            try:
                connection, byte = listener.receive()
            except OSError:
                break
            if self._teams[byte].limit:
                self._hand_over(connection, byte)
            connection.close()
        for worker in self._team_workers(_AHEAD):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
        for byte in (_AHEAD, _LAUNCHES, _COUNTING):  # workers of launches wait for those of counting probes
            for worker in self._team_workers(byte):
                worker.sender.close()
            for worker in self._team_workers(byte):
                os.waitpid(worker.pid, 0)

    def _team_workers(self, byte: bytes) -> list[_Worker]:
        team = self._teams[byte]
        return [
            worker
            for number, worker in self._workers.items()
            if team.first_number <= number < team.first_number + team.limit
        ]

    def _hand_over(self, connection: socket.socket, byte: bytes) -> None:
        team = self._teams[byte]
        number = team.first_number + next(self._counters[byte]) % team.limit
        if number not in self._workers or not _pass_on(self._workers[number].sender, connection):
            self._start_worker(number, byte)
            _pass_on(self._workers[number].sender, connection)

    def _start_worker(self, number: int, byte: bytes) -> None:
        """Start a worker, one for launches with a connection to one for counting probes."""
        inherited_sockets = [self._requests, *(worker.sender for worker in self._workers.values())]
        task, has_own_group = self._teams[byte].task, byte == _AHEAD
        if byte != _LAUNCHES or not self._teams[_COUNTING].limit:
            self._workers[number] = _fork_worker(number, task, inherited_sockets, has_own_group=has_own_group)
            return
        client, server = socket.socketpair()
        with client, server:
            self._workers[number] = _fork_worker(
                number, task, [*inherited_sockets, server], client, has_own_group=has_own_group
            )
            client.close()  # no other worker may hold it open
            self._hand_over(server, _COUNTING)


def _pass_on(sender: socket.socket, connection: socket.socket) -> bool:
    """Send a connection to a worker. Return False if it has ended."""
    try:
        return socket.send_fds(sender, [_LAUNCHES], [connection.fileno()]) > 0
    except OSError:
        return False


def _fork_worker(
    number: int,
    task: WorkerTask,
    inherited_sockets: list[socket.socket],
    counting: socket.socket | None = None,
    *,
    has_own_group: bool,
) -> _Worker:
    """Start a worker. ``inherited_sockets`` are sockets that it must not hold open: their ends are identified by them.

    ``has_own_group``: it is ended together with the assemblers that it has started.
    """
    sender, receiver = socket.socketpair()
    pid = os.fork()
    if has_own_group:  # both do, so that neither is too late
        with contextlib.suppress(OSError):
            os.setpgid(pid, 0)
    if not pid:
        for inherited in (sender, *inherited_sockets):
            inherited.close()
        _run_and_exit(lambda: _serve(number, task, receiver, counting))
    receiver.close()
    return _Worker(pid, sender)


def _serve(number: int, task: WorkerTask, receiver: socket.socket, counting: socket.socket | None) -> None:
    reception = Reception(_ForwardedListener(receiver))
    reception.start()
    reception.open(task.answers(number, counting))
    reception.wait()
    reception.stop()
    task.finish()
