"""Launches per second as a sparkline that moves only while the program launches."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.bar_chart import column_chart

if TYPE_CHECKING:
    from tui_probe.draw.spans import Line

SAMPLES: Final = 12
_MIN_SECONDS: Final = 0.4
"""Time between two samples."""


class LaunchRate:
    """Takes the number of launches with each frame; nothing is added while it stays the same."""

    def __init__(self) -> None:
        self.samples: deque[float] = deque(maxlen=SAMPLES)
        self._launches: int | None = None
        self._at = 0.0

    def look(self, launches: int, now: float) -> None:
        """Add a sample, if there were launches since the last one."""
        if self._launches is None or launches < self._launches:
            self._launches, self._at = launches, now
        elif launches > self._launches and now - self._at >= _MIN_SECONDS:
            self.samples.append((launches - self._launches) / (now - self._at))
            self._launches, self._at = launches, now

    def line(self) -> Line:
        """Return ``launches/s ▁▂▆▇ 4 120``; nothing before the first sample."""
        if not self.samples:
            return ()
        chart = column_chart(list(self.samples), SAMPLES, high=max(self.samples))[0]
        return (("launches/s ", "dim"), (chart, "ramp5"), (f" {units.count(round(self.samples[-1]))}", ""))
