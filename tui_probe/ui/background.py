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
        self._condition = threading.Condition()
        self._jobs: dict[Hashable, tuple[Callable[[], Any], Callable[[Any], None]]] = {}
        self._spare_jobs: deque[Callable[[], object]] = deque()
        self._unhandled = 0
        """Jobs that were begun, and whose results the event loop has not handled."""
        self._is_closed = False
        self._thread = threading.Thread(target=self._run_jobs, name=f"tui-probe-{name}", daemon=True)
        self._thread.start()

    def submit(self, key: Hashable, job: Callable[[], T], on_result: Callable[[T], None]) -> None:
        """Run ``job()`` in the thread, then ``on_result(result)`` on the event loop."""
        with self._condition:
            self._jobs.pop(key, None)
            self._jobs[key] = (job, on_result)
            self._condition.notify()

    def prepare(self, jobs: Iterable[Callable[[], object]]) -> None:
        """Run these, one after another, while no job waits: they save later jobs time, and have no result."""
        with self._condition:
            self._spare_jobs.extend(jobs)
            self._condition.notify()

    @property
    def is_idle(self) -> bool:
        """True if no job waits or runs, and the event loop has handled all results."""
        with self._condition:
            return not self._jobs and not self._unhandled

    def close(self) -> None:
        """Take no more jobs; a running one is not waited for, since it may be reading from a hung file system."""
        with self._condition:
            self._is_closed = True
            self._jobs.clear()
            self._spare_jobs.clear()
            self._condition.notify()

    def _run_jobs(self) -> None:
        while True:
            with self._condition:
                while not self._jobs and not self._spare_jobs and not self._is_closed:
                    self._condition.wait()
                if self._is_closed:
                    return
                if self._jobs:
                    job, on_result = self._jobs.pop(next(iter(self._jobs)))
                else:
                    job, on_result = self._spare_jobs.popleft(), _drop
                self._unhandled += 1
            self._deliver(partial(self._deliver_result, _run_job(job, on_result)))

    def _deliver_result(self, take_result: Callable[[], None]) -> None:
        try:
            take_result()
        finally:
            with self._condition:
                self._unhandled -= 1


def _run_job(job: Callable[[], T], on_result: Callable[[T], None]) -> Callable[[], None]:
    """Run the job; returns what is left to do on the event loop."""
    try:
        return partial(on_result, job())
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
