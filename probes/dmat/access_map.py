"""All accesses of a launch, read once: a survey of time and memory, bands, and a fine grid for large results.

A small result is counted anew for each picture. Of a large one, all accesses are counted on one fine grid first, from
which pictures of much of it are made; its memory in use is found from a sample of threads, and where that turns out to
miss some accesses, from all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw.view import no_progress
from tui_probe.errors import TraceError
from tui_probe.trace.launch_shape import SECTOR_BYTES

from .accesses import Selection
from .axes import Band, bands_of
from .boxes import raster_boxes, read_boxes
from .density import MAX_PARTS_IN_MEMORY, MAX_TABLE_ENTRIES, FineCounts, Grid, each_part, raster

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tui_probe.trace.device_memory import LaunchMemory
    from tui_probe.trace.tensors import Tensor

    from .accesses import Accesses, RecordPart
    from .boxes import Boxes

_MAX_RUNS: Final = 1 << 12
_SECTOR_BITS: Final = np.uint64(5)
_LONG_CYCLES: Final = 1 << 31
NO_TIMES: Final = (1 << 62, -1)
"""Times of a part without accesses."""
MAX_RECOUNTED_RECORDS: Final = 4 << 20
"""Records that are counted anew for each picture."""
_SAMPLE: Final = 64
_SAMPLE_TIME_SHARE: Final = 0.15
"""Share of the progress for the sample."""
_COLUMNS, _ROWS = 1024, 512
_END_MARGIN: Final = 1.05
"""Largest delay of the last access after that of the sample."""
_MAX_GRANULES: Final = MAX_TABLE_ENTRIES // 2
"""Maximum rows of the smallest size in the span of all ranges: half, since rows extend beyond the ends of ranges."""
_MARGIN_BYTES: Final = 64 << 10
_MAX_CYCLES: Final = 1 << 48
"""Cycles: more than a day."""
_MAX_ADDRESS: Final = 1 << 57
"""End of GPU addresses."""


@dataclass(frozen=True, slots=True)
class Survey:
    """``end`` is one past the last cycle; ``runs`` (u8, shape (runs, 2)) the memory in use, from to before, ascending.

    ``part_times`` (i8, shape (parts, 2)) are the first and the last cycle of each part of the whole grid; of a part
    without records the first is after the last.
    """

    record_count: int
    end: int
    runs: NDArray[np.uint64]
    part_times: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _PartSurvey:
    record_count: int
    times: tuple[int, int]
    latest: int
    """Latest time of the records in the sample: clocks that wrapped around are outliers, as they lie anywhere."""
    runs: NDArray[np.uint64]


def survey_accesses(accesses: Accesses, progress: Callable[[float], None], sample: int = 1) -> tuple[Accesses, Survey]:
    """Survey all records, or for memory and times only those of one in ``sample`` threads.

    The returned accesses are marked as long if warps ran so long that it matters.
    """
    parts = accesses.parts()

    def survey_part(part: RecordPart) -> _PartSurvey:
        summary = _survey_part(part, sample)
        if len(parts) > MAX_PARTS_IN_MEMORY:
            part.release()
        return summary

    summaries = list(each_part(parts, survey_part, progress))
    if max((summary.latest for summary in summaries), default=0) > _LONG_CYCLES and not accesses.has_long_warps:
        return survey_accesses(accesses.unwrapped(), progress, sample)
    end = max((summary.times[1] for summary in summaries), default=-1) + 1
    runs = [np.zeros((0, 2), np.uint64), *(summary.runs for summary in summaries)]
    times = np.array([summary.times for summary in summaries], dtype=np.int64).reshape(-1, 2)
    return accesses, Survey(
        sum(summary.record_count for summary in summaries), end, merged_runs(np.concatenate(runs)), times
    )


def _survey_part(part: RecordPart, sample: int) -> _PartSurvey:
    sampled_part = part if sample == 1 else part.sample(sample)
    times = sampled_part.time_range() or NO_TIMES
    runs, latest = [np.zeros((0, 2), dtype=np.uint64)], times[1]
    for piece in sampled_part.pieces():
        addresses = piece.addresses()
        if len(addresses):
            runs.append(sector_runs(addresses))
            latest = max(latest, int(piece.times().max()))
    return _PartSurvey(part.record_count, times, latest, merged_runs(np.concatenate(runs)))


def sector_runs(addresses: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the sectors of addresses (u8) as runs: shape (runs, 2), from to before, ascending and apart.

    If there are very many runs, the nearest are joined.
    """
    base = addresses.min() & ~np.uint64(SECTOR_BYTES - 1)
    addresses = addresses - base
    addresses >>= _SECTOR_BITS
    if int(addresses.max()) < 1 << 32:
        addresses = addresses.astype(np.uint32)  # sorted in half the time
    addresses.sort()
    edges = np.flatnonzero(np.diff(addresses) > 1)
    run_ends = addresses[np.append(edges, len(addresses) - 1)].astype(np.uint64) + np.uint64(1)
    runs = np.stack((addresses[np.append(0, edges + 1)].astype(np.uint64), run_ends), axis=1)
    return _coarsened_runs((runs << _SECTOR_BITS) + base)


def _coarsened_runs(runs: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Join runs over small gaps, until there are at most ``_MAX_RUNS``."""
    gap = np.uint64(SECTOR_BYTES)
    while len(runs) > _MAX_RUNS:
        gap *= np.uint64(2)
        is_gap = runs[1:, 0] - runs[:-1, 1] > gap
        runs = np.stack((runs[np.append(True, is_gap), 0], runs[np.append(is_gap, True), 1]), axis=1)
    return runs


def merged_runs(runs: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Join runs that overlap or touch: shape (runs, 2), ascending and apart; if very many, the nearest, too."""
    if not len(runs):
        return runs.reshape(0, 2)
    runs = runs[np.argsort(runs[:, 0], kind="stable")]
    run_ends = np.maximum.accumulate(runs[:, 1])
    is_start = np.append(True, runs[1:, 0] > run_ends[:-1])
    return _coarsened_runs(np.stack((runs[is_start, 0], run_ends[np.append(is_start[1:], True)]), axis=1))


@dataclass(frozen=True, slots=True)
class AccessMap:
    """Accesses of one launch, the memory that they touch, and for a large result its ``fine_counts``."""

    accesses: Accesses
    survey: Survey
    bands: tuple[Band, ...]
    fine_counts: FineCounts | None = None
    boxes: Boxes | None = None
    """Bulk copies; None for a kernel without any."""
    totals: tuple[int, ...] = ()
    """Accesses in each band, and sectors of bulk copies."""

    @property
    def total(self) -> int:
        """Accesses and sectors of bulk copies in all bands."""
        return sum(self.totals)

    @property
    def end(self) -> int:
        """One past the last cycle, at least 1."""
        return max(self.survey.end, 1)

    def parts(self, selection: Selection, start: int, end: int) -> list[RecordPart]:
        """Return the parts that may have accesses of a selection from cycle ``start`` to before ``end``."""
        parts = self.accesses.parts(selection)
        if len(parts) != len(self.survey.part_times) or selection.block is not None:
            return parts
        first_cycles, last_cycles = self.survey.part_times.T
        return [parts[number] for number in np.flatnonzero((first_cycles < end) & (last_cycles >= start))]


def read_map(
    accesses: Accesses, memory: LaunchMemory, tensors: Sequence[Tensor], progress: Callable[[float], None]
) -> AccessMap:
    """Survey all accesses. ``progress`` is called with the share done, and may raise to stop it.

    Raises TraceError for impossible clocks or addresses.
    """
    fits_recount = accesses.records.size <= MAX_RECOUNTED_RECORDS
    if fits_recount:
        accesses, summary = survey_accesses(accesses, progress)
        summary, boxes = _with_boxes(accesses, summary)
        _refuse_damaged(accesses, summary)
        return _with_totals(AccessMap(accesses, summary, tuple(bands_of(summary.runs, memory, tensors)), boxes=boxes))
    accesses, summary, fine_counts = _from_sample(accesses, memory, tensors, progress)
    if int(fine_counts.counts.sum()) != summary.record_count:
        accesses, summary = survey_accesses(accesses, progress)
        _refuse_damaged(accesses, summary)
        ranges = [(band.start, band.end) for band in bands_of(summary.runs, memory, tensors)]
        summary, fine_counts = _count_finely(accesses, summary, ranges, summary.end, progress)
    grid, is_accessed = fine_counts.grid, fine_counts.counts.any(axis=1)
    runs = merged_runs(np.stack((grid.row_starts[is_accessed], grid.row_ends[is_accessed]), axis=1))
    summary, boxes = _with_boxes(accesses, replace(summary, runs=runs))
    _refuse_damaged(accesses, summary)
    return _with_totals(
        AccessMap(accesses, summary, tuple(bands_of(summary.runs, memory, tensors)), fine_counts, boxes)
    )


def _with_totals(access_map: AccessMap) -> AccessMap:
    """Count the accesses of each band; of fine counts a row counts where it begins.

    Memory in use is known by sectors. Without an access, the rest of the last sector of an allocation has no band.
    """
    bands, boxes, fine_counts = access_map.bands, access_map.boxes, access_map.fine_counts
    band_starts, band_ends = (np.array([getattr(band, edge) for band in bands], np.uint64) for edge in ("start", "end"))
    grid = Grid(0, access_map.end, 1, band_starts, band_ends)
    counts = (
        raster(access_map.accesses.parts(), grid, no_progress) if fine_counts is None else fine_counts.resampled(grid)
    )
    if boxes is not None and len(boxes.records):
        counts = counts + raster_boxes(boxes.select(Selection(), 0, access_map.end), grid, no_progress)
    totals = dict(zip(bands, counts.sum(axis=1).tolist(), strict=True))
    accessed = {band: total for band, total in totals.items() if total or not band.unnamed or band.size >= SECTOR_BYTES}
    return replace(access_map, bands=tuple(accessed), totals=tuple(accessed.values()))


def _with_boxes(accesses: Accesses, summary: Survey) -> tuple[Survey, Boxes | None]:
    """Return the survey with the memory and the times of bulk copies, and these."""
    boxes = read_boxes(accesses)
    if boxes is None or not len(boxes.records):
        return summary, boxes
    runs = merged_runs(np.concatenate((summary.runs, boxes.spans())))
    return replace(summary, runs=runs, end=max(summary.end, int(boxes.times.max()) + 1)), boxes


def _from_sample(
    accesses: Accesses, memory: LaunchMemory, tensors: Sequence[Tensor], progress: Callable[[float], None]
) -> tuple[Accesses, Survey, FineCounts]:
    """Return fine counts around the memory that a sample of threads touched; they may lack some accesses."""
    accesses, summary = survey_accesses(accesses, lambda share: progress(share * _SAMPLE_TIME_SHARE), _SAMPLE)
    _refuse_damaged(accesses, summary)
    ranges = _widened(bands_of(summary.runs, memory, tensors))
    latest_end = int(summary.end * _END_MARGIN)
    return accesses, *_count_finely(
        accesses,
        summary,
        ranges,
        latest_end,
        lambda share: progress(_SAMPLE_TIME_SHARE + share * (1 - _SAMPLE_TIME_SHARE)),
    )


def _refuse_damaged(accesses: Accesses, summary: Survey) -> None:
    """Raise TraceError for clocks or addresses that no GPU has: the file is damaged."""
    path = accesses.result.path
    if summary.end > _MAX_CYCLES:
        raise TraceError(
            f"{path} is damaged: an access is {summary.end} cycles after the start of the first warp, max {_MAX_CYCLES}"
        )
    if len(summary.runs) and int(summary.runs[-1, 1]) > _MAX_ADDRESS:
        address = int(summary.runs[-1, 0])
        raise TraceError(f"{path} is damaged: the address of an access is {address:#x}, which no GPU has")


def _count_finely(
    accesses: Accesses, summary: Survey, ranges: list[tuple[int, int]], end: int, progress: Callable[[float], None]
) -> tuple[Survey, FineCounts]:
    """Count accesses in ``ranges`` before cycle ``end``; also return the survey with exact times."""
    width = 1 << max((max(end, 1) - 1).bit_length() - (_COLUMNS.bit_length() - 1), 0)
    grid = Grid(0, width * _COLUMNS, _COLUMNS, *_row_bounds(ranges))
    parts = accesses.parts()
    extents = np.tile(np.array(NO_TIMES, dtype=np.int64), (len(parts), 1))
    counts = raster(parts, grid, progress, extents=extents)
    refined = replace(summary, end=int(extents[:, 1].max(initial=-1)) + 1, part_times=extents)
    return refined, FineCounts(grid, counts)


def _widened(bands: list[Band]) -> list[tuple[int, int]]:
    """Return ranges around bands that were found from a sample, up to half the way to the next."""
    ranges = []
    for number, band in enumerate(bands):
        margin = max(_MARGIN_BYTES, band.size // 16)
        gap_below = band.start - bands[number - 1].end if number else 2 * margin
        gap_above = bands[number + 1].start - band.end if number + 1 < len(bands) else 2 * margin
        ranges.append((max(band.start - min(margin, gap_below // 2), 0), band.end + min(margin, gap_above // 2)))
    return ranges


def _row_bounds(ranges: list[tuple[int, int]]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return lows and highs (u8) of rows: power-of-two bytes, one size per range."""
    if not ranges:
        return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint64)
    min_bytes = max((ranges[-1][1] - ranges[0][0]) // _MAX_GRANULES, SECTOR_BYTES)
    max_rows = _ROWS // len(ranges)
    row_starts, row_ends = [], []
    next_start = 0
    for start, end in ranges:
        step = 1 << (max(-(-(end - start) // max_rows), min_bytes) - 1).bit_length()
        first_start = max(start // step * step, next_start)
        next_start = -(-end // step) * step
        edges = np.arange(first_start // step * step, next_start + 1, step, dtype=np.uint64)
        row_starts.append(np.maximum(edges[:-1], np.uint64(first_start)))
        row_ends.append(edges[1:])
    return np.concatenate(row_starts), np.concatenate(row_ends)
