"""Percentiles, spread and outliers of an array of values, such as the wait cycles of a launch.

percentile p   the value below which p % of the values lie, linear between neighbours (NumPy's default)
spread         (99th percentile - 1st percentile) / median; None where the median is 0
stands out     above the 75th percentile + 3 × (75th - 25th percentile), Tukey's outer fence
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

PERCENTILES: Final = (0, 1, 5, 25, 50, 75, 95, 99, 100)
_FENCE: Final = 3.0
Count = TypeVar("Count", int, "NDArray[np.int64]")


def p99_position(count: Count) -> Count:
    """Return the position of the value that 99 % of ``count`` ascending values do not exceed, by the nearest rank.

    It is an observed value, as totals of tools show it, not one between two. Of an array, one position per count.
    """
    return -(-99 * count // 100) - 1


@dataclass(frozen=True, slots=True)
class Distribution:
    """Distribution of ``count`` values: ``percentiles`` are those of ``PERCENTILES``, in the values' unit."""

    count: int
    mean: float
    percentiles: tuple[float, ...]
    fence: float
    """Values above it stand out."""

    @property
    def median(self) -> float:
        return self.percentiles[PERCENTILES.index(50)]

    @property
    def minimum(self) -> float:
        return self.percentiles[0]

    @property
    def maximum(self) -> float:
        return self.percentiles[-1]

    @property
    def spread(self) -> float | None:
        """Spread as the module defines it; None for a median of 0."""
        p1, p99 = (self.percentiles[PERCENTILES.index(p)] for p in (1, 99))
        return (p99 - p1) / self.median if self.median else None

    def record(self) -> dict[str, float]:
        """Return the JSON record."""
        by_key = {f"p{p}": value for p, value in zip(PERCENTILES, self.percentiles, strict=True)}
        return {"count": self.count, "mean": self.mean, **by_key}


def distribution(values: NDArray[Any]) -> Distribution | None:
    """The distribution of values (any real dtype, shape (n,)); None if there are none."""
    if not len(values):
        return None
    percentiles = [float(value) for value in np.percentile(values, PERCENTILES)]
    p25, p75 = (percentiles[PERCENTILES.index(p)] for p in (25, 75))
    return Distribution(len(values), float(values.mean()), tuple(percentiles), p75 + _FENCE * (p75 - p25))


@dataclass(frozen=True, slots=True)
class Waits:
    """Wait cycles of a launch (``launch_label``): ``values`` (cycles, i8) by what they are of, with a ``caption``.

    ``unknown`` names the waits whose values the records do not have.
    """

    launch_label: str
    values: Mapping[str, NDArray[np.int64]]
    caption: str
    unknown: tuple[str, ...] = ()
