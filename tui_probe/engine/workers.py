"""Worker processes of the engine: one process of Python runs one thread at a time, however many processors there are.

The engine itself serves one connection. Those next to it go to workers in turn: a hook has a connection for each kernel
that it has prepared at a time. Workers are forked when they are first needed, by a process that has a single thread:
a fork of the engine could copy a lock that one of its threads holds.
"""

from __future__ import annotations

import mmap
import os
import socket
import struct
import traceback
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.reception import Reception

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_WORKERS: Final = 3
"""Worker limit: with the engine as many processes as a hook prepares kernels at a time (``MOST_THREADS`` of
background.c).
"""
_COUNTS: Final = struct.Struct("=QQ")
_ONE: Final = b"\0"
"""Data sent with a descriptor, which is not sent without a byte."""


def usual_workers() -> int:
    """Return the number of workers for this machine: the program keeps a processor, the engine itself has one."""
    return min(MAX_WORKERS, max(len(os.sched_getaffinity(0)) - 1, 0))


class SharedCounts:
    """Hits and misses of the cache, of the engine (place 0) and of each worker, which all processes can read."""

    def __init__(self, places: int) -> None:
        self._memory = mmap.mmap(-1, places * _COUNTS.size)

    def set(self, place: int, hits: int, misses: int) -> None:
        """Write those of one process, which no one else writes."""
        _COUNTS.pack_into(self._memory, place * _COUNTS.size, hits, misses)

    def total(self) -> tuple[int, int]:
        """Hits and misses of all processes."""
        hits, misses = zip(*_COUNTS.iter_unpack(self._memory[:]), strict=True)
        return sum(hits), sum(misses)


class WorkerTask(NamedTuple):
    """Work of a worker: ``answers(place)`` gives its answers to requests, ``finish`` ends it."""

    answers: Callable[[int], Callable[[bytes], Iterator[str]]]
    finish: Callable[[], None]


class Workers:
    """Worker processes, ``limit`` at most. Construct it while no other thread of this process works."""

    def __init__(self, limit: int, task: WorkerTask) -> None:
        self._connections, own = socket.socketpair()
        self._pid = os.fork()
        if not self._pid:
            self._connections.close()
            _run(lambda: _distribute(own, limit, task))
        own.close()

    def take(self, connection: socket.socket) -> bool:
        """Give a connection to a worker, which then serves only that one. False if none is free."""
        try:
            socket.send_fds(self._connections, [_ONE], [connection.fileno()])
        except OSError:
            return False
        connection.close()
        return True

    def stop(self) -> None:
        """Let them finish what is under way, and wait for their end."""
        self._connections.close()
        os.waitpid(self._pid, 0)


class _Handed:
    """A listener for ``Reception`` whose connections come from another process; it ends when that does."""

    def __init__(self, source: socket.socket) -> None:
        self._source = source

    def accept(self) -> tuple[socket.socket, None]:
        """The next connection. Raises OSError at the end."""
        _, descriptors, _, _ = socket.recv_fds(self._source, len(_ONE), 1)
        if not descriptors:
            raise OSError("connections are closed")
        return socket.socket(fileno=descriptors[0]), None

    def shutdown(self, how: int) -> None:
        """Take no more."""
        self._source.shutdown(how)

    def close(self) -> None:
        """Close the socket that they come through."""
        self._source.close()


def _run(work: Callable[[], None]) -> None:
    """Do the work in a process that was just forked, then end it in any case."""
    try:
        work()
        os._exit(0)
    except BaseException:  # noqa: BLE001  nothing of the engine's may run on in this process
        traceback.print_exc()
    finally:
        os._exit(1)


def _distribute(requests: socket.socket, limit: int, task: WorkerTask) -> None:
    """Hand connections to workers in turn, until the engine ends."""
    workers: dict[int, tuple[int, socket.socket]] = {}
    listener = _Handed(requests)
    for turn in count():
        try:
            connection, _ = listener.accept()
        except OSError:
            break
        place = 1 + turn % limit
        if place not in workers or not _pass_on(workers[place][1], connection):
            workers[place] = _fork_worker(place, task, [requests, *(taken for _, taken in workers.values())])
            _pass_on(workers[place][1], connection)
        connection.close()
    for _, source in workers.values():
        source.close()
    for pid, _ in workers.values():
        os.waitpid(pid, 0)


def _pass_on(source: socket.socket, connection: socket.socket) -> bool:
    """False if the worker has ended."""
    try:
        return socket.send_fds(source, [_ONE], [connection.fileno()]) > 0
    except OSError:
        return False


def _fork_worker(place: int, task: WorkerTask, of_others: list[socket.socket]) -> tuple[int, socket.socket]:
    """Start a worker. ``of_others`` are sockets that it must not hold open: their ends are identified by them."""
    source, own = socket.socketpair()
    pid = os.fork()
    if not pid:
        for other in (source, *of_others):
            other.close()
        _run(lambda: _serve(place, task, own))
    own.close()
    return pid, source


def _serve(place: int, task: WorkerTask, own: socket.socket) -> None:
    reception = Reception(_Handed(own))
    reception.start()
    reception.open(task.answers(place))
    reception.wait()
    reception.stop()
    task.finish()
