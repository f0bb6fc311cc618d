"""The process of the engine's server: it listens until it is told to end, and says at once what is wrong."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tui_probe.launcher.engine_process import main

NOT_NEEDED = ("numpy", "importlib.metadata", "tui_probe.dsl", "tui_probe.probekit", "tui_probe.trace.event_types")


def test_it_answers_until_it_is_told_to_end(tmp_path: Path) -> None:
    path = tmp_path / "engine"
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tui_probe.launcher.engine_process", "--socket", path, "--probe", "block_sched"]
    environment = os.environ | {"PYTHONPATH": str(root)}
    with subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        while not path.exists():
            assert process.poll() is None
        with socket.socket(socket.AF_UNIX) as hook:
            hook.connect(str(path))
            hook.sendall(b"hello\t1\t1\n")
            assert hook.recv(100) == b"hello\t1\n"
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate()
        assert process.returncode == 0
        assert errors == ""
    assert not path.exists()


def test_a_bad_probe_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("x = ")
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    try:
        assert main(["--socket", str(tmp_path / "engine"), "--probe", str(bad)]) == 2
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
    assert "bad.toml: this is not TOML" in capsys.readouterr().err


@pytest.mark.parametrize("probe", ["block_sched", "gmem_sectors"])
def test_a_built_in_probe_is_read_without_what_shows_results(probe: str) -> None:
    program = (
        "import sys, tui_probe.launcher.engine_process as engine\n"
        f"engine.load_probe({probe!r})\n"
        f"print([name for name in {NOT_NEEDED} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "[]\n"
