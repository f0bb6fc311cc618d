"""A page of rows about one process, made in the background and again when the trace has grown."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any

from tui_probe.ui.views.rows import RowsView

if TYPE_CHECKING:
    from tui_probe.pages.table_page import TablePage
    from tui_probe.trace.model import Trace
    from tui_probe.ui.feed import ProcessView
    from tui_probe.ui.views.view import Desk


class GrownView(RowsView):
    """``page`` makes the page of a trace; as long as its ``basis`` stays it is not made anew."""

    def __init__(self, desk: Desk, name: str, empty: TablePage[Any]) -> None:
        super().__init__(desk, name, empty, None)
        self._empty = empty
        self._trace: Trace | None = None
        self._seen: tuple[object, ...] = ()
        self._busy = False

    @abstractmethod
    def page(self, trace: Trace) -> TablePage[Any]:
        """The page, for a thread that may take its time."""

    @abstractmethod
    def basis(self, trace: Trace, process: ProcessView) -> tuple[object, ...]:
        """What must have changed for another page."""

    def look(self, process: ProcessView | None) -> None:
        """Make the page anew if the process has come further, or is another one."""
        trace = process.trace if process else None
        if trace is not self._trace:
            self._trace, self._seen = trace, ()
            self.put(self._empty)
        seen = () if trace is None or process is None else self.basis(trace, process)
        if trace is None or self._busy or seen == self._seen:
            return
        self._busy, self._seen = True, seen
        self.desk.analyses.submit((self, self.kind), partial(self.page, trace), partial(self._take, trace, process))

    def _take(self, trace: Trace, process: ProcessView | None, page: TablePage[Any]) -> None:
        self._busy = False
        if trace is self._trace:
            self.put(page)
        self.look(process)

    def put(self, page: TablePage[Any]) -> None:
        """Show a page in the place of the one before."""
        self.document = page
        self._lay_out()
        if not self._begun and self.gutter:
            self.to_first_row()

    def destination(self) -> tuple[str, int | None]:
        """The page of the kernel that the row under the cursor leads to, "" for the first, and a line there."""
        return "", None

    def kernel_index(self) -> int | None:
        """The kernel that the row under the cursor leads to."""
        place = self.opened()
        return None if place is None else place[1]
