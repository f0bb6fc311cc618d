"""Prompts in the line of hints: a text, a path with completion, or a question."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.draw.spans import width

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.draw.spans import Line

MAX_COMPLETIONS: Final = 20_000
"""Entries of a folder that are looked at."""
_SPECIAL: Final = re.compile(r"([^\w@%+=:,./-])")


@dataclass(frozen=True, slots=True)
class Completion:
    """Of a ``text`` what certainly follows (``rest``, as a shell reads it), and the ``names`` that it may become."""

    text: str = ""
    rest: str = ""
    names: tuple[str, ...] = ()


def completion(text: str) -> Completion:
    """Of the last word, which ends the text; nothing where that names no path, or begins with a quote that is open."""
    try:
        typed_words = shlex.split(text)
    except ValueError:
        return Completion(text)
    if not typed_words or text[-1:].isspace() or not typed_words[-1]:
        return Completion(text)
    folder, _, begun = os.path.expanduser(typed_words[-1]).rpartition("/")  # noqa: PTH111 - never raises
    names = _names(Path(f"{folder}/" if "/" in typed_words[-1] else "."), begun)
    common = os.path.commonprefix(names)  # noqa: RUF071 - of names, by letters
    return Completion(text, _SPECIAL.sub(r"\\\1", common[len(begun) :]), names)


def _names(folder: Path, begun: str) -> tuple[str, ...]:
    """The entries that begin so, folders with a slash; hidden ones only where a dot was typed."""
    try:
        with os.scandir(folder) as entries:
            names = [
                f"{entry.name}/" if entry.is_dir() else entry.name
                for entry in islice(entries, MAX_COMPLETIONS)
                if entry.name.startswith(begun) and (begun or not entry.name.startswith("."))
            ]
    except OSError:
        return ()
    return tuple(sorted(names))


TAKING = ("right", "end", "ctrl+e", "tab")
"""Keys that take what a path goes on with."""


@dataclass(frozen=True)
class QuestionKey:
    """An answer: the ``key`` that gives it, and what it does in a few words. An empty ``value`` does nothing."""

    key: str
    text: str
    value: str = ""


class Question:
    """A question whose answers are keys. ``take`` gets the value of the answer; Escape gives none."""

    def __init__(self, text: str, answers: Sequence[QuestionKey], take: Callable[[str], None]) -> None:
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
        """Return True while the prompt stays open."""
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
        """Return the unique completion at the end of the text, if the cursor is there."""
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
        """Draw the text, then its completion or the possible names."""
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
