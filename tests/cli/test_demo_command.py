"""The options that ``demo`` gives its run."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from pathlib import Path

import pytest

from tests.trace.make import TraceWriter
from tui_probe.cli import demo
from tui_probe.launcher.options import RunOptions


@pytest.mark.parametrize(
    ("has_gpu", "screen", "launches"), [(False, False, "2"), (False, True, "6"), (True, False, "6")]
)
def test_demo_launches_what_its_probes_need(
    has_gpu: bool, screen: bool, launches: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the simulated GPU a report needs one launch per probe, which takes a third of the time of six."""
    given: list[RunOptions] = []
    monkeypatch.setattr(demo, "has_gpu", lambda: has_gpu)
    monkeypatch.setattr(demo, "wants_screen", lambda _: screen)
    monkeypatch.setattr(demo, "profile", lambda options, _: given.append(options) or 0)
    parser = ArgumentParser()
    demo.add_arguments(parser)
    assert demo.run(parser.parse_args([])) == 0
    (options,) = given
    assert options.command[options.command.index("--repeat") + 1] == launches
    assert ("--slow" in options.command) == screen
    assert options.min_free_disk == "32M"


def written_demo(root: Path, name: str, days: float, *, pid: int | None = None) -> Path:
    """The directory of a demo of some days ago, with a trace; that of process ``pid`` has not ended."""
    folder = root / name
    writer = TraceWriter(folder / "trace")
    writer.start(pid=pid or 1)
    if pid is None:
        writer.exit()
    when = folder.stat().st_mtime - days * 86_400
    os.utime(folder, (when, when))
    return folder


def test_demo_removes_temporary_directories_of_old_demos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those of demos that ended, a day ago; nothing that a link leads to."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    written_demo(tmp_path, "tui-probe-demo-old", 2)
    young = written_demo(tmp_path, "tui-probe-demo-young", 0.5)
    other = written_demo(tmp_path, "other-demo", 2)
    linked = written_demo(tmp_path, "elsewhere", 2)
    link = tmp_path / "tui-probe-demo-link"
    link.symlink_to(linked)
    os.utime(link, (0, 0), follow_symlinks=False)
    monkeypatch.setattr("tui_probe.trace.recent.is_alive", lambda pid, _: pid == 77)
    running = written_demo(tmp_path, "tui-probe-demo-running", 2, pid=77)
    root = demo.temporary_root()
    assert sorted(tmp_path.iterdir()) == sorted([young, other, linked, link, running, root])
    assert (linked / "trace" / "event.log").exists()
