"""The parameters of launches, which the log has and the trace model does not keep."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tui_probe.errors import TraceError
from tui_probe.trace.locate import LOG
from tui_probe.trace.log_tail import LogTail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tui_probe.trace.model import Trace

_OLDER: Final = re.compile(
    rb"^\[exec\] (\d{1,19}) param ([^\n]*)\n\[exec\] grid \d+ \d+ \d+ block \d+ \d+ \d+ shared \d+\s*$", re.MULTILINE
)


def read_parameters(trace: Trace, kernel: int, progress: Callable[[float], None]) -> dict[int, bytes]:
    """The words after ``param`` of each probed launch of a kernel, by the launch's number.

    Reads the whole log, in slices. A launch that was passed through has none. TraceError if the log cannot be read.
    """
    path = trace.file(LOG)
    if path is None:
        raise TraceError(f"{trace.directory}: {LOG} is no longer there")
    if trace.state.epoch_ns is None:
        return _read_older(trace, path, kernel, progress)
    line = re.compile(
        rb"^\[exec\] \d+ param ([^\n]*)\n\[exec\] grid [^\n]{1,200}? kernel %d launch (\d{1,18}) " % kernel,
        re.MULTILINE,
    )
    found: dict[int, bytes] = {}
    for pairs in _matches(path, line, progress):
        found.update((int(number), words.strip()) for words, number in pairs)
    return found


def _matches(
    path: Path, line: re.Pattern[bytes], progress: Callable[[float], None]
) -> Iterator[list[tuple[bytes, ...]]]:
    """What the groups of two lines hold, of one slice of the log after another."""
    size = max(1, path.stat().st_size)
    tail, rest = LogTail(path), b""
    for lines in tail.slices():
        progress(min(1.0, tail.offset / size))
        text = rest + lines
        yield line.findall(text)
        rest = text[text.rfind(b"\n", 0, len(text) - 1) + 1 :]  # its launch may be in the next slice


def _read_older(trace: Trace, path: Path, kernel: int, progress: Callable[[float], None]) -> dict[int, bytes]:
    """The same of a log that numbers no launches: its pairs of lines are the launches that have a time, in order."""
    pairs = (pair for found in _matches(path, _OLDER, progress) for pair in found)
    timed = (launch for launch in trace.launches if launch.time_ns is not None)
    return {
        launch.number: words.strip()
        for launch, (time, words) in zip(timed, pairs, strict=False)
        if launch.kernel == kernel and launch.number is not None and launch.time_ns == int(time)
    }
