"""What warps wait for asynchronous work, and the place that costs most."""

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

    from .analysis import AsyncWaits


def findings(of: ProbeResult, found: CountsByLine[AsyncWaits]) -> Iterator[Finding]:
    """The place that costs most, then all."""
    if found.worst is not None:
        line = found.worst[0]
        mean = of_line(line).cycles_per_wait
        values = {"cycles_per_wait": mean}
        yield longest_waits("worst_wait", "longest waits", line, found.whole.waited, mean, values)
    yield _all(of, found.whole)


def _all(of: ProbeResult, found: AsyncWaits) -> Finding:
    words = "no warp waited for asynchronous work"
    if found.waits:
        mean = cycles_words(found.cycles_per_wait or 0, of.clock_khz)
        words = f"{units.count(found.waits)} by warps, {mean} each on average"
    values = {"waited": found.waited, "waits": found.waits}
    return Finding("async_waits", "waits", words, "", values=values)
