"""Opens the pages of a screen in the background, one at a time, and keeps the views that come of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from tui_probe.draw.view import Document
from tui_probe.pages.table_page import TablePage
from tui_probe.ui.opening import Nothing, Opening
from tui_probe.ui.views.document import DocumentView
from tui_probe.ui.views.drawing import DrawingView
from tui_probe.ui.views.message import MessageView
from tui_probe.ui.views.rows import RowsView
from tui_probe.ui.views.view import Desk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tui_probe.ui.opening import Page
    from tui_probe.ui.views.view import View


class PageDesk(Desk, Protocol):
    """The screen that the pages are for."""

    @property
    def ascii_only(self) -> bool:
        """Are only ASCII characters drawn?"""

    @property
    def window(self) -> tuple[int, int]:
        """Columns and rows for a page; (0, 0) as long as that is not known."""

    def page_keys(self) -> Mapping[str, str]:
        """What is pressed for pages, by name."""

    def arrive(self, view: View) -> None:
        """A page that was asked for is open: show it."""


class PageOpener:
    """``kept`` are the views of pages that are open, by name; ``left`` says what was seen of pages before that."""

    def __init__(self, desk: PageDesk) -> None:
        self.desk = desk
        self.kept: dict[str, View] = {}
        self.left: Mapping[str, object] = {}
        self.opening: Opening | None = None
        self.newer: Opening | None = None
        """A page that is visible already and is read again."""
        self.closed = False

    @property
    def idle(self) -> bool:
        """Is nothing being opened?"""
        return self.opening is None and self.newer is None

    def open(self, page: Page, before: View) -> None:
        """Open a page; a view of the same name that was seen ``before`` gives it its place."""
        self.give_up()
        self.opening = opening = Opening(page)
        self.desk.analyses.submit((self, "open"), opening.run, partial(self._opened, opening, before))

    def _opened(self, opening: Opening, before: View, result: Any) -> None:
        """Take what was opened, if it is still wanted."""
        if opening is not self.opening:
            return
        if result is None:
            self.opening = None
            return
        view = self._hosting(opening.page, result)
        if isinstance(view, DocumentView | DrawingView):
            if before.name == view.name and not isinstance(before, MessageView):
                view.resume(before)
            elif view.name in self.left:
                view.see(self.left[view.name])
        size = self.desk.window
        if isinstance(view, DrawingView) and all(size):
            # What was there stays until the drawing is ready: an empty page in between would be sent, too.
            view.when_ready = partial(self._take, opening, view)
            view.resize(*size)
        else:
            self._take(opening, view)

    def _take(self, opening: Opening, view: View) -> None:
        if opening is self.opening:
            self.opening = None
            if not isinstance(view, MessageView):  # there may be something another time
                self.kept[view.name] = view
            self.desk.arrive(view)

    def _hosting(self, page: Page, result: Any) -> View:
        if isinstance(result, Nothing):
            return MessageView(self.desk, page.name, result.text, "bad" if result.fault else "dim")
        if isinstance(result, Document):
            kind = RowsView if isinstance(result, TablePage) else DocumentView
            view = kind(self.desk, page.name, result, page.source)
            view.name_keys(self.desk.page_keys())
            return view
        return DrawingView(self.desk, page.name, result, page.source, ascii_only=self.desk.ascii_only)

    def read_again(self, page: Page, view: DocumentView) -> None:
        """Read a page that is visible anew; until that is done it stays as it is, and its place does then, too."""
        self.newer = newer = Opening(page)
        self.desk.analyses.submit((self, "newer"), newer.run, partial(self._take_newer, newer, view))

    def _take_newer(self, newer: Opening, view: DocumentView, result: Any) -> None:
        if newer is not self.newer:
            return
        self.newer = None
        if isinstance(result, Document) and newer.page.source is not None:
            view.replace(result, newer.page.source)

    def give_up(self) -> None:
        """Stop what is being opened."""
        for opening in (self.opening, self.newer):
            if opening is not None:
                opening.cancel()
        self.opening = self.newer = None

    def close(self) -> None:
        """Nobody waits for anything any more."""
        self.give_up()
        self.closed = True

    def seen(self) -> dict[str, object]:
        """What is to be seen of each page when it is opened again."""
        return {**self.left, **{name: view.seen() for name, view in self.kept.items()}}

    def forget(self, left: Mapping[str, object]) -> None:
        """Keep nothing: pages are about something else now, of which this was seen before."""
        self.give_up()
        self.kept.clear()
        self.left = left
