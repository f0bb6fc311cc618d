"""The self-test of grafts that starts with the engine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.engine.test_grafts import FakeTrial
from tui_probe.engine.cache import default_cache_directory
from tui_probe.engine.grafting import graft_gate
from tui_probe.toolchain import Tool


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands of processes."""
    commands: list[list[str]] = []
    monkeypatch.setattr(graft_gate.subprocess, "Popen", lambda command, **_: commands.append(command))
    return commands


@pytest.mark.parametrize(("outcome", "count"), [("passed", 1), ("impossible", 2)])
def test_engine_starts_the_self_test_until_an_outcome_is_kept(
    monkeypatch: pytest.MonkeyPatch, started: list[list[str]], ptxas: Tool, outcome: str, count: int
) -> None:
    FakeTrial(monkeypatch, json.dumps({"outcome": outcome}))
    monkeypatch.setattr(graft_gate, "shared_architecture", lambda _: 90)
    monkeypatch.setattr(graft_gate.Assembler, "tools", lambda _: [ptxas])
    for _ in range(2):
        graft_gate.start_early_trial([ptxas])
        assert graft_gate.keep_outcome(default_cache_directory("grafts"))
    assert len(started) == count
    assert started[0][-1] == graft_gate.__name__


def test_self_test_needs_a_driver_and_tools(
    monkeypatch: pytest.MonkeyPatch, started: list[list[str]], ptxas: Tool
) -> None:
    monkeypatch.setattr("tui_probe.engine.grafting.graft_gate.driver_version", lambda: "")
    graft_gate.start_early_trial([ptxas])
    monkeypatch.setattr("tui_probe.engine.grafting.graft_gate.driver_version", lambda: "580.1")
    graft_gate.start_early_trial([])
    assert started == []
    assert not graft_gate.keep_outcome(None, "libmissing.so.1")


@pytest.mark.parametrize(("mode", "expected"), [(0, 80), (3, None)])
def test_device_for_one_process_at_a_time_is_left_to_the_program(
    tmp_path: Path, mode: int, expected: int | None
) -> None:
    source, library = tmp_path / "driver.c", tmp_path / "driver.so"
    source.write_text(
        "int cuInit(unsigned flags) { return (int)flags; }\n"
        "int cuDeviceGetAttribute(int *value, int code, int device)\n"
        f"{{ *value = code == 75 ? 8 : code == 20 ? {mode} : 0; return device; }}\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    assert graft_gate.shared_architecture(str(library)) == expected
