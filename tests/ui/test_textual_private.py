"""Private names of Textual: those used exist, and one module uses them."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest
import textual
from textual.app import App
from textual.driver import Driver
from textual.message_pump import MessagePump

import tui_probe.ui

UI = Path(tui_probe.ui.__file__).parent
HOME = "ui/textual_private.py"
USED: dict[str, dict[str, tuple[str, ...] | None]] = {
    "textual.app.App": {
        "_driver": None,
        "_check_bindings": ("self", "key", "priority"),
        "_handle_exception": ("self", "error"),
        "_return_code": None,
        "_exception": None,
        "_exception_event": None,
        "_close_messages_no_wait": ("self",),
        "_display": ("self", "screen", "renderable"),
        "_running": None,
        "_closed": None,
        "_batch_count": None,
    },
    "textual.screen.Screen": {"_compositor": None, "_repaint_required": None},
    "textual._compositor.Compositor": {"render_partial_update": ("self",)},
    "textual._compositor.LayoutUpdate": {},
    "textual.widget.Widget": {"_exchange_repaint_regions": ("self",)},
    "textual._compositor.ChopsUpdate": {"render_segments": ("self", "console")},
    "textual.message.Message": {"_stop_propagation": None},
    "textual.drivers.linux_driver.LinuxDriver": {
        "_file": None,
        "_get_terminal_size": ("self",),
        "_writer_thread": None,
    },
    "textual.drivers._writer_thread.WriterThread": {"_queue": None},
}
"""The private names, and the parameters of those that are called or replaced."""


def has(owner: type, name: str) -> bool:
    """Does a class have a name, or do its objects get it when they are made?"""
    made = (getattr(vars(base).get("__init__"), "__code__", None) for base in owner.__mro__)
    return hasattr(owner, name) or any(code is not None and name in code.co_names for code in made)


def gone(owner: str, name: str) -> str:
    return f"Textual {textual.__version__} no longer has {owner}.{name}; see {HOME}"


@pytest.mark.parametrize(("path", "name"), [(path, name) for path, names in USED.items() for name in names])
def test_textual_has_what_is_used(path: str, name: str) -> None:
    module, _, word = path.rpartition(".")
    try:
        owner = getattr(importlib.import_module(module), word)
    except (ImportError, AttributeError):
        pytest.fail(gone(module, word))
    assert has(owner, name), gone(word, name)
    parameters = USED[path][name]
    if parameters is not None:
        actual = tuple(inspect.signature(getattr(owner, name)).parameters)
        assert actual == parameters, f"Textual {textual.__version__} calls {word}.{name}{actual}; see {HOME}"


def test_missing_private_name_is_reported() -> None:
    assert not has(App, "_no_such_thing")
    assert gone("App", "_foo") == f"Textual {textual.__version__} no longer has App._foo; see ui/textual_private.py"


def attributes(tree: ast.AST) -> set[tuple[str, str]]:
    """The private names that are read or set, each with the word before its dot."""
    return {
        (node.value.id if isinstance(node.value, ast.Name) else "", node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
    }


def functions(tree: ast.AST) -> set[str]:
    """The private names of functions."""
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


def test_the_table_names_all_that_the_module_uses() -> None:
    tree = ast.parse((UI / "textual_private.py").read_text())
    assert {name for _, name in attributes(tree)} | functions(tree) == {
        name for names in USED.values() for name in names if name.startswith("_")
    }


def classes() -> list[type]:
    """The classes of the screen that are made of Textual's."""
    owners = {}
    for path in UI.rglob("*.py"):
        module = ".".join(("tui_probe", "ui", *path.relative_to(UI).with_suffix("").parts)).removesuffix(".__init__")
        for member in vars(importlib.import_module(module)).values():
            if isinstance(member, type) and issubclass(member, MessagePump | Driver) and member.__module__ == module:
                owners[member] = path
    return [each for each, path in owners.items() if path.name != "textual_private.py"]


def test_no_class_uses_or_shadows_a_private_name_of_textual() -> None:
    assert len(classes()) > 20
    for own in classes():
        bases = [base for base in own.__mro__ if base.__module__.startswith("textual")]
        tree = ast.parse(inspect.getsource(own))
        names = {name for word, name in attributes(tree) if word == "self"} | functions(tree)
        taken = {name for name in names if any(has(base, name) for base in bases)}
        assert not taken, f"{own.__name__}: {taken} belong to Textual; see {HOME}"


def test_no_module_reaches_into_other_objects() -> None:
    paths = [*UI.rglob("*.py")]
    assert paths
    for path in paths:
        tree = ast.parse(path.read_text())
        reached = {f"{word}.{name}" for word, name in attributes(tree) if word not in ("self", "cls")}
        if path.name == "textual_private.py":
            known = ("message._stop_propagation", "writer._queue", "widget._exchange_repaint_regions")
            reached -= {
                *known,
                "screen._repaint_required",
                "screen._compositor",
                "._display",
                "._get_terminal_size",
            }  # the last two of super()
        assert not reached, f"{path.name}; see {HOME}"


def test_no_private_module_is_imported_elsewhere() -> None:
    imports = [
        (path.name, f"{node.module}.{alias.name}")
        for path in UI.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("textual")
        for alias in node.names
    ]
    private = {file for file, name in imports if any(word.startswith("_") for word in name.split("."))}
    assert private == {"textual_private.py"}
