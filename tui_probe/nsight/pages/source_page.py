"""Page of counters by line and by instruction in a report of Nsight Compute, with probe counts beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle, shorten
from tui_probe.draw.table import Column
from tui_probe.draw.table_content import PageTexts
from tui_probe.nsight.analysis.kernel_groups import Shape, match_kernels
from tui_probe.nsight.analysis.launch_means import SourceCounts, by_instruction, by_line
from tui_probe.nsight.pages.cells import mean_count, shape_columns, shorten_names
from tui_probe.nsight.pages.explanations import EXPLANATIONS
from tui_probe.nsight.pages.ncu_pages import file_head, file_notes
from tui_probe.pages.table_page import TablePage
from tui_probe.pages.views.lines import measured_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tui_probe.nsight.pages.ncu_pages import NcuReport
    from tui_probe.trace.model import Trace

_TOLERANCE: Final = 0.5
"""Means of counts that differ by less are equal."""
_NO_COUNTERS: Final = (
    "no counters of instructions: they are in reports alone, of programs built with -lineinfo: ncu -o FILE --section"
    " SourceCounters --import-source yes COMMAND"
)


class Place(NamedTuple):
    """A line of a kernel; ``file`` is the name without directories."""

    kernel: str
    file: str
    line: int | None


class ProbedCounts(NamedTuple):
    """What a probe counted of a line in one launch."""

    requests: float | None
    sectors: float | None


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A line or an instruction; ``probed`` is None where no trace knows the line."""

    counts: SourceCounts
    probed: ProbedCounts | None = None

    @property
    def place(self) -> str | None:
        """``strided_store.cu:4``."""
        counts = self.counts
        return None if counts.file is None else f"{PurePath(counts.file).name}:{counts.line}"

    @property
    def differences(self) -> list[str] | None:
        """In what the two tools differ; None where there is nothing to compare."""
        if self.probed is None:
            return None
        pairs = {name: (getattr(self.counts, name), getattr(self.probed, name)) for name in ProbedCounts._fields}
        known = {name: pair for name, pair in pairs.items() if None not in pair}
        return [name for name, (ours, theirs) in known.items() if abs(ours - theirs) >= _TOLERANCE] if known else None


def lines_page(report: NcuReport, traces: Sequence[Trace]) -> TablePage[SourceRow]:
    """Every line of source, the one at which warps waited most first."""
    rows = _with_probed(by_line(report.table), probed_lines(traces))
    rows.sort(key=lambda row: (-row.counts.samples, -(row.counts.sectors or 0), row.place or "", row.counts.offset))
    return _page("lines", "Lines of source", report, rows)


def sass_page(report: NcuReport) -> TablePage[SourceRow]:
    """Every instruction, in the order of the code."""
    return _page("sass", "Instructions", report, [SourceRow(each) for each in by_instruction(report.table)])


def _page(name: str, title: str, report: NcuReport, rows: list[SourceRow]) -> TablePage[SourceRow]:
    compared = [row for row in rows if row.differences is not None]
    unlike = sum(bool(row.differences) for row in compared)
    found = [f"{units.counted(len(compared), 'line')} beside a probe, {units.count(unlike)} of them differ"]
    notes = [*file_notes(report), *([] if rows else [_NO_COUNTERS])]
    words = PageTexts(file_head(report), found if compared else (), notes, EXPLANATIONS[name])
    shown = LINE_COLUMNS if name == "lines" else SASS_COLUMNS
    columns = shape_columns(shown, ((row.place or row.counts.text, row.counts.shape) for row in rows))
    return TablePage(name, title, shorten_names(columns, (row.counts.shape.kernel for row in rows)), rows, words)


def probed_lines(traces: Iterable[Trace]) -> dict[Place, ProbedCounts]:
    """Requests and sectors that probes counted, by kernel, name of the file, and line; the first trace that has a line
    counts. Lines of PTX add up to a line of source; launches and kernels do not."""
    counts: dict[Place, ProbedCounts] = {}
    for trace in traces:
        sums: dict[tuple[int, Place], dict[str, float]] = {}
        for line in measured_lines(trace):
            source = line.row.source
            if source is None or "sectors" not in line.row.found:
                continue
            place = Place(line.kernel.demangled, PurePath(source.file).name, source.line)
            own = sums.setdefault((line.kernel.index, place), {})
            for name in ProbedCounts._fields:
                value = line.row.found.get(name)
                if isinstance(value, int | float):
                    own[name] = own.get(name, 0.0) + value
        for (_, place), own in sums.items():
            counts.setdefault(place, ProbedCounts(own.get("requests"), own.get("sectors")))
    return counts


def _with_probed(lines: Sequence[SourceCounts], probed: Mapping[Place, ProbedCounts]) -> list[SourceRow]:
    """Each line with the counts of the same line of the same kernel; tools write names of kernels differently."""
    kernels, others = {counts.shape.kernel for counts in lines}, {place.kernel for place in probed}
    pairs = match_kernels(sorted(kernels), sorted(others), lambda kernel: Shape(kernel, None, None))
    partner = {kernel: other or "" for kernel, other in pairs if kernel is not None}
    rows = []
    for counts in lines:
        place = Place(partner[counts.shape.kernel], PurePath(counts.file or "").name, counts.line)
        rows.append(SourceRow(counts, probed.get(place)))
    return rows


def _compared(row: SourceRow) -> str:
    differences = row.differences
    return "" if differences is None else f"≠ {', '.join(differences)}" if differences else "same"


_COUNTS: Final[tuple[Column[SourceRow], ...]] = (
    Column("samples", lambda r: r.counts.samples, "stalls", lambda r: mean_count(r.counts.samples)),
    Column("stall_reason", lambda r: r.counts.reason, "why", lambda r: r.counts.reason or "", False, rank=2, narrow=10),
    Column("executed", lambda r: r.counts.executed, "executed", lambda r: mean_count(r.counts.executed), rank=1),
    Column("requests", lambda r: r.counts.requests, "requests", lambda r: mean_count(r.counts.requests), rank=1),
    Column("sectors", lambda r: r.counts.sectors, "sectors", lambda r: mean_count(r.counts.sectors)),
    Column("ideal", lambda r: r.counts.ideal, "ideal", lambda r: mean_count(r.counts.ideal), rank=1),
    Column("stalls", lambda r: dict(r.counts.stalls), nested=True),
)
_KERNEL: Final[tuple[Column[SourceRow], ...]] = (
    Column("grid", lambda r: r.counts.shape.grid, "grid", lambda r: units.extent(r.counts.shape.grid), rank=5),
    Column("block", lambda r: r.counts.shape.block, "block", lambda r: units.extent(r.counts.shape.block), rank=5),
    Column(
        "kernel", lambda r: r.counts.shape.kernel, "kernel", lambda r: r.counts.shape.kernel, False,
        narrow=14, shorten=shorten,
    ),
)  # fmt: skip
LINE_COLUMNS: Final[tuple[Column[SourceRow], ...]] = (
    Column("place", lambda r: r.place, "line", lambda r: r.place or "", False, narrow=16, shorten=cut_middle),
    Column("file", lambda r: r.counts.file),
    Column("source_line", lambda r: r.counts.line),
    *_COUNTS,
    Column(
        "probe_requests", lambda r: r.probed and r.probed.requests, "by probe",
        lambda r: mean_count(r.probed and r.probed.requests), rank=1,
    ),
    Column(
        "probe_sectors", lambda r: r.probed and r.probed.sectors, "sectors by probe",
        lambda r: mean_count(r.probed and r.probed.sectors),
    ),
    Column("differences", lambda r: r.differences, "compared", _compared, False, nested=True),
    *_KERNEL,
)  # fmt: skip
SASS_COLUMNS: Final[tuple[Column[SourceRow], ...]] = (
    Column("offset", lambda r: r.counts.offset, "offset", lambda r: f"{r.counts.offset:04x}"),
    Column("instruction", lambda r: r.counts.text, "instruction", lambda r: r.counts.text, False, narrow=24),
    *_COUNTS,
    Column("place", lambda r: r.place, "line", lambda r: r.place or "", False, rank=1, narrow=16, shorten=cut_middle),
    Column("file", lambda r: r.counts.file),
    Column("source_line", lambda r: r.counts.line),
    *_KERNEL,
)
