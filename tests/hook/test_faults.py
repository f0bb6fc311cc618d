"""Faults of the trace directory: the program is not harmed, and complete files stay readable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tui_probe.launcher.control import BUDGETS, NO_LIMIT, ControlPage

from .conftest import Host, ResultFile, Run, compile_c

HERE = Path(__file__).resolve().parent
PROGRAM = """
import os, sys
context()
f, g = function(module(), "add__8"), function(module(), "sub__8")
w = word()
for _ in range(4): launch(f, w)
{after}
for _ in range(4): launch(f, w)
launch(g, w)
sys.stderr.write("words")
print(read(w), flush=True)
sys.exit(7)
"""
FIRST_WRITTEN = "wait_for(lambda: logged('[exec] save ') == 4)\n"
MADE_READ_ONLY = FIRST_WRITTEN + "open(os.environ['READ_ONLY'], 'w').close()"


def is_unharmed(run: Run) -> bool:
    """As it is without the tool."""
    return (run.status, run.stdout, run.stderr) == (7, "9\n", "words")


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("disk") / "read_only.so"
    compile_c(HERE / "read_only_disk.c", library, "-shared")
    return library


def preloaded(library: Path, host: Host, script: str, **more: str) -> Run:
    environment = {"LD_PRELOAD": f"{library} {host.built.hook}", "READ_ONLY": str(host.directory / "read-only")} | more
    return host.python(script, **environment)


def test_without_a_fault(host: Host, read_only: Path) -> None:
    run = preloaded(read_only, host, PROGRAM.format(after=""))
    assert is_unharmed(run)
    assert len(run.results) == 9


def test_a_folder_that_is_read_only_from_the_start(host: Host, read_only: Path) -> None:
    (host.directory / "read-only").touch()
    run = preloaded(read_only, host, PROGRAM.format(after=""))
    assert is_unharmed(run)
    assert run.directories == []


def test_a_disk_that_becomes_read_only(host: Host, read_only: Path) -> None:
    run = preloaded(read_only, host, PROGRAM.format(after=MADE_READ_ONLY))
    assert is_unharmed(run)
    assert len(run.results) == 4
    assert not list((run.directory / "result").glob(".*"))


def test_a_disk_that_becomes_read_only_in_a_benchmark(host: Host, read_only: Path) -> None:
    after = "open(os.environ['READ_ONLY'], 'w').close()"
    run = preloaded(read_only, host, PROGRAM.format(after=after), TUI_PROBE_BENCHMARK="1", TUI_PROBE_SAVE_RESULTS="1")
    assert is_unharmed(run)
    assert len(run.results) <= 1


@pytest.mark.parametrize("mode", ["all", "auto", "benchmark"])
@pytest.mark.parametrize("budget", [*BUDGETS, "write_rate", "all of them"])
def test_a_budget_of_nothing(host: Host, tmp_path: Path, budget: str, mode: str) -> None:
    limits = {name: 0 if budget in (name, "all of them") else NO_LIMIT for name in BUDGETS}
    rate = 0 if budget in ("write_rate", "all of them") else NO_LIMIT
    page = ControlPage.create(tmp_path / "control", limits, shares=True, is_on=True, write_rate=rate)
    more = {"TUI_PROBE_LAUNCHES": "" if mode == "all" else mode}
    if mode == "benchmark":
        more = {"TUI_PROBE_BENCHMARK": "1", "TUI_PROBE_SAVE_RESULTS": "1"}
    run = host.python(PROGRAM.format(after=""), TUI_PROBE_CONTROL=str(page.path), **more)
    assert is_unharmed(run)
    if budget in ("trace_bytes", "result_files", "all of them"):
        assert not list(run.root.glob("*/result/*.bin"))
    if budget == "write_rate" and mode == "all":
        assert len(run.results) == 9


def test_a_folder_of_traces_that_is_taken_away(host: Host) -> None:
    after = FIRST_WRITTEN + "import shutil; shutil.rmtree(os.environ['TUI_PROBE_TRACE_ROOT'])"
    assert is_unharmed(host.python(PROGRAM.format(after=after)))


def test_complete_results_of_a_killed_process_can_be_read(host: Host) -> None:
    run = host.python(PROGRAM.format(after=FIRST_WRITTEN + "launch(f, w); os.kill(os.getpid(), 9)"))
    assert run.status == -9
    results = [ResultFile.read(path) for path in (run.directory / "result").glob("[!.]*.bin")]
    assert len(results) >= 4
    assert all(len(result.maps[0][2]) == 2 * 2 * 16 for result in results)
    assert all(re.match(r"\[\w+\]", line) for line in run.written_log)
