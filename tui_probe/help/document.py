"""Pages of help: for a pager, as a document with a cursor, as lines of roles, and the entries of the glossary."""

from __future__ import annotations

import re
from functools import lru_cache
from io import StringIO
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.console import Console
from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.style import Style
from rich.text import Text
from rich.theme import Theme

from tui_probe.draw.spans import Line, plain
from tui_probe.draw.view import Document
from tui_probe.errors import HelpError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import ConsoleOptions, RenderResult

    from tui_probe.draw.spans import Span
    from tui_probe.help import Topic

WIDEST: Final = 118
"""Cells: longer lines of prose are hard to read."""
_INDENT: Final = 4
"""Cells before a line of code."""

_ROLES: Final = {
    "markdown.h1": "title",
    "markdown.h2": "title",
    "markdown.h3": "accent",
    "markdown.strong": "title",
    "markdown.code": "key",
    "markdown.code_block": "",
    "markdown.item.bullet": "dim",
    "markdown.item.number": "dim",
    "markdown.table.header": "head",
    "markdown.table.border": "rule",
    "markdown.hr": "rule",
}
"""Rich's names of the parts of a page -> roles of our palettes."""
_ENTRY = re.compile(r"^\*\*(?P<terms>[^*]+)\*\*: (?P<words>.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_GUTTER = 2
"""Cells before a line, for the cursor."""


class _Heading(Heading):
    """Heading at the left edge: rich centres the title, or draws a box around it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console, options
        yield self.text


class _Code(CodeBlock):
    """Code, indented and in one colour: a highlighter's background would fill the page, and cost bytes."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console, options
        yield Padding(Text(str(self.text).rstrip(), style="markdown.code_block", overflow="fold"), (0, 0, 0, _INDENT))


class HelpPage(Markdown):
    """A page of help for any rich console."""

    elements: ClassVar[dict[str, type[Any]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
    }


def page_lines(text: str, cells: int) -> list[Line]:
    """Markdown as lines of at most ``cells`` cells."""
    theme = Theme({name: Style.from_meta({"role": role}) for name, role in _ROLES.items()})
    console = Console(
        file=StringIO(), width=min(cells, WIDEST), theme=theme, color_system="truecolor", legacy_windows=False
    )
    rows = console.render_lines(HelpPage(text, hyperlinks=False), pad=False)
    lines = [_stripped([(segment.text, _role(segment.style)) for segment in row]) for row in rows]
    return [line for place, line in enumerate(lines) if line or (place and lines[place - 1])]


def _stripped(spans: list[Span]) -> Line:
    """A line without the blanks at its end, with which rich fills tables and paragraphs."""
    while spans and not spans[-1][0].strip():
        spans.pop()
    if spans:
        text, role = spans.pop()
        spans.append((text.rstrip(), role))
    return tuple(spans)


def _role(style: Style | None) -> str:
    role = style.meta.get("role", "") if style is not None else ""
    return str(role)


def glossary_entries(page: str) -> Mapping[str, str]:
    """The paragraph of each term of the page, as Markdown; two words for one thing have the same."""
    paragraphs = {}
    for entry in _ENTRY.finditer(page):
        for term in entry["terms"].split(", "):
            paragraphs[term.lower()] = entry[0].strip()
    return paragraphs


def glossary_entry(page: str, term: str) -> str:
    """The paragraph of a term, in any case, singular or plural. Raises HelpError."""
    entries = glossary_entries(page)
    word = " ".join(term.lower().split())
    for form in (word, word.removesuffix("s"), word.removesuffix("es")):
        if form in entries:
            return entries[form] + "\n"
    raise HelpError(f"the glossary has no {term!r}{did_you_mean(word, entries, 3)}")


class HelpDocument(Document):
    """The ``page`` of a topic, drawn for a width."""

    def __init__(self, topic: Topic, page: str) -> None:
        self.topic = topic
        self.title = f"{topic.name}: {topic.summary}"
        self.page = page
        self._cached_lines = lru_cache(maxsize=1)(self._draw)

    def _draw(self, width: int) -> list[Line]:
        gutter = (" " * _GUTTER, "")
        return [(gutter, *line) for line in page_lines(self.page, max(20, width - _GUTTER - 1))]

    def lines(self, width: int) -> Sequence[Line]:
        """The whole page."""
        return self._cached_lines(width)

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
        return {"topic": self.topic.name, "about": self.topic.summary, "markdown": self.page}

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield a header and its lines at the usual width."""
        yield ("line",)
        yield from ((plain(line[1:]),) for line in self.lines(100))
