"""The base of all views, and what a view may ask of the screen around it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from tui_probe.draw.spot import Spot
from tui_probe.pages.explanations import explanation
from tui_probe.ui.exports import write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from tui_probe.draw.spans import Line
    from tui_probe.ui.exports import Writer


class Worker(Protocol):
    """Runs the newest job of each key outside the event loop."""

    def submit(self, key: Hashable, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Run ``job()`` in the background, then ``done(result)`` on the event loop."""


class Desk(Protocol):
    """What surrounds a view."""

    @property
    def tables(self) -> Worker:
        """Sorts and filters tables."""

    @property
    def logs(self) -> Worker:
        """Reads logs, and nothing else does: readers belong to one thread."""

    @property
    def analyses(self) -> Worker:
        """Reads and analyses results."""

    def redraw(self, view: View) -> None:
        """The view changed."""

    def notice(self, text: str) -> None:
        """Say something for some seconds."""


class View:
    """A window on something. Its size is set by the pane that shows it; 0 × 0 means that none does yet.

    Subclasses say what there is to see (``draw``, ``status``) and what keys do. A key that means nothing to a view does
    nothing.
    """

    kind = ""
    """The scope of keys that only this kind of view has."""
    searches: bool = True
    """Whether it has lines or names to search."""
    filters: bool = True
    """Whether it has lines to filter."""
    searched: str = ""
    """What was searched for last."""

    def __init__(self, desk: Desk, name: str) -> None:
        self.desk = desk
        self.name = name
        self.width = self.height = 0
        self.focused = False

    def draw(self, width: int, height: int) -> list[Line]:
        """The lines of the window; missing ones are blank."""
        del width, height
        return []

    def status(self) -> list[str]:
        """What part is seen, in parts of a few words; the last ones matter most."""
        return []

    def leading(self) -> int:
        """How many of the first of these parts are left out nowhere."""
        return 0

    def resize(self, width: int, height: int) -> None:
        """The window has a new size."""
        self.width, self.height = width, height

    def changed(self) -> None:
        """Have it drawn again."""
        self.desk.redraw(self)

    def move(self, step: int) -> None:
        """Down by lines or rows; up if negative."""

    def move_page(self, step: int) -> None:
        """Down by pages; up if negative."""
        self.move(step * max(1, self.height - 1))

    def move_to(self, end: int) -> None:
        """To the start (0) or the end (-1)."""

    def shift(self, step: int) -> None:
        """Right; left if negative."""

    def search(self, text: str) -> None:
        """To the first line from here on that contains ``text``."""

    def next_match(self, step: int) -> None:
        """To the next (1) or previous (-1) line that contains the searched text."""

    @property
    def filter_text(self) -> str:
        """What shown lines must contain."""
        return ""

    def set_filter(self, text: str) -> None:
        """Show only what contains ``text``; everything if empty."""

    def clear_search(self) -> bool:
        """Forget search and filter. False if there was neither."""
        return False

    def explanation(self) -> Sequence[str]:
        """How to read what it shows, a paragraph each."""
        return explanation(self.name)

    def commands(self) -> Mapping[str, str]:
        """The commands of ``draw.view`` that mean something now, and what they do."""
        return {}

    def command(self, command: str) -> None:
        """Do one of them."""

    def asked(self) -> str:
        """The option of ``tui-probe run`` that measures what is marked here; "" where nothing is."""
        return ""

    def leads_to(self) -> str:
        """The page that Enter goes to, "" for none."""
        return ""

    def target(self) -> Spot | None:
        """The spot that it shows, seen from the cursor; None for none."""
        return None

    def nowhere(self) -> str:
        """Why Enter leads nowhere from the cursor, and what would; "" where it never does."""
        return ""

    def narrowed(self) -> tuple[str, Any] | None:
        """The page that Enter goes to from the cursor, and what is left of it there; None for none."""
        return None

    def narrow(self, only: Any) -> bool:
        """Show a part of what there is, or all again with None. Whether that changed anything."""
        del only
        return False

    def opened(self) -> tuple[Path, int] | None:
        """The trace and the index of the kernel that Enter goes to from the cursor; None for none."""
        return None

    def seen(self) -> object:
        """What is visible of it, for ``see``."""
        return None

    def see(self, seen: object) -> None:
        """Show again what was visible."""

    def here(self) -> Spot:
        """Where in the launch the cursor is; nothing is told of one that was not moved."""
        return Spot()

    def land(self, spot: Spot, *, exactly: bool = False) -> bool:
        """The cursor to a spot; False where that is not shown. It stays where it is there already.

        ``exactly``: to the first line of it, and what hides it is undone: a filter, another text.
        """
        del spot, exactly
        return False

    def lacks(self, spot: Spot) -> str:
        """Why a spot is not shown, where one might look for it; "" where it was nothing for this view."""
        del spot
        return ""

    def land_on_marked(self) -> str:
        """Show the line that is marked as the most or fewest; what it is. "" where none is."""
        return ""

    def click(self, row: int, column: int = 0) -> None:
        """The mouse points at a cell of the window."""

    def whole_names(self) -> Sequence[str]:
        """What is selected, with names in full, where they may be cut; none where nothing of that kind is."""
        return ()

    def copied(self) -> str:
        """What copying takes: by default all that is visible."""
        lines = ("".join(text for text, _ in line).rstrip() for line in self.draw(self.width, self.height))
        return "\n".join(lines).rstrip("\n")

    def exported(self) -> Callable[[], Iterable[str]]:
        """Gives all lines, not only those visible. Called in the background."""
        return lambda: ()

    def forms(self) -> Mapping[str, Writer]:
        """The forms in which it can be written to a file."""
        return {"text": partial(write_text, self.exported())}
