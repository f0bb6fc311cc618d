"""Leftovers of a killed launcher are removed by the next run, and nothing else is."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tui_probe.launcher import spool
from tui_probe.launcher.spool import mark_first_trace, mark_owner, remove_abandoned

from .conftest import ROOT
from .test_signals import wait_for_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conftest import Runner


def folder_of_dead_process(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    program = (
        "import sys, pathlib; from tui_probe.launcher.spool import mark_owner; mark_owner(pathlib.Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", program, folder], cwd=ROOT, check=True)
    return folder


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A temporary folder that engines use: under ``tmp_path`` the path of a socket may be too long."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        yield Path(name)


def test_next_run_removes_what_a_killed_launcher_left(tool: Runner, short_folder: Path) -> None:
    tool.environment["TMPDIR"] = str(short_folder)
    with tool.start(["sh", "-c", "echo up >>up; exec sleep 60"]) as process:
        wait_for_lines(tool.folder / "up", 1)
        process.kill()
    left = [*short_folder.iterdir(), *(tool.folder / "trace").iterdir()]
    assert len(left) == 3  # the engine's folder, the run's, and the empty trace
    assert tool.run(["true"]).returncode == 0
    assert [*short_folder.iterdir(), *(tool.folder / "trace").iterdir()] == []


def test_folders_of_living_processes_stay(tmp_path: Path) -> None:
    own, unmarked = tmp_path / "tui-probe-own", tmp_path / "tui-probe-unmarked"
    own.mkdir()
    unmarked.mkdir()
    mark_owner(own)
    dead = folder_of_dead_process(tmp_path, "tui-probe-dead")
    other = folder_of_dead_process(tmp_path, "another-dead")
    (tmp_path / "tui-probe-link").symlink_to(other)
    remove_abandoned(tmp_path, "tui-probe-")
    assert own.exists()
    assert unmarked.exists()
    assert other.exists()
    assert not dead.exists()


@pytest.mark.parametrize(("place", "removed"), [(0, False), (1, True), (2, False)], ids=["host", "boot", "namespace"])
def test_other_systems_processes_are_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int, removed: bool
) -> None:
    """A number means another process on another machine or in another container; none survives a restart."""
    folder = folder_of_dead_process(tmp_path, "tui-probe-dead")
    system = list(spool._pid_namespace())
    system[place] = "another"
    monkeypatch.setattr(spool, "_pid_namespace", lambda: tuple(system))
    remove_abandoned(tmp_path, "tui-probe-")
    assert folder.exists() is not removed


def test_only_an_empty_first_trace_is_removed(tmp_path: Path) -> None:
    for name in ("empty", "full"):
        folder = folder_of_dead_process(tmp_path, f".run-{name}")
        mark_first_trace(folder, name)
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "event.log").touch()
    remove_abandoned(tmp_path, ".run-")
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
