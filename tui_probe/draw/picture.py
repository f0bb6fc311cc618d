"""A view as a picture: SVG of its text through rich, PNG through matplotlib where that is installed."""

from __future__ import annotations

import importlib
import io
from html import escape
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tui_probe.draw.palette import DARK
from tui_probe.draw.printable import printable
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import clip, width
from tui_probe.draw.view import Document
from tui_probe.errors import ChoiceError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.color import Color

    from tui_probe.draw.palette import Palette
    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import View

NO_MATPLOTLIB: Final = "a PNG needs matplotlib: pip install 'tui-probe[png]', or write an SVG instead"
_INCHES: Final = (14.0, 8.0)
"""Width and height of a drawing in a PNG."""
_DOTS_PER_INCH: Final = 120
_MAX_LINES: Final = 400
"""Maximum lines of a text in a picture."""
_BUTTON_CELLS: Final = 16
"""Cells at both sides of the title, for the buttons of the window."""
_MIN_NAME_CELLS: Final = 12
"""Cells of a kernel's name in a title at least."""
_CELL_INCHES: Final = (0.085, 0.19)
"""Inches of a character cell in a PNG."""


def svg_text(lines: Sequence[Line], cells: int, title: str, palette: Palette = DARK) -> str:
    """Return the lines as an SVG drawing of a terminal, in the colours of a palette."""
    base = Style.parse(palette.base)
    text, ground = _triplet(base.color, (208, 208, 208)), _triplet(base.bgcolor, (18, 18, 18))
    theme = TerminalTheme(ground, text, [(0, 0, 0)] * 8)
    console = Console(record=True, width=cells, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines[:_MAX_LINES]:
        parts = ((printable(part), palette.style(role)) for part, role in line)
        console.print(Text.assemble(*parts), no_wrap=True, crop=True)
    svg = console.export_svg(title=picture_title(title, cells - _BUTTON_CELLS), theme=theme)
    # Some viewers drop the spaces at the start of a text otherwise. Browsers show the whole title in their tab.
    svg = svg.replace("<text ", '<text xml:space="preserve" ')
    return svg.replace(">", f"><title>{escape(printable(title))}</title>", 1)


def picture_title(title: str, cells: int) -> str:
    """Return a title that fits: of ``SASS of void at::f<…>(…)`` the name of the kernel is shortened."""
    view, separator, name = printable(title).partition(" of ")
    if not separator or width(title) <= cells:
        return clip(printable(title), max(1, cells))
    return clip(view + separator + shorten(name, max(_MIN_NAME_CELLS, cells - width(view + separator))), max(1, cells))


def _triplet(color: Color | None, otherwise: tuple[int, int, int]) -> tuple[int, int, int]:
    """Red, green and blue of a colour."""
    if color is None:
        return otherwise
    red, green, blue = color.get_truecolor()
    return red, green, blue


def write_svg(path: Path, lines: Sequence[Line], cells: int, title: str) -> None:
    """Write the lines as SVG. OSError if the file cannot be written."""
    path.write_text(svg_text(lines, cells, title), encoding="utf-8")


def write_png(path: Path, view: View, lines: Sequence[Line], cells: int) -> None:
    """Write a drawing with its axes, or the text of a document. ChoiceError without matplotlib."""
    try:
        figures: Any = importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise ChoiceError(NO_MATPLOTLIB) from error
    if isinstance(view, Document):
        picture_lines = lines[:_MAX_LINES]
        figure = figures.Figure(figsize=(cells * _CELL_INCHES[0], max(1, len(picture_lines)) * _CELL_INCHES[1]))
        _write_text(figure, picture_lines, cells, DARK)
    else:
        figure = figures.Figure(figsize=_INCHES, layout="constrained")
        axes = figure.add_subplot()
        view.plot(axes)
        if not axes.get_title():
            axes.set_title(_escape_formulas(printable(view.title)))
    figure.savefig(path, format="png", dpi=_DOTS_PER_INCH)


def _write_text(figure: Any, lines: Sequence[Line], cells: int, palette: Palette) -> None:
    """Characters at their cells: no font that may be found is exactly as wide as asked for."""
    ground = Style.parse(palette.base).bgcolor
    figure.set_facecolor(ground.get_truecolor().hex if ground else "white")
    for row, line in enumerate(lines):
        column = 0
        for text, role in line:
            color = palette.style(role).color
            for word in _words(text):
                if not word.isspace():
                    figure.text(
                        column / cells,
                        1 - (row + 0.8) / len(lines),
                        _escape_formulas(printable(word)),
                        family="monospace",
                        size=10,
                        color=color.get_truecolor().hex if color else "black",
                    )
                column += width(word)


def _escape_formulas(text: str) -> str:
    """Text in which matplotlib sees no formulas."""
    return text.replace("$", r"\$")


def _words(text: str) -> list[str]:
    """Return ``text`` in pieces that are all blanks or hold none."""
    pieces: list[str] = []
    for character in text:
        if pieces and pieces[-1].isspace() == character.isspace():
            pieces[-1] += character
        else:
            pieces.append(character)
    return pieces
