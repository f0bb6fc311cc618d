"""What the README and the pages for contributors say is what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tui_probe import help as pages
from tui_probe.cli.commands import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
FILES = [
    f"/{path.relative_to(ROOT)}"
    for folder in ("tui_probe", "probes", "hook", "tests")
    for path in (ROOT / folder).rglob("*.*")
]
MADE = ("event.log", "sites.json")
"""Files of a trace."""


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_topics_exist(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    named = set(re.findall(r"(?:`|\$ |/)tui-probe ([a-z-]+[a-z])", text))
    assert named <= set(COMMANDS)
    topics = set(re.findall(r"tui-probe help ([a-z][a-z-]+)", text))
    assert topics <= {topic.name for topic in pages.topics()}


@pytest.mark.parametrize("page", PAGES)
def test_files_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    linked = re.findall(r"\]\(([\w/.-]+)\)", text)
    named = re.findall(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|c|h|md|toml|def|txt|sh))`", text) if page != "README.md" else []
    paths = [path for path in (*linked, *named) if "NAME" not in path and path not in MADE]
    assert paths
    for path in paths:
        assert (ROOT / path).is_file() or any(file.endswith(f"/{path}") for file in FILES), path
