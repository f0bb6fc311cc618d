"""Layout of panes on terminals of different sizes, style sheet and theme."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.style import Style
from textual.theme import BUILTIN_THEMES, Theme

if TYPE_CHECKING:
    from textual.screen import Screen

    from tui_probe.draw.palette import Palette

SMALLEST = (60, 16)
SIDE_BY_SIDE = 240
_BARS = 4
PREVIEW = 5
"""Rows of the preview: see ``pages.kernel_detail``."""
_MORE = 5
"""Rows that it takes of those that the table leaves empty."""
_FOR_PREVIEW = (100, 40)
"""The smallest terminal that has one."""


@dataclass(frozen=True)
class Arrangement:
    """``beside``: the page right of the table, else below it. ``table_cells``: the table's columns or rows."""

    beside: bool
    table_cells: int
    preview: int = 0
    """Rows of the preview of the selected kernel, below the table; 0: there is no room for it."""

    def apply(self, screen: Screen[Any], *, alone: bool, in_table: bool) -> None:
        """Give table, preview and page of a screen their cells; ``alone``: only the one with the keys is visible."""
        beside = self.beside and not alone
        left, preview = screen.query_one("#left"), screen.query_one("#preview")
        screen.query_one("#body").set_class(beside, "beside")
        left.styles.width = self.table_cells if beside else "1fr"
        left.styles.height = "1fr" if self.beside or alone else self.table_cells + self.preview
        left.set_class(alone and not in_table, "hidden")
        preview.styles.height = self.preview
        preview.set_class(alone or not self.preview, "hidden")
        screen.query_one("#right").set_class(alone and in_table, "hidden")


def arrangement(width: int, height: int, kernels: int | None = None) -> Arrangement | None:
    """Divide a terminal of this size for a number of kernels (None: not known); None if it is too small."""
    if width < SMALLEST[0] or height < SMALLEST[1]:
        return None
    preview = PREVIEW if width >= _FOR_PREVIEW[0] and height >= _FOR_PREVIEW[1] else 0
    rows = height - _BARS - preview
    beside = width >= SIDE_BY_SIDE
    table = rows if beside else max(6, rows * 2 // 5)
    more = _MORE if preview and kernels is not None and 1 + kernels + _MORE <= table else 0
    return Arrangement(beside, width // 2 if beside else table - more, preview + more)


def needed(width: int, height: int) -> str:
    """Return the message for a terminal that is too small."""
    return f"{width}×{height} is too small: {SMALLEST[0]}×{SMALLEST[1]} needed"


# The style sheet of the application: that of a screen cannot name the screen itself.
#
# Textual sends a changed line from the left edge of its widget on, so what changes often (the place in the table) is
# a widget of its own.

STYLE = """
ViewScreen { background: $background; overflow: hidden; }
#top { layout: horizontal; height: 1; }
#place { width: 2fr; }
#top #title { width: 3fr; }
#body { layout: vertical; height: 1fr; }
#body.beside { layout: horizontal; }
#left { layout: vertical; width: 1fr; }
#rule { display: none; }
#body.beside #rule { display: block; }
#right { layout: vertical; width: 1fr; height: 1fr; }
.hidden { display: none; }
#small { display: none; }
.small > * { display: none; }
.small #small { display: block; }
"""


def textual_theme(palette: Palette) -> Theme:
    """The theme with the ground and the text of a palette."""
    plain = Style.parse(palette.base)
    if plain.bgcolor is None or plain.color is None:
        return replace(BUILTIN_THEMES["ansi-dark" if palette.dark else "ansi-light"], name=palette.name)
    ground, text = (color.get_truecolor().hex for color in (plain.bgcolor, plain.color))
    return Theme(name=palette.name, primary=text, foreground=text, background=ground, surface=ground, dark=palette.dark)
