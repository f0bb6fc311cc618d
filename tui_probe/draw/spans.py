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
_LINE_CONTINUATION = " \\"
_HANGING_INDENT = 4
"""Cells by which the lines that continue a text are set in more than its first."""
_MIN_WRAPPED_CELLS = 30
"""Cells of a text behind a label from which on it is wrapped."""
_match_narrow = re.compile("[ -~\u00a0-\u02ff\u2010-\u2027\u2500-\u259f]*").fullmatch
"""Matches what has as many cells as characters: Latin letters, dashes, ellipses, lines and blocks."""


def plain(line: Line) -> str:
    """Return the words of a line without their roles."""
    return "".join(text for text, _ in line)


def width(text: str) -> int:
    """Cells that ``text`` covers on a terminal."""
    return len(text) if is_narrow(text) else cell_len(text)


def is_narrow(text: str) -> bool:
    """Return whether each character of the text is known to cover one cell."""
    return text.isascii() or _match_narrow(text) is not None


def clip(text: str, cells: int, *, ellipsis: str = "…") -> str:
    """Return ``text`` cut to at most ``cells`` cells; a cut is marked with ``ellipsis``."""
    if width(text) <= cells:
        return text
    if cells <= width(ellipsis):
        return ellipsis[:cells]
    return set_cell_size(text, cells - width(ellipsis)).rstrip() + ellipsis


def clip_clauses(text: str, cells: int, separator: str = "; ") -> str:
    """``text`` cut to at most ``cells`` cells: behind the last clause that fits, else behind the last part of it that
    fills half of them, else as ``clip`` does.
    """
    for sign, min_end in ((separator, 0), (", ", cells // 2)):
        end = len(text)
        while end > 0 and width(text[:end]) > cells:
            end = text.rfind(sign, 0, end)
        if end > min_end:
            return text[:end]
    return clip(text, cells)


def pad(text: str, cells: int, *, right: bool = False) -> str:
    """Return ``text`` cut or filled with spaces to exactly ``cells`` cells, flush right if ``right``."""
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
            free_cells = cells - width(line) - (1 if line else 0)
            if line and (
                free_cells < max(1, cells // 3) or ("," in word[free_cells:cells] and "," not in word[:free_cells])
            ):
                lines.append(line)
                line, free_cells = "", cells
            break_position = word.rfind(",", 0, free_cells) + 1 or free_cells
            lines.append((line + " " if line else "") + word[:break_position])
            line, word = "", word[break_position:]
        longer_line = f"{line} {word}" if line else word
        if line and width(longer_line) > cells:
            lines.append(line)
            longer_line = word
        line = longer_line
    return [*lines, line] if line or not lines else lines


def clip_line(line: Line, cells: int, *, skip: int = 0) -> Line:
    """The part of a line from cell ``skip`` that fits in ``cells`` cells; half of a wide character becomes a space."""
    spans: list[Span] = []
    skipped_cells, free_cells = skip, cells
    for text, role in line:
        size = width(text)
        if skipped_cells >= size:
            skipped_cells -= size
            continue
        if skipped_cells:
            head = len(set_cell_size(text, skipped_cells).rstrip(" ")) if not text.isascii() else skipped_cells
            text = _drop_cells(text, skipped_cells, head)
            skipped_cells = 0
        piece = text if width(text) <= free_cells else set_cell_size(text, free_cells)
        spans.append((piece, role))
        free_cells -= width(piece)
        if free_cells <= 0:
            break
    return tuple(spans)


def _drop_cells(text: str, cells: int, guess: int) -> str:
    """``text`` without its first ``cells`` cells; ``guess`` is where to begin looking, in characters."""
    length = max(0, min(guess, cells))
    while cell_len(text[:length]) < cells:
        length += 1
    return " " * (cell_len(text[:length]) - cells) + text[length:]


def to_ascii(text: str) -> str:
    """Return ``text`` in ASCII, cell for cell: our glyphs by a like sign, anything else by ``?``.

    Only ``±`` takes more cells, so lines are cut to their width after this.
    """
    if text.isascii():
        return text
    text = text.translate(_ASCII)
    return "".join(c if c.isascii() else "?" * cell_len(c) for c in text)


def spread(left: Iterable[Span], right: Iterable[Span], cells: int) -> Line:
    """A line with ``left`` at its start and ``right`` at its end; ``left`` is cut, and marked so, if too long."""
    right = tuple(right)
    left_cells = cells - sum(width(text) for text, _ in right)
    if left_cells < 1:
        return clip_line(right, cells)
    left = tuple(left)
    head = clip_line(left, left_cells)
    if sum(width(text) for text, _ in left) > left_cells:
        head = (*clip_line(left, left_cells - 1), ("…", head[-1][1]))
    head_cells = sum(width(text) for text, _ in head)
    return (*head, (" " * (left_cells - head_cells), ""), *right)


def hang_line(line: str, cells: int) -> list[str]:
    """Return a line as one or more of at most ``cells`` cells, the others with a hanging indent."""
    indent = line[: len(line) - len(line.lstrip())]
    if width(line) <= cells:
        return [line]
    first_part, *other_parts = wrap(line.strip(), cells - len(indent) - _HANGING_INDENT)
    return [indent + first_part, *(indent + " " * _HANGING_INDENT + part for part in other_parts)]


def command_lines(text: str, command: str, cells: int) -> Iterator[str]:
    """Yield ``words command`` in lines of at most ``cells`` cells, each but the last with ``\\`` at its end.

    A word that is longer is in a line of its own, whole: what is cut cannot be pasted.
    """
    indent = text[: len(text) - len(text.lstrip())]
    program, *arguments = _WORD.findall(command)
    room = cells - len(_LINE_CONTINUATION)
    if width(f"{text} {command}") <= cells:
        yield f"{text} {command}"
        return
    line = f"{text} {program}"
    for word in arguments:
        if width(line) + 1 + width(word) > room:
            yield line + _LINE_CONTINUATION
            line = f"{indent}{' ' * _HANGING_INDENT}{word}"
        else:
            line += f" {word}"
    yield line


def labelled(label: str, text: str, cells: int) -> list[str]:
    """Text behind its label in lines of at most ``cells`` cells, the others set below the text.

    Where there is little room, one line that is cut: several would take the place of what they are the heading of.
    """
    if cells - width(label) < _MIN_WRAPPED_CELLS:
        return [clip(label + text, cells)]
    first_part, *other_parts = wrap(text, cells - width(label))
    return [clip(line, cells) for line in (label + first_part, *(" " * width(label) + part for part in other_parts))]


def side_by_side(left: Sequence[Line], right: Sequence[Line], cells: int, gap: int = 2) -> list[Line]:
    """Return ``left`` in columns of ``cells`` cells, ``right`` after a gap; the longer side continues by itself."""
    return [
        (*fit_line(line, cells), (" " * gap, ""), *right_line) if right_line else line
        for line, right_line in zip_longest(left, right, fillvalue=())
    ]


def fit_line(line: Line, cells: int) -> Line:
    """Return a line cut or filled with blanks to exactly ``cells`` cells."""
    clipped_line = clip_line(line, cells)
    used_cells = sum(width(text) for text, _ in clipped_line)
    return (*clipped_line, (" " * (cells - used_cells), "")) if used_cells < cells else clipped_line


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
