"""A list in front of a screen: as large as it needs, as far as the terminal has room."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from textual.screen import ModalScreen

from tui_probe.ui.widgets.lines import Lines

if TYPE_CHECKING:
    from textual import events
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
    """Shows its list alone; what keys do is for the screens that are made of this one."""

    DEFAULT_CSS = "FittedScreen { align: center middle; background: transparent; }"

    def __init__(self, shown: ListKind) -> None:
        super().__init__()
        self.list = shown

    def compose(self) -> ComposeResult:
        """The list alone."""
        yield self.list

    def on_mount(self) -> None:
        """Fit it to the terminal."""
        self.list.fit(*self.app.size)

    def on_resize(self, event: events.Resize) -> None:
        """Fit it again."""
        self.list.fit(*event.size)
