"""Test processes that are forks report as pytest does, and lose no test."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from .hook_builds import ROOT

PLUGIN = """
from tests.forked_workers import use_forks

def pytest_configure(config):
    use_forks(config, lambda: open("ends", "a").write("x"))
"""
TESTS = """
import os, warnings
import pytest

@pytest.fixture(scope="module")
def process():
    print("made for the module")
    yield os.getpid()
    print("taken down")

@pytest.mark.parametrize("number", range(30))
def test_many(number, process, tmp_path, worker_id):
    assert process == os.getpid() and worker_id in str(tmp_path)
    assert list(tmp_path.iterdir()) == []

def test_wrong(process):
    print("printed by this test")
    assert process == 7

def test_crash():
    os._exit(5)

@pytest.mark.skip(reason="not today")
def test_skipped():
    pass

def test_warns():
    warnings.warn("in a fork")

@pytest.fixture
def broken():
    yield
    raise OSError("after the test")

def test_teardown(broken):
    pass
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(PLUGIN)
    (folder / "test_all.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = ignore:Module already imported\n")
    command = [sys.executable, "-m", "pytest", "-q", "-ra", *options, "-p", "no:tui_probe", "test_all.py"]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_every_result_is_reported(tmp_path: Path) -> None:
    ran = run(tmp_path, "-n", "3")
    assert ran.returncode == 1, ran.stderr
    assert "2 failed, 32 passed, 1 skipped, 1 warning, 1 error" in ran.stdout
    assert re.search(r"the test process gw\d ended in this test, with status 5", ran.stdout)
    assert "printed by this test" in ran.stdout
    assert "OSError: after the test" in ran.stdout
    assert "UserWarning: in a fork" in ran.stdout
    assert (tmp_path / "ends").read_text() == "xxx"
    again = run(tmp_path, "-n", "2", "--last-failed", "--deselect", "test_all.py::test_crash")
    assert "1 failed, 1 passed, 33 deselected, 1 error" in again.stdout, again.stdout


def test_first_failure_ends_all_processes(tmp_path: Path) -> None:
    ran = run(tmp_path, "-n", "2", "-x", "-k", "wrong or many")
    assert "stopping after 1 failures" in ran.stdout
    assert "1 failed" in ran.stdout.splitlines()[-1]
    assert (tmp_path / "ends").read_text() == "xx"
