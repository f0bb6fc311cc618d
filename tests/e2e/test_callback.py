"""A file of the user's own is run on each result, and never in the way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tui_probe.cli.callbacks import callback_of, named_callback
from tui_probe.errors import UsageError
from tui_probe.pages.run_report import run_report
from tui_probe.probe_files.loading import built_in_files
from tui_probe.trace.follow import open_trace

from .conftest import EXAMPLE, Tool

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [*EXAMPLE, "--kernel", "saxpy"]
TELLING = "import sys, os\nprint('result', os.path.getsize(sys.argv[1]), len(sys.argv))\n"


def test_callback_runs_per_result(tool: Tool) -> None:
    (tool.folder / "mine.py").write_text(TELLING)
    done, trace = tool.run(COMMAND, "-p", "block_sched", "--callback", "mine.py")
    (result,) = (trace / "result").iterdir()
    assert done.stdout == f"saxpy ok\nresult {result.stat().st_size} 2\n"
    assert len(done.stderr.splitlines()) == 1


def test_callback_failure_is_reported_and_changes_nothing(tool: Tool) -> None:
    (tool.folder / "mine.py").write_text("raise KeyError('block 7')")
    done, trace = tool.run(COMMAND, "-p", "block_sched", "--callback", "mine.py")
    assert (done.returncode, done.stdout) == (0, "saxpy ok\n")
    (line,) = done.stderr.splitlines()
    assert tool.folder / line.split(" ")[-1] == trace
    (message,) = json.loads((trace / "run.json").read_text())["messages"]
    assert "mine.py failed for 1 of 1 results" in message
    assert "KeyError: 'block 7'" in message
    assert "mine.py failed for 1 of 1 results" in run_report(open_trace(trace))


def test_callback_of_probe_file_runs_with_option(tool: Tool) -> None:
    source = built_in_files()["block_sched"].read_text()
    own = tool.folder / "own.toml"
    own.write_text(source.replace('callback = "block_sched"', 'analyze_hook = "mine.py"'))
    (tool.folder / "mine.py").write_text(TELLING)
    done, trace = tool.run(COMMAND, "-p", "own.toml", "--callback")
    assert "\nresult " in done.stdout
    opened = tool("show", "results", f"{trace}:0")
    assert opened.returncode == 0
    assert f"result {next((trace / 'result').iterdir()).stat().st_size} 2" not in opened.stdout


def test_callback_of_probe_file_does_not_run_without_option(tool: Tool) -> None:
    source = built_in_files()["block_sched"].read_text()
    (tool.folder / "own.toml").write_text(source.replace('callback = "block_sched"', 'callback = "mine.py"'))
    (tool.folder / "mine.py").write_text(TELLING)
    done, trace = tool.run(COMMAND, "-p", "own.toml")
    assert done.stdout == "saxpy ok\n"
    assert len(done.stderr.splitlines()) == 1
    report = run_report(open_trace(trace))
    assert "own.toml: callback mine.py was not run; to run it, pass --callback" in " ".join(report.split())
    assert len(list((trace / "result").iterdir())) == 1


def test_callback_of_finds_file_of_probe(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('callback = "sub/mine.py"\n')
    mine = tmp_path / "sub" / "mine.py"
    mine.parent.mkdir()
    mine.write_text("")
    assert callback_of(None, [str(own)]) is None
    assert callback_of(True, [str(own)]) == mine
    assert callback_of(True, ["block_sched", f"{own}:1/16"]) == mine
    own.rename(tmp_path / "probe.toml")
    assert callback_of(True, [str(tmp_path)]) == mine
    with pytest.raises(UsageError, match=r"no\.py: no such file"):
        callback_of(tmp_path / "no.py", [])


@pytest.mark.parametrize("word", ["block_sched", "survey", "none.toml", "own.toml", "set.toml", "between=a.cu:1-2"])
def test_callback_of_reports_missing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text('callback = "mine.py"\n')
    (tmp_path / "listed.toml").write_text('callback = "listed.py"\n')
    (tmp_path / "listed.py").write_text("")
    (tmp_path / "set.toml").write_text('callback = "listed.py"\nprobes = ["listed.toml"]\n')
    with pytest.raises(UsageError, match="no probe file of -p has a Python callback"):
        callback_of(True, [word])


@pytest.mark.parametrize("place", ["absolute", "above", "link", "linked directory", "in and out"])
def test_callback_outside_directory_is_refused(tmp_path: Path, place: str) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "own"
    elsewhere.mkdir()
    folder.mkdir()
    (elsewhere / "x.py").write_text("")
    (folder / "link.py").symlink_to(elsewhere / "x.py")
    (folder / "linked").symlink_to(elsewhere)
    file = {
        "absolute": str(elsewhere / "x.py"), "above": "../elsewhere/x.py", "link": "link.py",
        "linked directory": "linked/x.py", "in and out": "linked/../elsewhere/x.py",
    }[place]  # fmt: skip
    own = folder / "own.toml"
    own.write_text(f'callback = "{file}"\n')
    with pytest.raises(UsageError, match=r"was not run \(the callback is not in the directory of the probe file"):
        callback_of(True, [str(own)])
    named = named_callback([str(own)])
    assert named is not None
    assert named.not_run_message.endswith(f"to run it, pass --callback {file}")


@pytest.mark.parametrize("inside", [".", "probes"])
def test_callback_in_trace_is_refused(tmp_path: Path, inside: str) -> None:
    (tmp_path / "event.log").write_text("")
    folder = tmp_path / inside
    folder.mkdir(exist_ok=True)
    (folder / "own.toml").write_text('callback = "x.py"\n')
    (folder / "x.py").write_text("")
    with pytest.raises(UsageError, match="the probe file is in a trace"):
        callback_of(True, [str(folder / "own.toml")])


def test_callback_of_traces_probe_is_refused(tool: Tool) -> None:
    """A trace names a probe file by its path, too; that is not the user's choice."""
    source = built_in_files()["block_sched"].read_text()
    (tool.folder / "own.toml").write_text(source.replace('callback = "block_sched"', 'callback = "mine.py"'))
    (tool.folder / "mine.py").write_text(TELLING)
    _, trace = tool.run(COMMAND, "-p", "own.toml")
    done = tool("run", "--again", str(trace), "--callback")
    assert done.returncode == 2
    assert "probes in a trace cannot run a callback; pass --callback FILE.py, or pass the probe with -p" in done.stderr
