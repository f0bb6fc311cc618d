"""GPU times of sampled launches of one kernel, as the log tells them."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from tui_probe.trace.columns import TimeColumns

NONE = -1
"""In the columns ``key`` and ``host``: there is none."""


@dataclass(slots=True)
class TimeSamples:
    """One number per timed launch in each column; some fifty bytes, and their number grows with the logarithm of the
    launches."""

    launch: array[int] = field(default_factory=lambda: array("q"))
    """Numbers of the process."""
    key: array[int] = field(default_factory=lambda: array("q"))
    """Which of the shapes that the kernel is launched with; each is sampled by itself."""
    probed: array[int] = field(default_factory=lambda: array("b"))
    ns: array[int] = field(default_factory=lambda: array("q"))
    """From the event before the launch to that behind it, less what an empty pair of events shows."""
    weight: array[int] = field(default_factory=lambda: array("q"))
    """The launches that it stands for: those since the last sample, itself included."""
    host: array[int] = field(default_factory=lambda: array("q"))
    """Nanoseconds of the call that launched, where the device had nothing to do before it returned."""

    def __len__(self) -> int:
        return len(self.ns)

    def extend(self, columns: TimeColumns) -> None:
        """Append samples that were read together."""
        for each in fields(self):
            column: array[int] = getattr(self, each.name)
            values = np.ascontiguousarray(getattr(columns, each.name), dtype=column.typecode)
            column.frombytes(values.tobytes())

    def whole(self) -> TimeSamples:
        """A copy of those that all columns have: another thread may be adding some."""
        columns = [getattr(self, each.name) for each in fields(self)]
        least = min(map(len, columns))
        return TimeSamples(*(column[:least] for column in columns))

    def with_probed(self, launches: Collection[int | None]) -> TimeSamples:
        """These, of the probed launches those of these numbers alone."""
        told = self.whole()
        kept = [i for i, number in enumerate(told.launch) if not told.probed[i] or number in launches]
        found = TimeSamples()
        for each in fields(self):
            values: array[int] = getattr(told, each.name)
            getattr(found, each.name).extend(values[i] for i in kept)
        return found

    def column(self, name: str) -> NDArray[Any]:
        """A copy of one column."""
        return np.array(getattr(self, name))

    def last(self, count: int, *, probed: bool) -> tuple[float, ...]:
        """What the device took for the last ``count`` probed, or original, launches that were timed, in ns."""
        chosen = [i for i, kind in enumerate(self.probed) if bool(kind) is probed][-count:]
        return tuple(float(max(self.ns[i] - max(self.host[i], 0), 0)) for i in chosen)

    @property
    def taken_ns(self) -> NDArray[np.float64]:
        """What the device took for each launch, in ns.

        Where the device had been idle (``host`` is known) the first event was over before the launch was even asked
        for, so that the pair holds the call that launches too: that is taken off.
        """
        host = np.maximum(self.column("host"), 0)
        taken: NDArray[np.float64] = np.maximum(self.column("ns") - host, 0).astype(np.float64)
        return taken
