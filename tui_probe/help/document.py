"""Parts of help: a page as a document with a cursor, and the entries of the glossary."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tui_probe.draw.spans import Line, plain
from tui_probe.draw.view import Document
from tui_probe.errors import HelpError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.help import Topic

_ENTRY = re.compile(r"^\*\*(?P<terms>[^*]+)\*\*: (?P<words>.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def glossary_entries(page: str) -> Mapping[str, str]:
    """The paragraph of each term of the page, as Markdown; two words for one thing have the same."""
    paragraphs = {}
    for entry in _ENTRY.finditer(page):
        for term in entry["terms"].split(", "):
            paragraphs[term.lower()] = entry[0].strip()
    return paragraphs


def glossary_entry(page: str, term: str) -> str:
    """The paragraph of a term, in any case, singular or plural. Raises HelpError."""
    known = glossary_entries(page)
    word = " ".join(term.lower().split())
    for form in (word, word.removesuffix("s"), word.removesuffix("es")):
        if form in known:
            return known[form] + "\n"
    raise HelpError(f"the glossary has no {term!r}{did_you_mean(word, known, 3)}")


_GUTTER = 2


class HelpDocument(Document):
    """The ``page`` of a topic, drawn for a width."""

    def __init__(self, topic: Topic, page: str) -> None:
        self.topic = topic
        self.title = f"{topic.name}: {topic.about}"
        self.page = page
        self._drawn = lru_cache(maxsize=1)(self._draw)

    def _draw(self, width: int) -> list[Line]:
        from tui_probe.help.drawing import page_lines  # rich's Markdown: 90 modules, which no screen needs at its start

        gutter = (" " * _GUTTER, "")
        return [(gutter, *line) for line in page_lines(self.page, max(20, width - _GUTTER - 1))]

    def lines(self, width: int) -> Sequence[Line]:
        """The whole page."""
        return self._drawn(width)

    def gutter(self, width: int) -> int:
        """Moving a cursor sends two cells of a gutter; scrolling sends the window."""
        del width
        return _GUTTER

    def anchor_noun(self) -> str:
        """Parts of the page, each under a heading."""
        return "part"

    def anchors(self, width: int) -> Sequence[int]:
        """The headings below that of the page."""
        headings = [
            number for number, line in enumerate(self.lines(width)) if line[-1][1] == "title" and len(line) == 2
        ]
        return [number for number in headings if number]

    def record(self) -> Mapping[str, Any]:
        """The page as it is in the package."""
        return {"topic": self.topic.name, "about": self.topic.about, "markdown": self.page}

    def cells(self) -> Iterator[Sequence[object]]:
        """Its lines as they are drawn for a usual width."""
        yield ("line",)
        yield from ((plain(line[1:]),) for line in self.lines(100))
