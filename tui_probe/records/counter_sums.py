"""Sums of the counters that warps record: of a launch, and of each line of PTX.

The last field of a record, ``exited_threads``, is how many threads have done so. So a warp that counted nothing is
distinguished from one whose threads did not exit, and the sums are known to be whole. Unless a run keeps all records
(``--detail``), its results have the sums only, of the launch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.records.probed_sites import probed_sites

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.trace.results import Result
    from tui_probe.trace.source_lines import SourceLine


@dataclass(frozen=True, slots=True)
class CounterSums:
    """The fields of all records, added up: ``totals`` by name, without ``threads``."""

    totals: dict[str, int]
    threads_missing: int


def warp_records(result: Result, record: np.dtype[Any], probe: str) -> NDArray[Any]:
    """The records of map 0, shape (blocks, warps per block). TraceError if they are not of that probe."""
    if not result.maps:
        raise TraceError(f"{result.path}: the file has no map, so it has no records of {probe}")
    _, (_, _, count) = result.form(0, record)
    if count != 1 or result.sections[0].level != "warp":
        raise TraceError(f"{result.path}: the records are not from {probe}, which saves one record per warp")
    return result.one_record(0, record)


def sums_dtype(record: np.dtype[Any], *extra_fields: str) -> np.dtype[Any]:
    """Record type of a map that is reduced to sums: u8 fields, ``extra_fields`` of them behind those of the record."""
    return np.dtype([(name, "<u8") for name in (*(record.names or ()), *extra_fields)])


def sum_records(result: Result, record: np.dtype[Any], probe: str, reduced: np.dtype[Any] | None = None) -> CounterSums:
    """Add up the records of a launch; of a sample of blocks, theirs only.

    ``reduced`` is what the map is reduced to, where that is more than the sums of its fields.

    Raises TraceError if more threads left than were launched, for then the records are of two runs or of another probe,
    and if none did.
    """
    reduced_map = result.reduced(0, sums_dtype(record) if reduced is None else reduced) if result.maps else None
    records = warp_records(result, record, probe) if reduced_map is None else reduced_map.records
    names = record.names or ()
    totals = {name: int(records[name].sum(dtype=np.uint64)) for name in names}
    exited_threads, launched_threads = totals.pop("threads"), result.threads
    if exited_threads > launched_threads:
        raise TraceError(
            f"{result.path}: {exited_threads} threads exited, but {launched_threads} were launched;"
            " the records are not from one launch"
        )
    if not exited_threads:
        raise TraceError(
            f"{result.path}: no thread saved a count; the kernel was interrupted, or the probe did not run"
        )
    return CounterSums(totals, launched_threads - exited_threads)


def ratio(part: int | None, total: int | None) -> float | None:
    """``part / whole``, or None where there is nothing to divide by, or one of them is unknown."""
    return part / total if total and part is not None else None


class CounterAnalysis(Protocol):
    """The analysis of one result of a counting probe."""

    @property
    def threads_missing(self) -> int:
        """Threads of the measured blocks that did not add what they counted."""


Analysis = TypeVar("Analysis", bound=CounterAnalysis)


@dataclass(frozen=True, slots=True)
class LineSums:
    """One line of ``pruned.ptx`` that a probe is at: its ``opcode`` with modifiers, None if it is unknown, and the
    ``sums`` by field. They were added to memory as instructions ran, so they include threads that did not exit.

    ``lines`` is the number of lines of PTX that were added up: more than one in :func:`sums_by_source`.
    """

    line: int
    opcode: str | None
    source: SourceLine | None
    sums: dict[str, int]
    lines: int = 1

    def total(self, *fields: str) -> int:
        """The sum of several fields."""
        return sum(self.sums[field] for field in fields)


@dataclass(frozen=True, slots=True)
class CountsByLine(Generic[Analysis]):
    """The analysis of a whole launch, as of the probe without lines, and the lines that it is the sum of.

    ``worst`` is the line that stands out, and by which value; None if no line was executed.
    """

    analysis: Analysis
    lines: tuple[LineSums, ...]
    worst: tuple[LineSums, float] | None

    @property
    def threads_missing(self) -> int:
        """Threads of the measured blocks that did not add what they counted."""
        return self.analysis.threads_missing


def line_sums(
    result: Result,
    record: np.dtype[Any],
    probe: str,
    sites: Sequence[int],
    folder: Path | None,
    convert: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
) -> tuple[LineSums, ...]:
    """The sums of map 0 by line, in the order of lines. ``sites`` are the lines of its records, from ``kernel.info``.

    ``folder`` is that of the kernel in the trace, for opcodes and source. ``convert`` makes other records of them,
    whose fields are added up. TraceError if the records are not of ``probe``, or not as many as ``sites``.
    """
    records = site_records(result, record, probe, sites)
    records = convert(records) if convert else records
    names = records.dtype.names or ()
    sums: dict[int, dict[str, int]] = {}
    for line, values in zip(sites, records.tolist(), strict=True):
        line_total = sums.get(line, dict.fromkeys(names, 0))
        sums[line] = {name: line_total[name] + value for name, value in zip(names, values, strict=True)}
    kernel_sites = probed_sites(folder)
    opcodes = {
        site.line: site.opcode for site in reversed(kernel_sites.instructions())
    }  # of several on one line the first
    return tuple(LineSums(line, opcodes.get(line), kernel_sites.ptx_line(line), sums[line]) for line in sorted(sums))


def counts_by_line(
    lines: tuple[LineSums, ...],
    record: np.dtype[Any],
    analyse: Callable[[dict[str, int]], Analysis],
    value: Callable[[LineSums], float | None],
    *,
    worst_is_lowest: bool = False,
) -> CountsByLine[Analysis]:
    """Return lines, what ``analyse`` makes of their sums by field, and the line with the highest or lowest value."""
    return CountsByLine(
        analyse(line_totals(lines, record)), lines, worst_line(lines, value, worst_is_lowest=worst_is_lowest)
    )


def site_records(result: Result, record: np.dtype[Any], probe: str, sites: Sequence[int]) -> NDArray[Any]:
    """The records of map 0, one for each of ``sites``. Raises TraceError as ``line_sums``."""
    records = result.sites(0, record) if result.maps else None
    if records is None:
        raise TraceError(f"{result.path}: the records are not from {probe}, which saves one record per site")
    if len(records) != len(sites):
        raise TraceError(f"{result.path}: the file has {len(records)} sites, but kernel.info lists {len(sites)} sites")
    return records


def site_dtype(*fields: str) -> np.dtype[Any]:
    """The record of a map of sites: sums of 64 bits."""
    return np.dtype([(field, "<u8") for field in fields])


def line_totals(lines: Iterable[LineSums], record: np.dtype[Any]) -> dict[str, int]:
    """The sums of all lines, by field."""
    rows = list(lines)
    return {name: sum(row.sums[name] for row in rows) for name in record.names or ()}


def sums_by_source(lines: Iterable[LineSums], loss: Callable[[LineSums], float]) -> list[LineSums]:
    """Add up the lines of PTX that one line of source became, as unrolling does; those with most ``loss`` first.

    Each sum is named after its line of PTX with most loss. Lines without a known source that lose something are added
    up by opcode: of an unrolled loop each copy loses too little to stand out.
    """
    groups: dict[object, list[LineSums]] = {}
    for line in lines:
        opcode_group = (line.opcode, loss(line) > 0)
        groups.setdefault(opcode_group if line.source is None else line.source, []).append(line)
    return sorted((_group_sums(group, loss) for group in groups.values()), key=lambda line: -loss(line))


def _group_sums(group: Sequence[LineSums], loss: Callable[[LineSums], float]) -> LineSums:
    worst = max(group, key=loss)
    sums = {name: sum(line.sums[name] for line in group) for name in worst.sums}
    return replace(worst, sums=sums, lines=len(group))


def worst_line(
    lines: Iterable[LineSums], value: Callable[[LineSums], float | None], *, worst_is_lowest: bool = False
) -> tuple[LineSums, float] | None:
    """The line with the highest value, or the lowest; the first of several. Lines without a value are left out."""
    valued_lines = [(line, number) for line in lines if (number := value(line)) is not None]
    select = min if worst_is_lowest else max
    return select(valued_lines, key=itemgetter(1), default=None)
