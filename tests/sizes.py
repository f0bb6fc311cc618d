"""A page at the sizes of terminals: its text at one of them is a golden, at the others it has the same cells.

A cell is a word with a digit, such as a value, an address or a line number. Words that a narrow page shortens with
``…`` or ``~`` are not compared, nor marks of drawings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from rich.cells import cell_len

from tests.golden import golden
from tui_probe.draw.spans import to_ascii
from tui_probe.draw.view import View
from tui_probe.pages.view_output import text_lines, view_lines

WIDTHS = (80, 120, 200)
RULE = re.compile(r"─[─ ]*|▌.*")
"""Line below the headings of a table: a rule, or the row at the cursor."""
MARKS = re.compile(r"[─━│┃┤┣┫▁-▟⠀-⣿•▲|]")
SHORTENED = re.compile(r"…|(?<=\S)~")


def words(text: str) -> set[str]:
    return {word.rstrip(",;:") for word in MARKS.sub(" ", text).split()}


def cells(text: str) -> set[str]:
    return {word for word in words(text) if re.search(r"\d", word) and not SHORTENED.search(word)}


def lost(text: str, wider: str) -> list[str]:
    """Return the cells of a page that the same page lacks where it is wider.

    A wider column may continue a word. With more columns a name may be shortened, and code cut at the edge of its side.
    """
    there = words(wider)
    cut = tuple(start for start in (SHORTENED.split(word)[0] for word in there) if len(start) >= 8)
    missing = (cell for cell in cells(text) - there if not cell.startswith(cut))
    return sorted(cell for cell in missing if not any(other.startswith(cell) for other in there))


def headings(text: str, margin: str = "") -> str:
    """Return the lines that name the columns of tables, which begin after this margin."""

    def is_rule(line: str) -> bool:
        return RULE.fullmatch(line.removeprefix(margin)) is not None

    lines = text.split("\n")
    return "".join(f"{line}\n" for line, below in pairwise(lines) if is_rule(below) and not is_rule(line))


def widest(text: str) -> int:
    """Return the cells of the longest line; a command to copy has no limit outside of a terminal."""
    return max(cell_len(line) for line in text.split("\n") if "--metrics" not in line)


def document_text(view: View, width: int, *, ascii_only: bool) -> str:
    """Return all lines of a view."""
    return "".join(f"{line.rstrip()}\n" for line in text_lines(view_lines(view, width, None, ascii_only=ascii_only)))


def golden_widths(name: str, shown: Callable[[int, bool], str], widths: Sequence[int] = WIDTHS) -> None:
    """Compare a page at its largest width with a golden; check the others, of which only the headings are kept.

    ``shown`` returns the text for a width, in ASCII or not.
    """
    *narrower, largest = widths
    wider = shown(largest, False)
    assert widest(wider) <= largest
    golden(name, wider, f"{largest}")
    golden(name, shown(largest, True), f"{largest}", ascii_only=True)
    for width in reversed(narrower):
        text = shown(width, False)
        assert widest(text) <= width
        assert lost(text, wider) == [], f"cells at {width} columns that a wider page lacks"
        assert shown(width, True) == to_ascii(text), f"the ASCII page of {width} columns is a translation"
        if columns := headings(text):
            golden(name, columns, f"{width} headings")
        wider = text
