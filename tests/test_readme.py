"""What the README says is what the program does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tui_probe import settings
from tui_probe.cli.commands import COMMANDS
from tui_probe.ui.keys import readme_section

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_keys_are_those_of_the_table() -> None:
    _, _, rest = README.partition("## Keys\n")
    assert rest.partition("\n## ")[0].strip() == readme_section().strip()


def test_the_settings_are_those_that_are_read() -> None:
    _, found, rest = README.partition("## Settings\n")
    if not found:
        pytest.skip("the README lists no settings")
    assert settings.readme_section().strip() in rest.partition("\n## ")[0]


def test_commands_exist() -> None:
    named = set(re.findall(r"(?:`|\$ |/)tui-probe ([a-z]+)", README))
    assert named
    assert named <= set(COMMANDS)


def test_files_exist() -> None:
    for path in re.findall(r"\]\(([\w/.-]+)\)", README):
        assert (ROOT / path).is_file(), path
