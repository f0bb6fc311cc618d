"""Block scheduling cost: how many cycles block slots wait for their next block, and what that costs a launch."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.canvas import CYCLES
from tui_probe.draw.charts import Bar, BarChart
from tui_probe.draw.curve_chart import Curve, CurveChart
from tui_probe.draw.table import Column
from tui_probe.evals.answer import Answer, Table, compare_published
from tui_probe.evals.evaluation import (
    PROGRAMS_PLACEHOLDER,
    PYTHON_PLACEHOLDER,
    Collection,
    Evaluation,
    nothing_measured_error,
)
from tui_probe.records.block_times import SLOT_TIME_LABELS
from tui_probe.records.distribution import distribution

from .rows import (
    FILL_COLUMNS,
    SCHEDULE_COLUMNS,
    FillComparison,
    FillTimes,
    Schedule,
    compare_fills,
    fill_chart,
    fill_sentences,
    read_fill_times,
    schedule_of,
    sm_rows,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.draw.view import Progress
    from tui_probe.evals.evaluation import Setting
    from tui_probe.evals.inputs import EvaluationInput

_FILLS: Final = ("plain", "memset", "persistent")
_KERNELS: Final = "fill_:FillFunctor"
_BUDGETS: Final = ("--no-source", "--max-trace-bytes", "64M", "--max-log-bytes", "1M")
NAME: Final = "scheduling"
PROBE: Final = "block_sched"
PUBLISHED_BLOCKS: Final = 32768
"""Blocks of the fill that the published figures are of."""
_PERCENTILES: Final = {"p0": "min", "p25": "25 %", "p50": "median", "p75": "75 %", "p99": "99 %", "p100": "max"}
_SM_COLUMNS: Final[tuple[Column[dict[str, Any]], ...]] = tuple(
    Column(key, itemgetter(key))
    for key in ("trace", "launch", "sm", "blocks", "slots", "running", "scheduling", "ramp", "tail", "share")
)


def collect(setting: Setting) -> list[Collection]:
    """A trace for each kernel, and one whose program tells the durations of what ran unprobed.

    The driver's own fill is not a launch that a hook sees, so it has a duration only.
    """
    size_options = ("--elements", str(1 << 14), "--driver-only") if setting.simulated else ()
    program = (PYTHON_PLACEHOLDER, f"{PROGRAMS_PLACEHOLDER}/fill.py", *size_options)
    probe_options = ("-p", "block_sched", "-k", _KERNELS, "--launches", "all", "--no-times", *_BUDGETS)
    unprobed_options = ("-p", "block_sched", "-k", "no kernel of this name", "--launches", "0", "--no-times", *_BUDGETS)
    times = "4" if setting.simulated else "100"
    # PyTorch chooses the grid of its fill by the GPU; ours has that of the published one, and needs no PyTorch.
    published_grid = (
        ()
        if setting.simulated
        else (Collection("plain_ptx", (*program, "--driver-only", "--times", "0", "plain"), probe_options),)
    )
    return [
        *(Collection(name, (*program, "--times", "0", name), probe_options) for name in ("plain", "persistent")),
        *published_grid,
        Collection("durations", (*program, "--times", times, *_FILLS), unprobed_options),
    ]


def answer(inputs: Sequence[EvaluationInput], progress: Progress) -> Answer:
    """The schedules of all launches that were given, and the published fill next to ours of the same grid."""
    fills_by_label = {entry.label: fills for entry in inputs if (fills := read_timed_fills(entry))}
    schedules, notes = read_schedules([entry for entry in inputs if entry.label not in fills_by_label], progress)
    rows = compare_fills([row for fills in fills_by_label.values() for row in fills], schedules)
    measured_schedules = (entry for entry in schedules if not entry.simulated)
    same_grid = next((entry for entry in measured_schedules if entry.blocks_on_sms.blocks == PUBLISHED_BLOCKS), None)
    lines = [
        text
        for entry in schedules
        for text in (_head_sentence(entry, len(schedules)), entry.line(), f"    {entry.text()}")
    ]
    lines += fill_sentences(rows)
    duration_tables = (
        {"durations": Table("fill implementations: duration of an unprobed launch", FILL_COLUMNS, rows)} if rows else {}
    )
    return Answer(
        said=[text for text in lines if text],
        tables={
            "schedules": Table("block schedules: cycles, means over SMs", SCHEDULE_COLUMNS, schedules),
            "spread": Table("cycles per slot: distribution over SMs", _SPREAD_COLUMNS, _spread_rows(schedules)),
            "sms": Table(
                "one row per SM", _SM_COLUMNS, [row for entry in schedules for row in sm_rows(entry)], in_text=False
            ),
            **duration_tables,
        },
        drawings={
            "parts": _parts_chart(schedules),
            "sms": _sm_chart(schedules),
            **({"durations": fill_chart(rows)} if rows else {}),
        },
        compared=compare_published(NAME, **({} if same_grid is None else _ours(same_grid))),
        notes=[*notes, *_published_notes(same_grid), *durations_notes(rows)],
    )


def _published_notes(same_grid: Schedule | None) -> list[str]:
    """Return the values to compare with the published fill."""
    if same_grid is None:
        return []
    return [
        f"the published fill kernel is compared with {same_grid.label}: both grids have {units.count(PUBLISHED_BLOCKS)}"
        " blocks. GPUs and kernels differ, so compare the shares, not the cycles"
    ]


def read_timed_fills(source: EvaluationInput) -> list[FillTimes]:
    """The durations in a trace that has no schedules: of one that has, the launches were probed."""
    return [] if any(source.results(PROBE)) else read_fill_times(source)


def durations_notes(rows: Sequence[FillComparison]) -> list[str]:
    """Return the origin of durations, or the reason why there are none."""
    if not rows:
        return []
    if not any(len(row.fill.microseconds) for row in rows):
        return ["the simulated GPU has no durations; collect them on a GPU"]
    pairs = [row.fill.event_overhead for row in rows if row.fill.event_overhead is not None]
    return [f"a duration is the time between two events minus the {np.median(pairs):.1f} µs that the events take"]


def read_schedules(inputs: Sequence[EvaluationInput], progress: Progress) -> tuple[list[Schedule], list[str]]:
    """The schedules, and why others are left out. TraceError if there is none."""
    schedules: list[Schedule] = []
    notes: list[str] = []
    for place, source in enumerate(inputs):
        progress(place / len(inputs))
        results = list(source.results(PROBE))
        schedules += [schedule_of(source, result) for result in results if result.analysis is not None]
        notes += [result.problem for result in results if result.problem is not None]
        if not results:
            notes.append(source.no_result_reason(PROBE))
    if not schedules:
        raise nothing_measured_error(NAME, notes)
    return schedules, notes


def _head_sentence(schedule: Schedule, count: int) -> str:
    return f"{schedule.label}, {schedule.launch}:" if count > 1 else ""


def _ours(schedule: Schedule) -> dict[str, float | None]:
    share = schedule.share
    return {
        "running_sum": schedule.running_sum,
        "scheduling_sum": schedule.scheduling_sum,
        "share": None if share is None else 100 * share,
    }


# -- over SMs


def _spread_rows(schedules: Sequence[Schedule]) -> list[dict[str, Any]]:
    rows = []
    for schedule in schedules:
        for name in ("running", "scheduling"):
            spread = distribution(getattr(schedule.blocks_on_sms, f"sm_{name}"))
            assert spread is not None  # a schedule has at least one SM
            rows.append({"trace": schedule.label, "launch": schedule.launch, "figure": name, **spread.record()})
    return rows


def _percentile(key: str, title: str) -> Column[dict[str, Any]]:
    return Column(key, itemgetter(key), title, lambda row: units.count(round(row[key])))


_SPREAD_COLUMNS: Final[tuple[Column[dict[str, Any]], ...]] = (
    Column("trace", itemgetter("trace"), "trace", itemgetter("trace"), right=False, narrow=12),
    Column("launch", itemgetter("launch"), "launch", itemgetter("launch"), right=False, rank=1),
    Column("figure", itemgetter("figure"), "cycles", itemgetter("figure"), right=False),
    *(_percentile(key, title) for key, title in _PERCENTILES.items()),
)


# -- figures


def _parts_chart(schedules: Sequence[Schedule]) -> BarChart:
    bars = [
        Bar(
            f"{schedule.label} {schedule.launch}",
            tuple(float(getattr(schedule.blocks_on_sms, f"sm_{name}").mean()) for name in SLOT_TIME_LABELS),
            f"{units.count(round(schedule.blocks_on_sms.span))} cycles",
        )
        for schedule in schedules
    ]
    title, parts = "parts of the time of a slot", tuple(SLOT_TIME_LABELS.values())
    return BarChart(
        title, bars, parts, "cycles per slot", lambda n: units.count(round(n)), keys=tuple(SLOT_TIME_LABELS)
    )


def _sm_chart(schedules: Sequence[Schedule]) -> CurveChart:
    """Return curves of the number of SMs with at most that many scheduling cycles per slot."""
    curves = []
    for schedule in schedules:
        cycles = np.sort(schedule.blocks_on_sms.sm_scheduling)
        curves.append(
            Curve(f"{schedule.label} {schedule.launch}", cycles, np.arange(1, len(cycles) + 1) / len(cycles) * 100)
        )
    return CurveChart(
        "distribution of SMs by scheduling cycles per slot", curves, "scheduling cycles per slot",
        "% of SMs at or below the value", (CYCLES, CYCLES),
    )  # fmt: skip


EVALUATION: Final = Evaluation(
    name="scheduling",
    question="how much time of a launch do SMs spend on scheduling blocks, and how much does less scheduling gain?",
    probes=(PROBE,),
    reading=(
        "An SM has several block slots; each slot runs one block at a time. Running is the time in which a slot has"
        " a block. Scheduling is the time from the end of a block to the start of the next block in its slot."
        " The values of running and scheduling are means over the slots of an SM and over SMs. Means can be compared"
        " with the time of the launch.",
        "The published line has sums over the slots of an SM, not means. A sum is the mean multiplied by the number of"
        " slots per SM. Sums cannot be compared with the time of the launch. The answer has the means and the sums.",
        "While a slot waits, the other slots of its SM work, and writes to memory continue. A kernel with fewer,"
        " longer blocks can save at most the scheduling time; usually, the kernel saves less. The difference between"
        " the spans of two kernels shows the actual effect.",
    ),
    open=answer,
    collect=collect,
)
