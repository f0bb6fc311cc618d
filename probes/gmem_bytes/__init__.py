"""Global memory bytes: loaded and stored by the threads of a launch, by kind of instruction.

Unit: bytes that executed instructions asked for, a predicate that was false asking for nothing. Each value is the
plain sum over all warps of the launch::

    loaded       ld, ldu, wmma.load                     bytes of the access × threads that executed it
    stored       st, wmma.store
    copied       cp.async from global to shared memory  bytes read: fewer than written where the rest is zeros
    bulk loaded  cp.async.bulk from global memory       the size operand, or the box inside the tensor
    bulk stored  cp.async.bulk to global memory
    read         loaded + copied + bulk loaded
    written      stored + bulk stored

Bulk copies include prefetches (``cp.async.bulk.prefetch``), which read, and reductions (``cp.reduce.async.bulk``),
which write; what several blocks of a cluster receive (multicast) counts once. Of the box of a copy by tensor map
(``cp.async.bulk.tensor``), what is inside the tensor counts: the rest is filled with zeros, or not written. Where the
size of a box is not known, as of pixels (im2col), copies are counted as instructions, and ``read`` or ``written`` is
not known: None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.probekit.finding import Finding, counted, percent, place, timed
from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, LineSpec, share_text
from tui_probe.probekit.metric import BYTES_READ, BYTES_WRITTEN, Metric, metrics_by_line, show_nonzero
from tui_probe.probekit.probe import Probe, Question, analysis_of_sites
from tui_probe.probekit.result_tables import count_kind
from tui_probe.records.copied_boxes import byte_counts as box_bytes
from tui_probe.records.copied_boxes import copies_text, read_copies
from tui_probe.records.counter_sums import CountsByLine, line_sums, line_totals, site_dtype, sum_records, worst_line
from tui_probe.trace.launch_shape import WARP_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.copied_boxes import BulkCopies
    from tui_probe.records.counter_sums import LineSums
    from tui_probe.trace.results import Result


_SIZES: Final = ("loaded", "stored", "copied", "bulk_loaded", "bulk_stored")
RECORD: Final = np.dtype(
    {
        "names": [*_SIZES, "tensor_loads", "tensor_stores", "threads"],
        "formats": ["<u8"] * 5 + ["<u4"] * 3,
        "offsets": [0, 8, 16, 24, 32, 40, 44, 48],
        "itemsize": 56,
    }
)
"""Record of ``gmem_bytes`` per warp."""
SITE: Final = site_dtype(*_SIZES, "tensor_loads", "tensor_stores")
"""Record of ``gmem_bytes_by_line`` per instruction."""
MEMORY: Final = count_kind(
    "memory",
    "Memory",
    "bytes of global memory that each launch requested",
    (
        "Bytes per launch that the executed instructions request. Bytes that caches serve are included. Requested"
        " bandwidth is requested bytes divided by the time of the unprobed kernel. DRAM bandwidth can differ, because"
        " caches serve some requests.",
    ),
    order=70,
)


@dataclass(frozen=True, slots=True)
class MemoryBytes:
    """Bytes of one launch; ``tensor_loads`` and ``tensor_stores`` are executed instructions of unknown size.

    Where only bulk copies are recorded, the bytes of others are None, and those of bulk copies if some had no record.
    """

    loaded: int | None
    stored: int | None
    copied: int | None
    bulk_loaded: int | None
    bulk_stored: int | None
    tensor_loads: int
    tensor_stores: int
    threads_missing: int

    @property
    def has_copies_only(self) -> bool:
        """True if only bulk copies are recorded."""
        return self.loaded is None

    @property
    def read(self) -> int | None:
        """All bytes read from global memory, if they are known."""
        return None if self.tensor_loads else _sum_of(self.loaded, self.copied, self.bulk_loaded)

    @property
    def written(self) -> int | None:
        """All bytes written to global memory, if they are known."""
        return None if self.tensor_stores else _sum_of(self.stored, self.bulk_stored)


def _sum_of(*sizes: int | None) -> int | None:
    known_sizes = [size for size in sizes if size is not None]
    return sum(known_sizes) if len(known_sizes) == len(sizes) else None


def analyse(result: Result) -> MemoryBytes:
    """The bytes of one launch; TraceError if map 0 holds no records of ``gmem_bytes``."""
    sums = sum_records(result, RECORD, "gmem_bytes")
    return MemoryBytes(**sums.totals, threads_missing=sums.threads_missing)


def analyse_copies(copies: BulkCopies) -> MemoryBytes:
    """The bytes of a launch whose records are bulk copies only."""
    sizes = box_bytes(copies.boxes)
    loaded_bytes, stored_bytes = (copies.sum(sizes, loads=loads) for loads in (True, False))
    unknown_copies = copies.unknown_count(loads=True), copies.unknown_count(loads=False)
    return MemoryBytes(None, None, None, loaded_bytes, stored_bytes, *unknown_copies, WARP_SIZE * copies.warps_missing)


def _analyse(probe_result: ProbeResult) -> MemoryBytes:
    copies = read_copies(
        probe_result.result, probe_result.kernel.folder, probe_result.kernel.trace, probe_result.launch
    )
    return analyse(probe_result.result) if copies is None else analyse_copies(copies)


def analyse_lines(result: Result, sites: Sequence[int], folder: Path | None = None) -> CountsByLine[MemoryBytes]:
    """Counts by line of ``gmem_bytes_by_line``; see :func:`counter_sums.line_sums`. Raises TraceError.

    No line has the most bytes where those of another are not known.
    """
    lines = line_sums(result, SITE, "gmem_bytes_by_line", sites, folder)
    totals = MemoryBytes(**line_totals(lines, SITE), threads_missing=0)
    is_known = all(bytes_of(line) is not None for line in lines)
    worst = worst_line(lines, lambda line: bytes_of(line) or None) if is_known else None
    return CountsByLine(totals, lines, worst)


def bytes_of(line: LineSums) -> int | None:
    """Bytes that one line moved, 0 if it was never executed; None if it did so by tensor map."""
    return None if line.total("tensor_loads", "tensor_stores") else line.total(*_SIZES)


def _parts_of_read(analysis: MemoryBytes, value: Any) -> bool:
    return bool(value) and analysis.read != analysis.loaded


def _parts_of_written(analysis: MemoryBytes, value: Any) -> bool:
    return bool(value) and analysis.written != analysis.stored


METRICS: Final = (
    BYTES_READ,
    BYTES_WRITTEN,
    Metric(
        "loaded",
        "by loads",
        "B",
        better="lower",
        is_shown=_parts_of_read,
        of_work=True,
        standalone_title="read by loads",
    ),
    Metric(
        "stored",
        "by stores",
        "B",
        better="lower",
        is_shown=_parts_of_written,
        of_work=True,
        standalone_title="written by stores",
    ),
    Metric(
        "copied",
        "by cp.async",
        "B",
        better="lower",
        is_shown=show_nonzero,
        of_work=True,
        standalone_title="read by cp.async",
    ),
    Metric(
        "bulk_loaded",
        "by bulk loads",
        "B",
        better="lower",
        is_shown=show_nonzero,
        of_work=True,
        standalone_title="read by bulk loads",
    ),
    Metric(
        "bulk_stored",
        "by bulk stores",
        "B",
        better="lower",
        is_shown=show_nonzero,
        of_work=True,
        standalone_title="written by bulk stores",
    ),
    Metric("tensor_loads", "tensor-map loads of unknown size", is_shown=show_nonzero),
    Metric("tensor_stores", "tensor-map stores of unknown size", is_shown=show_nonzero),
)
BY_LINE: Final = metrics_by_line(METRICS, "most bytes")


def findings(probe_result: ProbeResult, analysis: MemoryBytes) -> Iterator[Finding]:
    """Yield the bytes that were read and written."""
    if analysis.has_copies_only:
        yield _bulk_finding(analysis)
        return
    bytes_read, bytes_written = analysis.read, analysis.written
    text = f"{units.size(bytes_read)} read, {units.size(bytes_written)} written (requested, before caches)"
    speed = None
    if bytes_read is not None and bytes_written is not None and probe_result.measured_ms:
        speed = (bytes_read + bytes_written) / (probe_result.measured_ms * 1e-3)
        text += f"; {units.size(speed)}/s at the unprobed time of {units.duration(probe_result.measured_ms * 1e-3)}"
    elif bytes_read is None or bytes_written is None:
        text += "; the sizes of some tensor-map copies are unknown"
    values = {
        "read": counted(bytes_read, "B"),
        "written": counted(bytes_written, "B"),
        "bytes_per_second": timed(speed, "B/s"),
    }
    yield Finding("bytes", "bytes", text, "memory", values=values)


def _bulk_finding(analysis: MemoryBytes) -> Finding:
    """Return the bytes of bulk copies where nothing else is recorded."""
    sizes = {"loaded": analysis.bulk_loaded, "stored": analysis.bulk_stored}
    values = {f"bulk_{name}": counted(size, "B") for name, size in sizes.items()}
    return Finding("bulk_bytes", "bytes", f"{_bulk_text(analysis)}; {_reason_of(analysis)}", "memory", values=values)


def _bulk_text(analysis: MemoryBytes) -> str:
    """``2 MB read, 1 MB written by bulk copies``."""
    return f"{units.size(analysis.bulk_loaded)} read, {units.size(analysis.bulk_stored)} written by bulk copies"


def _reason_of(analysis: MemoryBytes) -> str:
    return copies_text(has_all=analysis.bulk_loaded is not None)


def findings_by_line(probe_result: ProbeResult, analysis: CountsByLine[MemoryBytes]) -> Iterator[Finding]:
    """Yield the findings, then the line with most bytes."""
    yield from findings(probe_result, analysis.analysis)
    if analysis.worst is not None:
        line, line_bytes = analysis.worst
        total = (analysis.analysis.read or 0) + (analysis.analysis.written or 0)
        text = f"{place(line.line, line.source, line.opcode)}, {units.size(line_bytes)}"
        text += f", {percent(line_bytes, total)} of all bytes"
        values = {"bytes": counted(int(line_bytes), "B")}
        yield Finding("most_bytes", "most bytes", text, "lines", line.line, values=values)


def _line_rows(probe_result: ProbeResult, analysis: CountsByLine[MemoryBytes]) -> LineRows:
    del probe_result
    line_bytes = [(line, bytes_of(line)) for line in analysis.lines]
    known_bytes = [size for _, size in line_bytes if size is not None]
    total = sum(known_bytes) if len(known_bytes) == len(line_bytes) else None
    rows = []
    for line, size in sorted(line_bytes, key=lambda pair: -(pair[1] or 0)):
        share = None if size is None or total is None else share_text(size, total)
        rows.append(LineRow(line.line, line.source, {"share": share, "bytes": size}))
    return LineRows(
        rows, [] if total is not None else [f"{NOT_MEASURED}: the sizes of some tensor-map copies are unknown"]
    )


LINES: Final = LineSpec((LineMeasure("share"), LineMeasure("bytes", "sum")), "bytes", _line_rows)


def notes(analysis: MemoryBytes) -> list[str]:
    """The newest launch in words."""
    if analysis.has_copies_only:
        return [f"newest launch: {_bulk_text(analysis)}", _reason_of(analysis)]
    read_text, written_text = units.size(analysis.read), units.size(analysis.written)
    text = f"newest launch: {read_text} read, {written_text} written (requested, before caches)"
    if analysis.tensor_loads or analysis.tensor_stores:
        text += "; the sum is unknown, because the sizes of some tensor-map copies are unknown"
    return [text]


PROBES: Final = (
    Probe(
        name="gmem_bytes",
        analyse=_analyse,
        metrics=METRICS,
        question=Question("bytes", "how many bytes of global memory are requested?", 80),
        findings=findings,
        views=(MEMORY,),
        notes=notes,
    ),
    Probe(
        name="gmem_bytes_by_line",
        analyse=analysis_of_sites(analyse_lines),
        metrics=BY_LINE,
        answers=("bytes",),
        findings=findings_by_line,
        lines=LINES,
        views=(MEMORY,),
        notes=lambda counts: notes(counts.analysis),
    ),
)
