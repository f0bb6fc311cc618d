"""Saved launches of frameworks leave in a launcher the memory that they left in the program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.reproducer.test_extract import FAILING
from tui_probe.reproducer.extraction import extract
from tui_probe.reproducer.kept_launch import keep_outcomes, kept_launches, outcome_text

from .conftest import PROGRAMS, Runner

LAUNCHES = 60
NEEDED = 20


def run_launcher(*command: str) -> str:
    """Return "" if the memory is the same as in the program, else what the launcher wrote."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return result.stdout + result.stderr if result.returncode else ""


def run_c_launcher(folder: Path) -> str:
    """Build the launcher with only a C compiler, and run it; returns as ``run_launcher``."""
    subprocess.run(["cc", "-O2", "-o", "launch", "launch.c", "-ldl"], cwd=folder, check=True, timeout=60)
    return run_launcher("sh", "-c", f"cd {folder} && ./launch --repeat 3")


def test_extracted_kernels_of_frameworks_leave_the_same_memory(runner: Runner, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    keep = [word for n in range(LAUNCHES) for word in ("--keep-launch", f"_@{n}")]
    program = [sys.executable, str(PROGRAMS / "framework_kernels.py")]
    trace = runner.profiled(program, *keep, "--max-kept-bytes", "none", "--machine-code", "all").trace
    outcomes = "\n".join(map(outcome_text, keep_outcomes(trace)))
    first_of = {launch.name: launch for launch in reversed(kept_launches(trace))}
    assert len(first_of) >= NEEDED, outcomes
    problems = {}
    for launch in first_of.values():
        folder = tmp_path / f"{launch.index}@{launch.number}"
        extract(launch, folder)
        python = run_launcher(sys.executable, str(folder / "launch.py"), "--repeat", "3")
        if problem := python + run_c_launcher(folder):
            problems[launch.demangled] = problem
    assert not problems, "\n".join(f"{name}: {problem}" for name, problem in problems.items())


def test_c_launcher_of_runtime_program_leaves_the_same_memory(built: Path, runner: Runner, tmp_path: Path) -> None:
    trace = runner.profiled([str(built / "runtime_static")], "--keep-launch", "_@0").trace
    [launch] = kept_launches(trace)
    extract(launch, tmp_path / "extracted")
    assert run_c_launcher(tmp_path / "extracted") == ""


def test_failed_launch_is_saved_and_fails_in_the_launchers(runner: Runner, tmp_path: Path) -> None:
    trace = runner.profiled([sys.executable, "-c", FAILING], "--keep-launch", "store@0").trace
    [launch] = kept_launches(trace)
    assert not launch.has_result
    extract(launch, tmp_path / "extracted")
    problem = run_launcher(sys.executable, str(tmp_path / "extracted" / "launch.py"))
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in problem
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in run_c_launcher(tmp_path / "extracted")
