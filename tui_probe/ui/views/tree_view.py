"""Tree of where the GPU time goes, in a pane: Enter descends, h goes up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw.table_content import PageTexts
from tui_probe.pages.table_page import TablePage
from tui_probe.trace.kernel_files import Offset
from tui_probe.ui.views.table_views import GrowingView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.pages.tree_page import TreeNode
    from tui_probe.trace.model import Trace
    from tui_probe.ui.live.feed import ProcessView
    from tui_probe.ui.views.view import Desk

Path = tuple[str, ...]


class TreeView(GrowingView):
    """Shows the opened part of the tree; nodes are known by their paths, so it stays open while the trace grows."""

    kind = "tree"

    def __init__(self, desk: Desk, name: str) -> None:
        super().__init__(desk, name, TablePage("tree", "Where the GPU time goes", (), (), PageTexts()))
        self.open_paths: frozenset[Path] | None = None
        """Paths of opened nodes; None: the program alone, as long as it is not known."""
        self._process: ProcessView | None = None
        self._built: tuple[object, TreeNode] | None = None
        self._target: Path | None = None
        """Node that the cursor goes to with the next page."""

    def look(self, process: ProcessView | None) -> None:
        """Make the page anew if the process has come further, or a node was opened or closed."""
        self._process = process
        super().look(process)

    def page(self, trace: Trace) -> TablePage[TreeNode]:
        """Build the tree if the trace has grown, and return the page of its opened part."""
        from tui_probe.pages.tree_page import page_of_tree, program_tree

        basis = trace, len(trace.results), len(trace.launches)
        if self._built is None or self._built[0] != basis:
            self._built = basis, program_tree(trace)
        root = self._built[1]
        opened = self.open_paths if self.open_paths is not None else frozenset({root.path})
        return page_of_tree(trace, root, opened)

    def basis(self, trace: Trace, process: ProcessView) -> tuple[object, ...]:
        return len(trace.results), process.launches, self.open_paths

    def put(self, page: TablePage[TreeNode]) -> None:
        """Show a page, with the cursor on the node that was gone to."""
        if self.open_paths is None and page.rows:
            self.open_paths = frozenset({page.rows[0].path})
        super().put(page)
        target, self._target = self._target, None
        place = next((place for place, node in enumerate(page.rows) if node.path == target), None)
        if place is not None:
            self.lines_made()
            self.window.place.cursor = page.rows_from + place
            self.window.fit()
            self.changed()

    def lines_made(self) -> None:
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
        opened = self.open_paths or frozenset()
        if node is None or (node.level == "kernel" and node.path in opened):
            return False
        return self._descend(node)

    def _descend(self, node: TreeNode) -> bool:
        if node.inner:
            self._open((self.open_paths or frozenset()) | {node.path}, node.inner[0].path)
        return bool(node.inner)

    def shift(self, step: int) -> None:
        """Right descends; left closes the node at the cursor, or goes up."""
        node, opened = self.node, self.open_paths or frozenset()
        if node is None:
            return
        if step > 0:
            self._descend(node)
        elif node.inner and node.path in opened:
            self._open(opened - {node.path}, node.path)
        elif len(node.path) > 1:
            self._open(opened, node.path[:-1])

    def _open(self, opened: frozenset[Path], target: Path) -> None:
        same, self.open_paths, self._target = opened == self.open_paths, opened, target
        if same and isinstance(self.document, TablePage):
            self.put(self.document)
        else:
            self.look(self._process)

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
