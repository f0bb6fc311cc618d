"""Recordings of a terminal: SVGs that show screens in turn, with CSS only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from rich.ansi import AnsiDecoder
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

_FONTS: Final = re.compile(r"\s*@font-face \{.*?\n    \}", re.DOTALL)
_CELL: Final = re.compile(r"\S(?:\S| (?=\S))*")
"""Words with single spaces between them: a cell of a table moves and changes by itself."""
_COLOR_CLASS: Final = re.compile(r'class="[^"]*\bx([0-9a-f]{6})"')
_COLUMN: Final = 6
"""Width of a column; a font of 10 px has about this."""
_ROW: Final = 12.2
_MARGIN: Final = 6
_TITLE_HEIGHT: Final = 24
_FONT_FAMILY: Final = "Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"


@dataclass(frozen=True)
class Frame:
    """A screen: lines as the terminal received them, with escape sequences; ``keys`` were pressed just before."""

    lines: tuple[str, ...]
    seconds: float
    keys: str = ""


def without_fonts(picture: str) -> str:
    """Return a picture of Rich without its fonts, which a browser would load from another host."""
    return _FONTS.sub("", picture)


def decoded(lines: Iterable[str]) -> list[Text]:
    """Return lines of a screen as texts: a style holds until it is changed, also on later lines."""
    decoder = AnsiDecoder()
    return [decoder.decode_line(line) for line in lines]


def animated(frames: Sequence[Frame], columns: int, title: str, theme: TerminalTheme) -> str:
    """Return an SVG that shows each frame for its seconds, in a loop.

    What several frames have at the same place is stored once. A viewer without animation, and a reader who asked for
    less motion, sees the last frame.
    """
    shapes: dict[str, set[int]] = {}
    for number, frame in enumerate(frames):
        for shape in (*_screen_shapes(frame.lines, theme), *_key_shapes(frame.keys, columns)):
            shapes.setdefault(shape, set()).add(number)
    groups = list(dict.fromkeys(map(frozenset, shapes.values())))
    members: dict[tuple[str, int], list[str]] = {}
    for shape, numbers in sorted(shapes.items(), key=lambda item: not item[0].startswith("<rect")):
        kind = "rect" if shape.startswith("<rect") else "text"  # all backgrounds lie behind all texts
        members.setdefault((kind, groups.index(frozenset(numbers))), []).append(shape)
    width = round(2 * _MARGIN + columns * _COLUMN)
    height = round(_TITLE_HEIGHT + _MARGIN + _ROW * max(len(frame.lines) for frame in frames))
    background, foreground = theme.background_color.hex, theme.foreground_color.hex
    return "\n".join(
        [
            f'<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">',
            f"<title>{escape(title)}</title>",
            f"<style>text{{font:10px {_FONT_FAMILY};fill:{foreground};white-space:pre}}.b{{font-weight:bold}}",
            "".join(f".x{color}{{fill:#{color}}}" for color in sorted(set(_COLOR_CLASS.findall(" ".join(shapes))))),
            *_rules(groups, [frame.seconds for frame in frames]),
            "@media (prefers-reduced-motion:reduce){g{animation:none!important}}</style>",
            f'<rect width="{width}" height="{height}" rx="6" fill="{background}"/>',
            *(f'<circle cx="{12 + 12 * i}" cy="12" r="4" fill="{c}"/>' for i, c in enumerate(_BUTTONS)),
            f'<text x="{width / 2:g}" y="15" text-anchor="middle" class="b">{escape(title)}</text>',
            *(f'<g class="g{number}">{"".join(group)}</g>' for (_, number), group in members.items()),
            "</svg>\n",
        ]
    )


_BUTTONS: Final = ("#ff5f57", "#febc2e", "#28c840")


def _rules(groups: Sequence[frozenset[int]], seconds: Sequence[float]) -> Iterator[str]:
    """Return the rules that show each group of shapes in its frames."""
    total = sum(seconds)
    begins = [100 * sum(seconds[:number]) / total for number in range(len(seconds))]
    for number, group in enumerate(groups):
        if len(group) == len(seconds):
            continue  # it is always there
        changes = [i for i in range(len(seconds)) if i == 0 or (i in group) != (i - 1 in group)]
        steps = "".join(f"{begins[i]:.4g}%{{visibility:{'visible' if i in group else 'hidden'}}}" for i in changes)
        at_rest = "" if len(seconds) - 1 in group else "visibility:hidden;"
        yield f"@keyframes k{number}{{{steps}}}.g{number}{{{at_rest}animation:k{number} {total:g}s step-end infinite}}"


def _screen_shapes(lines: Sequence[str], theme: TerminalTheme) -> Iterator[str]:
    """Return backgrounds and texts of a screen, each with its place."""
    console = Console(width=1000, color_system="truecolor", force_terminal=True)
    for row, line in enumerate(decoded(lines)):
        column = 0
        for text, style, _ in line.render(console, end=""):
            yield from _run_shapes(text, style or Style.null(), row, column, theme)
            column += cell_len(text)


def _run_shapes(text: str, style: Style, row: int, column: int, theme: TerminalTheme) -> Iterator[str]:
    """Return the background of a text of one style, and its cells."""
    fill, behind = _colors(style, theme)
    top = _TITLE_HEIGHT + row * _ROW
    if behind != theme.background_color.hex:
        place = f'x="{_MARGIN + column * _COLUMN}" y="{top:g}" width="{cell_len(text) * _COLUMN}" height="{_ROW}"'
        yield f'<rect {place} fill="{behind}"/>'
    classes = [*["b"][: bool(style.bold)], *[f"x{fill[1:]}"][: fill != theme.foreground_color.hex]]
    look = f' class="{" ".join(classes)}"' if classes else ""
    for cell in _CELL.finditer(text):
        x = _MARGIN + (column + cell_len(text[: cell.start()])) * _COLUMN
        length = cell_len(cell[0]) * _COLUMN
        place = f'x="{x}" y="{top + 9.5:g}" textLength="{length}"'
        yield f"<text {place}{look}>{escape(cell[0], quote=False)}</text>"


def _colors(style: Style, theme: TerminalTheme) -> tuple[str, str]:
    """Return text and background color of a style."""
    text, behind = theme.foreground_color, theme.background_color
    if style.color and not style.color.is_default:
        text = style.color.get_truecolor(theme)
    if style.bgcolor and not style.bgcolor.is_default:
        behind = style.bgcolor.get_truecolor(theme, foreground=False)
    if style.reverse:
        text, behind = behind, text
    return text.hex, behind.hex


def _key_shapes(keys: str, columns: int) -> Iterator[str]:
    """Return a label in the title bar for pressed keys."""
    if keys:
        width = cell_len(keys) * _COLUMN + 12
        right = 2 * _MARGIN + columns * _COLUMN - 10
        yield f'<rect x="{right - width}" y="4" width="{width}" height="16" rx="4" fill="#e69f00"/>'
        yield f'<text x="{right - width / 2:g}" y="15" text-anchor="middle" class="b x000000">{escape(keys)}</text>'
