"""Lines of text whose pieces carry a role: width, wrapping, columns side by side, lines made on demand.

A *line* is a tuple of ``(text, role)`` spans. Roles are names such as ``"dim"`` or ``"failed"``; a front end turns
them into colours, and a text report drops them, so both show the same words. Widths are terminal cells, not
characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, overload

from rich.cells import cell_len, set_cell_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Span = tuple[str, str]
Line = tuple[Span, ...]

# What each of our own glyphs becomes where only ASCII can be shown: as wide as the glyph, but for ±.
_ASCII = str.maketrans(
    {
        **dict.fromkeys("╭╮╰╯┏┓┗┛", "+"), **dict.fromkeys("╔╗╚╝║", "#"),
        "✔": "+", "✘": "x", "–": "-", "—": "-", "·": ".", "•": "*", "●": "*", "○": "o", "◌": "o",
        "▌": ">", "▐": "<", "▶": ">", "▸": ">", "→": ">", "←": "<", "↑": "^", "↓": "v", "▲": "^", "▼": "v", "×": "x",
        "…": "~", "µ": "u", "│": "|", "─": "-", "━": "=", "┃": "|", "┌": "+", "┐": "+", "└": "+", "┘": "+",
        "±": "+/-", "≠": "!", "⏎": ";", "┣": "[", "┫": "]", "═": "#", "“": '"', "”": '"', "‹": "<", "›": ">",
        "├": "+", "┤": "+", "┬": "+", "┴": "+", "┼": "+", "▁": "_", "▂": ".", "▃": ":", "▄": "-", "▅": "=",
        "▆": "+", "▇": "*", "█": "#", "░": ".", "▒": ":", "▓": "#", "≥": ">", "≤": "<", "°": "'", "\u00a0": " ",
    }
)  # fmt: skip

_BREAK = re.compile(r" (?:(?<!\d )|(?!\d{3}(?!\d)|(?:[kMGT]?B|[nµm]?s|min|h|cycles|%)(?!\w)))")
"""A space at which a line may end: none between the groups of a number, nor between a number and its unit."""
_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\]|['"\\])+""")
"""Pattern of a word of a command, with its quotes."""
_CONTINUED = " \\"
_HANGING_INDENT = 4
"""Cells by which the lines that continue a text are set in more than its first."""
_MIN_LABELLED = 30
"""Cells of a text behind a label from which on it is wrapped."""
_NARROW = re.compile("[ -~\u00a0-\u02ff\u2010-\u2027\u2500-\u259f]*").fullmatch
"""Matches what has as many cells as characters: Latin letters, dashes, ellipses, lines and blocks."""


def plain(line: Line) -> str:
    """The words of a line without their roles."""
    return "".join(text for text, _ in line)


def width(text: str) -> int:
    """Cells that ``text`` covers on a terminal."""
    return len(text) if is_narrow(text) else cell_len(text)


def is_narrow(text: str) -> bool:
    """Return whether each character of the text is known to cover one cell."""
    return text.isascii() or _NARROW(text) is not None


def clip(text: str, cells: int, *, more: str = "…") -> str:
    """``text`` cut to at most ``cells`` cells; a cut is marked with ``more``."""
    if width(text) <= cells:
        return text
    if cells <= width(more):
        return more[:cells]
    return set_cell_size(text, cells - width(more)).rstrip() + more


def clip_clauses(text: str, cells: int, separator: str = "; ") -> str:
    """``text`` cut to at most ``cells`` cells: behind the last clause that fits, else behind the last part of it that
    fills half of them, else as ``clip`` does.
    """
    for sign, least in ((separator, 0), (", ", cells // 2)):
        end = len(text)
        while end > 0 and width(text[:end]) > cells:
            end = text.rfind(sign, 0, end)
        if end > least:
            return text[:end]
    return clip(text, cells)


def pad(text: str, cells: int, *, right: bool = False) -> str:
    """``text`` cut or filled with spaces to exactly ``cells`` cells, flush right if ``right``."""
    size = width(text)
    if size > cells:
        text = clip(text, cells)
        size = width(text)
    fill = " " * (cells - size)
    return fill + text if right else text + fill


def wrap(text: str, cells: int) -> list[str]:
    """``text`` in lines of at most ``cells`` cells, broken at spaces, and inside a word only where it is too long.

    A number stays in one line with its unit: ``2 480 cycles``; of a list with commas the names stay whole.
    """
    cells = max(1, cells)  # a widget without a place yet has none
    lines, line = [], ""
    for word in _BREAK.split(text):
        while len(word) > 1 and width(word) > cells:
            room = cells - width(line) - (1 if line else 0)
            if line and (room < max(1, cells // 3) or ("," in word[room:cells] and "," not in word[:room])):
                lines.append(line)
                line, room = "", cells
            at = word.rfind(",", 0, room) + 1 or room
            lines.append((line + " " if line else "") + word[:at])
            line, word = "", word[at:]
        joined = f"{line} {word}" if line else word
        if line and width(joined) > cells:
            lines.append(line)
            joined = word
        line = joined
    return [*lines, line] if line or not lines else lines


def clip_line(line: Line, cells: int, *, skip: int = 0) -> Line:
    """The part of a line from cell ``skip`` that fits in ``cells`` cells; half of a wide character becomes a space."""
    spans: list[Span] = []
    left, room = skip, cells
    for text, role in line:
        size = width(text)
        if left >= size:
            left -= size
            continue
        if left:
            head = len(set_cell_size(text, left).rstrip(" ")) if not text.isascii() else left
            text = _drop_cells(text, left, head)
            left = 0
        piece = text if width(text) <= room else set_cell_size(text, room)
        spans.append((piece, role))
        room -= width(piece)
        if room <= 0:
            break
    return tuple(spans)


def _drop_cells(text: str, cells: int, guess: int) -> str:
    """``text`` without its first ``cells`` cells; ``guess`` is where to begin looking, in characters."""
    cut = max(0, min(guess, cells))
    while cell_len(text[:cut]) < cells:
        cut += 1
    return " " * (cell_len(text[:cut]) - cells) + text[cut:]


def to_ascii(text: str) -> str:
    """``text`` in ASCII, cell for cell: our glyphs by a like sign, anything else by ``?``.

    Only ``±`` takes more cells, so lines are cut to their width after this.
    """
    if text.isascii():
        return text
    text = text.translate(_ASCII)
    return "".join(c if c.isascii() else "?" * cell_len(c) for c in text)


def spread(left: Iterable[Span], right: Iterable[Span], cells: int) -> Line:
    """A line with ``left`` at its start and ``right`` at its end; ``left`` is cut, and marked so, if too long."""
    right = tuple(right)
    room = cells - sum(width(text) for text, _ in right)
    if room < 1:
        return clip_line(right, cells)
    left = tuple(left)
    head = clip_line(left, room)
    if sum(width(text) for text, _ in left) > room:
        head = (*clip_line(left, room - 1), ("…", head[-1][1]))
    used = sum(width(text) for text, _ in head)
    return (*head, (" " * (room - used), ""), *right)


def hang_line(line: str, cells: int) -> list[str]:
    """A line as one or more of at most ``cells`` cells, the others with a hanging indent."""
    indent = line[: len(line) - len(line.lstrip())]
    if width(line) <= cells:
        return [line]
    first, *following = wrap(line.strip(), cells - len(indent) - _HANGING_INDENT)
    return [indent + first, *(indent + " " * _HANGING_INDENT + part for part in following)]


def command_lines(words: str, command: str, cells: int) -> Iterator[str]:
    """``words command`` in lines of at most ``cells`` cells, each but the last with ``\\`` at its end.

    A word that is longer is in a line of its own, whole: what is cut cannot be pasted.
    """
    indent = words[: len(words) - len(words.lstrip())]
    first, *arguments = _WORD.findall(command)
    room = cells - len(_CONTINUED)
    if width(f"{words} {command}") <= cells:
        yield f"{words} {command}"
        return
    line = f"{words} {first}"
    for word in arguments:
        if width(line) + 1 + width(word) > room:
            yield line + _CONTINUED
            line = f"{indent}{' ' * _HANGING_INDENT}{word}"
        else:
            line += f" {word}"
    yield line


def labelled(label: str, text: str, cells: int) -> list[str]:
    """Text behind its label in lines of at most ``cells`` cells, the others set below the text.

    Where there is little room, one line that is cut: several would take the place of what they are the heading of.
    """
    if cells - width(label) < _MIN_LABELLED:
        return [clip(label + text, cells)]
    first, *following = wrap(text, cells - width(label))
    return [clip(line, cells) for line in (label + first, *(" " * width(label) + part for part in following))]


def side_by_side(left: Sequence[Line], right: Sequence[Line], cells: int, gap: int = 2) -> list[Line]:
    """``left`` in columns of ``cells`` cells, ``right`` after a gap; the longer side continues by itself."""
    return [
        (*fit_line(line, cells), (" " * gap, ""), *right_line) if right_line else line
        for line, right_line in zip_longest(left, right, fillvalue=())
    ]


def fit_line(line: Line, cells: int) -> Line:
    """A line cut or filled with blanks to exactly ``cells`` cells."""
    clipped = clip_line(line, cells)
    used = sum(width(text) for text, _ in clipped)
    return (*clipped, (" " * (cells - used), "")) if used < cells else clipped


class LazyLines(Sequence["Line"]):
    """``count`` lines, each made by ``make`` from its number when it is asked for; ``head`` is above them."""

    def __init__(self, count: int, make: Callable[[int], Line], head: Sequence[Line] = ()) -> None:
        self._count = count
        self._make = make
        self._head = head

    def __len__(self) -> int:
        return len(self._head) + self._count

    @overload
    def __getitem__(self, number: int) -> Line: ...
    @overload
    def __getitem__(self, number: slice) -> list[Line]: ...
    def __getitem__(self, number: int | slice) -> Line | list[Line]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        number = range(len(self))[number]  # counts a negative number from the end; raises IndexError
        return self._head[number] if number < len(self._head) else self._make(number - len(self._head))


def paragraphs(texts: Sequence[str], cells: int) -> Iterator[str]:
    """Texts in lines of at most ``cells`` cells, a blank line before each."""
    for text in texts:
        yield ""
        yield from wrap(text, cells)
