"""The README and the pages for contributors state what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tui_probe import help as help_pages
from tui_probe.cli.parser import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
FILES = [
    f"/{path.relative_to(ROOT)}"
    for folder in ("tui_probe", "probes", "hook", "tests")
    for path in (ROOT / folder).rglob("*.*")
]
MADE = ("sites.json", "probe.toml")
"""Files of traces and of probes."""


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_topics_exist(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    named = set(re.findall(r"(?:`|\$ |/)tui-probe ([a-z-]+[a-z])", text))
    assert named <= set(COMMANDS)
    topics = set(re.findall(r"tui-probe help ([a-z][a-z-]+)", text))
    assert topics <= {topic.name for topic in help_pages.topics()}


def test_console_blocks_have_a_command_per_line() -> None:
    """A block that was wrapped as prose cannot be pasted."""
    paths = [*map(ROOT.joinpath, (*PAGES, "SECURITY.md")), *(ROOT / "tui_probe" / "help").glob("*.md")]
    blocks = [
        (path, block)
        for path in paths
        for block in re.findall(r"^```console.*\n((?:.*\n)*?)```$", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(blocks) > 20
    assert [(path.name, block) for path, block in blocks if re.search(r"\S \$ [a-z.]", block)] == []


def test_readme_is_one_page_and_its_first_pytest_line_is_a_command() -> None:
    """CI runs the first line that starts with ``$ `` and names pytest."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.split()) <= 1000
    first = next(line for line in readme.splitlines() if "pytest" in line)
    assert first.startswith("$ python3 -m venv .venv && ")
    assert first.endswith(".venv/bin/pytest -q -n auto")
    assert f"```console\n{first}\n```" in readme


@pytest.mark.parametrize("page", PAGES)
def test_named_paths_exist(page: str) -> None:
    """A path with a directory is relative to the repository; a bare name is that of a file in any directory."""
    text = (ROOT / page).read_text(encoding="utf-8")
    paths = re.findall(r"\]\(([\w/.-]+)\)", text)
    if page != "README.md":
        paths += re.findall(r"`((?:tui_probe|probes|hook|tests)/[\w/.-]+)`", text)
        paths += re.findall(r"`([\w-]+\.(?:py|c|h|md|toml|def|txt))`", text)
    named = {path for path in paths if "NAME" not in path and path not in MADE}
    assert len(named) > (1 if page == "README.md" else 20)
    assert {path for path in named if not _exists(path)} == set()


def _exists(path: str) -> bool:
    return (ROOT / path).exists() or ("/" not in path and any(file.endswith(f"/{path}") for file in FILES))
