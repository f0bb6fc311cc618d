"""Global memory requests and sectors, as hardware counters define them, and the wasted sectors of each line.

    requests  a load or store that a warp executed with at least one lane
              l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum (st)
    sectors   the distinct 32-byte sectors that the lanes of a request touch, added up over requests
              l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum (st)
    cp.async  is a load for these counters; its part is counted separately, too
    sectors per request = sectors / requests
    ideal     the fewest sectors that the bytes of the lanes fit into, request by request
    wasted    sectors - ideal; its share is that of the sectors

32 lanes with 4 bytes each, side by side, touch 4 sectors; 8 bytes 8, 16 bytes 16, and waste none; a lane in a sector of
its own gives 32. Lanes that share an address need no more than they touch. Results of older versions have no ideal: by
line it is then that of 32 lanes, so that at least as much is wasted as is said; of whole launches it is not known.
Bulk copies and boxes of tensor maps are not requests of these counters: their sectors are those of the rows inside
the tensor, counted by themselves. ``matrix_accesses`` are ``wmma.load`` and ``wmma.store`` in global memory, which
these values leave out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.probekit.lines import ShareValue
from tui_probe.records.copied_boxes import sector_counts
from tui_probe.records.counter_sums import (
    CounterSums,
    CountsByLine,
    counts_by_line,
    line_sums,
    ratio,
    site_dtype,
    sum_records,
    sums_by_source,
)
from tui_probe.records.probed_sites import access_lines
from tui_probe.trace.launch_shape import WARP_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.records.copied_boxes import BulkCopies
    from tui_probe.records.counter_sums import LineSums
    from tui_probe.records.probed_sites import AccessLine
    from tui_probe.trace.results import Result

_COUNTS: Final = (
    "load_requests", "load_sectors", "store_requests", "store_sectors", "copy_requests", "copy_sectors",
)  # fmt: skip
_IDEALS: Final = ("load_ideal", "store_ideal", "copy_ideal")
_EXCLUDED_COUNTS: Final = ("matrix_accesses", "generic_accesses")
_BULK: Final = ("bulk_copies", "bulk_load_sectors", "bulk_store_sectors", "unsized_copies")
RECORD: Final = np.dtype([(name, "<u4") for name in (*_COUNTS, *_IDEALS, *_EXCLUDED_COUNTS, *_BULK, "threads")])
"""Record of ``gmem_sectors`` per warp: sums over its lanes."""
RECORD_WITHOUT_BULK: Final = np.dtype([(name, "<u4") for name in (*_COUNTS, *_IDEALS, *_EXCLUDED_COUNTS, "threads")])
"""Record of ``gmem_sectors`` before it counted bulk copies."""
RECORD_WITHOUT_IDEAL: Final = np.dtype([(name, "<u4") for name in (*_COUNTS, *_EXCLUDED_COUNTS, "threads")])
"""Record of ``gmem_sectors`` before it had the ideal number of sectors."""
SITE: Final = site_dtype(*_COUNTS, "excess", *_EXCLUDED_COUNTS, *_BULK)
"""Record of ``gmem_sectors_by_line`` per instruction. ``excess`` are the sectors beyond the ideal number, of whichever
kind the instruction is.
"""
SITE_WITHOUT_BULK: Final = site_dtype(*_COUNTS, "excess", *_EXCLUDED_COUNTS)
SITE_WITH_IDEALS: Final = site_dtype(*_COUNTS, *_IDEALS, *_EXCLUDED_COUNTS)
"""Record before that, which has the ideal numbers themselves."""
SITE_WITHOUT_IDEAL: Final = site_dtype(*_COUNTS, *_EXCLUDED_COUNTS)
_GLOBAL_IN_MACHINE_CODE: Final = ("LDG", "STG", "UBLK", "UTMA")
"""Prefixes of SASS opcodes that are counted: LDG, LDGSTS, STG, and bulk copies."""


@dataclass(frozen=True, slots=True)
class MemorySectors:
    """Requests and sectors of one launch; loads include ``cp.async``, which is also listed under copies. All are None
    where only bulk copies are recorded.
    """

    load_requests: int | None
    load_sectors: int | None
    store_requests: int | None
    store_sectors: int | None
    copy_requests: int | None
    copy_sectors: int | None
    matrix_accesses: int | None
    generic_accesses: int | None
    threads_missing: int
    load_ideal: int | None = None
    """The minimum sectors; None where the probe did not tell."""
    store_ideal: int | None = None
    bulk_copies: int | None = None
    """Bulk copies of known size, executed instructions; None where the probe did not count them."""
    bulk_load_sectors: int | None = None
    bulk_store_sectors: int | None = None
    unsized_copies: int | None = None
    """Copies by tensor map whose size is not known; with any, the sectors of bulk copies are None."""

    @property
    def has_copies_only(self) -> bool:
        """True if only bulk copies are recorded."""
        return self.load_requests is None

    @property
    def wasted_of_loads(self) -> float | None:
        """The share of the sectors of loads that no one asked for."""
        return _wasted_share(self.load_sectors, self.load_ideal)

    @property
    def wasted_of_stores(self) -> float | None:
        """Excessive sectors of stores as a share of theirs; None if unknown."""
        return _wasted_share(self.store_sectors, self.store_ideal)

    @property
    def sectors_per_load(self) -> float | None:
        """Sectors per load request."""
        return ratio(self.load_sectors, self.load_requests)

    @property
    def sectors_per_store(self) -> float | None:
        """Sectors per store request."""
        return ratio(self.store_sectors, self.store_requests)

    @property
    def sectors_per_copy(self) -> float | None:
        """Sectors per request of ``cp.async``."""
        return ratio(self.copy_sectors, self.copy_requests)


def analyse(result: Result) -> MemorySectors:
    """The requests and sectors of one launch; TraceError if map 0 holds no records of ``gmem_sectors``."""
    sums = _sum_launch(result)
    return _sectors_of_sums(sums.totals, sums.threads_missing)


def analyse_copies(copies: BulkCopies) -> MemorySectors:
    """The sectors of a launch whose records are bulk copies only."""
    sectors, unknown = sector_counts(copies.boxes), int((~copies.is_known).sum())
    loads, stores = (None if unknown else copies.sum(sectors, loads=is_load) for is_load in (True, False))
    return MemorySectors(
        **dict.fromkeys((*_COUNTS, *_EXCLUDED_COUNTS)),
        threads_missing=WARP_SIZE * copies.warps_missing,
        bulk_copies=None if copies.total is None else copies.total - unknown,
        bulk_load_sectors=loads,
        bulk_store_sectors=stores,
        unsized_copies=unknown,
    )


def analyse_lines(result: Result, sites: Sequence[int], folder: Path | None = None) -> CountsByLine[MemorySectors]:
    """Counts by line of ``gmem_sectors_by_line``; see :func:`counter_sums.line_sums`. Raises TraceError."""
    records = (SITE, SITE_WITHOUT_BULK, SITE_WITH_IDEALS, SITE_WITHOUT_IDEAL)
    record = next((record for record in records if result.maps and _fits(result, record)), SITE)
    convert = _add_ideals if record in (SITE, SITE_WITHOUT_BULK) else None
    lines = line_sums(result, record, "gmem_sectors_by_line", sites, folder, convert)
    record = _converted_dtype(record) if convert else record
    return counts_by_line(lines, record, lambda sums: _sectors_of_sums(sums, threads_missing=0), sectors_per_request)


def _add_ideals(records: NDArray[Any]) -> NDArray[Any]:
    """The records with the ideal number of sectors of each kind."""
    converted = np.zeros(len(records), _converted_dtype(records.dtype))
    for name in set(converted.dtype.names or ()) - set(_IDEALS):
        converted[name] = records[name]
    for kind in ("load", "store", "copy"):
        executed: NDArray[np.bool_] = records[f"{kind}_requests"] > 0
        sectors: NDArray[np.uint64] = records[f"{kind}_sectors"][executed]
        excess: NDArray[np.uint64] = records["excess"][executed]
        converted[f"{kind}_ideal"][executed] = sectors - excess
    return converted


def _converted_dtype(record: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the records that ``_add_ideals`` returns for records of type ``record``."""
    bulk = _BULK if _BULK[0] in (record.names or ()) else ()
    return site_dtype(*_COUNTS, *_IDEALS, *_EXCLUDED_COUNTS, *bulk)


def _sum_launch(result: Result) -> CounterSums:
    """The sums of a launch, whichever record they are of."""
    errors = []
    for record in (RECORD, RECORD_WITHOUT_BULK, RECORD_WITHOUT_IDEAL):
        try:
            return sum_records(result, record, "gmem_sectors")
        except TraceError as error:
            errors.append(error)
    raise errors[0]


def _fits(result: Result, record: np.dtype[Any]) -> bool:
    try:
        return result.sites(0, record) is not None
    except TraceError:
        return False


def _wasted_share(sectors: int | None, ideal: int | None) -> float | None:
    return None if ideal is None or sectors is None else ratio(sectors - ideal, sectors)


def _sectors_of_sums(sums: dict[str, int], threads_missing: int) -> MemorySectors:
    loads = {
        f"load_{quantity}": sums[f"load_{quantity}"] + sums[f"copy_{quantity}"] for quantity in ("requests", "sectors")
    }
    matrices = {"matrix_accesses": sums["matrix_accesses"] // WARP_SIZE}
    counts = {name: sums[name] for name in (*_COUNTS, *_EXCLUDED_COUNTS)} | loads | matrices
    has_ideal = "load_ideal" in sums
    unsized = sums.get("unsized_copies")
    return MemorySectors(
        **counts,
        threads_missing=threads_missing,
        load_ideal=sums["load_ideal"] + sums["copy_ideal"] if has_ideal else None,
        store_ideal=sums["store_ideal"] if has_ideal else None,
        bulk_copies=sums.get("bulk_copies"),
        bulk_load_sectors=None if unsized else sums.get("bulk_load_sectors"),
        bulk_store_sectors=None if unsized else sums.get("bulk_store_sectors"),
        unsized_copies=unsized,
    )


def is_counted(line: LineSums) -> bool:
    """Return True if the sectors of a line are counted; not of wmma, generic accesses, boxes of unknown size."""
    if line.sums.get("unsized_copies"):
        return False
    if line.opcode is None or line.opcode.startswith(_GLOBAL_IN_MACHINE_CODE):
        return True
    return ".global" in line.opcode and not line.opcode.startswith("wmma.")


def requests_and_sectors(line: LineSums) -> tuple[int, int]:
    """Return requests and sectors of loads, stores and copies."""
    kinds = ("load", "store", "copy")
    return line.total(*(f"{kind}_requests" for kind in kinds)), line.total(*(f"{kind}_sectors" for kind in kinds))


def sectors_per_request(line: LineSums) -> float | None:
    """Sectors per request of one line; None if it was never executed."""
    requests, sectors = requests_and_sectors(line)
    return ratio(sectors, requests)


@dataclass(frozen=True, slots=True)
class LineWaste:
    """One line: its ``access`` in words, such as ``load 4 B``, and its sectors; None what is not known."""

    line: LineSums
    access: str | None
    requests: int
    sectors: int
    ideal: int | None

    @property
    def wasted(self) -> int | None:
        """Sectors that no one asked for."""
        return None if self.ideal is None else self.sectors - self.ideal

    @property
    def share(self) -> ShareValue | None:
        """The part of its sectors that is."""
        part = None if self.wasted is None else ratio(self.wasted, self.sectors)
        return None if part is None else ShareValue(part)


def waste_of_lines(lines: Iterable[LineSums], folder: Path | None) -> list[LineWaste]:
    """The lines, what is wasted most first; those that are not counted last."""
    code = access_lines(folder) if folder else {}
    line_wastes = [_line_waste(line, code.get(line.line)) for line in lines]
    return sorted(line_wastes, key=lambda waste: (not is_counted(waste.line), -(waste.wasted or 0), -waste.sectors))


def _line_waste(line: LineSums, code: AccessLine | None) -> LineWaste:
    requests, sectors = requests_and_sectors(line)
    if copies := line.sums.get("bulk_copies"):  # lanes waste nothing there
        sectors = line.total("bulk_load_sectors", "bulk_store_sectors")
        return LineWaste(line, None if code is None else code.kind, copies, sectors, sectors)
    size = code.bytes if code else None
    access = None if code is None else code.kind + ("" if size is None else f" {size} B")
    return LineWaste(line, access, requests, sectors, _ideal(line, size, requests, sectors))


def _ideal(line: LineSums, size: int | None, requests: int, sectors: int) -> int | None:
    """Return the ideal sectors that the probe recorded; else that of 32 lanes of ``size`` bytes; None if unknown."""
    if all(name in line.sums for name in _IDEALS):
        return line.total(*_IDEALS)
    return None if size is None else min(size * requests, sectors)


def waste_by_source(lines: Iterable[LineSums], folder: Path | None) -> list[LineSums]:
    """The lines of source that waste sectors, most first: sums of requests, sectors, ideal, wasted."""
    rows = [
        replace(waste.line, sums={"requests": waste.requests, "sectors": waste.sectors, "ideal": waste.ideal or 0,
                                  "wasted": waste.wasted})
        for waste in waste_of_lines(lines, folder)
        if waste.wasted and is_counted(waste.line)
    ]  # fmt: skip
    return sums_by_source(rows, lambda line: line.sums["wasted"])
