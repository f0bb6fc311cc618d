"""The line in which a text to search or filter is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.widgets import Input

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual import events


class Prompt(Input):
    """One line, in the place of the bar of keys. Enter takes the text, Escape leaves things as they are."""

    DEFAULT_CSS = """
    Prompt { height: 1; border: none; padding: 0 1; background: $background; color: $foreground; display: none; }
    Prompt:focus { border: none; }
    """

    def __init__(self, **options: str | None) -> None:
        super().__init__(compact=True, select_on_focus=False, **options)  # type: ignore[arg-type]
        self.cursor_blink = False
        self._take: Callable[[str], None] | None = None
        self._close: Callable[[], None] | None = None

    def ask(self, label: str, take: Callable[[str], None], close: Callable[[], None], text: str = "") -> None:
        """Ask for a text. ``take`` gets it on Enter; ``close`` is called in either case, after ``take``."""
        self.placeholder = label
        self.value = text
        self.cursor_position = len(text)
        self._take, self._close = take, close
        self.display = True
        self.focus()

    def on_key(self, event: events.Key) -> None:
        """Enter and Escape end it."""
        if event.key in ("enter", "escape"):
            event.stop()
            event.prevent_default()
            take, close, text = self._take, self._close, self.value
            self._take = self._close = None
            self.display = False
            if event.key == "enter" and take is not None:
                take(text)
            if close is not None:
                close()
