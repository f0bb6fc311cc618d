"""Whole launches at once: most of a long log is launches and saved results, a few lines each, one after another.

Their numbers are read as arrays. What is not exactly such lines, cut and interleaved ones among it, is left to be read
a line at a time, in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.trace.columns import LaunchColumns, ResultColumns
from tui_probe.trace.event_readers import text_of
from tui_probe.trace.launches import NO_STREAM, UNKNOWN
from tui_probe.trace.line_words import LineWords, between

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tui_probe.trace.recorder import Recorder

_U32: Final = np.uint64(0xFFFFFFFF)
_IGNORED: Final = (b"[mem] ", b"[mod] ", b"[bin] ", b"[probe] find ", b"[probe] mkdir ", b"[probe] write ",
                   b"[probe] engine ", b"[probe] read ", b"[probe] finish ", b"[exec] funcmap-")  # fmt: skip
"""Lines that tell nothing which the trace model keeps, in logs that have ``[kernel]`` lines."""

_ANYWHERE: Final = (b"[kernel] ", b"[probe] rename ", b"[benchmark] ", b"[nvtx] ")
"""Lines that say the same wherever they stand among launches."""


class BulkReader:
    """Reads slices of a log of ours into a recorder; ``read_line`` gets each line that is no part of a whole launch."""

    def __init__(self, recorder: Recorder, read_line: Callable[[bytes], None]) -> None:
        self._recorder = recorder
        self._read_line = read_line

    def read(self, text: bytes) -> int:
        """``text`` is whole lines that follow those of the last call; how many they are."""
        if not text:
            return 0
        lines = LineWords(text)
        left = np.ones(len(lines), dtype=np.bool_)
        for prefix in _IGNORED:
            left &= ~lines.begin_with(prefix)
        launches = _in_order(_probed(lines, left), _passed(lines, left, self._recorder.trace.launches.reason_code))
        results = _results(lines, left)
        self._record(lines, np.flatnonzero(left), launches, results)
        return len(lines)

    def _record(
        self, lines: LineWords, rest: NDArray[np.int64], launches: LaunchColumns, results: ResultColumns
    ) -> None:
        """Record everything in the order of the log: ``rest`` are the lines that are read one by one.

        Lines that do not depend on launches come first. A log of ten thousand kernels would otherwise be cut into as
        many parts.
        """
        anywhere = np.zeros(len(lines), dtype=np.bool_)
        for prefix in _ANYWHERE:
            anywhere |= lines.begin_with(prefix)
        first = rest[anywhere[rest]]
        for start, end in zip(lines.starts[first].tolist(), lines.ends[first].tolist(), strict=True):
            self._read_line(lines.text[start:end])
        rest = rest[~anywhere[rest]]
        launch = result = 0
        launches_before = np.searchsorted(launches.line, rest).tolist()
        results_before = np.searchsorted(results.line, rest).tolist()
        for line, *before in zip(rest.tolist(), launches_before, results_before, strict=True):
            if before != [launch, result]:
                self._record_parts(launches.part(slice(launch, before[0])), results.part(slice(result, before[1])))
                launch, result = before
            self._read_line(lines.text[lines.starts[line] : lines.ends[line]])
        self._record_parts(launches.part(slice(launch, None)), results.part(slice(result, None)))

    def _record_parts(self, launches: LaunchColumns, results: ResultColumns) -> None:
        """Results come last: one may be of a launch before it, never of one after it."""
        if len(launches):
            self._recorder.ended_launches(launches)
        if len(results):
            self._recorder.saved_results(results)


class _Fields:
    """Reads the first words of some lines, and collects which of the lines have them all as they should be."""

    def __init__(self, lines: LineWords, at: NDArray[np.int64], words: int) -> None:
        self._lines = lines
        self._edges = lines.edges(at, words)
        self.good = np.ones(len(at), dtype=np.bool_)

    def expect(self, condition: NDArray[np.bool_]) -> None:
        self.good &= condition

    def bounds(self, word: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return between(self._edges, word)

    def words(self, **positions: int) -> None:
        """Expect words, given as ``word=position``."""
        for word, position in positions.items():
            begin, end = self.bounds(position)
            self.expect((end - begin == len(word)) & self._lines.same(begin, word.encode()))

    def number(self, word: int, digits: int) -> NDArray[np.uint64]:
        value, good = self._lines.decimal(*self.bounds(word), digits)
        self.expect(good)
        return value

    def hexadecimal(self, word: int) -> NDArray[np.uint64]:
        value, good = self._lines.hexadecimal(*self.bounds(word))
        self.expect(good)
        return value

    def shape(self) -> NDArray[np.uint32]:
        """``X Y Z block X Y Z shared S`` from the third word on."""
        self.words(block=5, shared=9)
        columns = [self.number(word, 18 if word == 10 else 10) for word in (2, 3, 4, 6, 7, 8, 10)]
        return np.minimum(np.stack(columns, axis=1), _U32).astype(np.uint32)


def _probed(lines: LineWords, left: NDArray[np.bool_]) -> LaunchColumns:
    """The probed launches of which all lines are there; these lines are no longer ``left``."""
    grid = lines.begin_with(b"[exec] grid ")
    at = np.flatnonzero(grid & (lines.words == 17))
    others = np.append(np.flatnonzero(~(grid & (lines.words < 17))), [len(lines)] * 2)
    memory = others[np.searchsorted(others, at + 1)]
    whole = (at > 0) & (memory + 1 < len(lines))
    at, memory = at[whole], memory[whole]
    before, after = at - 1, memory + 1
    launch, parameters = _Fields(lines, at, 17), _Fields(lines, before, 3)
    maps, answer = _Fields(lines, memory, 4), _Fields(lines, after, 3)
    parameters.expect(lines.begin_with(b"[exec] ")[before])
    parameters.words(param=2)
    maps.expect(lines.begin_with(b"[exec] probe-mem ")[memory])
    maps.words(**{"(bytes)": 3})
    answer.expect(lines.begin_with(b"[exec] succeed ")[after])
    launch.words(kernel=11, launch=13, stream=15)
    columns = LaunchColumns(
        line=at,
        kernel=launch.number(12, 9),
        number=launch.number(14, 18),
        time=parameters.number(1, 19),
        shape=launch.shape(),
        stream=launch.hexadecimal(16),
        probed=np.ones(len(at), dtype=np.bool_),
        reason=np.full(len(at), UNKNOWN, dtype=np.int32),
        probe_bytes=maps.number(2, 18).astype(np.int64),
        status=answer.number(2, 9).astype(np.int64),
    )
    good = launch.good & parameters.good & maps.good & answer.good
    inside = np.zeros(len(lines) + 1, dtype=np.int8)
    inside[before[good]] += 1
    inside[after[good] + 1] -= 1
    left &= np.cumsum(inside[:-1], dtype=np.int8) == 0
    return columns.part(good)


def _passed(lines: LineWords, left: NDArray[np.bool_], reason_code: Callable[[str | None], int]) -> LaunchColumns:
    """Launches of originals, but for those next to a line that says that a launch failed."""
    failed = lines.begin_with(b"[exec] failed ")
    near = np.append(failed[1:], False) | np.append(True, failed[:-1])
    at = np.flatnonzero(lines.begin_with(b"[exec] backup ") & (lines.words > 17) & ~near)
    fields = _Fields(lines, at, 19)
    fields.words(kernel=11, launch=13, time=15, reason=17)
    columns = LaunchColumns(
        line=at,
        kernel=fields.number(12, 9),
        number=fields.number(14, 18),
        time=fields.number(16, 19),
        shape=fields.shape(),
        stream=np.full(len(at), NO_STREAM, dtype=np.uint64),
        probed=np.zeros(len(at), dtype=np.bool_),
        reason=_reasons(lines.text, fields.bounds(18)[0], lines.ends[at], reason_code),
        probe_bytes=np.full(len(at), UNKNOWN, dtype=np.int64),
        status=np.full(len(at), UNKNOWN, dtype=np.int64),
    )
    left[at[fields.good]] = False
    return columns.part(fields.good)


class _Codes(dict[bytes, int]):
    """The codes of reasons, as the log writes them."""

    def __init__(self, code: Callable[[str | None], int]) -> None:
        self._code = code

    def __missing__(self, words: bytes) -> int:
        text = words.rstrip(b"\r")
        code = self[words] = UNKNOWN if text == b"-" else self._code(text_of(text))
        return code


def _reasons(
    text: bytes, begin: NDArray[np.int64], end: NDArray[np.int64], reason_code: Callable[[str | None], int]
) -> NDArray[np.int32]:
    """The codes of what stands between these offsets."""
    codes = _Codes(reason_code)
    found = [codes[text[start:stop]] for start, stop in zip(begin.tolist(), end.tolist(), strict=True)]
    return np.array(found, dtype=np.int32)


def _in_order(first: LaunchColumns, second: LaunchColumns) -> LaunchColumns:
    """Both, by line."""
    if not len(first) or not len(second):
        return first if len(first) else second
    return first.followed_by(second).part(np.argsort(np.concatenate((first.line, second.line))))


def _results(lines: LineWords, left: NDArray[np.bool_]) -> ResultColumns:
    """Saved results with an ordinary name, ``result/<seconds>.<six digits>.bin``."""
    at = np.flatnonzero(lines.begin_with(b"[exec] save result/") & (lines.words == 9))
    fields = _Fields(lines, at, 9)
    fields.words(save=1, size=3, kernel=5, launch=7)
    begin, end = fields.bounds(2)
    begin, point = begin + len("result/"), end - len(".000000.bin")
    seconds, seconds_good = lines.decimal(begin, point, 12)
    micros, micros_good = lines.decimal(point + 1, point + 7, 6)
    fields.expect(seconds_good & micros_good & lines.same(point, b".") & lines.same(point + 7, b".bin"))
    fields.expect(~lines.same(begin, b"0") | (point - begin == 1))
    columns = ResultColumns(
        line=at,
        micros=seconds * np.uint64(1_000_000) + micros,
        size=fields.number(4, 18),
        kernel=fields.number(6, 9),
        number=fields.number(8, 18),
    )
    left[at[fields.good]] = False
    return columns.part(fields.good)
