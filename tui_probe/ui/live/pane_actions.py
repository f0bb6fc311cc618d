"""Actions of keys about one pane of the live screen: the table, the page of ranges, a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.probekit.page_keys import letters_of
from tui_probe.ui.live.live_pages import PAGE_KEYS
from tui_probe.ui.live.state_line import KernelFilterWarning
from tui_probe.ui.screens.further_pages import LetterItem, LetterScreen
from tui_probe.ui.screens.lists import choose_tags
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.views.log import LogView

if TYPE_CHECKING:
    from tui_probe.ui.live.current_selection import CurrentSelection
    from tui_probe.ui.live.feed import ProcessView
    from tui_probe.ui.live.kernel_table import KernelTable
    from tui_probe.ui.live.live_pages import LivePages

_LOGS = ("process", "events", "stdout", "stderr")


class PaneActions(ViewScreen):
    """A screen with a table of kernels and pages, one of which has the keys."""

    table: KernelTable
    pages: LivePages
    in_table: bool
    """True while keys go to the table."""
    current_selection: CurrentSelection
    _flagged_index: int | None = None
    """The kernel to which ``!`` went last."""

    @property
    def process(self) -> ProcessView | None:
        """The process that is shown."""
        raise NotImplementedError

    def action_choose_order(self) -> None:
        """Choose the column to sort by, from those that are shown."""
        if self._has_table():
            titles = self.table.sortable()
            letters = letters_of(titles)
            items = [LetterItem(letters[key], title, value=key) for key, title in titles.items()]
            place = list(titles).index(self.table.sorted_column) if self.table.sorted_column in titles else 0
            self.app.push_screen(LetterScreen("Sort by", items, place), self._take_order)

    def _take_order(self, key: str | None) -> None:
        if key is not None:
            self.table.sort_by(key, reverse=False)

    def action_reverse(self) -> None:
        """Reverse the table."""
        if self._has_table():
            self.table.reverse()

    def action_next_status(self) -> None:
        """Only kernels of one status."""
        if self._has_table():
            self.table.next_status()

    def _has_table(self) -> bool:
        """Return whether keys go to the table; if not, show which key changes that."""
        if not self.in_table:
            self.notice("this key is for the table: Tab goes there")
        return self.in_table

    def action_together(self) -> None:
        """Ranges of one name together, or each by itself."""
        if self.view is self.pages.ranges:
            self.pages.ranges.toggle(self.process)
        else:
            self.notice(f"ranges can be taken together: page {PAGE_KEYS['ranges']}")

    def action_follow(self) -> None:
        """Follow the end of a log, or stay."""
        if isinstance(self.view, LogView):
            self.view.toggle_follow()
        else:
            self.notice(f"a log can be followed: pages {', '.join(PAGE_KEYS[name] for name in _LOGS)}")

    def action_tags(self) -> None:
        """Choose the tags of a log."""
        if isinstance(self.view, LogView):
            choose_tags(self.app, self.view)
        else:
            self.notice(f"a log has tags: page {PAGE_KEYS['events']}")

    def action_next_found(self) -> None:
        """The first flagged kernel; if that is selected the next, after the last the first."""
        flagged = [row for row in self.table.shown if row.stands_out]
        if not flagged:
            self.notice(self._why_none_found())
            return
        place = next((place for place, row in enumerate(flagged) if row.index == self._flagged_index), -1)
        place = (place + 1) % len(flagged) if self._flagged_index == self.table.selected else 0
        self._flagged_index = flagged[place].index
        self.table.select(self._flagged_index)
        self.notice(f"{place + 1} of {len(flagged)} that stand out: {flagged[place].finding}")

    def _why_none_found(self) -> str:
        if any(row.status == "probed" for row in self.table.rows):
            return "nothing stands out in the kernels shown whose results were read"
        return f"nothing measured: {KernelFilterWarning.why_unmeasured(self.current_selection.snapshot)}"
