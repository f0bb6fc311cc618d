"""What ``doctor`` looks at: each module checks one side of the machine and returns items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "missing"]


@dataclass(frozen=True)
class Item:
    """One thing that was looked at: what was found, and what to do if that is not enough."""

    name: str
    state: State
    found: str
    advice: str = ""
