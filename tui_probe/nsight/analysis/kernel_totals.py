"""What all launches of each kernel took together, from one duration per launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Total:
    """All launches of a kernel, in ns. ``code`` says which; ``share`` is that of the time of all, from 0 to 1.

    ``p99`` is the duration that 99 of 100 launches do not exceed, by the nearest rank.
    """

    code: int
    launches: int
    total: int
    mean: float
    median: float
    p99: int
    most: int
    share: float


def totals(codes: NDArray[np.int64], durations: NDArray[np.int64]) -> list[Total]:
    """Of every code, the one that took most first. Both arrays have shape (launches,)."""
    if not len(codes):
        return []
    order = np.lexsort((durations, codes))
    kinds, first = np.unique(codes[order], return_index=True)
    every = max(int(durations.sum()), 1)
    found = []
    for code, own in zip(kinds.tolist(), np.split(durations[order], first[1:]), strict=True):
        total, rank = int(own.sum()), -(-99 * len(own) // 100) - 1
        mean, median = total / len(own), float(np.median(own))
        found.append(Total(code, len(own), total, mean, median, int(own[rank]), int(own[-1]), total / every))
    return sorted(found, key=lambda each: (-each.total, each.code))
