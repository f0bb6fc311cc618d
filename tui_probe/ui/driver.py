"""The terminal driver: Textual's own, but it does not send what the terminal already shows, nor colours that it has."""

from __future__ import annotations

import os
import re
from itertools import groupby
from typing import IO, TYPE_CHECKING, Any

from textual.messages import InBandWindowResize

from tui_probe.ui.link import Link, TimedFile
from tui_probe.ui.sequences import shortened
from tui_probe.ui.textual_private import OpenDriver
from tui_probe.ui.unread import give_up_later

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import App
    from textual.message import Message

_WINDOW_FOCUS = "\x1b[?1004h"
_HARMLESS = ("\x1b[?", "\x1b[>", "\x1b[<", "\x1b]")
"""How sequences begin that leave what is shown as it is: modes, keyboard protocol, clipboard, pointer."""
_MOVE = re.compile(r"\x1b\[(\d+);\d+H")


class FrugalDriver(OpenDriver):
    """Leaves out the rows of a frame that were sent before and are still shown.

    Textual draws a new or resized screen up to four times, with the same or nearly the same content. A frame is a
    sequence of pieces, each of which begins with a move to its row and column; the pieces of a row that equal those
    sent for that row last change nothing. The terminal is not asked to report when its window gains or loses focus:
    nothing here depends on it.
    """

    _rows = 0
    """Of the terminal, when it was asked last; 0 before."""

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)
        self.link = Link()
        self._shown: dict[int, list[str]] = {}
        self._output: TimedFile | None = None

    def write(self, data: str) -> None:
        """Send ``data``, without the rows that the terminal shows already."""
        if data == _WINDOW_FOCUS:
            return
        if _MOVE.match(data):
            data = self._new_rows(data)
        elif not data.startswith(_HARMLESS):
            self.forget()
        if data:
            super().write(data)

    def forget(self) -> None:
        """What the terminal shows is not known any more."""
        self._shown = {}

    def _new_rows(self, frame: str) -> str:
        """The pieces of the rows that differ from what was sent last; "" if there are none."""
        sent = []
        pieces = list(_pieces(frame))
        for row, group in groupby(pieces, key=lambda piece: piece[0]):
            texts = [text for _, text in group if not _is_move(text)]
            if texts and self._shown.get(row) != texts:
                self._shown[row] = texts
                sent += texts
        if sent and _is_move(pieces[-1][1]):
            sent.append(pieces[-1][1])
        if self._rows and any(row > self._rows for row, _ in pieces):
            self.forget()  # drawn for a terminal that has become smaller: such rows all land on its last one
        return shortened("".join(sent))

    def process_message(self, message: Message) -> None:
        """A terminal of another size shows what it likes."""
        if isinstance(message, InBandWindowResize):
            self.forget()
        super().process_message(message)

    def terminal_size(self) -> tuple[int, int]:
        """Columns and rows of the terminal itself: COLUMNS and LINES of the environment say what they were once."""
        self.forget()
        try:
            size = os.get_terminal_size(self.fileno)
        except OSError:
            return super().terminal_size()
        self._rows = size.lines
        return size

    def start_application_mode(self) -> None:
        """Have all that is written timed."""
        self.replace_output(self._timed)
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def _timed(self, file: IO[str]) -> TimedFile:
        self._output = file if isinstance(file, TimedFile) else TimedFile(file, self.link)
        return self._output

    def end_unread(self, signal_number: int) -> None:
        """The application ends: no longer wait for a terminal that takes nothing. May be called in a handler."""
        output = self._output
        if output is not None:
            give_up_later(output.fileno(), lambda: output.waiting, signal_number)

    def stop_application_mode(self) -> None:
        """Leave an empty screen: tmux brings lines of it back if it was resized meanwhile."""
        self.write("\x1b[H\x1b[2J")
        super().stop_application_mode()

    @property
    def backed_up(self) -> bool:
        """Does the terminal take output more slowly than it is written?

        Textual queues what it writes for a thread and drops nothing: a frame that is drawn now would be seen late.
        """
        return self.queued > 0


def _pieces(frame: str) -> Iterator[tuple[int, str]]:
    """The rows and texts of the pieces of a frame, each text with its move."""
    moves = list(_MOVE.finditer(frame))
    ends = [move.start() for move in moves[1:]] + [len(frame)]
    for move, end in zip(moves, ends, strict=True):
        yield int(move[1]), frame[move.start() : end]


def _is_move(text: str) -> bool:
    """Is a piece nothing but its move?"""
    return _MOVE.fullmatch(text) is not None
