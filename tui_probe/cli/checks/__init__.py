"""Checks of ``doctor``: each module checks one side of the machine and returns items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "optional", "warn", "missing"]
"""``optional``: it is not there, and no command that profiles needs it; the advice says what it would give."""


@dataclass(frozen=True)
class Item:
    """One thing that was looked at: what was found, and what to do if that is not enough."""

    name: str
    state: State
    found: str
    advice: str = ""
