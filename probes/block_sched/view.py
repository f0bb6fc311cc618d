"""How block slots spent a launch: the distribution of block times and of gaps, and a bar for each SM."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from tui_probe.analysis.distribution import distribution
from tui_probe.analysis.slots import PARTS
from tui_probe.draw import units
from tui_probe.draw.charts import cdf_chart
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import wrap
from tui_probe.draw.view import Document
from tui_probe.probekit import probe_results
from tui_probe.probekit.distributions import distribution_head, distribution_row
from tui_probe.probekit.probe_results import cycles_words
from tui_probe.probekit.timelines.waits import gaps
from tui_probe.probekit.views import probe_view

from .analysis import analyse
from .timeline import timeline_of
from .words import IDLE, LEGEND, RUNNING, SCHEDULING, schedule_line, sm_lines, sm_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.kind import Source
    from tui_probe.probekit.probe_results import ProbeResult

_ROLES: Final = {RUNNING: "hue0", SCHEDULING: "hue1", IDLE: "dim"}
_CHART_ROWS: Final = 12
_WIDEST_CHART: Final = 120


class Blocks(Document):
    """One launch."""

    def __init__(self, found: ProbeResult) -> None:
        self.title = f"Blocks of {found.which} {found.name}"
        self.found = found
        self.schedule = analyse(found.result)
        timeline = timeline_of(found.result, device_sms=found.sms, one_clock=found.simulated)
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
        said = [self._line(), self._shares()]
        lines += [((part, ""),) for text in said for part in wrap(text, width)]
        lines += [(), distribution_head("cycles")]
        for label, values in (("one block", self.cycles), ("one gap", self.gaps), ("one SM", self.schedule.sm_span)):
            found = distribution(values)
            if found is not None:
                lines.append(distribution_row(label, found, _whole))
        return lines

    def _line(self) -> str:
        return schedule_line(self.schedule) + ("  simulated" if self.found.simulated else "")

    def _shares(self) -> str:
        schedule = self.schedule
        parts = units.percents([getattr(schedule, name) for name in PARTS], decimals=1)
        shares = ", ".join(f"{words} {part}" for words, part in zip(PARTS.values(), parts, strict=True))
        words = f"{cycles_words(schedule.span, self.found.clock_khz)} per SM: {shares}"
        if self.idle_sms:
            words += f"; {units.counted(len(self.idle_sms), 'SM')} ran nothing"
        return words

    def _chart(self, width: int) -> list[str]:
        return cdf_chart(self.cycles, min(width, _WIDEST_CHART), _CHART_ROWS, "cycles of a block")

    def _sms(self, width: int) -> list[Line]:
        head: list[Line] = [((part, "dim"),) for part in wrap(f"SMs, cycles per slot: {LEGEND}", width)]
        return [*head, *map(_in_colour, sm_lines(self.schedule, width))]

    def record(self) -> dict[str, Any]:
        """Totals (means over SMs, cycles per slot), distributions in cycles, and the SMs in columns."""
        schedule = self.schedule
        names = ("blocks", *PARTS, "span")
        counts = ("warps_missing", "blocks_missing", "blocks_astray")
        return {
            **{name: getattr(schedule, name) for name in (*names, *counts)},
            "idle_sms": self.idle_sms,
            "block_cycles": _record(self.cycles),
            "gap_cycles": _record(self.gaps),
            "sms": sm_record(schedule),
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """One row per SM."""
        columns = sm_record(self.schedule)
        yield tuple(columns)
        yield from zip(*columns.values(), strict=True)


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


BLOCKS: Final = probe_view(
    "blocks",
    "Blocks",
    "running and scheduling cycles of each SM, distribution of block times and gaps",
    _open,
    explanation=(
        "Where each slot's cycles went: running a block, scheduling (the gaps between blocks), filling (empty before"
        " its first one) or emptying (empty after its last one). Percentiles and the curve are of block times; a step"
        " in the curve is a group of similar blocks.",
    ),
    order=40,
)
