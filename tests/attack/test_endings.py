"""Unusual ends of a process, and what only looks like one: what was launched is recorded and counted."""

from __future__ import annotations

import shutil
import signal

import pytest

from tests.attack.conftest import Start
from tests.attack.test_programs import counts
from tests.hook.conftest import Host, Run

EXEC = ["execv", "execve", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "execveat"]
SURVIVED = [("signal", how) for how in ("blocked", "timed", "reset")]
AT_EXIT = [("exit", "handler"), ("exit", "quick")]
SEND = ["pthread_kill", "pthread_sigqueue", "tgkill", "sigqueue", "killpg", "kill-group"]
SEND += [f"SYS_{name}" for name in ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")]
RAW = {"exit_group": (3, 5), "exit": (3, 5), "exit-first": (3, 10), "exit-before": (3, 5)}
RAW |= {"execve": (0, 5), "execveat": (0, 5)}
RUNS = 10
"""Of a program whose first thread may be interrupted at the moment that counts."""
DEATHS = {"raise": signal.SIGTERM, "kill": signal.SIGTERM, "abort": signal.SIGABRT}


def check(run: Run, status: int, launches: int) -> None:
    assert (run.status, run.stdout, run.stderr) == (status, "", "")
    assert counts(run) == {"launches": launches, "probed": launches, "dropped": 0}
    assert len(run.results) == launches


@pytest.mark.parametrize("function", EXEC)
def test_exec_loses_nothing(host: Host, start: Start, function: str) -> None:
    check(host.finish(start("endings", "exec", function)), 0, 5)


def test_failed_exec_does_not_end_the_trace(host: Host, start: Start) -> None:
    run = host.finish(start("endings", "exec-fails", "execl"))
    assert (run.status, len(run.results)) == (3, 10)
    assert run.lines(r"\[exit\]")[-2:] == ["[exit] status 3", "[exit] launches 10 probed 10 dropped 0 reason -"]


@pytest.mark.parametrize("call", ["clone", "_Fork"])
def test_child_made_past_fork_handlers_is_recorded(host: Host, start: Start, call: str) -> None:
    check(host.finish(start("endings", "child", call)), 0, 5)


@pytest.mark.parametrize(("kind", "how"), AT_EXIT + SURVIVED)
def test_launches_after_what_is_no_end_are_recorded(host: Host, start: Start, kind: str, how: str) -> None:
    run = host.finish(start("endings", kind, how))
    check(run, 3, 10)
    assert run.lines(r"\[exit\] (status|signal)") == ["[exit] status 3"]


def test_launches_in_destructors_are_recorded(host: Host, start: Start) -> None:
    check(host.finish(start("endings", "exit", "destructor")), 3, 15)


@pytest.mark.parametrize("how", DEATHS)
def test_threads_stop_at_deadly_signal(host: Host, start: Start, slow_disk: str, how: str) -> None:
    """Without a stop a thread writes hundreds of bytes during each flush; on a busy machine, some before the signal."""
    written = []
    for _ in range(RUNS):
        run = host.finish(start("endings", "death", how, LD_PRELOAD=slow_disk, SLOW_DISK="2"))
        assert run.status == -DEATHS[how]
        before, _, after = run.stdout.partition("!")
        assert "x" in before
        assert counts(run)["launches"] == 205
        written.append(len(after))
        if len(after) <= 5:  # those that were written before the threads have noticed
            return
        shutil.rmtree(run.directory)  # the next run is read by itself
    pytest.fail(f"bytes written after the signal: {written}")


@pytest.mark.parametrize("function", [*SEND, "SYS_pidfd_send_signal"])
def test_signal_to_itself_loses_nothing(host: Host, start: Start, function: str) -> None:
    run = host.finish(start("raw_endings", "send", function))
    check(run, -signal.SIGTERM, 5)
    assert run.lines(r"\[exit\] (status|signal)") == ["[exit] signal 15"]


@pytest.mark.parametrize("call", RAW)
def test_raw_system_call_loses_nothing(host: Host, start: Start, call: str) -> None:
    status, launches = RAW[call]
    run = host.finish(start("raw_endings", call, "-"))
    check(run, status, launches)
    assert run.lines(r"\[exit\] (status|signal)") == ([f"[exit] status {status}"] if status else [])


def test_syscall_keeps_arguments_and_errno(host: Host, start: Start) -> None:
    run = host.finish(start("raw_endings", "goes-on", "-"))
    assert (run.status, run.stderr, len(run.results)) == (3, "", 10)
    assert run.lines(r"\[exit\]")[-2:] == ["[exit] status 3", "[exit] launches 10 probed 10 dropped 0 reason -"]


def test_raw_clones_of_traced_process_end(host: Host, start: Start) -> None:
    run = host.finish(start("raw_endings", "clones", "-", TUI_PROBE_MAX_RESULT_FILES="none"))
    check(run, 3, 2010)
