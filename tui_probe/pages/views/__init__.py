"""The views of a trace, each a module with a ``KIND``; imported only when it is used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tui_probe.probekit.kind import ViewKind

NAMES: Final[tuple[str, ...]] = (
    "summary",
    "ptx",
    "diff",
    "sass",
    "log",
    "launches",
    "dmat",
    "lines",
    "timeline",
    "blocks",
    "progress",
    "latency",
    "memory",
    "sectors",
    "source",
)


def kind_of(name: str) -> ViewKind:
    """The view of that name. Raises KeyError."""
    if name not in NAMES:
        raise KeyError(name)
    found: ViewKind = importlib.import_module(f"tui_probe.pages.views.{name}").KIND
    return found
