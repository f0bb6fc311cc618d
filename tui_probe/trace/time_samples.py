"""GPU times of sampled launches of one kernel, as the log tells them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np

from tui_probe.trace.narrow_column import NarrowColumn

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from tui_probe.trace.columns import TimeColumns

NONE = -1
"""In the columns ``key`` and ``host``: there is none."""


@dataclass(slots=True)
class TimeSamples:
    """One number per timed launch in each column; some fifteen bytes. Each kernel has a few per second at most."""

    launch: NarrowColumn = field(default_factory=NarrowColumn)
    """Numbers of the process."""
    key: NarrowColumn = field(default_factory=NarrowColumn)
    """Which of the shapes that the kernel is launched with; each is sampled by itself."""
    probed: NarrowColumn = field(default_factory=NarrowColumn)
    ns: NarrowColumn = field(default_factory=NarrowColumn)
    """From the event before the launch to that behind it, less what an empty pair of events shows."""
    weight: NarrowColumn = field(default_factory=NarrowColumn)
    """The launches that it stands for: those since the last sample, itself included."""
    host: NarrowColumn = field(default_factory=NarrowColumn)
    """Nanoseconds of the call that launched, where the device had nothing to do before it returned."""

    def __len__(self) -> int:
        return len(self.ns)

    def extend(self, columns: TimeColumns) -> None:
        """Append samples that were read together."""
        for each in fields(self):
            column: NarrowColumn = getattr(self, each.name)
            column.extend(getattr(columns, each.name).astype(np.int64))

    def whole(self) -> TimeSamples:
        """A copy of those that all columns have: another thread may be adding some."""
        columns = [getattr(self, each.name) for each in fields(self)]
        least = min(map(len, columns))
        return TimeSamples(*(column.first(least) for column in columns))

    def with_probed(self, launches: Collection[int | None]) -> TimeSamples:
        """These, of the probed launches those of these numbers alone."""
        told = self.whole()
        kept = (told.column("probed") == 0) | np.isin(told.column("launch"), [n for n in launches if n is not None])
        found = TimeSamples()
        for each in fields(self):
            getattr(found, each.name).extend(told.column(each.name)[kept])
        return found

    def column(self, name: str) -> NDArray[np.int64]:
        """A copy of one column."""
        column: NarrowColumn = getattr(self, name)
        return column.numbers()

    def last(self, count: int, *, probed: bool) -> tuple[float, ...]:
        """What the device took for the last ``count`` probed, or original, launches that were timed, in ns."""
        host = self.column("host")  # the column that is extended last
        chosen = np.flatnonzero((self.column("probed")[: len(host)] != 0) == probed)[-count:]
        return tuple(_taken(self.column("ns")[chosen], host[chosen]).tolist())

    @property
    def taken_ns(self) -> NDArray[np.float64]:
        """What the device took for each launch, in ns.

        Where the device had been idle (``host`` is known) the first event was over before the launch was even asked
        for, so that the pair holds the call that launches too: that is taken off.
        """
        return _taken(self.column("ns"), self.column("host"))


def _taken(ns: NDArray[np.int64], host: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.maximum(ns - np.maximum(host, 0), 0).astype(np.float64)
