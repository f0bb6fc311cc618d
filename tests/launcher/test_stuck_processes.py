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
        assert stuck.end({process: "gemm 0"}, 10.0) == []
        (message,) = stuck.end({process: "gemm 0"}, 11.0)
        assert "launch gemm 0 ran longer than 1 s; the process was ended" in message
        assert child.stdout.readline() == f"{-signal.SIGTERM}\n"


def test_process_of_another_program_is_not_ended() -> None:
    stuck = StuckProcesses(1.0)
    stuck.end({os.getppid(): "gemm 0", os.getpid(): "gemm 1"}, 10.0)
    messages = stuck.end({os.getppid(): "gemm 0", os.getpid(): "gemm 1"}, 12.0)
    advice = "end this process yourself, because the run did not start it"
    assert [message.split("; ")[1] for message in messages] == [advice] * 2
