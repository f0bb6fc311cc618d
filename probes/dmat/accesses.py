"""The records of ``dmat`` and ``dmat_compact``: which thread accessed which address when, part by part.

A record is an access of one thread. Results may be larger than memory, so they are read in parts of whole blocks. A
part gives its records as flat arrays, those of a thread one after another.

**Time** is in cycles on one axis for all SMs, from the first warp's entry on: the clocks of SMs are put next to each
other by the timer that all warps read, or by their first starts, whichever errs less. A record holds the low half of
its SM's clock; the other half comes from what its warp read when it began.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.records.copied_boxes import read_copies
from tui_probe.records.sm_clocks import ClockAxis, align_clocks, clock_domains, distinct_sms, shared_clock
from tui_probe.trace.device_memory import LaunchMemory
from tui_probe.trace.launch_shape import WARP_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.copied_boxes import BulkCopies
    from tui_probe.trace.results import Result

RECORD: Final = np.dtype([("address", "<u8"), ("clock", "<u4"), ("line", "<u4")])
COMPACT: Final = np.dtype([("clock", "<u4"), ("granule", "<u4")])
WARP: Final = np.dtype([("start", "<u8"), ("time", "<u8"), ("sm", "<u4"), ("line", "<u4")])
COMPACT_NAME: Final = "dmat_compact"
"""The variant whose records name no instruction."""
UNKNOWN: Final = np.uint32(0xFFFFFFFF)
"""The attempts of a thread that ended without telling them."""
_PART_RECORDS: Final = 1 << 21
"""Records of a part, about; 32 MB of a file."""
_PIECE_RECORDS: Final = 1 << 16
_GRANULE_BITS: Final = 37
"""The bits of an address that a compact record holds: 32 of its sector's number, and 5 within the sector."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Whose records: of the whole grid, or of one block of it, or of one warp of that block.

    ``line`` leaves those of one instruction, by its line of pruned.ptx; compact records do not tell.
    """

    block: int | None = None
    warp: int | None = None
    line: int | None = None


class AccessPoint(NamedTuple):
    """Cycle on the axis of time, and address, of an access; ordered by time."""

    cycle: int
    address: int


def first_start_ns(result: Result) -> int:
    """Return the start of the first warp in ns of %globaltimer. Raises TraceError if no warp left a record."""
    times = result.one_record(0, WARP)["time"]
    if not times.any():
        raise TraceError(f"{result.path}: no warp saved a record; the kernel was interrupted, or the probe did not run")
    return int(times[times > 0].min())


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a result as an array of shape (blocks, threads per block, records per thread) that is not read
    as a whole: ``records[blocks, threads]``, both slices, reads those.
    """

    result: Result
    index: int | None
    dtype: np.dtype[Any]
    shape: tuple[int, int, int]

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1] * self.shape[2]

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __getitem__(self, index: tuple[slice, slice]) -> NDArray[Any]:
        blocks, threads = index
        first_block, end_block, _ = blocks.indices(self.shape[0])
        if threads.step in (None, 1):
            return self._read_blocks(first_block, end_block)[:, threads]
        thread_numbers = range(*threads.indices(self.shape[1]))
        records = np.empty((max(end_block - first_block, 0), len(thread_numbers), self.shape[2]), self.dtype)
        step = max(_PIECE_RECORDS // max(self.shape[1] * self.shape[2], 1), 1)
        for block in range(
            first_block, end_block, step
        ):  # all of them at the same time would be many times what is kept
            end = min(block + step, end_block)
            records[block - first_block : end - first_block] = self._read_blocks(block, end)[:, threads]
        return records

    def _read_blocks(self, first_block: int, end_block: int) -> NDArray[Any]:
        if self.index is None:
            return np.zeros((max(end_block - first_block, 0), *self.shape[1:]), self.dtype)
        return self.result.some_records(self.index, self.dtype, first_block, max(first_block, end_block))


@dataclass(frozen=True, slots=True)
class Accesses:
    """A result of ``dmat`` or ``dmat_compact``.

    ``records`` has shape (blocks, threads per block, records per thread). ``attempts`` (u4, shape
    (blocks, threads)) is how many accesses each thread made, or ``UNKNOWN``; None in results that do not tell.
    ``entry`` (i8) is the time at which each warp began, ``start`` (u8) its clock then, both of shape (blocks, warps per
    block).
    """

    result: Result
    records: Records
    attempts: NDArray[np.uint32] | None
    entry: NDArray[np.int64]
    start: NDArray[np.uint64]
    clocks: ClockAxis
    cycles_per_ns: float | None
    """The clock rate as the warps' clocks and timers tell; None where they do not."""
    memory: LaunchMemory
    """Allocations, which give the upper bits of the addresses of compact records."""
    has_long_warps: bool = False
    """True if warps may run for 2**31 cycles or more, so that their clocks must be unwrapped."""
    copies: BulkCopies | None = None
    """Bulk copies of a kernel whose other accesses are not recorded."""

    @property
    def is_compact(self) -> bool:
        """True if records name no instruction."""
        return self.records.dtype == COMPACT

    @property
    def are_recorded(self) -> bool:
        """False if only bulk copies are recorded."""
        return self.copies is None

    @property
    def total_accesses(self) -> int | None:
        """Accesses of all threads, kept or not; None where the result does not tell it of all of them."""
        if self.attempts is None or (self.attempts == UNKNOWN).any():
            return None
        return int(self.attempts.sum(dtype=np.int64))

    @property
    def capacity(self) -> int:
        """Records that a thread may save."""
        return int(self.records.shape[2])

    def parts(self, selection: Selection = Selection()) -> list[RecordPart]:
        """The records of a selection, in parts that cover it once."""
        blocks, threads = self.records.shape[:2]
        if selection.block is not None:
            lanes = slice(0, threads)
            if selection.warp is not None:
                lanes = slice(selection.warp * WARP_SIZE, min((selection.warp + 1) * WARP_SIZE, threads))
            return [RecordPart(self, slice(selection.block, selection.block + 1), lanes, selection.line)]
        step = max(_PART_RECORDS // max(threads * self.capacity, 1), 1)
        all_lanes = slice(0, threads)
        return [
            RecordPart(self, slice(block, min(block + step, blocks)), all_lanes, selection.line)
            for block in range(0, blocks, step)
        ]

    def unwrapped(self) -> Accesses:
        """Return the accesses for warps that run for a long time."""
        return replace(self, has_long_warps=True)


@dataclass(slots=True)
class RecordPart:
    """The records of some threads of some blocks: new arrays of one element per record that was kept."""

    accesses: Accesses
    blocks: slice
    threads: slice
    line: int | None = None
    """The instruction whose records they are; None for all."""
    _records: NDArray[Any] | None = field(default=None, repr=False)
    _mask: NDArray[np.bool_] | None = field(default=None, repr=False)

    @property
    def max_records(self) -> int:
        """The most records that there may be."""
        return _length(self.blocks) * _length(self.threads) * self.accesses.capacity

    def pieces(self) -> Iterator[RecordPart]:
        """The part in pieces that fit the caches of a processor."""
        step = max(_PIECE_RECORDS * _length(self.blocks) // max(self.max_records, 1), 1)
        for block in range(self.blocks.start, self.blocks.stop, step):
            yield RecordPart(self.accesses, slice(block, min(block + step, self.blocks.stop)), self.threads, self.line)

    def sample(self, share: int) -> RecordPart:
        """The records of one in ``share`` threads of a block, one at least; in each part others."""
        share = min(share, _length(self.threads))
        offset = self.blocks.start * 3 % share
        threads = slice(self.threads.start + offset, self.threads.stop, share)
        return RecordPart(self.accesses, self.blocks, threads, self.line)

    def release(self) -> None:
        """Let go of the records that were read for this part."""
        self._records = self._mask = None

    def _counts(self) -> NDArray[Any] | None:
        """Records that each thread kept; None if the result does not have all counts."""
        if self.accesses.attempts is None:
            return None
        attempts = self.accesses.attempts[self.blocks, self.threads]
        return None if (attempts == UNKNOWN).any() else np.minimum(attempts, self.accesses.capacity)

    def _read_records(self) -> NDArray[Any]:
        """Return the records, up to the most that a thread kept; ``_mask`` is None if all threads kept as many."""
        if self._records is None:
            records = self.accesses.records[self.blocks, self.threads]
            counts = self._counts()
            if counts is not None:
                records = records[:, :, : int(counts.max(initial=0))]
                if counts.min(initial=records.shape[2]) < records.shape[2]:
                    self._mask = np.arange(records.shape[2]) < counts[:, :, np.newaxis]
            else:
                mask = records["clock" if self.accesses.is_compact else "address"] != 0
                self._mask = None if mask.all() else mask
            if self.line is not None and not self.accesses.is_compact:
                of_line = records["line"] == self.line
                self._mask = of_line if self._mask is None else self._mask & of_line
            self._records = records
        return self._records

    def _masked(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.reshape(-1) if self._mask is None else values[self._mask]

    @property
    def record_count(self) -> int:
        """Records."""
        counts = self._counts()
        if counts is not None and self.line is None:
            return int(counts.sum(dtype=np.int64))
        records = self._read_records()
        return records.size if self._mask is None else int(np.count_nonzero(self._mask))

    def addresses(self) -> NDArray[np.uint64]:
        """The first byte of each access; of compact records the first byte of its sector."""
        records = self._read_records()
        if not self.accesses.is_compact:
            return self._masked(records["address"].copy())
        low_bits = self._masked(records["granule"].astype(np.uint64))
        low_bits <<= np.uint64(5)
        return complete_addresses(low_bits, self.accesses.memory)

    def lines(self) -> NDArray[np.uint32] | None:
        """The line of ``pruned.ptx`` of each access; compact records do not tell."""
        records = self._read_records()
        return None if self.accesses.is_compact else self._masked(records["line"].copy())

    def times(self) -> NDArray[np.uint32] | NDArray[np.int64]:
        """Cycles on the common axis: u4 if none is so late that it needs more, else i8."""
        records = self._read_records()
        start = self._thread_values(self.accesses.start).astype(np.uint32)
        entry = self._thread_values(self.accesses.entry)
        clocks = records["clock"].copy()
        if not self.accesses.has_long_warps:
            clocks += entry.astype(np.uint32) - start
            return self._masked(clocks)
        clocks -= start
        turns = np.cumsum(np.diff(clocks.astype(np.int64), axis=2, prepend=0) < 0, axis=2)
        return self._masked(clocks + (turns << 32) + entry)

    def time_range(self) -> tuple[int, int] | None:
        """The times of the first and the last access; None without any."""
        counts = self._counts()
        if counts is None or self.accesses.has_long_warps or self.line is not None:
            times = self.times()
            return (int(times.min()), int(times.max())) if len(times) else None
        has_records = counts > 0
        if not has_records.any():
            return None
        clocks = self.accesses.records[self.blocks, self.threads]["clock"]
        delta = self._thread_values(self.accesses.entry).astype(np.uint32)
        delta -= self._thread_values(self.accesses.start).astype(np.uint32)
        last_clocks = np.take_along_axis(clocks, np.maximum(counts, 1).astype(np.int64)[:, :, np.newaxis] - 1, axis=2)
        first_clocks = clocks[:, :, :1] + delta
        return int(first_clocks[has_records].min()), int((last_clocks + delta)[has_records].max())

    def warps(self) -> NDArray[np.int64]:
        """The warp of each record, counted through the grid (block × warps per block + warp)."""
        records = self._read_records()
        blocks, threads = (np.arange(span.start, span.stop, span.step) for span in (self.blocks, self.threads))
        numbers = blocks[:, np.newaxis] * self.accesses.start.shape[1] + threads // WARP_SIZE
        return self._masked(np.broadcast_to(numbers[:, :, np.newaxis], records.shape))

    def warp_shape(self) -> tuple[int, int, int] | None:
        """(warps, lanes, records per lane) of the arrays, if all warps are whole and all lanes kept as many records."""
        records = self._read_records()
        blocks, threads, count = records.shape
        complete = self._mask is None and threads % WARP_SIZE == 0 and self.threads.step in (None, 1)
        return (blocks * threads // WARP_SIZE, WARP_SIZE, count) if complete and count else None

    def _thread_values(self, warps: NDArray[Any]) -> NDArray[Any]:
        """Values of warps for their threads: shape (blocks, threads, 1)."""
        return np.repeat(warps[self.blocks], WARP_SIZE, axis=1)[:, self.threads, np.newaxis]


def _length(piece: slice) -> int:
    return len(range(piece.start, piece.stop, piece.step or 1))


def complete_addresses(low_bits: NDArray[np.uint64], memory: LaunchMemory) -> NDArray[np.uint64]:
    """Addresses whose lower bits are ``low_bits``, with the upper bits of an allocation that then contains them.

    Those that are in none get the upper bits of most of the allocated memory; without allocations they stay offsets.
    """
    sizes: dict[int, int] = {}
    for allocation in memory.allocations:
        sizes[allocation.start >> _GRANULE_BITS] = sizes.get(allocation.start >> _GRANULE_BITS, 0) + allocation.size
    known_high_bits = sorted(sizes, key=lambda bits: -sizes[bits]) or [0]
    addresses = low_bits | np.uint64(known_high_bits[0] << _GRANULE_BITS)
    if len(known_high_bits) > 1:
        allocation_starts = np.array([allocation.start for allocation in memory.allocations], dtype=np.uint64)
        allocation_ends = np.array([allocation.end for allocation in memory.allocations], dtype=np.uint64)
        for upper in reversed(known_high_bits):
            candidates = low_bits | np.uint64(upper << _GRANULE_BITS)
            number = np.maximum(np.searchsorted(allocation_starts, candidates, side="right") - 1, 0)
            is_allocated = (candidates >= allocation_starts[number]) & (candidates < allocation_ends[number])
            addresses[is_allocated] = candidates[is_allocated]
    return addresses


def read_accesses(
    result: Result,
    *,
    compact: bool,
    memory: LaunchMemory,
    simulated: bool,
    clock_khz: int | None = None,
    copies: BulkCopies | None = None,
) -> Accesses:
    """The accesses of one launch; TraceError if the maps are not those of the probe.

    ``clock_khz`` is the device's highest SM clock, for launches too short to measure the rate. ``copies`` are those of
    a result that has nothing else.
    """
    maps = [number for number, section in enumerate(result.sections) if section.level == "thread"]
    warp_map = next((place for place, section in enumerate(result.sections) if section.level == "warp"), None)
    if (not maps and copies is None) or warp_map is None:
        raise TraceError(
            f"{result.path}: dmat needs one map per thread and one map per warp, but the file has {result.layout}"
        )
    warp_records = result.one_record(warp_map, WARP)
    count_map = next((place for place in maps[1:] if result.sections[place].slot_bytes == 4), None)
    attempts = None if count_map is None else result.one_record(count_map, "<u4")
    try:
        clocks, entry, rate = _entries(warp_records, simulated=simulated, clock_khz=clock_khz)
    except TraceError as error:
        raise TraceError(f"{result.path}: {error}") from None
    return Accesses(
        result=result,
        records=_records_of(result, maps, COMPACT if compact else RECORD),
        attempts=attempts,
        entry=entry,
        start=warp_records["start"],
        clocks=clocks,
        cycles_per_ns=rate,
        memory=memory,
        copies=copies,
    )


def _records_of(result: Result, maps: Sequence[int], dtype: np.dtype[Any]) -> Records:
    """The records of threads; of a result without such a map none."""
    if not maps:
        return Records(result, None, dtype, (len(result.blocks), result.header.threads, 0))
    return Records(result, maps[0], *result.form(maps[0], dtype))


def accesses_of(probe_result: ProbeResult, memory: LaunchMemory | None = None) -> Accesses:
    """The accesses of a result, of this probe or its compact variant. ``memory`` names what addresses are of."""
    return read_accesses(
        probe_result.result,
        compact=probe_result.probe == COMPACT_NAME,
        memory=memory or LaunchMemory(),
        simulated=probe_result.simulated,
        clock_khz=probe_result.clock_khz,
        copies=read_copies(
            probe_result.result, probe_result.kernel.folder, probe_result.kernel.trace, probe_result.launch
        ),
    )


def _entries(
    warp_records: NDArray[Any], *, simulated: bool, clock_khz: int | None
) -> tuple[ClockAxis, NDArray[np.int64], float | None]:
    """Return the start of each warp in cycles since the first, the alignment of the SMs, and the clock rate."""
    start, sm = warp_records["start"].reshape(-1), warp_records["sm"].reshape(-1)
    ran = start > 0
    entry = np.zeros(start.shape, dtype=np.int64)
    if not ran.any():
        return ClockAxis(np.zeros(0, dtype=np.int64), 0, "shared", 0), entry.reshape(warp_records.shape), None
    sms, sm_index = distinct_sms(sm[ran])
    numbers = sms.astype(np.int32)
    first_clocks = np.full(len(numbers), np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(first_clocks, sm_index, start[ran])
    rate = None
    if simulated:
        clocks = shared_clock(numbers, first_clocks)
    else:
        clocks = clock_domains(numbers, first_clocks)
        by_timer = align_clocks(sm[ran], start[ran], warp_records["time"].reshape(-1)[ran], clock_khz)
        if by_timer is not None:
            clocks = min(clocks, by_timer.clocks(), key=_clock_error)
            rate = None if by_timer.rate_error is None else 1 / by_timer.ns_per_cycle
    entry[ran] = (start[ran] - first_clocks[sm_index]).view(np.int64) + clocks.shift[sm_index]
    return clocks, entry.reshape(warp_records.shape), rate


def _clock_error(clocks: ClockAxis) -> float:
    """The error, as large as can be where it is not known."""
    return np.inf if clocks.error is None else clocks.error
