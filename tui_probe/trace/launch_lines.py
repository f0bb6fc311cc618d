"""The lines of whole launches and of saved results, all of a block of lines at once.

Each function takes a block of lines of which some are ``left`` to be read, reads those that are exactly as a hook
driver of ours writes them, and takes them away from ``left``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.trace.byte_block import begin_with
from tui_probe.trace.columns import LaunchColumns, ResultColumns
from tui_probe.trace.launches import NO_STREAM, UNKNOWN
from tui_probe.trace.line_fields import LineFields
from tui_probe.trace.line_grammar import reason_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tui_probe.reasons import Reason
    from tui_probe.trace.line_block import LineBlock

_U32: Final = np.uint64(0xFFFFFFFF)
_SHAPE: Final = {0: 10, 1: 10, 2: 10, 4: 10, 5: 10, 6: 10, 8: 18}
"""``X Y Z block X Y Z shared S``: where the numbers are, and the most digits of each."""
_MOST_MAPS: Final = 32
_TIME_DIGITS: Final = 19
"""Of nanoseconds since 1970, until the year 2286."""


def probed_launches(block: LineBlock, left: NDArray[np.bool_]) -> LaunchColumns:
    """Probed launches: a line of parameters, one of the launch, one per map, one of their memory, and the answer."""
    grid = block.begin_with(b"[exec] grid ")
    timed = _with_number(block, grid - 1) & (grid > 0)
    at = grid[timed]
    memory, whole = _behind_maps(block, at, grid[~timed])
    at, memory = at[whole], memory[whole]
    launch = LineFields(block, at, 15, behind=b"[exec] grid ")
    launch.words(block=3, shared=7, kernel=9, launch=11, stream=13)
    launch.expect(launch.end(14) == launch.ends)
    *shape, kernel, number = launch.numbers({**_SHAPE, 10: 9, 12: 18})
    time, timed = _times(block, at - 1)
    size, sized = _between(block, memory, b"[exec] probe-mem ", 18, b" (bytes)")
    status, answered = _between(block, memory + 1, b"[exec] succeed ", 9)
    launch.expect(timed & sized & answered)
    columns = LaunchColumns(
        line=at,
        kernel=kernel,
        number=number,
        time=time,
        shape=_shape(shape),
        stream=launch.hexadecimal(14),
        probed=np.ones(len(at), dtype=np.bool_),
        reason=np.full(len(at), UNKNOWN, dtype=np.int32),
        probe_bytes=size.astype(np.int64),
        status=status.astype(np.int64),
    )
    _take_away(left, at[launch.good] - 1, memory[launch.good] + 1)
    return columns.part(launch.good)


def _between(
    block: LineBlock, at: NDArray[np.int64], before: bytes, digits: int, behind: bytes = b""
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """The numbers that such lines have between words, and which of the lines are such ones."""
    end = block.ends[at] - len(behind)
    value, good = block.bytes.decimal(block.starts[at] + len(before), end, digits)
    good &= block.bytes.same(block.starts[at], before)
    if behind:
        good &= block.bytes.same(end, behind)
    return value, good


def _with_number(block: LineBlock, at: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which lines are ``[exec] `` and a digit."""
    heads = block.heads[at]
    return begin_with(heads, b"[exec] ") & ((heads >> np.uint64(56)) - np.uint64(ord("0")) < 10)


def _times(block: LineBlock, at: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """The time in lines of parameters, ``[exec] EPOCH_NS param``, and which of these lines are such ones."""
    begin = block.starts[at] + len("[exec] ")
    end = np.where(begin + _TIME_DIGITS < block.ends[at], begin + _TIME_DIGITS, begin)
    times, good = block.bytes.decimal(begin, end, _TIME_DIGITS)
    good &= block.bytes.same(end, b" param")
    return times, good


def _behind_maps(
    block: LineBlock, at: NDArray[np.int64], others: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The line behind those of the maps of each launch, and whether there are two lines from there on.

    ``others`` are the lines that begin as launches and maps do and are no launches.
    """
    fields = LineFields(block, others, 1, behind=b"[exec] grid ")
    fields.expect(fields.bytes.same(fields.end(0), b" warp  ") | fields.bytes.same(fields.end(0), b" block  "))
    maps = np.zeros(len(block) + 1, dtype=np.bool_)
    maps[others[fields.good]] = True
    behind = at + 1
    for _ in range(_MOST_MAPS):
        more = maps[behind]
        if not more.any():
            break
        behind = behind + more
    return behind, behind + 1 < len(block)


def _take_away(left: NDArray[np.bool_], first: NDArray[np.int64], last: NDArray[np.int64]) -> None:
    """Lines ``first`` to ``last`` of each launch are read; launches do not overlap."""
    inside = np.zeros(len(left) + 1, dtype=np.int8)
    inside[first] += 1
    inside[last + 1] -= 1
    left &= np.cumsum(inside[:-1], dtype=np.int8) == 0


def passed_launches(
    block: LineBlock, left: NDArray[np.bool_], reason_number: Callable[[Reason | None], int]
) -> LaunchColumns:
    """Launches of originals, but for those next to a line that says that a launch failed."""
    at = block.begin_with(b"[exec] backup ")
    failed = block.begin_with(b"[exec] failed ")
    at = at[(at > 0) & ~np.isin(at, np.concatenate((failed - 1, failed + 1)))]
    fields = LineFields(block, at, 16, behind=b"[exec] backup ")
    fields.words(block=3, shared=7, kernel=9, launch=11, time=13, reason=15)
    fields.expect(fields.end(15) < fields.ends)
    *shape, kernel, number, time = fields.numbers({**_SHAPE, 10: 9, 12: 18, 14: 19})
    reasons = fields.in_text(np.minimum(fields.end(15) + 1, fields.ends))
    columns = LaunchColumns(
        line=at,
        kernel=kernel,
        number=number,
        time=time,
        shape=_shape(shape),
        stream=np.full(len(at), NO_STREAM, dtype=np.uint64),
        probed=np.zeros(len(at), dtype=np.bool_),
        reason=_reasons(block.text, reasons, block.ends[at], reason_number),
        probe_bytes=np.full(len(at), UNKNOWN, dtype=np.int64),
        status=np.full(len(at), UNKNOWN, dtype=np.int64),
    )
    left[at[fields.good]] = False
    return columns.part(fields.good)


def _shape(columns: list[NDArray[np.uint64]]) -> NDArray[np.uint32]:
    """Shape (launches, 7)."""
    return np.minimum(np.stack(columns, axis=1), _U32).astype(np.uint32)


class _Numbers(dict[bytes, int]):
    """The numbers of reasons, as the log writes them."""

    def __init__(self, number: Callable[[Reason | None], int]) -> None:
        self._number = number

    def __missing__(self, words: bytes) -> int:
        number = self[words] = self._number(reason_of(words.rstrip(b"\r")))
        return number


def _reasons(
    text: bytes, begin: NDArray[np.int64], end: NDArray[np.int64], reason_number: Callable[[Reason | None], int]
) -> NDArray[np.int32]:
    """The numbers of what stands between these offsets."""
    numbers = _Numbers(reason_number)
    found = [numbers[text[start:stop]] for start, stop in zip(begin.tolist(), end.tolist(), strict=True)]
    return np.array(found, dtype=np.int32)


def in_order(first: LaunchColumns, second: LaunchColumns) -> LaunchColumns:
    """Both, by line."""
    if not len(first) or not len(second):
        return first if len(first) else second
    return first.followed_by(second).part(np.argsort(np.concatenate((first.line, second.line))))


def saved_results(block: LineBlock, left: NDArray[np.bool_]) -> ResultColumns:
    """Saved results with an ordinary name, ``result/<seconds>.<six digits>.bin``."""
    at = block.begin_with(b"[exec] save result/")
    fields = LineFields(block, at, 7, behind=b"[exec] save result/")
    fields.words(size=1, kernel=3, launch=5)
    fields.expect(fields.end(6) == fields.ends)
    size, kernel, number = fields.numbers({2: 18, 4: 9, 6: 18})
    begin, end = fields.bounds(0)
    point = end - len(".000000.bin")
    seconds, seconds_good = fields.bytes.decimal(begin, point, 12)
    micros, micros_good = fields.bytes.decimal(point + 1, point + 7, 6)
    fields.expect(seconds_good & micros_good & (~fields.bytes.same(begin, b"0") | (point - begin == 1)))
    fields.expect(fields.bytes.same(point, b".") & fields.bytes.same(point + 7, b".bin"))
    columns = ResultColumns(
        line=at, micros=seconds * np.uint64(1_000_000) + micros, size=size, kernel=kernel, number=number
    )
    left[at[fields.good]] = False
    return columns.part(fields.good)
