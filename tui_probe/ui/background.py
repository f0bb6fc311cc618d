"""Threads for all that may take time: the event loop draws and answers keys, and reads no file."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
Deliver = Callable[[Callable[[], None]], None]


class Background:
    """A thread that runs the newest job of each key, one after another, and delivers each result to the event loop.

    A job that waits is replaced by a newer one with its key: of what no one looks at any more, nothing is computed.
    An exception in a job is raised again by the delivery, thus on the event loop.
    """

    def __init__(self, name: str, deliver: Deliver) -> None:
        self._deliver = deliver
        self._changed = threading.Condition()
        self._waiting: dict[Hashable, tuple[Callable[[], Any], Callable[[Any], None]]] = {}
        self._spare: deque[Callable[[], object]] = deque()
        self._unhandled = 0
        """Jobs that were begun, and whose results the event loop has not handled."""
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"tui-probe-{name}", daemon=True)
        self._thread.start()

    def submit(self, key: Hashable, job: Callable[[], T], done: Callable[[T], None]) -> None:
        """Run ``job()`` in the thread, then ``done(result)`` on the event loop."""
        with self._changed:
            self._waiting.pop(key, None)
            self._waiting[key] = (job, done)
            self._changed.notify()

    def prepare(self, jobs: Iterable[Callable[[], object]]) -> None:
        """Run these, one after another, while no job waits: they save later jobs time, and have no result."""
        with self._changed:
            self._spare.extend(jobs)
            self._changed.notify()

    @property
    def idle(self) -> bool:
        """True if no job waits or runs, and the event loop has handled all results."""
        with self._changed:
            return not self._waiting and not self._unhandled

    def close(self) -> None:
        """Take no more jobs; a running one is not waited for, since it may be reading from a hung file system."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._spare.clear()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._spare and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                if self._waiting:
                    job, done = self._waiting.pop(next(iter(self._waiting)))
                else:
                    job, done = self._spare.popleft(), _drop
                self._unhandled += 1
            self._deliver(partial(self._handle, _outcome(job, done)))

    def _handle(self, outcome: Callable[[], None]) -> None:
        try:
            outcome()
        finally:
            with self._changed:
                self._unhandled -= 1


def _outcome(job: Callable[[], T], done: Callable[[T], None]) -> Callable[[], None]:
    """Run the job; returns what is left to do on the event loop."""
    try:
        return partial(done, job())
    except Exception as error:  # noqa: BLE001 - raised again by the caller, in its own thread
        return partial(_raise, error)


def _drop(_: object) -> None:
    """Take a result that no one wants."""


def _raise(error: Exception) -> None:
    raise error


def event_loop_delivery(post: Callable[[Callable[[], None]], object]) -> Deliver:
    """A ``Deliver`` from any thread: ``post`` is called in the running event loop, in the caller's context."""
    loop = asyncio.get_running_loop()
    context = contextvars.copy_context()

    def deliver(callback: Callable[[], None]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(post, callback, context=context)

    return deliver
