"""Times of an sqlite export that can be, and notes about rows without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

LATEST: Final = 1 << 62
"""Ns from which on a time is none: 146 years, and half of what a column holds, so that no difference overflows."""
NO_TIME: Final = -LATEST
"""Stands for a time that a row does not have."""


def possible_times(start: NDArray[Any], end: NDArray[Any]) -> NDArray[np.bool_]:
    """For each row whether its times can be: none beyond what a clock shows, no end before its start."""
    return np.asarray((start > -LATEST) & (start <= end) & (end < LATEST))


def impossible_times(noun: str, start: NDArray[Any], end: NDArray[Any]) -> Iterator[str]:
    """Notes about the rows, each a ``noun``, that are left out."""
    unstarted = start == NO_TIME
    unended = (end == NO_TIME) & ~unstarted
    others = int((~possible_times(start, end) & ~unstarted & ~unended).sum())
    if count := int(unended.sum()):
        yield f"{units.counted(count, noun)} without an end left out: still running when the recording ended"
    if count := int(unstarted.sum()):
        yield f"{units.counted(count, noun)} without a start left out: export the report again"
    if others:
        verb = "its end is before its start" if others == 1 else "their ends are before their starts"
        yield f"{units.counted(others, noun)} left out, since {verb} or beyond any clock: export the report again"
