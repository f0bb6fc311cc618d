"""How the time between two lines of source is measured: no probe that comes along asks that, ``run --between`` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.ui.screens.picker import Choice

if TYPE_CHECKING:
    from collections.abc import Callable

HOW: Final = "on the page Source: m on the first line, m on the last, then R measures it"
"""What is said; it fits a line of 80 cells."""

BETWEEN_WORDS: Final = "how long is each warp there?"
"""What is asked once the lines are marked."""


def between_choice(value: str | Callable[[], None]) -> Choice:
    """A line of a list that leads to these words."""
    return Choice(
        "time between lines",
        "--between",
        value=value,
        also="ask measure two source from to mark",
    )
