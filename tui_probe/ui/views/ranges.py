"""The page of NVTX ranges of one process, made in the background and again when the trace has grown."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tui_probe.pages.nsight.page import TablePage, Words
from tui_probe.pages.range_page import ABOUT, NONE, RangeLine, range_page
from tui_probe.ui.views.rows import RowsView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.trace.model import Trace
    from tui_probe.ui.feed import ProcessView
    from tui_probe.ui.views.view import Desk


class RangesView(RowsView):
    """Ranges and the kernels in them; a row leads to its kernel."""

    kind = "ranges"

    def __init__(self, desk: Desk, name: str) -> None:
        super().__init__(desk, name, _page_without_ranges(), None)
        self.together = False
        self._trace: Trace | None = None
        self._seen: tuple[object, ...] = ()
        self._busy = False

    def look(self, process: ProcessView | None) -> None:
        """Make the page anew if the process has launched more, or is another one."""
        trace = process.trace if process else None
        if trace is not self._trace:
            self._trace, self._seen = trace, ()
            self._show(_page_without_ranges())
        seen = () if trace is None or process is None else (len(trace.ranges), process.launches, self.together)
        if trace is None or self._busy or seen == self._seen:
            return
        self._busy, self._seen = True, seen
        job = partial(range_page, trace, together=self.together)
        self.desk.analyses.submit((self, "ranges"), job, partial(self._take, trace, process))

    def _take(self, trace: Trace, process: ProcessView | None, page: TablePage[RangeLine]) -> None:
        self._busy = False
        if trace is self._trace:
            self._show(page)
        self.look(process)

    def _show(self, page: TablePage[RangeLine]) -> None:
        self.document = page
        self._lay_out()
        if not self._begun and self.gutter:
            self.to_first_row()

    def toggle(self, process: ProcessView | None) -> None:
        """Ranges of one name together, or each by itself."""
        self.together = not self.together
        self.look(process)

    def kernel_index(self) -> int | None:
        """The kernel that the row under the cursor leads to."""
        place = self.opened()
        return None if place is None else place[1]

    def explanation(self) -> Sequence[str]:
        """How to read the page."""
        return ABOUT


def _page_without_ranges() -> TablePage[RangeLine]:
    return TablePage("ranges", "NVTX ranges", (), (), Words(notes=[NONE]))
