"""A tool that hangs when it is asked for its version is asked once, and ``doctor`` names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_probe import toolchain
from tui_probe.cli import machine_checks


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only ptxas there is; it notes each time that it is started."""
    path = tmp_path / "bin" / "ptxas"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\necho >> {tmp_path}/asked\nexec sleep 60\n")
    path.chmod(0o755)
    monkeypatch.setattr(toolchain, "candidate_paths", lambda _: iter([path]))
    monkeypatch.setattr(toolchain, "_VERSION_SECONDS", 0.2)
    monkeypatch.setattr(toolchain, "_silent_tools", set())
    return path


def test_silent_tool_is_asked_once_and_named(hanging: Path, tmp_path: Path) -> None:
    assert toolchain.find_tools() == toolchain.find_tools() == []
    assert (tmp_path / "asked").read_text() == "\n"
    check = machine_checks.cuda_tool("ptxas", "")
    assert (check.state, check.found) == ("warn", f"{hanging} does not answer --version")
    assert machine_checks.cuda_tool("nvdisasm", "advice").state != "ok"


def test_another_one_is_used(hanging: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = tmp_path / "ptxas"
    good.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 12.1, V12.1.105'\n")
    good.chmod(0o755)
    toolchain.find_tools()
    monkeypatch.setattr(toolchain, "_VERSION_SECONDS", 20)
    monkeypatch.setattr(toolchain, "candidate_paths", lambda _: iter([hanging, good]))
    assert [tool.path for tool in toolchain.find_tools()] == [good]
    assert machine_checks.cuda_tool("ptxas", "").found == f"12.1.105, {good}; {hanging} does not answer --version"
