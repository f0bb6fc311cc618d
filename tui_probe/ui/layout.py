"""Layout of panes on terminals of different sizes, style sheet and theme."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.style import Style
from textual.theme import BUILTIN_THEMES, Theme

from tui_probe.ui.widgets.pane import TabBar

if TYPE_CHECKING:
    from textual.screen import Screen

    from tui_probe.draw.palette import Palette

SMALLEST = (60, 15)
SIDE_BY_SIDE = 240
_BARS = 5
"""Rows for title, keys, and the lines of the frames; one more where the table has a line below it."""
_SEPARATE_FROM = 30
"""Rows of a terminal from which on each panel has a whole frame."""
PREVIEW = 5
"""Rows of the preview: see ``pages.kernel_detail``."""
_MORE = 5
"""Rows that it takes of those that the table leaves empty."""
_FOR_PREVIEW = (100, 40)
"""The smallest terminal that has one."""


@dataclass(frozen=True)
class Arrangement:
    """``adjacent``: the page right of the table, else below it. ``table_cells``: the table's columns or rows."""

    adjacent: bool
    table_cells: int
    preview: int = 0
    """Rows of the preview of the selected kernel, below the table; 0: there is no room for it."""
    separate: bool = True
    """The frame of the table has a line of its own below it."""

    def apply(self, screen: Screen[Any], *, zoomed: bool, in_table: bool) -> None:
        """Give table, preview and page of a screen their cells; ``zoomed``: only the one with the keys is visible."""
        adjacent = self.adjacent and not zoomed
        left, preview = screen.query_one("#left"), screen.query_one("#preview")
        screen.query_one("#body").set_class(adjacent, "adjacent")
        left.styles.width = self.table_cells if adjacent else "1fr"
        edges = 1 + 2 * bool(self.preview) + self.separate
        left.styles.height = "1fr" if self.adjacent or zoomed else self.table_cells + self.preview + edges
        left.set_class(zoomed and not in_table, "hidden")
        preview.styles.height = self.preview
        for part in (preview, *screen.query("#preview_title, #preview_end")):
            part.set_class(zoomed or not self.preview, "hidden")
        screen.query_one("#table_end").set_class(not self.separate and not self.adjacent and not zoomed, "hidden")
        screen.query_one("#tabs", TabBar).edge = "top" if self.separate or adjacent or zoomed else "middle"
        screen.query_one("#right").set_class(zoomed and in_table, "hidden")


def arrangement(width: int, height: int, kernels: int | None = None, *, complete: bool = False) -> Arrangement | None:
    """Divide a terminal of this size for a number of kernels (None: not known); None if it is too small.

    ``complete``: no more kernels come, so that the page below has the rows that the table leaves empty.
    """
    if width < SMALLEST[0] or height < SMALLEST[1]:
        return None
    preview = PREVIEW if width >= _FOR_PREVIEW[0] and height >= _FOR_PREVIEW[1] else 0
    separate = height >= _SEPARATE_FROM
    adjacent = width >= SIDE_BY_SIDE
    rows = height - _BARS - separate - preview - 2 * bool(preview)
    table = rows if adjacent else max(5, rows * 2 // 5)
    more = _MORE if preview and kernels is not None and 1 + kernels + _MORE <= table else 0
    shown = min(table - more, 1 + kernels) if complete and kernels else table - more
    return Arrangement(adjacent, width // 2 if adjacent else shown, preview + more, separate)


def needed(width: int, height: int) -> str:
    """Return the message for a terminal that is too small."""
    return f"{width}×{height} is too small: {SMALLEST[0]}×{SMALLEST[1]} needed"


# The style sheet of the application: that of a screen cannot name the screen itself.
#
STYLE = """
ViewScreen { background: $background; overflow: hidden; }
#body { layout: vertical; height: 1fr; }
#body.adjacent { layout: horizontal; }
#left { layout: vertical; width: 1fr; }
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
