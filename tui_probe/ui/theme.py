"""Colours by role. Three palettes whose hues stay apart for colour-blind eyes (Okabe and Ito), and one without colour.

Widgets never name a colour: they name a role (``"failed"``), or several joined by ``+`` (``"failed+select"``), and the
words and glyphs beside it say the same, so a palette may leave colours out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.style import Style
from textual.theme import Theme

# What a role means for a kernel, an event or a run; looked up before the palette.
ALIASES = {
    "probed": "good",
    "skipped": "dim",
    "failed": "bad",
    "filtered": "dim",
    "running": "accent",
    "finished": "good",
    "simulated": "note",
    "pending": "warn",
}


@dataclass(frozen=True)
class Palette:
    """A named set of styles. ``styles`` maps each role to a Rich style definition; ``ground`` is the background."""

    name: str
    dark: bool
    ground: str
    foreground: str
    styles: dict[str, str]
    native: bool = False
    cache: dict[str, Style] = field(default_factory=dict, repr=False, compare=False)

    def style(self, role: str) -> Style:
        """The style of ``role``; unknown and empty roles are plain text."""
        found = self.cache.get(role)
        if found is None:
            found = self.cache[role] = Style.combine([self._base(), *map(self._part, role.split("+"))])
        return found

    def _base(self) -> Style:
        return Style() if self.native else Style.parse(f"{self.foreground} on {self.ground}")

    def _part(self, role: str) -> Style:
        return Style.parse(self.styles.get(ALIASES.get(role, role), ""))

    def theme(self) -> Theme:
        """The Textual theme with the same ground, for the few stock widgets (an input line)."""
        return Theme(
            name=self.name,
            primary=self.foreground,
            foreground=self.foreground,
            background=self.ground,
            surface=self.ground,
            panel=self.ground,
            dark=self.dark,
            ansi=self.native,
        )


DARK = Palette(
    name="dark",
    dark=True,
    ground="#11161c",
    foreground="#d3d9e0",
    styles={
        "dim": "#8a95a3",
        "title": "bold #ffffff",
        "accent": "#56b4e9",
        "good": "#2fb58c",
        "warn": "#e69f00",
        "bad": "bold #f0762b",
        "note": "#d48fb6",
        "key": "bold #56b4e9",
        "rule": "#4a5663",
        "bar": "on #1b232c",
        "tab": "bold #ffffff on #24506e",
        "select": "#ffffff on #24506e",
        "idle": "on #222c37",
        "match": "#11161c on #f0e442",
        "match_other": "underline #f0e442",
        "head": "bold #8a95a3",
        "soft": "#a9b4c0",
        "tab_idle": "bold on #2a333d",
        "added": "#f0e442",
    },
)

LIGHT = Palette(
    name="light",
    dark=False,
    ground="#fbfaf7",
    foreground="#1e252c",
    styles={
        "dim": "#5c6773",
        "title": "bold #000000",
        "accent": "#005f95",
        "good": "#00694d",
        "warn": "#805300",
        "bad": "bold #9c3f00",
        "note": "#8a3b6f",
        "key": "bold #005f95",
        "rule": "#b3bac2",
        "bar": "on #eceae4",
        "tab": "bold #000000 on #bcdcf0",
        "select": "#000000 on #bcdcf0",
        "idle": "on #e4e8ec",
        "match": "#000000 on #f0e442",
        "match_other": "underline #6b5b00",
        "head": "bold #5c6773",
        "soft": "#434d57",
        "tab_idle": "bold on #dcdfe2",
        "added": "#6b5b00",
    },
)

ANSI = Palette(
    name="ansi",
    dark=True,
    ground="ansi_default",
    foreground="ansi_default",
    native=True,
    styles={
        "dim": "bright_black",
        "title": "bold",
        "accent": "cyan",
        "good": "green",
        "warn": "yellow",
        "bad": "bold red",
        "note": "magenta",
        "key": "bold cyan",
        "rule": "bright_black",
        "bar": "reverse",
        "tab": "bold reverse",
        "select": "reverse",
        "idle": "underline",
        "match": "black on yellow",
        "match_other": "underline yellow",
        "head": "bold",
        "tab_idle": "bold underline",
        "added": "yellow",
    },
)

PLAIN = Palette(
    name="plain",
    dark=True,
    ground="ansi_default",
    foreground="ansi_default",
    native=True,
    styles={
        "title": "bold",
        "bad": "bold",
        "key": "bold",
        "bar": "reverse",
        "tab": "bold reverse",
        "select": "reverse",
        "idle": "underline",
        "match": "bold reverse",
        "match_other": "underline",
        "head": "bold",
        "tab_idle": "bold underline",
    },
)

PALETTES = {palette.name: palette for palette in (DARK, LIGHT, ANSI, PLAIN)}
