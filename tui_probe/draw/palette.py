"""Colours by role. Palettes whose hues stay apart for colour-blind eyes (after Okabe and Ito), and one without colour.

Nothing that draws names a colour: it names a role (``"failed"``), or several joined by ``+`` (``"failed+select"``), and
the words and glyphs next to it say the same, so a palette may leave colours out. Colours are those of the 256-colour
table: naming one takes half the bytes of an RGB triplet, and a screen is sent over slow lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.style import Style

if TYPE_CHECKING:
    from collections.abc import Iterable

# What a role means for a kernel, an event or a run; looked up before the palette.
ALIASES = {
    "probed": "good",
    "skipped": "dim",
    "failed": "bad",
    "excluded": "dim",
    "pending": "warn",
    "running": "accent",
    "finished": "good",
    "simulated": "note",
}
_WITHOUT_GROUND = {
    "title": "bold",
    "head": "bold",
    "tab_idle": "bold underline",
    "idle": "bold",
    "cursor": "reverse",
}


@dataclass(frozen=True)
class Palette:
    """A named set of styles. ``styles`` maps roles to Rich styles; ``base`` is the style of plain text."""

    name: str
    dark: bool
    base: str
    styles: dict[str, str]
    cache: dict[str, Style] = field(default_factory=dict, repr=False, compare=False)

    def style(self, role: str) -> Style:
        """Return the style of ``role``; unknown and empty roles are plain text."""
        style = self.cache.get(role)
        if style is None:
            parts = (self.styles.get(ALIASES.get(part, part), "") for part in role.split("+"))
            style = self.cache[role] = Style.combine([Style.parse(self.base), *map(Style.parse, parts)])
        return style


def _numbered_styles(stem: str, styles: Iterable[str]) -> dict[str, str]:
    """Styles of numbered roles: ``ramp0`` … is little to much of one thing, ``hue0`` … tells things apart."""
    return {f"{stem}{number}": style for number, style in enumerate(styles)}


def _numbered_colours(stem: str, colours: tuple[int, ...]) -> dict[str, str]:
    """Styles of numbered roles by their colours in the 256-colour table."""
    return _numbered_styles(stem, (f"color({colour})" for colour in colours))


DARK = Palette(
    name="dark",
    dark=True,
    base="color(252) on color(233)",
    styles={
        "dim": "color(246)",
        "soft": "color(250)",
        "title": "bold color(231)",
        "head": "bold color(246)",
        "accent": "color(74)",
        "good": "color(36)",
        "warn": "color(214)",
        "bad": "bold color(209)",
        "note": "color(175)",
        "key": "bold color(74)",
        "rule": "color(240)",
        "bar": "on color(235)",
        "tab": "bold color(231) on color(24)",
        "tab_idle": "bold on color(237)",
        "select": "color(231) on color(24)",
        "idle": "on color(237)",
        "cursor": "color(233) on color(252)",
        "match": "color(16) on color(221)",
        "match_other": "underline color(221)",
        "added": "color(221)",
        "changed": "bold color(221)",
        "code_keyword": "color(111)",
        "code_type": "color(79)",
        "code_name": "color(223)",
        "code_string": "color(150)",
        "code_number": "color(180)",
        "code_comment": "color(246)",
        **_numbered_colours("ramp", (66, 67, 73, 74, 80, 81, 117, 153)),
        **_numbered_colours("hue", (74, 214, 36, 175, 221, 209, 111, 250)),
    },
)

LIGHT = Palette(
    name="light",
    dark=False,
    base="color(235) on color(255)",
    styles={
        "dim": "color(241)",
        "soft": "color(238)",
        "title": "bold color(16)",
        "head": "bold color(241)",
        "accent": "color(25)",
        "good": "color(23)",
        "warn": "color(94)",
        "bad": "bold color(124)",
        "note": "color(90)",
        "key": "bold color(25)",
        "rule": "color(248)",
        "bar": "on color(253)",
        "tab": "bold color(16) on color(153)",
        "tab_idle": "bold on color(252)",
        "select": "color(16) on color(153)",
        "idle": "on color(252)",
        "cursor": "color(255) on color(235)",
        "match": "color(16) on color(221)",
        "match_other": "underline color(94)",
        "added": "color(94)",
        "changed": "bold color(94)",
        "code_keyword": "color(19)",
        "code_type": "color(23)",
        "code_name": "color(54)",
        "code_string": "color(58)",
        "code_number": "color(90)",
        "code_comment": "color(241)",
        **_numbered_colours("ramp", (60, 25, 24, 23, 19, 18, 17, 16)),
        **_numbered_colours("hue", (25, 94, 23, 90, 58, 124, 54, 240)),
    },
)

DISTINCT = Palette(
    name="distinct",
    dark=True,
    base="color(255) on color(16)",
    styles={
        **DARK.styles,
        "dim": "color(249)",
        "soft": "color(252)",
        "cursor": "color(16) on color(255)",
        **_numbered_colours("hue", (30, 226, 84, 213, 195, 166, 99, 137)),
    },
)
"""Black, and eight hues of the 256-colour table that are as far apart as can be for eyes of every kind."""


ANSI = Palette(
    name="ansi",
    dark=True,
    base="",
    styles={
        **_WITHOUT_GROUND,
        "tab": "bold black on cyan",
        "select": "black on cyan",
        "dim": "dim",  # bright black is the ground itself in some terminals' colours
        "accent": "cyan",
        "good": "green",
        "warn": "yellow",
        "bad": "bold red",
        "note": "magenta",
        "key": "bold cyan",
        "rule": "dim",
        "match": "black on yellow",
        "match_other": "underline yellow",
        "added": "yellow",
        "changed": "bold yellow",
        "code_keyword": "bright_blue",
        "code_type": "cyan",
        "code_name": "bold",
        "code_string": "green",
        "code_number": "magenta",
        "code_comment": "dim",
        **_numbered_styles("ramp", ("blue", "blue", "cyan", "cyan", "bright_cyan", "bright_cyan", "white", "bold")),
        **_numbered_styles("hue", ("cyan", "yellow", "green", "magenta", "bright_yellow", "red", "blue", "white")),
    },
)

PLAIN = Palette(
    name="plain",
    dark=True,
    base="",
    styles={
        **_WITHOUT_GROUND,
        "bar": "reverse",
        "tab": "bold reverse",
        "select": "reverse",
        "bad": "bold",
        "key": "bold",
        "match": "bold reverse",
        "match_other": "underline",
        "changed": "bold underline",
    },
)

PALETTES = {palette.name: palette for palette in (DARK, LIGHT, DISTINCT, ANSI, PLAIN)}
