"""Scripts for shells, and answers to them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trace.make import TraceWriter


def answers(line: str, folder: Path) -> list[str]:
    """Return the completions of a line, asked for as bash does: answers are read from descriptor 8."""
    reading, writing = os.pipe()
    script = f"exec {sys.executable} -m tui_probe 8>&{writing} 9>&2 1>/dev/null"
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line.encode()))}
    environment = os.environ | asked | {"COMP_TYPE": "9", "_ARGCOMPLETE_SHELL": "bash"}
    done = subprocess.run(
        ["bash", "-c", script], env=environment, cwd=folder, pass_fds=[writing], capture_output=True, check=False
    )
    os.close(writing)
    with os.fdopen(reading) as replies:
        lines = replies.read().split("\n")
    assert done.stderr == b""
    return [line.strip() for line in lines if line.strip()]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tui-probe op", ["open"]),
        ("tui-probe show tim", ["timeline"]),
        ("tui-probe run -p gmem_sec", ["gmem_sectors", "gmem_sectors_by_line"]),
        ("tui-probe run -p surv", ["survey"]),
        ("tui-probe run --tracei", []),
        ("tui-probe run --traced", ["--tracedir"]),
        ("tui-probe eval sch", ["scheduling"]),
        ("tui-probe help glos", ["glossary"]),
        ("tui-probe completion ", ["bash", "zsh", "fish"]),
        ("tui-probe show 'kern", ["kernels"]),
    ],
)
def test_words_that_are_known(line: str, expected: list[str], tmp_path: Path) -> None:
    assert answers(line, tmp_path) == expected


def test_traces_are_named_as_they_lie_here(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace" / "Nov01_120000_1")
    writer.start()
    assert "trace/Nov01_120000_1" in answers("tui-probe report tr", tmp_path)
    (tmp_path / "trap.csv").touch()
    assert answers("tui-probe open trap", tmp_path) == ["trap.csv"], "files where no trace begins like that"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_code_for_each_shell(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tui_probe", "completion", shell], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "tui-probe" in done.stdout
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=done.stdout, text=True, check=False).returncode == 0
