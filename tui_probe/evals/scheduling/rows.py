"""Rows of the evaluation: block schedules of launches, and durations of fills compared with the plain fill.

A schedule has how long the slots of each SM run blocks and wait for the next one; it explains part of the difference
between two fills.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.charts import Bar, BarChart
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.errors import TraceError
from tui_probe.evals.inputs import output_lines
from tui_probe.input_limits import parse_json
from tui_probe.probekit.probe_results import cycles_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.evals.inputs import EvaluationInput
    from tui_probe.probekit.measured import AnalysedResult

_SPREAD_PERCENTILES: Final = (5, 95)
_OUTPUT_START: Final = '{"fill": '
"""Start of a line of the program's output that has the durations of a fill."""
PLAIN_FILL: Final = "plain"
"""The implementation that others are compared with."""


class BlockSchedule(Protocol):
    """Schedule of one launch, from the probe's analysis, which defines the cycles. Arrays have one element per SM."""

    blocks: int
    sm: NDArray[np.uint32]
    sm_blocks: NDArray[np.int64]
    sm_slots: NDArray[np.int64]
    sm_running: NDArray[np.float64]
    sm_scheduling: NDArray[np.float64]
    sm_ramp: NDArray[np.float64]
    sm_tail: NDArray[np.float64]

    @property
    def span(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Schedule:
    """One launch. Cycles are means over SMs: per slot, and (``_sum``) summed over the slots of an SM."""

    label: str
    kernel: str
    launch: str
    blocks_on_sms: BlockSchedule
    clock_khz: int | None
    simulated: bool

    @property
    def running(self) -> float:
        return float(self.blocks_on_sms.sm_running.mean())

    @property
    def scheduling(self) -> float:
        return float(self.blocks_on_sms.sm_scheduling.mean())

    @property
    def running_sum(self) -> float:
        return float((self.blocks_on_sms.sm_running * self.blocks_on_sms.sm_slots).mean())

    @property
    def scheduling_sum(self) -> float:
        return float((self.blocks_on_sms.sm_scheduling * self.blocks_on_sms.sm_slots).mean())

    @property
    def slots(self) -> float:
        """Blocks that are on an SM together, mean over SMs."""
        return float(self.blocks_on_sms.sm_slots.mean())

    @property
    def factor(self) -> float | None:
        """Ratio of the published sums to the means over slots."""
        total = self.running + self.scheduling
        return (self.running_sum + self.scheduling_sum) / total if total else None

    @property
    def share(self) -> float | None:
        """Scheduling in Running + Scheduling, from 0 to 1; the same in means and in sums where all SMs have as many
        slots.
        """
        total = self.running + self.scheduling
        return self.scheduling / total if total else None

    @property
    def share_of_span(self) -> float | None:
        """Scheduling in the time from the first start to the last end on an SM, from 0 to 1."""
        return self.scheduling / self.blocks_on_sms.span if self.blocks_on_sms.span else None

    def line(self) -> str:
        """Return the line in the published format, with sums over slots."""
        running, scheduling = round(self.running_sum), round(self.scheduling_sum)
        return f"No.block:{self.blocks_on_sms.blocks} Running:{running} Scheduling:{scheduling}(cycle)"

    def text(self) -> str:
        """Return the means per slot, and how the published line differs from them."""
        running, scheduling = (cycles_text(n, self.clock_khz) for n in (self.running, self.scheduling))
        text = (
            f"mean per slot: running {running}; scheduling {scheduling}, which is {units.percentage(self.share)} of"
            " running + scheduling"
        )
        if self.factor is None or self.slots == 1:
            return f"{text}; the line above has the same values, because each SM had one block at a time"
        return f"{text}; the line above sums over {self.slots:.3g} slots per SM ({self.factor:.3g} times as much)"


def schedule_of(source: EvaluationInput, result: AnalysedResult) -> Schedule:
    """Return the schedule in an analysed result."""
    trace = result.kernel.trace
    device = trace.state.device
    simulated = trace.state.simulated
    clock = None if device is None or simulated else device.clock_khz or None
    return Schedule(source.label, result.kernel.demangled, result.label, result.analysis, clock, simulated)


def _cycles(value: float) -> str:
    return units.count(round(value))


SCHEDULE_COLUMNS: Final[tuple[Column[Schedule], ...]] = (
    Column("trace", lambda r: r.label, "trace", lambda r: r.label, right=False, narrow=12),
    Column("kernel", lambda r: r.kernel, "kernel", lambda r: r.kernel, right=False, rank=1, narrow=12, shorten=shorten),
    Column("launch", lambda r: r.launch),
    Column("blocks", lambda r: r.blocks_on_sms.blocks, "blocks", lambda r: units.count(r.blocks_on_sms.blocks)),
    Column("sms", lambda r: len(r.blocks_on_sms.sm), "SMs", lambda r: str(len(r.blocks_on_sms.sm)), rank=3),
    Column("slots", lambda r: r.slots, "slots", lambda r: f"{r.slots:.3g}", rank=3),
    Column("running", lambda r: r.running, "running", lambda r: _cycles(r.running)),
    Column("scheduling", lambda r: r.scheduling, "scheduling", lambda r: _cycles(r.scheduling)),
    Column("share", lambda r: r.share, "share", lambda r: units.percentage(r.share)),
    Column("running_sum", lambda r: r.running_sum, "Σ running", lambda r: _cycles(r.running_sum), rank=2),
    Column("scheduling_sum", lambda r: r.scheduling_sum, "Σ scheduling", lambda r: _cycles(r.scheduling_sum), rank=2),
    Column("factor", lambda r: r.factor, "factor", lambda r: NOT_MEASURED if r.factor is None else f"{r.factor:.3g}"),
    Column("span", lambda r: float(r.blocks_on_sms.span), "span", lambda r: _cycles(r.blocks_on_sms.span), rank=2),
    Column("share_of_span", lambda r: r.share_of_span, "of span", lambda r: units.percentage(r.share_of_span), rank=3),
)


def sm_rows(schedule: Schedule) -> list[dict[str, Any]]:
    """Return a row per SM; cycles are means over its slots."""
    blocks = schedule.blocks_on_sms
    totals = blocks.sm_running + blocks.sm_scheduling
    names = ("sm_blocks", "sm_slots", "sm_running", "sm_scheduling", "sm_ramp", "sm_tail")
    columns = {"sm": blocks.sm, **{name.removeprefix("sm_"): getattr(blocks, name) for name in names}}
    shares = np.divide(blocks.sm_scheduling, totals, out=np.full(len(totals), np.nan), where=totals > 0)
    return [
        {
            "trace": schedule.label,
            "launch": schedule.launch,
            **dict(zip(columns, row, strict=True)),
            "share": None if np.isnan(share) else share,
        }
        for share, *row in zip(shares.tolist(), *(column.tolist() for column in columns.values()), strict=True)
    ]


@dataclass(frozen=True, slots=True)
class FillTimes:
    """Durations of one implementation of the fill."""

    name: str
    description: str
    microseconds: NDArray[np.float64]
    """Duration of each launch without the event overhead; empty if nothing was timed, as on the simulated GPU."""
    event_overhead: float | None
    """Median microseconds between two events without a launch between them."""

    def percentile(self, percentile: float) -> float | None:
        """Return a percentile in microseconds; None without values."""
        return float(np.percentile(self.microseconds, percentile)) if len(self.microseconds) else None

    @property
    def median(self) -> float | None:
        return self.percentile(50)

    @property
    def spread(self) -> float | None:
        """The range of the middle 90% of the launches, relative to the median."""
        minimum, maximum, median = (
            self.percentile(_SPREAD_PERCENTILES[0]),
            self.percentile(_SPREAD_PERCENTILES[1]),
            self.median,
        )
        return (maximum - minimum) / median if median and minimum is not None and maximum is not None else None


def read_fill_times(source: EvaluationInput) -> list[FillTimes]:
    """Return the fills that a program printed, empty for another program. Raises TraceError for a broken line."""
    path = None if source.trace is None else source.trace.file("stdout.log")
    if source.trace is None or path is None or not (lines := output_lines(path, _OUTPUT_START)):
        return []
    has_times = not source.trace.state.simulated
    try:
        return [_fill_times(parse_json(line), has_times=has_times) for line in lines]
    except (ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{path}: cannot read a line with durations ({error}); collect the file again") from error


def _fill_times(line: dict[str, Any], *, has_times: bool) -> FillTimes:
    values, event_times = (np.array(line[key] if has_times else [], np.float64) for key in ("microseconds", "nothing"))
    overhead = float(np.median(event_times)) if len(event_times) else None
    return FillTimes(str(line["fill"]), str(line["what"]), np.maximum(values - (overhead or 0.0), 0.0), overhead)


@dataclass(frozen=True, slots=True)
class FillComparison:
    """An implementation of the fill, compared with the plain one. Durations are in microseconds."""

    fill: FillTimes
    plain_fill: FillTimes | None
    schedule: Schedule | None
    """None if the hook sees no launch, as with the fill of the driver."""
    plain_schedule: Schedule | None

    @property
    def speedup(self) -> float | None:
        """Speedup over the plain implementation."""
        median, plain_median = self.fill.median, None if self.plain_fill is None else self.plain_fill.median
        return plain_median / median if median and plain_median else None

    @property
    def scheduling(self) -> float | None:
        """Waiting time per slot at the highest clock."""
        return _scheduling_microseconds(self.schedule)

    @property
    def gained(self) -> float | None:
        """Time by which the median launch is shorter than the plain one."""
        median, plain_median = self.fill.median, None if self.plain_fill is None else self.plain_fill.median
        return None if median is None or plain_median is None or self.fill is self.plain_fill else plain_median - median

    @property
    def wait_saving(self) -> float | None:
        """Time by which a slot waits less for blocks than in the plain one."""
        wait, plain_wait = self.scheduling, _scheduling_microseconds(self.plain_schedule)
        return None if wait is None or plain_wait is None or self.fill is self.plain_fill else plain_wait - wait

    @property
    def explained(self) -> float | None:
        """The most of the gain that less scheduling can explain, from 0 to 1; None where nothing is gained.

        Slots wait while others of their SM work, so a launch gets shorter by no more than they wait less.
        """
        if self.wait_saving is None or self.gained is None or self.gained <= 0:
            return None
        return min(max(self.wait_saving, 0.0) / self.gained, 1.0)

    @property
    def span_saving(self) -> float | None:
        """Time by which the span of the probed launch is shorter than that of the plain one."""
        span, plain_span = _span_microseconds(self.schedule), _span_microseconds(self.plain_schedule)
        return None if self.wait_saving is None or span is None or plain_span is None else plain_span - span


def _scheduling_microseconds(schedule: Schedule | None) -> float | None:
    """Return scheduling per slot at the highest clock; None if that is unknown or simulated."""
    return None if schedule is None else _at_highest_clock(schedule.scheduling, schedule)


def _span_microseconds(schedule: Schedule | None) -> float | None:
    return None if schedule is None else _at_highest_clock(schedule.blocks_on_sms.span, schedule)


def _at_highest_clock(cycles: float, schedule: Schedule) -> float | None:
    return 1e3 * cycles / schedule.clock_khz if schedule.clock_khz else None


def compare_fills(fills: Sequence[FillTimes], schedules: Sequence[Schedule]) -> list[FillComparison]:
    """Compare each implementation with the plain one. Its schedule is that of the trace with the same name."""
    plain = next((entry for entry in fills if entry.name == PLAIN_FILL), None)
    schedules_by_label = {entry.label: entry for entry in schedules}
    return [
        FillComparison(entry, plain, schedules_by_label.get(entry.name), schedules_by_label.get(PLAIN_FILL))
        for entry in fills
    ]


def fill_sentences(rows: Sequence[FillComparison]) -> Iterator[str]:
    """Yield a sentence for each implementation other than the plain one."""
    for row in rows:
        if row.speedup is None or row.gained is None:
            continue
        yield (
            f"{row.fill.name}: {row.speedup:.2f}× as fast as the form “plain”"
            f" (each fill takes {_duration_text(row.gained)} less)" + _scheduling_text(row)
        )


def _scheduling_text(row: FillComparison) -> str:
    """Return a sentence about scheduling: how much less slots wait, and its share of the saved time."""
    if row.schedule is None:
        return "; the driver launches this kernel itself, so its blocks cannot be probed"
    if row.wait_saving is None:
        return ""
    text = f"; a slot waits {_duration_text(row.wait_saving)} less"
    if row.explained is not None:
        text += f", which explains up to {row.explained:.0%} of the gain"
    if row.span_saving is not None and row.wait_saving > 0:
        text += (
            f". The probed launch is {_duration_text(row.span_saving)} shorter, which is"
            f" {row.span_saving / row.wait_saving:.0%} of the saved wait."
            " While a slot waits, the other slots of the SM work"
        )
    return text


def fill_chart(rows: Sequence[FillComparison]) -> BarChart:
    """Return a chart of the median durations, with the range of the middle 90%."""
    title = "implementations of filling 32 MiB with zeros"
    bars = []
    for row in rows:
        times = row.fill
        bars.append(Bar(times.name, (times.median,), _duration_text(times.median), _middle_range(times)))
    return BarChart(title, bars, ("median duration",), "microseconds", _duration_text)


def _middle_range(filled: FillTimes) -> tuple[float, float] | None:
    begin, end = filled.percentile(_SPREAD_PERCENTILES[0]), filled.percentile(_SPREAD_PERCENTILES[1])
    return None if begin is None or end is None else (begin, end)


def _duration_text(value: float | None) -> str:
    if value is None:
        return NOT_MEASURED
    return f"-{units.duration(-value / 1e6)}" if value < 0 else units.duration(value / 1e6)


FILL_COLUMNS: Final[tuple[Column[FillComparison], ...]] = (
    Column("variant", lambda r: r.fill.name, "way", lambda r: r.fill.name, right=False),
    Column("what", lambda r: r.fill.description, "what", lambda r: r.fill.description, right=False, rank=4, narrow=12),
    Column("launches", lambda r: len(r.fill.microseconds), "timed", lambda r: str(len(r.fill.microseconds)), rank=3),
    Column("median_us", lambda r: r.fill.median, "median", lambda r: _duration_text(r.fill.median)),
    Column("least_us", lambda r: r.fill.percentile(0), "min", lambda r: _duration_text(r.fill.percentile(0)), rank=2),
    Column(
        "most_us", lambda r: r.fill.percentile(100), "max", lambda r: _duration_text(r.fill.percentile(100)), rank=2
    ),
    Column("spread", lambda r: r.fill.spread, "spread", lambda r: units.percentage(r.fill.spread)),
    Column("events_us", lambda r: r.fill.event_overhead),
    Column("faster", lambda r: r.speedup, "as fast", lambda r: units.ratio(r.speedup)),
    Column("scheduling_us", lambda r: r.scheduling, "scheduling", lambda r: _duration_text(r.scheduling)),
    Column("gained_us", lambda r: r.gained, "gained", lambda r: _duration_text(r.gained)),
    Column("saved_us", lambda r: r.wait_saving, "wait saved", lambda r: _duration_text(r.wait_saving)),
    Column("explained", lambda r: r.explained, "explains ≤", lambda r: units.percentage(r.explained)),
    Column("shorter_us", lambda r: r.span_saving, "span saved", lambda r: _duration_text(r.span_saving), rank=2),
)
