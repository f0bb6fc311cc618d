"""Help on the screen: the visible page and every key, and the topics of ``tui-probe help``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tui_probe.draw.spans import Line, Span, pad, paragraphs, wrap
from tui_probe.help import topics
from tui_probe.probekit.page_kinds import MORE_PAGES_KEY, PAGES
from tui_probe.ui import keys
from tui_probe.ui.export import Writer, write_lines
from tui_probe.ui.help_text import help_page
from tui_probe.ui.screens.lists import PickerItem, PickerScreen
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.views.document_view import DocumentView
from tui_probe.ui.views.view import TextView
from tui_probe.ui.widgets.pane import Bar, FrameEdge, Pane

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from textual.app import App, ComposeResult

    from tui_probe.help import Topic
    from tui_probe.ui.help_text import PageTopic

# A page of help on the screen: one topic, as lines that scroll and search as the others do.
#
# Textual has a widget for Markdown. Measured at 200×50, it sends 27 KB for a page and 13 to 15 KB for each line that
# it scrolls by; these lines take 12 KB and, while the cursor moves, 0.3 KB.

_NAMES_CELLS = 18
"""Cells of the names of a key, before its sentence."""
_MAX_CELLS = 110
"""Cells of a line at most."""
_ENTRY_CELLS, _KEY_CELLS = 24, 7
"""Cells of a key with its word on the first page, and of the key."""
_EVERYWHERE = ("app", "view")
"""Scopes under the title of keys that act everywhere, on the first page."""
_IN_FULL_ONLY = ("tabs", "log", "ranges", "help", "reading")
"""Scopes that are not on the first page."""
_MOVES = "↑ ↓ ← → or h j k l   PgUp PgDn   Home End or g G"
_SHORT_LABELS = {
    "next_process": "next process",
    "previous_process": "previous process",
    "processes": "all processes",
    "previous_page": "previous page",
    "record": "recording",
    "previous_kernel": "previous kernel",
    "previous_launch": "previous launch",
    "next_match": "next match",
    "previous_match": "previous match",
    "copy": "copy",
    "whole_names": "full names",
    "reverse": "reverse",
    "status": "status filter",
    "back": "back",
}
"""Words of keys that the line of keys does not name."""


class TopicView(DocumentView):
    """A page of help in a pane."""

    def __init__(self, screen: TopicScreen, topic: Topic) -> None:
        from tui_probe.help.document import HelpDocument

        self.page = help_page(topic.name)
        super().__init__(screen, f"help-{topic.name}", HelpDocument(topic, self.page), None)
        self.focused = True

    def export_writers(self) -> Mapping[str, Writer]:
        """Return the writers of the page as text and as Markdown."""
        markdown = self.page.splitlines()
        return {
            "text": partial(write_lines, self.line_exporter()),
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
        yield FrameEdge(id="title")
        yield Pane(TopicView(self, self._topic))
        yield FrameEdge("bottom")
        yield Bar(id="hint")

    def on_mount(self) -> None:
        """Fill the bars."""
        self.show_bars()

    def show_bars(self) -> None:
        """Show the topic and the position in it."""
        command = f"tui-probe help {self._topic.name}"
        position = " · ".join([command, *self.view.status()])
        self.query_one("#title", FrameEdge).show(((f" {self._topic.summary} ", "title"),), ((f" {position} ", "dim"),))
        self.show_hint()

    def hints(self) -> list[keys.Key]:
        """Return the keys that leave, other topics, then the keys of views."""
        view_keys = [key for key in keys.in_scope("drawing") if keys.command_of(key) in self.view.commands()]
        return [*keys.in_scope("help", "reading"), *view_keys, *keys.in_scope("view")]

    def action_command(self, command: str) -> None:
        """Move from section to section."""
        if command in self.view.commands():
            self.view.command(command)
        else:
            self.notice(keys.unused_command_text(command))

    def action_close(self) -> None:
        """Back to the screen before; first out of a search."""
        if not self.view.clear_search():
            self.app.pop_screen()

    def action_topics(self) -> None:
        """Another topic, instead of this one."""
        choose_topic(self.app)


def topic_choices() -> list[PickerItem]:
    """The topics, for a list to choose from."""
    return [PickerItem(topic.name, topic.summary, value=topic) for topic in topics()]


def choose_topic(app: App[None]) -> None:
    """Let a user choose a topic, and show it."""

    def show(topic: Topic | None) -> None:
        if topic is not None:
            show_topic(app, topic)

    app.push_screen(PickerScreen("Help", topic_choices()), show)


def show_topic(app: App[None], topic: Topic) -> None:
    """Show a topic; it replaces one that is shown, so that one key leads back to the work."""
    if isinstance(app.screen, TopicScreen):
        app.switch_screen(TopicScreen(topic))
    else:
        app.push_screen(TopicScreen(topic))


class HelpView(TextView):
    """A topic, wrapped to the width, and the key table."""

    def __init__(self, screen: HelpScreen, topic: PageTopic, scopes: frozenset[str]) -> None:
        super().__init__(screen, "keys")
        self.topic, self.scopes = topic, scopes

    def resize(self, width: int, height: int) -> None:
        """Wrap for another width."""
        super().resize(width, height)
        cells = min(width, _MAX_CELLS) - 2
        self.lines = [
            *overview_lines(cells, self.scopes, {key.id for key, _ in self.topic.keys}),
            *topic_lines(self.topic, cells),
            *key_lines(cells, self.scopes),
        ]
        self.request_redraw()


class HelpScreen(ViewScreen):
    """Explanation of the visible page and all keys, as a page that scrolls and searches."""

    BINDINGS = keys.bindings("help", "reading")

    def __init__(self, topic: PageTopic, scopes: frozenset[str]) -> None:
        """``scopes`` are those of the screen before, whose keys come first."""
        super().__init__()
        self._topic, self._scopes = topic, scopes

    def compose(self) -> ComposeResult:
        """A title, the page, hints."""
        yield FrameEdge(id="title")
        yield Pane(HelpView(self, self._topic, self._scopes))
        yield FrameEdge("bottom")
        yield Bar(id="hint")

    def on_mount(self) -> None:
        """Fill the bars."""
        contents = f" below: {self._topic.title.partition(':')[0]}, every key "
        self.query_one("#title", FrameEdge).show(((" Keys ", "title"),), ((contents, "dim"),))
        self.show_hint()

    def hints(self) -> list[keys.Key]:
        """Return the keys that leave, then the keys of views."""
        return [*keys.in_scope("help", "reading"), *keys.in_scope("view")]

    def action_topics(self) -> None:
        """Pages of help, to choose one."""
        choose_topic(self.app)

    def action_close(self) -> None:
        """Back to the screen before; first out of a search."""
        if not self.view.clear_search():
            self.app.pop_screen()


def overview_lines(cells: int, scopes: frozenset[str], page_key_ids: Collection[str]) -> list[Line]:
    """Return one page of keys: those of pages, then those of the screen in columns, a word each.

    Of the keys that only some pages answer to, it names those ``page_key_ids``: ids of the keys of the visible page.
    """
    lines: list[Line] = []
    if "tabs" in scopes:
        digits = [f"{page.key} {page.title}" for page in PAGES if page.key.isdigit()]
        names = [*digits, f"{MORE_PAGES_KEY} more pages", f"{keys.key_of('next_page')} next page"]
        lines += [((" Pages", "title"),), *(((f"   {'  '.join(row)}", ""),) for row in _rows(names, cells - 4))]
    screen_scopes = [scope for scope in keys.SCOPES if scope in scopes and scope not in (*_IN_FULL_ONLY, *_EVERYWHERE)]
    for title, group in (
        *(("On this page" if scope == "drawing" else keys.SCOPES[scope], (scope,)) for scope in screen_scopes),
        (keys.SCOPES["app"], _EVERYWHERE),
    ):
        entries = [
            (keys.key_sign(key.keys[0]), key.footer or _SHORT_LABELS[key.id])
            for key in keys.in_scope(*group)
            if (key.footer or key.id in _SHORT_LABELS) and (key.scope != "drawing" or key.id in page_key_ids)
        ]
        lines += [((f" {title}", "title"),), *_columns(entries, cells)] if entries else []
    moves: Line = ((f"   {_MOVES}", "dim"),)
    return [*lines, moves, ((" Below: how to read this page, then every key in full", "dim"),), ()]


def _rows(words: Sequence[str], cells: int) -> Iterator[list[str]]:
    """Yield the words in rows of at most ``cells`` cells, two blanks between them."""
    row: list[str] = []
    for word in words:
        if row and sum(map(len, row)) + 2 * len(row) + len(word) > cells:
            yield row
            row = []
        row.append(word)
    yield row


def _columns(entries: Sequence[tuple[str, str]], cells: int) -> Iterator[Line]:
    """Yield the entries in lines of as many columns as fit."""
    column_count = max(1, (cells - 2) // _ENTRY_CELLS)
    for start in range(0, len(entries), column_count):
        spans: list[Span] = [("  ", "")]
        for key, word in entries[start : start + column_count]:
            spans += [(f" {pad(key, _KEY_CELLS)}", "key"), (pad(word, _ENTRY_CELLS - _KEY_CELLS - 1), "")]
        yield tuple(spans)


def topic_lines(topic: PageTopic, cells: int) -> list[Line]:
    """Return the explanation of the page that was visible, and its keys."""
    lines: list[Line] = [((f" {text}", ""),) for text in paragraphs(topic.paragraphs, cells)]
    lines = lines[1:]
    if topic.keys:
        lines += [(), ((" Here", "title"),)]
        for key, sentence in topic.keys:
            lines += _key_lines(key, sentence, cells)
    return [*lines, ()] if lines else []


def key_lines(cells: int, first_scopes: frozenset[str] = frozenset()) -> list[Line]:
    """Return the key table in at most ``cells`` cells, a block per scope: everywhere, ``first_scopes``, the others."""
    lines: list[Line] = []
    for scope in sorted(keys.SCOPES, key=lambda scope: scope != "app" and scope not in first_scopes):
        lines += [(), ((f" {keys.SCOPES[scope]}", "title"),)]
        for key in keys.in_scope(scope):
            lines += _key_lines(key, key.text, cells)
    return lines[1:]


def _key_lines(key: keys.Key, sentence: str, cells: int) -> Iterator[Line]:
    """Yield ``   w  +              zoom in``; a long sentence goes on below itself."""
    names = "  ".join(keys.key_sign(name) for name in key.keys)
    for place, part in enumerate(wrap(sentence, cells - _NAMES_CELLS - 2)):
        yield (("   ", ""), (pad("" if place else names, _NAMES_CELLS), "key"), (part, ""))
