"""``run --again``: the program of a trace once more, with other probes and the environment of today."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import PYTHON_EXAMPLE, SAXPY, Tool

KERNELS = ("-k", "saxpy:reduction")
BOTH = [*SAXPY, "--kernel", "reduction"]


def run_info(trace: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((trace / "run.json").read_text())
    return found


def newest(tool: Tool, before: set[Path]) -> Path:
    (made,) = {path for path in (tool.folder / "trace").iterdir() if path.is_dir()} - before
    return made


def test_the_same_command_and_filter_with_another_probe(tool: Tool) -> None:
    _, first = tool.run(BOTH, *KERNELS, "-p", "gmem_sectors", "--max-trace-bytes", "5M")
    again = tool("run", "--again", "-p", "block_sched", "--no-report")
    assert again.returncode == 0, again.stderr
    info = run_info(newest(tool, {first}))
    assert info["command"] == BOTH
    assert info["probe"] == "block_sched"
    assert info["driver"]["simulated"] is True
    assert (info["options"]["kernels"], info["options"]["max_trace_bytes"]) == ("saxpy:reduction", 5 << 20)


def test_options_override_those_of_previous_run(tool: Tool) -> None:
    _, first = tool.run(BOTH, *KERNELS, "-p", "gmem_sectors")
    assert tool("run", "--again", str(first), "-k", "reduction", "--no-report").returncode == 0
    info = run_info(newest(tool, {first}))
    assert (info["probe"], info["options"]["kernels"]) == ("gmem_sectors", "reduction")


def test_kernels_that_are_chosen_anew_are_all_that_is_chosen(tool: Tool) -> None:
    """A run that left the wrong kernels out continues without that."""
    _, first = tool.run(SAXPY, "-k", "nonsense", "--exclude", "saxpy", "-p", "gmem_sectors")
    recorded = []
    made = {first}
    for options in (("-k", "saxpy"), ("--all-kernels",)):
        assert tool("run", "--again", str(first), *options, "--no-report").returncode == 0
        made.add(trace := newest(tool, made))
        asked = run_info(trace)["options"]
        recorded.append((asked["kernels"], asked["filter"]))
    assert recorded == [("saxpy", None), (None, None)]
    both = tool("run", "--again", str(first), "-k", "saxpy", "--all-kernels")
    assert (both.returncode, "--all-kernels cannot be combined" in both.stderr) == (2, True)


def test_times_are_not_taken_again_where_another_probe_is_asked_for(tool: Tool) -> None:
    _, first = tool.run(BOTH, *KERNELS, "-p", "gmem_sectors", "--benchmark")
    assert run_info(first)["options"]["launches"] == "all"
    assert tool("run", "--again", "--no-report").returncode == 0
    same = newest(tool, {first})
    assert run_info(same)["options"]["benchmark"] is True
    assert tool("run", "--again", str(first), "-p", "block_sched", "--no-report").returncode == 0
    options = run_info(newest(tool, {first, same}))["options"]
    assert (options["benchmark"], options["launches"]) == (False, "auto")


def test_rerun_uses_directory_of_previous_run(tool: Tool) -> None:
    (tool.folder / "inner").mkdir()
    python, example = PYTHON_EXAMPLE
    script = f"import runpy, sys\nsys.path.insert(0, {str(Path(example).parent)!r})\n"
    (tool.folder / "inner" / "own.py").write_text(f"{script}runpy.run_path({example!r}, run_name='__main__')\n")
    inner = Tool(tool.folder / "inner", tool.natives)
    _, first = inner.run([python, "own.py", "--kernel", "saxpy"])
    again = tool("run", "--again", str(first), "--no-report")
    assert (again.returncode, again.stdout) == (0, "saxpy ok\n"), again.stderr
    assert len([path for path in first.parent.iterdir() if path.is_dir()]) == 2


def test_rerun_reports_what_it_cannot_repeat(tool: Tool) -> None:
    _, first = tool.run(SAXPY)
    both = tool("run", "--again", str(first), "--", "true")
    assert (both.returncode, "omit COMMAND or --again" in both.stderr) == (2, True)
    info = run_info(first)
    (first / "run.json").write_text(json.dumps(info | {"cwd": "/no/such/folder"}))
    gone = tool("run", "--again", str(first))
    assert (gone.returncode, "directory /no/such/folder does not exist on this machine" in gone.stderr) == (2, True)
    (first / "run.json").unlink()
    unknown = tool("run", "--again", str(first))
    assert (unknown.returncode, "run.json has no command" in unknown.stderr) == (2, True)


def test_foreign_command_is_not_run_without_question(tool: Tool) -> None:
    """Neither where its trace was changed, nor where this user has not run anything yet."""
    _, first = tool.run(BOTH, *KERNELS, "-p", "block_sched")
    info = run_info(first)
    hidden = "touch ran\rharmless"
    (first / "run.json").write_text(json.dumps(info | {"command": ["sh", "-c", hidden]}))
    done = tool("run", "--again", str(first))
    assert done.returncode == 2
    assert "you have not run this trace's command on this machine" in done.stderr
    options = "--sim -k saxpy:reduction --min-free-disk 0 -p block_sched"
    assert rf"cd {tool.folder} && tui-probe run {options} -- sh -c $'touch ran\x0dharmless'" in done.stderr
    assert not (tool.folder / "ran").exists()


@pytest.mark.parametrize(("typed", "runs"), [("yes\n", True), ("y\n", False), ("\n", False), ("\x04", False)])
def test_foreign_command_is_shown_and_asked_for(tool: Tool, typed: str, *, runs: bool) -> None:
    _, first = tool.run(BOTH, *KERNELS, "-p", "block_sched")
    (first / "run.json").write_text(json.dumps(run_info(first) | {"command": ["touch", *["harmless"] * 60, "ran"]}))
    master, slave = pty.openpty()
    argv = [sys.executable, "-m", "tui_probe", "run", "--no-ui", "--again", str(first)]
    with subprocess.Popen(argv, cwd=tool.folder, env=tool.environment, stdin=slave, stdout=slave, stderr=slave):
        os.close(slave)
        shown = read_until(master, b"Type yes: ")
        os.write(master, typed.encode())
        read_until(master, None)
    os.close(master)
    assert b"harmless ran" in shown
    assert (tool.folder / "ran").exists() is runs


def read_until(terminal: int, end: bytes | None) -> bytes:
    """Read a terminal up to these bytes, or until it is closed."""
    text = b""
    while end is None or end not in text:
        try:
            text += os.read(terminal, 4096)
        except OSError:
            break
    return text
