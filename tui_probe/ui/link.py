"""How fast the terminal takes what is written: the only thing that a program learns about the line behind it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from typing import IO, TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
WINDOW = 5.0
"""Seconds that are looked back at."""
BLOCKED = 0.5
"""Seconds of waiting in that time from which on the link is slow."""
SHORTEST = 0.05
"""Seconds; writes that take less say nothing: any machine is busy at times."""
HOLD, LONGEST_HOLD = 20.0, 640.0
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
        self._hold = HOLD
        self._slow_until = float("-inf")

    def wrote(self, seconds: float) -> None:
        """A write took this long. May be called from any thread."""
        if seconds < SHORTEST:
            return
        with self._lock:
            now = self._clock()
            self._waits.append((now, seconds))
            while self._waits[0][0] < now - WINDOW:
                self._waits.popleft()
            if sum(wait for _, wait in self._waits) >= BLOCKED:
                self._found_slow(now)

    def _found_slow(self, now: float) -> None:
        if self._slow_until <= now:
            tried_again = now - self._slow_until <= self._hold
            self._hold = min(LONGEST_HOLD, self._hold * 2) if tried_again else HOLD
        self._slow_until = now + self._hold

    @property
    def slow(self) -> bool:
        """Is the link slow, as far as one knows?"""
        with self._lock:
            return self._clock() < self._slow_until


class TimedFile:
    """A text file whose writes are timed.

    What a terminal that has hung up does not take is lost without an error: the thread that writes must go on taking
    from its queue, else the event loop would wait for room in it for ever, instead of ending.
    """

    def __init__(self, file: IO[str], link: Link) -> None:
        self._file = file
        self._link = link
        self.waiting: int | None = None
        """The thread that is in a write now."""

    def write(self, text: str) -> int:
        """Write, which waits if the terminal takes no more."""
        with contextlib.suppress(OSError):
            self._timed(lambda: self._file.write(text))
        return len(text)

    def flush(self) -> None:
        """So may this."""
        with contextlib.suppress(OSError):
            self._timed(self._file.flush)

    def fileno(self) -> int:
        """The descriptor of the file."""
        return self._file.fileno()

    def isatty(self) -> bool:
        """Is the file a terminal?"""
        return self._file.isatty()

    def _timed(self, write: Callable[[], T]) -> T:
        start, self.waiting = time.monotonic(), threading.get_ident()
        try:
            return write()
        finally:
            self.waiting = None
            self._link.wrote(time.monotonic() - start)
