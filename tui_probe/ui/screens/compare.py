"""Two kernels or launches against each other."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tui_probe.draw.view import no_progress
from tui_probe.errors import ProbeError
from tui_probe.pages.beside import drawn_by_both, open_beside
from tui_probe.pages.comparison import Comparison, compare_sources
from tui_probe.ui import keys
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.views.document import DocumentView
from tui_probe.ui.views.drawing import DrawingView
from tui_probe.ui.views.message import MessageView
from tui_probe.ui.widgets.bars import Bar, Tab, TabBar
from tui_probe.ui.widgets.pane import Pane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from tui_probe.probekit.kind import Source
    from tui_probe.ui.views.view import View

FIGURES = "figures"


class CompareScreen(ViewScreen):
    """Every figure of both and its change; on further pages what both have drawn, side by side."""

    BINDINGS = keys.bindings("help", "comparison", "drawing")

    def __init__(self, one: Source, other: Source) -> None:
        super().__init__()
        self.one, self.other = one, other
        self.tabs = [Tab(FIGURES, "Figures", "Figures")]
        self.current = FIGURES
        self._views: dict[str, View] = {}

    def compose(self) -> ComposeResult:
        """A title, the pages, the page, what is seen of it, hints."""
        yield Bar("bar", id="title")
        yield TabBar(self.tabs, id="tabs")
        yield Pane(self.view, id="page")
        yield Bar("bar", id="state")
        yield Bar(id="hint")

    def on_mount(self) -> None:
        """Find out what both sides have, and read their figures."""
        self.query_one("#title", Bar).show(((" Comparison", "title"),))
        self.tables.submit((self, "pages"), partial(drawn_by_both, self.one, self.other), self._take_pages)
        self.action_page(FIGURES)

    def _take_pages(self, names: list[str]) -> None:
        self.tabs = [self.tabs[0], *(Tab(name, name.title(), name.title()) for name in names)]
        self.show_bars()

    @property
    def view(self) -> View:
        """The page in sight."""
        if self.current not in self._views:
            self._views[self.current] = MessageView(self, self.current, "reading the results of both")
        return self._views[self.current]

    @property
    def page_tabs(self) -> Sequence[Tab]:
        """The pages that the palette offers."""
        return self.tabs

    def action_page(self, page: str) -> None:
        """Show a page, and read what it needs the first time."""
        self.current = page
        if page not in self._views or isinstance(self._views[page], MessageView):
            job = partial(_opened, page, self.one, self.other)
            self.analyses.submit((self, page), job, partial(self._take, page))
        self.query_one("#page", Pane).host(self.view)
        self.show_bars()

    def _take(self, page: str, result: Any) -> None:
        if isinstance(result, str):
            self._views[page] = MessageView(self, page, result, "bad")
        elif isinstance(result, Comparison):
            self._views[page] = DocumentView(self, page, result, self.one)
        else:
            plain = self.probe_app.ascii_only
            self._views[page] = DrawingView(self, page, result, self.one, ascii_only=plain)
        if self.is_mounted and page == self.current:
            self.query_one("#page", Pane).host(self.view)
            self.show_bars()

    def show_bars(self) -> None:
        """The pages, what is seen of this one, hints."""
        self.query_one(TabBar).show(self.current, None, focused=True, tabs=self.tabs)
        self.query_one("#state", Bar).show(((f" {' · '.join(self.view.status())}", ""),))
        self.show_hint()

    def hints(self) -> list[keys.Key]:
        """How to leave, what the page can do, then the keys of views."""
        commands = self.view.commands()
        drawing = [key for key in keys.in_scope("drawing") if keys.command_of(key) in commands]
        return [*keys.in_scope("help"), *keys.in_scope("comparison"), *drawing, *keys.in_scope("view")]

    def action_next_page(self, step: int) -> None:
        """The page beside this one."""
        names = [tab.id for tab in self.tabs]
        self.action_page(names[(names.index(self.current) + step) % len(names)])

    def action_command(self, command: str) -> None:
        """Give a command to the page."""
        if command in self.view.commands():
            self.view.command(command)
            self.show_bars()
        else:
            self.notice(f"this page has no such key ({keys.words_of(command)})")

    def action_close(self) -> None:
        """Back to the screen before; first out of a search."""
        if not self.view.clear_search():
            self.app.pop_screen()


def _opened(page: str, one: Source, other: Source) -> object:
    """The page, or why there is none."""
    try:
        if page == FIGURES:
            return compare_sources(one, other, no_progress)
        return open_beside(page, one, other, no_progress)
    except (ProbeError, OSError) as error:
        return str(error)
