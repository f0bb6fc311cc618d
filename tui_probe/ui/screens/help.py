"""The page behind ``?``: how to read what was visible, then every key, from the one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw.spans import Line, pad, wrap
from tui_probe.pages.explanations import paragraphs
from tui_probe.ui import keys
from tui_probe.ui.screens.topic import choose_topic
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.views.text import TextView
from tui_probe.ui.widgets.bars import Bar
from tui_probe.ui.widgets.pane import Pane

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import ComposeResult

    from tui_probe.ui.topic import Topic

_NAMES = 18
_WIDEST = 110


class HelpView(TextView):
    """A topic, wrapped to the width, and the key table."""

    def __init__(self, screen: HelpScreen, topic: Topic, scopes: frozenset[str]) -> None:
        super().__init__(screen, "keys")
        self.topic, self.scopes = topic, scopes

    def resize(self, width: int, height: int) -> None:
        """Wrap for another width."""
        super().resize(width, height)
        cells = min(width, _WIDEST) - 2
        self.lines = [*topic_lines(self.topic, cells), *key_lines(cells, self.scopes)]
        self.changed()


class HelpScreen(ViewScreen):
    """What is visible explained, and all keys, on a page that scrolls and searches as the others do."""

    BINDINGS = keys.bindings("help", "reading")

    def __init__(self, topic: Topic, scopes: frozenset[str]) -> None:
        """``scopes`` are those of the screen before, whose keys come first."""
        super().__init__()
        self._topic, self._scopes = topic, scopes

    def compose(self) -> ComposeResult:
        """A title, the page, hints."""
        yield Bar("bar", id="title")
        yield Pane(HelpView(self, self._topic, self._scopes))
        yield Bar(id="hint")

    def on_mount(self) -> None:
        """Fill the bars."""
        self.query_one("#title", Bar).show(((f" {self._topic.title}", "title"),), (("and all keys", "dim"),))
        self.show_hint()

    def hints(self) -> list[keys.Key]:
        """How to leave, then the keys of views."""
        return [*keys.in_scope("help", "reading"), *keys.in_scope("view")]

    def action_topics(self) -> None:
        """Pages of help, to choose one."""
        choose_topic(self.app)

    def action_close(self) -> None:
        """Back to the screen before; first out of a search."""
        if not self.view.clear_search():
            self.app.pop_screen()


def topic_lines(topic: Topic, cells: int) -> list[Line]:
    """How to read what was visible, and what keys do there."""
    lines: list[Line] = [((f" {text}", ""),) for text in paragraphs(topic.paragraphs, cells)]
    lines = lines[1:]
    if topic.keys:
        lines += [(), ((" Here", "title"),)]
        for key, words in topic.keys:
            lines += _key_lines(key, words, cells)
    return [*lines, ()] if lines else []


def key_lines(cells: int, first: frozenset[str] = frozenset()) -> list[Line]:
    """The key table in at most ``cells`` cells, one block per scope: everywhere, those ``first``, then the others."""
    lines: list[Line] = []
    for scope, title in sorted(keys.SCOPES.items(), key=lambda each: each[0] != "app" and each[0] not in first):
        lines += [(), ((f" {title}", "title"),)]
        for key in keys.in_scope(scope):
            lines += _key_lines(key, key.text, cells)
    return lines[1:]


def _key_lines(key: keys.Key, words: str, cells: int) -> Iterator[Line]:
    """``   w  +              zoom in``, the words going on below themselves where they have to."""
    names = "  ".join(keys.shown(name) for name in key.keys)
    for place, part in enumerate(wrap(words, cells - _NAMES - 2)):
        yield (("   ", ""), (pad("" if place else names, _NAMES), "key"), (part, ""))
