"""Lines put into PTX text at the spans of its nodes. What is not touched stays as it is, character by character."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.ptx.tree import Span

MARK: Final = "// tui-probe: "
"""Begins the comment at the end of every inserted line."""
REPLACED: Final = MARK + "instead of: "
"""Begins the comment at the end of a line that stands in the place of an original one, quoted behind it."""

_REST_OF_LINE: Final = re.compile(r"[ \t]*(?://[^\n]*)?(?=\n|\Z)")


def marked(lines: Iterable[str], name: str) -> list[str]:
    """Lines of PTX with the comment that names the probe they belong to."""
    return [f"\t{line} {MARK}{name}" for line in lines]


def inserted_instructions(text: str) -> int:
    """The number of instructions in inserted lines of probed PTX; declarations and labels are none."""
    lines = (line.partition(MARK)[0].strip() for line in text.splitlines() if MARK in line and REPLACED not in line)
    return sum(line.endswith(";") and not line.startswith(".") for line in lines)


class Edits:
    """Collects insertions and replacements, and applies those of a node all at once.

    Insertions at one place keep the order in which they were asked for.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._changes: list[tuple[int, int, str]] = []

    def before(self, span: Span, lines: Iterable[str], *, first: bool = False) -> None:
        """Insert lines in front of a node, on lines of their own; ``first`` puts them before all others there."""
        position, text = span.start, "\n".join(lines)
        if not text:
            return
        line_start = self._source.rfind("\n", 0, position) + 1
        if self._source[line_start:position].strip():
            change = (position, position, f"\n{text}\n\t")
        else:
            change = (line_start, line_start, f"{text}\n")
        self._changes.insert(0 if first else len(self._changes), change)

    def after(self, span: Span, lines: Iterable[str], *, first: bool = False) -> None:
        """Insert lines behind a node, and behind the comment that follows it on its line; ``first`` puts them before
        all others there.
        """
        rest = _REST_OF_LINE.match(self._source, span.end)
        position = rest.end() if rest else span.end
        if text := "\n".join(lines):
            ends_line = self._source[position : position + 1] in ("\n", "")
            change = (position, position, f"\n{text}" if ends_line else f"\n{text}\n\t")
            self._changes.insert(0 if first else len(self._changes), change)

    def at(self, position: int, text: str) -> None:
        """Insert text as it is."""
        self._changes.append((position, position, text))

    def replace(self, span: Span, text: str) -> None:
        """Put text in the place of a node. It ends with a comment, so what follows on the line goes to the next."""
        rest = self._source[span.end : self._source.find("\n", span.end)]
        self._changes.append((span.start, span.end, f"{text}\n\t" if rest.strip() else text))

    def apply(self, span: Span) -> str:
        """The text of a node with the edits inside it. Replacements must not overlap."""
        pieces = []
        done = span.start
        for start, end, text in sorted(self._changes, key=lambda change: change[:2]):
            if span.start <= start and end <= span.end:
                pieces += [self._source[done:start], text]
                done = end
        return "".join([*pieces, self._source[done : span.end]])
