"""Colours: readable, apart for colour-blind eyes, and absent where they are not wanted."""

from __future__ import annotations

import itertools
import math

import pytest
from rich.style import Style

from tui_probe.draw.palette import ALIASES, ANSI, DARK, DISTINCT, LIGHT, PALETTES, PLAIN, Palette
from tui_probe.settings import PALETTES as PALETTE_NAMES
from tui_probe.settings import Settings
from tui_probe.ui import Appearance
from tui_probe.ui.application import speaks_utf8

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


def blinded(style: Style, kind: str | None) -> Triplet:
    """The foreground of a style in linear RGB, as eyes of this kind see it (None: all colours)."""
    color = linear(style)
    if kind is None:
        return color
    r, g, b = (max(0.0, sum(m * c for m, c in zip(row, color, strict=True))) for row in BLINDNESS[kind])
    return r, g, b


def lab(color: Triplet) -> Triplet:
    """CIE L*a*b* of linear RGB: equal distances look about equally large; 2.3 can just be seen."""
    rows = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    xyz = (sum(m * c for m, c in zip(row, color, strict=True)) / sum(row) for row in rows)
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def contrast(style: Style) -> float:
    """WCAG 2 contrast of a style's text on its ground."""
    light, dark = sorted((luminance(linear(style)), luminance(linear(style, ground=True))), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("palette", [DARK, LIGHT, DISTINCT], ids=lambda palette: palette.name)
def test_all_words_can_be_read(palette: Palette) -> None:
    roles = [role for role in palette.styles if role not in ("rule", *GROUNDS)]
    low = {role: contrast(palette.style(role)) for role in roles if contrast(palette.style(role)) < 4.5}
    assert low == {}
    for ground in GROUNDS:
        assert contrast(palette.style(ground)) >= 4.5


@pytest.mark.parametrize("palette", [DARK, LIGHT, DISTINCT], ids=lambda palette: palette.name)
@pytest.mark.parametrize("kind", BLINDNESS)
def test_states_stay_apart_for_colour_blind_eyes(palette: Palette, kind: str) -> None:
    def seen(role: str) -> tuple[float, ...]:
        return tuple(value ** (1 / 2.2) for value in blinded(palette.style(role), kind))

    for one, other in (("good", "bad"), ("good", "warn"), ("accent", "bad")):
        distance = sum((a - b) ** 2 for a, b in zip(seen(one), seen(other), strict=True)) ** 0.5
        assert distance > 0.15, (one, other)


@pytest.mark.parametrize("kind", [None, *BLINDNESS])
def test_the_eight_hues_of_the_distinct_palette_stay_apart(kind: str | None) -> None:
    seen = [lab(blinded(DISTINCT.style(f"hue{number}"), kind)) for number in range(8)]
    assert min(math.dist(one, other) for one, other in itertools.combinations(seen, 2)) > 28


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
    for palette in (DARK, LIGHT, DISTINCT):
        for role in palette.styles:
            style = palette.style(role)
            assert style.color is not None
            assert style.color.number is not None
            assert style.bgcolor is not None
            assert style.bgcolor.number is not None


def test_words_in_sixteen_colours_have_none_that_may_be_the_ground() -> None:
    for role, style in ANSI.styles.items():
        color, ground = ANSI.style(role).color, ANSI.style(role).bgcolor
        assert "bright_black" not in style
        assert color is None or color.name != "black" or ground is not None


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


def test_options_win_over_the_environment_and_that_over_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSH_CONNECTION", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    settings = Settings(palette="light", mouse=True, low_bandwidth=True, ascii=True)
    decided = Appearance.from_environment(settings)
    assert (decided.palette, decided.wants_mouse, decided.low_bandwidth, decided.ascii_only) == (
        "light", True, True, True,
    )  # fmt: skip
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22")
    decided = Appearance.from_environment(settings)
    assert (decided.palette, decided.wants_mouse) == ("plain", False)
    decided = Appearance.from_environment(settings, palette="ansi", mouse=True, low_bandwidth=False)
    assert (decided.palette, decided.wants_mouse, decided.low_bandwidth) == ("ansi", True, False)


def test_the_settings_know_every_palette() -> None:
    assert set(PALETTE_NAMES) == set(PALETTES)


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
