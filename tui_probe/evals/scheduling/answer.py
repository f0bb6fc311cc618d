"""The answer: schedules of launches, their distribution over SMs, and where the time of a slot goes."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.analysis.distribution import distribution
from tui_probe.analysis.slots import PARTS
from tui_probe.draw import units
from tui_probe.draw.axis import CYCLES
from tui_probe.draw.bar_chart import Bar, BarChart
from tui_probe.draw.curve_chart import Curve, CurveChart
from tui_probe.draw.table import Column
from tui_probe.evals.answer import Answer, Table
from tui_probe.evals.opening import nothing_measured
from tui_probe.evals.published import compared

from . import durations
from .schedules import COLUMNS, Schedule, schedule_of, sm_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.draw.view import Progress
    from tui_probe.evals.given import Given

NAME: Final = "scheduling"
PROBE: Final = "block_sched"
PUBLISHED_BLOCKS: Final = 32768
"""Blocks of the fill that the published figures are of."""


def answer(given: Sequence[Given], progress: Progress) -> Answer:
    """The schedules of all launches that were given, and the published fill beside ours of the same grid."""
    timed = {one.label: found for one in given if (found := timed_in(one))}
    schedules, notes = schedules_of([one for one in given if one.label not in timed], progress)
    rows = durations.compare([row for found in timed.values() for row in found], schedules)
    alike = next((one for one in schedules if one.of.blocks == PUBLISHED_BLOCKS and not one.simulated), None)
    said = [words for one in schedules for words in (_head(one, len(schedules)), one.line(), f"    {one.words()}")]
    said += durations.said(rows)
    ways = {"durations": Table("ways to fill: one launch, unprobed", durations.COLUMNS, rows)} if rows else {}
    return Answer(
        said=[words for words in said if words],
        tables={
            "schedules": Table("block schedules: cycles, means over SMs", COLUMNS, schedules),
            "spread": Table("over SMs: cycles per slot", _SPREAD, _spread(schedules)),
            "sms": Table("one row per SM", _SMS, [row for one in schedules for row in sm_rows(one)], in_text=False),
            **ways,
        },
        drawings={
            "parts": _parts(schedules),
            "sms": _over_sms(schedules),
            **({"durations": durations.chart(rows)} if rows else {}),
        },
        compared=compared(NAME, **({} if alike is None else _ours(alike))),
        notes=[*notes, *_alike_notes(alike), *durations_notes(rows)],
    )


def _alike_notes(alike: Schedule | None) -> list[str]:
    """What stands beside the published fill."""
    if alike is None:
        return []
    return [
        f"beside the published fill stands {alike.label}, of as many blocks ({units.count(PUBLISHED_BLOCKS)}): cycles"
        " of two GPUs and two kernels say little beside each other, shares say more"
    ]


def timed_in(given: Given) -> list[durations.Filled]:
    """The durations in a trace that has no schedules: of one that has, the launches were probed."""
    return [] if any(given.results(PROBE)) else durations.durations_in(given)


def durations_notes(rows: Sequence[durations.Compared]) -> list[str]:
    """What durations are of, or why there are none."""
    if not rows:
        return []
    if not any(len(row.filled.microseconds) for row in rows):
        return ["durations: the simulated GPU has none; collect them on a GPU"]
    pairs = [row.filled.pair for row in rows if row.filled.pair is not None]
    return [f"durations are between two events, less the {np.median(pairs):.1f} µs that those take by themselves"]


def schedules_of(given: Sequence[Given], progress: Progress) -> tuple[list[Schedule], list[str]]:
    """The schedules, and why others are left out. TraceError if there is none."""
    found: list[Schedule] = []
    notes: list[str] = []
    for place, one in enumerate(given):
        progress(place / len(given))
        results = list(one.results(PROBE))
        found += [schedule_of(one, result) for result in results if result.analysis is not None]
        notes += [result.problem for result in results if result.problem is not None]
        if not results:
            notes.append(one.why_none(PROBE))
    if not found:
        raise nothing_measured(NAME, notes)
    return found, notes


def _head(schedule: Schedule, count: int) -> str:
    return f"{schedule.label}, {schedule.launch}:" if count > 1 else ""


def _ours(schedule: Schedule) -> dict[str, float | None]:
    share = schedule.share
    return {
        "running_sum": schedule.running_sum,
        "scheduling_sum": schedule.scheduling_sum,
        "share": None if share is None else 100 * share,
    }


# -- over SMs

_PERCENTILES: Final = {"p0": "least", "p25": "25 %", "p50": "median", "p75": "75 %", "p99": "99 %", "p100": "most"}


def _spread(schedules: Sequence[Schedule]) -> list[dict[str, Any]]:
    rows = []
    for one in schedules:
        for name in ("running", "scheduling"):
            found = distribution(getattr(one.of, f"sm_{name}"))
            assert found is not None  # a schedule has at least one SM
            rows.append({"trace": one.label, "launch": one.launch, "figure": name, **found.record()})
    return rows


def _percentile(key: str, title: str) -> Column[dict[str, Any]]:
    return Column(key, itemgetter(key), title, lambda row: units.count(round(row[key])))


_SPREAD: Final[tuple[Column[dict[str, Any]], ...]] = (
    Column("trace", itemgetter("trace"), "trace", itemgetter("trace"), False, narrow=12),
    Column("launch", itemgetter("launch"), "launch", itemgetter("launch"), False, 1),
    Column("figure", itemgetter("figure"), "cycles", itemgetter("figure"), False),
    *(_percentile(key, title) for key, title in _PERCENTILES.items()),
)
_SMS: Final[tuple[Column[dict[str, Any]], ...]] = tuple(
    Column(key, itemgetter(key))
    for key in ("trace", "launch", "sm", "blocks", "slots", "running", "scheduling", "ramp", "tail", "share")
)


# -- figures


def _parts(schedules: Sequence[Schedule]) -> BarChart:
    bars = [
        Bar(
            f"{one.label} {one.launch}",
            tuple(float(getattr(one.of, f"sm_{name}").mean()) for name in PARTS),
            f"{units.count(round(one.of.span))} cycles",
        )
        for one in schedules
    ]
    title, parts = "where the time of a slot goes", tuple(PARTS.values())
    return BarChart(title, bars, parts, "cycles per slot", lambda n: units.count(round(n)), keys=tuple(PARTS))


def _over_sms(schedules: Sequence[Schedule]) -> CurveChart:
    """How many of the SMs have at most so many scheduling cycles per slot."""
    curves = []
    for one in schedules:
        cycles = np.sort(one.of.sm_scheduling)
        curves.append(Curve(f"{one.label} {one.launch}", cycles, np.arange(1, len(cycles) + 1) / len(cycles) * 100))
    return CurveChart(
        "scheduling cycles per slot over SMs", curves, "scheduling cycles per slot", "% of SMs at or below",
        (CYCLES, CYCLES),
    )  # fmt: skip
