"""Processes with launches that do not end: only those that the run started are ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tui_probe.launcher.stuck_processes import StuckProcesses


def test_grandchild_is_ended_by_sigterm() -> None:
    script = "import os; print(os.getpid(), flush=True); input()"
    parent = f"import subprocess, sys; print(subprocess.run([sys.executable, '-c', {script!r}]).returncode)"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        process = int(child.stdout.readline())
        stuck = StuckProcesses(1.0)
        assert stuck.end({process: "0"}, 10.0) == []
        (message,) = stuck.end({process: "0"}, 11.0)
        assert "launch 0 ran longer than 1 s; the process was ended" in message
        assert child.stdout.readline() == f"{-signal.SIGTERM}\n"


def test_process_with_a_running_launch_is_ended_at_the_second_and_third_interrupt() -> None:
    script = "import signal; signal.signal(signal.SIGTERM, lambda *_: print('handled', flush=True)); print(flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", f"{script}; [signal.pause() for _ in range(9)]"], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        notices: list[str] = []
        stuck = StuckProcesses(60.0, notices.append)
        assert stuck.interrupt({(child.pid, "7"): 1}) == stuck.interrupt({(child.pid, "7"): 1}) == []
        assert notices == [
            f"process {child.pid}: launch 7 is still running; interrupt again to end the process",
        ]
        (message,) = stuck.interrupt({(child.pid, "7"): 2})
        assert "launch 7 was still running at the second interrupt; the process was ended" in message
        assert child.stdout.readline() == "handled\n"
        assert stuck.interrupt({(child.pid, "7"): 3}) == []
        assert child.wait() == -signal.SIGKILL


def test_requests_before_a_launch_do_not_count_for_it() -> None:
    """A program that handles interrupts may run for hours; a hook notes requests of a long launch only."""
    with subprocess.Popen(["sleep", "600"]) as child:
        notices: list[str] = []
        stuck = StuckProcesses(0.0, notices.append)
        assert stuck.interrupt({(child.pid, "7"): 1}) == []
        assert stuck.interrupt({(child.pid, "7"): 1, (child.pid, "9"): 1}) == []
        assert [notice.split(";")[0] for notice in notices] == [
            f"process {child.pid}: launch {launch} is still running" for launch in (7, 9)
        ]
        (message,) = stuck.interrupt({(child.pid, "7"): 1, (child.pid, "9"): 2, (child.pid, "8"): 1})
        assert "launch 9 was still running at the second interrupt; the process was ended; to see where" in message
        assert child.wait() == -signal.SIGTERM


def test_launch_that_was_not_watched_has_its_reason() -> None:
    stuck = StuckProcesses(1.0)
    stuck.end({os.getpid(): "7 recording is switched off"}, 10.0)
    (message,) = stuck.end({os.getpid(): "7 recording is switched off"}, 12.0)
    assert "launch 7 ran longer than 1 s, and its warps were not watched: recording is switched off; " in message
    assert "show stuck" not in message


def test_process_of_another_program_is_not_ended() -> None:
    stuck = StuckProcesses(1.0)
    stuck.end({os.getppid(): "0", os.getpid(): "1"}, 10.0)
    messages = stuck.end({os.getppid(): "0", os.getpid(): "1"}, 12.0)
    advice = "end this process yourself, because the run did not start it"
    assert [message.split("; ")[1] for message in messages] == [advice] * 2
