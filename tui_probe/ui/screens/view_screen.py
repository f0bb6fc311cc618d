"""The base of screens that show views: the keys of views, the line of hints, and the prompt that takes its place."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from textual.css.query import NoMatches

from tui_probe.probekit.page_kinds import assign_letters
from tui_probe.ui import keys
from tui_probe.ui.export import KEYS, SUFFIXES, copy_out, export
from tui_probe.ui.help_text import PageTopic, topic_of
from tui_probe.ui.layout import arrangement, too_small_text
from tui_probe.ui.prompt import FilterPrompt, Prompt, Question, QuestionKey, Refusal
from tui_probe.ui.screens.further_pages import LetterItem, LetterScreen
from tui_probe.ui.screens.lists import NameScreen
from tui_probe.ui.textual_private import OpenScreen
from tui_probe.ui.widgets.lines import LinesWidget
from tui_probe.ui.widgets.pane import Bar, Pane, key_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from textual import events

    from tui_probe.ui.application import Application
    from tui_probe.ui.background import Background
    from tui_probe.ui.export import Writer
    from tui_probe.ui.screens.lists import PickerItem
    from tui_probe.ui.views.view import PaneView
    from tui_probe.ui.widgets.pane import Tab

NOTICE_SECONDS = 6.0
SORT_OR_ZOOM = "zoom_out"
"""Command of a drawing whose key sorts the rows of any other page."""


class ViewScreen(OpenScreen[None]):
    """A screen of panes; one of them has the keys. Textual's focus is not used: it re-sends whole widgets.

    Subclasses have a ``Bar`` with the id ``hint``, and say which view has the keys (``view``).
    """

    BINDINGS = keys.bindings("view")
    AUTO_FOCUS = ""
    CAN_ASK: ClassVar[bool] = False
    """True if it is about a program that can be run again to answer a question (``action_ask``)."""

    def __init__(self) -> None:
        super().__init__()
        self.prompt: Prompt | Question | Refusal | None = None
        self._notice = ""
        self._notice_until = 0.0

    @property
    def can_ask(self) -> bool:
        """True if a question can be asked now, which a run answers."""
        snapshot = self.probe_app.feed.latest
        return self.CAN_ASK and snapshot.is_loaded and not snapshot.is_running

    @property
    def view(self) -> PaneView:
        """The view that has the keys."""
        return self.query_one(Pane).view

    @property
    def probe_app(self) -> Application:
        """The application."""
        return cast("Application", self.app)

    @property
    def page_tabs(self) -> Sequence[Tab]:
        """The pages of the screen, which ``action_page`` shows; none by default."""
        return ()

    def commands(self) -> Sequence[PickerItem]:
        """Return the entries of the palette besides keys and pages; none by default."""
        return ()

    @property
    def topic(self) -> PageTopic:
        """The topic that the page of keys explains first: that of the view with the keys."""
        tab = next((tab for tab in self.page_tabs if tab.id == self.view.name), None)
        return topic_of(self.view, tab.title if tab else "")

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes of keys that it binds, by its classes."""
        bound = (binding for owner in type(self).__mro__ for binding in owner.__dict__.get("BINDINGS", ()))
        ids = {getattr(binding, "id", None) for binding in bound}
        return frozenset(key.scope for key in keys.TABLE if key.id in ids)

    def applies(self, row: keys.Key) -> bool:
        """Return whether a key of this screen does something now."""
        if row.id == "search":
            return self.view.searches
        if row.id == "filter":
            return self.view.filters
        if row.id == "worst":
            return False
        return row.id not in ("next_match", "previous_match") or bool(self.view.search_text)

    def on_mount(self) -> None:
        """Mount the notice that the terminal is too small."""
        self.mount(Bar(id="small"))
        self._check_size(*self.app.size)

    def _with_home_key(self, rows: Sequence[keys.Key]) -> Sequence[keys.Key]:
        """Name the key that leaves after the home screen, if that opened this screen."""
        if not self.probe_app.session.from_home:
            return rows
        return [replace(row, footer="home") if row.id == "quit" else row for row in rows]

    def on_screen_resume(self) -> None:
        """Draw what has changed while another screen was in front."""
        for widget in self.query(LinesWidget):
            widget.catch_up()

    def on_resize(self, event: events.Resize) -> None:
        """Fit the screen; a terminal that is too small only shows that notice."""
        self._check_size(*event.size)

    def _check_size(self, width: int, height: int) -> None:
        is_small = arrangement(width, height) is None
        self.set_class(is_small, "small")
        for bar in self.query("#small").results(Bar):
            bar.show(((f" {too_small_text(width, height)}", "warn"),))

    @property
    def is_too_small(self) -> bool:
        """True if the terminal has room only for the notice that it is too small."""
        return self.has_class("small")

    def action_again(self) -> None:
        """Only screens of a run know what ran."""
        self.notice("this screen has no program to run again")

    def action_worst(self) -> None:
        """Only what was measured has a worst place."""
        self.notice("nothing was measured, so there is no hotspot")

    # -- what views ask for

    @property
    def tables(self) -> Background:
        """Sorts and filters tables."""
        return self.probe_app.tables

    @property
    def logs(self) -> Background:
        """Reads logs."""
        return self.probe_app.logs

    @property
    def analyses(self) -> Background:
        """Reads and analyses results."""
        return self.probe_app.analyses

    def redraw(self, view: PaneView) -> None:
        """Draw a view again where it is shown, and what is said about it."""
        if self.is_mounted:
            panes = [pane for pane in self.query(Pane) if pane.view is view]
            for pane in panes:
                pane.redraw()
            if not panes:  # the bars say nothing of a page that is not shown
                return
            with suppress(NoMatches):  # a result that comes while the screen is taken down, widget by widget
                self.show_bars()

    def notice(self, text: str, seconds: float = NOTICE_SECONDS) -> None:
        """Say something in the line of hints for some seconds."""
        self._notice, self._notice_until = text, time.monotonic() + seconds
        self._show_notice()  # a screen that was opened just now has no line yet: it shows the words immediately
        self.set_timer(seconds + 0.1, self._show_notice)

    def _show_notice(self) -> None:
        with suppress(NoMatches):  # while the screen is put up, or taken down, widget by widget
            self.show_hint()

    def clear_notice(self, text: str) -> None:
        """Clear a message that no longer holds."""
        if self._notice == text:
            self._notice = ""
            self.show_hint()

    # -- hints and prompt

    def show_bars(self) -> None:
        """Draw the lines around the panes."""
        self.show_hint()

    def hints(self) -> list[keys.Key]:
        """The keys to name, the most useful first."""
        return [*keys.in_scope("app"), *keys.in_scope("view")]

    def show_hint(self) -> None:
        """The prompt, or a notice, or keys."""
        bar = self.query_one("#hint", Bar)
        if self.prompt is not None:
            bar.show(self.prompt.line(self.size.width - 1))
        elif self._notice and time.monotonic() < self._notice_until:
            bar.show(((f" {self._notice}", "warn"),))
        else:
            bar.show(key_line(self._with_home_key(self.hints()), self.size.width - 1))

    def ask(self, label: str, take: Callable[[str], None], text: str = "") -> None:
        """Ask for a text."""
        self.prompt = Prompt(label, take, text)
        self.show_hint()

    def refuse_text(self, reason: str) -> None:
        """Say why no text is taken, and let what is typed after all be no keys."""
        self.prompt = Refusal(reason)
        self.show_hint()

    def ask_question(self, question: Question) -> None:
        """Ask a question that is answered by a key."""
        self.prompt = question
        self.show_hint()

    def on_key(self, event: events.Key) -> None:
        """A key that is not for anything else of this screen."""
        self.take_key(event)

    def take_key(self, event: events.Key) -> None:
        """Keys go to the prompt while there is one; any other ends what was said before it."""
        if self.prompt is not None:
            event.stop()
            event.prevent_default()
            prompt, self.prompt = self.prompt, None
            if prompt.press(event.key, event.character):
                self.prompt = prompt
            self.show_bars()
        elif event.key not in self.active_bindings and (command := self._command_of(event)):
            self.view.command(command)
            self.show_bars()
        elif event.key not in self.active_bindings:
            lacking = frozenset(keys.SCOPES) - self.scopes
            self.notice(keys.unused_key_text(event.key, event.character, lacking))
        elif self._notice:
            self._notice = ""
            self.show_hint()

    def _command_of(self, event: events.Key) -> str:
        """The command of a key that a screen of panes leaves to the drawing in one of them; "" for none."""
        command = keys.command_of_pressed(event.key)
        return command if command in self.view.commands() else ""

    def on_paste(self, event: events.Paste) -> None:
        """Insert pasted text into the prompt."""
        if self.prompt is not None:
            event.stop()
            self.prompt.insert(event.text)
            self.show_hint()

    # -- keys of every view

    def action_move(self, step: int) -> None:
        """Move by lines or rows."""
        self.view.move(step)

    def action_move_page(self, step: int) -> None:
        """Move by pages."""
        self.view.move_page(step)

    def action_move_to(self, end: int) -> None:
        """Move to the start (0) or the end (-1)."""
        self.view.move_to(end)

    def action_shift(self, step: int) -> None:
        """Sideways."""
        self.view.shift(step)

    def action_search(self) -> None:
        """Ask what to search for."""
        if not self.view.searches:
            self.refuse_text("this page has no lines to search")
            return
        if self.view.search_hides_others:
            self.action_filter()
        else:
            self.ask("search", lambda text: self.view.search(text))  # another page may be shown by then

    def action_next_match(self, step: int) -> None:
        """Go to the next (1) or previous (-1) match."""
        if not self.view.search_text:
            self.notice("no search text yet: press / to search")
        self.view.next_match(step)

    def action_filter(self) -> None:
        """Ask what must be in what is shown; the filter acts while it is typed."""
        if not self.view.filters:
            self.refuse_text("this page has no lines to filter")
            return
        self.prompt = FilterPrompt("filter", lambda text: self.view.set_filter(text), self.view.filter_text)
        self.show_hint()

    def action_choose_order(self) -> None:
        """Choose the column to sort by, from those that are shown."""
        view, titles = self.view, self.view.sortable()
        if not titles:
            if SORT_OR_ZOOM in view.commands():  # its key is that of sorting
                view.command(SORT_OR_ZOOM)
            else:
                self.notice("no columns to sort by in this panel")
            return
        letters = assign_letters(titles)
        items = [LetterItem(letters[key], title, value=key) for key, title in titles.items()]
        place = list(titles).index(view.sorted_column) if view.sorted_column in titles else 0
        self.app.push_screen(LetterScreen("Sort by", items, place), partial(self._take_order, view))

    def _take_order(self, view: PaneView, key: str | None) -> None:
        if key is not None:
            view.sort_by(key)
            self.show_bars()

    def action_copy(self) -> None:
        """Copy the view's text to the clipboard and to a file."""
        text = self.view.text_to_copy()
        self.tables.submit("copy", partial(copy_out, text), partial(self._take_copy, text))

    def _take_copy(self, text: str, words: str) -> None:
        self.probe_app.to_clipboard(text)
        self.notice(words)

    def full_names(self) -> Sequence[str]:
        """Return the selection, with names in full."""
        return self.view.full_names()

    def action_whole_names(self) -> None:
        """Show them in front of the screen."""
        if names := self.full_names():
            self.show_names(names)
        else:
            self.notice("all names are shown in full")

    def show_names(self, names: Sequence[str]) -> None:
        """Show names over the screen, to be copied."""
        self.app.push_screen(NameScreen(names), self._copy_names)

    def _copy_names(self, names: str | None) -> None:
        if names is not None:
            self.tables.submit("copy", partial(copy_out, names), partial(self._take_copy, names))

    def action_export(self) -> None:
        """Write a new file in the current directory; ask for the format if there are several."""
        view = self.view
        writers = view.export_writers()
        if len(writers) == 1:
            self._export(view.name, writers, next(iter(writers)))
            return
        answers = [QuestionKey(KEYS[form], form, form) for form in KEYS if form in writers]
        self.ask_question(Question("Write as", answers, partial(self._export, view.name, writers)))

    def _export(self, name: str, writers: Mapping[str, Writer], form: str) -> None:
        job = partial(export, name, SUFFIXES[form], writers[form])
        self.analyses.submit("export", job, self.notice)
