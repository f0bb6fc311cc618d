"""All that is used of Textual beyond its public names: any release of it may change these without a word.

No other module of the screen uses such a name. When a test says that one is gone, look here for what it was used for,
and into Textual for what does it now.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from rich.control import Control
from textual._compositor import ChopsUpdate, Compositor, LayoutUpdate
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console, RenderableType
    from textual.driver import Driver
    from textual.message import Message

Result = TypeVar("Result")


def was_stopped(message: Message) -> bool:
    """Return whether ``stop`` was called, which Textual checks before it passes a message on."""
    return message._stop_propagation


class OpenApp(App[None]):
    """An application that can press keys itself, knows its driver, and decides what a crash leaves behind."""

    @property
    def terminal(self) -> Driver | None:
        """The driver that writes to the terminal; None before it starts."""
        return self._driver

    async def press_bound(self, key: str, *, priority: bool = False) -> bool:
        """Run what is bound to a key, of the bindings with priority or of the others. Return False if nothing is."""
        return await self._check_bindings(key, priority=priority)

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Send a frame, unless the screen is held back, or is about to send all of itself after some of its cells.

        Changes of widgets are in a frame of the whole screen: Textual would send them once more with the next change.
        """
        is_layout = isinstance(renderable, LayoutUpdate)
        if (isinstance(screen, OpenScreen) and screen.held_back) or (screen._repaint_required and not is_layout):
            return
        super()._display(screen, renderable)
        is_sent = self._running and not self._closed and not self._batch_count  # as Textual decides
        if is_sent and is_layout:
            for widget in screen._compositor.visible_widgets:
                widget._exchange_repaint_regions()

    def crashed(self, error: Exception) -> None:
        """An exception that no one caught; the application ends now."""

    def _handle_exception(self, error: Exception) -> None:
        """End with status 1 without a word: Textual would write a traceback of several screens to the terminal."""
        self.crashed(error)
        self._return_code = 1
        if self._exception is None:  # for tests, which raise it again
            self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()


class CellsUpdate(ChopsUpdate):
    """An update that sends the cells of its spans only: Textual sends those left of them in the same widget, too."""

    def render_segments(self, console: Console) -> str:
        """The sequences for the terminal: for each span a move, then its cells.

        Rows end as those of a whole screen do, so that :class:`~tui_probe.ui.driver.FrugalDriver` knows equal ones.
        """
        parts: list[str] = []
        last_row = self.spans[-1][0]
        for y, first_column, end_column in self.spans:
            for end, (start, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                if strip is None or start >= end_column or end <= first_column:
                    continue
                left, right = max(start, first_column), min(end, end_column)
                parts.append(Control.move_to(left, y).segment.text)
                parts.append(strip.crop(left - start, right - start).render(console))
            if y != last_row:
                parts.append("\n")
        return "".join(parts)


class CellsCompositor(Compositor):
    """A compositor whose partial updates hold changed cells only. While it is silent, it draws nothing."""

    silent = False

    def render_update(
        self, full: bool = False, screen_stack: list[Screen[Any]] | None = None, simplify: bool = False
    ) -> RenderableType | None:
        """Return what changed, or a frame of the whole screen."""
        return None if self.silent else super().render_update(full=full, screen_stack=screen_stack, simplify=simplify)

    def render_partial_update(self) -> ChopsUpdate | None:
        """Return the changed parts since the last update; None for none."""
        update = super().render_partial_update()
        return None if update is None else CellsUpdate(update.chops, update.spans, update.chop_ends)


class OpenScreen(Screen[Result]):
    """A screen that sends changed cells only; nothing while it is held back, so that its first frame is complete."""

    def __init__(self) -> None:
        super().__init__()
        self._compositor: CellsCompositor = CellsCompositor()

    @property
    def held_back(self) -> bool:
        """True if no frame is drawn or sent."""
        return self._compositor.silent

    @held_back.setter
    def held_back(self, silent: bool) -> None:
        self._compositor.silent = silent

    def show_whole(self) -> None:
        """Send a frame of the whole screen if it was held back."""
        if self.held_back:
            self.held_back = False
            self.refresh()


class OpenDriver(LinuxDriver):
    """A driver whose output can be replaced and counted, and whose terminal is asked for its size by a public name."""

    def terminal_size(self) -> tuple[int, int]:
        """Columns and rows; by default what Textual makes of the environment."""
        return super()._get_terminal_size()

    def _get_terminal_size(self) -> tuple[int, int]:
        return self.terminal_size()

    def replace_output(self, make_output: Callable[[IO[str]], Any]) -> None:
        """Write to ``replaced(file)`` from the start of the application mode on, in place of ``file``."""
        self._file = cast("Any", make_output(cast("IO[str]", self._file)))

    @property
    def queued_writes(self) -> int:
        """The writes that wait for the thread that does them."""
        writer = self._writer_thread
        return 0 if writer is None else writer._queue.qsize()
