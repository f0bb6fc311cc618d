"""Test processes for ``pytest -n`` that are forks of the process that has collected the tests.

Each process of pytest-xdist imports and collects all tests by itself: 8 s of CPU for 12 000 tests. A fork has them. The
option, the fixtures and the marks of such a process are those of pytest-xdist. The driver of a GPU does not work in a
fork, so processes of pytest-xdist itself run the tests where there is one.
"""

from __future__ import annotations

import os
import random
import signal
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from xdist.remote import getinfodict

NVIDIA_DRIVER = Path("/dev/nvidiactl")
AHEAD = 2
"""Tests that a process has: the one that it runs, and the next one, which says what fixtures to keep."""


def use_forks(config: pytest.Config, at_end: Callable[[], None]) -> None:
    """Take the place of pytest-xdist for a run with ``-n``. Each fork calls ``at_end`` in the end."""
    processes = config.getoption("tx", None) or []
    is_plain = config.getoption("dist", "no") in ("load", "worksteal") and set(processes) == {"popen"}
    if is_plain and not config.getoption("collectonly") and not NVIDIA_DRIVER.exists():
        config.option.dist = "no"
        config.pluginmanager.register(ForkedRun(config, len(processes), at_end))


class Worker:
    """A process of tests, as the process that has forked it sees it."""

    def __init__(self, number: int, tests: Iterable[int]) -> None:
        self.name = f"gw{number}"
        self.waiting = deque(tests)
        self.sent: deque[int | None] = deque()
        self.connection, self.theirs = Pipe()
        self.pid = 0
        self.has_ended = False
        gateway = SimpleNamespace(id=self.name)
        self.node = SimpleNamespace(gateway=gateway, workerinfo={"id": self.name, **getinfodict()}, workeroutput={})

    def send(self, test: int | None) -> None:
        """Name the test after those that were sent, by its place in the collection; None ends the process."""
        if None not in self.sent:
            self.sent.append(test)
            self.connection.send(test)


class ForkedRun:
    """Runs the tests of a session in forks. Each has neighbours; one without tests takes half of another's."""

    def __init__(self, config: pytest.Config, count: int, at_end: Callable[[], None]) -> None:
        self._config, self._count, self._at_end = config, count, at_end
        self._workers: list[Worker] = []
        self._started = 0
        if reporter := config.pluginmanager.getplugin("terminalreporter"):
            reporter.showfspath = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            return None  # pytest says why
        tests = range(len(session.items))
        try:
            for number in range(self._count):
                self._start(
                    session, tests[len(tests) * number // self._count : len(tests) * (number + 1) // self._count]
                )
            while running := {worker.connection: worker for worker in self._workers if not worker.has_ended}:
                for connection in wait([*running]):
                    self._receive(session, running[connection])  # type: ignore[index]
        finally:
            self._stop()
        return True

    def _start(self, session: pytest.Session, tests: Iterable[int]) -> None:
        worker = Worker(self._started, tests)
        self._started += 1
        self._config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        worker.pid = os.fork()
        if worker.pid == 0:
            for other in (worker, *self._workers):
                other.connection.close()
            run_worker(session, worker, self._at_end)
        worker.theirs.close()
        self._workers.append(worker)
        for _ in range(AHEAD):
            worker.send(self._next(worker))

    def _next(self, worker: Worker) -> int | None:
        """Return the next test for a process; without one of its own, the first of the last half of another's."""
        if not worker.waiting:
            longest = max(self._workers, key=lambda other: len(other.waiting))
            half = [longest.waiting.pop() for _ in range((len(longest.waiting) + 1) // 2)]
            worker.waiting.extend(reversed(half))
        return worker.waiting.popleft() if worker.waiting else None

    def _receive(self, session: pytest.Session, worker: Worker) -> None:
        try:
            what, *values = worker.connection.recv()
        except (EOFError, ConnectionError):
            self._replace(session, worker)
        else:
            getattr(self, f"_take_{what}")(worker, *values)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)

    def _take_report(self, worker: Worker, data: dict[str, Any]) -> None:
        report = self._config.hook.pytest_report_from_serializable(config=self._config, data=data)
        report.node = worker.node
        self._config.hook.pytest_runtest_logreport(report=report)

    def _take_warning(self, _: Worker, text: str, file: str, line: int, more: dict[str, Any]) -> None:
        recorded = warnings.WarningMessage(UserWarning(text), UserWarning, file, line)
        self._config.hook.pytest_warning_recorded.call_historic(kwargs={"warning_message": recorded, **more})

    def _take_done(self, worker: Worker, nodeid: str, location: Any) -> None:
        self._config.hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
        worker.sent.popleft()
        worker.send(self._next(worker))

    def _take_end(self, worker: Worker, output: dict[str, Any]) -> None:
        worker.node.workeroutput = output
        worker.has_ended = True
        self._config.hook.pytest_testnodedown(node=worker.node, error=None)

    def _replace(self, session: pytest.Session, worker: Worker) -> None:
        """Report the test in which a process ended as failed, and let another one run the rest of its tests."""
        worker.has_ended = True
        _, status = os.waitpid(worker.pid, 0)
        worker.pid = 0
        left = [test for test in (*worker.sent, *worker.waiting) if test is not None]
        worker.waiting.clear()
        if not left:
            raise RuntimeError(f"{worker.name} ended with status {status} after its last test")
        item = session.items[left.pop(0)]
        how = f"the test process {worker.name} ended in this test, with status {os.waitstatus_to_exitcode(status)}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", how, "call")
        self._config.hook.pytest_runtest_logreport(report=report)
        self._config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        self._start(session, left)

    def _stop(self) -> None:
        for worker in self._workers:
            worker.connection.close()
            if worker.pid:
                if not worker.has_ended:
                    os.kill(worker.pid, signal.SIGINT)
                os.waitpid(worker.pid, 0)


def run_worker(session: pytest.Session, worker: Worker, at_end: Callable[[], None]) -> None:
    """Run the tests that this process is sent. Does not return: atexit has what only the first process may remove."""
    status = 1
    try:
        prepare(session.config, worker.name)
        reports = Reports(session.config, worker.theirs)
        session.config.pluginmanager.register(reports)
        reports.tells_warnings = True
        run_tests(session, worker.theirs)
        session.config.hook.pytest_sessionfinish(session=session, exitstatus=0)
        worker.theirs.send(("end", session.config.workeroutput))  # type: ignore[attr-defined]
        status = 0
    except (EOFError, ConnectionError, KeyboardInterrupt):
        pass  # the first process has ended, or is asked to
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        at_end()
        os._exit(status)


def prepare(config: pytest.Config, name: str) -> None:
    """Give this process files, random numbers and a name of its own, and leave the terminal to the first one."""
    config.workerinput, config.workeroutput = {"workerid": name}, {}  # type: ignore[attr-defined]
    os.environ["PYTEST_XDIST_WORKER"] = name
    random.seed()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # so that the last step is done
    factory = config._tmp_path_factory  # type: ignore[attr-defined]
    factory._basetemp = factory.getbasetemp() / name
    factory._basetemp.mkdir(mode=0o700)
    config.pluginmanager.unregister(name="terminalreporter")
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()


def run_tests(session: pytest.Session, connection: Connection) -> None:
    """Run tests as their places come, each when the one after it is known."""
    place = connection.recv()
    while place is not None:
        following = connection.recv()
        item, next_item = session.items[place], None if following is None else session.items[following]
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=next_item)
        connection.send(("done", item.nodeid, item.location))
        place = following


class Reports:
    """Sends what a process reports to the first one."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config, self._connection = config, connection
        self.tells_warnings = False
        """Not while this is registered: a new plugin gets the earlier warnings."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send no setup or teardown that passed: no one counts them."""
        if report.when == "call" or not report.passed:
            data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
            self._connection.send(("report", data))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        if self.tells_warnings:
            text = f"{warning_message.category.__name__}: {warning_message.message}"
            more = {"when": when, "nodeid": nodeid, "location": location}
            self._connection.send(("warning", text, warning_message.filename, warning_message.lineno, more))
