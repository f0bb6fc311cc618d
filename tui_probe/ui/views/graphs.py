"""The page of CUDA graphs of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.pages.graph_page import ABOUT, GraphLine, graph_page, no_graphs
from tui_probe.ui.views.grown import GrownView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.pages.table_page import TablePage
    from tui_probe.trace.model import Trace
    from tui_probe.ui.feed import ProcessView
    from tui_probe.ui.views.view import Desk


class GraphsView(GrownView):
    """Graphs and their nodes; a node leads to its kernel."""

    kind = "graphs"

    def __init__(self, desk: Desk, name: str) -> None:
        super().__init__(desk, name, no_graphs())

    def page(self, trace: Trace) -> TablePage[GraphLine]:
        return graph_page(trace)

    def basis(self, trace: Trace, process: ProcessView) -> tuple[object, ...]:
        return len(trace.graphs), process.launches, trace.graphs.changes

    def explanation(self) -> Sequence[str]:
        """How to read the page."""
        return ABOUT
