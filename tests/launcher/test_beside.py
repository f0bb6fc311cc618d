"""Modules of a report are imported while the program runs, not after its end."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.conftest import ROOT
from tests.recorded import H200

if TYPE_CHECKING:
    from .conftest import Runner

TOUCH = """
import pathlib, sys, tui_probe.cli.main
import tui_probe.cli.profiling as profiling
profiling.preload_report_code = lambda: pathlib.Path('ready').touch()
sys.exit(tui_probe.cli.main.main(sys.argv[1:]))
"""
UNTIL_READY = ["sh", "-c", "until [ -e ready ]; do sleep 0.01; done; exit 3"]

REPORT = """
import contextlib, io, pathlib, sys
from tui_probe.cli.text_report import preload_report_code, report_after_run
from tui_probe.launcher.run_traces import Outcome
preload_report_code()
before = set(sys.modules)
with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), 'utf-8')) as shown:
    report_after_run(Outcome(traces=[pathlib.Path(sys.argv[1])]), False)
    shown.seek(0)
    text = shown.read()
names = [name for name in set(sys.modules) - before if name.startswith(('tui_probe', 'numpy'))]
print(len(text) > 1000, names)
"""


def test_report_modules_are_imported_during_the_run(tool: Runner) -> None:
    assert tool("run", "-p", "block_sched", "--sim", "--", *UNTIL_READY, program=TOUCH).returncode == 3


def test_a_report_then_reads_nothing_more() -> None:
    command = [sys.executable, "-c", REPORT, str(H200 / "demo")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True []\n"
