"""The page of lines of all kernels of one process."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tui_probe.pages.table_page import TablePage, Words
from tui_probe.trace.offset import Offset
from tui_probe.ui.views.grown import GrownView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.pages.all_lines import KernelLine
    from tui_probe.trace.model import Trace
    from tui_probe.ui.feed import ProcessView
    from tui_probe.ui.views.view import Desk


class AllLinesView(GrownView):
    """Lines of all kernels; a row leads to the line in the code of its kernel.

    Which probes tell of lines is known once all probes are imported, which takes longer than a key may: in the
    background.
    """

    kind = "all lines"

    def __init__(self, desk: Desk, name: str) -> None:
        super().__init__(desk, name, TablePage("lines", "Lines of all kernels", (), (), Words()))
        self.has_lines = False
        """Whether some result of the trace tells of lines, as far as was looked."""
        self._looked_at: tuple[Trace | None, int] = (None, 0)

    def look_for_lines(self, process: ProcessView | None) -> None:
        """Look with each new result, until there are some."""
        trace = process.trace if process else None
        if trace is not self._looked_at[0]:
            self._looked_at, self.has_lines = (trace, 0), False
        if trace is None or self.has_lines or len(trace.results) == self._looked_at[1]:
            return
        self._looked_at = trace, len(trace.results)
        self.desk.analyses.submit((self, "has lines"), partial(_has_lines, trace), partial(self._take_has, trace))

    def _take_has(self, trace: Trace, has_lines: bool) -> None:
        if trace is self._looked_at[0]:
            self.has_lines = has_lines

    def page(self, trace: Trace) -> TablePage[KernelLine]:
        from tui_probe.pages.line_page import line_page

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
        from tui_probe.pages.line_page import ABOUT

        return ABOUT


def _has_lines(trace: Trace) -> bool:
    from tui_probe.pages.line_page import tells_of_lines

    return tells_of_lines(trace)
