"""A run that is left on the screen: the prompt returns, the program continues, and its trace is completed."""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .conftest import RUN
from .terminal import Terminal, terminal
from .test_signals import children_of, command_line
from .test_traces import record_of

if TYPE_CHECKING:
    from .conftest import Runner

Script = Callable[[str], list[str]]
LIMIT = 30  # seconds; reaching it means that something hangs
CTRL_Q = b"\x11"

# Runs until the file ``go`` exists.
WAITING = """
import os, pathlib, sys, time
print('ready', flush=True)
while not pathlib.Path('go').exists():
    time.sleep(0.01)
print('done', file=sys.stderr, flush=True)
os._exit(3)
"""


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@contextmanager
def left_on_screen(tool: Runner, script: Script) -> Iterator[tuple[Terminal, str]]:
    """A shell on a terminal in which a run was left; with what the shell has shown since, its next prompt included."""
    tool.environment |= {"FAKE_LAUNCHES": "python", "TERM": "xterm-256color", "PS1": "prompt> "}
    command = shlex.join(tool.command(*RUN, "--", *script(WAITING)))
    with terminal(["/bin/sh", "-i"], tool.folder, tool.environment) as screen:
        screen.read_until(b"prompt> ")
        screen.type(f"{command}; echo status $?\n".encode())
        screen.read_until("● running".encode())
        screen.type(CTRL_Q)
        screen.read_until(b"leave it running")
        screen.type(b"l")
        yield screen, screen.read_until(b"prompt> ").rpartition(b"\x1b[?1049l")[2].decode()


def trace_of(tool: Runner) -> Path:
    (trace,) = (tool.folder / "trace").glob("*_*_*")
    return trace


def complete(trace: Path) -> None:
    """The program is asked to end; its trace has all that belongs to it, and nothing is left next to it."""
    assert record_of(trace)["ended"] is None
    (trace.parents[1] / "go").touch()
    wait_for(lambda: record_of(trace)["ended"])
    wait_for(lambda: list(trace.parent.iterdir()) == [trace])
    assert (record_of(trace)["exit_status"], record_of(trace)["signal"]) == (3, None)
    assert (trace / "stdout.log").read_text() == "ready\n"
    assert (trace / "stderr.log").read_text() == "done\n"


def test_the_prompt_returns_and_the_trace_is_completed(tool: Runner, script: Script) -> None:
    with left_on_screen(tool, script) as (_, said):
        trace = trace_of(tool)
        pid = record_of(trace)["pid"]
        assert f"[info] trace in trace/{trace.name}\n" in said
        assert f"(process {pid}) is still running; reattach: tui-probe watch trace/{trace.name}\n" in said
        assert "status 0\n" in said
        assert "target.py" in command_line(pid)
        complete(trace)


def test_a_terminal_that_closes_later_does_nothing_to_it(tool: Runner, script: Script) -> None:
    with left_on_screen(tool, script) as (screen, _):
        os.close(screen.descriptor)  # the kernel hangs up on the shell, and that on its jobs
        screen.descriptor = os.open(os.devnull, os.O_RDONLY)
        screen.wait()
        complete(trace_of(tool))


def test_a_screen_that_is_killed_takes_nothing_along(tool: Runner, script: Script) -> None:
    tool.environment |= {"FAKE_LAUNCHES": "python", "TERM": "xterm-256color"}
    argv = tool.command(*RUN, "--", *script(WAITING))
    with terminal(argv, tool.folder, tool.environment) as screen:
        screen.read_until("● running".encode())
        wait_for(lambda: list((tool.folder / "trace").glob("*_*_*")))
        os.kill(screen.pid, signal.SIGKILL)
        screen.wait()
        complete(trace_of(tool))


def test_killed_supervisor_is_reported(tool: Runner, script: Script) -> None:
    tool.environment["TERM"] = "xterm-256color"
    argv = tool.command(*RUN, "--", *script(WAITING))
    with terminal(argv, tool.folder, tool.environment) as screen:
        screen.read_until("● running".encode())
        (holder,) = children_of(screen.pid)
        os.kill(holder, signal.SIGKILL)
        screen.read_until(b"killed by signal 9")
        screen.type(CTRL_Q)
        assert b"the supervisor process of the run was killed" in screen.read_to_end()
        assert os.waitstatus_to_exitcode(screen.wait()) == 1
    (tool.folder / "go").touch()


@pytest.mark.parametrize(("command", "status"), [("/nowhere/to/be/found", 127), ("/etc/passwd", 126)])
def test_a_command_that_cannot_be_started(tool: Runner, command: str, status: int) -> None:
    tool.environment["TERM"] = "xterm-256color"
    with terminal(tool.command(*RUN, "--", command), tool.folder, tool.environment) as screen:
        assert command.encode() in screen.read_to_end()
        assert os.waitstatus_to_exitcode(screen.wait()) == status
    assert not (tool.folder / "trace").exists()
