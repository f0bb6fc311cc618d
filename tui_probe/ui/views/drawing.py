"""Drawing in a pane: keys become its commands, and slow parts are prepared in the background."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tui_probe.draw.spans import wrap
from tui_probe.draw.view import Spot
from tui_probe.errors import ProbeError
from tui_probe.ui.export import drawing_forms
from tui_probe.ui.views.view import PaneView, ViewHost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Drawing
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.ui.export import Writer


@dataclass(frozen=True)
class DrawingState:
    """Visible part of a drawing, to be restored."""

    choices: Mapping[str, Any]
    search_text: str
    was_moved: bool


class DrawingView(PaneView):
    """A window that a drawing fills. While a new state is prepared, the last one stays."""

    key_scope = "drawing"
    filters = False

    def __init__(
        self, view_host: ViewHost, name: str, drawing: Drawing, source: ViewSource | None, *, ascii_only: bool = False
    ) -> None:
        super().__init__(view_host, name)
        self.drawing = drawing
        self.searches = drawing.searches
        self.source = source
        self.ascii_only = ascii_only
        self.is_busy = self.was_moved = False
        self.problem = ""
        self.when_ready: Callable[[], None] | None = None
        """Called once, when there is something to see for the first time."""
        self._ready_size: tuple[int, int] | None = None

    def resume(self, previous_view: PaneView) -> None:
        """The window and choices of the page that was here before, of another kernel or launch."""
        if isinstance(previous_view, DrawingView):
            self.drawing.take_over(previous_view.drawing)

    def resize(self, width: int, height: int) -> None:
        """Prepare for another size."""
        super().resize(width, height)
        self._ready_size = None
        self._prepare()

    def _prepare(self) -> None:
        """Compute what is visible now in the background, if that takes time."""
        if not self.width or not self.height:
            return
        size = (self.width, self.height)
        work = self.drawing.prepare(*size)
        if work is None:
            self._show(size)
            return
        self.is_busy = True
        self.view_host.analyses.submit((self, "prepare"), partial(_attempt, work), partial(self._prepared, size))
        self.request_redraw()

    def _prepared(self, size: tuple[int, int], problem: str) -> None:
        self.problem = problem
        if size == (self.width, self.height):
            self._show(size)

    def _show(self, size: tuple[int, int]) -> None:
        self._ready_size, self.is_busy = size, False
        if self.when_ready is not None:
            on_ready, self.when_ready = self.when_ready, None
            on_ready()
        self.request_redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """The drawing as it was prepared last."""
        if self.problem:
            return [((f" {part}", "bad"),) for part in wrap(self.problem, width - 2)]
        if self._ready_size != (width, height):
            return [((" drawing…", "dim"),)]
        return self.drawing.draw(width, height, ascii_only=self.ascii_only)

    def status(self) -> list[str]:
        """Return the drawing's own state."""
        return [*self.drawing.status(), *(["drawing…"] if self.is_busy else [])]

    def pinned_parts(self) -> int:
        """Return how many parts of the drawing are pinned."""
        return self.drawing.pinned_parts()

    # -- keys

    def commands(self) -> Mapping[str, str]:
        """Return the drawing's commands that act now."""
        return self.drawing.commands()

    def command(self, command: str) -> None:
        """Run a command, if the drawing has it."""
        if command in self.drawing.commands():
            self.was_moved = True
            if words := self.drawing.press(command):
                self.view_host.notice(words)
            self._prepare()

    def move(self, step: int) -> None:
        """The cursor, up or down."""
        for _ in range(abs(step)):
            self.command("down" if step > 0 else "up")

    def move_page(self, step: int) -> None:
        """The window, up or down."""
        self.command("page_down" if step > 0 else "page_up")

    def move_to(self, end: int) -> None:
        """The cursor to the start or the end."""
        self.command("end" if end else "start")

    def shift(self, step: int) -> None:
        """The cursor, left or right."""
        self.command("right" if step > 0 else "left")

    def search(self, text: str) -> None:
        """Search from the cursor on."""
        self.search_text = text
        self.next_match(1)

    def next_match(self, step: int) -> None:
        """The cursor to the next or previous thing of that name."""
        if not self.search_text:
            return
        if self.drawing.find(self.search_text, step):
            self.was_moved = True
            self._prepare()
        else:
            self.view_host.notice(f"no name contains “{self.search_text}”")

    def clear_search(self) -> bool:
        """Forget what was searched for."""
        had_search, self.search_text = bool(self.search_text), ""
        return had_search

    def target_view(self) -> str:
        """The page that Enter goes to."""
        return self.drawing.target_view()

    def target(self) -> Spot | None:
        """Return the spot of the cursor, if it is on a line of code."""
        spot = self.drawing.spot()
        return spot if spot.in_code else None

    def no_target_reason(self) -> str:
        """Return the drawing's reason why the cursor has no target."""
        return self.drawing.no_target_reason()

    def state(self) -> object:
        """Return its window, its cursor and its choices."""
        return DrawingState(self.drawing.choices(), self.search_text, self.was_moved)

    def restore(self, state: object) -> None:
        """Restore what ``state`` returned."""
        if isinstance(state, DrawingState):
            self.search_text, self.was_moved = state.search_text, state.was_moved
            if state.choices:
                self.drawing.choose(state.choices)
                self._prepare()

    def spot(self) -> Spot:
        """Return the spot of the cursor, once it was moved."""
        return self.drawing.spot() if self.was_moved else Spot()

    def go_to_spot(self, spot: Spot, *, exactly: bool = False) -> bool:
        """The cursor to a spot."""
        del exactly
        exists = self.drawing.go_to(spot)
        if exists:
            self.was_moved = True
            self._prepare()
        return exists

    def missing_reason(self, spot: Spot) -> str:
        """Return the drawing's reason why a spot is not shown."""
        return self.drawing.missing_reason(spot)

    def kernel_target(self) -> tuple[Path, int] | None:
        """The kernel under the cursor."""
        return self.drawing.kernel_target()

    def click(self, row: int, column: int = 0) -> None:
        """The cursor to a cell."""
        self.was_moved = True
        self.drawing.click(column, row)
        self._prepare()

    def explanation(self) -> Sequence[str]:
        return self.drawing.explanation() or super().explanation()

    def export_writers(self) -> Mapping[str, Writer]:
        """Text, data and pictures of what is visible."""
        return {
            **super().export_writers(),
            **drawing_forms(self.name, self.drawing, self.source, (self.width, self.height)),
        }


def _attempt(work: Callable[[], None]) -> str:
    """Do the work. Return why it failed, else ""."""
    try:
        work()
    except ProbeError as error:
        return str(error)
    return ""
