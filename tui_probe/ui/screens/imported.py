"""The screen of imported files, of a bandwidth result and of a roofline: pages that someone else has made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.ui.help_text import PageTopic, topic_of
from tui_probe.ui.screens.further_pages import file_tabs
from tui_probe.ui.screens.page_opening import PageSpec
from tui_probe.ui.screens.paged import PagedScreen

if TYPE_CHECKING:
    from tui_probe.draw.spans import Line
    from tui_probe.probekit.page_kinds import LazyPage, PageSet
    from tui_probe.ui.keys import Key


class ImportedScreen(PagedScreen):
    """``q`` leads home from a file that was opened there. Where there are traces, rows lead to their kernels."""

    NOWHERE = "no line of this page opens a kernel"

    def __init__(self, imported: PageSet) -> None:
        tabs = file_tabs(imported.pages)
        super().__init__(tabs, tabs[0].id, known=True)
        self.imported = imported

    def _page(self, name: str) -> LazyPage:
        return next(page for page in self.imported.pages if page.name == name)

    def page(self, name: str) -> PageSpec:
        """Made when it is first looked at."""
        page = self._page(name)
        return PageSpec(name, page.title, lambda _: page.make())

    def title_line(self, cells: int) -> tuple[Line, Line]:
        """The files."""
        del cells
        return ((f" {self.imported.title}", "title"),), ()

    @property
    def topic(self) -> PageTopic:
        """The topic of the current page: how to read it, and its keys."""
        page = self._page(self.current)
        return PageTopic(page.title, page.about, topic_of(self._view, page.title).keys)

    def jump_words(self, page: str) -> str:
        """Rows lead to other pages of the files, or out of them."""
        return "its trace" if page == "kernel" else page

    def names(self, key: Key) -> bool:
        """Leaving is quitting here, which has a key that works everywhere."""
        return key.id != "leave" and super().names(key)

    def leave(self) -> None:
        """Home. A press more than there is to go back from ends nothing."""
        if self.probe_app.session.from_home:
            self.app.exit()
        else:
            self.notice("Ctrl-Q quits")
