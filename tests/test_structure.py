"""The structure of the code: modules import each other in no circle, and front ends hold no analysis.

import-linter holds the floors (``pyproject.toml``), which are whole packages. Here each module is looked at, with what
it imports for types only and in functions.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("tui_probe", "probes")
IMPORT = (ast.Import, ast.ImportFrom)
GROUP = re.compile(r"\|?\)(?:[*+?]|\{\d*,?\d*\})\+")
"""The end of a possessive group."""
FRONT_ENDS = ("tui_probe.cli.", "tui_probe.ui.")
ARRAYS_IN_FRONT_ENDS = {"tui_probe.ui.views.log"}  # the numbers of the lines that a filter of a log chose


def imports(root: Path, patterns: list[str] | None = None) -> dict[str, set[str]]:
    """Return the imports of each module of the packages under ``root``, by dotted names; also names of no module.

    ``patterns`` receives the strings with a possessive group, and where they are.
    """
    targets = {}
    for path in (path for package in PACKAGES for path in (root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        package = parts[:-1]
        name = ".".join(package if parts[-1] == "__init__" else parts)
        targets[name] = set[str]()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, IMPORT):
                targets[name].update(_targets(node, package))
            elif patterns is not None and isinstance(node, ast.Constant) and isinstance(node.value, str):
                patterns += [f"{path.relative_to(root)}:{node.lineno}: {m[0]}" for m in GROUP.finditer(node.value)]
    return targets


def _targets(node: ast.Import | ast.ImportFrom, package: tuple[str, ...]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    else:
        above = package[: len(package) - node.level + 1] if node.level else ()
        base = ".".join((*above, *([node.module] if node.module else [])))
        for alias in node.names:
            yield f"{base}.{alias.name}"


def between_modules(found: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The modules among them that each imports: of ``from a.b import c`` the module ``a.b.c``, else ``a.b``."""

    def module(target: str) -> str:
        return target if target in found else target.rpartition(".")[0]

    return {name: ({module(target) for target in targets} & found.keys()) - {name} for name, targets in found.items()}


def a_circle(graph: Mapping[str, set[str]]) -> list[str]:
    """One of the circles, from a module back to it; [] if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


@pytest.fixture(scope="module")
def read() -> tuple[dict[str, set[str]], list[str]]:
    """Imports and possessive groups: to parse all files takes two seconds."""
    groups: list[str] = []
    return imports(ROOT, groups), groups


@pytest.fixture
def found(read: tuple[dict[str, set[str]], list[str]]) -> dict[str, set[str]]:
    return read[0]


def test_modules_import_each_other_in_no_circle(found: dict[str, set[str]]) -> None:
    assert a_circle(between_modules(found)) == []


@pytest.mark.parametrize(
    "line",
    ["import tui_probe.b", "from tui_probe import b", "from . import b", "from tui_probe.b import thing",
     "def late():\n    from .b import thing", "if TYPE_CHECKING:\n    from tui_probe.b import Thing"],
)  # fmt: skip
def test_a_circle_is_found_however_it_is_written(tmp_path: Path, line: str) -> None:
    package = tmp_path / "tui_probe"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text(line)
    (package / "b.py").write_text("from tui_probe.a import other")
    assert set(a_circle(between_modules(imports(tmp_path)))) == {"tui_probe.a", "tui_probe.b"}
    (package / "b.py").write_text("import os")
    assert a_circle(between_modules(imports(tmp_path))) == []


def test_every_room_has_its_floor(found: dict[str, set[str]]) -> None:
    """A package that no contract names could import anything."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    placed = {room.strip() for layer in layers for room in layer.split("|")}
    rooms = {".".join(name.split(".")[:2]) for name in found if name.startswith("tui_probe.")}
    assert rooms - {"tui_probe.__main__"} | {"probes"} == placed


def test_architecture_shows_the_layers() -> None:
    """The picture in ARCHITECTURE.md has the lines of the contract, in its order."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    expected = [layer.replace("tui_probe.", "").split(" | ") for layer in layers]
    picture = (ROOT / "ARCHITECTURE.md").read_text().split("```")[1].split("\n\n")[0].strip().splitlines()
    shown = [re.match(r"\w+(?: \| \w+)*", line.replace("/NAME", "")) for line in picture]
    assert [line and line[0].split(" | ") for line in shown] == expected


def test_front_ends_hold_no_analysis(found: dict[str, set[str]]) -> None:
    """Computations with arrays are below them: they show lines, and rows of tables."""
    front = {name: targets for name, targets in found.items() if name.startswith(FRONT_ENDS)}
    with_arrays = {
        name for name, targets in front.items() if any(target.split(".")[0] == "numpy" for target in targets)
    }
    assert with_arrays == ARRAYS_IN_FRONT_ENDS


def test_probes_are_known_only_by_name(found: dict[str, set[str]]) -> None:
    """Built-in probes are found by the registry as those of others are: no module of the package names one."""
    package = {name: targets for name, targets in found.items() if name.startswith("tui_probe")}
    assert {name for name, targets in package.items() if any("probes" in _parts(target) for target in targets)} == set()


def test_subcommands_do_not_know_what_dispatches_them(found: dict[str, set[str]]) -> None:
    """``cli.main`` imports them by name, so this would be a circle that no import shows."""
    main = "tui_probe.cli.main"
    knowing = {
        name for name, targets in found.items() if any(f"{target}.".startswith(f"{main}.") for target in targets)
    }
    assert knowing == {"tui_probe.entry"}


GLOBS = ("glob", "rglob", "iterdir")


def checks(statements: list[ast.stmt]) -> bool:
    """Return whether running these statements asserts something in any case; a loop is taken to run."""
    return any(_checks(statement) for statement in statements)


def _checks(node: ast.stmt) -> bool:
    match node:
        case ast.Assert():
            return True
        case ast.If():
            return checks(node.body) and checks(node.orelse)
        case ast.Try():
            caught = node.handlers and all(checks(handler.body) for handler in node.handlers)
            return checks(node.finalbody) or checks([*node.body, *node.orelse]) or bool(caught and checks(node.orelse))
        case ast.With() | ast.AsyncWith():
            return checks(node.body) or any("raises" in ast.unparse(item) for item in node.items)
        case ast.For() | ast.AsyncFor() | ast.While():
            return checks(node.body)
        case ast.Expr():  # such as golden(..), check_formats(..)
            return "golden" in (text := ast.unparse(node)) or "check" in text
    return False


def globs(node: ast.For) -> bool:
    """Return whether this loops over files, possibly none, and asserts something about each."""
    if not checks(node.body):
        return False
    calls = [call.func for call in ast.walk(node.iter) if isinstance(call, ast.Call)]
    return any(isinstance(call, ast.Attribute) and call.attr in GLOBS for call in calls)


def test_tests_assert_in_any_case() -> None:
    """Asserts that an ``if`` guards may never run; what loops over files asserts first that there are some."""
    vain = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        body = ast.parse(path.read_text()).body
        methods = (method for group in body if isinstance(group, ast.ClassDef) for method in group.body)
        for node in (*body, *methods):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                parts = list(ast.walk(node))
                has_assert = any(isinstance(part, ast.Assert) for part in parts)
                if (has_assert and not checks(node.body)) or any(
                    isinstance(part, ast.For) and globs(part) for part in parts
                ):
                    vain.append(f"{path.relative_to(ROOT)}::{node.name}")
    assert vain == []


def _parts(target: str) -> tuple[str, ...]:
    """``tui_probe.probes.dmat`` and ``probes.dmat``, but not ``tui_probe.cli.probes``."""
    return tuple(target.removeprefix("tui_probe.").split(".")[:1])


def test_driver_is_bound_in_one_module() -> None:
    """The package and its programs call the CUDA driver through one binding."""
    package = ROOT / "tui_probe"
    bound = {str(path.relative_to(package)) for path in package.rglob("*.py") if '"cuLaunchKernel"' in path.read_text()}
    assert bound == {"cuda_driver.py"}


def test_possessive_groups_end_with_an_empty_alternative(read: tuple[dict[str, set[str]], list[str]]) -> None:
    """Python before 3.11.5 takes what a failed attempt of a possessive group has read for a part of the match."""
    _, groups = read
    assert any(group.endswith("|)*+") for group in groups)
    assert [group for group in groups if not re.search(r"\|\)\S+$", group)] == []
