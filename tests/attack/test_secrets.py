"""A command line's secrets are in no file of a trace, and on no home screen, unless someone wants them kept."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.hook.conftest import Host
from tests.hook.test_launches import ONE
from tests.launcher.conftest import Runner
from tests.launcher.conftest import fake_native as fake_native
from tests.launcher.conftest import script as script
from tests.launcher.conftest import tool as tool
from tests.ui.conftest import on_stage
from tests.ui.desk import TestDesk
from tests.ui.synthetic import FakeTarget
from tui_probe.draw.spans import plain
from tui_probe.trace.recent import TraceSummary
from tui_probe.ui.session import Session
from tui_probe.ui.views.recent import RecentView


@pytest.mark.parametrize("kept", [False, True])
def test_the_log_has_no_password(host: Host, kept: bool) -> None:
    secrets = ["--password=hunter2", "--api-key", "hunter3", "--steps", "3", "https://me:hunter4@host/"]
    more = {"TUI_PROBE_KEEP_SECRETS": "1"} if kept else {}
    run = host.command(sys.executable, "-c", "from host import *\n" + ONE, *secrets, **more)
    line = run.log[1]
    assert int(line.split(" ")[2]) == len(line.split(" ", 3)[3])
    masked = "--password=*** --api-key *** --steps 3 https://***@host/"
    assert line.endswith(" ".join(secrets) if kept else masked)
    assert ("hunter" in "\n".join(run.written_log)) == kept


@pytest.mark.parametrize("kept", [False, True])
def test_the_record_of_a_run_has_no_password(tool: Runner, kept: bool) -> None:
    tool.environment["FAKE_LAUNCHES"] = "*"
    program = [sys.executable, "-c", "import sys; print(len(sys.argv[1]))", "--password=hunter2"]
    result = tool.run(program, *(["--keep-secrets"] if kept else []))
    assert (result.returncode, result.stdout) == (0, b"18\n")
    (trace,) = (tool.folder / "trace").glob("*_*_*")
    assert ("hunter2" in (trace / "run.json").read_text()) == kept
    (trace / "event.log").touch()  # as the hook would; here a stand-in makes the trace
    again = tool("run", "--no-report", "--again", str(trace))
    assert (again.returncode, again.stdout) == ((0, b"18\n") if kept else (2, b""))
    assert (b"--keep-secrets" in again.stderr) == (not kept)


def test_the_home_screen_has_no_password_of_older_traces() -> None:
    view = RecentView(TestDesk(), "recent", clock=0.0)
    view.show([TraceSummary(Path("/traces/Nov21_101010_1"), 0.0, "./train --password=hunter2")])
    text = "\n".join(plain(line) for line in view.draw(200, 20))
    assert "--password=***" in text
    assert "hunter2" not in text


async def test_the_live_screen_has_no_password(tmp_path: Path) -> None:
    target = FakeTarget(tmp_path, [])
    target.command = ["./train", "--password", "hunter2"]
    async with on_stage(Session(target=target)) as stage:
        assert "./train --password ***" in stage.text
        assert "hunter2" not in stage.text
