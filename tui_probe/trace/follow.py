"""A trace that is being written, read as it grows."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from tui_probe.trace.bulk import BulkReader
from tui_probe.trace.events import parse_line
from tui_probe.trace.locate import LOG, find_trace
from tui_probe.trace.log_tail import LogTail
from tui_probe.trace.model import Trace
from tui_probe.trace.process import is_alive
from tui_probe.trace.recorder import Recorder
from tui_probe.trace.reduce import Reducer
from tui_probe.trace.run_info import read_run_info

if TYPE_CHECKING:
    from collections.abc import Callable

_HEAD: Final = 1 << 14
_ASSEMBLING: Final = 60.0
"""Seconds after which a kernel's assembler is no longer waited for."""


class TraceFollower:
    """Keeps ``trace`` up to date with a trace directory, which need not exist yet.

    ``poll`` reads what was appended since the last one; ``changed`` then holds the indices of the kernels that it
    touched. Memory goes with the number of kernels: no line is kept, and older launches are in a file.
    """

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        self._tail = LogTail(self.directory / LOG)
        self._run_info_stamp: tuple[int, int] | None = None
        self._start()

    def _start(self) -> None:
        self.trace = Trace(self.directory)
        self._recorder = Recorder(self.trace)
        self._reducer = Reducer(self.trace, self._recorder)
        self._bulk = BulkReader(self._recorder, self._read_line)
        self.changed: set[int] = set()
        self._assembling: dict[int, float] = {}

    def poll(self, progress: Callable[[float], object] = lambda _: None) -> bool:
        """Read what is new; whether anything changed. TraceError if the log is there and cannot be read.

        ``progress`` is told the share of the log that was read.
        """
        replaced = self._tail.was_replaced()
        if replaced:
            self._start()
            self._run_info_stamp = None
        before = self._tail.offset
        for lines in self._tail.slices():
            self._read(lines, self._tail.start)
            self._recorder.settle_many()
            progress(self._tail.share)
        self._recorder.settle()
        self.changed = self._recorder.changed.copy()
        self._recorder.changed.clear()
        state = self.trace.state
        state.kernels = len(self.trace.kernels)
        grew = self._tail.offset != before
        updated = self._read_run_info()
        updated |= self._update_running()
        self._watch_assemblies()
        return replaced or grew or updated or bool(self.changed)

    def _read(self, lines: bytes, offset: int) -> None:
        """Take in whole lines. Until a log shows that it is one of ours, they have to be read one by one."""
        end = 0
        if self._reducer.older is not None:
            end = lines.find(b"\n", _HEAD) + 1 or len(lines)
            self.trace.state.lines += self._read_lines(lines[:end], offset)
        read = self._bulk.read if self._reducer.older is None else self._read_lines
        self.trace.state.lines += read(lines[end:], offset + end)

    def _read_lines(self, lines: bytes, offset: int) -> int:
        """Read them one by one, and say how many there were; the first begins at this offset of the log."""
        each = lines.split(b"\n")[:-1]
        self._recorder.offset = offset
        for line in each:
            self._read_line(line)
            self._recorder.offset += len(line) + 1
        return len(each)

    def _read_line(self, line: bytes) -> None:
        self._reducer.apply(parse_line(line))

    def _watch_assemblies(self) -> None:
        """Look for what assemblers write after a kernel's fate is known, for as long as one may take."""
        now = monotonic()
        if self.trace.state.running:
            self._assembling |= dict.fromkeys(self._recorder.decided, now + _ASSEMBLING)
        self._recorder.decided.clear()
        for index, deadline in list(self._assembling.items()):
            kernel = self.trace.kernels.get(index)
            if kernel is None or kernel.process_log.complete or now > deadline:
                del self._assembling[index]
            elif kernel.refresh():
                self.changed.add(index)

    def _read_run_info(self) -> bool:
        path = self.directory / "run.json"
        try:
            status = path.stat()
        except OSError:
            return False
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp == self._run_info_stamp:
            return False
        self._run_info_stamp = stamp
        info = read_run_info(path)
        if info is None:
            return False
        self.trace.run_info = info
        state = self.trace.state
        state.command = state.command or " ".join(info.command)
        state.simulated |= info.simulated
        state.started = state.started or info.started
        if info.ended is not None and info.is_of(state.pid):
            state.ended = info.ended
            state.exit_status = info.exit_status
            state.signal = info.signal
        return True

    def _update_running(self) -> bool:
        """A process runs until the launcher or the log says that it ended, or it is no longer there."""
        state = self.trace.state
        ended = state.ended is not None or state.launches_dropped is not None or state.pid is None
        running = not ended and is_alive(state.pid, state.command)
        changed = running != state.running
        state.running = running
        return changed


def open_trace(path: Path | str, progress: Callable[[float], object] = lambda _: None) -> Trace:
    """Read the trace that ``path`` means (see ``find_trace``); TraceError if there is none."""
    follower = TraceFollower(find_trace(Path(path)))
    follower.poll(progress)
    return follower.trace
