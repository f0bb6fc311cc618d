"""No two modules of the screen need each other, not even to name a type."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import tui_probe.ui

ROOT = Path(tui_probe.ui.__file__).parents[1]


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path, modules: set[str]) -> set[str]:
    """The modules that a file imports anywhere in it, those under TYPE_CHECKING and in functions, too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= (inside & modules) or {node.module}
    return (names & modules) - {name_of(path)}


def circle(files: list[Path]) -> list[str]:
    """The modules of a circle, the first of them at the end again; none if there is no circle."""
    modules = {name_of(path) for path in files}
    try:
        TopologicalSorter({name_of(path): imported(path, modules) for path in files}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_circle_between_modules_of_the_screen() -> None:
    files = list((ROOT / "ui").rglob("*.py"))
    assert len(files) > 40
    assert " → ".join(circle(files)) == ""


@pytest.mark.parametrize(
    "line", ["import tui_probe.ui.two", "from tui_probe.ui import two", "from tui_probe.ui.two import x"]
)
def test_a_circle_is_found(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.ui.test_circles.ROOT", tmp_path / "tui_probe")
    files = [tmp_path / "tui_probe" / "ui" / f"{name}.py" for name in ("one", "two")]
    files[0].parent.mkdir(parents=True)
    files[0].write_text(f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {line}\n")
    files[1].write_text("def f():\n    from tui_probe.ui.one import g\n")
    assert set(circle(files)) == {"tui_probe.ui.one", "tui_probe.ui.two"}
