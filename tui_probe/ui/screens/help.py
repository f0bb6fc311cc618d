"""The page behind ``?``: every key, from the one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.screen import Screen

from tui_probe.render.spans import Line, pad
from tui_probe.ui import keys
from tui_probe.ui.widgets.bars import Bar
from tui_probe.ui.widgets.text_page import TextPage

if TYPE_CHECKING:
    from textual.app import ComposeResult


class HelpScreen(Screen[None]):
    """All keys on one page that scrolls and searches as the others do."""

    BINDINGS = [  # noqa: RUF012 - Textual reads it from the class
        Binding("q,escape,question_mark,f1", "close", "close", show=False),
    ]

    def compose(self) -> ComposeResult:
        """A title, the keys, and how to leave."""
        yield Bar("bar", id="title")
        yield TextPage(id="keys")
        yield Bar(id="hint")

    def on_mount(self) -> None:
        """Fill the page."""
        self.query_one("#title", Bar).show((("Keys", "title"),))
        self.query_one("#keys", TextPage).show(key_lines())
        self.query_one("#hint", Bar).show((("q", "key"), (" back", "dim")))
        self.query_one("#keys").focus()

    def action_close(self) -> None:
        """Back to the screen before."""
        self.app.pop_screen()


def key_lines() -> list[Line]:
    """The key table as lines, a block a scope."""
    lines: list[Line] = []
    for scope, title in keys.SCOPES.items():
        lines += [(("", ""),), ((f" {title}", "title"),)]
        for key in keys.in_scope(scope):
            names = "  ".join(keys.shown(name) for name in key.keys)
            lines.append((("   ", ""), (pad(names, 16), "key"), (key.text, "")))
    return lines[1:]
