"""Comparison of two kernels, launches or runs: metrics and drawings side by side, and the pages of one side."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import clip
from tui_probe.pages.comparison import Comparison, compare_sources, compare_traces
from tui_probe.pages.comparison_tables import linked_page
from tui_probe.pages.paired_drawings import open_pair, shared_drawings
from tui_probe.pages.views import FIXED_PAGES, keys_of_pages, kind_of
from tui_probe.trace.follow import open_trace
from tui_probe.ui.live.current_selection import launch_text, with_newest_launch
from tui_probe.ui.live.kernel_table import names_of
from tui_probe.ui.screens.further_pages import digit_tabs, kernel_tab
from tui_probe.ui.screens.page_opening import PageSpec, page_spec, pages_of
from tui_probe.ui.screens.paged import PagedScreen
from tui_probe.ui.views.document_view import DocumentView
from tui_probe.ui.widgets.pane import Tab

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.pages.comparison_tables import PageLink
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.ui.views.view import PaneView

METRICS_PAGE = Tab("figures", "Metrics", "Metrics", "1")


class SideScreen(PagedScreen):
    """Screen of side ``letter``. It has no table behind it, so no other kernel to step to."""

    def __init__(self, letter: str, source: ViewSource, page: str) -> None:
        super().__init__(digit_tabs(), page, tabs_known=False)
        self.letter, self.source = letter, source
        self._launch_source = with_newest_launch(source)

    def begin(self) -> None:
        """Find out what pages there are, and show the one that was asked for."""
        self.tables.submit((self, "pages"), partial(pages_of, self.source), self._take_pages)
        self.show_page()

    def _take_pages(self, pages: list[Any]) -> None:
        self.take_tabs([kernel_tab(kind, key, is_empty=not has_data) for kind, key, has_data in pages])

    def page(self, name: str) -> PageSpec:
        """Return the page of all launches if none was compared and the page allows it, else of one."""
        kind = kind_of(name)
        return page_spec(kind, self.source if name in FIXED_PAGES or kind.grows else self._launch_source)

    @property
    def shown_source(self) -> ViewSource:
        """The launch that is shown: of several probes of the run one that the page can show."""
        return self._launch_source.for_probe_names(*kind_of(self.current).probes)

    def title_line(self, cells: int) -> tuple[Line, Line]:
        """The side, the kernel and its trace; which launch is shown."""
        kernel, launch = self.source.kernel, launch_text(self.shown_source, brief=True)
        name = shorten(kernel.demangled, max(10, cells - len(launch) - 16))
        return ((f" {self.letter} ", "head"), (f" #{kernel.index} ", "dim"), (name, "title")), ((launch, "dim"),)

    def run_line(self, *, brief: bool = False) -> Line:
        """Return the name of its trace and whether it is simulated; only the latter if ``brief``."""
        trace = self.source.trace
        name = () if brief else ((trace.directory.name, "dim"),)
        return (*name, *(((" [simulated]", "simulated"),) if trace.state.simulated else ()))

    def jump_text(self, page: str) -> str:
        """The title of the page."""
        return kind_of(page).title

    def full_names(self) -> Sequence[str]:
        """Return the names at the cursor in full, and those of the kernel."""
        return (*super().full_names(), *names_of(self.source.kernel))

    def leave(self) -> None:
        """Back to the comparison."""
        self.app.pop_screen()


class ComparisonScreen(PagedScreen):
    """Base of comparisons; the first page has the metrics."""

    def __init__(self, *, tabs_known: bool) -> None:
        super().__init__(
            [METRICS_PAGE], METRICS_PAGE.id, tabs_known=tabs_known, reading="reading the results of A and B"
        )

    def title_line(self, cells: int) -> tuple[Line, Line]:
        """Return the title; the page names both sides."""
        del cells
        return ((" Comparison", "title"),), ()

    def status_text(self, cells: int) -> str:
        """Return the states of both sides, cut at the end: without its letter a part could belong to either side."""
        return clip(" · ".join(self.view.status()), cells)

    def action_jump(self) -> None:
        """Open the page of a kernel that shows what the row is about; the key q goes back to the row."""
        link = self._link_at_cursor()
        if link is None:
            super().action_jump()
        else:
            self.tables.submit((self, "lead"), partial(linked_page, link), partial(self._follow, self._view, link))

    def _link_at_cursor(self) -> PageLink | None:
        """Return the target of the line at the cursor."""
        view = self._view
        if not isinstance(view, DocumentView) or not isinstance(view.document, Comparison):
            return None
        return view.document.link_at(view.cursor)

    def _follow(self, view: PaneView, link: PageLink, page_or_reason: tuple[str, str]) -> None:
        page, reason = page_or_reason
        if view is not self._view or self.probe_app.screen is not self:
            return
        if not page:
            self.notice(f"{link.letter} has no page for {link.subject}: {reason}")
            return
        screen = SideScreen(link.letter, link.source, page)
        self.app.push_screen(screen)
        screen.notice(f"{link.subject} of {link.letter}, on the page {kind_of(page).title}")

    def leave(self) -> None:
        """Return to the screen before."""
        self.app.pop_screen()


class CompareScreen(ComparisonScreen):
    """Every value of both and its change; on further pages what both have drawn, side by side."""

    def __init__(self, baseline: ViewSource, candidate: ViewSource) -> None:
        super().__init__(tabs_known=False)
        self.baseline, self.candidate = baseline, candidate

    def begin(self) -> None:
        """Find out what both sides have, and read their values."""
        self.tables.submit((self, "pages"), partial(shared_drawings, self.baseline, self.candidate), self._take_names)
        self.show_page()

    def _take_names(self, names: list[str]) -> None:
        keys = keys_of_pages()
        self.take_tabs([METRICS_PAGE, *(kernel_tab(kind_of(name), keys[name]) for name in names)])

    def page(self, name: str) -> PageSpec:
        """The values, or a drawing of both."""
        if name == METRICS_PAGE.id:
            return PageSpec(
                name, METRICS_PAGE.title, partial(compare_sources, self.baseline, self.candidate), self.baseline
            )
        return PageSpec(
            name, kind_of(name).title, partial(open_pair, name, self.baseline, self.candidate), self.baseline
        )

    def full_names(self) -> Sequence[str]:
        """Return the names at the cursor in full, and those of the kernels of both sides."""
        kernel_names = (*names_of(self.baseline.kernel), *names_of(self.candidate.kernel))
        return tuple(dict.fromkeys((*super().full_names(), *kernel_names)))


class CompareRunsScreen(ComparisonScreen):
    """Every value of the kernels that two traces have in common."""

    def __init__(self, baseline: Path, candidate: Path) -> None:
        super().__init__(tabs_known=True)
        self.baseline, self.candidate = baseline, candidate

    def page(self, name: str) -> PageSpec:
        """The values."""
        return PageSpec(name, METRICS_PAGE.title, self._compare)

    def _compare(self, progress: Progress) -> Comparison:
        return compare_traces(open_trace(self.baseline), open_trace(self.candidate), progress)
