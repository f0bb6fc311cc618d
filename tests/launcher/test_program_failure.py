"""Failures of a program's own environment: the program's line, and the usual fix."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.trace.make import TraceWriter
from tui_probe.launcher.diagnosis import failure_in, program_failure
from tui_probe.pages.run_report import run_report
from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from .conftest import Runner

FRAMES = """\
Traceback (most recent call last):
  File "/home/ada/train.py", line 12, in <module>
    main()
  File "/opt/env/lib/python3.11/site-packages/package/__init__.py", line 3, in <module>
    load()
"""


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        ("OSError: libnvrtc.so.13: cannot open shared object file: No such file or directory", "nvidia-cuda-nvrtc"),
        ("RuntimeError: Failed to find nvrtc library", "nvidia-cuda-nvrtc"),
        ("ImportError: libcublas.so.12: cannot open shared object file: No such file", "this CUDA library"),
        ("ImportError: Numba needs NumPy 2.2 or less. Got NumPy 2.4.", "upgrade numba"),
        ("SystemError: initialization of _internal failed without raising an exception", "upgrade numba"),
        ("numba.cuda.cudadrv.error.NvvmSupportError: libNVVM cannot be found", "install NVVM"),
        ("AttributeError: module 'numba.cuda' has no attribute 'x'", "numba-cuda"),
        ("AttributeError: module 'numpy' has no attribute 'bool'", "numpy<2"),
        ("A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.4", "numpy<2"),
        ("ValueError: numpy.dtype size changed, may indicate binary incompatibility.", "numpy<2"),
        ("ModuleNotFoundError: No module named 'cupy'", "activate its environment"),
        ("RuntimeError: CUDA driver version is insufficient for CUDA runtime version", "update the driver"),
    ],
)
def test_failure_names_line_of_program_and_fix(error: str, fix: str) -> None:
    text = failure_in(f"{FRAMES}{error}\n")
    assert text is not None
    assert text.startswith(f"the program's environment is broken at /home/ada/train.py:12: {error.splitlines()[0]}")
    assert fix in text.partition("usual fix: ")[2]


def test_failure_of_a_binary_has_no_line() -> None:
    text = failure_in("./a.out: error while loading shared libraries: libfoo.so.1: cannot open shared object file\n")
    assert text is not None
    assert text.startswith("the program's environment is broken: ./a.out: error while loading")


@pytest.mark.parametrize("text", ["", "ValueError: the loss is not finite\n", f"{FRAMES}KeyError: 'numpy'\n"])
def test_other_failures_are_not_of_the_environment(text: str) -> None:
    assert failure_in(text) is None


def test_only_failed_programs_are_searched(tmp_path: Path) -> None:
    log = tmp_path / "stderr.log"
    log.write_text("ModuleNotFoundError: No module named 'cupy'\n")
    assert program_failure(log, 0) is None
    assert program_failure(log, 1) is not None
    assert program_failure(tmp_path / "none", 1) is None


def test_failure_is_found_where_both_streams_are_one(tool: Runner) -> None:
    """As on a terminal, and with ``2>&1 |``."""
    tool.environment["FAKE_LAUNCHES"] = "*"
    program = (
        "import sys; print('out'); print('ModuleNotFoundError: No module named cupy', file=sys.stderr); sys.exit(1)"
    )
    tool.run([sys.executable, "-c", program], capture_output=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    (record,) = tool.folder.glob("trace/*/run.json")
    assert "No module named cupy; usual fix: " in json.loads(record.read_text())["program_failure"]


def test_report_has_the_failure_below_the_outcome(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace")
    writer.start()
    writer.run_json(exit_status=1, program_failure="the program's environment is broken: x")
    assert json.loads((writer.directory / "run.json").read_text())["exit_status"] == 1
    lines = run_report(open_trace(writer.directory)).splitlines()
    outcome = next(number for number, line in enumerate(lines) if line.startswith("outcome"))
    assert lines[outcome + 1].strip() == "the program's environment is broken: x"
