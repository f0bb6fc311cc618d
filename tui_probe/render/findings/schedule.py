"""What probes of time found: where a launch's cycles went, and who was last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.analysis import barrier_wait, program_progress, warp_progress
from tui_probe.analysis.block_sched import analyse
from tui_probe.analysis.distribution import distribution
from tui_probe.analysis.known_sites import sites_of
from tui_probe.analysis.timeline import from_block_sched, from_warp_progress
from tui_probe.render import units
from tui_probe.render.findings.finding import Finding, place, share
from tui_probe.render.probe_results import cycles_words
from tui_probe.render.timelines.launch import LaunchTimeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.analysis.barrier_wait import BarrierWaits
    from tui_probe.analysis.timeline import Timeline
    from tui_probe.analysis.warp_progress import WarpProgress
    from tui_probe.render.probe_results import ProbeResult

_MUCH: Final = 0.05
"""The part of a launch from which on what a tail or scheduling costs stands out."""
_LATE: Final = 1.25
"""Times the median from which on the slowest block is worth a look."""


def of_block_sched(of: ProbeResult) -> Iterator[Finding]:
    """How slots spent the launch, its tail, its slowest block, SMs that ran nothing, and how full it was."""
    timeline = from_block_sched(of.result, device_sms=of.sms, one_clock=of.simulated)
    schedule = analyse(of.result)
    span = schedule.span or 1.0
    parts = {name: getattr(schedule, name) / span for name in ("running", "scheduling", "ramp", "tail")}
    words = f"running {share(parts['running'], 1)}, scheduling {share(parts['scheduling'], 1)}, filling and emptying "
    words += f"{share(parts['ramp'] + parts['tail'], 1)} of {cycles_words(schedule.span, of.clock_khz)} an SM"
    much = parts["scheduling"] > _MUCH
    yield Finding("slots", "block slots", words, "blocks", stands_out=much, values={**parts, "cycles": schedule.span})
    yield from _tail(timeline, "warp_progress")
    yield from _slowest_block(of, timeline)
    yield from _idle_sms(timeline)
    yield from _waves(of, timeline)


def _tail(timeline: Timeline, asks: str) -> Iterator[Finding]:
    tail, span = timeline.tail(), timeline.span
    if tail is None or not tail.cycles or not span:
        return
    words = f"SMs run out of blocks for the last {share(tail.cycles, span)} of the launch,"
    words += f" SM {tail.last_sm} last: {share(tail.lost, 1)} of all SM time is idle there"
    much = tail.lost > _MUCH
    values = {"tail_share": tail.cycles / span, "lost_share": tail.lost, "tail_start": tail.start}
    yield Finding("tail", "tail", words, "timeline", stands_out=much, asks=asks if much else "", values=values)


def _slowest_block(of: ProbeResult, timeline: Timeline) -> Iterator[Finding]:
    blocks, lengths = timeline.blocks, distribution(timeline.blocks.duration)
    if lengths is None or not lengths.median:
        return
    worst = int(blocks.duration.argmax())
    times = float(blocks.duration[worst]) / lengths.median
    name = LaunchTimeline(timeline, "", "", of.simulated, None, grid=of.result.header.grid).block_words
    words = f"all of {cycles_words(lengths.median, of.clock_khz)}"
    if lengths.most > lengths.least:
        words = f"{name(int(blocks.block[worst]))} on SM {blocks.sm[worst]}, {times:.2f}× the median of "
        words += cycles_words(lengths.median, of.clock_khz)
    values = {"block": int(blocks.block[worst]), "cycles": int(blocks.duration[worst]), "median": lengths.median}
    label = "slowest block" if lengths.most > lengths.least else "blocks"
    late = lengths.most > max(lengths.fence, _LATE * lengths.median)
    asks = "warp_progress" if late else ""
    yield Finding("slowest_block", label, words, "timeline", stands_out=late, asks=asks, values=values)


def _idle_sms(timeline: Timeline) -> Iterator[Finding]:
    idle = len(timeline.idle_sms)
    if idle and timeline.sample is None:
        words = f"{idle} of {units.counted(len(timeline.sms), 'SM')} ran no block"
        values = {"idle_sms": idle, "sms": len(timeline.sms)}
        yield Finding("idle_sms", "idle SMs", words, "timeline", stands_out=True, values=values)


def _waves(of: ProbeResult, timeline: Timeline) -> Iterator[Finding]:
    """How often the blocks of the grid fill the GPU: the last wave is seldom full."""
    at_once = of.kernel.blocks_per_sm_probed or of.kernel.blocks_per_sm
    if not at_once or not of.sms:
        return
    waves = timeline.grid_blocks / (at_once * of.sms)
    words = f"{waves:.2f}: {units.counted(timeline.grid_blocks, 'block')}, {at_once} at once on each of {of.sms} SMs"
    yield Finding("waves", "waves", words, values={"waves": waves})


def of_warp_progress(of: ProbeResult) -> Iterator[Finding]:
    """How far apart warps end, the main loop, and the tail."""
    found = warp_progress.analyse(of.result, of.clock_khz)
    yield from _slowest_warp(of, found)
    yield from _main_loop(of, found)
    timeline = from_warp_progress(found, device_sms=of.sms, one_clock=of.simulated)
    yield from _tail(timeline, "block_sched")
    yield from _idle_sms(timeline)


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
        asks = "program_progress"
        yield Finding("stragglers", "stragglers", words, "progress", stands_out=True, asks=asks, values=values)


def _main_loop(of: ProbeResult, found: WarpProgress) -> Iterator[Finding]:
    loop = found.main_loop
    if loop is None or loop.cycles_per_iteration is None:
        return
    known = sites_of(of.kernel.folder)
    words = f"{place(loop.line, known.following(loop.line))}, {units.counted(loop.iterations, 'iteration')} of "
    words += cycles_words(loop.cycles_per_iteration, of.clock_khz)
    values = {"iterations": loop.iterations, "cycles_per_iteration": loop.cycles_per_iteration}
    yield Finding("main_loop", "main loop", words, "lines", loop.line, values=values)


def of_program_progress(of: ProbeResult) -> Iterator[Finding]:
    """The basic block that takes most time."""
    found = program_progress.analyse(of.result, of.clock_khz, of.kernel.folder)
    if found.blocks:
        first = found.blocks[0]
        words = f"from {place(first.line, first.source)} on, {share(first.cycles, found.cycles)} of all warps' cycles, "
        words += f"{first.cycles_per_visit or 0:.0f} cycles a visit"
        values = {"share": first.cycles / found.cycles if found.cycles else None, "visits": first.visits}
        yield Finding("hottest", "most time", words, "lines", first.line, values=values)
    if found.unknown:
        words = f"{share(found.unknown, found.cycles)} of the time: warps entered more blocks than are kept"
        yield Finding("unknown", "not known", words, "lines", values={"unknown": found.unknown})


def of_barrier_wait(of: ProbeResult) -> Iterator[Finding]:
    """What warps wait at barriers, and the barrier that costs most."""
    if of.probe == "barrier_wait":
        yield _waits(of, barrier_wait.analyse(of.result), "barrier_wait_by_line")
        return
    sites = of.kernel.info.sites.get(0, ()) if of.kernel.info else ()
    counted = barrier_wait.analyse_lines(of.result, sites, of.kernel.folder)
    whole: BarrierWaits = counted.whole  # type: ignore[assignment]
    if counted.worst is not None:
        line = counted.worst[0]
        each = barrier_wait.of_line(line)
        words = f"{place(line.line, line.source, line.opcode)}, {share(each.waited, whole.waited)} of all waiting, "
        words += f"{each.cycles_per_barrier or 0:.0f} cycles a wait"
        values = {"waited": each.waited, "cycles_per_barrier": each.cycles_per_barrier}
        yield Finding("worst_barrier", "worst barrier", words, "lines", line.line, values=values)
    yield _waits(of, whole, "")


def _waits(of: ProbeResult, found: BarrierWaits, asks: str) -> Finding:
    words = "no barrier was executed"
    if found.barriers:
        mean = cycles_words(found.cycles_per_barrier or 0, of.clock_khz)
        words = f"{units.count(found.barriers)} passed by warps, {mean} waited at each on average"
    values = {"waited": found.waited, "barriers": found.barriers, "longest": found.longest}
    page = "latency" if of.probe == "barrier_wait" else ""
    return Finding("barriers", "barriers", words, page, asks=asks if found.barriers else "", values=values)
