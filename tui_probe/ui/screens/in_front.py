"""A list in front of a screen: as large as it needs, as far as the terminal has room."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

from textual import events
from textual.screen import ModalScreen

from tui_probe.ui.widgets.lines import Lines

if TYPE_CHECKING:
    from textual.app import ComposeResult

Result = TypeVar("Result")


class FittedList(Lines, can_focus=True):
    """A list that knows how large it should be."""

    DEFAULT_CSS = "FittedList { width: auto; height: auto; }"

    @abstractmethod
    def fit(self, columns: int, rows: int) -> None:
        """Take the room that is needed, of a terminal of this size."""


ListKind = TypeVar("ListKind", bound=FittedList)


class FittedScreen(ModalScreen[Result], Generic[Result, ListKind]):
    """Shows its list alone; what keys do is for the screens that are made of this one.

    With ``early`` it is opened before it is known what the list has, so that no key goes to the screen behind: keys
    wait until ``come``, but Escape leaves.
    """

    DEFAULT_CSS = "FittedScreen { align: center middle; background: transparent; }"

    def __init__(self, shown: ListKind, *, early: bool = False) -> None:
        super().__init__()
        self.list = shown
        self._held: deque[events.Key] | None = deque() if early else None
        """Keys that wait; None where they need not."""

    def compose(self) -> ComposeResult:
        """The list alone."""
        yield self.list

    def on_mount(self) -> None:
        """Fit it to the terminal."""
        self.list.fit(*self.app.size)

    def on_resize(self, event: events.Resize) -> None:
        """Fit it again."""
        self.list.fit(*event.size)

    @abstractmethod
    def press(self, event: events.Key) -> None:
        """A key, once the list has its lines."""

    def on_key(self, event: events.Key) -> None:
        """No key goes further."""
        event.stop()
        event.prevent_default()
        if self._held is None:
            self.press(event)
        elif event.key == "escape":
            self.dismiss(None)
        else:
            self._held.append(event)

    def come(self) -> None:
        """The list has its lines now. A key that leaves it hands those after it to the screen that is in front then."""
        held, self._held = self._held or (), None
        if self.is_mounted:
            self.list.fit(*self.app.size)
            self.list.redraw()
        for event in held:
            if self.is_current:
                self.press(event)
            else:
                self.app.post_message(events.Key(event.key, event.character))

    @property
    def left(self) -> bool:
        """Was it left before it had anything to show?"""
        return self not in self.app.screen_stack
