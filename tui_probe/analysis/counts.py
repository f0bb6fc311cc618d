"""What the counting probes have in common: one record per warp, to which every thread of the warp adds when it leaves.

The last field of a record, ``threads``, is how many threads have done so. So a warp that counted nothing is told from
one whose threads did not exit, and the sums are known to be whole. Unless a run keeps all records (``--detail``), its
results have the sums alone, of the launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tui_probe.errors import TraceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.trace.results import Result


@dataclass(frozen=True, slots=True)
class Sums:
    """The fields of all records, added up: ``totals`` by name, without ``threads``."""

    totals: dict[str, int]
    threads_missing: int


def warp_records(result: Result, record: np.dtype[Any], probe: str) -> NDArray[Any]:
    """The records of map 0, shape (blocks, warps per block). TraceError if they are not of that probe."""
    if not result.maps:
        raise TraceError(f"{result.path}: it has no map, so no records of {probe}")
    _, (_, _, count) = result.form(0, record)
    if count != 1 or result.sections[0].level != "warp":
        raise TraceError(f"{result.path}: its records are not of {probe}, which keeps one per warp")
    return result.one_record(0, record)


def sums_of(record: np.dtype[Any], *more: str) -> np.dtype[Any]:
    """What a record becomes whose map is reduced to sums: u8 fields, ``more`` of them behind those of the record."""
    return np.dtype([(name, "<u8") for name in (*(record.names or ()), *more)])


def summed(result: Result, record: np.dtype[Any], probe: str, reduced: np.dtype[Any] | None = None) -> Sums:
    """Add up the records of a launch; of a sample of blocks, theirs alone.

    ``reduced`` is what the map is reduced to, where that is more than the sums of its fields.

    Raises TraceError if more threads left than were launched, for then the records are of two runs or of another probe,
    and if none did.
    """
    left = result.reduced(0, sums_of(record) if reduced is None else reduced) if result.maps else None
    records = warp_records(result, record, probe) if left is None else left.records
    names = record.names or ()
    totals = {name: int(records[name].sum(dtype=np.uint64)) for name in names}
    threads, launched = totals.pop("threads"), result.threads
    if threads > launched:
        raise TraceError(f"{result.path}: {threads} threads left, of {launched}: the records are not of one launch")
    if not threads:
        raise TraceError(f"{result.path}: no thread left a count; the kernel was cut off, or the probe did not run")
    return Sums(totals, launched - threads)


def ratio(part: int, whole: int) -> float | None:
    """``part / whole``, or None where there is nothing to divide by."""
    return part / whole if whole else None
