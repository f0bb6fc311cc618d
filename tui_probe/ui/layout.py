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

MIN_SIZE = (60, 15)
"""Columns and rows of the smallest terminal."""
SIDE_BY_SIDE = 240
"""Columns of a terminal from which on the page is right of the table."""
_BARS = 5
"""Rows for title, keys, and the lines of the frames; one more where the table has a line below it."""
_SEPARATE_FROM = 30
"""Rows of a terminal from which on each panel has a whole frame."""
PREVIEW_ROWS = 5
"""Rows of the preview at least: those of the lowest chart, with its title and axis (``pages.kernel_detail``)."""
_TALLER_BY = 5
"""Further rows of a tall preview, of those that the table leaves empty."""
_MIN_PREVIEW_SIZE = (100, 40)
"""Columns and rows of the smallest terminal with a preview."""


@dataclass(frozen=True)
class Arrangement:
    """``adjacent``: the page right of the table, else below it. ``table_cells``: the table's columns or rows."""

    adjacent: bool
    table_cells: int
    preview: int = 0
    """Rows of the preview of the selected kernel, below the table; 0: there is no room for it."""
    separate: bool = True
    """The frame of the table has a line of its own below it."""

    @property
    def _edges(self) -> int:
        """Rows of the frames of table and preview: the line above the table, others where there are such."""
        return 1 + (1 if self.separate else 0) + (2 if self.preview else 0)

    def apply(self, screen: Screen[Any], *, zoomed: bool, in_table: bool) -> None:
        """Give table, preview and page of a screen their cells; ``zoomed``: only the one with the keys is visible."""
        adjacent = self.adjacent and not zoomed
        left_pane, preview = screen.query_one("#left"), screen.query_one("#preview")
        screen.query_one("#body").set_class(adjacent, "adjacent")
        left_pane.styles.width = self.table_cells if adjacent else "1fr"
        left_pane.styles.height = "1fr" if self.adjacent or zoomed else self.table_cells + self.preview + self._edges
        left_pane.set_class(zoomed and not in_table, "hidden")
        preview.styles.height = self.preview
        for part in (preview, *screen.query("#preview_title, #preview_end")):
            part.set_class(zoomed or not self.preview, "hidden")
        screen.query_one("#table_end").set_class(not self.separate and not self.adjacent and not zoomed, "hidden")
        screen.query_one("#tabs", TabBar).edge = "top" if self.separate or adjacent or zoomed else "middle"
        screen.query_one("#right").set_class(zoomed and in_table, "hidden")


def arrangement(
    width: int, height: int, kernels: int | None = None, *, complete: bool = False, tall_preview: bool = False
) -> Arrangement | None:
    """Divide a terminal of this size for a number of kernels (None: not known); None if it is too small.

    ``complete``: no more kernels come, so that the page below has the rows that the table leaves empty.
    ``tall_preview``: the preview has content for some of these rows.
    """
    if width < MIN_SIZE[0] or height < MIN_SIZE[1]:
        return None
    has_preview = width >= _MIN_PREVIEW_SIZE[0] and height >= _MIN_PREVIEW_SIZE[1]
    preview = PREVIEW_ROWS if has_preview else 0
    separate = height >= _SEPARATE_FROM
    adjacent = width >= SIDE_BY_SIDE
    rows = height - _BARS - (1 if separate else 0) - (preview + 2 if has_preview else 0)
    table = rows if adjacent else max(5, rows * 2 // 5)
    if has_preview and tall_preview and kernels is not None and 1 + kernels + _TALLER_BY <= table:
        table, preview = table - _TALLER_BY, preview + _TALLER_BY
    if complete and kernels:
        table = min(table, 1 + kernels)
    return Arrangement(adjacent, width // 2 if adjacent else table, preview, separate)


def too_small_text(width: int, height: int) -> str:
    """Return the message for a terminal that is too small."""
    return f"{width}×{height} is too small: {MIN_SIZE[0]}×{MIN_SIZE[1]} needed"


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
    base = Style.parse(palette.base)
    if base.bgcolor is None or base.color is None:
        return replace(BUILTIN_THEMES["ansi-dark" if palette.dark else "ansi-light"], name=palette.name)
    ground, text = (color.get_truecolor().hex for color in (base.bgcolor, base.color))
    return Theme(name=palette.name, primary=text, foreground=text, background=ground, surface=ground, dark=palette.dark)
