"""Pages of help drawn by rich: for a pager, and as lines of roles for the screens."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.console import Console
from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.style import Style
from rich.text import Text
from rich.theme import Theme

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderResult

    from tui_probe.draw.spans import Line, Span

WIDEST: Final = 118
"""Cells: longer lines of prose are hard to read."""
_INDENT: Final = 4

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


class _Heading(Heading):
    """Flush left: rich centres the title, or draws a box around it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console, options
        yield self.text


class _Code(CodeBlock):
    """Indented, in one colour: a highlighter's background would fill the page, and cost bytes."""

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
