"""What a first look at all accesses of a launch tells: how long they last, and which memory they touch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .accesses import SECTOR
from .density import MANY, each_part

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .accesses import Accesses, Part

_MOST_RUNS: Final = 1 << 12
_SECTOR_BITS: Final = np.uint64(5)
_LONG: Final = 1 << 31
NEVER: Final = (1 << 62, -1)
"""The times of a part without accesses."""


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
    """Look at all records, or for memory and times only at those of one in ``sample`` threads.

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
    looked_at = part if sample == 1 else part.sample(sample)
    times = looked_at.first_and_last() or NEVER
    runs, latest = [np.zeros((0, 2), dtype=np.uint64)], times[1]
    for piece in looked_at.pieces():
        addresses = piece.addresses()
        if len(addresses):
            runs.append(used_runs(addresses))
            latest = max(latest, int(piece.times().max()))
    return _Seen(part.kept, times, latest, merged_runs(np.concatenate(runs)))


def used_runs(addresses: NDArray[Any]) -> NDArray[np.uint64]:
    """The sectors that hold some addresses (u8), as runs: shape (runs, 2), from to before, ascending and apart.

    Where there are very many runs, the nearest are taken together.
    """
    base = addresses.min() & ~np.uint64(SECTOR - 1)
    addresses = addresses - base
    addresses >>= _SECTOR_BITS
    if int(addresses.max()) < 1 << 32:
        addresses = addresses.astype(np.uint32)  # sorted in half the time
    addresses.sort()
    edges = np.flatnonzero(np.diff(addresses) > 1)
    ends = addresses[np.append(edges, len(addresses) - 1)].astype(np.uint64) + np.uint64(1)
    runs = np.stack((addresses[np.append(0, edges + 1)].astype(np.uint64), ends), axis=1)
    return _fewer((runs << _SECTOR_BITS) + base)


def _fewer(runs: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Runs taken together over small gaps, until there are at most ``_MOST_RUNS``."""
    gap = np.uint64(SECTOR)
    while len(runs) > _MOST_RUNS:
        gap *= np.uint64(2)
        apart = runs[1:, 0] - runs[:-1, 1] > gap
        runs = np.stack((runs[np.append(True, apart), 0], runs[np.append(apart, True), 1]), axis=1)
    return runs


def merged_runs(runs: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Runs that overlap or touch as one: shape (runs, 2), ascending and apart; if very many, the nearest together."""
    if not len(runs):
        return runs.reshape(0, 2)
    runs = runs[np.argsort(runs[:, 0], kind="stable")]
    ends = np.maximum.accumulate(runs[:, 1])
    begins = np.append(True, runs[1:, 0] > ends[:-1])
    return _fewer(np.stack((runs[begins, 0], ends[np.append(begins[1:], True)]), axis=1))
