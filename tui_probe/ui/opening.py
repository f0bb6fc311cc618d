"""Opening a page in the background: how far it is, and giving it up."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.draw.view import Cancelled
from tui_probe.errors import ProbeError
from tui_probe.pages.views import FIXED, SHARED, kinds, number_of
from tui_probe.probekit.probe_results import aimed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.draw.view import Progress, View
    from tui_probe.probekit.kind import Kind, Source


_LAST = 99
"""Where pages without a number stand among those with one."""
_A_MOMENT = 1.0
"""Seconds for which nothing new need be told of a page that has just begun."""


@dataclass(frozen=True)
class Nothing:
    """There is no view to show: why, and whether that is a fault."""

    text: str
    fault: bool = False


@dataclass(frozen=True)
class Page:
    """What a page is called and how it is opened: ``open`` reads what is needed, and may take a while.

    ``source`` is the kernel or launch that it is about, None where it is about none or several. ``open`` raises
    ProbeError or OSError where there is nothing to show because of a fault.
    """

    name: str
    title: str
    open: Callable[[Progress], View | Nothing]
    source: Source | None = None


def page_of(kind: Kind, source: Source) -> Page:
    """A view of a kernel or a launch."""
    return Page(kind.name, kind.title, partial(_open, kind, source), source)


def _open(kind: Kind, source: Source, progress: Progress) -> View | Nothing:
    missing = kind.missing(source)
    return kind.open(aimed(source, *kind.probes), progress) if missing is None else Nothing(missing)


class Opening:
    """The opening of a page. ``run`` belongs to a background thread; all else may be used from anywhere."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.share = 0.0
        self.began = self._told = time.monotonic()
        self.cancelled = False

    @property
    def words(self) -> str:
        """``40%, 12 s left``: how far it is, and how long the rest will take at this pace, as long as it keeps it."""
        since = time.monotonic() - self._told
        keeps_pace = since <= max(self._told - self.began, _A_MOMENT)
        return f"{self.share:.0%}{units.left(self.share, self._told - self.began) if keeps_pace else ''}"

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        self.cancelled = True

    def _progress(self, share: float) -> None:
        if self.cancelled:
            raise Cancelled
        self.share, self._told = max(0.0, min(1.0, share)), time.monotonic()

    def run(self) -> View | Nothing | None:
        """The view; why there is none; or None if it was cancelled."""
        if self.cancelled:
            return None
        try:
            view = self.page.open(self._progress)
        except Cancelled:
            return None
        except (ProbeError, OSError) as error:
            return Nothing(str(error), fault=True)
        return None if self.cancelled else view


def pages_of(source: Source) -> list[tuple[Kind, bool]]:
    """The views in the order of their pages, and whether each has something to show: first the fixed ones, then those
    that have, by their numbers; of one number those that only one probe fills before the others.
    """
    fixed = [kind for kind in kinds() if kind.name in FIXED]
    others = [kind for kind in kinds() if kind.name not in FIXED]
    known = {kind.name: _has(kind, source) for kind in (*fixed, *others)}
    others.sort(key=lambda kind: (not known[kind.name], number_of(kind.name) or _LAST, kind.name in SHARED))
    return [(kind, known[kind.name]) for kind in (*fixed, *others)]


def _has(kind: Kind, source: Source) -> bool:
    try:
        return kind.missing(source) is None
    except (ProbeError, OSError):
        return False
