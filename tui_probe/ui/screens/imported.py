"""The screen of imported files: pages of tables, and a timeline, each made in the background when it is first shown."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tui_probe.errors import ProbeError
from tui_probe.render.views.view import Document
from tui_probe.ui import keys
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.views.document import DocumentView
from tui_probe.ui.views.drawing import DrawingView
from tui_probe.ui.views.message import MessageView
from tui_probe.ui.widgets.bars import NUMBERED, Bar, Tab, TabBar, fitting
from tui_probe.ui.widgets.pane import Pane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from tui_probe.render.imported import Imported, ImportedPage
    from tui_probe.render.views.view import View as Picture
    from tui_probe.ui.views.view import View


class ImportedScreen(ViewScreen):
    """Shows pages by number; ``q`` leaves the application."""

    BINDINGS = keys.bindings("kernel", "drawing")

    def __init__(self, imported: Imported) -> None:
        super().__init__()
        self.imported = imported
        self.tabs = [Tab(page.name, page.title, page.title) for page in imported.pages]
        self.current = self.tabs[0].id
        self.hosted: dict[str, View] = {}
        self._view: View = MessageView(self, "reading", "reading…")

    def compose(self) -> ComposeResult:
        """The files, the pages, the page, what is seen of it, hints."""
        yield Bar("bar", id="title")
        yield TabBar(self.tabs, id="tabs")
        yield Pane(self._view, id="page")
        yield Bar("bar", id="state")
        yield Bar(id="hint")

    def on_mount(self) -> None:
        """Show the first page."""
        self.action_page(self.current)

    @property
    def view(self) -> View:
        """The page in sight."""
        return self._view

    @property
    def page_tabs(self) -> Sequence[Tab]:
        """The pages that the palette offers."""
        return self.tabs

    def _page(self, name: str) -> ImportedPage:
        return next(page for page in self.imported.pages if page.name == name)

    def _made(self, name: str, made: Picture | str) -> None:
        """Take a page that was made, or why it could not be."""
        view: View
        if isinstance(made, str):
            view = MessageView(self, name, made, "bad")
        elif isinstance(made, Document):
            view = DocumentView(self, name, made, None)
        else:
            view = DrawingView(self, name, made, None, ascii_only=self.probe_app.ascii_only)
        self.hosted[name] = view
        if name == self.current:
            self._host(view)

    def _host(self, view: View) -> None:
        self._view.focused, view.focused = False, True
        self._view = view
        self.query_one("#page", Pane).host(view)
        self.show_bars()

    def show_bars(self) -> None:
        """The files, the pages, the state, hints."""
        if not self.is_mounted:
            return
        self.query_one("#title", Bar).show(((f" {self.imported.title}", "title"),))
        self.query_one(TabBar).show(self.current, None, focused=True)
        state = self.query_one("#state", Bar)
        state.show(((f" {fitting(self._view.status(), state.size.width - 2)}", ""),))
        self.show_hint()

    def hints(self) -> list[keys.Key]:
        """The keys of the page, then those of the screen."""
        commands = self._view.commands()
        drawing = [key for key in keys.in_scope("drawing") if keys.command_of(key) in commands]
        rest = [key for key in keys.in_scope("kernel", "app", "view") if key.id not in ("leave", "interrupt")]
        return [*drawing, *rest]

    # -- keys

    def action_back(self) -> None:
        """End search and filter; quit."""
        if not self._view.clear_search():
            self.app.exit()

    def action_page(self, page: str) -> None:
        """Show a page by its name."""
        self.current = page
        if page in self.hosted:
            self._host(self.hosted[page])
            return
        self._host(MessageView(self, page, "reading…"))
        self.analyses.submit((self, page), partial(_make, self._page(page)), partial(self._made, page))

    def action_number(self, number: int) -> None:
        """Show a page by its number."""
        if number <= min(len(self.tabs), NUMBERED):
            self.action_page(self.tabs[number - 1].id)
        else:
            self.notice(f"there is no page {number}")

    def action_next_view(self, step: int) -> None:
        """The page beside this one."""
        names = [tab.id for tab in self.tabs]
        self.action_page(names[(names.index(self.current) + step) % len(names)])

    def action_command(self, command: str) -> None:
        """Give a command to the page."""
        if command in self._view.commands():
            self._view.command(command)
            self.show_bars()
        else:
            self.notice(f"this page has no such key ({keys.words_of(command)})")


def _make(page: ImportedPage) -> Picture | str:
    """The page, or why it cannot be made."""
    try:
        return page.make()
    except ProbeError as error:
        return str(error)
