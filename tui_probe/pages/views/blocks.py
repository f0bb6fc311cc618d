"""How block slots spent a launch: the distribution of block times and of gaps, and a bar for each SM."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.analysis.block_sched import analyse
from tui_probe.analysis.distribution import distribution
from tui_probe.analysis.timeline import from_block_sched
from tui_probe.draw import units
from tui_probe.draw.charts import cdf_chart
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import wrap
from tui_probe.draw.view import Document
from tui_probe.probekit import probe_results
from tui_probe.probekit.block_sched import IDLE, LEGEND, RUNNING, SCHEDULING, schedule_line, sm_lines, sm_record
from tui_probe.probekit.distributions import distribution_head, distribution_row
from tui_probe.probekit.kind import Kind
from tui_probe.probekit.probe_results import ProbeResult, cycles_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.analysis.timeline import Intervals
    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.kind import Source

_ROLES: Final = {RUNNING: "hue0", SCHEDULING: "hue1", IDLE: "dim"}
_CHART_ROWS: Final = 12
_WIDEST_CHART: Final = 120


class Blocks(Document):
    """One launch with results of ``block_sched``."""

    def __init__(self, found: ProbeResult) -> None:
        self.title = f"Blocks of {found.which} {found.name}"
        self.found = found
        self.schedule = analyse(found.result)
        timeline = from_block_sched(found.result, device_sms=found.sms, one_clock=found.simulated)
        self.cycles, self.gaps = timeline.blocks.duration, gaps(timeline.blocks)
        self.idle_sms = timeline.idle_sms

    def lines(self, width: int) -> Sequence[Line]:
        """Totals, percentiles, a CDF of block times, and the SMs."""
        top = self._top(width)
        chart = [((line, "hue0"),) for line in self._chart(width)]
        return [*top, (), *chart, (), *self._sms(width)]

    def anchors(self, width: int) -> Sequence[int]:
        """The chart, and the SMs."""
        top, chart = len(self._top(width)) + 1, len(self._chart(width))
        return [top, top + chart + 1]

    def _top(self, width: int) -> list[Line]:
        name = shorten(self.found.name, max(width - len(self.found.which) - 1, 0))
        lines: list[Line] = [((f"{self.found.which} {name}", "title"),)]
        said = [schedule_line(self.schedule, simulated=self.found.simulated), self._shares()]
        lines += [((part, ""),) for text in said for part in wrap(text, width)]
        lines += [(), distribution_head("cycles")]
        for label, values in (("a block", self.cycles), ("a gap", self.gaps), ("an SM", self.schedule.sm_span)):
            found = distribution(values)
            if found is not None:
                lines.append(distribution_row(label, found, _whole))
        return lines

    def _shares(self) -> str:
        schedule = self.schedule
        span = schedule.span or 1.0
        parts = (("running", schedule.running), ("scheduling", schedule.scheduling), ("ramp", schedule.ramp))
        shares = ", ".join(f"{name} {value / span:.1%}" for name, value in (*parts, ("tail", schedule.tail)))
        words = f"{cycles_words(schedule.span, self.found.clock_khz)} an SM: {shares}"
        if self.idle_sms:
            words += f"; {units.counted(len(self.idle_sms), 'SM')} ran nothing"
        return words

    def _chart(self, width: int) -> list[str]:
        return cdf_chart(self.cycles, min(width, _WIDEST_CHART), _CHART_ROWS, "cycles of a block")

    def _sms(self, width: int) -> list[Line]:
        head: list[Line] = [((part, "dim"),) for part in wrap(f"SMs, cycles a slot: {LEGEND}", width)]
        return [*head, *map(_in_colour, sm_lines(self.schedule, width))]

    def record(self) -> dict[str, Any]:
        """Totals (means over SMs, cycles a slot), distributions in cycles, and the SMs in columns."""
        schedule = self.schedule
        names = ("blocks", "running", "scheduling", "ramp", "tail", "span")
        counts = ("warps_missing", "blocks_missing", "blocks_astray")
        return {
            **{name: getattr(schedule, name) for name in (*names, *counts)},
            "idle_sms": self.idle_sms,
            "block_cycles": _record(self.cycles),
            "gap_cycles": _record(self.gaps),
            "sms": sm_record(schedule),
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """A row an SM."""
        columns = sm_record(self.schedule)
        yield tuple(columns)
        yield from zip(*columns.values(), strict=True)


def gaps(blocks: Intervals) -> NDArray[np.int64]:
    """Cycles (i8) between each block and the one before it in its slot."""
    follows = (np.diff(blocks.sm) == 0) & (np.diff(blocks.slot) == 0)
    between: NDArray[np.int64] = (blocks.start[1:] - blocks.end[:-1])[follows]
    return between


def _in_colour(line: str) -> Line:
    return tuple(("".join(signs), role) for role, signs in groupby(line, lambda sign: _ROLES.get(sign, "")))


def _whole(cycles: float) -> str:
    return units.count(round(cycles))


def _record(values: NDArray[np.int64]) -> dict[str, float] | None:
    found = distribution(values)
    return None if found is None else found.record()


def _open(source: Source, progress: Progress) -> Blocks:
    progress(0.0)
    return Blocks(probe_results.read(source))


KIND = Kind(
    "blocks",
    "Blocks",
    "running and scheduling cycles of each SM, distribution of block times and gaps",
    lambda source: probe_results.missing(source, "block_sched"),
    _open,
    ("block_sched",),
)
