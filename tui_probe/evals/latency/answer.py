"""The answer: a table of all operations and probes, one of the published columns for each operation, and its bars."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.bar_chart import Bar, BarChart
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.evals.answer import Answer, Table
from tui_probe.evals.opening import nothing_measured

from .calls import KEYS, Row, calls_in, is_table, read_table, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.draw.view import Progress
    from tui_probe.evals.given import Given

NAME: Final = "latency"
_PARTS: Final = ("prologue", "kernel", "epilogue", "ncu")


def answer(given: Sequence[Given], progress: Progress) -> Answer:
    """Every probed run beside the original and ncu."""
    rows, notes = _rows(given, progress)
    operations = list(dict.fromkeys(row.operation for row in rows))
    by_operation = {name: [row for row in rows if row.operation == name] for name in operations}
    tables: dict[str, Table[Any]] = {"latency": Table("times of a call: medians", _COLUMNS, rows)}
    tables |= {name: Table(name, _PUBLISHED, own, in_text=False) for name, own in by_operation.items()}
    charts = {name: _chart(name, own) for name, own in by_operation.items() if any(row.original for row in own)}
    return Answer(said=list(map(_said, rows)), tables=tables, drawings=charts, notes=notes)


def _rows(given: Sequence[Given], progress: Progress) -> tuple[list[Row], list[str]]:
    """From traces, outputs and files of medians. TraceError if none has any."""
    rows: list[Row] = []
    calls, notes = [], []
    for place, one in enumerate(given):
        progress(place / len(given))
        if one.trace is None and is_table(one.path):
            rows += read_table(one.path)
        elif found := calls_in(one):
            calls += found
        else:
            notes.append(f"{one.path}: its program wrote no times of calls")
    probed, missing = rows_of(calls)
    rows += probed
    if not rows:
        raise nothing_measured(NAME, [*notes, *missing])
    if any(row.neutrino is None for row in probed):
        missing.append("the simulated GPU has no time: collect it on a GPU")
    if not any(row.ncu for row in rows):
        missing.append("nothing was run under ncu: its column is empty")
    return rows, [*notes, *missing]


def _said(row: Row) -> str:
    times = row.ratio(row.neutrino)
    if times is None:
        return f"{row.operation} with {row.probe}: {NOT_MEASURED}"
    ncu = row.ratio(row.ncu)
    under = "" if ncu is None else f", under ncu {ncu:.2f}×"
    return f"{row.operation} with {row.probe}: {times:.2f}× the original{under}"


def _chart(operation: str, rows: Sequence[Row]) -> BarChart:
    """Two bars per probe, as multiples of the original: ours in its parts, and ncu."""
    bars = []
    for row in rows:
        ours = (row.ratio(row.prologue), row.ratio(row.kernel), row.ratio(row.epilogue), None)
        bars.append(Bar(row.probe, ours, _times(row.ratio(row.neutrino))))
        if row.ncu is not None:
            bars.append(Bar("  under ncu", (None, None, None, row.ratio(row.ncu)), _times(row.ratio(row.ncu))))
    return BarChart(f"exposed latency of {operation}", bars, _PARTS, "times the original", _times)


def _times(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.2f}×"


def _microseconds(key: str, title: str, rank: int = 0) -> Column[Row]:
    read = attrgetter(key)
    return Column(key, read, title, lambda row: _duration(read(row)), rank=rank)


def _duration(value: float | None) -> str:
    return NOT_MEASURED if value is None else units.duration(value / 1e6)


_COLUMNS: Final[tuple[Column[Row], ...]] = (
    Column("operation", attrgetter("operation"), "operation", attrgetter("operation"), False),
    Column("probe", attrgetter("probe"), "probe", attrgetter("probe"), False, narrow=12),
    _microseconds("original", "original"),
    _microseconds("ncu", "ncu", 1),
    _microseconds("neutrino", "probed"),
    _microseconds("prologue", "prologue"),
    _microseconds("kernel", "kernel"),
    _microseconds("epilogue", "epilogue"),
    Column("times", lambda r: r.ratio(r.neutrino), "times", lambda r: _times(r.ratio(r.neutrino))),
    Column("times_ncu", lambda r: r.ratio(r.ncu), "ncu times", lambda r: _times(r.ratio(r.ncu)), rank=1),
)
_PUBLISHED: Final[tuple[Column[Row], ...]] = tuple(Column(key, attrgetter(key)) for key in KEYS)
"""In text there is only the main table; these are for CSV."""
