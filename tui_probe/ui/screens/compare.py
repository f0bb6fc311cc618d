"""Two kernels or launches against each other."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tui_probe.errors import ProbeError
from tui_probe.render.comparison import Comparison, compare_sources
from tui_probe.render.views.view import no_progress
from tui_probe.ui import keys
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.views.document import DocumentView
from tui_probe.ui.views.message import MessageView
from tui_probe.ui.widgets.bars import Bar
from tui_probe.ui.widgets.pane import Pane

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from tui_probe.render.views.view import Source
    from tui_probe.ui.views.view import View


class CompareScreen(ViewScreen):
    """Every figure of both, and its change."""

    BINDINGS = keys.bindings("help")

    def __init__(self, one: Source, other: Source) -> None:
        super().__init__()
        self.one, self.other = one, other
        self._view: View = MessageView(self, "compare", "reading the results of both")

    def compose(self) -> ComposeResult:
        """A title, the figures, hints."""
        yield Bar("bar", id="title")
        yield Pane(self._view, id="page")
        yield Bar(id="hint")

    def on_mount(self) -> None:
        """Read both sides."""
        self.query_one("#title", Bar).show(((" Comparison", "title"),))
        self.show_hint()
        self.analyses.submit((self, "compare"), partial(_compared, self.one, self.other), self._take)

    def _take(self, result: Comparison | str) -> None:
        if isinstance(result, str):
            self._view = MessageView(self, "compare", result, "bad")
        else:
            self._view = DocumentView(self, "compare", result, self.one)
        if self.is_mounted:
            self.query_one("#page", Pane).host(self._view)
            self.show_hint()

    @property
    def view(self) -> View:
        """The figures."""
        return self._view

    def hints(self) -> list[keys.Key]:
        """How to leave, then the keys of views."""
        return [*keys.in_scope("help"), *keys.in_scope("view")]

    def action_close(self) -> None:
        """Back to the screen before; first out of a search."""
        if not self.view.clear_search():
            self.app.pop_screen()


def _compared(one: Source, other: Source) -> Comparison | str:
    try:
        return compare_sources(one, other, no_progress)
    except (ProbeError, OSError) as error:
        return str(error)
