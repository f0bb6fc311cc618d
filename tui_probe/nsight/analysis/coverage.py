"""How much time intervals cover up to given times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def time_covered(starts: NDArray[np.int64], ends: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each time the length of all intervals before it; where intervals overlap both count.

    ``starts`` and ``ends`` are each ascending, so an interval's end need not stand where its start does.
    """
    return _since(starts, times) - _since(ends, times)


def _since(events: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each time t the sum of t − e over the events e before it."""
    sums = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(events)))
    counts = np.searchsorted(events, times, side="right")
    return np.asarray(counts * times - sums[counts])
