"""Python programs that use stand-ins of frameworks, with a trace to be written into, as under ``tui-probe run``."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tui_probe.launcher.environment import python_path

FRAMEWORKS = Path(__file__).parent / "frameworks"
ROOT = Path(__file__).resolve().parents[2]
FIRST_LAUNCH = """
import os
def launch():
    folder = f"{os.environ['TUI_PROBE_TRACE_ROOT']}/Nov21_025650_{os.getpid()}"
    os.makedirs(folder, exist_ok=True)
    os.open(f"{folder}/event.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
    return folder
"""
"""``launch()`` makes the trace of the process, and keeps its event.log open, as the hook does."""


def interpreters() -> list[str]:
    """This Python, and commands of others from 3.8 on: calls are watched in other ways there."""
    others = [minor for minor in range(8, 16) if minor != sys.version_info[1]]
    return [sys.executable, *filter(None, (shutil.which(f"python3.{minor}") for minor in others))]


@functools.cache
def starts(python: str) -> bool:
    """Return whether the command starts a Python; that of pyenv may have none. Takes 0.1 s, so not at collection."""
    return subprocess.run([python, "-c", ""], capture_output=True).returncode == 0


@dataclass(frozen=True)
class Ran:
    """Output of a program, and the lines of each ``tensor.trace``, fields apart."""

    stdout: str
    stderr: str
    status: int
    traces: list[list[list[str]]]

    @property
    def names(self) -> list[str]:
        """The variables that were named in the only trace."""
        (lines,) = self.traces
        return [fields[5] for fields in lines if fields[0] == "[call]"]


def run(folder: Path, source: str, *, tensors: bool, python: str = sys.executable, more: str = "") -> Ran:
    """Run a program of that source; ``more`` is first in PYTHONPATH."""
    if not starts(python):
        pytest.skip(f"{python} does not start")
    root = folder / "trace"
    root.mkdir(exist_ok=True)
    program = folder / "program.py"
    program.write_text(FIRST_LAUNCH + source)
    own = os.pathsep.join(filter(None, [more, str(FRAMEWORKS), str(ROOT)]))
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": python_path({"PYTHONPATH": own}) or own,
        "TUI_PROBE_TENSORS": "1" if tensors else "",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LD_PRELOAD": "libcuda.so.1",
        "TUI_PROBE_TRACE_ROOT": str(root),
        "TUI_PROBE_STAMP": "Nov21_025650",
    }
    done = subprocess.run(
        [python, str(program)], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    files = sorted(root.glob("*/tensor.trace"))
    lines = [[line.split("  ") for line in file.read_text().splitlines()] for file in files]
    errors = [line for line in done.stderr.splitlines() if "LD_PRELOAD" not in line]
    return Ran(done.stdout, "\n".join(errors), done.returncode, lines)
