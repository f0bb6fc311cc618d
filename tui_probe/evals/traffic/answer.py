"""The answer: bytes of each level of memory per call, and how much more each program moves than the best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.bar_chart import Bar, BarChart
from tui_probe.errors import ImportFileError
from tui_probe.evals.answer import Answer, Table
from tui_probe.evals.opening import nothing_measured
from tui_probe.nsight.analysis.chosen_launches import FIND_OUT, Plan
from tui_probe.nsight.importers.ncu import read_ncu
from tui_probe.nsight.pages.ncu_pages import NcuReport, kernels_page
from tui_probe.nsight.pages.traffic_page import traffic_page

from .collect import RUNS, SPARSE, WARM_UP, WAYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.draw.view import Progress
    from tui_probe.evals.given import Given
    from tui_probe.nsight.analysis.traffic import Level
    from tui_probe.nsight.pages.traffic_page import TrafficRow
    from tui_probe.pages.table_page import TablePage

NAME: Final = "traffic"
_SPARSE: Final = "sparse"
_LEVELS: Final[dict[Level, str]] = {"dram": "DRAM", "l2": "L2", "l1": "L1"}


def answer(given: Sequence[Given], progress: Progress) -> Answer:
    """A row for each program. TraceError where no file of ncu has bytes."""
    progress(0.0)
    files = [one.path for one in given if one.trace is None]
    notes = [f"{one.path}: a trace has no counters of memory: name files of ncu" for one in given if one.trace]
    if not files:
        raise nothing_measured(NAME, notes)
    try:
        groups = [_group(name, paths) for name, paths in grouped(files).items()]
    except ImportFileError as error:
        raise nothing_measured(NAME, [str(error)]) from error
    rows = [row for group in groups for row in group.page.rows]
    told = list(dict.fromkeys(note for group in groups for note in group.page.words.notes))
    if not any(value is not None for row in rows for value in row.traffic.bytes.values()):
        raise nothing_measured(NAME, [*told, "no kernel has bytes of any level"])
    return Answer(
        said=[*(words for each in groups for words in _said(each, len(groups))), *_found(groups)],
        tables={
            **{each.table: Table(each.title, each.page.columns, each.page.rows) for each in groups},
            "kernels": _kernels(groups),
        },
        drawings={level: _chart(level, rows) for level in _LEVELS},
        notes=[*notes, *told],
    )


@dataclass(frozen=True, slots=True)
class Group:
    """Programs that compute the same: "of best" is of the best among them. ``name`` is "" where there is one group."""

    name: str
    report: NcuReport
    page: TablePage[TrafficRow]

    @property
    def table(self) -> str:
        return f"{NAME}_{self.name}" if self.name == _SPARSE else NAME

    @property
    def title(self) -> str:
        return f"memory traffic per call, {self.name} attention" if self.name else "memory traffic per call"


def grouped(files: Sequence[Path]) -> dict[str, list[Path]]:
    """Sparse attention apart from the rest, which computes more; one group where there is only one of the two."""
    sparse = [path for path in files if path.stem in SPARSE]
    dense = [path for path in files if path not in sparse]
    if not sparse or not dense:
        return {"": list(files)}
    return {"dense": dense, _SPARSE: sparse}


def _group(name: str, paths: Sequence[Path]) -> Group:
    """ImportFileError for what is no file of ncu."""
    report = NcuReport(read_ncu(paths), plan_for([path.stem for path in paths]))
    return Group(name, report, traffic_page(report))


def _found(groups: Sequence[Group]) -> list[str]:
    return [words for group in groups for words in group.page.words.found]


def _kernels(groups: Sequence[Group]) -> Table[Any]:
    pages = [kernels_page(group.report) for group in groups]
    rows = [row for page in pages for row in page.rows]
    return Table("kernels, and which of them count", pages[0].columns, rows, in_text=False)


def plan_for(names: Sequence[str]) -> Plan:
    """Our own programs make as many calls as is known; of others it is found in the launches."""
    return Plan(WARM_UP, RUNS, ()) if all(name in WAYS for name in names) else FIND_OUT


def _said(group: Group, groups: int) -> Iterator[str]:
    """Per level the program that moves least, and the one that moves most."""
    of = f"{group.name} attention, " if groups > 1 else ""
    for level, title in _LEVELS.items():
        known = {row.program: moved for row in group.page.rows if (moved := row.traffic.bytes[level]) is not None}
        if len(known) < 2:
            continue
        best, worst = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
        times = f" ({known[worst] / known[best]:.2f}× as much)" if known[best] else ""
        yield f"{of}{title}: least {best} ({units.size(known[best])} per call), most {worst}{times}"


def _chart(level: Level, rows: Sequence[TrafficRow]) -> BarChart:
    bars = [Bar(row.program, (row.traffic.bytes[level],)) for row in rows]
    return BarChart(f"{_LEVELS[level]} traffic per call", bars, (_LEVELS[level],), "bytes", units.size)
