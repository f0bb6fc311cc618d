"""The page of NVTX ranges of one process; behind each range the page of the kernels in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tui_probe.pages import range_totals
from tui_probe.pages.range_page import ABOUT, NONE, RangeLine, range_page
from tui_probe.pages.range_totals import key_of, range_totals_page
from tui_probe.pages.table_page import TablePage, Words
from tui_probe.ui.views.grown import GrownView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.pages.range_totals import RangeKey
    from tui_probe.trace.model import Trace
    from tui_probe.ui.feed import ProcessView
    from tui_probe.ui.views.view import Desk


class RangesView(GrownView):
    """Ranges and the kernels in them. A range leads to its kernels, which lead to their launches."""

    kind = "ranges"

    def __init__(self, desk: Desk, name: str) -> None:
        super().__init__(desk, name, _page_without_ranges())
        self.together = False
        self._only: RangeKey | None = None
        self._left: object = None
        """What was seen of the ranges when one was entered."""
        self._process: ProcessView | None = None

    def look(self, process: ProcessView | None) -> None:
        """Of another process no range was entered."""
        if process is None or self._process is None or process.directory != self._process.directory:
            self._only = self._left = None
        self._process = process
        super().look(process)

    def page(self, trace: Trace) -> TablePage[Any]:
        if self._only is not None:
            return range_totals_page(trace, self._only, together=self.together)
        return range_page(trace, together=self.together)

    def basis(self, trace: Trace, process: ProcessView) -> tuple[object, ...]:
        return len(trace.ranges), process.launches, self.together, self._only

    def put(self, page: TablePage[Any]) -> None:
        """The cursor on the first kernel of a range, and back on the range."""
        entered = isinstance(self.document, TablePage) and self.document.name != page.name
        super().put(page)
        if entered and self._only is not None:
            self.place.top = 0
            self.to_first_row()
        elif entered and page.name == self.kind and self._left is not None:
            self.see(self._left)
            self._left = None

    def enter(self) -> bool:
        """Show the kernels of the range at the cursor; False where there is none."""
        row = self.document.row(self.cursor) if isinstance(self.document, TablePage) and self.count else None
        if not isinstance(row, RangeLine) or row.launched is not None:
            return False
        self._left, self._only = self.seen(), key_of(row.node)
        super().clear_search()
        self.look(self._process)
        return True

    def clear_search(self) -> bool:
        """Forget the search; without one, show all ranges again."""
        if super().clear_search():
            return True
        entered, self._only = self._only is not None, None
        if entered:
            self.look(self._process)
        return entered

    def destination(self) -> tuple[str, int | None]:
        """From the kernels of a range to their launches."""
        return ("launches" if self._only is not None else ""), None

    def toggle(self, process: ProcessView | None) -> None:
        """Ranges of one name together, or each by itself; all of them."""
        self.together = not self.together
        self._only = self._left = None
        self.look(process)

    def explanation(self) -> Sequence[str]:
        """How to read the page."""
        return ABOUT if self._only is None else range_totals.ABOUT


def _page_without_ranges() -> TablePage[RangeLine]:
    return TablePage("ranges", "NVTX ranges", (), (), Words(notes=[NONE]))
