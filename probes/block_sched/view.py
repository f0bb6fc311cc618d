"""The block schedule of a launch as text and as a page: a bar per SM, distributions, the report of a trace."""

from __future__ import annotations

from functools import partial
from itertools import chain, groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.charts import cdf_chart
from tui_probe.draw.printable import printable
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import hang_line, pad, width, wrap
from tui_probe.draw.table import Column
from tui_probe.draw.table_content import RemadeRows, TableContent
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.draw.view import Document
from tui_probe.probekit import probe_results
from tui_probe.probekit.measured import analyse_result, analyse_results, known_probe
from tui_probe.probekit.page_kinds import TracePage
from tui_probe.probekit.probe_results import cycles_text
from tui_probe.probekit.probe_view import probe_view
from tui_probe.probekit.result_tables import distribution_row, distribution_titles, kernel_result_lines
from tui_probe.probekit.timelines.launch import slot_gaps
from tui_probe.records.block_times import SLOT_TIME_LABELS
from tui_probe.records.distribution import distribution

from .analysis import analyse, timeline_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.measured import AnalysedResult
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.trace.model import KernelFacts, Trace

    from .analysis import BlockSchedule

RUNNING, SCHEDULING, IDLE = "█", "▒", "░"
LEGEND: Final = f"{RUNNING} running, {SCHEDULING} gaps, {IDLE} ramp-up and ramp-down"
_SM_COLUMNS: Final = ("SM", "blocks", "slots", *SLOT_TIME_LABELS.values())
_MIN_BAR_CELLS: Final = 10
_CYCLE_COLUMNS: Final = {**SLOT_TIME_LABELS, "span": "span"}
_COUNT_COLUMNS: Final = ("warps_missing", "blocks_missing", "blocks_astray")
_ROLES: Final = {RUNNING: "hue0", SCHEDULING: "hue1", IDLE: "dim"}
_CHART_ROWS: Final = 12
_MAX_CHART_CELLS: Final = 120


def schedule_line(schedule: BlockSchedule) -> str:
    """``64 blocks, running 120 cycles per slot, scheduling 0``, and what it leaves out."""
    counts = (
        (schedule.warps_missing, "warp", "without a record, not counted"),
        (schedule.blocks_missing, "block", "without a record, not counted"),
        (schedule.blocks_astray, "block", "that moved to another SM while running, not counted"),
    )
    left_out = [f"{units.counted(count, noun)} {reason}" for count, noun, reason in counts if count]
    running_cycles, gap_cycles = (units.count(round(cycles)) for cycles in (schedule.running, schedule.scheduling))
    text = f"{units.counted(schedule.blocks, 'block')}, cycles per slot: {running_cycles} running, {gap_cycles} in gaps"
    return "; ".join([text, *left_out])


def sm_lines(schedule: BlockSchedule, cells: int) -> list[str]:
    """One line per SM: blocks, slots, cycles per slot, and a bar of these on the scale of the SM that took longest."""
    rows = [
        [f"{number}" for number in numbers[:3]] + [f"{cycles:.0f}" for cycles in numbers[3:]]
        for numbers in zip(
            schedule.sm.tolist(),
            schedule.sm_blocks.tolist(),
            schedule.sm_slots.tolist(),
            schedule.sm_running.tolist(),
            schedule.sm_scheduling.tolist(),
            schedule.sm_ramp.tolist(),
            schedule.sm_tail.tolist(),
            strict=True,
        )
    ]
    widths = [max(width(row[i]) for row in [list(_SM_COLUMNS), *rows]) for i in range(len(_SM_COLUMNS))]
    bar_cells = cells - sum(widths) - 2 * len(widths)
    max_span = float(schedule.sm_span.max())
    lines = [_join_cells(_SM_COLUMNS, widths)]
    idle_cycles = schedule.sm_ramp + schedule.sm_tail
    for row, *parts in zip(rows, schedule.sm_running, schedule.sm_scheduling, idle_cycles, strict=True):
        bar_text = bar([float(part) for part in parts], max_span, bar_cells) if bar_cells >= _MIN_BAR_CELLS else ""
        lines.append(f"{_join_cells(row, widths)}  {bar_text}".rstrip())
    return lines


def bar(parts: list[float], total_cycles: float, cells: int) -> str:
    """Running, scheduling and idle cycles one after another, ``total_cycles`` cycles being all ``cells``.

    Ends are rounded, not lengths, so that the whole bar is as long as the sum asks for.
    """
    text, total, begin = "", 0.0, 0
    for part, sign in zip(parts, (RUNNING, SCHEDULING, IDLE), strict=True):
        total += part
        end = round(total / total_cycles * cells) if total_cycles else 0
        text += sign * (end - begin)
        begin = end
    return text


def sm_record(schedule: BlockSchedule) -> dict[str, list[float]]:
    """The SMs as data, one list per SM for each value; cycles are means over the slots of an SM."""
    return {
        "sm": schedule.sm.tolist(),
        "blocks": schedule.sm_blocks.tolist(),
        "slots": schedule.sm_slots.tolist(),
        "running": schedule.sm_running.tolist(),
        "scheduling": schedule.sm_scheduling.tolist(),
        "ramp": schedule.sm_ramp.tolist(),
        "tail": schedule.sm_tail.tolist(),
    }


def _join_cells(texts: list[str] | tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(pad(text, cells, right=True) for text, cells in zip(texts, widths, strict=True))


def _kernels(trace: Trace) -> list[KernelFacts]:
    """Launches with results of this probe."""
    kernels = chain.from_iterable(kernel.by_probe() for kernel in trace.kernels)
    return [kernel for kernel in kernels if kernel.result_rows and _is_shown(kernel)]


def _is_shown(kernel: KernelFacts) -> bool:
    return any(page.name == REPORT.name for page in known_probe(kernel).pages)


def _open_report(trace: Trace, progress: Progress) -> TableContent[AnalysedResult]:
    del progress
    rows = RemadeRows(partial(_report_rows, trace))
    return TableContent("blocks", "Blocks", _REPORT_COLUMNS, rows, report=partial(_report_lines, trace))


def _report_lines(trace: Trace, cells: int) -> Iterator[str]:
    kernels = _kernels(trace)
    if not kernels:
        yield "No kernel has block schedules: run with -p block_sched."
    for kernel in kernels:
        yield f"#{kernel.index} {shorten(printable(kernel.demangled), cells - 8)}"
        yield from kernel_result_lines(trace, kernel, cells, len(kernels))
        latest = _latest_result(trace, kernel)
        if latest is not None:
            yield ""
            yield from hang_line(f"  SMs of {latest.label}, cycles per slot: {LEGEND}", cells)
            yield from (f"  {line}" for line in sm_lines(latest.analysis, cells - 2))
        yield ""


def _latest_result(trace: Trace, kernel: KernelFacts) -> AnalysedResult | None:
    """The newest result that can be read."""
    results = (analyse_result(trace, kernel, row) for row in reversed(kernel.result_rows))
    return next((result for result in results if result.analysis), None)


def _report_rows(trace: Trace) -> Iterator[AnalysedResult]:
    return chain.from_iterable(analyse_results(trace, kernel) for kernel in _kernels(trace))


def _analysis_value(key: str) -> Callable[[AnalysedResult], Any]:
    read_value = attrgetter(key)
    return lambda result: None if result.analysis is None else read_value(result.analysis)


def _cycles_text(key: str) -> Callable[[AnalysedResult], str]:
    value = _analysis_value(key)
    return lambda result: NOT_MEASURED if result.analysis is None else units.count(round(value(result)))


_REPORT_COLUMNS: Final[tuple[Column[AnalysedResult], ...]] = (
    Column("kernel", lambda r: r.kernel.index, "#", lambda r: str(r.kernel.index)),
    Column("name", lambda r: r.kernel.name),
    Column(
        "demangled",
        lambda r: r.kernel.demangled,
        "kernel",
        lambda r: r.kernel.demangled,
        right=False,
        narrow=16,
        shorten=shorten,
    ),
    Column("launch", lambda r: r.launch.number if r.launch else None, "launch", lambda r: r.label, right=False),
    Column("result", lambda r: f"result/{r.file}"),
    Column("blocks", _analysis_value("blocks"), "blocks", _cycles_text("blocks")),
    *(Column(key, _analysis_value(key), text, _cycles_text(key)) for key, text in _CYCLE_COLUMNS.items()),
    *(Column(key, _analysis_value(key)) for key in _COUNT_COLUMNS),
    Column("simulated", lambda r: r.kernel.trace.state.simulated),
    Column("problem", lambda r: r.problem, "problem", lambda r: r.problem or "", right=False, rank=1, narrow=20),
    Column("sms", lambda r: None if r.analysis is None else sm_record(r.analysis), nested=True),
)
"""Cycles are means over the slots of an SM, and for a whole launch over SMs; ``sms`` has a list, one number per SM."""

REPORT: Final = TracePage("blocks", _open_report)


class Blocks(Document):
    """One launch."""

    def __init__(self, result: ProbeResult) -> None:
        self.title = f"Blocks of {result.launch_label} {result.kernel_name}"
        self.probe_result = result
        self.schedule = analyse(result.result)
        timeline = timeline_of(result.result, device_sms=result.sms, has_shared_clock=result.simulated)
        self.cycles, self.gaps = timeline.blocks.duration, slot_gaps(timeline.blocks)
        self.idle_sms = timeline.idle_sms

    def lines(self, width: int) -> Sequence[Line]:
        """Totals, percentiles, a CDF of block times, and the SMs."""
        top = self._summary_lines(width)
        chart = [((line, "hue0"),) for line in self._chart(width)]
        return [*top, (), *chart, (), *self._sms(width)]

    def anchors(self, width: int) -> Sequence[int]:
        """The chart, and the SMs."""
        top, chart = len(self._summary_lines(width)) + 1, len(self._chart(width))
        return [top, top + chart + 1]

    def _summary_lines(self, width: int) -> list[Line]:
        name = shorten(self.probe_result.kernel_name, max(width - len(self.probe_result.launch_label) - 1, 0))
        lines: list[Line] = [((f"{self.probe_result.launch_label} {name}", "title"),)]
        sentences = [self._line(), self._shares()]
        lines += [((part, ""),) for text in sentences for part in wrap(text, width)]
        lines += [(), distribution_titles("cycles")]
        for label, values in (("one block", self.cycles), ("one gap", self.gaps), ("one SM", self.schedule.sm_span)):
            spread = distribution(values)
            if spread is not None:
                lines.append(distribution_row(label, spread, _whole_cycles))
        return lines

    def _line(self) -> str:
        return schedule_line(self.schedule) + ("  simulated" if self.probe_result.simulated else "")

    def _shares(self) -> str:
        schedule = self.schedule
        parts = units.percents([getattr(schedule, name) for name in SLOT_TIME_LABELS], decimals=1)
        shares = ", ".join(f"{text} {part}" for text, part in zip(SLOT_TIME_LABELS.values(), parts, strict=True))
        text = f"{cycles_text(schedule.span, self.probe_result.clock_khz)} per SM: {shares}"
        if self.idle_sms:
            text += f"; {units.counted(len(self.idle_sms), 'SM')} ran no block"
        return text

    def _chart(self, width: int) -> list[str]:
        """The distribution of block times; of one value only words."""
        if len(self.cycles) and self.cycles.min() == self.cycles.max():
            return wrap(f"all blocks take {units.count(int(self.cycles[0]))} cycles", width)
        return cdf_chart(self.cycles, min(width, _MAX_CHART_CELLS), _CHART_ROWS, "cycles of a block")

    def _sms(self, width: int) -> list[Line]:
        head: list[Line] = [((part, "dim"),) for part in wrap(f"SMs, cycles per slot: {LEGEND}", width)]
        return [*head, *map(_in_colour, sm_lines(self.schedule, width))]

    def record(self) -> dict[str, Any]:
        """Totals (means over SMs, cycles per slot), distributions in cycles, and the SMs in columns."""
        schedule = self.schedule
        names = ("blocks", *SLOT_TIME_LABELS, "span")
        counts = ("warps_missing", "blocks_missing", "blocks_astray")
        return {
            **{name: getattr(schedule, name) for name in (*names, *counts)},
            "idle_sms": self.idle_sms,
            "block_cycles": _distribution_record(self.cycles),
            "gap_cycles": _distribution_record(self.gaps),
            "sms": sm_record(schedule),
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """One row per SM."""
        columns = sm_record(self.schedule)
        yield tuple(columns)
        yield from zip(*columns.values(), strict=True)


def _in_colour(line: str) -> Line:
    return tuple(("".join(signs), role) for role, signs in groupby(line, lambda sign: _ROLES.get(sign, "")))


def _whole_cycles(cycles: float) -> str:
    return units.count(round(cycles))


def _distribution_record(values: NDArray[np.int64]) -> dict[str, float] | None:
    spread = distribution(values)
    return None if spread is None else spread.record()


def _open_view(source: ViewSource, progress: Progress) -> Blocks:
    progress(0.0)
    return Blocks(probe_results.read_result(source))


BLOCKS: Final = probe_view(
    "blocks",
    "Blocks",
    "running and gap cycles of each SM, and times of blocks",
    _open_view,
    explanation=(
        "The cycles of a slot have four parts: running (a block runs), ramp-up (before the first block), gaps (between"
        " blocks) and ramp-down (after the last block). Percentiles and the curve show times of blocks. A step"
        " in the curve is a group of blocks with similar times.",
    ),
    order=40,
)
