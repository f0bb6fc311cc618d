"""The examples of the public API run as they are written, on a recorded trace."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import tui_probe
from tests.recorded import SIMULATED


@pytest.fixture(autouse=True)
def example_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory in which ``trace`` is a recorded trace, and ``schedules`` one of block schedules."""
    (tmp_path / "schedules").symlink_to(SIMULATED / "block_sched")
    (tmp_path / "trace").symlink_to(SIMULATED / "gmem_sectors")
    monkeypatch.chdir(tmp_path)


def test_the_package() -> None:
    outcome = doctest.testmod(tui_probe)
    assert (outcome.attempted > 4, outcome.failed) == (True, 0)


@pytest.mark.parametrize(("name", "examples"), [("python-api", 10), ("json", 5)])
def test_the_page(name: str, examples: int) -> None:
    page = Path(tui_probe.__file__).parent / "help" / f"{name}.md"
    outcome = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert (outcome.attempted > examples, outcome.failed) == (True, 0)
