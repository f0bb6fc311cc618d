"""A forked command is equal to one that is started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launcher.terminal import terminal
from tests.patience import HANG
from tests.warm_start import COLD, START, read_at_start
from tui_probe.simgpu.examples import demo

PROGRAM = """
import os, signal, sys
print(os.getcwd(), os.umask(0), os.getsid(0) == os.getpgid(0), sys.argv[1:], os.environ.get("MINE"), sys.stdin.read())
print([number.name for number in signal.Signals if signal.getsignal(number) is signal.SIG_IGN], file=sys.stderr)
sys.exit(7)
"""


def outcome(folder: Path, *words: str, **more: str) -> tuple[int, str, list[str]]:
    """Status, output, and error output but for the name of the trace."""
    done = subprocess.run(
        [*START, *words], cwd=folder, env=os.environ | {"COLUMNS": "80"} | more, input="given", capture_output=True,
        text=True, timeout=HANG, start_new_session=True,
    )  # fmt: skip
    return done.returncode, done.stdout, [line for line in done.stderr.splitlines() if "trace in" not in line]


@pytest.mark.parametrize(
    "words",
    [
        ["--version"],
        ["nonsense"],
        ["report", "not-there"],
        ["run", "--sim", "--no-report", "--", sys.executable, "-c", PROGRAM, "a b", ""],
        ["run", "--sim", "--no-report", "--", "sh", "-c", "kill -TERM $$"],
        ["run", "--sim", "--no-report", "--", sys.executable, demo.__file__, "--kernel", "saxpy"],
    ],
    ids=lambda words: words[0],
)
def test_fork_equals_start(tmp_path: Path, words: list[str], natives: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_PROBE_NATIVE", str(natives))
    forked, started = (outcome(tmp_path, *words, MINE="x", **cold) for cold in ({}, {COLD: "1"}))
    assert forked == started


ON_TERMINAL = """
import os
print(os.getsid(0) == os.getppid(), os.isatty(0), os.ttyname(1) == os.ttyname(2), *os.get_terminal_size())
print(os.path.samefile(os.ctermid(), "/dev/tty"), os.getpgid(os.getppid()) == os.tcgetpgrp(0))
"""


def test_fork_on_terminal_equals_start(tmp_path: Path, natives: Path) -> None:
    """It leads the session of the terminal, whose keys interrupt it."""
    command = [*START, "run", "--sim", "--no-report", "--no-ui", "--", sys.executable, "-c", ON_TERMINAL]
    shown = []
    for cold in ({}, {COLD: "1"}):
        environment = os.environ | {"TUI_PROBE_NATIVE": str(natives), "TERM": "dumb"} | cold
        with terminal(command, tmp_path, environment, (33, 101)) as screen:
            shown.append([line for line in screen.read_to_end().splitlines() if b"trace/" not in line])
            assert os.waitstatus_to_exitcode(screen.wait()) == 0
    assert shown[0] == shown[1]
    assert b"101 33" in b"".join(shown[0])


def test_fork_is_child_with_its_own_descriptors(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    program = f"import os; os.write({writing}, b'passed')"
    command = [*START, "run", "--sim", "--no-report", "--", sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, pass_fds=[writing]) as process:
        os.close(writing)
        parent = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1]
        assert int(parent) == os.getpid()
        assert os.read(reading, 100) == b"passed"
    os.close(reading)
    assert process.returncode == 0


def test_read_at_start_has_variables_of_python_and_loader() -> None:
    given = {"PYTHONPATH": "x", "PYTHONUTF8": "1", "LD_PRELOAD": "y.so", "HOME": "/", "LC_ALL": ""}
    assert read_at_start(given) == {"PYTHONUTF8": "1", "LD_PRELOAD": "y.so"}


@pytest.fixture(scope="module")
def actions_in_a_module() -> list[object]:
    """The actions of signals that a module's fixture finds, which may start the process that forks commands."""
    return [signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGINT)]


def test_fixtures_of_modules_ignore_no_signal(actions_in_a_module: list[object]) -> None:
    """Else all commands ignore it, in a run of the tests that was started in the background of a script."""
    assert actions_in_a_module == [signal.SIG_DFL, signal.default_int_handler]
