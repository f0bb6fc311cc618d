"""``tui-probe skill``: what it prints is short, and its commands can be given."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

from tui_probe.cli.main import build_parsers, main
from tui_probe.pages.page_registry import all_pages
from tui_probe.probe_files.loading import built_in_files

if TYPE_CHECKING:
    from pathlib import Path


def test_commands_can_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skill"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("---\nname: tui-probe\ndescription: ")
    assert len(text.encode()) <= 8000
    commands = re.findall(r"`tui-probe ([^`]+)`", text)
    assert len(commands) > 5
    for command in commands:
        argv = shlex.split(command)
        arguments = build_parsers(argv[0])[0].parse_args(argv)
        page = argv[1] if argv[0] == "show" else getattr(arguments, "page", None)
        assert page is None or page in {known.name for known in all_pages()}
    probes = set(re.findall(r"`[^`]*-p (\w+)", text))
    assert probes
    assert probes <= {*built_in_files(), "stalls"}


def test_file_is_written_below_a_directory_of_skills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skill", "--install", str(tmp_path / "skills")]) == 0
    path = tmp_path / "skills" / "tui-probe" / "SKILL.md"
    assert capsys.readouterr().out == f"{path}\n"
    assert "fixed" in path.read_text()
    (tmp_path / "file").touch()
    assert main(["skill", "--install", str(tmp_path / "file")]) == 2
    assert "pass a writable directory" in capsys.readouterr().err
