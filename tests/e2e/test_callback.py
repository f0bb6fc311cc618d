"""A file of the user's own is run on each result, and never in the way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tui_probe.cli.run_callback import callback_of
from tui_probe.errors import UsageError
from tui_probe.pages.summary import run_report
from tui_probe.probe_files.folders import built_in_files
from tui_probe.trace.follow import open_trace

from .conftest import EXAMPLE, Tool

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [*EXAMPLE, "--kernel", "saxpy"]
TELLING = "import sys, os\nprint('result', os.path.getsize(sys.argv[1]), len(sys.argv))\n"


def test_it_is_run_on_each_result(tool: Tool) -> None:
    (tool.folder / "mine.py").write_text(TELLING)
    done, trace = tool.run(COMMAND, "-p", "block_sched", "--callback", "mine.py")
    (result,) = (trace / "result").iterdir()
    assert done.stdout == f"saxpy ok\nresult {result.stat().st_size} 2\n"
    assert len(done.stderr.splitlines()) == 1


def test_its_failure_is_told_and_changes_nothing(tool: Tool) -> None:
    (tool.folder / "mine.py").write_text("raise KeyError('block 7')")
    done, trace = tool.run(COMMAND, "-p", "block_sched", "--callback", "mine.py")
    assert (done.returncode, done.stdout) == (0, "saxpy ok\n")
    (line,) = done.stderr.splitlines()
    assert tool.folder / line.split(" ")[-1] == trace
    (message,) = json.loads((trace / "run.json").read_text())["messages"]
    assert "mine.py failed for 1 of 1 results" in message
    assert "KeyError: 'block 7'" in message
    assert "mine.py failed for 1 of 1 results" in run_report(open_trace(trace))


def test_a_probe_file_that_is_named_may_ask_for_it(tool: Tool) -> None:
    source = built_in_files()["block_sched"].read_text()
    own = tool.folder / "own.toml"
    own.write_text(source.replace('callback = "block_sched"', 'analyze_hook = "mine.py"'))
    (tool.folder / "mine.py").write_text(TELLING)
    done, trace = tool.run(COMMAND, "-p", "own.toml")
    assert "\nresult " in done.stdout
    opened = tool("show", "results", f"{trace}:0")
    assert opened.returncode == 0
    assert f"result {next((trace / 'result').iterdir()).stat().st_size} 2" not in opened.stdout


def test_which_file_it_is(tmp_path: Path) -> None:
    assert callback_of(None, ["block_sched", str(tmp_path / "none.toml")]) is None
    assert callback_of(None, [str(built_in_files()["block_sched"])]) is None
    own = tmp_path / "own.toml"
    own.write_text('callback = "sub/mine.py"\n')
    assert callback_of(None, [str(own)]) is None
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "mine.py").write_text("")
    assert callback_of(None, [str(own)]) == tmp_path / "sub" / "mine.py"
    with pytest.raises(UsageError, match=r"no\.py: there is no such file"):
        callback_of(tmp_path / "no.py", [str(own)])
