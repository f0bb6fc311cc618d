"""The screen of imported files: pages of tables, and a timeline, each made in the background when it is first shown."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tui_probe.draw.view import Document
from tui_probe.errors import ProbeError
from tui_probe.pages.roofline_pages import RooflineChart
from tui_probe.ui import keys
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.topic import Topic, topic_of
from tui_probe.ui.views.drawing import DrawingView
from tui_probe.ui.views.message import MessageView
from tui_probe.ui.views.rows import RowsView
from tui_probe.ui.widgets.bars import NUMBERED, Bar, Tab, TabBar, fitting
from tui_probe.ui.widgets.pane import Pane

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.app import ComposeResult

    from tui_probe.draw.view import View as Picture
    from tui_probe.pages.imported import Imported, ImportedPage
    from tui_probe.ui.views.view import View


class ImportedScreen(ViewScreen):
    """Shows pages by number; ``q`` leaves the application. Where there are traces, rows lead to their kernels."""

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

    @property
    def topic(self) -> Topic:
        """How to read the page in sight, and what its keys do."""
        page = self._page(self.current)
        return Topic(page.title, page.about, topic_of(self._view, page.title).keys)

    def _page(self, name: str) -> ImportedPage:
        return next(page for page in self.imported.pages if page.name == name)

    def _made(self, name: str, made: Picture | str) -> None:
        """Take a page that was made, or why it could not be."""
        view: View
        if isinstance(made, str):
            view = MessageView(self, name, made, "bad")
        elif isinstance(made, Document):
            view = RowsView(self, name, made, None)
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
        jump = [replace(key, footer="its trace") for key in keys.in_scope("kernel") if key.id == "jump"]
        commands = self._view.commands()
        drawing = [key for key in keys.in_scope("drawing") if keys.command_of(key) in commands]
        rest = [
            key
            for key in keys.in_scope("kernel", "app", "view")
            if key.id not in ("leave", "jump", "interrupt") and self.applies(key)
        ]
        return [*(jump if self._view.leads_to() else []), *drawing, *rest]

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

    def action_jump(self) -> None:
        """To the screen of the kernel that the row or point under the cursor is about, in its trace."""
        place = self._leads_to()
        if place is None:
            leads = bool(self._view.leads_to())
            self.notice(
                "this line leads to no kernel of a trace" if leads else "nothing on this page leads to a kernel"
            )
            return
        live, (directory, index) = self.probe_app.live, place
        found = [number for number, each in enumerate(live.snapshot.processes) if each.directory == directory]
        if not found or all(row.index != index for row in live.snapshot.processes[found[0]].kernels):
            self.notice(f"{directory.name} is still being read: try again in a moment")
            return
        live.show_process(found[0])
        live.table.select(index)
        # The table takes its rows in the background: what is asked for later comes after it.
        self.tables.submit((self, "jump"), lambda: None, self._show_kernel)

    def _show_kernel(self, _: None) -> None:
        self.app.push_screen(KernelScreen(self.probe_app.live))

    def _leads_to(self) -> tuple[Path, int] | None:
        """The trace and the kernel that the cursor is at."""
        view = self._view
        if isinstance(view, RowsView):
            return view.opened()
        if isinstance(view, DrawingView) and isinstance(view.drawing, RooflineChart):
            return view.drawing.opened()
        return None

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
