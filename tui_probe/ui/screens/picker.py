"""A list to choose one thing from, in front of a screen: typing finds, Enter takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tui_probe.draw.spans import Line, pad, width, wrap
from tui_probe.ui.screens.in_front import FittedList, FittedScreen
from tui_probe.ui.screens.tags import framed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

WIDEST, MARGIN = 110, 2
DETAIL_LINES = 4
NOTHING = "nothing here has all these words: Backspace takes the last letter back"


@dataclass(frozen=True)
class Choice:
    """One line: what it is called, a few words or columns beside it, and what is told while it is marked.

    ``also`` are words by which it is found, too, as the one in the line of keys; so are those of ``detail``.
    """

    label: str
    note: str = ""
    detail: str = ""
    value: Any = None
    also: str = ""


def searched(choice: Choice) -> str:
    """All words by which it is found."""
    return f"{choice.label} {choice.note} {choice.also} {choice.detail}".lower()


class ChoiceList(FittedList):
    """The lines that contain all typed words, one of them marked."""

    def __init__(self, title: str, choices: Sequence[Choice] | None, place: int = 0) -> None:
        super().__init__()
        self.title = title
        self.nothing = NOTHING if choices is not None else "reading…"
        self.typed = ""
        self._top = 0
        self._show(choices or (), place)

    def _show(self, choices: Sequence[Choice], place: int) -> None:
        self.choices = self.found = choices
        self.place = place
        self._detailed = any(choice.detail for choice in choices)

    def take(self, choices: Sequence[Choice]) -> None:
        """What there is to choose from, where that was not known at first."""
        self.nothing = NOTHING
        self._show(choices, 0)

    def fit(self, columns: int, rows: int) -> None:
        """Take the room that the list needs and the terminal has; the same however many lines are found."""
        needed = len(self.choices) + 4 + (DETAIL_LINES + 1 if self._detailed else 0)
        self.styles.width = min(WIDEST, columns - MARGIN)
        self.styles.height = max(6, min(needed, rows - MARGIN))

    @property
    def chosen(self) -> Choice | None:
        """The marked line; None if none contains what was typed."""
        return self.found[self.place] if self.found else None

    def find(self, typed: str) -> None:
        """Show what contains all words of ``typed``."""
        self.typed = typed
        words = typed.lower().split()
        found = [c for c in self.choices if all(word in searched(c) for word in words)]
        # What begins with the words is more likely meant; -1, not in the label at all, comes last.
        found.sort(key=lambda choice: choice.label.lower().find(words[0]) % 1000 if words else 0)
        self.found = found
        self.place = 0
        self.redraw()

    def move(self, step: int) -> None:
        """Mark another line; the ends stay."""
        self.place = max(0, min(self.place + step, len(self.found) - 1))
        self.redraw()

    @property
    def page(self) -> int:
        """Lines that are visible at once."""
        return max(1, self.size.height - 4 - (DETAIL_LINES + 1 if self._detailed else 0))

    def draw(self, width: int, height: int) -> list[Line]:
        """Title and typed text, the visible lines, what is told about the marked one, keys."""
        del height
        inner, page = width - 2, self.page
        self._top = max(0, min(max(min(self._top, self.place), self.place - page + 1), len(self.found) - page))
        typed: Line = ((self.typed, ""), (" ", "cursor"), ("" if self.typed else " type to find", "dim"))
        lines: list[Line] = [((f" {self.title}: ", "title"), *typed)]
        window = self.found[self._top : self._top + page]
        shown: list[Line] = [self._line(choice, inner - 1) for choice in window]
        if not window:
            shown = [((f" {self.nothing}", "dim"),)]
        lines += [*shown, *[()] * (page - len(shown))]
        if self._detailed:
            words = wrap(self.chosen.detail, inner - 3) if self.chosen else []
            lines += [(("─" * (inner - 2), "rule"),), *(((f" {text}", ""),) for text in words[:DETAIL_LINES])]
            lines += [()] * (DETAIL_LINES - len(words))
        count = f"{len(self.found)} of {len(self.choices)}  " if self.typed else ""
        keys = (
            ("Enter", "key"),
            (" take  ", "dim"),
            ("↑ ↓", "key"),
            (" choose  ", "dim"),
            ("Esc", "key"),
            (" leave", "dim"),
        )
        lines.append(((f" {count}", "dim"), *keys))
        return list(framed(lines, inner))

    def _line(self, choice: Choice, cells: int) -> Line:
        note = min(max(width(known.note) for known in self.choices), cells // 2)
        label = min(max(width(known.label) for known in self.choices), cells - note - 4)
        name, words = pad(choice.label, label), pad(pad(choice.note, note), cells - label - 4)
        if choice is self.chosen:
            return (("▌", "accent"), (f"{name}  {words}", "select"))
        return ((f" {name}  ", ""), (words, "dim"))


class PickScreen(FittedScreen[Any, ChoiceList]):
    """Gives the value of the chosen line, or None if left with Escape. ``choices`` are None until they are known."""

    def __init__(self, title: str, choices: Sequence[Choice] | None = None, place: int = 0) -> None:
        super().__init__(ChoiceList(title, choices, place), early=choices is None)

    def take(self, choices: Sequence[Choice]) -> None:
        """They are known now."""
        self.list.take(choices)
        self.come()

    def press(self, event: events.Key) -> None:
        """Arrows mark, Enter takes, Escape leaves, what can be typed is typed."""
        found = self.list
        moves = {"up": -1, "down": 1, "pageup": -found.page, "pagedown": found.page, "tab": 1, "shift+tab": -1,
                 "home": -len(found.found), "end": len(found.found)}  # fmt: skip
        if event.key in moves:
            found.move(moves[event.key])
        elif event.key == "enter" and found.chosen is not None:
            self.dismiss(found.chosen.value)
        elif event.key in ("escape", "ctrl+p"):
            self.dismiss(None)
        elif event.key in ("backspace", "ctrl+u"):
            found.find(found.typed[:-1] if event.key == "backspace" else "")
        elif event.character is not None and event.character.isprintable():
            found.find(found.typed + event.character)
