"""A page of help on the screen: one topic, as lines that scroll and search as the others do.

Textual has a widget for Markdown. Measured at 200×50, it sends 27 KB for a page and 13 to 15 KB for each line that it
scrolls by; these lines take 12 KB and, while the cursor moves, 0.3 KB.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tui_probe.help import topics
from tui_probe.help.document import HelpDocument
from tui_probe.ui import keys
from tui_probe.ui.exports import Writer, write_lines
from tui_probe.ui.help_pages import page_of
from tui_probe.ui.screens.picker import Choice, PickScreen
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.views.document import DocumentView
from tui_probe.ui.widgets.bars import Bar
from tui_probe.ui.widgets.pane import Pane

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.app import App, ComposeResult

    from tui_probe.help import Topic


class TopicView(DocumentView):
    """A page of help in a pane."""

    def __init__(self, screen: TopicScreen, topic: Topic) -> None:
        self.page = page_of(topic.name)
        super().__init__(screen, f"help-{topic.name}", HelpDocument(topic, self.page), None)
        self.focused = True

    def forms(self) -> Mapping[str, Writer]:
        """As it is drawn, and as it is in the package."""
        markdown = self.page.splitlines()
        return {
            "text": partial(write_lines, self.exported()),
            "Markdown": partial(write_lines, lambda: markdown),
        }


class TopicScreen(ViewScreen):
    """One topic of ``tui-probe help``."""

    BINDINGS = keys.bindings("help", "reading", "drawing")

    def __init__(self, topic: Topic) -> None:
        super().__init__()
        self._topic = topic

    def compose(self) -> ComposeResult:
        """A title, the page, hints."""
        yield Bar("bar", id="title")
        yield Pane(TopicView(self, self._topic))
        yield Bar(id="hint")

    def on_mount(self) -> None:
        """Fill the bars."""
        self.show_bars()

    def show_bars(self) -> None:
        """What is read, and how far."""
        words = f"tui-probe help {self._topic.name}"
        right = " · ".join([words, *self.view.status()])
        self.query_one("#title", Bar).show(((f" {self._topic.about}", "title"),), ((right, "dim"),))
        self.show_hint()

    def hints(self) -> list[keys.Key]:
        """How to leave, other topics, then the keys of views."""
        own = [key for key in keys.in_scope("drawing") if keys.command_of(key) in self.view.commands()]
        return [*keys.in_scope("help", "reading"), *own, *keys.in_scope("view")]

    def action_command(self, command: str) -> None:
        """From part to part."""
        if command in self.view.commands():
            self.view.command(command)
        else:
            self.notice(f"this page has no such key ({keys.words_of(command)})")

    def action_close(self) -> None:
        """Back to the screen before; first out of a search."""
        if not self.view.clear_search():
            self.app.pop_screen()

    def action_topics(self) -> None:
        """Another topic, in the place of this one."""
        choose_topic(self.app)


def topic_choices() -> list[Choice]:
    """The topics, for a list to choose from."""
    return [Choice(topic.name, topic.about, value=topic) for topic in topics()]


def choose_topic(app: App[None]) -> None:
    """Let a person choose a topic, and show it."""

    def show(topic: Topic | None) -> None:
        if topic is not None:
            show_topic(app, topic)

    app.push_screen(PickScreen("Help", topic_choices()), show)


def show_topic(app: App[None], topic: Topic) -> None:
    """Show a topic; it takes the place of one that is shown, so that one key leads back to the work."""
    if isinstance(app.screen, TopicScreen):
        app.switch_screen(TopicScreen(topic))
    else:
        app.push_screen(TopicScreen(topic))
