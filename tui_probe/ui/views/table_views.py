"""Tables whose rows lead to kernels; those of ranges, graphs and lines are remade as the trace grows.

So is the tree of where the GPU time goes, whose nodes are opened and closed.

The pages are imported where they are made, in the background: the first frame of a screen has none of them.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any

from tui_probe.draw.table_content import PageTexts
from tui_probe.pages.table_page import TablePage
from tui_probe.trace.kernel_files import Offset
from tui_probe.ui.views.document_view import DocumentView

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.pages.all_lines import KernelLine
    from tui_probe.pages.graph_page import GraphLine
    from tui_probe.pages.range_page import RangeKey
    from tui_probe.pages.tree_page import TreeNode
    from tui_probe.trace.model import Trace
    from tui_probe.ui.live.snapshots import ProcessView
    from tui_probe.ui.views.view import ViewHost

NodePath = tuple[str, ...]
"""Titles of the nodes of the tree from its root to a node."""


class RowsView(DocumentView):
    """Shows a ``TablePage``."""

    _has_begun = False

    def resize(self, width: int, height: int) -> None:
        """The first time the cursor goes to the first row."""
        super().resize(width, height)
        if not self._has_begun and self.window.gutter:
            self.to_first_row()

    def to_first_row(self) -> None:
        """Move the cursor to the first row, with as many lines above it visible as there is room for."""
        if not self.width:
            return
        self._has_begun = True
        if isinstance(self.document, TablePage):
            self.window.place.cursor = self.document.first_row_line
            self.window.clamp()
            self.request_redraw()

    def shift(self, step: int) -> None:
        """Sideways in a table is the next column to sort by, as in that of kernels."""
        command = "order" if step > 0 else "order_back"
        if command in self.commands():
            self.command(command)
        else:
            super().shift(step)

    def kernel_target(self) -> tuple[Path, int] | None:
        """The trace and the kernel that the row under the cursor leads to."""
        return self.document.kernel_target(self.cursor) if isinstance(self.document, TablePage) else None


def _unread_page(name: str, title: str) -> TablePage[Any]:
    """Return the page that is shown until the first one was made."""
    return TablePage(name, title, (), (), PageTexts(no_rows="reading the trace"))


class GrowingView(RowsView):
    """``page`` makes the page of a trace; as long as its ``basis`` stays it is not made anew."""

    key_scope = ""  # the keys of the live screen, not those of drawings

    def __init__(self, view_host: ViewHost, name: str, empty_page: TablePage[Any]) -> None:
        super().__init__(view_host, name, empty_page, None)
        self._empty_page = empty_page
        self._trace: Trace | None = None
        self._basis: tuple[object, ...] = ()
        self._is_busy = False

    @abstractmethod
    def page(self, trace: Trace) -> TablePage[Any]:
        """The page, for a thread that may take its time."""

    @abstractmethod
    def basis(self, trace: Trace, process: ProcessView) -> tuple[object, ...]:
        """Return the data that must change before the page is built again."""

    def update(self, process: ProcessView | None) -> None:
        """Make the page anew if the process has come further, or is another one."""
        trace = process.trace if process else None
        if trace is not self._trace:
            self._trace, self._basis = trace, ()
            self.show_page(self._empty_page)
        basis = () if trace is None or process is None else self.basis(trace, process)
        if trace is None or self._is_busy or basis == self._basis:
            return
        self._is_busy, self._basis = True, basis
        self.view_host.analyses.submit((self, "page"), partial(self.page, trace), partial(self._take, trace, process))

    def _take(self, trace: Trace, process: ProcessView | None, page: TablePage[Any]) -> None:
        self._is_busy = False
        if trace is self._trace:
            page.take_over(self.document)
            self.show_page(page)
        self.update(process)

    def show_page(self, page: TablePage[Any]) -> None:
        """Show a page instead of the one before."""
        self._show(page)
        if not self._has_begun and self.window.gutter:
            self.to_first_row()

    def destination(self) -> tuple[str, int | None]:
        """The page of the kernel that the row under the cursor leads to, "" for the first, and a line there."""
        return "", None

    def kernel_index(self) -> int | None:
        """The kernel that the row under the cursor leads to."""
        place = self.kernel_target()
        return None if place is None else place[1]


class RangesView(GrowingView):
    """Ranges and the kernels in them. A range leads to its kernels, which lead to their launches."""

    key_scope = "ranges"

    def __init__(self, view_host: ViewHost, name: str) -> None:
        super().__init__(view_host, name, _unread_page("ranges", "NVTX ranges"))
        self.merges_names = False
        self._entered_range: RangeKey | None = None
        self._list_state: object = None
        """Saved state of the list of ranges when one was entered."""
        self._process: ProcessView | None = None

    def update(self, process: ProcessView | None) -> None:
        """Show the ranges of the process; one that was entered is left if the process is another."""
        if process is None or self._process is None or process.directory != self._process.directory:
            self._entered_range = self._list_state = None
        self._process = process
        super().update(process)

    def page(self, trace: Trace) -> TablePage[Any]:
        from tui_probe.pages.range_page import range_page, range_totals_page

        if self._entered_range is not None:
            return range_totals_page(trace, self._entered_range, merged_by_name=self.merges_names)
        return range_page(trace, merged_by_name=self.merges_names)

    def basis(self, trace: Trace, process: ProcessView) -> tuple[object, ...]:
        return len(trace.ranges), process.launches, self.merges_names, self._entered_range

    def show_page(self, page: TablePage[Any]) -> None:
        """The cursor on the first kernel of a range, and back on the range."""
        entered = isinstance(self.document, TablePage) and self.document.name != page.name
        super().show_page(page)
        if entered and self._entered_range is not None:
            self.window.place.top = 0
            self.to_first_row()
        elif entered and page.name == self.name and self._list_state is not None:
            self.restore(self._list_state)
            self._list_state = None

    def enter(self) -> bool:
        """Show the kernels of the range at the cursor; False where there is none."""
        from tui_probe.pages.range_page import RangeLine, range_key

        row = self.document.row(self.cursor) if isinstance(self.document, TablePage) and self.count else None
        if not isinstance(row, RangeLine) or row.launches_of_kernel is not None:
            return False
        self._list_state, self._entered_range = self.state(), range_key(row.node)
        self.lookup.clear_all()
        self.update(self._process)
        return True

    def clear_search(self) -> bool:
        """End the search or the filter; without one, show all ranges again."""
        if super().clear_search():
            return True
        entered, self._entered_range = self._entered_range is not None, None
        if entered:
            self.update(self._process)
        return entered

    def destination(self) -> tuple[str, int | None]:
        """Return the page that Enter opens: the launches, for the kernels of a range."""
        return ("launches" if self._entered_range is not None else ""), None

    def toggle(self, process: ProcessView | None) -> None:
        """Ranges of one name together, or each by itself; all of them."""
        self.merges_names = not self.merges_names
        self._entered_range = self._list_state = None
        self.update(process)

    def explanation(self) -> Sequence[str]:
        """Return how to read the page."""
        from tui_probe.pages.range_page import RANGES_EXPLANATION, TOTALS_EXPLANATION

        return RANGES_EXPLANATION if self._entered_range is None else TOTALS_EXPLANATION


class GraphsView(GrowingView):
    """Graphs and their nodes; a node leads to its kernel."""

    def __init__(self, view_host: ViewHost, name: str) -> None:
        super().__init__(view_host, name, _unread_page("graphs", "CUDA graphs"))

    def page(self, trace: Trace) -> TablePage[GraphLine]:
        from tui_probe.pages.graph_page import graph_page

        return graph_page(trace)

    def basis(self, trace: Trace, process: ProcessView) -> tuple[object, ...]:
        return len(trace.graphs), process.launches, trace.graphs.changes

    def explanation(self) -> Sequence[str]:
        """Return how to read the page."""
        from tui_probe.pages.graph_page import GRAPHS_EXPLANATION

        return GRAPHS_EXPLANATION


class AllLinesView(GrowingView):
    """Lines of all kernels; a row leads to the line in the code of its kernel.

    Which probes report lines is known once all probes are imported, which takes longer than a key may: in the
    background.
    """

    def __init__(self, view_host: ViewHost, name: str) -> None:
        super().__init__(view_host, name, _unread_page("lines", "Lines of all kernels"))
        self.has_lines = False
        """True if a result of the trace has lines, of those checked so far."""
        self._looked_at: tuple[Trace | None, int] = (None, 0)

    def look_for_lines(self, process: ProcessView | None) -> None:
        """Look with each new result, until there are some."""
        trace = process.trace if process else None
        if trace is not self._looked_at[0]:
            self._looked_at, self.has_lines = (trace, 0), False
        if trace is None or self.has_lines or len(trace.results) == self._looked_at[1]:
            return
        self._looked_at = trace, len(trace.results)
        self.view_host.analyses.submit((self, "has lines"), partial(_has_lines, trace), partial(self._take_has, trace))

    def _take_has(self, trace: Trace, has_lines: bool) -> None:
        if trace is self._looked_at[0]:
            self.has_lines = has_lines

    def page(self, trace: Trace) -> TablePage[KernelLine]:
        from tui_probe.pages.all_lines import line_page

        return line_page(trace)

    def basis(self, trace: Trace, process: ProcessView) -> tuple[object, ...]:
        return len(trace.results), process.results

    def destination(self) -> tuple[str, int | None]:
        """The source of the line, or its code: SASS where that was probed itself."""
        row = self.document.row(self.cursor) if isinstance(self.document, TablePage) else None
        if row is None:
            return super().destination()
        line = row.row.line
        if row.row.source is not None:
            return "source", line
        return ("sass" if isinstance(line, Offset) else "ptx"), line

    def explanation(self) -> Sequence[str]:
        """Return how to read the page."""
        from tui_probe.pages.all_lines import LINES_EXPLANATION

        return LINES_EXPLANATION


def _has_lines(trace: Trace) -> bool:
    from tui_probe.pages.all_lines import has_line_measures

    return has_line_measures(trace)


class TreeView(GrowingView):
    """Shows the opened part of the tree; nodes are known by their paths, so it stays open while the trace grows."""

    def __init__(self, view_host: ViewHost, name: str) -> None:
        super().__init__(view_host, name, _unread_page("tree", "Where the GPU time goes"))
        self.open_paths: frozenset[NodePath] | None = None
        """Paths of opened nodes; None: the program alone, as long as it is not known."""
        self._process: ProcessView | None = None
        self._built: tuple[object, TreeNode] | None = None
        self._target: NodePath | None = None
        """Node that the cursor goes to with the next page."""

    def update(self, process: ProcessView | None) -> None:
        """Make the page anew if the process has come further, or a node was opened or closed."""
        self._process = process
        super().update(process)

    def page(self, trace: Trace) -> TablePage[TreeNode]:
        """Build the tree if the trace has grown, and return the page of its opened part."""
        from tui_probe.pages.tree_page import page_of_tree, program_tree

        basis = trace, len(trace.results), len(trace.launches)
        if self._built is None or self._built[0] != basis:
            self._built = basis, program_tree(trace)
        root = self._built[1]
        open_paths = self.open_paths if self.open_paths is not None else frozenset({root.path})
        return page_of_tree(trace, root, open_paths)

    def basis(self, trace: Trace, process: ProcessView) -> tuple[object, ...]:
        return len(trace.results), process.launches, self.open_paths

    def show_page(self, page: TablePage[TreeNode]) -> None:
        """Show a page, with the cursor on the node that was gone to."""
        if self.open_paths is None and page.rows:
            self.open_paths = frozenset({page.rows[0].path})
        super().show_page(page)
        target, self._target = self._target, None
        place = next((place for place, node in enumerate(page.rows) if node.path == target), None)
        if place is not None:
            self.make_lines()
            self.window.place.cursor = page.first_row_line + place
            self.window.clamp()
            self.request_redraw()

    def make_lines(self) -> None:
        """Format the lines of the page, which determine where its rows begin."""
        if self.width:
            self.document.lines(self.width)

    @property
    def node(self) -> TreeNode | None:
        """The node at the cursor."""
        row: TreeNode | None = self.document.row(self.cursor) if isinstance(self.document, TablePage) else None
        return row

    def enter(self) -> bool:
        """Descend into the node at the cursor; False where it has nothing inside it, or is a kernel that is open."""
        node = self.node
        open_paths = self.open_paths or frozenset()
        if node is None or (node.level == "kernel" and node.path in open_paths):
            return False
        return self._descend(node)

    def _descend(self, node: TreeNode) -> bool:
        if node.inner:
            self._show_nodes((self.open_paths or frozenset()) | {node.path}, node.inner[0].path)
        return bool(node.inner)

    def shift(self, step: int) -> None:
        """Right descends; left closes the node at the cursor, or goes up."""
        node, open_paths = self.node, self.open_paths or frozenset()
        if node is None:
            return
        if step > 0:
            self._descend(node)
        elif node.inner and node.path in open_paths:
            self._show_nodes(open_paths - {node.path}, node.path)
        elif len(node.path) > 1:
            self._show_nodes(open_paths, node.path[:-1])

    def _show_nodes(self, open_paths: frozenset[NodePath], target: NodePath) -> None:
        is_unchanged, self.open_paths, self._target = open_paths == self.open_paths, open_paths, target
        if is_unchanged and isinstance(self.document, TablePage):
            self.show_page(self.document)
        else:
            self.update(self._process)

    def destination(self) -> tuple[str, int | None]:
        """The code of a line, else the first page of the kernel."""
        node = self.node
        if node is None or node.line is None:
            return super().destination()
        return ("sass" if isinstance(node.line, Offset) else "ptx"), node.line

    def explanation(self) -> Sequence[str]:
        """Return how to read the page."""
        from tui_probe.pages.tree_page import TREE_ABOUT

        return TREE_ABOUT
