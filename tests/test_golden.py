"""Golden files: parts, ASCII texts that follow from others, writing anew, and what no one asks for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import golden as goldens
from tests.golden import Run, content_of, parts_of, read
from tests.patience import HANG

MODULE = """
from tests.golden import golden

def test_page():
    golden("page.txt", "shown\\n", "80")
"""
PAGE = "share – of 8 µs\n"
DRAWN_ELSE = "share - of 8 microseconds\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "goldens" / "page.txt"


def shown(path: Path, *texts: tuple[str, str, bool]) -> None:
    """Write what a run with the switch shows: texts, their parts, and whether they are in ASCII."""
    run = Run(update=True)
    assert [run.problem(path, text, part, ascii_only=plain) for text, part, plain in texts] == [""] * len(texts)
    run.write()


def problem(path: Path, text: str, part: str = "", *, ascii_only: bool = False) -> str:
    return Run().problem(path, text, part, ascii_only=ascii_only)


def test_parts_stand_in_their_order() -> None:
    content = content_of({"120x40": "wide\n", "80x24 ascii": "-\n", "80x24": "–\n"})
    assert content == "===== 80x24 =====\n–\n===== 80x24 ascii =====\n-\n===== 120x40 =====\nwide\n"
    assert parts_of(content) == {"80x24": "–\n", "80x24 ascii": "-\n", "120x40": "wide\n"}
    assert parts_of("one\ntext") == {"": "one\ntext"}


def test_a_change_is_shown_line_by_line(path: Path) -> None:
    shown(path, ("first\nsecond\n", "80", False))
    assert problem(path, "first\nsecond\n", "80") == ""
    message = problem(path, "first\nthird\n", "80")
    assert "page.txt (80): the text changed; pytest --update-goldens" in message
    assert "\n-second\n+third\n" in message
    assert "no golden '120' yet" in problem(path, "first\n", "120")


def test_an_ascii_text_is_kept_only_where_it_is_no_translation(path: Path) -> None:
    shown(path, ("share - of 8 us\n", "80", True), (PAGE, "80", False))
    assert read(path) == {"80": PAGE}
    assert problem(path, "share - of 8 us\n", "80", ascii_only=True) == ""
    assert "+share . of 8 us" in problem(path, "share . of 8 us\n", "80", ascii_only=True)
    shown(path, (DRAWN_ELSE, "80", True))
    assert read(path) == {"80": PAGE, "80 ascii": DRAWN_ELSE}
    assert problem(path, DRAWN_ELSE, "80", ascii_only=True) == ""
    assert problem(path, "share - of 8 us\n", "80", ascii_only=True)


def test_a_run_of_some_tests_leaves_the_other_parts(path: Path) -> None:
    shown(path, ("a\n", "80", False), ("b\n", "120", False))
    shown(path, ("c\n", "80", False))
    assert read(path) == {"80": "c\n", "120": "b\n"}


def test_two_tests_must_show_the_same(path: Path) -> None:
    run = Run(update=True)
    assert run.problem(path, "dark\n", "80", ascii_only=False) == ""
    assert "shown before by another test" in run.problem(path, "light\n", "80", ascii_only=False)


@pytest.mark.parametrize(("text", "expected"), [("no end", "ends with a line end"), ("===== x =====\n", "heading")])
def test_texts_that_would_not_be_read_back(path: Path, text: str, expected: str) -> None:
    assert expected in problem(path, text, "80")


def test_unused_goldens_are_found_where_all_tests_ran(path: Path, tmp_path: Path) -> None:
    shown(path, ("a\n", "80", False), ("b\n", "120", False))
    run = Run()
    run.problem(path, "a\n", "80", ascii_only=False)
    assert run.unused([tmp_path]) == []
    run.passed[tmp_path] = True
    assert run.unused([tmp_path]) == [(path, "120")]


def test_a_wide_line_and_a_sign_that_is_not_ascii_are_refused() -> None:
    with pytest.raises(AssertionError):
        goldens.golden("none.txt", "12345\n", width=4)
    with pytest.raises(AssertionError):
        goldens.golden("none.txt", PAGE, ascii_only=True)


def test_the_switches(tmp_path: Path) -> None:
    """A small suite of its own, run by pytest."""
    area = tmp_path / "tests" / "area"
    area.mkdir(parents=True)
    for folder in (area.parent, area):
        (folder / "__init__.py").touch()
    shutil.copy(goldens.__file__, area.parent)
    (area.parent / "conftest.py").write_text('pytest_plugins = ["tests.golden"]\n')
    (area / "test_page.py").write_text(MODULE)

    def pytest_says(*words: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words, "tests/area"]
        bare = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(
            command, cwd=tmp_path, env=bare, capture_output=True, text=True, timeout=HANG, check=False
        )
        return done.returncode, done.stdout

    page = area / "goldens" / "page.txt"
    assert pytest_says("--update-goldens")[0] == 0
    assert page.read_text() == "===== 80 =====\nshown\n"
    page.write_text(page.read_text() + "===== 120 =====\nold\n")
    status, output = pytest_says("--unused-goldens")
    assert (status, f"no test asked for the golden {page} 120" in output, "1 passed" in output) == (1, True, True)
