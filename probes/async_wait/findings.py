"""What warps wait for asynchronous work, and the place that costs most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, place, share
from tui_probe.probekit.probe_results import cycles_words

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
        each = of_line(line)
        words = (
            f"{place(line.line, line.source, line.opcode)}, {share(each.waited, found.whole.waited)} of all waiting, "
        )
        words += f"{each.cycles_per_wait or 0:.0f} cycles per wait"
        values = {"waited": each.waited, "cycles_per_wait": each.cycles_per_wait}
        yield Finding("worst_wait", "longest waits", words, "lines", line.line, values=values)
    yield _all(of, found.whole)


def _all(of: ProbeResult, found: AsyncWaits) -> Finding:
    words = "no warp waited for asynchronous work"
    if found.waits:
        mean = cycles_words(found.cycles_per_wait or 0, of.clock_khz)
        words = f"{units.count(found.waits)} by warps, {mean} each on average"
    values = {"waited": found.waited, "waits": found.waits}
    return Finding("async_waits", "waits", words, "", values=values)
