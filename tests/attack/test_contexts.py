"""Contexts and device memory: a program has both as it would without the tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Tool
from tests.hook.conftest import compile_c

HERE = Path(__file__).resolve().parent


@pytest.fixture
def tool(tmp_path: Path, natives: Path) -> Tool:
    return Tool(tmp_path, natives)


def build(tool: Tool, name: str) -> str:
    program = tool.folder / name
    compile_c(HERE / f"{name}.c", program, str(tool.natives / "hook" / "libcuda.so.1"))
    return str(program)


def event_log(trace: Path) -> str:
    return (trace / "event.log").read_text()


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("stale", "function 400 kernel 0 memory 1\n"),
        ("next", "same handle 1 function 400 memory 0\nagain 1\n"),
    ],
)
def test_kernel_of_a_destroyed_context_is_refused(tool: Tool, what: str, expected: str) -> None:
    program = build(tool, "contexts")
    assert tool.unprofiled(program, what).stdout == expected
    run, _ = tool.run([program, what], "--launches", "all")
    assert (run.returncode, run.stdout) == (0, expected), run.stderr


def test_kernels_of_destroyed_contexts_share_a_row(tool: Tool) -> None:
    run, trace = tool.run([build(tool, "contexts"), "several"], "--launches", "all")
    assert (run.returncode, run.stdout) == (0, "400 " * 12 + "\n"), run.stderr
    assert event_log(trace).count("\n[kernel] ") == 1


def test_primary_context_release_keeps_other_contexts(tool: Tool) -> None:
    run, trace = tool.run([build(tool, "contexts"), "releases"], "--launches", "all")
    assert (run.returncode, run.stdout) == (0, "0 KiB more\n"), run.stderr
    assert "untwinned" not in event_log(trace)


def test_primary_context_release_drops_no_results_of_threads(tool: Tool) -> None:
    run, trace = tool.run([build(tool, "contexts"), "threads"], "--launches", "all")
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
    assert "[exit] launches 240 probed 240 dropped 0 " in event_log(trace)


def test_full_memory_fails_no_call(tool: Tool) -> None:
    run, trace = tool.run([build(tool, "full_memory")], "--launches", "all")
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
    assert event_log(trace).count("[exec] save") > 20
