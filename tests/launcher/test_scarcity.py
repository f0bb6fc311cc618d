"""The program runs where the launcher has too little, in a deleted directory too."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from tui_probe.cli.main import main

from .conftest import Runner


def run_in_shell(tool: Runner, before: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = tool.command("run", "--sim", "--no-report", *words)
    return subprocess.run(
        ["sh", "-c", f'{before}; exec "$@"', "sh", *command],
        cwd=tool.folder, env=tool.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_few_descriptors_leave_the_program_running(tool: Runner) -> None:
    done = run_in_shell(tool, "ulimit -n 10", "sh", "-c", "echo hello; exit 3")
    assert (done.returncode, done.stdout) == (3, "hello\n")
    assert done.stderr == "tui-probe: recording is off: Too many open files\n"


def test_few_descriptors_leave_the_simulated_driver(tool: Runner) -> None:
    start = "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))"
    done = run_in_shell(tool, "ulimit -n 12", sys.executable, "-c", start)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_soft_limit_of_descriptors_is_the_programs(tool: Runner) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 100:
        pytest.skip("needs a hard limit of 100 descriptors")
    done = run_in_shell(tool, "ulimit -S -n 10", "sh", "-c", "ulimit -S -n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "10\n", "")


@pytest.mark.parametrize("place", ["--tracedir=/proc/self/cwd/trace", "--tracedir=trace"])
def test_program_runs_in_a_deleted_directory(tool: Runner, place: str) -> None:
    done = run_in_shell(tool, "mkdir gone; cd gone; rmdir ../gone", place, "/bin/echo", "hello")
    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert done.stderr.startswith("tui-probe: recording is off: ")


def test_other_commands_name_a_deleted_directory(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path_factory.mktemp("gone")
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["report"]) == 1
    assert capsys.readouterr().err == (
        "tui-probe: error: the current directory was deleted; change to another directory\n"
    )
