"""A screen whose terminal no one reads any more ends all the same when it is asked to."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.patience import HANG
from tests.ui.synthetic import example
from tests.ui.terminal import Terminal


def ended(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def fill(terminal: Terminal) -> None:
    """Have the screen write more than the terminal has room for: whole screens, of which it reads a byte per
    second.
    """
    terminal.quiet(0.3, steady=True)
    terminal.rate = 1
    for step in range(16):
        terminal.resize(200 - step % 2, 60)
        time.sleep(0.15)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_unread_terminal_ends_when_asked_to(tmp_path: Path, number: signal.Signals) -> None:
    example(tmp_path / "trace")
    command = [sys.executable, "-m", "tui_probe", "open", str(tmp_path / "trace")]
    with Terminal(command, (200, 60)) as terminal:
        terminal.wait("6 kernels")
        fill(terminal)
        os.kill(terminal.pid, number)
        end = time.monotonic() + HANG  # the terminal takes a byte per second: all would take hours
        while not ended(terminal.pid):
            assert time.monotonic() < end, "it waits for the terminal"
            time.sleep(0.05)
        terminal.rate = None
        assert terminal.wait_for_end() == 128 + number
