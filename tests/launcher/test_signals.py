"""Signals reach the target as often as they were sent, no matter who sent them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tui_probe.launcher.signals import tidy_end

from .conftest import ROOT
from .terminal import Terminal, terminal

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from .conftest import Runner

Script = Callable[[str], list[str]]

# Says how often it was interrupted when a line comes in.
COUNTING = """
import signal, sys
count = 0
def interrupted(number, frame):
    global count
    count += 1
    print('interrupted', flush=True)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, interrupted)
print('ready', flush=True)
sys.stdin.readline()
print('count', count, flush=True)
"""


def on_terminal(tool: Runner, command: list[str]) -> AbstractContextManager[Terminal]:
    argv = tool.command("run", "-p", "block_sched", "--sim", "--no-ui", "--no-report", "--", *command)
    return terminal(argv, tool.folder, tool.environment)


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_the_target_finds_the_terminal_that_we_have(tool: Runner, script: Script) -> None:
    source = "import os; print(*map(os.isatty, range(3)), *os.get_terminal_size(), *os.get_terminal_size(2), 'end')"
    argv = tool.command("run", "-p", "block_sched", "--sim", "--no-ui", "--no-report", "--", *script(source))
    with terminal(argv, tool.folder, tool.environment, size=(33, 101)) as screen:
        assert b"True True True 101 33 101 33 end\n" in screen.read_until(b"end\n")
        screen.read_to_end()
        assert screen.wait() == 0


def test_ctrl_c_reaches_the_target_once(tool: Runner, script: Script) -> None:
    with on_terminal(tool, script(COUNTING)) as screen:
        screen.read_until(b"ready\n")
        screen.type(b"\x03")
        screen.read_until(b"interrupted\n")
        screen.type(b"\n")
        assert b"count 1\n" in screen.read_to_end()
        assert screen.wait() == 0


def test_ctrl_c_on_a_target_that_does_not_mind_it(tool: Runner, script: Script) -> None:
    # One long sleep would miss a signal that comes just before it: Python handles it when the call returns.
    source = "import time; print('ready', flush=True); [time.sleep(0.05) for _ in range(2000)]"
    with on_terminal(tool, script(source)) as screen:
        screen.read_until(b"ready\n")
        screen.type(b"\x03")
        assert b"KeyboardInterrupt" in screen.read_to_end()
        assert os.waitstatus_to_exitcode(screen.wait()) == 128 + signal.SIGINT


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_signal_to_launcher_only(tool: Runner, script: Script, number: int) -> None:
    with on_terminal(tool, script(COUNTING)) as screen:
        screen.read_until(b"ready\n")
        os.kill(screen.pid, number)
        screen.read_until(b"interrupted\n")
        screen.type(b"\n")
        assert b"count 1\n" in screen.read_to_end()
        assert screen.wait() == 0


@pytest.mark.parametrize("everybody", [False, True])
def test_an_interrupt_without_a_terminal(tool: Runner, script: Script, everybody: bool) -> None:
    """Sent to the launcher, or to its whole group as a notebook does: the target gets one."""
    with tool.start(script(COUNTING), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        (os.killpg if everybody else os.kill)(process.pid, signal.SIGINT)
        assert process.stdout.readline() == b"interrupted\n"
        process.stdin.write(b"\n")
        process.stdin.close()
        assert process.stdout.read() == b"count 1\n"
    assert process.returncode == 0


def test_group_signal_reaches_every_process_once(tool: Runner) -> None:
    """As `timeout` and shells send it; the counter and the worker say so, each once."""
    worker = "trap 'echo worker >>got; exit' TERM; echo $$ >>up; while :; do sleep 0.05; done"
    first = f"trap 'echo first >>got' TERM; sh -c '{worker.replace(chr(39), chr(34))}' & wait; wait; sleep 0.3"
    with tool.start(["sh", "-c", first]) as process:
        wait_for_lines(tool.folder / "up", 1)
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
    assert sorted((tool.folder / "got").read_text().split()) == ["first", "worker"]


def test_killed_group_leaves_no_process(tool: Runner) -> None:
    with tool.start(["sh", "-c", "sleep 60 & echo $! >>up; echo $$ >>up; wait"]) as process:
        wait_for_lines(tool.folder / "up", 2)
        ends = [os.pidfd_open(child) for child in children_of(process.pid)]
        ends += [os.pidfd_open(int(pid)) for pid in (tool.folder / "up").read_text().split()]
        os.killpg(process.pid, signal.SIGKILL)
        for end in ends:
            wait_for_end(end)


def test_witness_tells_group_from_launcher_signals() -> None:
    program = """
import os, signal
from tui_probe.launcher import signals
signals.ANSWER_SECONDS = 60.0  # the answer of a busy machine is the same
os.setpgid(0, 0)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGCONT})
witness = signals.Witness()
os.kill(os.getpid(), signal.SIGTERM)
print(witness.has_seen(signal.SIGTERM))
os.killpg(0, signal.SIGINT)
print(witness.has_seen(signal.SIGTERM), witness.has_seen(signal.SIGINT), witness.has_seen(signal.SIGINT))
witness.close()
"""
    # The launcher's own signals do not count: another process sends to the group.
    program = program.replace("os.killpg(0, signal.SIGINT)", "os.system('kill -INT 0')")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.split() == ["False", "False", "True", "False"], done.stderr


def test_ctrl_z_stops_both_and_fg_continues_both(tool: Runner, script: Script) -> None:
    tool.environment["FAKE_LAUNCHES"] = "*"
    argv = tool.command("run", "-p", "block_sched", "--sim", "--no-ui", "--no-report", "--", *script(COUNTING))
    shell = ["/bin/bash", "-c", 'set -m; "$@"; echo stopped $?; read _; fg; echo status $?', "sh"]
    with terminal([*shell, *argv], tool.folder, tool.environment) as screen:
        screen.read_until(b"ready\n")
        (launcher,) = children_of(screen.pid)
        lines = {child: command_line(child) for child in children_of(launcher)}
        # A helper that has just been forked has the line of the launcher, which names the target, too.
        (target,) = (child for child, line in lines.items() if "target.py" in line and "tui_probe" not in line)
        screen.type(b"\x1a")
        screen.read_until(b"stopped 148\n")
        assert state_of(launcher) == "T"
        while state_of(target) != "T":  # the signal is there; the target may not have run since
            time.sleep(0.001)
        screen.type(b"\n\n")
        assert b"count 0\nstatus 0\n" in screen.read_to_end()


def test_ctrl_z_where_no_shell_could_continue_the_job(tool: Runner, script: Script) -> None:
    with on_terminal(tool, script(COUNTING)) as screen:
        screen.read_until(b"ready\n")
        screen.type(b"\x1a\n")
        assert b"count 0\n" in screen.read_to_end()
        assert screen.wait() == 0


def test_a_new_window_size_reaches_the_target(tool: Runner, script: Script) -> None:
    """The target waits for the signal: Python would run no handler for one that comes just before ``input`` reads."""
    source = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})
print('ready', flush=True)
size = ()
while size != (200, 50):
    signal.sigwait({signal.SIGWINCH})
    size = os.get_terminal_size()
    print('size', *size, flush=True)
input()
"""
    with on_terminal(tool, script(source)) as screen:
        screen.read_until(b"ready\n")
        termios.tcsetwinsize(screen.descriptor, (50, 200))
        screen.read_until(b"size 200 50\n")
        screen.type(b"\n")
        screen.read_to_end()
        assert screen.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_or_after_the_target_ends_the_launcher_in_order(number: int) -> None:
    with pytest.raises(SystemExit) as end, tidy_end():
        os.kill(os.getpid(), number)
    assert end.value.code == 128 + number
    assert signal.getsignal(number) is signal.SIG_DFL


def test_no_engine_is_left_behind(tool: Runner, script: Script) -> None:
    """A launcher that is killed takes its engine along and hangs up on its target."""
    with tool.start(
        script("import sys; print('up', file=sys.stderr, flush=True); input()"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        process.stderr.readline()
        children = [os.pidfd_open(child) for child in children_of(process.pid)]
        assert len(children) == 3  # the target, the engine and the witness of signals
        process.kill()
        for child in children:
            wait_for_end(child)


def wait_for_lines(path: Path, count: int) -> None:
    limit = time.monotonic() + 30
    while not path.exists() or len(path.read_text().split()) < count:
        assert time.monotonic() < limit, f"{path} has fewer than {count} lines"
        time.sleep(0.02)


def engine_of(launcher: int) -> int | None:
    """The probe engine that it has now."""
    return next((child for child in children_of(launcher) if "tui-probe engine" in command_line(child)), None)


def kill_engine(launcher: int) -> int:
    """End it by force, which it cannot report; returns which it was."""
    engine = engine_of(launcher)
    assert engine is not None
    end = os.pidfd_open(engine)
    os.kill(engine, signal.SIGKILL)
    wait_for_end(end)  # a process that was killed is not gone immediately
    return engine


def wait_for_next_engine(launcher: int, last: int) -> None:
    limit = time.monotonic() + 30
    while engine_of(launcher) in (None, last):
        assert time.monotonic() < limit, "no engine was started again"
        time.sleep(0.02)


def wait_for_end(pidfd: int) -> None:
    assert select.select([pidfd], [], [], 30)[0], "the process is still there"
    os.close(pidfd)
