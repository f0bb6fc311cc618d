"""Page of counters by line and by instruction in a report of Nsight Compute, with probe counts next to them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle, shorten
from tui_probe.draw.table import Column
from tui_probe.draw.table_content import PageTexts
from tui_probe.nsight.analysis.launch_means import SourceCounts, counts_by_instruction, counts_by_line
from tui_probe.nsight.analysis.probed_counts import (
    CountedLine,
    ProbedAccess,
    ProbedCounts,
    access_kind,
    counts_of_instructions,
    counts_of_lines,
)
from tui_probe.nsight.pages.cells import mean_count, shape_columns, shorten_names
from tui_probe.nsight.pages.explanations import EXPLANATIONS
from tui_probe.nsight.pages.ncu_pages import file_head, file_notes
from tui_probe.pages.all_lines import measured_lines
from tui_probe.pages.table_page import TablePage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.nsight.pages.ncu_pages import NcuReport
    from tui_probe.pages.all_lines import KernelLine
    from tui_probe.trace.model import Trace

_TOLERANCE: Final = 0.5
"""Means of counts that differ by less are equal."""
_NO_COUNTERS: Final = (
    "no counters per instruction; record the report with --set full or --section SourceCounters:"
    " ncu -o FILE --set full --import-source yes COMMAND"
)
_LINE_OPTIONS: Final = (
    "build the program with nvcc -lineinfo, and record it with ncu -o FILE --set full --import-source yes COMMAND"
)
_COUNT_COLUMNS: Final[tuple[Column[SourceRow], ...]] = (
    Column("samples", lambda r: r.counts.samples, "stalls", lambda r: mean_count(r.counts.samples)),
    Column(
        "stall_reason",
        lambda r: r.counts.reason,
        "why",
        lambda r: r.counts.reason or "",
        right=False,
        rank=2,
        narrow=10,
    ),
    Column("executed", lambda r: r.counts.executed, "executed", lambda r: mean_count(r.counts.executed), rank=1),
    Column("requests", lambda r: r.counts.requests, "requests", lambda r: mean_count(r.counts.requests), rank=1),
    Column("sectors", lambda r: r.counts.sectors, "sectors", lambda r: mean_count(r.counts.sectors)),
    Column("ideal", lambda r: r.counts.ideal, "ideal", lambda r: mean_count(r.counts.ideal), rank=1),
    Column("stalls", lambda r: dict(r.counts.stalls), nested=True),
)
_KERNEL_COLUMNS: Final[tuple[Column[SourceRow], ...]] = (
    Column("grid", lambda r: r.counts.shape.grid, "grid", lambda r: units.extent(r.counts.shape.grid), rank=5),
    Column("block", lambda r: r.counts.shape.block, "block", lambda r: units.extent(r.counts.shape.block), rank=5),
    Column(
        "kernel", lambda r: r.counts.shape.kernel, "kernel", lambda r: r.counts.shape.kernel, right=False,
        narrow=14, shorten=shorten,
    ),
)  # fmt: skip


def probed_accesses(traces: Iterable[Trace]) -> list[list[ProbedAccess]]:
    """The accesses of each kernel of each trace."""
    accesses: defaultdict[tuple[int, int], list[ProbedAccess]] = defaultdict(list)
    for number, trace in enumerate(traces):
        for line in measured_lines(trace).lines:
            if "sectors" in line.row.values:
                accesses[number, line.kernel.index].append(_access(line))
    return [*accesses.values()]


def _access(line: KernelLine) -> ProbedAccess:
    source, info = line.row.source, line.kernel.read_info()
    file, number = ("", None) if source is None else (PurePath(source.file).name, source.line)
    values = [line.row.values.get(name) for name in ProbedCounts._fields]
    counts = ProbedCounts(*(value if isinstance(value, int | float) else None for value in values))
    is_sass = info is not None and info.graft is not None
    place = CountedLine(line.kernel.demangled, file, number)
    return ProbedAccess(place, access_kind(line.opcode or ""), line.row.line if is_sass else None, counts)


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A line or an instruction; ``probe_counts`` is None where no trace knows the line."""

    counts: SourceCounts
    probe_counts: ProbedCounts | None = None

    @property
    def place(self) -> str | None:
        """``strided_store.cu:4``."""
        counts = self.counts
        return None if counts.file is None else f"{PurePath(counts.file).name}:{counts.line}"

    @property
    def differences(self) -> list[str] | None:
        """Names of counts in which the two tools differ; None if there is nothing to compare."""
        if self.probe_counts is None:
            return None
        pairs = {name: (getattr(self.counts, name), getattr(self.probe_counts, name)) for name in ProbedCounts._fields}
        known_pairs = {name: pair for name, pair in pairs.items() if None not in pair}
        if not known_pairs:
            return None
        return [name for name, (reported, probed) in known_pairs.items() if abs(reported - probed) >= _TOLERANCE]


def lines_page(report: NcuReport, traces: Sequence[Trace]) -> TablePage[SourceRow]:
    """Return the page of source lines, the one with most stalls first."""
    lines = counts_by_line(report.table)
    rows = [*map(SourceRow, lines, counts_of_lines(lines, probed_accesses(traces)))]
    rows.sort(key=lambda row: (-row.counts.samples, -(row.counts.sectors or 0), row.place or "", row.counts.offset))
    return _page("lines", "Lines of source", report, rows, traces)


def sass_page(report: NcuReport, traces: Sequence[Trace]) -> TablePage[SourceRow]:
    """Return the page of instructions, in the order of the code."""
    instructions = counts_by_instruction(report.table)
    rows = [*map(SourceRow, instructions, counts_of_instructions(instructions, probed_accesses(traces)))]
    return _page("sass", "Instructions", report, rows, traces)


def _page(
    name: str, title: str, report: NcuReport, rows: list[SourceRow], traces: Sequence[Trace]
) -> TablePage[SourceRow]:
    compared_rows = [row for row in rows if row.differences is not None]
    different = sum(bool(row.differences) for row in compared_rows)
    noun = "line" if name == "lines" else "instruction"
    findings = [f"{units.counted(len(compared_rows), noun)} compared with a probe, {units.count(different)} differ"]
    missing_notes = list(_notes(name, rows, traces))
    notes = [*file_notes(report), *missing_notes] if rows else [*missing_notes, *file_notes(report)]
    head = [*file_head(report), *([("traces", ", ".join(str(trace.directory) for trace in traces))] if traces else [])]
    texts = PageTexts(head, findings if compared_rows else (), notes, EXPLANATIONS[name])
    all_columns = LINE_COLUMNS if name == "lines" else SASS_COLUMNS
    columns = shape_columns(all_columns, ((row.place or row.counts.text, row.counts.shape) for row in rows))
    return TablePage(name, title, shorten_names(columns, (row.counts.shape.kernel for row in rows)), rows, texts)


def _notes(name: str, rows: Sequence[SourceRow], traces: Sequence[Trace]) -> Iterator[str]:
    """Report what is missing, and how to record it."""
    if not rows:
        yield _NO_COUNTERS
        return
    kernels = {row.counts.shape.kernel for row in rows}
    unknown = kernels - {row.counts.shape.kernel for row in rows if row.place is not None}
    if unknown:
        scope = "" if unknown == kernels else f" for {units.count(len(unknown))} of {len(kernels)} kernels"
        yield f"the report has no source lines{scope}: {_LINE_OPTIONS}"
    if not traces:
        return
    compared_rows = [row for row in rows if row.probe_counts is not None]
    if not compared_rows:
        yield (
            "nothing to compare: no memory access in the report was found in the traces. Build the same program with"
            " -lineinfo and run it with tui-probe run; its default probes count accesses by line"
        )
    elif name == "sass" and (
        uncompared := sum(row.counts.requests is not None and row.probe_counts is None for row in rows)
    ):
        yield (
            f"{units.counted(uncompared, 'access')} not compared: the line has several accesses of one kind, or the"
            " trace has no counts of the line; --page lines compares whole lines"
        )


def _comparison_text(row: SourceRow) -> str:
    differences = row.differences
    return "" if differences is None else f"≠ {', '.join(differences)}" if differences else "same"


_PROBE_COLUMNS: Final[tuple[Column[SourceRow], ...]] = (
    Column(
        "probe_requests", lambda r: r.probe_counts and r.probe_counts.requests, "by probe",
        lambda r: mean_count(r.probe_counts and r.probe_counts.requests), rank=1,
    ),
    Column(
        "probe_sectors", lambda r: r.probe_counts and r.probe_counts.sectors, "sectors by probe",
        lambda r: mean_count(r.probe_counts and r.probe_counts.sectors),
    ),
    Column("differences", lambda r: r.differences, "compared", _comparison_text, right=False, nested=True),
)  # fmt: skip
LINE_COLUMNS: Final[tuple[Column[SourceRow], ...]] = (
    Column("place", lambda r: r.place, "line", lambda r: r.place or "", right=False, narrow=16, shorten=cut_middle),
    Column("file", lambda r: r.counts.file),
    Column("source_line", lambda r: r.counts.line),
    *_COUNT_COLUMNS,
    *_PROBE_COLUMNS,
    *_KERNEL_COLUMNS,
)  # fmt: skip
SASS_COLUMNS: Final[tuple[Column[SourceRow], ...]] = (
    Column("offset", lambda r: r.counts.offset, "offset", lambda r: f"{r.counts.offset:04x}"),
    Column("instruction", lambda r: r.counts.text, "instruction", lambda r: r.counts.text, right=False, narrow=24),
    *_COUNT_COLUMNS,
    Column(
        "place", lambda r: r.place, "line", lambda r: r.place or "", right=False, rank=1, narrow=16, shorten=cut_middle
    ),
    Column("file", lambda r: r.counts.file),
    Column("source_line", lambda r: r.counts.line),
    *_KERNEL_COLUMNS,
    *_PROBE_COLUMNS,
)
