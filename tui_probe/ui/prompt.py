"""What takes the place of the line of hints: a text to type, or a question. Knows nothing of Textual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.draw.spans import width
from tui_probe.ui.paths import Completion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.draw.spans import Line

TAKING = ("right", "end", "ctrl+e", "tab")
"""Keys that take what a path goes on with."""


@dataclass(frozen=True)
class Answer:
    """An answer: the ``key`` that gives it, and what it does in a few words. An empty ``value`` does nothing."""

    key: str
    text: str
    value: str = ""


class Question:
    """A question whose answers are keys. ``take`` gets the value of the answer; Escape gives none."""

    def __init__(self, text: str, answers: Sequence[Answer], take: Callable[[str], None]) -> None:
        self.text = text
        self.answers = answers
        self.take = take

    def press(self, key: str, character: str | None) -> bool:
        """Answer with a key. False when it is answered."""
        if key == "escape":
            return False
        for answer in self.answers:
            if character == answer.key:
                self.take(answer.value)
                return False
        return True

    def insert(self, text: str) -> None:
        """A pasted text is no answer."""

    def line(self, cells: int) -> Line:
        """The question as it is drawn; where there is no room for all of it, the answers."""
        answers = [
            span for answer in self.answers for span in (("  ", ""), (answer.key, "key"), (f" {answer.text}", ""))
        ]
        if all(answer.value for answer in self.answers):
            answers.append(("  Esc cancel", "dim"))
        asked: Line = ((f" {self.text}", "warn"), *answers)
        return asked if sum(width(text) for text, _ in asked) <= cells else tuple(answers)


class Refusal:
    """Says why no text is taken: what is typed all the same would otherwise act as keys. Enter or Escape ends it."""

    def __init__(self, why: str) -> None:
        self.why = why

    def press(self, key: str, character: str | None) -> bool:
        """Whether it goes on: while text is typed."""
        return key not in ("enter", "escape") and character is not None and character.isprintable()

    def insert(self, text: str) -> None:
        """A pasted text is not taken either."""

    def line(self, cells: int) -> Line:
        """The words as they are drawn."""
        del cells
        return ((f" {self.why}", "warn"), ("   Enter or Esc goes on", "dim"))


class Prompt:
    """A label, a text and a cursor. ``take`` gets the text on Enter."""

    def __init__(self, label: str, take: Callable[[str], None], text: str = "") -> None:
        self.label = label
        self.take = take
        self.text = text
        self.cursor = len(text)

    def press(self, key: str, character: str | None) -> bool:
        """Edit with a key. False when the prompt is done with, by Enter or Escape."""
        if key in ("enter", "escape"):
            if key == "enter":
                self.take(self.text)
            return False
        if key in _MOVES:
            self.cursor = max(0, min(len(self.text), _MOVES[key](self)))
        elif key in _CUTS:
            start, end = sorted(_CUTS[key](self))
            start = max(0, start)
            self.text = self.text[:start] + self.text[end:]
            self.cursor = start
        elif character is not None and character.isprintable():
            self.insert(character)
        return True

    def knows(self, key: str) -> bool:
        """Does a key edit, other than by what it types?"""
        return key in _MOVES or key in _CUTS

    def insert(self, text: str) -> None:
        """Put a text in at the cursor; of several lines the first."""
        line = text.partition("\n")[0]
        self.text = self.text[: self.cursor] + line + self.text[self.cursor :]
        self.cursor += len(line)

    def line(self, cells: int) -> Line:
        """The prompt as it is drawn."""
        del cells
        under = self.text[self.cursor : self.cursor + 1] or " "
        return (
            (f" {self.label}: ", "key"),
            (self.text[: self.cursor], ""),
            (under, "cursor"),
            (self.text[self.cursor + 1 :], ""),
            ("   Enter take · Esc cancel", "dim"),
        )


class PathPrompt(Prompt):
    """Asks for a path, and offers what it goes on with. ``look`` finds that out, and hands it over in its time."""

    def __init__(
        self, label: str, take: Callable[[str], None], look: Callable[[str, Callable[[Completion], None]], None]
    ) -> None:
        super().__init__(label, take)
        self.look = look
        self.known = Completion()

    @property
    def rest(self) -> str:
        """What certainly follows at the end of the text, if the cursor is there."""
        return self.known.rest if self.known.text == self.text and self.cursor == len(self.text) else ""

    def press(self, key: str, character: str | None) -> bool:
        """A key that leads to the right takes what is offered."""
        if key in TAKING and self.rest:
            self.insert(self.rest)
            return True
        if key == "tab":
            return True
        return super().press(key, character) and self._looked()

    def insert(self, text: str) -> None:
        """Look how it goes on."""
        super().insert(text)
        self._looked()

    def _looked(self) -> bool:
        self.look(self.text, self._learn)
        return True

    def _learn(self, known: Completion) -> None:
        self.known = known

    def line(self, cells: int) -> Line:
        """What is offered, or the names that it may become, follows the text."""
        if not self.rest:
            names = self.known.names if self.known.text == self.text and len(self.known.names) > 1 else ()
            return (*super().line(cells), (f"   {'  '.join(names)}", "dim"))
        return ((f" {self.label}: ", "key"), (self.text, ""), (self.rest[:1], "cursor"), (self.rest[1:], "dim"),
                ("   → takes it", "dim"))  # fmt: skip


def _word_start(prompt: Prompt) -> int:
    head = prompt.text[: prompt.cursor].rstrip()
    return head.rfind(" ") + 1


_MOVES: dict[str, Callable[[Prompt], int]] = {
    "left": lambda p: p.cursor - 1,
    "right": lambda p: p.cursor + 1,
    "home": lambda _: 0,
    "ctrl+a": lambda _: 0,
    "end": lambda p: len(p.text),
    "ctrl+e": lambda p: len(p.text),
}
_CUTS: dict[str, Callable[[Prompt], tuple[int, int]]] = {
    "backspace": lambda p: (p.cursor - 1, p.cursor),
    "delete": lambda p: (p.cursor, p.cursor + 1),
    "ctrl+u": lambda p: (0, p.cursor),
    "ctrl+w": lambda p: (_word_start(p), p.cursor),
}
