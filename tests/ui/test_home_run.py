"""``tui-probe`` without arguments on a terminal: home, a run from its form, and home again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.patience import HANG
from tests.ui.synthetic import example
from tests.ui.terminal import ROOT, Terminal
from tests.ui.test_pty import CTRL_C, CTRL_Q, assert_restored

CTRL_S = "\x13"
HOME = [sys.executable, "-m", "tui_probe"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    example(tmp_path / "trace" / "Nov20_101010_1")
    return tmp_path


def test_home_opens_trace_and_returns(folder: Path) -> None:
    with Terminal(HOME, (80, 24), folder=folder) as terminal:
        terminal.wait("vector_add -")
        terminal.wait("need attention")
        terminal.resize(120, 40)
        terminal.wait("kernels  probe")
        terminal.type("\r")
        for key in (CTRL_Q, "q"):
            terminal.wait("6 kernels (3 probed)")
            terminal.type(key)
            terminal.wait("Recent traces")
            if key == CTRL_Q:
                terminal.wait("vector_add -")
                terminal.type("\r")
        terminal.type(CTRL_C)
        terminal.wait("no program is running here")
        terminal.type("q")
        assert terminal.wait_for_end() == 0
        assert_restored(terminal)


def test_home_starts_program_and_returns(folder: Path, natives: Path) -> None:
    program = folder / "program.py"
    program.write_text("import time\nprint('hello from the target', flush=True)\ntime.sleep(600)\n")
    environment = {"TUI_PROBE_NATIVE": str(natives)}
    with Terminal(HOME, (120, 40), environment, folder=folder) as terminal:
        terminal.wait("need attention")
        terminal.type("\t")
        terminal.wait("Enter next field")
        terminal.type(f"no-such-program{CTRL_S}")
        terminal.wait("no-such-program")
        terminal.wait("━ Start a program ━")
        terminal.type("\x05" + "\x7f" * 15 + f"{sys.executable} {program}{CTRL_S}")
        terminal.wait("● running")
        terminal.type("0o")
        terminal.wait("hello from the target")
        terminal.type(CTRL_C)
        terminal.wait("✘ killed by signal 2")
        terminal.type(CTRL_Q)
        terminal.wait("Recent traces")
        terminal.type("q")
        assert terminal.wait_for_end() == 0
        assert_restored(terminal)


def test_start_before_machine_check_picks_available_gpu(folder: Path, natives: Path) -> None:
    with Terminal(HOME, (120, 40), {"TUI_PROBE_NATIVE": str(natives)}, folder=folder) as terminal:
        terminal.wait("Start a program")
        terminal.type(f"\t\x05{sys.executable} -m tui_probe.simgpu.examples.demo --kernel saxpy{CTRL_S}")
        terminal.wait("exit 0 after")
        terminal.wait("saxpy")
        terminal.type(CTRL_Q)
        terminal.wait("Recent traces")
        terminal.type("q")
        assert terminal.wait_for_end() == 0


def test_a_run_that_is_left_goes_on(folder: Path, natives: Path) -> None:
    program = folder / "program.py"
    program.write_text(
        f"import time, pathlib\nroot = pathlib.Path({str(folder)!r})\n"
        "while not (root / 'go').exists(): time.sleep(0.05)\n(root / 'done').touch()\n"
    )
    with Terminal(HOME, (120, 40), {"TUI_PROBE_NATIVE": str(natives)}, folder=folder) as terminal:
        terminal.wait("need attention")
        terminal.type("\t")
        terminal.wait("Enter next field")
        terminal.type(f"{sys.executable} {program}{CTRL_S}")
        terminal.wait("● running")
        terminal.type(CTRL_Q)
        terminal.wait("Still running")
        terminal.type("l")
        terminal.wait("Recent traces")
        terminal.type("q")
        assert terminal.wait_for_end() == 0
        assert_restored(terminal)
        assert "is still running; reattach: tui-probe watch" in terminal.text.replace("\n", "")
    assert not (folder / "done").exists()
    (folder / "go").touch()
    end = time.monotonic() + HANG
    while list((folder / "trace").glob(".run-*")):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert (folder / "done").exists()


def test_a_crash_restores_the_terminal_and_ends_it(folder: Path) -> None:
    plant = "import tui_probe.cli.home as home; home.RecentTraces = lambda *_: lambda: 1 / 0"
    argv = [sys.executable, "-c", f"{plant}; import sys; from tui_probe.cli.main import main; sys.exit(main([]))"]
    with Terminal(argv, (80, 24), {"TMPDIR": str(folder)}, folder=folder) as terminal:
        assert terminal.wait_for_end() == 1
        assert_restored(terminal)
        text = bytes(terminal.received).rpartition(b"\x1b[?1049l")[2].decode()
    (report,) = folder.glob("tui-probe-crash-*.txt")
    assert "ZeroDivisionError" in report.read_text()
    assert report.name in text


def test_a_signal_ends_it(folder: Path) -> None:
    with Terminal(HOME, (80, 24), folder=folder) as terminal:
        terminal.wait("need attention")
        os.kill(terminal.pid, 15)
        assert terminal.wait_for_end() == 128 + 15
        assert_restored(terminal)


def tool(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tui_probe", *words], cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG,
    )  # fmt: skip


def test_without_a_terminal_it_says_what_to_do(folder: Path) -> None:
    done = tool(folder, "home")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "tui-probe: error: the home screen needs a terminal; without one, use tui-probe list, run, report or show\n"
    )
    assert tool(folder).stdout.startswith("usage: tui-probe")
