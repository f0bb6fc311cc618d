"""The page of lines of all kernels of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.pages.line_page import ABOUT, line_page, no_lines
from tui_probe.pages.nsight.page import TablePage
from tui_probe.trace.offset import Offset
from tui_probe.ui.views.grown import GrownView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.pages.all_lines import KernelLine
    from tui_probe.trace.model import Trace
    from tui_probe.ui.feed import ProcessView
    from tui_probe.ui.views.view import Desk


class AllLinesView(GrownView):
    """Lines of all kernels; a row leads to the line in the code of its kernel."""

    kind = "all lines"

    def __init__(self, desk: Desk, name: str) -> None:
        super().__init__(desk, name, no_lines())

    def page(self, trace: Trace) -> TablePage[KernelLine]:
        return line_page(trace)

    def basis(self, trace: Trace, process: ProcessView) -> tuple[object, ...]:
        return len(trace.results), process.results

    def destination(self) -> tuple[str, int | None]:
        """The code that has the line: machine code where that was probed itself."""
        row = self.document.row(self.cursor) if isinstance(self.document, TablePage) else None
        if row is None:
            return super().destination()
        line = row.row.line
        return ("sass" if isinstance(line, Offset) else "ptx"), line

    def explanation(self) -> Sequence[str]:
        """How to read the page."""
        return ABOUT
