"""Pages of memory accesses: traffic of programs, requests and sectors of kernels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle, shorten
from tui_probe.draw.table import Column
from tui_probe.draw.table_content import PageTexts
from tui_probe.nsight.analysis.critical import ExpectedTensor, SectorMatch, compare_sectors
from tui_probe.nsight.analysis.kernel_groups import match_kernels
from tui_probe.nsight.analysis.kernel_metrics import COUNT_METRICS, KernelMetrics, differing_counts, metrics_of
from tui_probe.nsight.analysis.launch_means import LEVELS, Level, Traffic, ratios, traffic
from tui_probe.nsight.importers.ncu import COLD_CACHE_NOTE
from tui_probe.nsight.pages.cells import decimal, mean_count, nanoseconds, stem
from tui_probe.nsight.pages.explanations import EXPLANATIONS
from tui_probe.nsight.pages.ncu_pages import file_head, file_notes
from tui_probe.pages.table_page import TablePage
from tui_probe.probekit.measured import probe_option_for
from tui_probe.trace.launch_shape import SECTOR_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.nsight.analysis.launch_selection import LaunchSelection
    from tui_probe.nsight.importers.ncu_table import NcuTable
    from tui_probe.nsight.pages.ncu_pages import NcuReport

_MAX_NAMED_KERNELS: Final = 3
"""Kernels of an iteration that are named."""
_TITLES: Final[dict[Level, str]] = {"dram": "DRAM", "l2": "L2", "l1": "L1"}
_VERDICTS: Final[dict[SectorMatch, str]] = {
    "equal": "equal",
    "with row sums": "with row sums",
    "within": "{ratio:.2f} ×",
    "below": "{ratio:.2f} ×, only a part",
    "above": "{ratio:.2f} ×, more than one sector per element",
}


@dataclass(frozen=True, slots=True)
class TrafficRow:
    """One measured part of a program, and its bytes / the fewest of all rows, by level."""

    program: str
    traffic: Traffic
    ratio: dict[Level, float | None]


def traffic_page(report: NcuReport) -> TablePage[TrafficRow]:
    """The table of several programs."""
    choice = report.choice()
    rows = traffic_rows(report, choice)
    notes = [*_traffic_notes(report, choice, rows), *choice.notes, COLD_CACHE_NOTE, *file_notes(report)]
    texts = PageTexts(file_head(report), _loop_texts(rows), notes, EXPLANATIONS["traffic"])
    extra = {
        "expected_missing": list(choice.missing_names),
        "dropped": [
            {"file": report.names[outcome.file], "kernel": outcome.shape.kernel, "launches": len(outcome.launches),
             "reason": outcome.reason}
            for outcome in choice.outcomes
            if not outcome.kept_launches
        ],
    }  # fmt: skip
    return TablePage("traffic", "Memory traffic per iteration", TRAFFIC_COLUMNS, rows, texts, extra)


def traffic_rows(report: NcuReport, choice: LaunchSelection) -> list[TrafficRow]:
    traffics = traffic(report.table, choice)
    by_level = {level: ratios(traffics, level) for level in LEVELS}
    names = _program_names(report, traffics)
    return [
        TrafficRow(name, program_traffic, {level: by_level[level][number] for level in LEVELS})
        for number, (name, program_traffic) in enumerate(zip(names, traffics, strict=True))
    ]


def _program_names(report: NcuReport, traffics: list[Traffic]) -> list[str]:
    """A name a row: the file, and the process and the part where a file has several."""
    files = Counter(program.loop.file for program in traffics)
    names = []
    for program in traffics:
        loop = program.loop
        name = report.names[loop.file].removesuffix(".csv")
        processes = {part.loop.process for part in traffics if part.loop.file == loop.file}
        if len(processes) > 1:
            name += f" ({loop.process})"
        names.append(f"{name} part {loop.part + 1}" if files[loop.file] > len(processes) else name)
    return names


def _loop_texts(rows: list[TrafficRow]) -> list[str]:
    """The kernels of each row."""
    lines = []
    for row in rows:
        loop = row.traffic.loop
        origin = "found in the launch sequence" if loop.is_detected else "as specified"
        warm_up = f", the first {loop.warm_up} dropped as warm-up" if loop.warm_up else ""
        times = units.counted(loop.times, "iteration")
        if loop.is_whole_process:
            launches = units.counted(len(loop.launches), "launch")
            lines.append(f"{row.program}: {launches}, no warm-up removed; kernels: {_first_names(row.traffic.kernels)}")
            continue
        lines.append(f"{row.program}: {times} {origin}{warm_up}; kernels: {_first_names(row.traffic.kernels)}")
    return lines


def _first_names(kernels: Sequence[str]) -> str:
    """The first kernels, and how many more; the page of kernels has them all."""
    names = [shorten(kernel, 48) for kernel in kernels[:_MAX_NAMED_KERNELS]]
    unnamed = len(kernels) - len(names)
    return ", ".join(names) + (f" and {units.counted(unnamed, 'more kernel')}" if unnamed else "")


def _traffic_notes(report: NcuReport, choice: LaunchSelection, rows: list[TrafficRow]) -> Iterator[str]:
    for name in choice.missing_names:
        yield f"no kernel with “{name}” in its name was launched, so the totals exclude it"
    dropped_kernels: dict[tuple[int, str], list[str]] = {}
    for outcome in choice.outcomes:
        if not outcome.kept_launches:
            dropped_kernels.setdefault((outcome.file, outcome.reason), []).append(shorten(outcome.shape.kernel, 48))
    for (file, reason), kernels in dropped_kernels.items():
        yield f"dropped from {report.names[file]} ({reason}): {', '.join(kernels)}"
    if any(provenance == "derived" for row in rows for provenance in row.traffic.provenance.values()):
        yield "derived: throughput × duration, because no total was collected"
    for row in rows:
        missing_levels = [_TITLES[level] for level in LEVELS if row.traffic.bytes[level] is None]
        if missing_levels:
            yield (
                f"{row.program}: bytes of {', '.join(missing_levels)} are missing; collect them with --metrics"
                " dram__bytes.sum,lts__t_bytes.sum,l1tex__t_bytes.sum"
                " (the section Memory Workload Analysis has no totals)"
            )


def _bytes(row: TrafficRow, level: Level) -> str:
    return units.size(row.traffic.bytes[level]) + (" derived" if row.traffic.provenance[level] == "derived" else "")


def _ratio(row: TrafficRow, level: Level) -> str:
    value = row.ratio[level]
    return units.NOT_MEASURED if value is None else f"{value:.2f}×"


def _level_columns(level: Level) -> tuple[Column[TrafficRow], ...]:
    title = _TITLES[level]
    return (
        Column(f"{level}_bytes", lambda r: r.traffic.bytes[level], title, lambda r: _bytes(r, level)),
        Column(f"{level}_how", lambda r: r.traffic.provenance[level]),
        Column(f"{level}_ratio", lambda r: r.ratio[level], "of best", lambda r: _ratio(r, level)),
    )


TRAFFIC_COLUMNS: Final[tuple[Column[TrafficRow], ...]] = (
    Column("program", lambda r: r.program, "program", lambda r: r.program, right=False, narrow=24),
    Column("process", lambda r: r.traffic.loop.process),
    Column("iterations", lambda r: r.traffic.loop.times),
    Column("iterations_found", lambda r: r.traffic.loop.is_detected),
    Column("warm_up", lambda r: r.traffic.loop.warm_up),
    Column("runs", lambda r: r.traffic.loop.runs, "runs", lambda r: units.count(r.traffic.loop.runs), rank=2),
    Column(
        "launches", lambda r: r.traffic.launches, "launches", lambda r: mean_count(r.traffic.launches), rank=3
    ),
    Column("kernels", lambda r: list(r.traffic.kernels), nested=True),
    Column("time_ns", lambda r: r.traffic.time, "time", lambda r: nanoseconds(r.traffic.time), rank=1),
    *_level_columns("dram"),
    *_level_columns("l2"),
    *_level_columns("l1"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SectorRow:
    """A kernel as one tool saw it; ``other_tool`` is the same kernel as the other tool saw it."""

    metrics: KernelMetrics
    other_tool: KernelMetrics | None
    tensor: ExpectedTensor | None

    @property
    def verdict(self) -> SectorMatch | None:
        return compare_sectors(self.metrics.store_sectors, self.tensor)

    @property
    def differences(self) -> list[str] | None:
        """The counts in which the two tools differ; None where there is nothing to compare."""
        return None if self.other_tool is None else differing_counts(self.metrics, self.other_tool)


def pairs_of(
    table: NcuTable | None, probe_metrics: Sequence[KernelMetrics]
) -> list[tuple[KernelMetrics | None, KernelMetrics | None]]:
    """Kernels of ncu's files next to those of traces."""
    return match_kernels([] if table is None else metrics_of(table), probe_metrics, lambda metrics: metrics.shape)


def sector_rows(
    table: NcuTable | None, probe_metrics: Sequence[KernelMetrics], tensor: ExpectedTensor | None
) -> list[SectorRow]:
    """Return a row per kernel and tool, the two tools one below the other."""
    rows = []
    for ncu, probes in pairs_of(table, probe_metrics):
        rows += [SectorRow(ncu, probes, tensor)] if ncu is not None else []
        rows += [SectorRow(probes, ncu, tensor)] if probes is not None else []
    return rows


def sectors_page(
    table: NcuTable | None,
    head: Sequence[tuple[str, str]],
    notes: Sequence[str] = (),
    probe_metrics: Sequence[KernelMetrics] = (),
    tensor: ExpectedTensor | None = None,
) -> TablePage[SectorRow]:
    """Means a launch of every kernel."""
    rows = sector_rows(table, probe_metrics, tensor)
    texts = PageTexts(head, _expectation_lines(tensor), [*_sector_notes(rows), *notes], EXPLANATIONS["sectors"])
    extra: dict[str, Any] = {
        "expected_sectors": None if tensor is None else tensor.sectors,
        "most_sectors": None if tensor is None else tensor.elements,
    }
    has_origins = len({row.metrics.origin for row in rows}) > 1
    tools = {row.metrics.tool for row in rows}
    is_empty = {"origin": not has_origins, "tool": len(tools) < 2, "said": not any(map(_verdict_text, rows))}
    columns = [replace(column, text=None) if is_empty.get(column.key) else column for column in SECTOR_COLUMNS]
    return TablePage("sectors", "Requests and sectors", columns, rows, texts, extra)


def _expectation_lines(tensor: ExpectedTensor | None) -> list[str]:
    if tensor is None:
        return []
    size = f"{tensor.batch} × {tensor.heads} × {tensor.length} × {tensor.width} {tensor.dtype}"
    sectors_with_sums = tensor.sectors_with_row_sums
    sums = "" if sectors_with_sums is None else f" {units.count(sectors_with_sums)} with row sums,"
    return [
        f"expected stores of a {size} tensor: {units.count(tensor.sectors)} sectors of {SECTOR_BYTES} B,{sums}"
        f" {units.count(tensor.elements)} in the worst case (one per element)"
    ]


def _sector_notes(rows: Sequence[SectorRow]) -> Iterator[str]:
    if rows and all(getattr(row.metrics, name) is None for row in rows for name in COUNT_METRICS):
        yield f"no counts: collect them with ncu --metrics {','.join(COUNT_METRICS.values())}"
        probe = probe_option_for("load sectors")
        yield (
            f"or count without permission: tui-probe run {probe} -- COMMAND, then pass the trace of this run with"
            " --trace"
        )


def _verdict_text(row: SectorRow) -> str:
    verdicts = []
    if row.verdict is not None and row.tensor is not None:
        ratio = (row.metrics.store_sectors or 0) / row.tensor.sectors
        verdicts.append(_VERDICTS[row.verdict].format(ratio=ratio))
    differences = row.differences
    if differences is not None and row.other_tool is not None:
        differing = [f"{name.replace('_', ' ')} differ from {row.other_tool.tool}" for name in differences]
        verdicts.append(", ".join(differing) if differing else f"= {row.other_tool.tool}")
    return "; ".join(verdicts)


def _file(row: SectorRow) -> str:
    return stem(PurePath(row.metrics.origin).name)


def _count_column(title: str, name: str, rank: int) -> Column[SectorRow]:
    return Column(
        name,
        lambda r: getattr(r.metrics, name),
        title,
        lambda r: mean_count(getattr(r.metrics, name)),
        rank=rank,
    )


SECTOR_COLUMNS: Final[tuple[Column[SectorRow], ...]] = (
    Column("tool", lambda r: r.metrics.tool, "by", lambda r: r.metrics.tool, right=False),
    Column("origin", lambda r: r.metrics.origin, "file", _file, right=False, narrow=16, shorten=cut_middle),
    Column("grid", lambda r: r.metrics.shape.grid, "grid",
        lambda r: units.extent(r.metrics.shape.grid), rank=3),
    Column("block", lambda r: r.metrics.shape.block, "block",
        lambda r: units.extent(r.metrics.shape.block), rank=3),
    Column("launches", lambda r: r.metrics.launches, "launches",
        lambda r: units.count(r.metrics.launches), rank=4),
    _count_column("load req.", "load_requests", 2),
    _count_column("ld sectors", "load_sectors", 1),
    Column(
        "sectors_per_load", lambda r: r.metrics.sectors_per_load, "per load",
        lambda r: decimal(r.metrics.sectors_per_load),
    ),
    _count_column("store req.", "store_requests", 2),
    _count_column("st sectors", "store_sectors", 0),
    Column(
        "sectors_per_store", lambda r: r.metrics.sectors_per_store, "per store",
        lambda r: decimal(r.metrics.sectors_per_store),
    ),
    Column("verdict", lambda r: r.verdict),
    Column("differences", lambda r: r.differences, nested=True),
    Column("said", title="vs. expected", text=_verdict_text, right=False, narrow=15),
    Column(
        "kernel", lambda r: r.metrics.shape.kernel, "kernel", lambda r: r.metrics.shape.kernel, right=False,
        narrow=16, shorten=shorten,
    ),
)  # fmt: skip
