"""Programs that forbid themselves system calls: the hook makes none of them on their threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attack.conftest import Start
from tests.attack.test_programs import counts
from tests.hook.conftest import Host, Run


def run_in_sandbox(host: Host, start: Start, kind: str, **environment: str) -> Run:
    run = host.finish(start("sandbox", kind, **environment))
    if run.status == 77:
        pytest.skip("seccomp is not allowed")
    assert (run.status, run.stdout, run.stderr) == (3, "done\n", "")
    return run


@pytest.mark.parametrize("kind", ["kill", "errno", "harmless"])
def test_sandbox_of_one_thread_loses_nothing(host: Host, start: Start, kind: str) -> None:
    run = run_in_sandbox(host, start, kind)
    assert (counts(run), len(run.results)) == ({"launches": 25, "probed": 25, "dropped": 0}, 25)


@pytest.mark.parametrize("kind", ["all", "first"])
def test_sandbox_of_all_threads_leaves_no_trace(host: Host, start: Start, tmp_path: Path, kind: str) -> None:
    notes = tmp_path / "notes"
    notes.touch()
    run = run_in_sandbox(host, start, kind, TUI_PROBE_NOTES=str(notes))
    assert run.directories == []
    assert "no-trace the program's seccomp filter kills the program" in notes.read_text()


def test_later_sandbox_of_all_threads_ends_the_recording(host: Host, start: Start) -> None:
    run = run_in_sandbox(host, start, "later")
    assert [(status, name) for status, name, _ in run.outcomes()] == [("probed", "one"), ("skipped", "two")]
    assert counts(run)["launches"] == 30
    assert run.codes[-1] == "sandbox"
