"""A kernel at a glance, for where there is room for a few lines: when its blocks ran, how long its launches took."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.analysis.timeline_busy import BusyRows
from tui_probe.draw import units
from tui_probe.draw.spans import clip, pad, width
from tui_probe.draw.sparkline import column_chart
from tui_probe.errors import TraceError
from tui_probe.pages.findings.brief import LARGEST, result_bytes
from tui_probe.probekit import probe_results
from tui_probe.probekit.kept import sampled_words
from tui_probe.probekit.kind import Source
from tui_probe.probekit.probe_results import cycles_words
from tui_probe.probekit.registry import probe_named
from tui_probe.trace.gpu_time import times_taken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.probekit.timelines.launch import LaunchTimeline
    from tui_probe.trace.model import Kernel, Trace

CELLS: Final = 60
"""Cells of a chart at least."""
COLUMNS: Final = 120
"""Columns of its values, and its cells at most."""
ROWS: Final = 3
"""Rows of a chart at least."""
AROUND: Final = 2
"""A title above it, and an axis below."""
FEWEST_TIMES: Final = 8
"""Timed launches from which on there is something to see of how they differ."""
_HIGHEST_PART: Final = 0.99


@dataclass(frozen=True, slots=True)
class Chart:
    """Columns of equal width from ``low`` to ``high``, which are words; None of ``values`` stands for no launch."""

    title: str
    values: tuple[float | None, ...]
    low: str
    high: str


def charts(trace: Trace, kernel: Kernel) -> tuple[Chart, ...]:
    """What there is to draw of a kernel. Reads the newest result of a probe that records times, if it is not large."""
    return tuple(chart for chart in (_running(trace, kernel), _times(kernel)) if chart is not None)


def chart_lines(chart: Chart, cells: int = CELLS, rows: int = ROWS, *, ascii_only: bool = False) -> list[Line]:
    """``rows`` and ``AROUND`` lines of at most ``cells`` cells."""
    values = _in_cells(chart.values, cells)
    high = max(value or 0 for value in values)
    drawn = column_chart(values, cells, rows, high=high, ascii_only=ascii_only)
    room = cells - width(chart.low)
    axis = chart.low + pad(clip(chart.high, room - 1), room, right=True)
    return [((clip(chart.title, cells), "head"),), *(((row, "hue0"),) for row in drawn), ((axis, "dim"),)]


def _in_cells(values: Sequence[float | None], cells: int) -> list[float | None]:
    """The mean of the columns that fall into each cell; None where none of them has a value."""
    edges = [round(cell * len(values) / cells) for cell in range(cells + 1)]
    parts = ([value for value in values[low:high] if value is not None] for low, high in pairwise(edges))
    return [fmean(part) if part else None for part in parts]


def _running(trace: Trace, kernel: Kernel) -> Chart | None:
    """How many blocks ran at a time, in the newest launch of which that is known."""
    for source in probe_results.of_each_probe(Source(trace, kernel)):
        probe = probe_named(probe_results.probe_of(source.kernel) or "")
        if probe is None or probe.timeline is None or not 0 < result_bytes(source) <= LARGEST:
            continue
        try:
            found = probe.timeline(probe_results.read(source), lambda _: None)
        except (TraceError, OSError):
            continue  # which the findings of the kernel say
        return _of_timeline(found)
    return None


def _of_timeline(launch: LaunchTimeline) -> Chart | None:
    timeline = launch.timeline
    blocks = timeline.blocks
    if not len(blocks) or timeline.span < 1:
        return None
    edges = np.unique(np.linspace(0, timeline.span, COLUMNS + 1).astype(np.int64))
    busy = BusyRows(blocks.start, blocks.end, np.zeros(len(blocks), dtype=np.int64), 1)
    running = busy.covered(0, 1, edges)[0] / np.diff(edges)
    values = np.repeat(running, -(-COLUMNS // len(running)))[:COLUMNS] if len(running) < COLUMNS else running
    most = f"up to {units.count(round(float(running.max())))} at a time"
    sample = "" if timeline.sample is None else f", {sampled_words(timeline.sample)}"
    simulated = ", simulated" if launch.simulated else ""
    high = cycles_words(timeline.span, launch.clock_khz)
    return Chart(f"{launch.which}: blocks running, {most}{sample}{simulated}", tuple(values.tolist()), "0", high)


def _times(kernel: Kernel) -> Chart | None:
    """How the GPU times of its launches are spread; the longest hundredth is in the last column."""
    time = kernel.gpu_time
    if time is None or time.shown.samples < FEWEST_TIMES:
        return None
    taken, weight = times_taken(kernel.samples, probed=time.with_probe)
    low, high = float(taken.min()), float(np.quantile(taken, _HIGHEST_PART))
    if not high > low:
        return None
    counts, _ = np.histogram(np.minimum(taken, high), COLUMNS, (low, high), weights=weight)
    probed = ", all with the probe" if time.with_probe else ""
    title = f"GPU time of #{kernel.index}: {units.counted(time.shown.samples, 'launch')} timed{probed}"
    longest = f"{units.duration(high / 1e9)} (longest {units.duration(float(taken.max()) / 1e9)})"
    return Chart(title, tuple(count or None for count in counts.tolist()), units.duration(low / 1e9), longest)
