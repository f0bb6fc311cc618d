"""Pages of the selected kernel below the table: each is opened in the background once the selection rests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.pages.views import FIXED_PAGES, kind_of
from tui_probe.ui.live.current_selection import with_newest
from tui_probe.ui.screens.page_opening import MessageView, PageOpener, page_spec

if TYPE_CHECKING:
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.ui.live.current_selection import CurrentSelection
    from tui_probe.ui.screens.page_opening import PageDesk
    from tui_probe.ui.views.view import PaneView

_Subject = tuple[str, object, int, int | None]
"""Name of the page, trace, kernel, row of the launch."""


class KernelPages:
    """Opens a page of the kernel that is selected; ``view`` is the last one that was open."""

    def __init__(self, desk: PageDesk, selection: CurrentSelection) -> None:
        self.desk, self.selection = desk, selection
        self.opener = PageOpener(desk)
        self.view: PaneView = MessageView(desk, "nothing", "reading…")
        self._of: ViewSource | None = None
        self._subject: _Subject | None = None
        self._resting: _Subject | None = None

    def look(self, name: str) -> None:
        """Open the page of the selected kernel, if another one was selected and has been for a frame."""
        source = self.selection.source()
        subject = None if source is None else _subject(name, source)
        if subject == self._resting and subject != self._subject and source is not None:
            self.show(name)
        self._resting = subject

    def show(self, name: str) -> None:
        """Open the page of the selected kernel now."""
        source = self.selection.source()
        if source is None:
            self.desk.arrive(MessageView(self.desk, name, "no kernel is selected"))
            return
        self.save_states()
        if self._of is None or _subject("", self._of) != _subject("", source):
            self.opener.forget(self.selection.page_states(source))
        self._of, self._subject = source, _subject(name, source)
        if name in self.opener.kept:
            self.desk.arrive(self.opener.kept[name])
        else:
            kind = kind_of(name)
            shown = source if name in FIXED_PAGES or kind.grows else with_newest(source)
            self.opener.open(page_spec(kind, shown), self.view)

    def take(self, view: PaneView) -> None:
        """Take a page that is open now."""
        self.view = view

    def save_states(self) -> None:
        """Save the states of the kernel's pages."""
        if self._of is not None:
            self.selection.save_page_states(self._of, self.opener.states())


def _subject(name: str, source: ViewSource) -> _Subject:
    launch = None if source.launch is None else source.launch.row
    return name, source.trace, source.kernel.index, launch
