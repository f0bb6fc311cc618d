"""A forked helper has nothing of its launcher's but what it is given, and does not outlive it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tui_probe.launcher.helper_process import CRASHED, ForkedProcess, argument_memory

from .test_signals import command_line, wait_for_end

NAME = b"a helper"


@contextmanager
def helper(work: Callable[[], int], output: Path, kept: tuple[int, ...] = ()) -> Iterator[ForkedProcess]:
    with output.open("wb") as file:
        forked = ForkedProcess(work, NAME, file.fileno(), kept)
    try:
        yield forked
    finally:
        forked.kill()
        forked.close()


def sleep() -> int:
    time.sleep(60)
    return 0


def told(work: Callable[[], object], folder: Path, kept: tuple[int, ...] = ()) -> str:
    """Return the work's result, as text that the helper prints."""

    def show() -> int:
        sys.stdout.write(f"{work()}\n")
        return 0

    with helper(show, folder / "output", kept) as forked:
        assert forked.wait(30) == 0
    return (folder / "output").read_text()


def test_how_it_ended_is_known_at_once(tmp_path: Path) -> None:
    with helper(lambda: 7, tmp_path / "output") as forked:
        assert (forked.wait(30), forked.poll()) == (7, 7)
    with helper(sleep, tmp_path / "output") as forked:
        assert (forked.wait(0.01), forked.poll()) == (None, None)
        forked.send(signal.SIGTERM)
        assert forked.wait(30) == -signal.SIGTERM


def test_helper_failure_is_reported(tmp_path: Path) -> None:
    def fail() -> int:
        raise ValueError("this work is impossible")

    with helper(fail, tmp_path / "output") as forked:
        assert forked.wait(30) == CRASHED
    assert (tmp_path / "output").read_text().endswith("ValueError: this work is impossible\n")


def test_helper_has_only_given_descriptors(tmp_path: Path) -> None:
    ours, given = socket.socketpair()
    with ours, given:
        listed = told(
            lambda: sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir()), tmp_path, (given.fileno(),)
        )
        descriptors = [int(number) for number in listed.strip("[]\n").split(",")]
        assert descriptors[:3] == [0, 1, 2]
        assert given.fileno() in descriptors
    assert len(descriptors) == 6  # the pipe that reports its end, and that of the listing


def test_helper_has_own_session_without_terminal(tmp_path: Path) -> None:
    def surroundings() -> list[object]:
        return [os.getsid(0) == os.getpid(), os.read(0, 1), [os.isatty(descriptor) for descriptor in range(3)]]

    assert told(surroundings, tmp_path) == "[True, b'', [False, False, False]]\n"


def test_signals_act_as_in_a_new_process(tmp_path: Path) -> None:
    before = {
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda *_: None),
        signal.SIGUSR1: signal.signal(signal.SIGUSR1, signal.SIG_IGN),
    }
    try:
        actions = told(lambda: [signal.getsignal(number).name for number in before], tmp_path)
    finally:
        for number, action in before.items():
            signal.signal(number, action)
    assert actions == "['SIG_DFL', 'SIG_IGN']\n"


def test_its_command_line_is_its_name(tmp_path: Path) -> None:
    def work() -> int:
        sys.stdout.write("up\n")
        time.sleep(60)
        return 0

    with helper(work, tmp_path / "output") as forked:
        while not (tmp_path / "output").read_text():
            time.sleep(0.001)
        assert command_line(forked.pid).rstrip() == "a helper"
        assert command_line(os.getpid()).rstrip() != "a helper"


def test_helper_ends_with_its_parent(tmp_path: Path) -> None:
    launcher = """
import os, signal, sys, time
from tui_probe.launcher.helper_process import ForkedProcess
def work():
    os.write(1, b"up\\n")  # a print may be two writes, and lines of two processes then one
    time.sleep(60)
    return 0
forked = ForkedProcess(work, b"helper", 1, ())
os.write(1, b"%d\\n" % forked.pid)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", launcher], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        lines = {process.stdout.readline().strip() for _ in range(2)}
        (pid,) = lines - {"up"}
        end = os.pidfd_open(int(pid))
        process.kill()
        wait_for_end(end)


def test_argument_memory_is_0_where_stat_ends_early() -> None:
    """As under qemu-user, whose line has 44 fields; the program's name may have spaces and parentheses."""
    fields = [b"S", *(b"%d" % number for number in range(4, 53))]
    assert argument_memory(b"7 (a) b) " + b" ".join(fields)) == (48, 49)
    assert argument_memory(b"7 (a) b) " + b" ".join(fields[:42])) == (0, 0)
