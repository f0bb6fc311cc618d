"""Further pages: tabs with their keys, and the list behind ``0``, whose letters select a line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tui_probe.draw.spans import Line, clip, pad, width
from tui_probe.pages.views import kind_of
from tui_probe.probekit.page_kinds import PAGES, page_keys
from tui_probe.ui.screens.lists import FittedList, FittedScreen, frame_lines
from tui_probe.ui.screens.page_opening import pages_of
from tui_probe.ui.widgets.pane import Tab

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

    from tui_probe.probekit.page_kinds import LazyPage, ViewKind, ViewSource

MAX_COLUMNS, MARGIN = 100, 2
_KEYS: Line = (
    (" a letter or Enter", "key"),
    (" accepts  ", "dim"),
    ("↑ ↓", "key"),
    (" choose  ", "dim"),
    ("Esc", "key"),
    (" back", "dim"),
)
_MIN_COLUMNS = sum(width(text) for text, _ in _KEYS) + 3
"""Cells of a frame around the keys."""
_TITLES = {page.name: page.title for page in PAGES if page.key.isdigit()}


@dataclass(frozen=True)
class LetterItem:
    """One line: its letter, label and a few words; ``faint``: it has nothing to show yet."""

    letter: str
    label: str
    note: str = ""
    value: Any = None
    is_faint: bool = False


class LetterList(FittedList):
    """A list of lines, one of them marked."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = title
        self.items: Sequence[LetterItem] = ()
        self.place = 0
        self._top = 0

    def take(self, items: Sequence[LetterItem], place: int = 0) -> None:
        """Set the lines."""
        self.items, self.place = items, max(0, min(place, len(items) - 1))

    def fit_terminal(self, columns: int, rows: int) -> None:
        """Take the room that the lines need and the terminal has."""
        label = max((width(item.label) for item in self.items), default=0)
        needed_columns = label + max((width(item.note) for item in self.items), default=0) + 9
        self.styles.width = min(max(needed_columns, _MIN_COLUMNS), MAX_COLUMNS, columns - MARGIN)
        self.styles.height = min(len(self.items) + 4, rows - MARGIN)

    def move(self, step: int) -> None:
        """Mark another line; behind the last one comes the first."""
        if self.items:
            self.place = (self.place + step) % len(self.items)
            self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """The title, the lines around the marked one, keys."""
        inner, room = width - 2, max(1, height - 4)
        self._top = max(min(self._top, self.place), self.place - room + 1)
        window = range(self._top, min(self._top + room, len(self.items)))
        visible_lines = [self._line(place, inner - 1) for place in window]
        return list(
            frame_lines([((self.title, "title"),), *visible_lines, *[()] * (room - len(visible_lines)), _KEYS], inner)
        )

    def _line(self, place: int, cells: int) -> Line:
        item = self.items[place]
        label = min(max(width(listed.label) for listed in self.items), cells // 2)
        note = clip(item.note, max(0, cells - label - 6))
        if place == self.place:
            text = f" {pad(item.letter, 2)} {pad(item.label, label)}  {note}"
            return ((pad(text, cells), "select"),)
        role = "dim" if item.is_faint else ""
        return ((f" {pad(item.letter, 2)}", "key"), (f" {pad(item.label, label)}  ", role), (note, "dim"))


class LetterScreen(FittedScreen[Any, LetterList]):
    """Gives the value of the line that is taken, or None if left with Escape."""

    def __init__(self, title: str, items: Sequence[LetterItem] | None = None, place: int = 0) -> None:
        super().__init__(LetterList(title), opens_early=items is None)
        if items is not None:
            self.list.take(items, place)

    def take(self, items: Sequence[LetterItem], place: int = 0) -> None:
        """Show the items."""
        self.list.take(items, place)
        self.list_ready()

    def press(self, event: events.Key) -> None:
        """A letter or Enter takes a line, arrows mark one, Escape and 0 leave."""
        menu = self.list
        if event.key in ("up", "down", "tab", "shift+tab"):
            menu.move(1 if event.key in ("down", "tab") else -1)
        elif event.key == "enter" and menu.items:
            self.dismiss(menu.items[menu.place].value)
        elif event.key in ("escape", "q", "0"):
            self.dismiss(None)
        else:
            item = next((item for item in menu.items if item.letter and item.letter == event.character), None)
            if item is not None:
                self.dismiss(item.value)


def digit_tabs() -> list[Tab]:
    """Return the tabs of the pages of a kernel that have a digit: known without an import of all probes."""
    return [kernel_tab(kind_of(page.name), page.key) for page in PAGES if page.key.isdigit()]


def kernel_tab(kind: ViewKind, key: str, source: ViewSource | None = None, *, is_empty: bool = False) -> Tab:
    """Return the tab of a page of a kernel; if it is empty and a run can fill it, with the option of this run."""
    title = _TITLES.get(kind.name, kind.title)
    tab = Tab(kind.name, title, kind.short_title or title, key, is_empty, description=kind.description)
    if source is None or source.kernel.status != "probed" or not is_empty or not kind.probes:
        return tab
    from tui_probe.probekit.probe_view import names_to_run, needs_gpu  # brings all probes

    option = kind.option or f"-p {names_to_run(kind.probes)[0]}"
    run_info = source.kernel.trace.run_info
    if run_info is not None and kind.option and run_info.options.get(kind.option.partition(" ")[0].removeprefix("--")):
        return tab  # the run had the option, and found nothing
    if needs_gpu(source.kernel.trace, kind.probes):
        return replace(tab, missing_reason=f"{tab.missing_reason}: run with {option} on a GPU")
    return replace(tab, option=option, missing_reason=f"{tab.missing_reason}: run with {option}")


def file_tabs(pages: Sequence[LazyPage]) -> list[Tab]:
    """Return the tabs of pages of files; the first one has ``1``."""
    keys = page_keys({page.name: page.title for page in pages}, reserved=False)
    return [
        Tab(page.name, page.title, page.title, keys[page.name], description=_first_sentence(page)) for page in pages
    ]


def _first_sentence(page: LazyPage) -> str:
    return page.explanation[0].partition(". ")[0].removesuffix(".") if page.explanation else ""


def further_pages(tabs: Sequence[Tab]) -> list[LetterItem]:
    """Return the pages behind letters: first those with something to show."""
    further = sorted((tab for tab in tabs if tab.is_further), key=lambda tab: (tab.is_empty, tab.key))
    return [
        LetterItem(tab.key, tab.title, tab.missing_reason if tab.is_empty else tab.description, tab.id, tab.is_empty)
        for tab in further
    ]


def live_further_pages(run_tabs: Sequence[Tab], source: ViewSource | None) -> list[LetterItem]:
    """Return the pages of a run, then those of the kernel that are not among them. Imports all probes."""
    run_names = {tab.id for tab in run_tabs}
    pages = [] if source is None else [page for page in pages_of(source) if page[0].name not in run_names]
    kernel_tabs = [kernel_tab(kind, key, source, is_empty=not has_data) for kind, key, has_data in pages]
    return [*further_pages(run_tabs), *further_pages(kernel_tabs)]
