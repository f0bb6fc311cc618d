"""The clocks of all SMs on one axis, by pairs of ``%clock64`` and ``%globaltimer`` that warps read together.

Each SM counts cycles from a zero of its own; the timer is one for the whole GPU, but ticks only every so many
nanoseconds. So a pair says: when the SM's clock stood at c, the time was in [t, t + tick). With one rate for all SMs::

    tick     greatest common divisor of all times read          at least the timer's own
    rate     least squares of t over c, each SM about its own mean, in ns a cycle
             error <= tick/2 · sum|c - mean| / sum (c - mean)²
    origin   of an SM: the time at which its clock stood at its first start c0. Every pair bounds it,
             t - rate (c - c0) <= origin < t + tick - rate (c - c0); taken is the middle of what all bounds leave
             error <= half of what they leave + error of the rate · the SM's span of starts

If the bounds contradict each other, the rate was not constant, and half of the contradiction comes on top. The few
cycles between the two reads are the same for every warp and are in neither error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.analysis.timeline_clocks import Clocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PRECISE: Final = 0.01
"""A measured rate is used if its error is no more than this part of it, or if nothing else is known."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """The axis of a launch. ``sms`` (i8, ascending) are its SMs; other arrays have an element for each of them.

    ``first`` (u8) is the clock of an SM at its first start, ``origin`` (f8) the time of that in ns since the earliest
    of them. ``error_ns`` is how far the times of two SMs may be apart from what is said; None if the rate was not
    measured. ``rate_error`` is that of ``ns_per_cycle``; None if it was taken from the device's highest clock.
    """

    sms: NDArray[np.int64]
    first: NDArray[np.uint64]
    origin: NDArray[np.float64]
    ns_per_cycle: float
    rate_error: float | None
    tick_ns: int | None
    error_ns: float | None

    def nanoseconds(self, sm: NDArray[Any], clock: NDArray[np.uint64]) -> NDArray[np.float64]:
        """The time of ``clock`` (u8) of SMs ``sm``, in ns since the earliest start. Both of one shape."""
        place = np.searchsorted(self.sms, sm)
        since: NDArray[np.int64] = (clock - self.first[place]).view(np.int64)
        return self.origin[place] + since * self.ns_per_cycle

    def clocks(self) -> Clocks:
        """The same as shifts in cycles."""
        shift = np.rint((self.origin - self.origin.min()) / self.ns_per_cycle).astype(np.int64)
        error = None if self.error_ns is None else int(np.ceil(self.error_ns / self.ns_per_cycle))
        return Clocks(shift, len(self.sms), "global timer", error)


def align(
    sm: NDArray[Any], start: NDArray[np.uint64], time: NDArray[np.uint64], clock_khz: int | None = None
) -> Alignment | None:
    """The axis of warps that read ``start`` (cycles) and ``time`` (ns) on SMs ``sm``; flat arrays of one length.

    ``clock_khz`` is the device's highest SM clock, which stands in for a rate that cannot be measured. None if there
    are no warps, or no rate.
    """
    if not len(sm):
        return None
    sms, place = np.unique(np.asarray(sm, dtype=np.int64), return_inverse=True)
    first = np.full(len(sms), np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(first, place, start)
    cycles = (start - first[place]).astype(np.float64)
    elapsed = (time - time.min()).astype(np.float64)
    times = np.unique(time)
    tick = int(np.gcd.reduce(times)) if len(times) > 1 else None
    rate, rate_error = _rate(place, cycles, elapsed, tick)
    imprecise = rate is None or rate_error is None or rate_error > _PRECISE * rate
    if clock_khz and imprecise:
        rate, rate_error = 1e6 / clock_khz, None
    if rate is None:
        return None
    origin, error = _origins(place, len(sms), cycles, elapsed - rate * cycles, tick or 0, rate_error)
    known = error if tick is not None and rate_error is not None else None
    return Alignment(sms, first, origin - origin.min(), rate, rate_error, tick, known)


def _rate(
    place: NDArray[np.intp], cycles: NDArray[np.float64], elapsed: NDArray[np.float64], tick: int | None
) -> tuple[float | None, float | None]:
    """Nanoseconds a cycle, and the bound of its error."""
    centred, late = (values - (np.bincount(place, values) / np.bincount(place))[place] for values in (cycles, elapsed))
    squares = float(centred @ centred)
    if squares == 0 or tick is None:
        return None, None
    rate = float(centred @ late) / squares
    return (rate, tick / 2 * float(np.abs(centred).sum()) / squares) if rate > 0 else (None, None)


def _origins(
    place: NDArray[np.intp],
    sms: int,
    cycles: NDArray[np.float64],
    bounds: NDArray[np.float64],
    tick: int,
    rate_error: float | None,
) -> tuple[NDArray[np.float64], float]:
    """When each SM's first start was, and the largest error between two of them; ``bounds`` are the lower ones."""
    lowest, highest, span = np.full(sms, np.inf), np.full(sms, -np.inf), np.zeros(sms)
    np.minimum.at(lowest, place, bounds)
    np.maximum.at(highest, place, bounds)
    np.maximum.at(span, place, cycles)
    left = lowest + tick - highest
    errors = np.where(left >= 0, left / 2, tick / 2 - left / 2) + (rate_error or 0.0) * span
    two_largest = np.sort(errors)[-2:]
    return (lowest + tick + highest) / 2, float(two_largest.sum()) if sms > 1 else 0.0
