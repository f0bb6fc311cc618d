"""Where the user was on the screen of a trace when it was left, to begin there another time."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.json_data import parse_json
from tui_probe.trace.state_folder import read_state, write_state

if TYPE_CHECKING:
    from pathlib import Path

FILE: Final = "places.json"
MOST: Final = 200
"""Traces that are remembered, those left last."""


@dataclass(frozen=True)
class Place:
    """The kernel with its index, the page of the live screen, and that of the kernel's own, "" if that was not open.

    ``line`` is the line of ``pruned.ptx`` that one was on there, None for none. ``column`` is what the table is sorted
    by, "" for its usual order.
    """

    kernel: int | None = None
    page: str = ""
    kernel_page: str = ""
    column: str = ""
    reverse: bool = False
    line: int | None = None


def last_place(trace: Path) -> Place | None:
    """Where the user was; None where that is not known."""
    found = _places().get(str(trace.absolute()))
    if not isinstance(found, dict):
        return None
    usual = asdict(Place())
    said = {name: value for name, value in found.items() if name in usual and type(value) is type(usual[name])}
    numbers = {name: found[name] for name in ("kernel", "line") if type(found.get(name)) is int}
    return Place(**said | numbers)


def keep_place(trace: Path, place: Place) -> None:
    """Remember where the user was."""
    name = str(trace.absolute())
    known = [(path, each) for path, each in _places().items() if path != name]
    kept = dict([*known, (name, asdict(place))][-MOST:])
    write_state(FILE, json.dumps(kept))


def _places() -> dict[str, Any]:
    try:
        found = parse_json(read_state(FILE) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
