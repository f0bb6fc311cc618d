"""Tabs of pages with their keys, and the lines of the list behind ``0``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.pages.views import kind_of
from tui_probe.probekit.page_keys import DIGIT_PAGES, page_keys
from tui_probe.ui.screens.letter_menu import LetterItem
from tui_probe.ui.screens.page_opening import pages_of
from tui_probe.ui.widgets.tabs import Tab

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.probekit.page_kinds import LazyPage, ViewKind, ViewSource


_TITLES = {"process": "Log"}
"""Titles of tabs that are shorter than those of their pages."""


def digit_tabs() -> list[Tab]:
    """Return the tabs of the pages of a kernel that have a digit: known without an import of all probes."""
    return [kernel_tab(kind_of(name), str(digit)) for digit, name in enumerate(DIGIT_PAGES, 1)]


def kernel_tab(kind: ViewKind, key: str, source: ViewSource | None = None, *, empty: bool = False) -> Tab:
    """Return the tab of a page of a kernel, with the probe that fills it where it is empty and another run could."""
    probed = source is not None and source.kernel.status == "probed"
    probe = kind.probes[0] if empty and kind.probes and probed else ""
    title = _TITLES.get(kind.name, kind.title)
    return Tab(kind.name, title, kind.short or title, key, empty, probe, kind.about)


def file_tabs(pages: Sequence[LazyPage]) -> list[Tab]:
    """Return the tabs of pages of files; the first one has ``1``."""
    keys = page_keys({page.name: page.title for page in pages}, reserved=False)
    return [Tab(page.name, page.title, page.title, keys[page.name]) for page in pages]


def further_pages(tabs: Sequence[Tab]) -> list[LetterItem]:
    """Return the pages behind letters: first those with something to show."""
    further = sorted((tab for tab in tabs if tab.is_further), key=lambda tab: (tab.empty, tab.key))
    return [LetterItem(tab.key, tab.title, _note(tab), tab.id, tab.empty) for tab in further]


def live_further_pages(run: Sequence[Tab], source: ViewSource | None) -> list[LetterItem]:
    """Return the pages of a run, then those of the kernel that are not among them. Imports all probes."""
    known = {tab.id for tab in run}
    pages = [] if source is None else [page for page in pages_of(source) if page[0].name not in known]
    own = [kernel_tab(kind, key, source, empty=not has) for kind, key, has in pages]
    return [*further_pages(run), *further_pages(own)]


def _note(tab: Tab) -> str:
    if not tab.empty:
        return tab.about
    return f"nothing recorded: run with -p {tab.probe}" if tab.probe else "nothing recorded"
