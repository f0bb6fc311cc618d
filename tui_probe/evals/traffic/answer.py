"""The answer: bytes of each level of memory per call, and how much more each program moves than the best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.analysis.chosen_launches import FIND_OUT, Plan
from tui_probe.draw import units
from tui_probe.draw.bar_chart import Bar, BarChart
from tui_probe.errors import ImportFileError
from tui_probe.evals.answer import Answer, Table
from tui_probe.evals.opening import nothing_measured
from tui_probe.importers.ncu import read_ncu
from tui_probe.pages.nsight.ncu_pages import NcuReport, kernels_page
from tui_probe.pages.nsight.traffic_page import traffic_page

from .collect import RUNS, WARM_UP, WAYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.analysis.traffic import Level
    from tui_probe.draw.view import Progress
    from tui_probe.evals.given import Given
    from tui_probe.pages.nsight.traffic_page import TrafficRow

NAME: Final = "traffic"
_LEVELS: Final[dict[Level, str]] = {"dram": "DRAM", "l2": "L2", "l1": "L1"}


def answer(given: Sequence[Given], progress: Progress) -> Answer:
    """A row for each program. TraceError where no file of ncu has bytes."""
    progress(0.0)
    files = [one.path for one in given if one.trace is None]
    notes = [f"{one.path}: a trace has no counters of memory: name files of ncu" for one in given if one.trace]
    if not files:
        raise nothing_measured(NAME, notes)
    try:
        report = NcuReport(read_ncu(files), plan_for([path.stem for path in files]))
        page = traffic_page(report)
    except ImportFileError as error:
        raise nothing_measured(NAME, [str(error)]) from error
    if not any(value is not None for row in page.rows for value in row.traffic.bytes.values()):
        raise nothing_measured(NAME, [*page.words.notes, "no kernel has bytes of any level"])
    kernels = kernels_page(report)
    return Answer(
        said=[*_said(page.rows), *page.words.found],
        tables={
            "traffic": Table("memory traffic per call", page.columns, page.rows),
            "kernels": Table("kernels, and which of them count", kernels.columns, kernels.rows, in_text=False),
        },
        drawings={level: _chart(level, page.rows) for level in _LEVELS},
        notes=[*notes, *page.words.notes],
    )


def plan_for(names: Sequence[str]) -> Plan:
    """Our own programs make as many calls as is known; of others it is found in the launches."""
    return Plan(WARM_UP, RUNS, ()) if all(name in WAYS for name in names) else FIND_OUT


def _said(rows: Sequence[TrafficRow]) -> list[str]:
    """Per level the program that moves least, and the one that moves most."""
    said = []
    for level, title in _LEVELS.items():
        known = [row for row in rows if row.traffic.bytes[level] is not None]
        if len(known) < 2:
            continue
        by_bytes = sorted(known, key=lambda row, level=level: row.traffic.bytes[level] or 0.0)  # type: ignore[misc]
        best, worst = by_bytes[0], by_bytes[-1]
        said.append(
            f"{title}: least {best.program} ({units.size(best.traffic.bytes[level])} per call), most {worst.program}"
            f" ({worst.ratio[level]:.2f}× as much)"
        )
    return said


def _chart(level: Level, rows: Sequence[TrafficRow]) -> BarChart:
    bars = [Bar(row.program, (row.traffic.bytes[level],)) for row in rows]
    return BarChart(f"{_LEVELS[level]} traffic per call", bars, (_LEVELS[level],), "bytes", units.size)
