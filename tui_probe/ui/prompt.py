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

MAX_SCANNED_ENTRIES: Final = 20_000
"""Entries of a directory that are read."""
_SPECIAL: Final = re.compile(r"([^\w@%+=:,./-])")


@dataclass(frozen=True, slots=True)
class Completion:
    """Completion of a ``text``: its certain ``suffix``, as a shell reads it, and the possible ``names``."""

    text: str = ""
    suffix: str = ""
    names: tuple[str, ...] = ()


def completion(text: str) -> Completion:
    """Complete the last word, which ends the text. Empty if it names no path, or begins with an open quote."""
    try:
        typed_words = shlex.split(text)
    except ValueError:
        return Completion(text)
    if not typed_words or text[-1:].isspace() or not typed_words[-1]:
        return Completion(text)
    folder, _, prefix = os.path.expanduser(typed_words[-1]).rpartition("/")  # noqa: PTH111 - never raises
    names = _names(Path(f"{folder}/" if "/" in typed_words[-1] else "."), prefix)
    common = os.path.commonprefix(names)  # noqa: RUF071 - of names, by letters
    return Completion(text, _SPECIAL.sub(r"\\\1", common[len(prefix) :]), names)


def _names(folder: Path, prefix: str) -> tuple[str, ...]:
    """The entries that begin so, folders with a slash; hidden ones only where a dot was typed."""
    try:
        with os.scandir(folder) as entries:
            names = [
                f"{entry.name}/" if entry.is_dir() else entry.name
                for entry in islice(entries, MAX_SCANNED_ENTRIES)
                if entry.name.startswith(prefix) and (prefix or not entry.name.startswith("."))
            ]
    except OSError:
        return ()
    return tuple(sorted(names))


ACCEPT_KEYS = ("right", "end", "ctrl+e", "tab")
"""Keys that accept the completion of a path."""


@dataclass(frozen=True)
class QuestionKey:
    """An answer: the ``key`` that gives it, and what it does in a few words. An empty ``value`` does nothing."""

    key: str
    text: str
    value: str = ""


class Question:
    """A question whose answers are keys. ``submit`` gets the value of the answer; Escape gives none."""

    def __init__(self, text: str, answers: Sequence[QuestionKey], submit: Callable[[str], None]) -> None:
        self.text = text
        self.answers = answers
        self.submit = submit

    def press(self, key: str, character: str | None) -> bool:
        """Answer with a key. False when it is answered."""
        if key == "escape":
            return False
        for answer in self.answers:
            if character == answer.key:
                self.submit(answer.value)
                return False
        return True

    def insert(self, text: str) -> None:
        """A pasted text is not an answer."""

    def line(self, cells: int) -> Line:
        """The question as it is drawn; where there is no room for all of it, the answers."""
        answers = [
            span for answer in self.answers for span in (("  ", ""), (answer.key, "key"), (f" {answer.text}", ""))
        ]
        if all(answer.value for answer in self.answers):
            answers.append(("  Esc cancel", "dim"))
        question: Line = ((f" {self.text}", "warn"), *answers)
        return question if sum(width(text) for text, _ in question) <= cells else tuple(answers)


class Refusal:
    """Says why no text is taken: what is typed all the same would otherwise act as keys. Enter or Escape ends it."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def press(self, key: str, character: str | None) -> bool:
        """Return True while the prompt stays open."""
        return key not in ("enter", "escape") and character is not None and character.isprintable()

    def insert(self, text: str) -> None:
        """A pasted text is not taken either."""

    def line(self, cells: int) -> Line:
        """The words as they are drawn."""
        del cells
        return ((f" {self.reason}", "warn"), ("   Enter or Esc continues", "dim"))


class Prompt:
    """A label, a text and a cursor. ``submit`` gets the text on Enter."""

    def __init__(self, label: str, submit: Callable[[str], None], text: str = "") -> None:
        self.label = label
        self.submit = submit
        self.text = text
        self.cursor = len(text)

    def press(self, key: str, character: str | None) -> bool:
        """Edit with a key. False when the prompt is done with, by Enter or Escape."""
        if key in ("enter", "escape"):
            if key == "enter":
                self.submit(self.text)
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

    def is_edit_key(self, key: str) -> bool:
        """Return whether a key edits the text other than by typing a character."""
        return key in _MOVES or key in _CUTS

    def insert(self, text: str) -> None:
        """Put a text in at the cursor; of several lines the first."""
        line = text.partition("\n")[0]
        self.text = self.text[: self.cursor] + line + self.text[self.cursor :]
        self.cursor += len(line)

    def line(self, cells: int) -> Line:
        """The prompt as it is drawn."""
        del cells
        cursor_text = self.text[self.cursor : self.cursor + 1] or " "
        return (
            (f" {self.label}: ", "key"),
            (self.text[: self.cursor], ""),
            (cursor_text, "cursor"),
            (self.text[self.cursor + 1 :], ""),
            ("   Enter accept · Esc cancel", "dim"),
        )


class FilterPrompt(Prompt):
    """Applies a filter with each key; Escape restores the one that was there before."""

    def __init__(self, label: str, apply: Callable[[str], None], text: str = "") -> None:
        super().__init__(label, apply, text)
        self._original = self._applied = text

    def press(self, key: str, character: str | None) -> bool:
        """Edit with a key, and show what passes."""
        is_open = super().press(key, character)
        self._apply(self._original if key == "escape" else self.text)
        return is_open

    def insert(self, text: str) -> None:
        """Insert a text, and show what passes."""
        super().insert(text)
        self._apply(self.text)

    def _apply(self, text: str) -> None:
        if text != self._applied:
            self._applied = text
            self.submit(text)


class PathPrompt(Prompt):
    """Asks for a path and offers its completion. ``find_completion`` passes it to a callback, later."""

    def __init__(
        self,
        label: str,
        submit: Callable[[str], None],
        find_completion: Callable[[str, Callable[[Completion], None]], None],
    ) -> None:
        super().__init__(label, submit)
        self.find_completion = find_completion
        self.completion = Completion()

    @property
    def suffix(self) -> str:
        """Return the unique completion at the end of the text, if the cursor is there."""
        return self.completion.suffix if self.completion.text == self.text and self.cursor == len(self.text) else ""

    def press(self, key: str, character: str | None) -> bool:
        """Edit with a key; one of ``ACCEPT_KEYS`` inserts the completion."""
        if key in ACCEPT_KEYS and self.suffix:
            self.insert(self.suffix)
            return True
        if key == "tab":
            return True
        if not super().press(key, character):
            return False
        self._request_completion()
        return True

    def insert(self, text: str) -> None:
        """Insert a text and request its completion."""
        super().insert(text)
        self._request_completion()

    def _request_completion(self) -> None:
        self.find_completion(self.text, self._set_completion)

    def _set_completion(self, completion: Completion) -> None:
        self.completion = completion

    def line(self, cells: int) -> Line:
        """Draw the text, then its completion or the possible names."""
        if not self.suffix:
            is_current = self.completion.text == self.text
            names = self.completion.names if is_current and len(self.completion.names) > 1 else ()
            return (*super().line(cells), (f"   {'  '.join(names)}", "dim"))
        return ((f" {self.label}: ", "key"), (self.text, ""), (self.suffix[:1], "cursor"), (self.suffix[1:], "dim"),
                ("   → accepts", "dim"))  # fmt: skip


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
