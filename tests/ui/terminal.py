"""A terminal for tests: a pseudo-terminal whose output is read in a thread, counted, and shown by pyte."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyte
from pyte import modes
from pyte.charsets import LAT1_MAP
from wcwidth import wcwidth

from tests.patience import HANG
from tests.warm_start import start_on_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[2]
LOOK = 0.02
"""Seconds between two looks at how much came."""
NARROW = re.compile("[ -~\u2500-\u259f]*")
"""Characters of one cell; others may be, too."""
_QUERY_SYNC = b"\x1b[?2026$p"
UNKNOWN_TO_PYTE = re.compile(rb"\x1b\[[<>?][0-9;]*(?:u|\$p)|\x1b\]52;[^\x07]*\x07")


class Screen(pyte.Screen):
    """As pyte's, which takes three times as long for characters of one cell, and six times as long for the text."""

    def __init__(self, columns: int, lines: int) -> None:
        self._drawn: dict[Any, dict[str, Any]] = {}
        super().__init__(columns, lines)

    def draw(self, data: str) -> None:
        """Put characters at the cursor and move it."""
        cursor = self.cursor
        is_plain = cursor.x + len(data) <= self.columns and modes.IRM not in self.mode and NARROW.fullmatch(data)
        if not is_plain or self.charset or self.g0_charset is not LAT1_MAP:
            super().draw(data)
            return
        drawn = self._drawn.setdefault(cursor.attrs, {})
        line = self.buffer[cursor.y]
        for x, character in enumerate(data, cursor.x):
            if character not in drawn:
                drawn[character] = cursor.attrs._replace(data=character)
            line[x] = drawn[character]
        cursor.x += len(data)
        self.dirty.add(cursor.y)

    @property
    def text(self) -> str:
        """The visible text; wide characters appear once and leave no second cell."""
        return "\n".join(map(self._text_of_line, range(self.lines)))

    def _text_of_line(self, number: int) -> str:
        cells = [" "] * self.columns
        for x, cell in self.buffer[number].items():
            if x < self.columns:
                cells[x] = cell.data
        text = "".join(cells)
        return (text if NARROW.fullmatch(text) else "".join(_whole(cells))).rstrip()


def _whole(cells: Iterable[str]) -> Iterator[str]:
    """Yield the characters of a line without the second cells of wide ones, as pyte does."""
    is_wide = False
    for character in cells:
        if not is_wide:
            yield character
        is_wide = not is_wide and wcwidth(character[:1]) == 2


class Terminal:
    """Runs a command in a folder on a terminal of ``size`` (columns, rows).

    ``rate`` is how many bytes per second are read, as over a slow line; None reads all at the same time.
    """

    def __init__(
        self,
        command: Sequence[str],
        size: tuple[int, int] = (200, 50),
        environment: Mapping[str, str] | None = None,
        rate: int | None = None,
        folder: Path = ROOT,
    ) -> None:
        self.screen = Screen(*size)
        self.stream = pyte.ByteStream(self.screen)
        self.received = bytearray()
        self.rate = rate
        self.status: int | None = None
        self._lock = threading.Condition()
        self._bytes_allowed, self._last = 0.0, time.monotonic()
        variables = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), variables.get("PYTHONPATH"))))
        variables.pop("NO_COLOR", None)
        variables.update(environment or {})
        self.pid, self.fd = start_on_terminal(
            command, folder, variables, lambda terminal: termios.tcsetwinsize(terminal, size[::-1])
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait_for_end()

    # -- what comes out

    def _read(self) -> None:
        while True:
            select.select([self.fd], [], [])
            try:
                data = os.read(self.fd, 65536 if self.rate is None else max(1, self.rate // 50))
            except OSError:
                break
            if not data:
                break
            if self.rate is not None:
                time.sleep(len(data) / self.rate)
            if _QUERY_SYNC in data:
                os.write(self.fd, b"\x1b[?2026;2$y")
            with self._lock:
                self.received += data
                self.stream.feed(UNKNOWN_TO_PYTE.sub(b"", data))
                self._lock.notify_all()
        _, status = os.waitpid(self.pid, 0)
        with self._lock:
            self.status = os.waitstatus_to_exitcode(status)
            self._lock.notify_all()

    @property
    def shown(self) -> str:
        """The visible text, for conditions given to ``wait``."""
        return self.screen.text

    @property
    def text(self) -> str:
        """The visible text of the terminal."""
        with self._lock:
            return self.shown

    @property
    def count(self) -> int:
        """Bytes received so far."""
        with self._lock:
            return len(self.received)

    def wait(self, what: str | Callable[[], bool], timeout: float = HANG) -> None:
        """Wait until a text is on the screen, or a condition holds after some output."""
        holds = what if callable(what) else lambda: what in self.shown
        with self._lock:
            if not self._lock.wait_for(holds, timeout):
                raise AssertionError(
                    f"{what!r} did not come in {timeout} s; status {self.status}; shown:\n{self.shown}"
                )

    def quiet(self, seconds: float = 0.7, timeout: float = HANG, *, steady: bool = False) -> int:
        """Wait until nothing came while the command slept for ``seconds``; returns the bytes received so far.

        A command that has something to do on a busy machine is ready to run, so that this time does not count.

        With ``steady``, what a clock in seconds needs counts as nothing: a screen that shows the time never stops.
        """
        end = time.monotonic() + timeout
        allowed = 80 * (1 + seconds) if steady else 0
        seen = deque([(0.0, self.count)])
        while time.monotonic() < end:
            time.sleep(LOOK)
            slept = seen[-1][0] + (LOOK if self.is_asleep() else 0)
            seen.append((slept, self.count))
            while len(seen) > 2 and seen[1][0] <= slept - seconds:
                seen.popleft()
            if slept - seen[0][0] >= seconds and seen[-1][1] - seen[0][1] <= allowed:
                return seen[-1][1]
        raise AssertionError("the terminal never became quiet")

    def is_asleep(self) -> bool:
        """Return whether the command and its children wait for something, and what it wrote was read, or it ended."""
        if self.status is not None:
            return True
        try:
            return set(states(self.pid)) <= {"S", "Z"} and not select.select([self.fd], [], [], 0)[0]
        except OSError:  # a thread ended meanwhile
            return False

    def wait_for_end(self, timeout: float = HANG) -> int:
        """Wait until the command has ended; returns its exit status, or minus the signal."""
        with self._lock:
            assert self._lock.wait_for(lambda: self.status is not None, timeout), "the command did not end"
            assert self.status is not None
            return self.status

    # -- what goes in

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self.fd, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Another size."""
        with self._lock:
            self.screen.resize(rows, columns)
        termios.tcsetwinsize(self.fd, (rows, columns))


def states(process: int) -> Iterator[str]:
    """Yield the states of the threads of a process and its descendants, as in proc(5). Raises OSError if one ended."""
    for thread in Path(f"/proc/{process}/task").iterdir():
        yield (thread / "stat").read_text().rpartition(") ")[2][0]
        for child in (thread / "children").read_text().split():
            yield from states(int(child))


def on_screen(root: Path, *options: str) -> list[str]:
    """The command that shows ROOT's target or trace."""
    return [sys.executable, "-m", "tests.ui.screen", str(root), *options]
