"""The page of NVTX ranges of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.pages.nsight.page import TablePage, Words
from tui_probe.pages.range_page import ABOUT, NONE, RangeLine, range_page
from tui_probe.ui.views.grown import GrownView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.trace.model import Trace
    from tui_probe.ui.feed import ProcessView
    from tui_probe.ui.views.view import Desk


class RangesView(GrownView):
    """Ranges and the kernels in them; a row leads to its kernel."""

    kind = "ranges"

    def __init__(self, desk: Desk, name: str) -> None:
        super().__init__(desk, name, _page_without_ranges())
        self.together = False

    def page(self, trace: Trace) -> TablePage[RangeLine]:
        return range_page(trace, together=self.together)

    def basis(self, trace: Trace, process: ProcessView) -> tuple[object, ...]:
        return len(trace.ranges), process.launches, self.together

    def toggle(self, process: ProcessView | None) -> None:
        """Ranges of one name together, or each by itself."""
        self.together = not self.together
        self.look(process)

    def explanation(self) -> Sequence[str]:
        """How to read the page."""
        return ABOUT


def _page_without_ranges() -> TablePage[RangeLine]:
    return TablePage("ranges", "NVTX ranges", (), (), Words(notes=[NONE]))
