"""Memory traffic of programs, a row each, and how much more they move than the best."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.nsight.analysis.traffic import LEVELS, Level, Traffic, ratios, traffic
from tui_probe.nsight.importers.ncu import COLD_CACHE
from tui_probe.nsight.pages.explanations import EXPLANATIONS
from tui_probe.nsight.pages.figures import mean_count, nanoseconds
from tui_probe.nsight.pages.ncu_pages import file_head, file_notes
from tui_probe.pages.table_page import TablePage, Words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.nsight.analysis.chosen_launches import Choice
    from tui_probe.nsight.pages.ncu_pages import NcuReport

_NAMED: Final = 3
"""Kernels of an iteration that are named."""
_TITLES: Final[dict[Level, str]] = {"dram": "DRAM", "l2": "L2", "l1": "L1"}


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
    notes = [*_notes(report, choice, rows), *choice.notes, COLD_CACHE, *file_notes(report)]
    words = Words(file_head(report), _kept(rows), notes, EXPLANATIONS["traffic"])
    extra = {
        "expected_missing": list(choice.missing),
        "dropped": [
            {"file": report.names[fate.file], "kernel": fate.shape.kernel, "launches": len(fate.launches),
             "reason": fate.reason}
            for fate in choice.fates
            if not fate.kept
        ],
    }  # fmt: skip
    return TablePage("traffic", "Memory traffic per iteration", TRAFFIC_COLUMNS, rows, words, extra)


def traffic_rows(report: NcuReport, choice: Choice) -> list[TrafficRow]:
    found = traffic(report.table, choice)
    by_level = {level: ratios(found, level) for level in LEVELS}
    names = _programs(report, found)
    return [
        TrafficRow(name, each, {level: by_level[level][number] for level in LEVELS})
        for number, (name, each) in enumerate(zip(names, found, strict=True))
    ]


def _programs(report: NcuReport, found: list[Traffic]) -> list[str]:
    """A name a row: the file, and the process and the part where a file has several."""
    files = Counter(each.loop.file for each in found)
    names = []
    for each in found:
        loop = each.loop
        name = report.names[loop.file].removesuffix(".csv")
        processes = {other.loop.process for other in found if other.loop.file == loop.file}
        if len(processes) > 1:
            name += f" ({loop.process})"
        names.append(f"{name} part {loop.part + 1}" if files[loop.file] > len(processes) else name)
    return names


def _kept(rows: list[TrafficRow]) -> list[str]:
    """The kernels of each row."""
    lines = []
    for row in rows:
        loop = row.traffic.loop
        how = "found in the sequence of launches" if loop.found else "as given"
        warm_up = f", the first {loop.warm_up} dropped as warm-up" if loop.warm_up else ""
        times = units.counted(loop.times, "iteration")
        if loop.whole:
            launches = units.counted(len(loop.launches), "launch")
            lines.append(f"{row.program}: {launches}, no warm-up removed; kept: {_names(row.traffic.kernels)}")
            continue
        lines.append(f"{row.program}: {times} {how}{warm_up}; kept: {_names(row.traffic.kernels)}")
    return lines


def _names(kernels: Sequence[str]) -> str:
    """The first kernels, and how many more; the page of kernels has them all."""
    names = [shorten(kernel, 48) for kernel in kernels[:_NAMED]]
    more = len(kernels) - len(names)
    return ", ".join(names) + (f" and {units.counted(more, 'more kernel')}" if more else "")


def _notes(report: NcuReport, choice: Choice, rows: list[TrafficRow]) -> Iterator[str]:
    for name in choice.missing:
        yield f"no kernel with “{name}” in its name was launched: its part is missing from the totals"
    dropped: dict[tuple[int, str], list[str]] = {}
    for fate in choice.fates:
        if not fate.kept:
            dropped.setdefault((fate.file, fate.reason), []).append(shorten(fate.shape.kernel, 48))
    for (file, reason), kernels in dropped.items():
        yield f"dropped of {report.names[file]}, {reason}: {', '.join(kernels)}"
    if any(how == "derived" for row in rows for how in row.traffic.how.values()):
        yield "derived: no total was collected; it is throughput × duration"
    for row in rows:
        lacking = [_TITLES[level] for level in LEVELS if row.traffic.bytes[level] is None]
        if lacking:
            yield (
                f"{row.program}: no bytes of {', '.join(lacking)}: collect them with --metrics"
                " dram__bytes.sum,lts__t_bytes.sum,l1tex__t_bytes.sum"
                " (the Memory Workload Analysis section holds no totals)"
            )


def _bytes(row: TrafficRow, level: Level) -> str:
    return units.size(row.traffic.bytes[level]) + (" derived" if row.traffic.how[level] == "derived" else "")


def _ratio(row: TrafficRow, level: Level) -> str:
    value = row.ratio[level]
    return units.NOT_MEASURED if value is None else f"{value:.2f}×"


def _level_columns(level: Level) -> tuple[Column[TrafficRow], ...]:
    title = _TITLES[level]
    return (
        Column(f"{level}_bytes", lambda r: r.traffic.bytes[level], title, lambda r: _bytes(r, level)),
        Column(f"{level}_how", lambda r: r.traffic.how[level]),
        Column(f"{level}_ratio", lambda r: r.ratio[level], "of best", lambda r: _ratio(r, level)),
    )


TRAFFIC_COLUMNS: Final[tuple[Column[TrafficRow], ...]] = (
    Column("program", lambda r: r.program, "program", lambda r: r.program, False, narrow=24),
    Column("process", lambda r: r.traffic.loop.process),
    Column("iterations", lambda r: r.traffic.loop.times),
    Column("iterations_found", lambda r: r.traffic.loop.found),
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
