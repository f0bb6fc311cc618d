"""What the user wants to be run when the screen has ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Again:
    """The program of ``trace`` is to run once more, with these options of ``run`` in place of those that it had."""

    trace: Path
    options: tuple[str, ...] = ()
