"""Connections next to the first are served by processes of their own, which end with the engine."""

from __future__ import annotations

import concurrent.futures
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.engine.kernels import BLOCK_SCHED, HEADER, STORE
from tests.engine.test_server import connected, kernel_directory
from tui_probe.engine import workers
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.reception import Reception, listen_at
from tui_probe.engine.server import EngineServer
from tui_probe.engine.workers import SharedCounts, SharedPatience, Workers, WorkerTask


class Engine:
    """A reception with workers whose answer is the number of their process."""

    def __init__(self, path: Path, workers: int) -> None:
        self.path, self.ends = path, path.with_name("ends")
        self.workers = ready(Workers(workers, WorkerTask(self.answers, self.finish)))
        self.reception = Reception(listen_at(path))
        self.reception.start()
        self.reception.open(self.answers(0), self.workers.take)

    def answers(self, place: int, _: socket.socket | None = None):  # type: ignore[no-untyped-def]
        return lambda _: iter([f"{place}\t{os.getpid()}\n"])

    def finish(self) -> None:
        with self.ends.open("a") as ends:
            print(os.getpid(), file=ends)

    @contextmanager
    def connection(self) -> Iterator[socket.socket]:
        with socket.socket(socket.AF_UNIX) as hook:
            hook.settimeout(60)
            hook.connect(str(self.path))
            yield hook


def ready(own: Workers) -> Workers:
    """Wait until the workers have read their code."""
    while not own.have_read_code():
        time.sleep(0.001)
    return own


def answer(hook: socket.socket) -> list[int]:
    """Place and process of the one that answers."""
    hook.sendall(b"who\n")
    return [int(word) for word in hook.recv(100).split(b"\t")]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = Engine(tmp_path / "engine", 2)
    yield engine
    engine.reception.stop()
    engine.workers.stop()


def test_connections_at_a_time_are_spread_over_processes(engine: Engine) -> None:
    with ExitStack() as stack:
        hooks = [stack.enter_context(engine.connection()) for _ in range(5)]
        served = [answer(hook) for hook in hooks]
        assert [place for place, _ in served] == [0, 1, 2, 1, 2]
        processes = [process for _, process in served]
        assert processes[0] == os.getpid()
        assert processes[1:3] == processes[3:]
        assert len(set(processes)) == 3
        assert [answer(hook) for hook in hooks] == served


def test_single_connection_needs_no_worker(engine: Engine) -> None:
    for _ in range(3):
        with engine.connection() as hook:
            assert answer(hook) == [0, os.getpid()]
        while engine.reception._connections:  # the end of a connection is noticed by its thread
            pass


def test_worker_that_was_killed_is_replaced(engine: Engine) -> None:
    with engine.connection() as first, engine.connection() as second, engine.connection() as third:
        assert answer(first)[0] == 0
        place, killed = answer(second)
        assert answer(third)[0] == 2
        os.kill(killed, signal.SIGKILL)
        assert second.recv(1) == b""
        with engine.connection() as fourth:
            again, process = answer(fourth)
            assert again == place
            assert process != killed


def test_workers_end_with_the_engine(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "engine", 2)
    with engine.connection() as first, engine.connection() as second:
        assert answer(first)[0] == 0
        _, process = answer(second)
    engine.reception.stop()
    engine.workers.stop()
    assert engine.ends.read_text() == f"{process}\n"
    assert not Path(f"/proc/{process}").exists()


def test_counts_are_those_of_all_processes() -> None:
    counts = SharedCounts(1)
    counts.set(0, 1, 2)
    if not (pid := os.fork()):
        counts.set(2, 10, 20)
        os._exit(0)
    os.waitpid(pid, 0)
    assert counts.total() == (11, 22)


def test_workers_prepare_kernels_as_the_engine_does(tmp_path: Path) -> None:
    directories = [kernel_directory(tmp_path, (HEADER + STORE).encode(), name) for name in ("a", "b", "c")]
    server = EngineServer(tmp_path / "engine", BLOCK_SCHED, assembler=Assembler([]), workers=2)
    with server, ExitStack() as stack:
        hooks = [stack.enter_context(connected(tmp_path / "engine")) for _ in directories]
        for hook, directory in zip(hooks, directories, strict=True):
            assert hook.prepare(directory, "store") == ("ok", "probed.ptx")
    texts = [(directory / "probed.ptx").read_text() for directory in directories]
    assert texts[0] == texts[1] == texts[2]


def test_patience_of_a_run_is_spent_by_few_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them waits as long as it may; those after them do not wait."""
    moments = iter([0, 2, 2, 4, 4, 6, 6, 6])
    waits: list[float] = []
    monkeypatch.setattr(workers, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    monkeypatch.setattr(concurrent.futures, "wait", lambda _, seconds: waits.append(seconds))
    patience = SharedPatience(2)
    for _ in range(4):
        patience.wait([])
    assert waits == [2, 2, 2, 0]


def test_workers_that_no_one_needs_read_no_code_at_the_end(tmp_path: Path) -> None:
    begun, finished = tmp_path / "begun", tmp_path / "finished"
    os.mkfifo(begun)

    def read_code() -> None:
        begun.write_text("")
        time.sleep(10)
        finished.touch()

    task = WorkerTask(lambda *_: lambda _: iter(()), lambda: None, read_code)
    with signal_blocked(signal.SIGTERM):  # as in the engine
        own = Workers(2, task)
        begun.read_text()
        own.stop()
    assert not finished.exists()


def test_workers_end_quietly_if_the_engine_ends_first(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    finished = tmp_path / "finished"
    os.mkfifo(finished)
    own = Workers(1, WorkerTask(lambda *_: lambda _: iter(()), lambda: None, finished.read_text))
    own._connections.close()
    finished.write_text("")
    assert os.waitstatus_to_exitcode(os.waitpid(own._pid, 0)[1]) == 0
    assert capfd.readouterr().err == ""


def test_one_connection_stays_with_the_engine_while_workers_read_code(tmp_path: Path) -> None:
    finished = tmp_path / "finished"
    os.mkfifo(finished)
    own = Workers(1, WorkerTask(lambda *_: lambda _: iter(["worker\n"]), lambda: None, finished.read_text))
    with ExitStack() as ends:
        ends.callback(own.stop)
        pairs = [socket.socketpair() for _ in range(2)]
        for end in (end for pair in pairs for end in pair):
            ends.enter_context(end)
        assert [own.take(its) for _, its in pairs] == [False, True]
        finished.write_text("")
        ours = pairs[1][0]
        ours.sendall(b"ask\n")
        assert ours.makefile("rb").readline() == b"worker\n"
        assert ready(own)


@contextmanager
def signal_blocked(number: int) -> Iterator[None]:
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def test_workers_have_code_that_was_read_before() -> None:
    read: list[int] = []
    task = WorkerTask(
        lambda *_: lambda _: iter([f"{len(read)} {read[0] != os.getpid()}\n"]),
        lambda: None,
        lambda: read.append(os.getpid()),
    )
    with ExitStack() as ends:
        own = ready(Workers(2, task))
        ends.callback(own.stop)
        ours, its = socket.socketpair()
        ends.enter_context(ours)
        assert own.take(its)
        ours.sendall(b"ask\n")
        assert ours.makefile("rb").readline() == b"1 True\n"


def test_worker_of_launches_has_one_for_counting_probes_that_ends_behind_it(tmp_path: Path) -> None:
    ends = tmp_path / "ends"

    def task(name: str) -> WorkerTask:
        return WorkerTask(partial(answers_of, name), lambda: append(ends, name))

    own = ready(Workers(1, task("launches"), counting_task=task("counting")))
    ours, its = socket.socketpair()
    with ours:
        assert own.take(its)
        ours.sendall(b"who\n")
        assert ours.makefile("rb").readline() == b"launches 1 asked counting 2\n"
        own.stop()
    assert ends.read_text() == "launches\ncounting\n"


def answers_of(name: str, place: int, counting: socket.socket | None) -> Callable[[bytes], Iterator[str]]:
    """Answers of a worker with its name and place, and what the one for counting probes answers to it."""

    def answers(_: bytes) -> Iterator[str]:
        asked = ""
        if counting is not None:
            counting.sendall(b"who\n")
            asked = f" asked {counting.makefile('rb').readline().decode().rstrip()}"
        yield f"{name} {place}{asked}\n"

    return answers


def append(path: Path, line: str) -> None:
    with path.open("a") as file:
        print(line, file=file)
