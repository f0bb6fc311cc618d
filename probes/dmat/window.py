"""What part of time and memory is visible, and where the cursor is."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Window:
    """Cycles ``start`` to before ``end``, and the memory from ``low`` to ``high`` on the axis of a ``Space``."""

    start: float
    end: float
    low: float = 0.0
    high: float = 1.0

    @property
    def cycles(self) -> float:
        return self.end - self.start

    def zoomed(self, factor: float, time: float) -> Window:
        """``factor`` times as many cycles, ``time`` staying where it is."""
        return replace(self, start=time - (time - self.start) * factor, end=time + (self.end - time) * factor)

    def zoomed_rows(self, factor: float, place: float) -> Window:
        """``factor`` times as much memory, ``place`` staying where it is."""
        return replace(self, low=place - (place - self.low) * factor, high=place + (self.high - place) * factor)

    def moved(self, cycles: float, memory: float) -> Window:
        """The same extent elsewhere."""
        return Window(self.start + cycles, self.end + cycles, self.low + memory, self.high + memory)

    def inside(self, end: float) -> Window:
        """Moved, and where it is too large cut, to lie from cycle 0 to ``end`` and within the axis."""
        start, stop = _fit(self.start, self.end, end)
        low, high = _fit(self.low, self.high, 1.0)
        return Window(start, stop, low, high)


def _fit(low: float, high: float, end: float) -> tuple[float, float]:
    if high - low >= end:
        return 0.0, end
    if low < 0:
        return 0.0, high - low
    if high > end:
        return end - (high - low), end
    return low, high
