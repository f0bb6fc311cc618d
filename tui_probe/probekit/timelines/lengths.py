"""How long blocks or warps take against their median: what the colours and strokes of a timeline say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.analysis.distribution import distribution
from tui_probe.analysis.timeline_busy import BusyRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEAR: Final = 0.1
"""Up to this part of the median more or less counts as about the median."""
ROLES: Final = ("soft", "hue0", "hue1", "bad")
STROKES: Final = "─━══"
"""Of what is shorter than the median, about as long, longer, and of what stands out, which has a ``!``, too."""
STANDS_OUT: Final = 3


@dataclass(frozen=True, slots=True)
class Lengths:
    """The ``median`` in cycles, and the ``fence`` beyond which one stands out."""

    median: float
    fence: float

    def grades(self, cycles: NDArray[Any]) -> NDArray[np.uint8]:
        """A place in ``ROLES`` for each of some durations, same shape."""
        grades: NDArray[np.uint8] = np.digitize(cycles, (self.median * (1 - NEAR), self.median * (1 + NEAR))).astype(
            "u1"
        )
        grades[cycles > self.fence] = STANDS_OUT
        return grades


def lengths_of(cycles: NDArray[Any]) -> Lengths:
    """Of some durations; of none such that nothing stands out."""
    found = distribution(cycles)
    return Lengths(0.0, float("inf")) if found is None else Lengths(found.median, found.fence)


class BusyByLength:
    """``BusyRows`` of the intervals of each grade: together they are as large as one of all."""

    def __init__(
        self, start: NDArray[np.int64], end: NDArray[np.int64], row: NDArray[Any], rows: int, lengths: Lengths
    ) -> None:
        grades = lengths.grades(end - start)
        parts = [grades == grade for grade in range(len(ROLES))]
        self._parts = [BusyRows(start[part], end[part], row[part], rows) for part in parts]

    def covered(self, first: int, count: int, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Cycles of intervals of each grade between neighbouring edges, shape (grades, count, len(edges) - 1)."""
        return np.stack([part.covered(first, count, edges) for part in self._parts])

    def touching(self, first: int, count: int, begin: int, end: int) -> NDArray[np.int64]:
        """Intervals of each row that have a cycle in the window, or begin in it (i8)."""
        found: NDArray[np.int64] = sum(
            (part.touching(first, count, begin, end) for part in self._parts), np.zeros(count, dtype=np.int64)
        )
        return found
