"""Opening of pages in the background: progress, cancellation, and the resulting view."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from tui_probe.draw import units
from tui_probe.draw.spans import wrap
from tui_probe.draw.view import Cancelled, Document
from tui_probe.errors import ProbeError
from tui_probe.pages.table_page import TablePage
from tui_probe.pages.views import kinds
from tui_probe.probekit.page_kinds import page_keys
from tui_probe.ui.views.document_view import DocumentState, DocumentView
from tui_probe.ui.views.drawing import DrawingView
from tui_probe.ui.views.table_views import RowsView
from tui_probe.ui.views.view import PaneView, ViewHost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress, View
    from tui_probe.probekit.page_kinds import ViewKind, ViewSource

_MIN_PACE_SECONDS = 1.0
"""Seconds in which a page that has just begun need not report anything new."""
_BAR_CELLS = 30
"""Cells of the bar that shows the progress of an opening."""


@dataclass(frozen=True)
class NoView:
    """Reason why there is no view to show, and whether that is a fault."""

    text: str
    is_fault: bool = False


@dataclass(frozen=True)
class PageSpec:
    """Name of a page and the function that opens it: ``open`` reads what is needed, and may take a while.

    ``source`` is the kernel or launch that it is about, None where it is about none or several. ``open`` raises
    ProbeError or OSError where there is nothing to show because of a fault.
    """

    name: str
    title: str
    open: Callable[[Progress], View | NoView]
    source: ViewSource | None = None


def page_spec(kind: ViewKind, source: ViewSource) -> PageSpec:
    """A view of a kernel or a launch."""
    return PageSpec(kind.name, kind.title, partial(_open_view, kind, source), source)


def _open_view(kind: ViewKind, source: ViewSource, progress: Progress) -> View | NoView:
    reason = kind.missing_reason(source)
    return kind.open(source, progress) if reason is None else NoView(reason)


class Opening:
    """The opening of a page. ``run`` belongs to a background thread; all else may be used from anywhere."""

    def __init__(self, page: PageSpec) -> None:
        self.page = page
        self.share = 0.0
        self.start = self._reported_at = time.monotonic()
        self.is_cancelled = False

    @property
    def progress_text(self) -> str:
        """``40%, 12 s left``: share that is read, and seconds for the rest at this pace, while it keeps its pace."""
        read_seconds = self._reported_at - self.start
        keeps_pace = time.monotonic() - self._reported_at <= max(read_seconds, _MIN_PACE_SECONDS)
        remaining = units.eta_suffix(self.share, read_seconds) if keeps_pace else ""
        return f"{self.share:.0%}{remaining}"

    def cancel(self) -> None:
        """Let the background thread stop at its next report of progress."""
        self.is_cancelled = True

    def _progress(self, share: float) -> None:
        if self.is_cancelled:
            raise Cancelled
        self.share, self._reported_at = max(0.0, min(1.0, share)), time.monotonic()

    def open_view(self) -> View | NoView | None:
        """The view; why there is none; or None if it was cancelled."""
        if self.is_cancelled:
            return None
        try:
            view = self.page.open(self._progress)
        except Cancelled:
            return None
        except (ProbeError, OSError) as error:
            return NoView(str(error), is_fault=True)
        return None if self.is_cancelled else view


def pages_of(source: ViewSource) -> list[tuple[ViewKind, str, bool]]:
    """The views in the order of their keys, digits first; the key of each, and whether it has something to show."""
    keys = page_keys({kind.name: kind.title for kind in kinds()})
    sorted_kinds = sorted(kinds(), key=lambda kind: (not keys[kind.name].isdigit(), keys[kind.name].swapcase()))
    return [(kind, keys[kind.name], _has_data(kind, source)) for kind in sorted_kinds]


def _has_data(kind: ViewKind, source: ViewSource) -> bool:
    try:
        return kind.missing_reason(source) is None
    except (ProbeError, OSError):
        return False


def _shows_same_text(previous_view: PaneView, state: object) -> bool:
    """Return whether a page in this state showed the text of ``previous_view``; its own cursor is better then."""
    if not isinstance(previous_view, DocumentView) or not isinstance(state, DocumentState):
        return False
    return dict(previous_view.document.choices()) == dict(state.choices)


class OpeningView(PaneView):
    """Progress of opening a view; keys that act on a page wait for it where it is ``focused``."""

    key_scope = "drawing"
    searches = filters = False

    def __init__(self, view_host: ViewHost, name: str, opening: Opening, previous_view: PaneView) -> None:
        super().__init__(view_host, name)
        self.opening = opening
        self.previous_view = previous_view
        """The view shown until then; the new one takes its place."""

    def draw(self, width: int, height: int) -> list[Line]:
        """A bar, and how to stop, above what was shown: an empty page in between would be sent, too."""
        key_hint = "; the keys of this page work after it has loaded" if self.focused else ""
        filled_cells = round(_BAR_CELLS * self.opening.share)
        bar = "█" * filled_cells + "░" * (_BAR_CELLS - filled_cells)
        return [
            ((f" reading {self.opening.page.title} ", ""), (bar, "accent"), (f" {self.opening.progress_text}", "")),
            ((f" press Esc to stop{key_hint}", "dim"),),
            *self.previous_view.draw(width, height)[2:],
        ]


def underlying_view(view: PaneView) -> PaneView:
    """Return the view, or the one that is below the progress of an opening."""
    return view.previous_view if isinstance(view, OpeningView) else view


class MessageView(PaneView):
    """Reason why the page is empty, and a remedy."""

    key_scope = "drawing"
    searches = filters = False

    def __init__(self, view_host: ViewHost, name: str, text: str, role: str = "dim") -> None:
        super().__init__(view_host, name)
        self.text = text
        self.role = role

    def draw(self, width: int, height: int) -> list[Line]:
        """The words."""
        del height
        return [(), *(((f" {part}", self.role),) for part in wrap(self.text, max(20, width - 2)))]


class PageHost(ViewHost, Protocol):
    """The screen that the pages are for."""

    @property
    def ascii_only(self) -> bool:
        """True if only ASCII characters are drawn."""

    @property
    def window(self) -> tuple[int, int]:
        """Columns and rows for a page; (0, 0) as long as that is not known."""

    def page_keys(self) -> Mapping[str, str]:
        """Return the keys of pages, by name."""

    def arrive(self, view: PaneView) -> None:
        """A page that was asked for is open: show it."""

    def host(self, view: PaneView) -> None:
        """Show a view in place of the page."""


class PageOpener:
    """Opens pages of a screen in the background, and keeps their views.

    ``views`` are those of open pages, ``saved_states`` the states of pages that were open before, both by name.
    """

    def __init__(self, view_host: PageHost) -> None:
        self.view_host = view_host
        self.views: dict[str, PaneView] = {}
        self.saved_states: Mapping[str, object] = {}
        self.opening: Opening | None = None
        self.reload: Opening | None = None
        """A page that is visible already and is read again."""
        self.is_closed = False
        self._last_opening: Opening | None = None
        """The opening at the last update: the progress of one that ends before the next update is not shown."""

    def update(self, current_view: PaneView) -> bool:
        """Show the progress of an opening in place of ``current_view``, or anew.

        Returns False if an opening began or ended since the last update: the page may come with the next one.
        """
        last_opening, self._last_opening = self._last_opening, self.opening
        if isinstance(current_view, OpeningView):
            self.view_host.redraw(current_view)
        elif self.opening is not None and self.opening is last_opening:
            self.view_host.host(OpeningView(self.view_host, current_view.name, self.opening, current_view))
        return self.opening is last_opening

    @property
    def is_idle(self) -> bool:
        """True if nothing is being opened."""
        return self.opening is None and self.reload is None

    def open(self, page: PageSpec, previous_view: PaneView) -> None:
        """Open a page; a view of the same name that was shown ``previous_view`` gives it its cursor."""
        self.cancel()
        self.opening = opening = Opening(page)
        self.view_host.analyses.submit(
            (self, "open"), opening.open_view, partial(self._take_result, opening, previous_view)
        )

    def _take_result(self, opening: Opening, previous_view: PaneView, result: Any) -> None:
        """Take what was opened, if it is still wanted."""
        if opening is not self.opening:
            return
        if result is None:
            self.opening = None
            return
        view = self._make_view(opening.page, result)
        if isinstance(view, DocumentView | DrawingView):
            state = self.saved_states.get(view.name)
            if (
                previous_view.name == view.name
                and not isinstance(previous_view, MessageView)
                and not _shows_same_text(previous_view, state)
            ):
                view.resume(previous_view)
            elif state is not None:
                view.restore(state)
        size = self.view_host.window
        if isinstance(view, DrawingView) and all(size):
            # What was there stays until the drawing is ready: an empty page in between would be sent, too.
            view.when_ready = partial(self._take, opening, view)
            view.resize(*size)
        else:
            self._take(opening, view)

    def _take(self, opening: Opening, view: PaneView) -> None:
        if opening is self.opening:
            self.opening = None
            if not isinstance(view, MessageView):  # there may be something another time
                self.views[view.name] = view
            self.view_host.arrive(view)

    def _make_view(self, page: PageSpec, result: Any) -> PaneView:
        if isinstance(result, NoView):
            return MessageView(self.view_host, page.name, result.text, "bad" if result.is_fault else "dim")
        if isinstance(result, Document):
            kind = RowsView if isinstance(result, TablePage) else DocumentView
            view = kind(self.view_host, page.name, result, page.source)
            view.name_keys(self.view_host.page_keys())
            return view
        return DrawingView(self.view_host, page.name, result, page.source, ascii_only=self.view_host.ascii_only)

    def read_again(self, page: PageSpec, view: DocumentView) -> None:
        """Read a visible page again, in the background; its cursor stays."""
        self.reload = reload = Opening(page)
        self.view_host.analyses.submit((self, "newer"), reload.open_view, partial(self._take_reload, reload, view))

    def _take_reload(self, reload: Opening, view: DocumentView, result: Any) -> None:
        if reload is not self.reload:
            return
        self.reload = None
        if isinstance(result, Document) and reload.page.source is not None:
            view.replace(result, reload.page.source)

    def cancel(self) -> None:
        """Stop what is being opened."""
        for opening in (self.opening, self.reload):
            if opening is not None:
                opening.cancel()
        self.opening = self.reload = None

    def close(self) -> None:
        """Stop opening pages for good."""
        self.cancel()
        self.is_closed = True

    def states(self) -> dict[str, object]:
        """Return the saved state of each page, for when it is opened again."""
        return {**self.saved_states, **{name: view.state() for name, view in self.views.items()}}

    def forget(self, saved_states: Mapping[str, object]) -> None:
        """Drop all pages: the screen shows something else now, whose saved state is ``saved_states``."""
        self.cancel()
        self.views.clear()
        self.saved_states = saved_states
