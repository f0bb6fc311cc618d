"""Pace of warps: when each ran, and how fast it iterated its loops.

start, end   of a warp in ns since the first start: see :mod:`tui_probe.records.sm_clocks` for the axis
             and its error. Without an axis (one start, no rate known) there are only cycles.
iteration    two arrivals of a warp in a row at the head of the same loop, and the cycles between them; so of loops
             inside each other the pace of the inner ones is reported
pace         iterations / the time that they took
main loop    the one whose iterations took most time, over all warps
stragglers   warps that live longer than the third quartile + 1.5 times the distance of the quartiles, and than
             1.25 times the median
half done    from the time when half of the SMs had run out of warps to the end of the last warp
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.records.sm_clocks import ClockAlignment, align_clocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.trace.map_records import Sample
    from tui_probe.trace.results import Result

WARP: Final = np.dtype([("start", "<u8"), ("time", "<u8"), ("elapsed", "<u4"), ("sm", "<u4")])
PACE: Final = np.dtype([("clock", "<u4"), ("line", "<u4")])
_FENCE: Final = 1.5
"""Distances of the quartiles above the third quartile: Tukey's inner fence."""
_MIN_MEDIAN_RATIO: Final = 1.25
"""Multiple of the median: where all warps live about as long, the fence is next to it."""


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop of the kernel: ``line`` of its head in pruned.ptx, the ``warps`` that came to it, and the sums over
    them of iterations and of the ``cycles`` that these took.
    """

    line: int
    warps: int
    iterations: int
    cycles: int

    @property
    def cycles_per_iteration(self) -> float | None:
        """Mean over all iterations of all warps."""
        return self.cycles / self.iterations if self.iterations else None


@dataclass(frozen=True, slots=True)
class WarpProgress:
    """One launch. Arrays of shape (blocks, warps per block); warps that left no record are not in ``has_record``.

    ``start`` and ``end`` (f8) are ns since the first start, NaN where not known. ``pace`` has the records as saved, of
    shape (blocks, warps per block, capacity), and ``arrival_counts`` (i8) how often each warp came to the head of a
    loop: -1 where that is not known, since lanes ended in a way that told no number.
    """

    warps: NDArray[Any]
    has_record: NDArray[np.bool_]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    alignment: ClockAlignment | None
    pace: NDArray[Any]
    arrival_counts: NDArray[np.int64]
    loops: tuple[Loop, ...]
    threads_missing: int = 0
    sample: Sample | None = None
    """The blocks that the arrays are of, in order; None: all of the grid."""
    has_times: bool = True
    """True if nanoseconds are time; on a simulated GPU they are not."""

    @property
    def main_loop(self) -> Loop | None:
        """The loop whose iterations took most time."""
        return max(self.loops, key=lambda loop: loop.cycles, default=None)

    @property
    def recorded_arrivals(self) -> NDArray[np.int64]:
        """Number of arrivals that each warp recorded."""
        return np.clip(self.arrival_counts, 0, self.pace.shape[2])

    def arrivals(self, block: int, warp: int) -> tuple[NDArray[np.float64], NDArray[np.uint32]]:
        """Times in ns since the first start at which one warp reached the heads of loops, and their lines."""
        record, count = self.warps[block, warp], int(self.recorded_arrivals[block, warp])
        records = self.pace[block, warp, :count]
        cycles = cycles_since_start(records["clock"][np.newaxis], record["start"].astype(np.uint32)[np.newaxis])[0]
        rate = self.alignment.ns_per_cycle if self.alignment else np.nan
        return self.start[block, warp] + cycles * rate, records["line"]

    def stragglers(self) -> NDArray[np.int64]:
        """Warps that lived far longer than the others, as (block, warp), the longest first; shape (n, 2).

        Of a sample ``block`` is the place in it.
        """
        lifetimes = self.warps["elapsed"][self.has_record].astype(np.int64)
        if not len(lifetimes):
            return np.zeros((0, 2), dtype=np.int64)
        p25, median, p75 = np.percentile(lifetimes, (25, 50, 75))
        is_straggler = self.has_record & (
            self.warps["elapsed"] > max(p75 + _FENCE * (p75 - p25), _MIN_MEDIAN_RATIO * median)
        )
        stragglers = np.argwhere(is_straggler)
        return stragglers[np.argsort(-self.warps["elapsed"][is_straggler].astype(np.int64), kind="stable")]

    def half_done_ns(self) -> float | None:
        """Time in ns from when half of the SMs were done to the end; None if unknown, as for a sample of blocks."""
        if self.alignment is None or self.sample is not None or not self.has_record.any():
            return None
        sm_index = np.searchsorted(self.alignment.sms, self.warps["sm"][self.has_record].astype(np.int64))
        sm_ends = np.zeros(len(self.alignment.sms))
        np.maximum.at(sm_ends, sm_index, self.end[self.has_record])
        return float(sm_ends.max() - np.median(sm_ends))


def analyse(result: Result, clock_khz: int | None = None) -> WarpProgress:
    """The warps of one launch; TraceError if the maps are not a start and a pace for each warp.

    ``clock_khz`` is the device's highest SM clock, for launches too short to measure the rate.
    """
    if len(result.maps) < 3 or any(section.level != "warp" for section in result.sections[:2]):
        raise TraceError(f"{result.path}: the maps of warp starts and paces are missing; another probe wrote the file")
    warps, pace, arrival_counts = result.one_record(0, WARP), result.records(1, PACE), result.attempts(1)
    is_written = result.written_mask(0)
    if arrival_counts is None or is_written is None:
        raise TraceError(f"{result.path}: the file does not show which records were written; another probe wrote it")
    has_record = is_written[:, :, 0]
    if not has_record.any():
        raise TraceError(f"{result.path}: no warp saved a record; the kernel was interrupted, or the probe did not run")
    warp_records = warps[has_record]
    alignment = align_clocks(warp_records["sm"], warp_records["start"], warp_records["time"], clock_khz)
    start, end = np.full(warps.shape, np.nan), np.full(warps.shape, np.nan)
    if alignment:
        start[has_record] = alignment.nanoseconds(warp_records["sm"], warp_records["start"])
        end[has_record] = start[has_record] + warp_records["elapsed"] * alignment.ns_per_cycle
    progress = WarpProgress(warps, has_record, start, end, alignment, pace, arrival_counts, (), sample=result.sample)
    return replace(progress, loops=_loops(progress))


def launch_times(result: Result, clock_khz: int | None = None) -> tuple[int, int | None]:
    """Start of the first warp and end of the last, in ns of %globaltimer; the end is None where the rate of the
    clock is not known. TraceError if no warp left a record.
    """
    is_written = result.written_mask(0)
    records = result.one_record(0, WARP)
    warps = records[is_written[:, :, 0]] if is_written is not None else records[records["time"] > 0]
    if not len(warps):
        raise TraceError(f"{result.path}: no warp saved a record; the kernel was interrupted, or the probe did not run")
    alignment = align_clocks(warps["sm"], warps["start"], warps["time"], clock_khz)
    begin = int(warps["time"].min())
    if alignment is None:
        return begin, None
    return begin, round(float((warps["time"] - begin + warps["elapsed"] * alignment.ns_per_cycle).max())) + begin


def cycles_since_start(clock: NDArray[np.uint32], start: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Cycles since the start of the warp, from the low halves of clocks; two records are less than 2**32 cycles apart.

    ``clock`` has the records along its last axis, ``start`` has one axis fewer.
    """
    previous_clock = np.concatenate((start[..., np.newaxis], clock[..., :-1]), axis=-1)
    return np.cumsum((clock - previous_clock).astype(np.int64), axis=-1)


def _loop_totals(progress: WarpProgress, line: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Iterations of each warp of a loop, and the cycles that they took."""
    clock, lines = progress.pace["clock"], progress.pace["line"]
    is_iteration = (lines[..., :-1] == line) & (lines[..., 1:] == line)
    is_iteration &= np.arange(1, lines.shape[2]) < progress.recorded_arrivals[..., np.newaxis]
    iteration_cycles = np.where(is_iteration, clock[..., 1:] - clock[..., :-1], np.uint32(0))
    return is_iteration.sum(axis=2), iteration_cycles.sum(axis=2, dtype=np.int64)


def _loops(progress: WarpProgress) -> tuple[Loop, ...]:
    is_recorded = np.arange(progress.pace.shape[2]) < progress.recorded_arrivals[..., np.newaxis]
    loops = []
    for line in np.unique(progress.pace["line"][is_recorded]).tolist():
        iterations, cycles = _loop_totals(progress, line)
        warps = int(((progress.pace["line"] == line) & is_recorded).any(axis=2).sum())
        loops.append(Loop(line, warps, int(iterations.sum()), int(cycles.sum())))
    return tuple(loops)
