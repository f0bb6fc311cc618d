"""Colours: readable, apart for colour-blind eyes, and absent where they are not wanted."""

from __future__ import annotations

import pytest
from rich.style import Style

from tui_probe.render.palette import ALIASES, DARK, LIGHT, PALETTES, PLAIN, Palette
from tui_probe.ui import Appearance, speaks_utf8

Triplet = tuple[float, float, float]
GROUNDS = ("", "bar", "select", "idle")
STATES = ("good", "bad", "warn", "note", "accent")

# Machado, Oliveira, Fernandes 2009: full colour blindness of each kind, on linear RGB.
BLINDNESS = {
    "protanopia": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deuteranopia": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "tritanopia": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}


def linear(style: Style, *, ground: bool = False) -> Triplet:
    """The foreground or ground of a style in linear RGB, 0…1."""
    color = style.bgcolor if ground else style.color
    assert color is not None
    parts = (value / 255 for value in color.get_truecolor())
    r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return r, g, b


def luminance(color: Triplet) -> float:
    return 0.2126 * color[0] + 0.7152 * color[1] + 0.0722 * color[2]


def contrast(style: Style) -> float:
    """WCAG 2 contrast of a style's text on its ground."""
    light, dark = sorted((luminance(linear(style)), luminance(linear(style, ground=True))), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=lambda palette: palette.name)
def test_all_words_can_be_read(palette: Palette) -> None:
    roles = [role for role in palette.styles if role not in ("rule", *GROUNDS)]
    low = {role: contrast(palette.style(role)) for role in roles if contrast(palette.style(role)) < 4.5}
    assert low == {}
    for ground in GROUNDS:
        assert contrast(palette.style(ground)) >= 4.5


@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=lambda palette: palette.name)
@pytest.mark.parametrize("kind", BLINDNESS)
def test_states_stay_apart_for_colour_blind_eyes(palette: Palette, kind: str) -> None:
    def seen(role: str) -> tuple[float, ...]:
        color = linear(palette.style(role))
        rgb = (max(0.0, sum(m * c for m, c in zip(row, color, strict=True))) for row in BLINDNESS[kind])
        return tuple(value ** (1 / 2.2) for value in rgb)

    for one, other in (("good", "bad"), ("good", "warn"), ("accent", "bad")):
        distance = sum((a - b) ** 2 for a, b in zip(seen(one), seen(other), strict=True)) ** 0.5
        assert distance > 0.15, (one, other)


@pytest.mark.parametrize("palette", PALETTES.values(), ids=lambda palette: palette.name)
def test_every_palette_knows_what_the_others_name(palette: Palette) -> None:
    assert set(ALIASES.values()) <= set(DARK.styles)
    if palette is not PLAIN:
        assert set(STATES) <= set(palette.styles)
    for role in DARK.styles:
        palette.style(role)
    assert palette.style("no such role") == palette.style("")


def test_the_plain_palette_has_no_colour() -> None:
    for role in (*DARK.styles, "failed+select"):
        style = PLAIN.style(role)
        assert style.color is None
        assert style.bgcolor is None


def test_colours_are_those_of_the_256_colour_table() -> None:
    for palette in (DARK, LIGHT):
        for role in palette.styles:
            style = palette.style(role)
            assert style.color is not None
            assert style.color.number is not None
            assert style.bgcolor is not None
            assert style.bgcolor.number is not None


def test_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert Appearance.from_environment().palette == "dark"
    assert Appearance().wants_mouse
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22")
    assert not Appearance().wants_mouse
    assert Appearance(mouse=True).wants_mouse
    monkeypatch.setenv("NO_COLOR", "1")
    assert Appearance.from_environment().palette == "plain"
    assert Appearance.from_environment(palette="light").palette == "light"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "linux")
    assert Appearance.from_environment().palette == "ansi"


@pytest.mark.parametrize(
    ("environment", "utf8"),
    [
        ({}, True),
        ({"LC_CTYPE": "C.UTF-8"}, True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),
        ({"LANG": "en_US.UTF-8"}, True),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "POSIX"}, False),
        ({"LANG": "de_DE.ISO-8859-1"}, False),
        ({"LANG": "C", "LC_CTYPE": "en_US.utf8"}, True),
    ],
)
def test_the_locale_says_whether_the_terminal_takes_more_than_ascii(environment: dict[str, str], utf8: bool) -> None:
    assert speaks_utf8(environment) == utf8
