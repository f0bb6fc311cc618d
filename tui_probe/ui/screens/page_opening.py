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
from tui_probe.ui.views.view import Desk, PaneView

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
    fault: bool = False


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
    return PageSpec(kind.name, kind.title, partial(_open, kind, source), source)


def _open(kind: ViewKind, source: ViewSource, progress: Progress) -> View | NoView:
    missing = kind.missing_reason(source)
    return kind.open(source, progress) if missing is None else NoView(missing)


class Opening:
    """The opening of a page. ``run`` belongs to a background thread; all else may be used from anywhere."""

    def __init__(self, page: PageSpec) -> None:
        self.page = page
        self.share = 0.0
        self.began = self._reported_at = time.monotonic()
        self.cancelled = False

    @property
    def progress_text(self) -> str:
        """``40%, 12 s left``: share that is read, and seconds for the rest at this pace, while it keeps its pace."""
        used = self._reported_at - self.began
        keeps_pace = time.monotonic() - self._reported_at <= max(used, _MIN_PACE_SECONDS)
        left = units.eta_suffix(self.share, used) if keeps_pace else ""
        return f"{self.share:.0%}{left}"

    def cancel(self) -> None:
        """Let the background thread stop at its next report of progress."""
        self.cancelled = True

    def _progress(self, share: float) -> None:
        if self.cancelled:
            raise Cancelled
        self.share, self._reported_at = max(0.0, min(1.0, share)), time.monotonic()

    def run(self) -> View | NoView | None:
        """The view; why there is none; or None if it was cancelled."""
        if self.cancelled:
            return None
        try:
            view = self.page.open(self._progress)
        except Cancelled:
            return None
        except (ProbeError, OSError) as error:
            return NoView(str(error), fault=True)
        return None if self.cancelled else view


def pages_of(source: ViewSource) -> list[tuple[ViewKind, str, bool]]:
    """The views in the order of their keys, digits first; the key of each, and whether it has something to show."""
    keys = page_keys({kind.name: kind.title for kind in kinds()})
    ordered = sorted(kinds(), key=lambda kind: (not keys[kind.name].isdigit(), keys[kind.name].swapcase()))
    return [(kind, keys[kind.name], _has_data(kind, source)) for kind in ordered]


def _has_data(kind: ViewKind, source: ViewSource) -> bool:
    try:
        return kind.missing_reason(source) is None
    except (ProbeError, OSError):
        return False


def _same_text(before: PaneView, state: object) -> bool:
    """Return whether a page in this state showed the same text as ``before``; its own cursor is the better one then."""
    if not isinstance(before, DocumentView) or not isinstance(state, DocumentState):
        return False
    return dict(before.document.choices()) == dict(state.choices)


class OpeningView(PaneView):
    """Progress of opening a view; keys that act on a page wait for it where it is ``focused``."""

    key_scope = "drawing"
    searches = filters = False

    def __init__(self, desk: Desk, name: str, opening: Opening, before: PaneView) -> None:
        super().__init__(desk, name)
        self.opening = opening
        self.before = before
        """The view shown until then; the new one takes its place."""

    def draw(self, width: int, height: int) -> list[Line]:
        """A bar, and how to stop, above what was shown: an empty page in between would be sent, too."""
        waiting = "; the keys of this page work after it has loaded" if self.focused else ""
        done = round(_BAR_CELLS * self.opening.share)
        bar = "█" * done + "░" * (_BAR_CELLS - done)
        return [
            ((f" reading {self.opening.page.title} ", ""), (bar, "accent"), (f" {self.opening.progress_text}", "")),
            ((f" press Esc to stop{waiting}", "dim"),),
            *self.before.draw(width, height)[2:],
        ]


def lasting(view: PaneView) -> PaneView:
    """Return the view, or the one that is below the progress of an opening."""
    return view.before if isinstance(view, OpeningView) else view


class MessageView(PaneView):
    """Reason why the page is empty, and a remedy."""

    key_scope = "drawing"
    searches = filters = False

    def __init__(self, desk: Desk, name: str, text: str, role: str = "dim") -> None:
        super().__init__(desk, name)
        self.text = text
        self.role = role

    def draw(self, width: int, height: int) -> list[Line]:
        """The words."""
        del height
        return [(), *(((f" {part}", self.role),) for part in wrap(self.text, max(20, width - 2)))]


class PageDesk(Desk, Protocol):
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

    ``kept`` are the views of open pages, ``left`` the saved states of pages that were open before, both by name.
    """

    def __init__(self, desk: PageDesk) -> None:
        self.desk = desk
        self.kept: dict[str, PaneView] = {}
        self.left: Mapping[str, object] = {}
        self.opening: Opening | None = None
        self.newer: Opening | None = None
        """A page that is visible already and is read again."""
        self.closed = False
        self._updated: Opening | None = None
        """The opening at the last update: the progress of one that ends before the next update is not shown."""

    def update(self, shown: PaneView) -> bool:
        """Show the progress of an opening in place of ``shown``, or anew.

        Returns False if an opening began or ended since the last update: the page may come with the next one.
        """
        before, self._updated = self._updated, self.opening
        if isinstance(shown, OpeningView):
            self.desk.redraw(shown)
        elif self.opening is not None and self.opening is before:
            self.desk.host(OpeningView(self.desk, shown.name, self.opening, shown))
        return self.opening is before

    @property
    def idle(self) -> bool:
        """True if nothing is being opened."""
        return self.opening is None and self.newer is None

    def open(self, page: PageSpec, before: PaneView) -> None:
        """Open a page; a view of the same name that was shown ``before`` gives it its cursor."""
        self.give_up()
        self.opening = opening = Opening(page)
        self.desk.analyses.submit((self, "open"), opening.run, partial(self._opened, opening, before))

    def _opened(self, opening: Opening, before: PaneView, result: Any) -> None:
        """Take what was opened, if it is still wanted."""
        if opening is not self.opening:
            return
        if result is None:
            self.opening = None
            return
        view = self._hosting(opening.page, result)
        if isinstance(view, DocumentView | DrawingView):
            state = self.left.get(view.name)
            if before.name == view.name and not isinstance(before, MessageView) and not _same_text(before, state):
                view.resume(before)
            elif state is not None:
                view.restore(state)
        size = self.desk.window
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
                self.kept[view.name] = view
            self.desk.arrive(view)

    def _hosting(self, page: PageSpec, result: Any) -> PaneView:
        if isinstance(result, NoView):
            return MessageView(self.desk, page.name, result.text, "bad" if result.fault else "dim")
        if isinstance(result, Document):
            kind = RowsView if isinstance(result, TablePage) else DocumentView
            view = kind(self.desk, page.name, result, page.source)
            view.name_keys(self.desk.page_keys())
            return view
        return DrawingView(self.desk, page.name, result, page.source, ascii_only=self.desk.ascii_only)

    def read_again(self, page: PageSpec, view: DocumentView) -> None:
        """Read a visible page again, in the background; its cursor stays."""
        self.newer = newer = Opening(page)
        self.desk.analyses.submit((self, "newer"), newer.run, partial(self._take_newer, newer, view))

    def _take_newer(self, newer: Opening, view: DocumentView, result: Any) -> None:
        if newer is not self.newer:
            return
        self.newer = None
        if isinstance(result, Document) and newer.page.source is not None:
            view.replace(result, newer.page.source)

    def give_up(self) -> None:
        """Stop what is being opened."""
        for opening in (self.opening, self.newer):
            if opening is not None:
                opening.cancel()
        self.opening = self.newer = None

    def close(self) -> None:
        """Stop opening pages for good."""
        self.give_up()
        self.closed = True

    def states(self) -> dict[str, object]:
        """Return the saved state of each page, for when it is opened again."""
        return {**self.left, **{name: view.state() for name, view in self.kept.items()}}

    def forget(self, left: Mapping[str, object]) -> None:
        """Drop all pages: the screen shows something else now, whose saved state is ``left``."""
        self.give_up()
        self.kept.clear()
        self.left = left
