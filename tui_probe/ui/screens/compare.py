"""Two kernels, launches or runs against each other: every figure, and what two kernels have drawn, side by side."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tui_probe.draw.spans import clip
from tui_probe.pages.beside import drawn_by_both, open_beside
from tui_probe.pages.comparing import compare_sources, compare_traces
from tui_probe.pages.comparison import Comparison
from tui_probe.pages.comparison_leads import page_of_lead
from tui_probe.pages.views import kind_of
from tui_probe.trace.follow import open_trace
from tui_probe.ui.opening import Page
from tui_probe.ui.screens.kernel import tab_of
from tui_probe.ui.screens.paged import PagedScreen
from tui_probe.ui.screens.side import SideScreen
from tui_probe.ui.views.document import DocumentView
from tui_probe.ui.views.kernels import names_of
from tui_probe.ui.widgets.bars import Tab

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.pages.comparison_leads import Lead
    from tui_probe.probekit.kind import Source
    from tui_probe.ui.views.view import View

FIGURES = Tab("figures", "Figures", "Figures")


class ComparisonScreen(PagedScreen):
    """What every comparison has: its first page are the figures."""

    def __init__(self, *, known: bool) -> None:
        super().__init__([FIGURES], FIGURES.id, known=known, reading="reading the results of both")

    def title_line(self, cells: int) -> tuple[Line, Line]:
        """What it is; both sides are named on the page."""
        del cells
        return ((" Comparison", "title"),), ()

    def seen(self, cells: int) -> str:
        """Of both sides, cut at the end: without its letter no part could be told from that of the other side."""
        return clip(" · ".join(self.view.status()), cells)

    def action_jump(self) -> None:
        """From a row to the page of a kernel that shows what the row is about; q comes back to the row."""
        lead = self._lead()
        if lead is None:
            super().action_jump()
        else:
            self.tables.submit((self, "lead"), partial(page_of_lead, lead), partial(self._follow, self._view, lead))

    def _lead(self) -> Lead | None:
        """Where the line at the cursor leads."""
        view = self._view
        if not isinstance(view, DocumentView) or not isinstance(view.document, Comparison):
            return None
        return view.document.lead(view.cursor)

    def _follow(self, view: View, lead: Lead, found: tuple[str, str]) -> None:
        page, why = found
        if view is not self._view or self.probe_app.screen is not self:
            return
        if not page:
            self.notice(f"{lead.letter} has no page for {lead.about}: {why}")
            return
        screen = SideScreen(lead.letter, lead.source, page)
        self.app.push_screen(screen)
        screen.notice(f"{lead.about} of {lead.letter}, on the page {kind_of(page).title}")

    def leave(self) -> None:
        """To the screen before."""
        self.app.pop_screen()


class CompareScreen(ComparisonScreen):
    """Every figure of both and its change; on further pages what both have drawn, side by side."""

    def __init__(self, one: Source, other: Source) -> None:
        super().__init__(known=False)
        self.one, self.other = one, other

    def begin(self) -> None:
        """Find out what both sides have, and read their figures."""
        self.tables.submit((self, "pages"), partial(drawn_by_both, self.one, self.other), self._take_names)
        self.show_page()

    def _take_names(self, names: list[str]) -> None:
        kinds = [kind_of(name) for name in names]
        self.take_tabs([FIGURES, *map(tab_of, kinds)])

    def page(self, name: str) -> Page:
        """The figures, or a drawing of both."""
        if name == FIGURES.id:
            return Page(name, FIGURES.title, partial(compare_sources, self.one, self.other), self.one)
        return Page(name, kind_of(name).title, partial(open_beside, name, self.one, self.other), self.one)

    def whole_names(self) -> Sequence[str]:
        """What the page has at the cursor, and the kernels of both sides."""
        both = (*names_of(self.one.kernel), *names_of(self.other.kernel))
        return tuple(dict.fromkeys((*super().whole_names(), *both)))


class CompareRunsScreen(ComparisonScreen):
    """Every figure of the kernels that two traces have in common."""

    def __init__(self, before: Path, after: Path) -> None:
        super().__init__(known=True)
        self.before, self.after = before, after

    def page(self, name: str) -> Page:
        """The figures."""
        return Page(name, FIGURES.title, self._compare)

    def _compare(self, progress: Progress) -> Comparison:
        return compare_traces(open_trace(self.before), open_trace(self.after), progress)
