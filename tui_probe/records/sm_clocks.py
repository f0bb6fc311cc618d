"""Clocks of all SMs on one time axis: by the first starts of a launch, or by times that warps read.

**First starts.** ``%clock64`` of two SMs may differ by any constant. On the GPU that was looked at (NVIDIA H200, 132
SMs), the SMs of one cluster of the chip share a clock, and the clocks of clusters lie millions of cycles apart: the
first starts of a launch form eight *domains* of 16 or 18 SMs. In each of them they spread over 10 to 140 cycles, the
time in which a launch fills them. So times within a domain can be compared as they are, and domains are put next to
each other by their first starts, which errs by about that spread.

**Pairs** of ``%clock64`` and ``%globaltimer`` that a warp reads together. Each SM counts cycles from a zero of its own;
the timer is one for the whole GPU, but ticks only every that many nanoseconds. So a pair says: when the SM's clock
stood at c, the time was in [t, t + tick). With one rate for all SMs::

    tick     greatest common divisor of all times read          at least the timer's own
    rate     least squares of t over c, each SM about its own mean, in ns per cycle
             error <= tick/2 · sum|c - mean| / sum (c - mean)², so that it lies between a slow and a fast bound
    origin   of an SM: the time at which its clock stood at its first start c0. Every pair bounds it,
             t - slowest (c - c0) <= origin < t + tick - fastest (c - c0), where slowest and fastest are the most
             and the least ns per cycle that the rate can be. Taken is the middle of what all bounds leave
             error <= half of what they leave; the SM's first pair by itself leaves no more than a tick

If the bounds contradict each other, the rate was not constant, and half of the contradiction comes on top. Of two
SMs the errors add up, and to them comes the error of the rate, as a part of it, times how far apart their origins
are. From there on a wrong rate stretches the axis for all SMs alike. The few cycles between the two reads are the
same for every warp and are in no error.

A launch whose warps all begin within some ticks tells no rate worth using. Then the device's highest clock is
taken, and the rate is bounded by what a busy GPU keeps: its SMs run between half of that clock and all of it. Where
the pairs leave less than this, they bound it; where they contradict it, they are believed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tui_probe.errors import TraceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_SMS: Final = 4096
"""More than any device has; numbers may have gaps."""
MAX_START_GAP: Final = 4096
"""First starts of one domain follow each other within that many cycles (2 µs); in the data at hand, within 140, while
those of different domains lie 80 000 or more apart.
"""
ClockBasis = Literal["shared", "first starts", "global timer"]
"""Origin of the time axis of SMs: one clock for all, their first starts, or pairs of times."""
_MAX_RATE_ERROR: Final = 0.01
"""A measured rate is used if its error is no more than this part of it, or if nothing else is known."""
_MAX_CYCLE_STRETCH: Final = 2.0
"""Factor by which a cycle of a busy SM may take longer than at the device's highest clock."""


def distinct_sms(sm: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The SMs that records name, ascending, and the place of each record's among them.

    TraceError if they cannot be numbers of SMs: the file is damaged, or another probe's.
    """
    sms, sm_index = np.unique(np.asarray(sm, dtype=np.int64), return_inverse=True)
    if len(sms) and not 0 <= sms[0] <= sms[-1] < MAX_SMS:
        invalid_sm = int(sms[-1] if sms[-1] >= MAX_SMS else sms[0])
        raise TraceError(f"a record has the SM number {invalid_sm}: the file is damaged, or another probe wrote it")
    return sms, sm_index


@dataclass(frozen=True, slots=True)
class ClockAxis:
    """Position of each SM's first start on the time axis, and its accuracy.

    ``shift`` (i8) has one element per SM that ran a block, by ascending SM number; the least is 0. ``error`` is in
    cycles, between SMs of different domains; None where nothing tells it. ``assumed_rate`` says that times were made
    cycles at the device's highest clock.
    """

    shift: NDArray[np.int64]
    domains: int
    basis: ClockBasis
    error: int | None
    assumed_rate: bool = False

    def summary(self) -> str:
        """The alignment and its error in a few words."""
        if self.basis == "shared":
            return "SMs share one clock"
        error_text = "with an unknown error" if self.error is None else f"±{self.error} cycles"
        if self.basis == "global timer":
            assumption = ", assuming that SMs run at 50 to 100 % of their highest clock" if self.assumed_rate else ""
            return f"SM clocks aligned by the global timer {error_text}{assumption}"
        if self.domains == 1:
            return "all SM clocks show the same time"
        return f"{len(self.shift)} SMs on {self.domains} clocks, aligned at the first block of each SM {error_text}"


def shared_clock(sms: NDArray[np.int32], first_starts: NDArray[np.uint64]) -> ClockAxis:
    """All SMs count with one clock. ``first_starts`` (u8) is the first start on each of ``sms`` (i4)."""
    del sms
    return ClockAxis((first_starts - first_starts.min()).view(np.int64), 1, "shared", 0)


def clock_domains(sms: NDArray[np.int32], first_starts: NDArray[np.uint64]) -> ClockAxis:
    """Domains by the distances of first starts, each beginning at 0.

    An SM that really began more than ``MAX_START_GAP`` cycles after all others of its domain is taken for a domain of
    its own, and so shown too early. Two domains nearer than that are taken for one. The error is the largest spread of
    the first starts in a domain; None if no domain has two SMs.
    """
    del sms
    order = np.argsort(first_starts, kind="stable")
    clock = first_starts[order]
    is_domain_start = np.append(True, np.diff(clock) > MAX_START_GAP)
    shift = np.empty(len(first_starts), dtype=np.int64)
    shift[order] = (clock - clock[is_domain_start][np.cumsum(is_domain_start) - 1]).view(np.int64)
    domains = int(is_domain_start.sum())
    return ClockAxis(shift, domains, "first starts", int(shift.max()) if domains < len(first_starts) else None)


@dataclass(frozen=True, slots=True)
class ClockAlignment:
    """The axis of a launch. ``sms`` (i8, ascending) are its SMs; other arrays have an element for each of them.

    ``first_clock`` (u8) is the clock of an SM at its first start, ``origin`` (f8) the time of that in ns since the
    earliest of them. ``error_ns`` is how far the times of two SMs may be apart from what is said; None if all warps
    read one time. ``rate_error`` is that of ``ns_per_cycle``; None if it was taken from the device's highest clock.
    """

    sms: NDArray[np.int64]
    first_clock: NDArray[np.uint64]
    origin: NDArray[np.float64]
    ns_per_cycle: float
    rate_error: float | None
    tick_ns: int | None
    error_ns: float | None

    def nanoseconds(self, sm: NDArray[Any], clock: NDArray[np.uint64]) -> NDArray[np.float64]:
        """The time of ``clock`` (u8) of SMs ``sm``, in ns since the earliest start. Both of one shape."""
        sm_index = np.searchsorted(self.sms, sm)
        cycles: NDArray[np.int64] = (clock - self.first_clock[sm_index]).view(np.int64)
        return self.origin[sm_index] + cycles * self.ns_per_cycle

    def clocks(self) -> ClockAxis:
        """Clock axis with shifts in cycles."""
        shift = np.rint((self.origin - self.origin.min()) / self.ns_per_cycle).astype(np.int64)
        error = None if self.error_ns is None else int(np.ceil(self.error_ns / self.ns_per_cycle))
        return ClockAxis(shift, len(self.sms), "global timer", error, assumed_rate=self.rate_error is None)


def align_clocks(
    sm: NDArray[Any], start: NDArray[np.uint64], time: NDArray[np.uint64], clock_khz: int | None = None
) -> ClockAlignment | None:
    """The axis of warps that read ``start`` (cycles) and ``time`` (ns) on SMs ``sm``; flat arrays of one length.

    ``clock_khz`` is the device's highest SM clock, which stands in for a rate that cannot be measured. None if there
    are not warps, or no rate.
    """
    if not len(sm):
        return None
    sms, sm_index = distinct_sms(sm)
    first_clock = np.full(len(sms), np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(first_clock, sm_index, start)
    cycles = (start - first_clock[sm_index]).astype(np.float64)
    elapsed = (time - time.min()).astype(np.float64)
    times = np.unique(time)
    tick = int(np.gcd.reduce(times)) if len(times) > 1 else None
    rate, rate_error = _rate(sm_index, cycles, elapsed, tick)
    bounds = None if rate is None or rate_error is None else (rate - rate_error, rate + rate_error)
    is_imprecise = rate is None or rate_error is None or rate_error > _MAX_RATE_ERROR * rate
    if clock_khz and is_imprecise:
        bounds = _rate_bounds(1e6 / clock_khz, bounds)
        rate, rate_error = min(max(1e6 / clock_khz, bounds[0]), bounds[1]), None
    if rate is None or bounds is None:
        return None
    origin, error = _origins(sm_index, len(sms), cycles, elapsed, tick or 0, bounds)
    stretch = max(rate / bounds[0] - 1, 1 - rate / bounds[1]) if bounds[0] > 0 else np.inf
    error += stretch * (float(np.ptp(origin)) + error) if len(sms) > 1 else 0.0
    error_ns = error if tick is not None and np.isfinite(error) else None
    return ClockAlignment(sms, first_clock, origin - origin.min(), rate, rate_error, tick, error_ns)


def _rate_bounds(fastest: float, measured_bounds: tuple[float, float] | None) -> tuple[float, float]:
    """The least and the most ns per cycle, where ``fastest`` is that of the device's highest clock."""
    min_rate, max_rate = fastest, _MAX_CYCLE_STRETCH * fastest
    if measured_bounds is None:
        return min_rate, max_rate
    common_bounds = max(min_rate, measured_bounds[0]), min(max_rate, measured_bounds[1])
    return common_bounds if common_bounds[0] <= common_bounds[1] else measured_bounds


def _rate(
    sm_index: NDArray[np.intp], cycles: NDArray[np.float64], elapsed: NDArray[np.float64], tick: int | None
) -> tuple[float | None, float | None]:
    """Nanoseconds per cycle, and the bound of its error: times are known to a tick, clocks to a cycle."""
    centred_cycles, centred_times = (
        values - (np.bincount(sm_index, values) / np.bincount(sm_index))[sm_index] for values in (cycles, elapsed)
    )
    squares = float(centred_cycles @ centred_cycles)
    if squares == 0 or tick is None:
        return None, None
    rate = float(centred_cycles @ centred_times) / squares
    return (rate, (tick + rate) / 2 * float(np.abs(centred_cycles).sum()) / squares) if rate > 0 else (None, None)


def _origins(
    sm_index: NDArray[np.intp],
    sm_count: int,
    cycles: NDArray[np.float64],
    elapsed: NDArray[np.float64],
    tick: int,
    rates: tuple[float, float],
) -> tuple[NDArray[np.float64], float]:
    """Return each SM's first start and the largest error between two of them; ``rates`` are min and max."""
    latest, earliest = np.full(sm_count, np.inf), np.full(sm_count, -np.inf)
    np.minimum.at(latest, sm_index, elapsed + tick - rates[0] * cycles)
    np.maximum.at(earliest, sm_index, elapsed - rates[1] * cycles)
    margins = latest - earliest
    errors = np.where(margins >= 0, margins / 2, tick / 2 - margins / 2)
    two_largest = np.sort(errors)[-2:]
    return (latest + earliest) / 2, float(two_largest.sum()) if sm_count > 1 else 0.0
