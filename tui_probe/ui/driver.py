"""Terminal driver: Textual's own, without text and colors that the terminal already shows, with a measured link."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time
from collections import deque
from itertools import groupby
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

from textual.messages import InBandWindowResize

from tui_probe.ui.textual_private import OpenDriver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from textual.app import App
    from textual.message import Message

T = TypeVar("T")
WINDOW_SECONDS = 5.0
"""Seconds that are looked back at."""
MIN_BLOCKED_SECONDS = 0.5
"""Seconds of waiting in that time from which on the link is slow."""
MIN_WRITE_SECONDS = 0.05
"""Seconds; writes that take less say nothing: any machine is busy at times."""
HOLD_SECONDS, MAX_HOLD_SECONDS = 20.0, 640.0
"""Seconds for which a link stays slow after its last waiting, first and at most."""


class Link:
    """Slow while writing had to wait for the terminal, and for some time after.

    With fewer frames a slow link no longer makes anyone wait, so that it stopped waiting does not say that it is fast.
    It is tried again after a hold, which doubles each time that the link turns out to be slow still.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._waits: deque[tuple[float, float]] = deque()
        self._hold = HOLD_SECONDS
        self._slow_until = float("-inf")

    def add_write(self, seconds: float) -> None:
        """A write took this long. May be called from any thread."""
        if seconds < MIN_WRITE_SECONDS:
            return
        with self._lock:
            now = self._clock()
            self._waits.append((now, seconds))
            while self._waits[0][0] < now - WINDOW_SECONDS:
                self._waits.popleft()
            if sum(wait for _, wait in self._waits) >= MIN_BLOCKED_SECONDS:
                self._mark_slow(now)

    def _mark_slow(self, now: float) -> None:
        if self._slow_until <= now:
            is_retry = now - self._slow_until <= self._hold
            self._hold = min(MAX_HOLD_SECONDS, self._hold * 2) if is_retry else HOLD_SECONDS
        self._slow_until = now + self._hold

    @property
    def is_slow(self) -> bool:
        """Return whether the link is known to be slow."""
        with self._lock:
            return self._clock() < self._slow_until


class TimedFile:
    """A text file whose writes are timed.

    What a terminal that has hung up does not take is lost without an error: the thread that writes must continue taking
    from its queue, else the event loop would wait for room in it for ever, instead of ending.
    """

    def __init__(self, file: IO[str], link: Link) -> None:
        self._file = file
        self._link = link
        self.blocked_thread: int | None = None
        """The thread that is in a write now."""

    def write(self, text: str) -> int:
        """Write, which waits if the terminal takes no more."""
        with contextlib.suppress(OSError):
            self._time_write(lambda: self._file.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush the file, timed like a write."""
        with contextlib.suppress(OSError):
            self._time_write(self._file.flush)

    def fileno(self) -> int:
        """The descriptor of the file."""
        return self._file.fileno()

    def isatty(self) -> bool:
        """Return whether the file is a terminal."""
        return self._file.isatty()

    def _time_write(self, write: Callable[[], T]) -> T:
        start, self.blocked_thread = time.monotonic(), threading.get_ident()
        try:
            return write()
        finally:
            self.blocked_thread = None
            self._link.add_write(time.monotonic() - start)


# Output of a frame to the terminal, without colours that it already has and ends of rows before a move.
#
# Rich gives each stretch of text all its attributes and takes them back behind it: twenty-five bytes around a digit
# that changed. Here attributes stay until others are needed.

_TOKEN: Final = re.compile(r"\x1b\[([0-9;]*)m|(\x1b\[\d+;\d+H)|(\n)|\x1b[^m\x1b]*|[^\x1b\n]+")
_COLOURS: Final = re.compile(r"(38;5;\d+)(?:;(48;5;\d+))?|(48;5;\d+)")
"""Attributes that are colours of the table only: of these one can be changed without the other."""
_NO_COLOR: Final = ""


def shorten_frame(frame: str) -> str:
    """A frame that shows the same, on a terminal without attributes, and leaves it without."""
    return "".join(_Writer().write(frame))


class _Writer:
    """``now`` are the attributes that the terminal has, ``wanted`` those of the next text."""

    def __init__(self) -> None:
        self.current = self.target = _NO_COLOR
        self.has_newline = False

    def write(self, frame: str) -> Iterable[str]:
        for token in _TOKEN.finditer(frame):
            attributes, move, newline = token.groups()
            if attributes is not None:
                self._add_attributes(attributes)
            elif newline:
                yield from self._end_row()
                self.has_newline = True
            else:
                if move is None:
                    yield from self._end_row()
                    yield self._attribute_change()
                self.has_newline = False
                yield token[0]
        self.target = _NO_COLOR
        yield self._attribute_change()
        yield from self._end_row()

    def _add_attributes(self, attributes: str) -> None:
        """Attributes add up, until they are taken back."""
        if attributes in ("", "0"):
            self.target = _NO_COLOR
        else:
            self.target = f"{self.target};{attributes}" if self.target else attributes

    def _end_row(self) -> Iterable[str]:
        """Nothing, where a move follows."""
        if self.has_newline:
            self.has_newline = False
            yield "\n"

    def _attribute_change(self) -> str:
        """Return the escape sequence that changes to the wanted attributes; "" for none."""
        if self.current == self.target:
            return ""
        current_colours, target_colours = _parts(self.current), _parts(self.target)
        self.current = self.target
        if not self.target:
            return "\x1b[0m"
        if (
            current_colours is None
            or target_colours is None
            or any(current and not target for current, target in zip(current_colours, target_colours, strict=True))
        ):
            return f"\x1b[{'0;' if current_colours != ('', '') else ''}{self.target}m"
        pairs = zip(current_colours, target_colours, strict=True)
        return f"\x1b[{';'.join(target for current, target in pairs if target != current)}m"


def _parts(attributes: str) -> tuple[str, str] | None:
    """Colour and ground, "" for none; None where there is more than these."""
    if not attributes:
        return "", ""
    match = _COLOURS.fullmatch(attributes)
    return None if match is None else (match[1] or "", match[2] or match[3] or "")


# Ending when the terminal accepts no more output: no one reads it, or its line hangs.
#
# A hook thread then waits in a write for ever, and the event loop for room in that thread's queue. Once what is
# written goes to nowhere, and a signal has ended the write that waits, all of them end as usual.

GIVE_UP_SECONDS = 1.0
"""Seconds from the signal on for which a terminal may take what is left to say."""
_POLL = 0.05
"""Seconds between looks for a write that still waits: no event reports its end."""


def give_up_later(descriptor: int, blocked_thread: Callable[[], int | None], signal_number: int) -> None:
    """Redirect ``descriptor`` to nowhere after a while, if the thread ``waiting()`` still waits in a write.

    ``signal_number`` must have a handler, so that it ends a write and nothing else. May be called in a handler.
    """
    work = threading.Thread(
        target=_give_up, args=(descriptor, blocked_thread, signal_number), name="tui-probe-give-up", daemon=True
    )
    work.start()


def _give_up(descriptor: int, blocked_thread: Callable[[], int | None], signal_number: int) -> None:
    time.sleep(GIVE_UP_SECONDS)
    while blocked_thread() is None:  # what is said last may be what the terminal does not take
        time.sleep(_POLL)
    null_device = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(null_device, descriptor)
    os.close(null_device)
    while (thread := blocked_thread()) is not None:
        signal.pthread_kill(thread, signal_number)
        time.sleep(_POLL)


_WINDOW_FOCUS = "\x1b[?1004h"
_HARMLESS = ("\x1b[?", "\x1b[>", "\x1b[<", "\x1b]")
"""Prefixes of sequences that do not change the visible text: modes, keyboard protocol, clipboard, pointer."""
_MOVE = re.compile(r"\x1b\[(\d+);\d+H")


class FrugalDriver(OpenDriver):
    """Leaves out the rows of a frame that were sent before and are still shown.

    Textual draws a new or resized screen up to four times, with the same or nearly the same content. A frame is a
    sequence of pieces. Each begins with a move to its row and column; the pieces of a row that equal those
    sent for that row last change nothing. The terminal is not asked to report when its window gains or loses focus:
    nothing here depends on it.
    """

    _rows = 0
    """Rows of the terminal at the last query; 0 before."""

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)
        self.link = Link()
        self._sent_rows: dict[int, list[str]] = {}
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
        """Forget what the terminal shows."""
        self._sent_rows = {}

    def _new_rows(self, frame: str) -> str:
        """The pieces of the rows that differ from what was sent last; "" if there are none."""
        changed_texts = []
        pieces = list(_pieces(frame))
        for row, group in groupby(pieces, key=lambda piece: piece[0]):
            texts = [text for _, text in group if not _is_move(text)]
            if texts and self._sent_rows.get(row) != texts:
                self._sent_rows[row] = texts
                changed_texts += texts
        if changed_texts and _is_move(pieces[-1][1]):
            changed_texts.append(pieces[-1][1])
        if self._rows and any(row > self._rows for row, _ in pieces):
            self.forget()  # drawn for a terminal that has become smaller: such rows all land on its last one
        return shorten_frame("".join(changed_texts))

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
        """Start, with all writes timed."""
        self.replace_output(self._timed_file)
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def _timed_file(self, file: IO[str]) -> TimedFile:
        self._output = file if isinstance(file, TimedFile) else TimedFile(file, self.link)
        return self._output

    def end_without_reader(self, signal_number: int) -> None:
        """The application ends: no longer wait for a terminal that takes nothing. May be called in a handler."""
        output = self._output
        if output is not None:
            give_up_later(output.fileno(), lambda: output.blocked_thread, signal_number)

    def stop_application_mode(self) -> None:
        """Leave an empty screen: tmux brings lines of it back if it was resized meanwhile."""
        self.write("\x1b[H\x1b[2J")
        super().stop_application_mode()

    @property
    def is_backed_up(self) -> bool:
        """True if the terminal takes output more slowly than it is written.

        Textual queues what it writes for a thread and drops nothing: a frame that is drawn now would be seen late.
        """
        return self.queued_writes > 0


def _pieces(frame: str) -> Iterator[tuple[int, str]]:
    """The rows and texts of the pieces of a frame, each text with its move."""
    moves = list(_MOVE.finditer(frame))
    piece_ends = [move.start() for move in moves[1:]] + [len(frame)]
    for move, end in zip(moves, piece_ends, strict=True):
        yield int(move[1]), frame[move.start() : end]


def _is_move(text: str) -> bool:
    """Return whether a piece is only its cursor movement."""
    return _MOVE.fullmatch(text) is not None
