"""Lists in front of a screen: choose an item, choose log tags, show whole names."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from textual import events
from textual.screen import ModalScreen

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.spans import Line, clip, pad, width, wrap
from tui_probe.ui.widgets.lines import LinesWidget

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from textual.app import App, ComposeResult

    from tui_probe.ui.views.log import LogView

Result = TypeVar("Result")
INNER = 36
"""Cells of a line of tags, inside the frame."""
TAG_KEYS: Line = (
    ("Space", "key"),
    (" toggle  ", "dim"),
    ("Enter", "key"),
    (" show  ", "dim"),
    ("a", "key"),
    (" all", "dim"),
)
NAMES_MAX_COLUMNS, NAMES_MARGIN = 120, 4
"""Columns of a list of names at most, and columns and rows of the terminal that it leaves free."""
MAX_COLUMNS, MARGIN = 110, 2
"""Columns of a list to choose from at most, and columns and rows of the terminal that it leaves free."""
DETAIL_LINES = 4
"""Lines for the text about the marked line, at most."""
_FEW_ROWS = 20
"""Rows of a terminal below which this text has one line."""
NO_MATCH = "no entry contains these words: press Backspace to delete a letter"
_MAX_DIGITS = 9
"""Lines of a numbered list that a digit takes."""


class FittedList(LinesWidget, can_focus=True):
    """A list that knows how large it should be."""

    DEFAULT_CSS = "FittedList { width: auto; height: auto; }"

    @abstractmethod
    def fit_terminal(self, columns: int, rows: int) -> None:
        """Take the room that is needed, of a terminal of this size."""


ListKind = TypeVar("ListKind", bound=FittedList)


class FittedScreen(ModalScreen[Result], Generic[Result, ListKind]):
    """Base of screens that show a list in front of another screen; a subclass says what keys do (``press``).

    With ``opens_early`` it opens before the list has its lines, so that no key goes to the screen behind: keys wait
    until ``list_ready``, but Escape leaves.
    """

    DEFAULT_CSS = "FittedScreen { align: center middle; background: transparent; }"

    def __init__(self, fitted_list: ListKind, *, opens_early: bool = False) -> None:
        super().__init__()
        self.list = fitted_list
        self._waiting_keys: deque[events.Key] | None = deque() if opens_early else None
        """Keys that wait; None where they need not."""

    def compose(self) -> ComposeResult:
        """The list only."""
        yield self.list

    def on_mount(self) -> None:
        """Fit it to the terminal."""
        self.list.fit_terminal(*self.app.size)

    def on_resize(self, event: events.Resize) -> None:
        """Fit it again."""
        self.list.fit_terminal(*event.size)

    @abstractmethod
    def press(self, event: events.Key) -> None:
        """A key, once the list has its lines."""

    def on_key(self, event: events.Key) -> None:
        """No key goes further."""
        event.stop()
        event.prevent_default()
        if self._waiting_keys is None:
            self.press(event)
        elif event.key == "escape":
            self.dismiss(None)
        else:
            self._waiting_keys.append(event)

    def list_ready(self) -> None:
        """Replay the keys that waited for the lines of the list. Those after a key that leaves it go to the screen that
        is in front then.
        """
        waiting_keys, self._waiting_keys = self._waiting_keys or (), None
        if self.is_mounted:
            self.list.fit_terminal(*self.app.size)
            self.list.redraw()
        for event in waiting_keys:
            if self.is_current:
                self.press(event)
            else:
                self.app.post_message(events.Key(event.key, event.character))

    @property
    def was_closed(self) -> bool:
        """True if it was closed before it had anything to show."""
        return self not in self.app.screen_stack


class TagList(FittedList):
    """Tags with their counts, each with a box; they are counted while it is shown."""

    def __init__(self, tags: frozenset[str]) -> None:
        super().__init__()
        self.selected_tags = set(tags)
        self.counts: dict[str, int] = {}
        self.names: list[str] = []
        self.title = "counting…"
        self.place = 0
        self._top = 0

    def take(self, counts: dict[str, int]) -> None:
        """Show the counted tags."""
        self.counts, self.names = counts, sorted({*counts, *self.selected_tags})
        self.title = "Tags to show; none selected: all" if self.names else "no line of this log has a tag"

    def fit_terminal(self, columns: int, rows: int) -> None:
        """Fit the box to the tags and the terminal."""
        self.styles.width = min(INNER + 2, columns)
        self.styles.height = min(len(self.names) + 5, rows)

    def draw(self, width: int, height: int) -> list[Line]:
        """The list in a frame, the tags around the marked one."""
        del width
        room = max(1, height - 5)
        self._top = max(min(self._top, self.place), self.place - room + 1)
        visible_lines = [self._line(place) for place in range(self._top, min(self._top + room, len(self.names)))]
        return list(frame_lines([((self.title, "title"),), *visible_lines, (), TAG_KEYS], INNER))

    def _line(self, place: int) -> Line:
        name = self.names[place]
        box = "[x]" if name in self.selected_tags else "[ ]"
        text = f"{box} {pad(name, 14)} {pad(units.count(self.counts.get(name, 0)), 12, right=True)} "
        return ((text, "select" if place == self.place else ""),)


def frame_lines(lines: Iterable[Line], inner: int) -> Iterable[Line]:
    """``lines`` in a frame that is ``inner`` cells wide inside."""
    yield (("╭" + "─" * inner + "╮", "rule"),)
    for line in lines:
        used_cells = sum(width(text) for text, _ in line)
        yield (("│ ", "rule"), *line, (" " * (inner - used_cells - 1), ""), ("│", "rule"))
    yield (("╰" + "─" * inner + "╯", "rule"),)


class TagScreen(FittedScreen["frozenset[str] | None", TagList]):
    """Gives the chosen tags, none for all, or None if left with Escape."""

    def __init__(self, tags: frozenset[str]) -> None:
        super().__init__(TagList(tags), opens_early=True)

    def take(self, counts: dict[str, int]) -> None:
        """Set the number of lines per tag."""
        self.list.take(counts)
        self.list_ready()

    def press(self, event: events.Key) -> None:
        """Arrows and jk move, space toggles, a clears, Enter takes, Escape leaves."""
        tags = self.list
        if event.key in ("up", "k", "down", "j") and tags.names:
            tags.place = (tags.place + (1 if event.key in ("down", "j") else -1)) % len(tags.names)
        elif event.key in ("space", "x") and tags.names:
            tags.selected_tags ^= {tags.names[tags.place]}
        elif event.key == "a":
            tags.selected_tags.clear()
        elif event.key == "enter":
            self.dismiss(frozenset(tags.selected_tags))
        elif event.key in ("escape", "q"):
            self.dismiss(None)
        tags.redraw()


def choose_tags(app: App[None], log: LogView) -> None:
    """Count the tags of a log, have some of them chosen, and show only those."""

    def take(tags: frozenset[str] | None) -> None:
        if tags is not None:
            log.set_tags(tags)

    if log.reader is None:
        log.view_host.notice("this log is empty")
        return
    menu = TagScreen(log.wanted.tags)
    app.push_screen(menu, take)
    log.count_tags(menu.take)


class NameList(FittedList):
    """Each name in as many lines as it needs."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = names
        self._top = 0

    def fit_terminal(self, columns: int, rows: int) -> None:
        """Take the room that the names need and the terminal has."""
        cells = min(NAMES_MAX_COLUMNS, columns - NAMES_MARGIN)
        self.styles.width = cells
        self.styles.height = min(len(self._wrap_names(cells - 2)) + 4, rows - NAMES_MARGIN)

    def _wrap_names(self, inner: int) -> list[Line]:
        lines: list[Line] = []
        for name in self.names:
            lines += [((part, ""),) for part in wrap(printable(name), inner - 2)] + [()]
        return lines[:-1]

    def scroll(self, step: int) -> None:
        """Scroll by lines, if there are more than fit."""
        room = max(1, self.size.height - 4)
        self._top = max(0, min(self._top + step, len(self._wrap_names(self.size.width - 2)) - room))
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """The names, and keys."""
        inner, room = width - 2, max(1, height - 4)
        visible_lines = self._wrap_names(inner)[self._top : self._top + room]
        key_hints: Line = (("y", "key"), (" copy  ", "dim"), ("Esc", "key"), (" back", "dim"))
        return list(frame_lines([*visible_lines, *[()] * (room - len(visible_lines)), (), key_hints], inner))


class NameScreen(FittedScreen["str | None", NameList]):
    """Gives the names, a line each, if they are to be copied."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(NameList(names))

    def press(self, event: events.Key) -> None:
        """Arrows scroll, y copies, any other key leaves."""
        if event.key in ("up", "k", "down", "j"):
            self.list.scroll(1 if event.key in ("down", "j") else -1)
        else:
            self.dismiss("\n".join(map(printable, self.list.names)) if event.key == "y" else None)


@dataclass(frozen=True)
class PickerItem:
    """Line of a list to choose from.

    ``note`` is next to its label, ``detail`` is shown while the line is marked, ``value`` is returned if it is chosen.
    Typed words are searched for in all texts; ``search_words`` has further words for that, which are not shown.
    """

    label: str
    note: str = ""
    detail: str = ""
    value: Any = None
    search_words: str = ""


def searched_text(item: PickerItem) -> str:
    """Return the text in which typed words are searched for, in lower case."""
    return f"{item.label} {item.note} {item.search_words} {item.detail}".lower()


def _label_position(item: PickerItem, word: str) -> tuple[bool, int]:
    """Return the sort key of a match: labels that begin with the word first, those without it last."""
    position = item.label.lower().find(word)
    return position < 0, position


class PickerList(FittedList):
    """The lines that contain all typed words, one of them marked."""

    def __init__(
        self, title: str, items: Sequence[PickerItem] | None, place: int = 0, *, has_numbers: bool = False
    ) -> None:
        super().__init__()
        self.title = title
        self.has_numbers = has_numbers
        self.empty_text = NO_MATCH if items is not None else "reading…"
        self.search_text = ""
        self._top = 0
        self._show(items or (), place)

    def _show(self, items: Sequence[PickerItem], place: int) -> None:
        self.items = self.matches = items
        self.place = place
        # Of all items: columns do not move while the list is searched.
        self._label_cells = max((width(item.label) for item in items), default=0)
        self._note_cells = max((width(item.note) for item in items), default=0)
        self._details = 0
        """Lines for the text about the marked line, as many as the longest text needs."""

    def take(self, items: Sequence[PickerItem]) -> None:
        """Set the items, which were not known at first."""
        self.empty_text = NO_MATCH
        self._show(items, 0)

    def fit_terminal(self, columns: int, rows: int) -> None:
        """Take the room that the list needs and the terminal has; the same however many lines are found."""
        self.styles.width = columns = min(MAX_COLUMNS, columns - MARGIN)
        details = (len(self._detail_lines(item, columns - 2)) for item in self.items)
        self._details = min(max(details, default=0), DETAIL_LINES if rows >= _FEW_ROWS else 1)
        needed_rows = len(self.items) + 4 + (self._details + 1 if self._details else 0)
        self.styles.height = max(6, min(needed_rows, rows - MARGIN))

    @property
    def marked_item(self) -> PickerItem | None:
        """The marked line; None if none contains what was typed."""
        return self.matches[self.place] if self.matches else None

    def find(self, text: str) -> None:
        """Show the items that contain all words of ``text``, the likeliest first."""
        self.search_text = text
        typed_words = text.lower().split()
        matches = [item for item in self.items if all(word in searched_text(item) for word in typed_words)]
        if typed_words:
            matches.sort(key=partial(_label_position, word=typed_words[0]))
        self.matches = matches
        self.place = 0
        self.redraw()

    def with_digit(self, digit: str) -> PickerItem | None:
        """Return the line with that number; None if there is none."""
        number = int(digit) if self.has_numbers and digit.isdecimal() and digit.isascii() else 0
        return self.matches[number - 1] if 0 < number <= len(self.matches) else None

    def move(self, step: int) -> None:
        """Mark another line; the ends stay."""
        self.place = max(0, min(self.place + step, len(self.matches) - 1))
        self.redraw()

    @property
    def page(self) -> int:
        """Lines that are visible at the same time."""
        return max(1, self.size.height - 4 - (self._details + 1 if self._details else 0))

    @staticmethod
    def _detail_lines(item: PickerItem, inner: int) -> list[str]:
        return wrap(item.detail, inner - 3) if item.detail else []

    def draw(self, width: int, height: int) -> list[Line]:
        """Return title and typed text, the visible lines, the text about the marked one, and keys."""
        del height
        inner, page = width - 2, self.page
        self._top = max(0, min(max(min(self._top, self.place), self.place - page + 1), len(self.matches) - page))
        search_line: Line = (
            (self.search_text, ""),
            (" ", "cursor"),
            ("" if self.search_text else " type to find", "dim"),
        )
        lines: list[Line] = [((f" {self.title}: ", "title"), *search_line)]
        window = self.matches[self._top : self._top + page]
        visible_lines: list[Line] = [self._line(place, item, inner - 1) for place, item in enumerate(window, self._top)]
        if not window:
            visible_lines = [((f" {self.empty_text}", "dim"),)]
        lines += [*visible_lines, *[()] * (page - len(visible_lines))]
        if self._details:
            detail = self._detail_lines(self.marked_item, inner)[: self._details] if self.marked_item else []
            lines += [(("─" * (inner - 2), "rule"),), *(((f" {text}", ""),) for text in detail)]
            lines += [()] * (self._details - len(detail))
        count = f"{units.count(len(self.matches))} of {units.count(len(self.items))}  " if self.search_text else ""
        keys = (
            *((("1-9", "key"), (" or ", "dim")) if self.has_numbers else ()),
            ("Enter", "key"),
            (" accept  ", "dim"),
            ("↑ ↓", "key"),
            (" choose  ", "dim"),
            ("Esc", "key"),
            (" leave", "dim"),
        )
        label = self._hidden_label(inner)
        lines.append(((f" {clip(label, inner - 2)}", ""),) if label else ((f" {count}", "dim"), *keys))
        return list(frame_lines(lines, inner))

    def _hidden_label(self, inner: int) -> str:
        """Return the label of the marked line if its line shows only a part, "" if all of it."""
        if self.marked_item is None:
            return ""
        visible_text = "".join(text for text, _ in self._line(self.place, self.marked_item, inner - 1))
        return "" if self.marked_item.label in visible_text else self.marked_item.label

    def _line(self, place: int, item: PickerItem, cells: int) -> Line:
        number = ""
        if self.has_numbers:
            number, cells = f"{place + 1} " if place < _MAX_DIGITS else "  ", cells - 2
        note = min(self._note_cells, cells // 2)
        label = min(self._label_cells, cells - note - 4)
        # A long label takes the room that its own note leaves.
        label = max(label, min(width(item.label), cells - width(item.note) - 4))
        name, note_text = pad(item.label, label), pad(item.note, cells - label - 4)
        if item is self.marked_item:
            return (("▌", "accent"), (f"{number}{name}  {note_text}", "select"))
        return ((" ", ""), (number, "key"), (f"{name}  ", ""), (note_text, "dim"))


class PickerScreen(FittedScreen[Any, PickerList]):
    """Gives the value of the chosen line, or None if left with Escape. ``items`` are None until they are known;
    digits take the first nine of them if they are ``has_numbers``.
    """

    def __init__(
        self, title: str, items: Sequence[PickerItem] | None = None, place: int = 0, *, has_numbers: bool = False
    ) -> None:
        super().__init__(PickerList(title, items, place, has_numbers=has_numbers), opens_early=items is None)

    def take(self, items: Sequence[PickerItem]) -> None:
        """Show the items."""
        self.list.take(items)
        self.list_ready()

    def press(self, event: events.Key) -> None:
        """Arrows mark, Enter takes, Escape leaves, what can be typed is typed."""
        picker = self.list
        moves = {"up": -1, "down": 1, "pageup": -picker.page, "pagedown": picker.page, "tab": 1, "shift+tab": -1,
                 "home": -len(picker.matches), "end": len(picker.matches)}  # fmt: skip
        if event.key in moves:
            picker.move(moves[event.key])
        elif event.key == "enter" and picker.marked_item is not None:
            self.dismiss(picker.marked_item.value)
        elif event.key in ("escape", "ctrl+p"):
            self.dismiss(None)
        elif event.character is not None and (item := picker.with_digit(event.character)) is not None:
            self.dismiss(item.value)
        elif event.key in ("backspace", "ctrl+u"):
            picker.find(picker.search_text[:-1] if event.key == "backspace" else "")
        elif event.character is not None and event.character.isprintable():
            picker.find(picker.search_text + event.character)
