"""A question with a few answers, each a key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.screen import ModalScreen

from tui_probe.render.spans import Line, width
from tui_probe.ui.widgets.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from textual import events
    from textual.app import ComposeResult


@dataclass(frozen=True)
class Answer:
    """An answer: the ``key`` that gives it, what it does in words, and what the asker gets."""

    key: str
    text: str
    value: str


class Question(Lines, can_focus=True):
    """The question in a frame."""

    DEFAULT_CSS = "Question { width: auto; height: auto; }"

    def __init__(self, question: str, answers: Sequence[Answer]) -> None:
        super().__init__()
        body: list[Line] = [((question, "title"),), ()]
        body += [((f" {a.key} ", "key"), (f" {a.text}", "")) for a in answers]
        inner = max(sum(width(text) for text, _ in line) for line in body) + 2
        self.lines = list(framed(body, inner))
        self.styles.width = inner + 2
        self.styles.height = len(self.lines)

    def draw(self, width: int, height: int) -> list[Line]:
        """The frame with everything in it."""
        del width, height
        return self.lines


def framed(lines: Iterable[Line], inner: int) -> Iterable[Line]:
    """``lines`` in a frame that is ``inner`` cells wide inside."""
    yield (("┌" + "─" * inner + "┐", "rule"),)
    for line in lines:
        used = sum(width(text) for text, _ in line)
        yield (("│ ", "rule"), *line, (" " * (inner - used - 1), ""), ("│", "rule"))
    yield (("└" + "─" * inner + "┘", "rule"),)


class ConfirmScreen(ModalScreen[str]):
    """Asks; gives the value of the answer, or "" if left with Escape."""

    DEFAULT_CSS = "ConfirmScreen { align: center middle; background: transparent; }"

    def __init__(self, question: str, answers: Sequence[Answer]) -> None:
        super().__init__()
        self.question = question
        self.answers = answers

    def compose(self) -> ComposeResult:
        """The question alone."""
        yield Question(self.question, self.answers)

    def on_key(self, event: events.Key) -> None:
        """An answer's key answers; Escape and q leave things as they are."""
        event.stop()
        for answer in self.answers:
            if event.character == answer.key or event.key == answer.key.lower():
                self.dismiss(answer.value)
                return
        if event.key in ("escape", "q"):
            self.dismiss("")
