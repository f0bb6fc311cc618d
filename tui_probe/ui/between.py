"""How the time between two lines of source is measured: no probe that comes along asks that, one's own does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.ui.screens.picker import Choice

if TYPE_CHECKING:
    from collections.abc import Callable

WAY: Final = "tui-probe new-probe NAME --at FILE:10-13, then run -p NAME.py -- COMMAND"
"""What is said; it fits a line of 80 cells."""


def between_choice(value: str | Callable[[], None]) -> Choice:
    """A line of a list that leads to these words."""
    return Choice(
        "time between lines",
        "new-probe",
        value=value,
        also="ask measure two source from to mark",
    )
