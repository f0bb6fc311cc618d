"""What warps wait at barriers, and the barrier that costs most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding
from tui_probe.probekit.probe_results import cycles_words
from tui_probe.probekit.ranked_lines import longest_waits

from .analysis import of_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.analysis.by_line import CountsByLine
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import BarrierWaits


def findings(of: ProbeResult, found: BarrierWaits) -> Iterator[Finding]:
    """All barriers together."""
    yield _waits(of, found, "latency", "barriers" if found.barriers else "")


def findings_by_line(of: ProbeResult, found: CountsByLine[BarrierWaits]) -> Iterator[Finding]:
    """The barrier that costs most, then all."""
    if found.worst is not None:
        line = found.worst[0]
        mean = of_line(line).cycles_per_barrier
        values = {"cycles_per_barrier": mean}
        yield longest_waits("worst_barrier", "worst barrier", line, found.whole.waited, mean, values)
    yield _waits(of, found.whole, "", "")


def _waits(of: ProbeResult, found: BarrierWaits, page: str, asks: str) -> Finding:
    words = "no barrier was executed"
    if found.barriers:
        mean = cycles_words(found.cycles_per_barrier or 0, of.clock_khz)
        words = f"{units.count(found.barriers)} passed by warps, {mean} waited at each on average"
    values = {"waited": found.waited, "barriers": found.barriers, "longest": found.longest}
    return Finding("barriers", "barriers", words, page, asks=asks, values=values)
