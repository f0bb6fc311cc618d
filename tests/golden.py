"""Golden texts: what the tests show, in files that people read, with one function to compare and one switch to write.

The goldens of a test module are in the folder ``goldens`` next to it. A file holds one text, or several *parts*, such
as a page at several sizes, each below a line ``===== 80x24 =====``.

A text in ASCII is mostly the translation of the Unicode one. Then no second text is kept: what was drawn in ASCII is
compared with the translation. Where both truly differ, the part ``80x24 ascii`` holds the other one.

``pytest --update-goldens`` writes what the tests of the run show. ``pytest --unused-goldens`` fails when a golden is
left that no test asked for; with both switches it is deleted.
"""

from __future__ import annotations

import difflib
import fcntl
import re
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from tui_probe.draw.spans import to_ascii

Parts = dict[str, str]
TESTS = Path(__file__).parent
ASCII = "ascii"
HEADING = re.compile(r"^===== (.+) =====\n", re.MULTILINE)


def golden(name: str, text: str, part: str = "", *, ascii_only: bool = False, width: int | None = None) -> None:
    """Compare a text with the golden file ``name`` of the running test's module, or with a part of it.

    ``ascii_only`` says that it was drawn in ASCII; ``width`` is the number of cells that no line may exceed.
    """
    __tracebackhide__ = True
    assert not ascii_only or text.isascii()
    assert width is None or max(map(cell_len, text.split("\n"))) <= width
    problem = run.problem(run.folder / name, text, part, ascii_only=ascii_only)
    if problem:
        pytest.fail(problem)


# -- files


def parts_of(content: str) -> Parts:
    """The parts of a file by their names; what is before the first heading has the name ``""``."""
    first, *others = HEADING.split(content)
    named = dict(zip(others[::2], others[1::2], strict=True))
    return {"": first, **named} if first or not named else named


def content_of(parts: Parts) -> str:
    """A file of these parts, in an order that does not depend on which test ran first."""
    return "".join(f"===== {name} =====\n{parts[name]}" if name else parts[name] for name in sorted(parts, key=order))


def order(name: str) -> list[tuple[bool, int, str]]:
    """Numbers by value, so that 80x24 is before 120x40."""
    return [(not word.isdigit(), int(word) if word.isdigit() else 0, word) for word in re.findall(r"\d+|\D+", name)]


def variant(part: str) -> str:
    """The name of the part that holds the ASCII text, where it is not a translation."""
    return f"{part} {ASCII}".strip()


def without_translations(parts: Parts) -> Parts:
    """Only what says something: an ASCII text that is the translation of its Unicode text goes."""
    translated = {variant(name): to_ascii(text) for name, text in parts.items()}
    return {name: text for name, text in parts.items() if translated.get(name) != text}


def read(path: Path) -> Parts:
    return parts_of(path.read_bytes().decode()) if path.exists() else {}


def write(path: Path, parts: Parts) -> None:
    """An empty file is none."""
    if not parts:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content_of(parts).encode())


# -- a run of pytest


class Run:
    """Goldens that the tests of one process used."""

    def __init__(self, *, update: bool = False) -> None:
        self.update = update
        self.folder = Path()
        """Of the goldens of the test that runs."""
        self.asked: set[tuple[Path, str]] = set()
        self.passed: dict[Path, bool] = {}
        """By the folder of test modules, whether every test passed in those that name goldens."""
        self._kept: dict[Path, Parts] = {}
        self._shown: dict[Path, Parts] = {}

    def problem(self, path: Path, text: str, part: str, *, ascii_only: bool) -> str:
        """Return the difference between text and golden, or why it cannot be one; empty if it is as expected."""
        if part and not text.endswith("\n"):
            return f"{path.name}, {part}: a part of a file ends with a line end"
        if HEADING.search(text):
            return f"{path.name}: a golden has no line like a heading of its parts, ===== NAME ====="
        name = variant(part) if ascii_only else part
        self.asked.add((path, name))
        if self.update:
            before = self._shown.setdefault(path, {}).setdefault(name, text)
            return "" if before == text else difference(path, f"{name}, shown before by another test", before, text)
        parts = self.kept(path)
        if ascii_only and name not in parts and part in parts:
            return difference(path, f"{part}, in ASCII", to_ascii(parts[part]), text)
        if name not in parts:
            return f"{path}: no golden{f' {name!r}' if name else ''} yet; pytest --update-goldens writes it"
        return difference(path, name, parts[name], text)

    def kept(self, path: Path) -> Parts:
        if path not in self._kept:
            self._kept[path] = read(path)
        return self._kept[path]

    def write(self) -> None:
        """Write what was shown into the files, also while other processes of this run do so."""
        with Path(__file__).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for path, shown in self._shown.items():
                write(path, without_translations(read(path) | shown))

    def unused(self, roots: list[Path]) -> list[tuple[Path, str]]:
        """Goldens below these folders that no test asked for; not of folders where a test that asks did not pass."""
        folders = {folder for root in roots for folder in root.rglob("goldens") if self.passed.get(folder.parent)}
        paths = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
        return [(path, part) for path in paths for part in read(path) if (path, part) not in self.asked]


def difference(path: Path, name: str, before: str, after: str) -> str:
    """Return the changed lines; empty without a change."""
    if before == after:
        return ""
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), "golden", "shown", n=2, lineterm="")
    title = f"{path}{f' ({name})' if name else ''}: the text changed; pytest --update-goldens writes it anew"
    return "\n".join([title, *lines])


run = Run()


# -- the switches


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write golden texts instead of comparing")
    parser.addoption("--unused-goldens", action="store_true", help="fail for goldens that no test asked for")


def pytest_configure(config: pytest.Config) -> None:
    run.update = config.getoption("--update-goldens")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    run.folder = item.path.parent / "goldens"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    module = TESTS.parent / report.nodeid.partition("::")[0]
    asks = not report.passed and "golden" in module.read_text(encoding="utf-8")
    run.passed[module.parent] = run.passed.get(module.parent, True) and not asks


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A process of pytest-xdist has ended: what its tests asked for."""
    run.asked |= {(Path(path), part) for path, part in getattr(node, "workeroutput", {}).get("goldens", ())}


def pytest_sessionfinish(session: pytest.Session) -> None:
    run.write()
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["goldens"] = [(str(path), part) for path, part in run.asked]
        return
    left = unused(session.config)
    if run.update:
        for path, part in left:
            write(path, {name: text for name, text in read(path).items() if name != part})
    elif left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for path, part in unused(config):
        terminalreporter.write_line(f"no test asked for the golden {path} {part}".rstrip(), red=True)


def unused(config: pytest.Config) -> list[tuple[Path, str]]:
    """Report unused goldens in the directories that pytest was given; a run of selected tests reports none."""
    chosen = config.getoption("keyword") or config.getoption("markexpr") or not config.getoption("--unused-goldens")
    return [] if chosen else run.unused([Path(argument).resolve() for argument in config.args])
