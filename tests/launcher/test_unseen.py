"""Notices of a run in which the hook could not see launches of the program."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tui_probe.launcher.diagnosis import is_static, unreachable, unseen_drivers

from .conftest import Runner


@pytest.fixture
def drivers(tmp_path: Path) -> tuple[Path, Path]:
    """The driver that the hook calls, and another."""
    paths = tmp_path / "libcuda.so.1", tmp_path / "other.so.1"
    for path in paths:
        path.touch()
    return paths


def test_unseen_drivers_are_reported(tmp_path: Path, drivers: tuple[Path, Path]) -> None:
    assert unseen_drivers(tmp_path / "none", drivers[0]) == []


def test_another_driver_is_named_with_the_option_that_takes_it(tmp_path: Path, drivers: tuple[Path, Path]) -> None:
    ours, other = drivers
    (tmp_path / "told").write_text(f"12 {other}\n13 {other}\n12 {other}\n")
    (text,) = unseen_drivers(tmp_path / "told", ours)
    assert text.startswith(f"process 12 and 1 more loaded {other} directly")
    assert f"--driver {other}" in text


def test_the_same_driver_was_opened_past_the_hook(tmp_path: Path, drivers: tuple[Path, Path]) -> None:
    ours, _ = drivers
    (tmp_path / "link").symlink_to(ours)
    (tmp_path / "told").write_text(f"12 {ours}\n")
    (text,) = unseen_drivers(tmp_path / "told", tmp_path / "link")
    assert text.startswith(f"process 12 loaded {ours} directly")
    assert "dlmopen" in text


def test_programs_with_and_without_a_loader(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    source = tmp_path / "main.c"
    source.write_text("void _start(void) { for (;;) {} }\n")
    static, dynamic = tmp_path / "static", tmp_path / "dynamic"
    subprocess.run(["cc", "-nostdlib", "-static", "-o", static, source], check=True)
    subprocess.run(["cc", "-nostartfiles", "-o", dynamic, source], check=True)
    assert (is_static(static), is_static(dynamic), is_static(source)) == (True, False, False)
    assert unreachable([str(static)], None) == [
        f"{static} is statically linked, so tui-probe cannot see its launches; link it with the shared libc"
    ]
    assert unreachable(["dynamic"], str(tmp_path)) == unreachable(["nowhere"], str(tmp_path)) == []


def test_a_run_tells_of_drivers_in_each_trace(tool: Runner) -> None:
    other = tool.folder / "libcuda.so.1"
    tool.environment["FAKE_LAUNCHES"] = "*"
    result = tool.run(["/bin/sh", "-c", f'echo "7 {other}" >>"$TUI_PROBE_BESIDE"'])
    (trace,) = (tool.folder / "trace").iterdir()
    (text,) = json.loads((trace / "run.json").read_text())["messages"]
    assert text.startswith(f"process 7 loaded {other} directly"), result.stderr
