"""NVTX ranges of an sqlite export of Nsight Systems."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.distinct import ranks
from tui_probe.nsight.importers.nsys_model import UNKNOWN, HostRanges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.nsight.importers.nsys_strings import Strings
    from tui_probe.nsight.importers.sqlite_tables import Tables

RANGES: Final = "NVTX_EVENTS"
_PUSH_POP, _START_END = 59, 60
_COLUMNS: Final[dict[str, object]] = {
    "start": ..., "end": None, "globalTid": UNKNOWN, "textId": UNKNOWN, "text": "", "eventType": ...,
}  # fmt: skip
_NAMED: Final = 3
"""Ranges without an end that are named."""


def read_ranges(tables: Tables, strings: Strings, last: int, latest: int) -> tuple[HostRanges, list[str]]:
    """The ranges, and a note about those without an end, which last until the end of the capture.

    ``last`` is the end of all else that was recorded; no time is beyond ``latest``.
    """
    start, end, thread, name, unended = (array("q") for _ in range(5))
    for rows in tables.chunks(RANGES, _COLUMNS, f"eventType IN ({_PUSH_POP}, {_START_END})"):
        starts, ends, threads, text_ids, texts, _ = zip(*rows, strict=True)
        try:
            start.extend(starts)
            end.extend(starts[i] if each is None else each for i, each in enumerate(ends))
            thread.extend(threads)
        except (TypeError, ValueError, OverflowError) as error:
            raise ImportFileError(tables.no_number(RANGES, error)) from error
        unended.extend(each is None for each in ends)
        name.extend(
            strings.code(str(text) if text else strings.text(number) if number != UNKNOWN else "")
            for number, text in zip(text_ids, texts, strict=True)
        )
    numbers = [np.array(column, dtype=np.int64) for column in (start, end, thread, name)]
    return _ordered(HostRanges(strings.names, *numbers), np.array(unended, dtype=np.bool_), last, latest)


def _ordered(ranges: HostRanges, unended: NDArray[np.bool_], last: int, latest: int) -> tuple[HostRanges, list[str]]:
    """The ranges by thread and start, the outer of two that start together first."""
    names, start, end, thread, name = ranges.names, ranges.start, ranges.end, ranges.thread, ranges.name
    sound = (start > -latest) & (start <= end) & (end < latest)
    end = np.where(unended, max(last, int(end[sound].max(initial=last))), end)
    order = np.lexsort((ranks(names)[name], -end, start, thread))
    order = order[sound[order]]
    cut_off = name[unended & sound].tolist()
    found = HostRanges(names, start[order], end[order], thread[order], name[order])
    return found, _unended([*dict.fromkeys(names[code] for code in cut_off)], len(cut_off))


def _unended(names: list[str], count: int) -> list[str]:
    """A note about ranges that the end of the capture cut off."""
    if not count:
        return []
    told = ", ".join(f"“{name}”" for name in names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
    verb = "range has no end and lasts" if count == 1 else "ranges have no end and last"
    return [f"{count} NVTX {verb} until the end of the capture: {told}"]
