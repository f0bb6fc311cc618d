"""Textual's own theme under a palette: its ground shows where a palette has none."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.style import Style
from textual.theme import BUILTIN_THEMES, Theme

if TYPE_CHECKING:
    from tui_probe.draw.palette import Palette


def textual_theme(palette: Palette) -> Theme:
    """The theme with the ground and the text of a palette."""
    plain = Style.parse(palette.base)
    if plain.bgcolor is None or plain.color is None:
        return replace(BUILTIN_THEMES["ansi-dark" if palette.dark else "ansi-light"], name=palette.name)
    ground, text = (color.get_truecolor().hex for color in (plain.bgcolor, plain.color))
    return Theme(name=palette.name, primary=text, foreground=text, background=ground, surface=ground, dark=palette.dark)
