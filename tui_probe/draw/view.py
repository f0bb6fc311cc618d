"""Interface of a view for every front end: documents, drawings, and spots that lead from one to another.

A view is opened in the background, which may read files, and is pure state from then on. There are two kinds: a
:class:`Document` is lines to scroll through, a :class:`Drawing` fills the window that it gets and answers commands such
as pan, zoom and mark. Neither knows what it shows; views of one launch lead to each other by
:class:`~tui_probe.draw.view.Spot`: lines of its code, blocks, times.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from tui_probe.draw.spans import Line

Item = TypeVar("Item")
Progress: TypeAlias = "Callable[[float], None]"
"""Called with the share done, 0 to 1, now and then. It raises ``Cancelled`` where no one waits any more."""
COMMANDS: Final[Mapping[str, str]] = {
    "left": "cursor left", "right": "cursor right", "up": "cursor up", "down": "cursor down",
    "page_left": "window left", "page_right": "window right", "page_up": "window up", "page_down": "window down",
    "zoom_in": "zoom in on time at the cursor", "zoom_out": "zoom out on time",
    "zoom_in_rows": "zoom in on rows", "zoom_out_rows": "zoom out on rows", "fit": "show the whole range",
    "start": "go to the start", "end": "go to the end",
    "next": "next event", "previous": "previous event", "worst": "hotspot",
    "mark": "set a mark; two marks show their distance", "colour": "next colouring", "level": "next level of detail",
    "unit": "next unit of the axis", "select": "next selection (SM, block)", "order": "next order of rows",
    "order_back": "previous order of rows",
    "reverse": "reverse the order", "fold": "fold or unfold unchanged lines",
}  # fmt: skip
"""Every command that a view may answer to; the key table binds each to keys."""
View: TypeAlias = "Document | Drawing"


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in the code and one in the run, each None where a page does not name it.

    ``ptx`` are lines of ``pruned.ptx``, counted from 1, or offsets in machine code that was probed itself; of several
    the one that matters most comes first. ``probed_line`` is a line of ``probed.ptx`` that the other text has not.
    ``block`` is a number in the grid, ``warp`` one in the block, ``time`` in cycles since the launch began, ``address``
    that of an access to memory. ``probe`` is the probe whose value is meant, "" for any.
    """

    ptx: tuple[int, ...] = ()
    probed_line: int | None = None
    block: int | None = None
    warp: int | None = None
    sm: int | None = None
    time: float | None = None
    address: int | None = None
    probe: str = ""

    @classmethod
    def of_line(cls, line: int | None) -> Spot:
        """Return the spot of a line of ``pruned.ptx``; an empty one for None."""
        return cls() if line is None else cls((line,))

    def __bool__(self) -> bool:
        """True if any of its parts is known."""
        return self != Spot(probe=self.probe)

    @property
    def in_code(self) -> bool:
        """True if its line is known."""
        return bool(self.ptx) or self.probed_line is not None

    @property
    def in_run(self) -> bool:
        """True if it has a block, SM or time."""
        return any(value is not None for value in (self.block, self.sm, self.time))

    def completed_from(self, previous: Spot) -> Spot:
        """Return this spot, with missing positions in the code or in the run from ``previous``."""
        code_spot, run_spot = self if self.in_code else previous, self if self.in_run else previous
        return Spot(
            code_spot.ptx,
            code_spot.probed_line,
            run_spot.block,
            run_spot.warp,
            run_spot.sm,
            run_spot.time,
            run_spot.address,
            code_spot.probe,
        )

    def shares_code(self, other: Spot) -> bool:
        """True if one of them is a line of the other."""
        if self.probed_line is not None or other.probed_line is not None:
            return self.probed_line == other.probed_line
        return any(mine[0] in theirs for mine, theirs in ((self.ptx, other.ptx), (other.ptx, self.ptx)) if mine)


class Cancelled(Exception):  # noqa: N818 - no error: someone went on to another view
    """Raised by ``Progress`` when the view is no longer wanted, and is not caught by what opens it."""


def no_progress(share: float) -> None:
    """Ignore the progress."""
    del share


def with_progress(items: Collection[Item], progress: Progress) -> Iterator[Item]:
    """Yield the items; report the finished share before each."""
    for place, item in enumerate(items):
        progress(place / len(items))
        yield item


class BaseView(ABC):
    """Output forms of every view except lines."""

    title: str

    @abstractmethod
    def record(self) -> Mapping[str, Any]:
        """Return the content as JSON; unmeasured values are None."""

    @abstractmethod
    def cells(self) -> Iterator[Sequence[object]]:
        """Return the content as rows for CSV, the headings first; None is an empty cell."""

    def explanation(self) -> Sequence[str]:
        """Explain how to read it, a paragraph each; empty if its kind of view needs no explanation."""
        return ()

    def commands(self) -> Mapping[str, str]:
        """Return the commands that mean something now, and what they do, in a few words."""
        return {}

    def press(self, command: str) -> str | None:
        """Run a command. Return the text for the user, if there is any."""
        del command
        return None

    def status(self) -> list[str]:
        """Return the visible range and state, in parts of a few words; the last ones matter most."""
        return []

    def pinned_parts(self) -> int:
        """Return the number of the first parts of ``status`` that name its subject and are never left out."""
        return 0

    def name_keys(self, keys: Mapping[str, str]) -> None:
        """A screen has these views as pages behind these keys, which may be named then."""
        del keys

    def take_over(self, previous: View) -> None:
        """Show as much as can be of what another view of this kind shows: its window, cursor, order, level."""
        if type(previous) is type(self):
            self.choose(previous.choices())

    def target_view(self) -> str:
        """Return the view that Enter goes to, at the spot that the cursor is on; "" for none."""
        return ""

    def missing_reason(self, spot: Spot) -> str:
        """The reason why a spot that users may look for is not shown here; "" where it is nothing for this view."""
        del spot
        return ""

    def choices(self) -> Mapping[str, Any]:
        """The choices made in it, for ``choose``: one of several texts, an order; of a drawing its window and cursor.

        It holds nothing of what is shown, so that it may be kept for long.
        """
        return {}

    def choose(self, choices: Mapping[str, Any]) -> None:
        """Make these choices again, also those of another kernel or launch, to the extent that they mean something
        here.
        """
        del choices


@runtime_checkable
class EventView(Protocol):
    """A view with trace events for Perfetto."""

    def trace_events(self) -> Iterator[dict[str, Any]]:
        """Return the events, times in microseconds."""

    def trace_facts(self) -> Mapping[str, Any]:
        """Facts about the events, for ``otherData``."""


class Document(BaseView):
    """Lines to scroll through."""

    tells_at_once: ClassVar[bool] = False
    """True if the line that the cursor begins at is worth following, as the first row of a ranking is."""

    @abstractmethod
    def lines(self, width: int) -> Sequence[Line]:
        """Return all lines for a width; may be made on demand, so that only those visible cost anything."""

    def whole_text(self, width: int) -> Sequence[Line]:
        """Return the lines outside of a screen, where no key shows what ``lines`` leaves out."""
        return self.lines(width)

    def pinned(self, width: int) -> int:
        """Return the number of the first lines that stay visible, such as the headings of a table."""
        del width
        return 0

    def sortable(self) -> Mapping[str, str]:
        """Titles of the columns by which rows can be sorted, by key; empty for no such columns."""
        return {}

    @property
    def sorted_column(self) -> str:
        """The key of the column by which rows are sorted; "" where no one chose a column."""
        return ""

    def sort_by(self, key: str) -> None:
        """Sort the rows by a column; the same one again reverses them."""
        del key

    def headings(self) -> Sequence[tuple[range, range]]:
        """Lines with the titles of columns, and those of the rows below, of each table; as last made.

        The titles stay visible while the rows are scrolled.
        """
        return ()

    def gutter(self, width: int) -> int:
        """Cells at the left of a line that show the cursor and do not move while it is scrolled sideways.

        The first of them is a blank. 0: there is no cursor.
        """
        del width
        return 0

    launch_row: int | None = None
    """Row of the launch at hand in the table of launches, of a list of launches, which begins there."""

    def launch_at(self, number: int) -> int | None:
        """The row of the launch that a line is about, of a list of launches, for Enter to select it; else None."""
        del number
        return None

    row_noun: ClassVar[str] = "line"
    """Noun for the lines that the cursor counts: “row” where lines have numbers of their own with another meaning."""

    def row_count(self) -> int | None:
        """Number of lines that the cursor counts: rows of a table without notes below it. None: all but the pinned."""
        return None

    def begins(self, width: int) -> int:
        """Return the line that the cursor begins at: below what is said of the whole."""
        return self.pinned(width)

    def anchor_noun(self) -> str:
        """Return the noun for ``anchors``."""
        return "change"

    def anchors(self, width: int) -> Sequence[int]:
        """Lines that are worth jumping to (hunks), ascending."""
        del width
        return ()

    def line_facts(self, number: int, width: int) -> list[str]:
        """Further facts of a line that do not fit into it, in parts of a few words."""
        del number, width
        return []

    def pinned_facts(self, number: int, width: int) -> int:
        """Return the number of the first parts of ``line_facts`` that are shown first and are never left out."""
        del number, width
        return 0

    def full_names(self, number: int) -> Sequence[str]:
        """Return the full names that a line contains, where names may be cut."""
        del number
        return ()

    def unbroken(self, lines: Sequence[str]) -> list[str]:
        """Visible lines as they are copied: texts that go over several lines may be one."""
        return [*lines]

    def ptx_line(self, number: int, width: int) -> int | None:
        """Return the line of the PTX that a line is about, counted from 1; None if it is of none."""
        del number, width
        return None

    def spot(self, number: int, width: int) -> Spot:
        """Return the spot of a line."""
        return Spot.of_line(self.ptx_line(number, width))

    def mark(self, number: int, width: int) -> str:
        """Mark a line: the first one, then the last one of what a run is to measure. Returns words that say so."""
        del number, width
        return ""

    def marked_option(self) -> str:
        """Return the option of ``tui-probe run`` that measures what is marked; "" where nothing is."""
        return ""

    def target_view_at(self, number: int, width: int) -> str:
        """Return the view that Enter opens on a line."""
        del number, width
        return self.target_view()

    def target(self, number: int, width: int) -> Spot | None:
        """Return the target of Enter on a line: its own spot, unless there is a better one. None for no target."""
        return self.spot(number, width) or None

    def no_target_reason(self, number: int, width: int) -> str:
        """The reason why Enter has no target on a line, and the remedy; "" if this view never has targets."""
        del number, width
        return ""

    def turn_to(self, spot: Spot) -> bool:
        """Choose the text that has a spot, if it is not the one shown. Return whether that changed anything."""
        del spot
        return False

    def place_of_spot(self, spot: Spot, width: int) -> int | None:
        """Return the line that is about a spot, in the text that is shown; None where there is none."""
        places = (self.place_of(line, width) for line in spot.ptx)
        return next((place for place in places if place is not None), None)

    def part_at(self, number: int) -> tuple[str, Any] | None:
        """Return the page that Enter opens from a line, and the part for its ``select_part``; None for none."""
        del number
        return None

    def select_part(self, part: Any) -> bool:
        """Show a part of the rows, or all again with None. Return whether that changed anything."""
        del part
        return False

    def marked_line(self) -> tuple[int, str] | None:
        """Return the first line of the PTX whose value is marked as the most or fewest, and the value in words."""
        return None

    def worst(self) -> tuple[int, str] | None:
        """The number of the line, of those that were made last, that shows what is worst, and what that is in words.

        None where nothing stands out.
        """
        return None

    def place_of(self, ptx_line: int, width: int) -> int | None:
        """Return the line that is about a line of the PTX."""
        del ptx_line, width
        return None


class Drawing(BaseView):
    """Something with axes that fills its window."""

    searches: ClassVar[bool] = False
    """True if ``find`` looks for names."""

    @abstractmethod
    def draw(self, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:
        """Exactly ``height`` lines of at most ``width`` cells. Fast: draws what ``prepare`` computed last."""

    def prepare(self, width: int, height: int) -> Callable[[], None] | None:
        """Work to be done off the event loop before ``draw`` shows this state in this size; None if there is none.

        The work must not disturb a ``draw`` that runs meanwhile: it computes aside, then assigns once.
        """
        del width, height
        return None

    def click(self, column: int, row: int) -> None:
        """Cursor to a cell of the window."""

    @property
    def cycles(self) -> float | None:
        """The number of cycles on the axis of time; None where there is no such axis."""
        return None

    def stretch(self, cycles: float) -> None:
        """Let the axis of time have at least that many cycles: the same scale as in a drawing next to this one."""

    def ptx_line(self) -> int | None:
        """Return the line of the PTX under the cursor, counted from 1, if Enter is to open it; None for none."""
        return None

    def kernel_target(self) -> tuple[Path, int] | None:
        """The trace and the index of the kernel under the cursor, if Enter is to open its screen; None for none."""
        return None

    def spot(self) -> Spot:
        """Return the spot of the cursor."""
        return Spot.of_line(self.ptx_line())

    def no_target_reason(self) -> str:
        """The reason why Enter has no target at the cursor, and the remedy; "" if this view never has targets."""
        return ""

    def go_to(self, spot: Spot) -> bool:
        """Move the cursor to a spot. Return False where nothing of it is drawn."""
        del spot
        return False

    def find(self, text: str, step: int) -> bool:
        """Move the cursor to the next thing (1) or the one before (-1) whose name the text means, around the end.

        False where there is none.
        """
        del text, step
        return False

    @abstractmethod
    def plot(self, axes: Any) -> None:
        """Draw on matplotlib axes, for a PNG."""
