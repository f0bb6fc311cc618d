"""Start of a Python under a run: if a step fails, the program runs, and its trace says why."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.tensortrace.programs import ROOT, interpreters, run
from tui_probe.trace.event_types import Trouble
from tui_probe.trace.events import parse_line

PROGRAM = """
import os, sys, torch
open(f"{launch()}/event.log", "w").close()
if os.fork() == 0:
    sys.exit()  # it launches nothing, so it has no log
os.wait()
print("runs")
"""


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its place a copy of what is loaded into programs, in which nothing can be loaded."""
    package = tmp_path / "package"
    shutil.copytree(ROOT / "tui_probe" / "tensortrace", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "numba_ptx.py").write_text("raise ValueError('no\\n\\ndriver \\udc80')\n")
    (package / "look.py").write_text("import a_module_that_is_missing\n")
    monkeypatch.setattr("tui_probe.launcher.environment.START_DIRECTORY", str(package / "start"))


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("python", interpreters(), ids=lambda path: Path(path).name)
def test_failures_are_reported(tmp_path: Path, python: str) -> None:
    ran = run(tmp_path, PROGRAM, tensors=True, python=python)
    assert (ran.status, ran.stdout, ran.stderr) == (0, "runs\n", "")
    (log,) = tmp_path.glob("trace/*/event.log")
    events = [parse_line(line) for line in sorted(log.read_bytes().splitlines(keepends=True))]
    assert [event.text for event in events if isinstance(event, Trouble)] == [
        r"python numba-cuda could not be configured to keep its PTX: ValueError: no driver \udc80",
        "python tensor names were not recorded: ModuleNotFoundError: No module named 'a_module_that_is_missing'",
    ]


@pytest.mark.usefixtures("broken")
def test_a_program_without_kernels_has_nothing_to_tell(tmp_path: Path) -> None:
    ran = run(tmp_path, "print('runs')", tensors=True)
    assert (ran.status, ran.stdout, ran.stderr) == (0, "runs\n", "")
    assert list((tmp_path / "trace").iterdir()) == []
