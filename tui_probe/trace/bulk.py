"""Whole launches at once: the lines of a launch follow each other, and most of a long log is launches.

One expression matches all lines of a launch, of a result that was saved, or of a launch that was passed through. What
it does not match, cut and interleaved lines among it, is read a line at a time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tui_probe.trace.event_readers import shape_of, text_of
from tui_probe.trace.launches import UNKNOWN
from tui_probe.trace.recorder import EndedLaunch, Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

_SHAPE: Final = rb"(\d{1,10} \d{1,10} \d{1,10} block \d{1,10} \d{1,10} \d{1,10} shared \d{1,18})"
_LAUNCH: Final = (
    rb"(?:\[exec\] funcmap-find [^\n ]* success\n)?"
    rb"\[exec\] (\d{1,19}) param[^\n]*\n"
    rb"\[exec\] grid " + _SHAPE + rb" kernel (\d{1,9}) launch (\d{1,18}) stream (?:0x)?([0-9a-f]{1,16})\n"
    rb"(?:\[exec\] grid \d{1,18} (?:warp|block) +\d{1,18} probe \d{1,18} total \d{1,18}\n)*"
    rb"\[exec\] probe-mem (\d{1,18}) \(bytes\)\n"
    rb"\[exec\] succeed (\d{1,9})\n"
)
_SAVED: Final = rb"\[exec\] save ([^\n ]*) size (\d{1,18}) kernel (\d{1,9}) launch (\d{1,18})\n"
_PASSED: Final = (
    rb"(?:\[exec\] funcmap-find [^\n ]* fail\n)?"
    rb"\[exec\] backup " + _SHAPE + rb" kernel (\d{1,9}) launch (\d{1,18}) time (\d{1,19}) reason ([^\n]*)\n"
)
_BLOCK: Final = re.compile(rb"(?m:^)(?:" + rb"|".join((_LAUNCH, _SAVED, _PASSED)) + rb")")
_LAST_OF_LAUNCH: Final = 7
_LAST_OF_SAVED: Final = 11


class BulkReader:
    """Reads slices of a log of ours into a recorder; ``read_lines`` gets what is no whole launch."""

    def __init__(self, recorder: Recorder, read_lines: Callable[[bytes], None]) -> None:
        self._recorder = recorder
        self._read_lines = read_lines

    def read(self, lines: bytes) -> None:
        """``lines`` are whole lines that follow those of the last call."""
        launches: list[EndedLaunch] = []
        results: list[tuple[bytes, ...]] = []
        position = 0
        for match in _BLOCK.finditer(lines):
            if match.start() != position:
                self._flush(launches, results)
                self._read_lines(lines[position : match.start()])
            position = match.end()
            kind = match.lastindex or 0
            if kind == _LAST_OF_LAUNCH:
                launches.append(_launch(match.groups()))
            elif kind == _LAST_OF_SAVED:
                results.append(match.group(8, 9, 10, 11))
            elif launches or not self._recorder.replaces_failed(int(match[13])):
                launches.append(_passed(match.group(12, 13, 14, 15, 16)))
            else:
                self._read_lines(match[0])
        self._flush(launches, results)
        self._read_lines(lines[position:])

    def _flush(self, launches: list[EndedLaunch], results: list[tuple[bytes, ...]]) -> None:
        """Results come last: one may be of a launch before it, never of one after it."""
        if launches:
            self._recorder.ended_launches(launches)
            launches.clear()
        for path, size, kernel, number in results:
            self._recorder.saved(text_of(path.rpartition(b"/")[2]), int(size), int(kernel), int(number))
        results.clear()


def _launch(groups: tuple[bytes, ...]) -> EndedLaunch:
    time_ns, shape, kernel, number, stream, size, status = groups[:_LAST_OF_LAUNCH]
    return EndedLaunch(
        int(kernel), shape_of(shape), int(number), int(time_ns), int(stream, 16), True, None, int(size), int(status)
    )


def _passed(groups: tuple[bytes, ...]) -> EndedLaunch:
    shape, kernel, number, time_ns, reason = groups
    text = None if reason == b"-" else text_of(reason)
    return EndedLaunch(int(kernel), shape_of(shape), int(number), int(time_ns), None, False, text, UNKNOWN, UNKNOWN)
