"""The page behind ``?``: every key, from the one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.render.spans import Line, pad
from tui_probe.ui import keys
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.views.text import TextView
from tui_probe.ui.widgets.bars import Bar
from tui_probe.ui.widgets.pane import Pane

if TYPE_CHECKING:
    from textual.app import ComposeResult

_NAMES = 18


class HelpScreen(ViewScreen):
    """All keys, on a page that scrolls and searches as the others do."""

    BINDINGS = keys.bindings("help")

    def compose(self) -> ComposeResult:
        """A title, the keys, hints."""
        view = TextView(self, "keys")
        view.lines = key_lines()
        yield Bar("bar", id="title")
        yield Pane(view)
        yield Bar(id="hint")

    def on_mount(self) -> None:
        """Fill the bars."""
        self.query_one("#title", Bar).show(((" Keys", "title"),))
        self.show_hint()

    def hints(self) -> list[keys.Key]:
        """How to leave, then the keys of views."""
        return [*keys.in_scope("help"), *keys.in_scope("view")]

    def action_close(self) -> None:
        """Back to the screen before; first out of a search."""
        if not self.view.clear_search():
            self.app.pop_screen()


def key_lines() -> list[Line]:
    """The key table as lines, a block a scope."""
    lines: list[Line] = []
    for scope, title in keys.SCOPES.items():
        lines += [(), ((f" {title}", "title"),)]
        for key in keys.in_scope(scope):
            names = "  ".join(keys.shown(name) for name in key.keys)
            lines.append((("   ", ""), (pad(names, _NAMES), "key"), (key.text, "")))
    return lines[1:]
