"""How far apart warps end, the main loop, and the tail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tui_probe.analysis.distribution import distribution
from tui_probe.analysis.known_sites import sites_of
from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, place
from tui_probe.probekit.probe_results import cycles_words
from tui_probe.probekit.timelines.findings import idle_sms, tail

from .timeline import timeline_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.analysis.warp_pace import WarpProgress
    from tui_probe.probekit.probe_results import ProbeResult


def findings(of: ProbeResult, found: WarpProgress) -> Iterator[Finding]:
    """All of it, in this order."""
    yield from _slowest_warp(of, found)
    yield from _main_loop(of, found)
    timeline = timeline_of(found, device_sms=of.sms, one_clock=of.simulated)
    yield from tail(timeline, "schedule")
    yield from idle_sms(timeline)


def _slowest_warp(of: ProbeResult, found: WarpProgress) -> Iterator[Finding]:
    lengths = distribution(found.warps["elapsed"][found.ran].astype(np.int64))
    if lengths is None or not lengths.median:
        return
    late = found.stragglers()
    spread = "" if lengths.spread is None else f", spread {lengths.spread:.0%} (1–99 %)"
    words = f"{units.count(lengths.count)}, median {cycles_words(lengths.median, of.clock_khz)}{spread}"
    values = {"warps": lengths.count, "median": lengths.median, "spread": lengths.spread, "stragglers": len(late)}
    yield Finding("warps", "warps", words, "progress", values=values)
    if len(late):
        block, warp = (int(number) for number in late[0])
        times = float(found.warps["elapsed"][block, warp]) / lengths.median
        block = of.result.blocks[block]
        words = f"{units.count(len(late))}, the slowest block {block} warp {warp}: {times:.2f}× the median warp"
        values = {"block": block, "warp": warp, "times_median": times}
        asks = "hot code"
        yield Finding("stragglers", "stragglers", words, "progress", None, True, asks, values, block=block, warp=warp)


def _main_loop(of: ProbeResult, found: WarpProgress) -> Iterator[Finding]:
    loop = found.main_loop
    if loop is None or loop.cycles_per_iteration is None:
        return
    known = sites_of(of.kernel.folder)
    words = f"{place(loop.line, known.following(loop.line))}, {units.counted(loop.iterations, 'iteration')} of "
    words += cycles_words(loop.cycles_per_iteration, of.clock_khz)
    values = {"iterations": loop.iterations, "cycles_per_iteration": loop.cycles_per_iteration}
    yield Finding("main_loop", "main loop", words, "lines", loop.line, values=values)
