"""What a first look at all accesses of a launch tells: how long they last, and which memory they touch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.analysis.accesses import SECTOR
from tui_probe.analysis.density import MANY, each_part

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tui_probe.analysis.accesses import Accesses, Part

_TABLE_BITS: Final = 20
_MOST_RUNS: Final = 1 << 14
_LONG: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class Survey:
    """``end`` is one past the last cycle; ``runs`` (u8, shape (runs, 2)) the memory in use, from to before, ascending.

    ``part_times`` (i8, shape (parts, 2)) are the first and the last cycle of each part of the whole grid; of a part
    without records the first is after the last.
    """

    kept: int
    end: int
    runs: NDArray[np.uint64]
    part_times: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Seen:
    kept: int
    times: tuple[int, int]
    latest: int
    """Of the records looked at: clocks that went round stand out, as they lie anywhere."""
    runs: NDArray[np.uint64]


def survey(accesses: Accesses, progress: Callable[[float], None], sample: int = 1) -> tuple[Accesses, Survey]:
    """Look over all records; for the memory in use only at those of one in ``sample`` threads.

    The accesses come back marked as long where warps ran so long that it matters.
    """
    parts = accesses.parts()

    def look(part: Part) -> _Seen:
        seen = _look(part, sample)
        if len(parts) > MANY:
            part.release()
        return seen

    seen = list(each_part(parts, look, progress))
    if max((each.latest for each in seen), default=0) > _LONG and not accesses.long:
        return survey(accesses.unwrapped(), progress, sample)
    end = max((each.times[1] for each in seen), default=-1) + 1
    runs = merged_runs(np.concatenate([each.runs for each in seen]) if seen else np.zeros((0, 2), np.uint64))
    times = np.array([each.times for each in seen], dtype=np.int64).reshape(-1, 2)
    return accesses, Survey(sum(each.kept for each in seen), end, runs, times)


def _look(part: Part, sample: int) -> _Seen:
    times = part.first_and_last() or (1 << 62, -1)
    used, latest = UsedMemory(), times[1]
    for piece in (part if sample == 1 else part.sample(sample)).pieces():
        addresses = piece.addresses()
        if len(addresses):
            used.add(addresses)
            latest = max(latest, int(piece.times().max()))
    return _Seen(part.kept, times, latest, used.runs())


class UsedMemory:
    """Collects the memory that holds some addresses, in sectors, or in larger steps where it spreads far."""

    def __init__(self) -> None:
        self._runs: list[NDArray[np.uint64]] = []
        self._used = np.zeros(0, dtype=np.bool_)
        self._base = self._shift = 0

    def add(self, addresses: NDArray[np.uint64]) -> None:
        """Mark some addresses (u8, not empty), which are spoilt."""
        low, high = int(addresses.min()), int(addresses.max())
        if low < self._base or (high - self._base) >> self._shift >= len(self._used):
            self._begin(low, high)
        addresses -= np.uint64(self._base)
        addresses >>= np.uint64(self._shift)
        self._used[addresses.view(np.int64)] = True

    def _begin(self, low: int, high: int) -> None:
        """Put what is marked aside, and make a table around an interval."""
        self._flush()
        room = max(high - low, SECTOR << 10)
        self._base = max(low - room, 0) // SECTOR * SECTOR
        span = high + room - self._base
        self._shift = max(span.bit_length() - _TABLE_BITS, SECTOR.bit_length() - 1)
        self._base = self._base >> self._shift << self._shift
        self._used = np.zeros(((high + room - self._base) >> self._shift) + 1, dtype=np.bool_)

    def _flush(self) -> None:
        used: NDArray[Any] = self._used
        shift = self._shift
        while True:
            edges = np.flatnonzero(np.diff(used, prepend=False, append=False))
            if len(edges) <= 2 * _MOST_RUNS:
                break
            used = np.append(used, False) if len(used) % 2 else used
            used, shift = np.logical_or(used[::2], used[1::2]), shift + 1
        self._runs.append((edges.astype(np.uint64) << np.uint64(shift)).reshape(-1, 2) + np.uint64(self._base))

    def runs(self) -> NDArray[np.uint64]:
        """Shape (runs, 2), u8: from to before, ascending and apart."""
        self._flush()
        self._used = np.zeros(0, dtype=np.bool_)
        return merged_runs(np.concatenate(self._runs))


def merged_runs(runs: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Runs that overlap or touch as one: shape (runs, 2), ascending and apart."""
    if not len(runs):
        return runs.reshape(0, 2)
    runs = runs[np.argsort(runs[:, 0], kind="stable")]
    ends = np.maximum.accumulate(runs[:, 1])
    begins = np.append(True, runs[1:, 0] > ends[:-1])
    return np.stack((runs[begins, 0], ends[np.append(begins[1:], True)]), axis=1)
