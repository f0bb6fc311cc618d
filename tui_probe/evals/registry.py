"""The evaluations that there are: each folder beside this module that is a package."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.errors import UsageError
from tui_probe.near import meant

if TYPE_CHECKING:
    from tui_probe.evals.evaluation import Evaluation

FOLDER: Final = Path(__file__).parent


@cache
def names() -> tuple[str, ...]:
    """The names of all, sorted; nothing is imported."""
    return tuple(sorted(module.parent.name for module in FOLDER.glob("*/__init__.py")))


def evaluation_named(name: str) -> Evaluation:
    """The evaluation of a name. Raises UsageError with the names that there are."""
    if name not in names():
        raise UsageError(f"there is no evaluation {name!r}{meant(name, names()) or '.'} There are {', '.join(names())}")
    found: Evaluation = import_module(f"tui_probe.evals.{name}").EVALUATION
    return found


def evaluations() -> list[Evaluation]:
    """All of them, by name."""
    return [evaluation_named(name) for name in names()]
