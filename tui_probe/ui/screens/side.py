"""The pages of the kernel or launch of one side of a comparison; leaving them leads back to the row."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tui_probe.draw.shorten import shorten
from tui_probe.pages.views import FIXED, kind_of
from tui_probe.probekit.probe_results import aimed_by_name
from tui_probe.ui.launches import launch_words, with_newest
from tui_probe.ui.opening import Page, page_of, pages_of
from tui_probe.ui.screens.kernel import tab_of
from tui_probe.ui.screens.paged import PagedScreen
from tui_probe.ui.views.kernels import names_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.probekit.kind import Source


class SideScreen(PagedScreen):
    """Of side ``letter``. There is no table behind it, so no other kernel to step to."""

    def __init__(self, letter: str, source: Source, page: str) -> None:
        super().__init__([tab_of(kind_of(name)) for name in FIXED], page, known=False)
        self.letter, self.source = letter, source
        self._at = with_newest(source)

    def begin(self) -> None:
        """Find out what pages there are, and show the one that was asked for."""
        self.tables.submit((self, "pages"), partial(pages_of, self.source), self._take_pages)
        self.show_page()

    def _take_pages(self, pages: list[Any]) -> None:
        self.take_tabs([tab_of(kind, empty=not has) for kind, has in pages])

    def page(self, name: str) -> Page:
        """About all launches, where none was compared and a page can be."""
        kind = kind_of(name)
        return page_of(kind, self.source if name in FIXED or kind.grows else self._at)

    @property
    def about(self) -> Source:
        """The launch that is shown: of several probes of the run one that the page can show."""
        return aimed_by_name(self._at, *kind_of(self.current).probes)

    def title_line(self, cells: int) -> tuple[Line, Line]:
        """The side, the kernel and its trace; which launch is shown."""
        kernel, words = self.source.kernel, launch_words(self.about, brief=True)
        name = shorten(kernel.demangled, max(10, cells - len(words) - 16))
        return ((f" {self.letter} ", "head"), (f" #{kernel.index} ", "dim"), (name, "title")), ((words, "dim"),)

    def run_line(self, *, brief: bool = False) -> Line:
        """Its trace, or only whether it is simulated."""
        trace = self.source.trace
        name = () if brief else ((trace.directory.name, "dim"),)
        return (*name, *(((" [simulated]", "simulated"),) if trace.state.simulated else ()))

    def jump_words(self, page: str) -> str:
        """The title of the page."""
        return kind_of(page).title

    def whole_names(self) -> Sequence[str]:
        """What the page has at the cursor, and the kernel."""
        return (*super().whole_names(), *names_of(self.source.kernel))

    def leave(self) -> None:
        """Back to the comparison."""
        self.app.pop_screen()
