"""Commands on the help pages run as they are written, in a directory that has the files they name."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import Tool
from tests.help import pages
from tests.help.sessions import STATUSES, prepare
from tui_probe.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

TUTORIAL = "tutorial"
READING = [name for name in pages.NAMES if name != TUTORIAL and pages.blocks(name, "console", gpu=False)]


@pytest.mark.parametrize("topic", READING)
def test_commands_of_page_run(
    topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    for block in pages.blocks(topic, "console", gpu=False):
        for command in pages.commands(block):
            program, name, *arguments = shlex.split(command)
            assert program == "tui-probe", f"{command}: mark the block gpu"
            status = main([name, *arguments])
            assert status in STATUSES.get(name, (0,)), f"{command}: {capsys.readouterr().err}"


def test_tutorial_leads_from_demo_to_line(
    tmp_path: Path, natives: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands after the demo read its trace."""
    monkeypatch.chdir(tmp_path)
    tool = Tool(tmp_path, natives)
    for block in pages.blocks(TUTORIAL, "console", gpu=False):
        for command in pages.commands(block):
            arguments = shlex.split(command)[1:]
            status = tool(*arguments).returncode if arguments[0] == "demo" else main(arguments)
            assert status in STATUSES.get(arguments[0], (0,)), f"{command}: {capsys.readouterr().err}"
    assert "strided_store.cu:4" in capsys.readouterr().out
