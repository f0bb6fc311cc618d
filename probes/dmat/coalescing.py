"""Requests and sectors of recorded accesses: of each PTX line, of each record, and those that are wasted.

    request   one execution of an access by a warp: the records of its lanes that read the same clock. A warp issues
              one instruction at a time, so lanes that read one clock read it together, and those that came apart read
              others; no counting of iterations is needed, which goes wrong once lanes have come apart.
    sectors   of a request: the distinct 32-byte sectors that its lanes touch. PTX accesses are aligned and at most
              32 bytes wide, so a lane touches one.
    bytes     what the lanes asked for: accesses × bytes of the instruction
    used      bytes / (32 · sectors): how much of what is moved was asked for; more than 1 where lanes share addresses
    ideal     the fewest sectors that the bytes of a request's lanes fit into, of an instruction whose bytes are known
    wasted    sectors - ideal, at least 0

For loads and stores these are what ``gmem_sectors`` and the hardware's counters count, told apart by instruction. They
are whole if every thread kept all its records; otherwise they are of the first accesses of each thread.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.records.counter_sums import ratio
from tui_probe.records.probed_sites import access_lines
from tui_probe.trace.launch_shape import SECTOR_BYTES, WARP_SIZE

from .boxes import Boxes, kind_of, read_boxes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.ptx.instruction_facts import AccessKind
    from tui_probe.records.probed_sites import AccessLine

    from .accesses import Accesses, RecordPart

    LineNumbers = NDArray[np.uint32]

MAX_TABLE_BYTES: Final = 256 << 20
"""Bytes of a result up to which one who did not ask for the table waits for it."""
_SECTOR_BITS: Final = np.uint64(5)


@dataclass(frozen=True, slots=True)
class LineAccesses:
    """Accesses of one instruction in one launch. ``code`` is None if ``pruned.ptx`` does not have it."""

    line: int
    code: AccessLine | None
    accesses: int
    requests: int
    sectors: int
    ideal_sectors: int = 0
    """Sectors that the bytes of each request's lanes fit into, at most those touched; 0 where no bytes are known."""

    @property
    def bytes(self) -> int | None:
        """Bytes that its threads asked for; of a ``cp.async`` that may read less than it writes, at most."""
        size = self.code.bytes if self.code else None
        return None if size is None else size * self.accesses

    @property
    def sectors_per_request(self) -> float | None:
        return ratio(self.sectors, self.requests)

    @property
    def ideal(self) -> int | None:
        """The fewest sectors that the bytes fit into, request by request; None where that is unknown."""
        unknown = self.bytes is None or self.code is None or self.code.kind == "atomic"
        return None if unknown else self.ideal_sectors

    @property
    def excessive_sectors(self) -> int | None:
        """Sectors beyond those. None for atomics: one lane's addition to a sum wastes nothing."""
        return None if self.ideal is None else self.sectors - self.ideal

    @property
    def used_share(self) -> float | None:
        """The part of the moved bytes that was asked for."""
        return None if self.bytes is None else ratio(self.bytes, SECTOR_BYTES * self.sectors)


@dataclass(frozen=True, slots=True)
class LineCopies:
    """Bulk copies of one instruction in one launch; ``bytes`` and ``sectors`` are of those of known size."""

    line: int
    code: AccessLine | None
    copies: int
    bytes: int
    sectors: int
    unknown: int

    @property
    def text(self) -> str:
        """``bulk load``, ``bulk store``."""
        return "bulk copy" if self.code is None else f"bulk {kind_of(self.code)}"


def copies_by_line(boxes: Boxes, code: Mapping[int, AccessLine]) -> tuple[LineCopies, ...]:
    """Add up bulk copies by instruction, that with most bytes first."""
    recorded_lines: NDArray[np.uint32] = boxes.records["line"]
    lines, line_index = np.unique(recorded_lines, return_inverse=True)
    sums = [
        np.bincount(line_index, weights, len(lines)).astype(np.int64).tolist()
        for weights in (None, boxes.bytes, boxes.sectors(), ~boxes.is_known)
    ]
    places = (code[line].line if line in code else line for line in lines.tolist())
    rows = [LineCopies(line, code.get(line), *numbers) for line, *numbers in zip(places, *sums, strict=True)]
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.line)))


@dataclass(frozen=True, slots=True)
class AccessTable:
    """All instructions that accessed global memory, the one with the most sectors first.

    ``accesses`` were made (None if not known of all threads), ``kept`` of them recorded: the rows are of those. Both
    and ``capacity`` are None if only bulk copies were recorded.
    ``silent`` are the lines of accesses that were not executed; empty where records are missing that could tell.
    """

    rows: tuple[LineAccesses, ...]
    accesses: int | None
    kept: int | None
    capacity: int | None
    """Records that a thread has room for."""
    threads_missing: int = field(default=0)
    silent: tuple[int, ...] = ()
    footprint: int | None = None
    """Bytes of the distinct sectors that were touched; None unless every access was recorded, and with bulk copies."""
    copies: tuple[LineCopies, ...] = ()
    """Bulk copies by instruction, that with most bytes first."""

    @property
    def box_copies(self) -> int:
        """Number of bulk copies that were recorded."""
        return sum(row.copies for row in self.copies)

    @property
    def box_bytes(self) -> int | None:
        """Bytes of all recorded bulk copies; None if the size of some is not known."""
        return None if self.unsized_copies else sum(row.bytes for row in self.copies)

    @property
    def unsized_copies(self) -> int:
        """Number of bulk copies of unknown size."""
        return sum(row.unknown for row in self.copies)

    @property
    def requests(self) -> int | None:
        """Number of requests of all instructions; None if only bulk copies were recorded."""
        return None if self.kept is None else sum(row.requests for row in self.rows)

    @property
    def sectors(self) -> int | None:
        """Number of sectors of all instructions, likewise."""
        return None if self.kept is None else sum(row.sectors for row in self.rows)

    @property
    def worst(self) -> LineAccesses | None:
        """The instruction with most sectors per request."""
        return max(self.rows, key=lambda row: row.sectors_per_request or 0, default=None)

    def total(self, kind: AccessKind) -> tuple[int, int]:
        """Requests and sectors of all instructions of a kind."""
        rows = [row for row in self.rows if row.code and row.code.kind == kind]
        return sum(row.requests for row in rows), sum(row.sectors for row in rows)


def worst_access(rows: Iterable[LineAccesses]) -> tuple[LineAccesses, int] | None:
    """The instruction that wastes most sectors, and how many; None if none is known to waste any.

    The most sectors per request are not it: an access of 16 bytes per lane touches 16 sectors and wastes none.
    """
    excessive = [(row, excess) for row in rows if (excess := row.excessive_sectors)]
    return max(excessive, key=lambda pair: pair[1], default=None)


def by_line(accesses: Accesses, folder: Path | None) -> AccessTable:
    """The table of one launch, read part by part. ``folder`` is that of its kernel in the trace.

    TraceError for results of the compact variant, which do not tell instructions.
    """
    if accesses.is_compact:
        raise TraceError(f"{accesses.result.path}: compact records do not name the instructions. Run with -p dmat")
    code = access_lines(folder) if folder else {}
    counts: dict[str, Counter[int]] = {name: Counter() for name in ("accesses", "requests", "sectors", "ideal")}
    sectors = np.zeros(0, dtype=np.uint64)
    for part in accesses.parts():
        sectors = np.union1d(sectors, part.addresses() >> _SECTOR_BITS)
        _add_requests(counts, _requests_of_part(part), code)
        part.release()
    rows = [
        LineAccesses(
            code[line].line if line in code else line, code.get(line), *(counts[name][line] for name in counts)
        )
        for line in counts["accesses"]
    ]
    rows.sort(key=lambda row: (-row.sectors, row.line))
    recorded = sum(row.accesses for row in rows)
    access_line_numbers = (
        access.line for access in code.values() if "global" in access.spaces and "bulk" not in access.opcode.split(".")
    )
    silent = (
        tuple(line for line in access_line_numbers if line not in counts["accesses"])
        if recorded == accesses.total_accesses
        else ()
    )
    boxes = read_boxes(accesses)
    copies = () if boxes is None else copies_by_line(boxes, code)
    if not accesses.are_recorded:
        return AccessTable((), None, None, None, copies=copies)
    footprint = SECTOR_BYTES * len(sectors) if recorded == accesses.total_accesses and not copies else None
    table = AccessTable(
        tuple(rows), accesses.total_accesses, recorded, accesses.capacity, silent=silent, footprint=footprint
    )
    return replace(table, copies=copies)


@dataclass(frozen=True, slots=True)
class _Requests:
    """Requests: line of each, lanes that made it, and number of sectors that they touched."""

    lines: LineNumbers
    lanes: NDArray[np.int64]
    sectors: NDArray[np.int64]


def _add_requests(counts: dict[str, Counter[int]], requests: _Requests, code: Mapping[int, AccessLine]) -> None:
    """Add the requests of a part to the counts of their lines."""
    numbers, line_index = np.unique(requests.lines, return_inverse=True)
    sizes = np.array([(code[line].bytes or 0) if line in code else 0 for line in numbers.tolist()], dtype=np.int64)
    ideal = np.minimum(-(-requests.lanes * sizes[line_index] // SECTOR_BYTES), requests.sectors)
    for name, amounts in zip(
        counts, (requests.lanes, np.ones_like(requests.lanes), requests.sectors, ideal), strict=True
    ):
        sums = np.bincount(line_index, weights=amounts, minlength=len(numbers)).astype(np.int64)
        counts[name].update(dict(zip(numbers.tolist(), sums.tolist(), strict=True)))


def _requests_of_part(part: RecordPart) -> _Requests:
    """The requests of a part."""
    lines, times = part.lines(), part.times()
    sectors = part.addresses() >> _SECTOR_BITS
    if lines is None or not len(lines):
        no_counts = np.zeros(0, dtype=np.int64)
        return _Requests(np.zeros(0, dtype=np.uint32), no_counts, no_counts)
    shape = _lockstep_shape(part, times)
    if shape is not None:
        return _requests_of_whole_warps(lines.reshape(shape)[:, 0], sectors.reshape(shape))
    warps = part.warps()
    order = np.lexsort((sectors, times, warps))
    begins_request = _begins_request(warps[order], times[order])
    is_distinct = begins_request | _change_mask(sectors[order])
    first_records = np.flatnonzero(begins_request)
    lanes = np.diff(np.append(first_records, len(lines)))
    return _Requests(lines[order][first_records], lanes, np.add.reduceat(is_distinct, first_records, dtype=np.int64))


def _lockstep_shape(part: RecordPart, times: NDArray[Any]) -> tuple[int, int, int] | None:
    """(warps, lanes, records) of the records of a part if the lanes of all warps read their clocks together.

    Each record of such a warp is a request, and no sorting is needed to find it.
    """
    shape = part.warp_shape()
    if shape is None or not len(times):
        return None
    clocks = times.reshape(shape)
    return shape if (clocks == clocks[:, :1]).all() else None


def _begins_request(warps: NDArray[np.int64], times: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of the first record of each request, of records sorted by warp and time."""
    return _change_mask(warps) | _change_mask(times)


def _change_mask(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of the values that are not as the one before; the first is."""
    return np.append(True, values[1:] != values[:-1])


def _requests_of_whole_warps(lines: LineNumbers, sectors: NDArray[np.uint64]) -> _Requests:
    """Return the requests of warps whose lanes stay together: each of their records is a request.

    ``lines`` has shape (warps, records), ``sectors`` (warps, lanes, records).
    """
    sorted_sectors = np.sort(sectors.transpose(0, 2, 1), axis=2)
    numbers = 1 + np.count_nonzero(np.diff(sorted_sectors, axis=2), axis=2)
    lanes = np.full(lines.size, sectors.shape[1], dtype=np.int64)
    return _Requests(lines.reshape(-1), lanes, numbers.reshape(-1))


@dataclass(frozen=True, slots=True)
class AccessCount:
    """Numbers of all and of recorded accesses, available without reading the records."""

    accesses: int | None
    threads: int
    capacity: int
    threads_missing: int = 0


def table_or_count(accesses: Accesses, folder: Path | None) -> AccessTable | AccessCount:
    """The table if it takes no longer than a moment, else the numbers of accesses."""
    if accesses.is_compact or accesses.records.nbytes > MAX_TABLE_BYTES:
        return AccessCount(accesses.total_accesses, accesses.result.threads, accesses.capacity)
    return by_line(accesses, folder)


# Values per record, for pictures of where accesses do not coalesce.


def sectors_of_requests(part: RecordPart) -> NDArray[np.float64]:
    """Return, per record, the distinct 32-byte sectors that its request touched (f8), in the order of the records."""
    addresses, times = part.addresses(), part.times()
    shape = _lockstep_shape(part, times)
    if shape is not None:
        return _sectors_of_whole_warps((addresses >> _SECTOR_BITS).reshape(shape))
    return sectors_by_request(addresses, times, part.warps())


def lanes_of_requests(part: RecordPart) -> NDArray[np.float64]:
    """Return, per record, the records of its request (f8)."""
    times = part.times()
    if _lockstep_shape(part, times) is not None:
        return np.full(len(times), float(WARP_SIZE))
    if not len(times):
        return np.zeros(0, dtype=np.float64)
    warps = part.warps()
    order = np.lexsort((times, warps))
    request = np.cumsum(_begins_request(warps[order], times[order])) - 1
    return _restore_order(np.bincount(request)[request], order)


def sectors_by_request(
    addresses: NDArray[np.uint64], times: NDArray[Any], warps: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return, per record, the distinct sectors of its request, for any records if all of a request are there."""
    if not len(times):
        return np.zeros(0, dtype=np.float64)
    sectors = addresses >> _SECTOR_BITS
    order = np.lexsort((sectors, times, warps))
    begins_request = _begins_request(warps[order], times[order])
    is_distinct = begins_request | _change_mask(sectors[order])
    request = np.cumsum(begins_request) - 1
    return _restore_order(np.bincount(request, is_distinct)[request], order)


def _restore_order(values: NDArray[Any], order: NDArray[np.int64]) -> NDArray[np.float64]:
    """Values of sorted records, put back into the order of the records; ``order`` sorted these."""
    unsorted = np.empty(len(order), dtype=np.float64)
    unsorted[order] = values
    return unsorted


def _sectors_of_whole_warps(sectors: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Count the sectors of each record's request if warps stay together; ``sectors``: (warps, lanes, records)."""
    by_request = np.sort(sectors.transpose(0, 2, 1), axis=2)
    counts = 1 + np.count_nonzero(np.diff(by_request, axis=2), axis=2)
    return np.repeat(counts[:, np.newaxis], WARP_SIZE, axis=1).astype(np.float64).reshape(-1)


def ideal_lane_sectors(code: Mapping[int, AccessLine]) -> NDArray[np.float64]:
    """Return, by line, the sectors that a lane's access requests (f8); infinite if none can be excessive, or unknown.

    What is beyond the last line has the last value.
    """
    lane_sectors = np.full(max(code, default=0) + 2, np.inf)
    for line, access in code.items():
        if access.bytes is not None and access.kind != "atomic":
            lane_sectors[line] = access.bytes / SECTOR_BYTES
    return lane_sectors


def moved_shares(part: RecordPart) -> NDArray[np.float64]:
    """Return, per record, its share of the sectors that its request moves (f8)."""
    return sectors_of_requests(part) / lanes_of_requests(part)


def excessive_shares(part: RecordPart, lane_sectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, per record, its share of the excessive sectors of its request (f8); 0 if the records name no lines."""
    lines = part.lines()
    if lines is None:
        return np.zeros(part.record_count, dtype=np.float64)
    shares = moved_shares(part) - lane_sectors[np.minimum(lines, len(lane_sectors) - 1)]
    return np.maximum(shares, 0.0)
