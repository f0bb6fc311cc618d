"""Host side of an sqlite export: texts, CUDA API calls that launched kernels, NVTX ranges."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.nsys_model import (
    NO_TIME,
    UNKNOWN,
    HostRanges,
    distinct,
    impossible_time_notes,
    possible_times,
    ranks,
)
from tui_probe.nsight.importers.sqlite_tables import Cell, narrow_column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.nsight.importers.sqlite_tables import Tables

CALLS: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
_PROCESS_MASK: Final = ~0xFFFFFF
"""The part of a thread's id that is its process' id."""
_NO_START: Final = np.iinfo(np.int64).max
_MOST_KEYS: Final = 1 << 62
"""Half of what a signed integer of 64 bits holds: sums of keys must not overflow."""
_CALL_COLUMNS: Final[dict[str, object]] = {
    "globalTid": UNKNOWN, "start": Cell(NO_TIME), "end": Cell(NO_TIME), "correlationId": UNKNOWN,
}  # fmt: skip
RANGES: Final = "NVTX_EVENTS"
_RANGE_COLUMNS: Final[dict[str, object]] = {
    "start": Cell(NO_TIME), "end": None, "globalTid": UNKNOWN, "textId": UNKNOWN, "text": "", "eventType": ...,
}  # fmt: skip
_MAX_NAMED_RANGES: Final = 3
"""Ranges without an end that are named."""


class Strings:
    """Texts by their numbers in the export, and by ours: positions in ``names``."""

    def __init__(self, tables: Tables) -> None:
        rows = tables.rows("StringIds", {"id": ..., "value": ...})
        self._texts = {number: str(text) for number, text in rows if text is not None}
        self.missing_numbers: set[int] = set()
        """Numbers that were asked for and are not in the file."""
        self.names: list[str] = []
        self._codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        """The number of a text in ``names``."""
        code = self._codes.setdefault(text, len(self.names))
        if code == len(self.names):
            self.names.append(text)
        return code

    def codes(self, numbers: NDArray[Any]) -> NDArray[np.int32]:
        """Our numbers for those of the export; -1 stays -1."""
        values, places = distinct(numbers)
        codes = [UNKNOWN if number == UNKNOWN else self.code(self.text(number)) for number in values.tolist()]
        return np.array(codes, dtype=np.int32)[places]

    def text(self, number: int) -> str:
        text = self._texts.get(number)
        if text is None:
            self.missing_numbers.add(number)
        return f"string {number}" if text is None else text


class LaunchCalls(NamedTuple):
    """Thread, start and end of the call that launched each kernel, -1 if it was not recorded; the end of all calls."""

    thread: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    last_end: int


def launch_calls(tables: Tables, processes: NDArray[Any], correlations: NDArray[Any]) -> LaunchCalls:
    """Return the calls of the CUDA API that launched kernels, given nsys' id of the process and the correlation.

    A kernel and its call have the same ``correlationId`` in the same process; a call that launches a graph has that of
    all kernels of the graph. Of several calls the first counts.

    Calls without an end, or with times that cannot be, launched nothing that is known.
    """
    kernels = CallsByKey(processes, correlations)
    last_end = NO_TIME
    for numbers in tables.numbers(CALLS, _CALL_COLUMNS):
        numbers = numbers[possible_times(numbers[:, 1], numbers[:, 2])]
        last_end = max(last_end, int(numbers[:, 2].max(initial=last_end)))
        kernels.add_calls(numbers)
    return LaunchCalls(*kernels.columns(), last_end)


class CallsByKey:
    """Kernels by nsys' id of the process and by correlation, each with the first of its calls that was seen."""

    def __init__(self, processes: NDArray[Any], correlations: NDArray[Any]) -> None:
        self._processes, codes = distinct(processes & _PROCESS_MASK)
        self._span = int(correlations.max(initial=0)) + 1
        self._is_comparable = len(self._processes) * self._span < _MOST_KEYS
        keys = np.where(correlations >= 0, codes.astype(np.int64) * self._span + correlations, UNKNOWN)
        del codes
        self._keys, self._key_of_kernel = _distinct_keys(narrow_column(keys))
        self._start = np.full(len(self._keys), _NO_START, dtype=np.int64)
        self._thread, self._end = (np.full(len(self._keys), UNKNOWN, dtype=np.int64) for _ in range(2))

    def add_calls(self, calls: NDArray[np.int64]) -> None:
        """Calls: thread, start, end, correlation."""
        if not len(self._keys) or not self._is_comparable:
            return
        places = self._positions(calls)
        calls, places = calls[places >= 0], places[places >= 0]
        order = np.lexsort((calls[:, 2], calls[:, 1]))[::-1]  # of several in a place the first is written last
        calls, places = calls[order], places[order]
        is_earlier = calls[:, 1] < self._start[places]
        calls, places = calls[is_earlier], places[is_earlier]
        self._thread[places], self._start[places], self._end[places] = calls[:, 0], calls[:, 1], calls[:, 2]

    def _positions(self, calls: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, per call, the position of its key, -1 if no kernel has it."""
        process, correlation = calls[:, 0] & _PROCESS_MASK, calls[:, 3]
        codes = np.searchsorted(self._processes, process).clip(max=len(self._processes) - 1)
        has_key = (self._processes[codes] == process) & (correlation >= 0) & (correlation < self._span)
        keys = (codes * self._span + np.where(has_key, correlation, 0)).astype(self._keys.dtype)
        places = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return np.where(has_key & (self._keys[places] == keys), places, UNKNOWN)

    def columns(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Thread, start and end by kernel."""
        self._start[self._start == _NO_START] = UNKNOWN
        places = self._key_of_kernel
        if len(places) == len(self._keys) and (places[1:] > places[:-1]).all():
            return self._thread, self._start, self._end
        return self._thread[places], self._start[places], self._end[places]


def _distinct_keys(keys: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """``np.unique`` with the inverse, in half of its memory."""
    if (keys[1:] > keys[:-1]).all():
        return keys, np.arange(len(keys), dtype=np.int32)
    order = np.argsort(keys, kind="stable").astype(np.int32)
    ascending = keys[order]
    is_first = np.append(True, ascending[1:] != ascending[:-1])
    places = np.empty(len(keys), dtype=np.int32)
    places[order] = np.cumsum(is_first, dtype=np.int32) - 1
    return ascending[is_first], places


_PUSH_POP, _START_END = 59, 60


def read_ranges(tables: Tables, strings: Strings, last_end: int) -> tuple[HostRanges, list[str]]:
    """The ranges, and notes about those without an end, which last until the end of the capture, and those left out.

    ``last_end`` is the end of all else that was recorded.
    """
    start, end, thread, name, is_open = (array("q") for _ in range(5))
    for rows in tables.chunks(RANGES, _RANGE_COLUMNS, f"eventType IN ({_PUSH_POP}, {_START_END})"):
        starts, ends, threads, text_ids, texts, _ = zip(*rows, strict=True)
        try:
            start.extend(starts)
            end.extend(starts[i] if end_or_none is None else end_or_none for i, end_or_none in enumerate(ends))
            thread.extend(threads)
        except (TypeError, ValueError, OverflowError) as error:
            raise ImportFileError(tables.not_integer_text(RANGES, error)) from error
        is_open.extend(end_or_none is None for end_or_none in ends)
        name.extend(
            strings.code(str(text) if text else strings.text(number) if number != UNKNOWN else "")
            for number, text in zip(text_ids, texts, strict=True)
        )
    numbers = [np.array(column, dtype=np.int64) for column in (start, end, thread, name)]
    return _order_ranges(HostRanges(strings.names, *numbers), np.array(is_open, dtype=np.bool_), last_end)


def _order_ranges(ranges: HostRanges, is_open: NDArray[np.bool_], last_end: int) -> tuple[HostRanges, list[str]]:
    """The ranges by thread and start, the outer of two that start together first."""
    names, start, end, thread, name = ranges.names, ranges.start, ranges.end, ranges.thread, ranges.name
    is_possible = possible_times(start, end)
    exclusion_notes = [*impossible_time_notes("NVTX range", start, end)]
    end = np.where(is_open, max(last_end, int(end[is_possible].max(initial=last_end))), end)
    order = np.lexsort((ranks(names)[name], -end, start, thread))
    order = order[is_possible[order]]
    open_names = name[is_open & is_possible].tolist()
    ordered_ranges = HostRanges(names, start[order], end[order], thread[order], name[order])
    return ordered_ranges, [
        *_open_range_notes([*dict.fromkeys(names[code] for code in open_names)], len(open_names)),
        *exclusion_notes,
    ]


def _open_range_notes(names: list[str], count: int) -> list[str]:
    """A note about ranges that the end of the capture cut off."""
    if not count:
        return []
    name_list = ", ".join(f"“{name}”" for name in names[:_MAX_NAMED_RANGES]) + (
        ", …" if len(names) > _MAX_NAMED_RANGES else ""
    )
    verb = "range was never closed; it is" if count == 1 else "ranges were never closed; they are"
    return [f"{count} NVTX {verb} shown until the end of the capture: {name_list}"]
