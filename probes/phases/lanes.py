"""Spans of the warps of a block: as lines of letters, time to the right, and as trace events.

A trace has a process per block, a thread per warp, and flows from signals to the waits that they end. Below the warps
are iterations of the main loop and the use of tensor cores.
"""

from __future__ import annotations

from itertools import count, groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.spans import clip, pad
from tui_probe.ptx.phase_names import WAITS

from .analysis import NOT_RECORDED
from .kinds import ALL_WARPS
from .tables import TensorRates
from .waits import match_of, meetings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.spans import Line

    from .analysis import LaunchPhases, Spans
    from .waits import Wait

_HUES: Final = 8
_TENSOR: Final = "tensor"
_RATE_STEPS: Final = 10
"""Steps of the rate of products: a digit each."""
_NO_TIME: Final = " "
_NO_RECORD: Final = "?"
_MAX_ROLE_LANES: Final = 2
"""Lanes of a role at most."""
_NOTABLE_DIFFERENCE: Final = 0.1
"""Part of a warp's life from which on another warp of its role differs."""
MAX_LANES: Final = 8
"""Lanes of a block at most."""
_MAX_ITERATIONS: Final = 3
"""Iterations of the main loop that have lanes of their own, at most."""
_SKIPPED_WEIGHT: Final = 1e-9
"""Weight of time in iterations without records."""
MIN_CELLS: Final = 8
"""Cells of a lane at least, however long the names of roles are."""

Event = dict[str, Any]


def trace_events(launch: LaunchPhases, waits: Sequence[Wait], title: str, clock_khz: int | None) -> Iterator[Event]:
    """The events of some blocks. Without a clock each cycle becomes a nanosecond."""
    scale = 1e3 / clock_khz if clock_khz else 1e-3
    blocks = set(launch.some_blocks)
    for block in sorted(blocks):
        yield _name_event("process_name", block + 1, 0, f"block {block} of {title}")
    for warp, (block, number) in enumerate(zip(launch.warps.block.tolist(), launch.warps.warp.tolist(), strict=True)):
        if block in blocks:
            role = launch.roles[int(launch.warps.role[warp])]
            yield _name_event("thread_name", block + 1, number, f"warp {number} {role}")
            yield from _span_events(launch, warp, scale)
    numbers = count(1)
    for wait in waits:
        if wait.partner is not None and wait.by_order:
            yield from _flow_events(launch, wait, numbers, scale)
    for phase in dict.fromkeys(wait.phase for wait in waits if wait.last_warp is not None):
        yield from _meeting_events(launch, launch.phases.index(phase), numbers, scale)


def _name_event(kind: str, pid: int, tid: int, name: str) -> Event:
    """Return the event that names a process or a thread."""
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}


def _span_events(launch: LaunchPhases, warp: int, scale: float) -> Iterator[Event]:
    of_warp = launch.spans.warp == warp
    spans, iteration = launch.spans.select(of_warp), launch.iteration[of_warp]
    columns = (spans.start, spans.end, spans.phase, iteration)
    for start, end, phase, number in zip(*(column.tolist() for column in columns), strict=True):
        if phase != NOT_RECORDED:
            yield {
                "name": launch.phases[phase].name, "cat": launch.phases[phase].activity, "ph": "X",
                "ts": start * scale, "dur": (end - start) * scale, **_thread_ids(launch, warp),
                "args": {"cycles": end - start, "iteration": number or None, "source": launch.phases[phase].place},
            }  # fmt: skip


def _thread_ids(launch: LaunchPhases, warp: int) -> dict[str, int]:
    return {"pid": int(launch.warps.block[warp]) + 1, "tid": int(launch.warps.warp[warp])}


def _flow_events(launch: LaunchPhases, wait: Wait, numbers: Iterator[int], scale: float) -> Iterator[Event]:
    """An arrow from the middle of each signal to the end of the wait that it releases."""
    match = match_of(launch, wait)
    for wait_number, signal in enumerate([] if match is None else match.release.tolist()):
        if match is not None and signal >= 0:
            yield from _signal_arrow(launch, (match.signals, signal), (match.waits, wait_number), next(numbers), scale)


def _meeting_events(launch: LaunchPhases, phase: int, numbers: Iterator[int], scale: float) -> Iterator[Event]:
    """An arrow from the arrival of the last warp at a barrier to the end of the wait of each other warp."""
    for block in launch.some_blocks:
        block_meetings = meetings(launch, block, phase)
        if block_meetings is None:
            continue
        for number, last_warp in enumerate(block_meetings.last_warps.tolist()):
            arrival = int(block_meetings.start_times[:, number].max())
            for warp, end in zip(
                block_meetings.warps.tolist(), block_meetings.end_times[:, number].tolist(), strict=True
            ):
                if warp != last_warp and arrival <= end:
                    yield from _arrow_events(launch, (last_warp, arrival), (warp, end), next(numbers), scale)


def _signal_arrow(
    launch: LaunchPhases, source: tuple[Spans, int], target: tuple[Spans, int], number: int, scale: float
) -> Iterator[Event]:
    (signals, signal), (waits, wait) = source, target
    release_time, middle = int(waits.end[wait]), (int(signals.start[signal]) + int(signals.end[signal])) / 2
    endpoints = (int(signals.warp[signal]), min(middle, release_time)), (int(waits.warp[wait]), release_time)
    yield from _arrow_events(launch, *endpoints, number, scale)


def _arrow_events(
    launch: LaunchPhases, source: tuple[int, float], target: tuple[int, float], number: int, scale: float
) -> Iterator[Event]:
    """The two events of an arrow between times of two warps."""
    for sign, (warp, time) in (("s", source), ("f", target)):
        yield {
            "name": "release", "cat": "wait", "ph": sign, "id": number, "ts": time * scale,
            **_thread_ids(launch, warp), **({"bp": "e"} if sign == "f" else {}),
        }  # fmt: skip


def lanes(launch: LaunchPhases, block: int, width: int, peak: int | None = None) -> Iterator[Line]:
    """The whole block, and some iterations of its main loop if that has several; below each the use of tensor cores,
    whose ``peak`` is in multiply-adds per cycle.
    """
    warps = shown_warps(launch, block)
    names = [_warp_name(launch, warp) for warp in warps]
    rates = TensorRates.for_block(launch, block)
    name_cells = min(max(map(len, [*names, _TENSOR] if rates else names), default=0), max(width - MIN_CELLS - 2, 1))
    cells = max(width - name_cells - 2, 1)

    def window_lanes(start: int, end: int, title: str) -> Iterator[Line]:
        yield _ruler(name_cells, cells, title, f"{units.count(end - start)} cycles")
        for warp, name in zip(warps, names, strict=True):
            yield _lane(launch, warp, name, name_cells, (start, end), cells)
        if rates is not None:
            yield tensor_lane(rates, name_cells, (start, end), cells, peak)

    yield from window_lanes(0, launch.block_cycles[block], "0")
    iterations = main_iterations(launch, warps)
    if iterations is not None:
        yield ()
        yield from window_lanes(iterations.start, iterations.end, iterations.title)


def tensor_lane(rates: TensorRates, name_cells: int, window: tuple[int, int], cells: int, peak: int | None) -> Line:
    """``tensor 035550``: tenths of the peak in each cell, or without one of the highest rate in the lane."""
    edges = window[0] + (window[1] - window[0]) * np.arange(cells + 1) / cells
    cell_rates = np.diff(np.interp(edges, rates.times, rates.issued)) / np.maximum(np.diff(edges), 1e-9)
    tenths = (
        (_RATE_STEPS * cell_rates / (peak or max(cell_rates.max(), 1e-9))).astype(np.int64).clip(0, _RATE_STEPS - 1)
    )
    text = "".join(
        _NO_TIME if rate <= 0 else str(tenth) for rate, tenth in zip(cell_rates, tenths.tolist(), strict=True)
    )
    return (f" {pad(clip(_TENSOR, name_cells), name_cells)} ", "dim"), (text, "")


def shown_warps(launch: LaunchPhases, block: int) -> list[int]:
    """The first warp of each role in a block and the one that differs most from it, role by role."""
    block_warps = np.flatnonzero(launch.warps.block == block)
    lane_warps: list[int] = []
    for role in range(len(launch.roles)):
        role_warps = block_warps[launch.warps.role[block_warps] == role].tolist()
        lane_warps += sorted({role_warps[0], _most_different_warp(launch, role_warps)}) if role_warps else []
    return lane_warps[:MAX_LANES]


def _most_different_warp(launch: LaunchPhases, warps: Sequence[int]) -> int:
    """The warp whose times in the phases differ most from those of the first; the second where none differs much."""
    times = np.stack([_phase_cycles(launch, warp) for warp in warps])
    differences = np.abs(times - times[0]).sum(axis=1)
    number = int(differences.argmax())
    return warps[number] if differences[number] > _NOTABLE_DIFFERENCE * times[0].sum() else warps[:_MAX_ROLE_LANES][-1]


def _phase_cycles(launch: LaunchPhases, warp: int) -> NDArray[np.int64]:
    """Cycles of a warp in each phase, and at last those that were not recorded."""
    start, end = np.searchsorted(launch.spans.warp, (warp, warp + 1))
    warp_spans, count = slice(int(start), int(end)), len(launch.phases) + 1
    return np.bincount(launch.spans.phase[warp_spans] % count, launch.spans.cycles[warp_spans], count).astype(np.int64)


class MainIterations(NamedTuple):
    """Some iterations of the main loop, from 1, and their time in cycles since the block began."""

    first: int
    last: int
    start: int
    end: int

    @property
    def title(self) -> str:
        """``iterations 3–5 of the main loop``."""
        if self.last == self.first:
            return f"iteration {self.first} of the main loop"
        return f"iterations {self.first}–{self.last} of the main loop"


def main_iterations(launch: LaunchPhases, warps: Sequence[int]) -> MainIterations | None:
    """Some iterations in the middle of the main loop; None without a loop of several iterations."""
    loops = np.array([phase.loop or 0 for phase in launch.phases] + [0])[launch.spans.phase]
    is_in_loop = np.isin(launch.spans.warp, warps) & (loops > 0) & (launch.iteration > 0)
    if not is_in_loop.any():
        return None
    loop, warp = _main_loop(launch, np.where(is_in_loop, loops, 0), warps)
    is_main_loop = is_in_loop & (loops == loop)
    spans = launch.spans.select(is_main_loop & (launch.spans.warp == warp))
    numbers = launch.iteration[is_main_loop & (launch.spans.warp == warp)]
    count = int(numbers.max())
    if count < 2:
        return None
    if launch.sampling_period:
        recorded = np.unique(numbers)
        number = int(recorded[len(recorded) // 2])
        return MainIterations(number, number, *_time_of_iteration(launch, number, is_in_loop, warp))
    first = max(1, count // 2 - _MAX_ITERATIONS // 2)
    last = min(count, first + _MAX_ITERATIONS - 1)
    shown_spans = spans.select((numbers >= first) & (numbers <= last))
    return MainIterations(first, last, int(shown_spans.start.min()), int(shown_spans.end.max()))


def _main_loop(launch: LaunchPhases, loops: NDArray[np.int64], warps: Sequence[int]) -> tuple[int, int]:
    """The loop in which one of ``warps`` works longest, and this warp; ``loops`` are those of spans, 0 for none.

    Waits do not count: idle warps can wait in a loop for the whole kernel. Of several, the first loop and warp.
    """
    is_wait = np.array([phase.work in WAITS for phase in launch.phases] + [True])[launch.spans.phase]
    cycles = np.where(is_wait, 0, launch.spans.cycles)
    pairs, pair = np.unique(np.stack((loops, launch.spans.warp))[:, loops > 0], axis=1, return_inverse=True)
    work_cycles = np.bincount(pair.reshape(-1), cycles[loops > 0])
    busiest_pairs = pairs[:, work_cycles == work_cycles.max()].T.tolist()
    loop, warp = min(busiest_pairs, key=lambda pair: (pair[0], warps.index(pair[1])))
    return loop, warp


def _time_of_iteration(launch: LaunchPhases, number: int, mask: NDArray[np.bool_], warp: int) -> tuple[int, int]:
    """Start and end of a recorded iteration of a warp, and of the same iteration of warps that overlaps it."""
    spans = launch.spans.select(mask & (launch.iteration == number))
    of_warp = spans.select(spans.warp == warp)
    start, end = of_warp.start.min(), of_warp.end.max()
    overlapping = spans.select(np.isin(spans.warp, spans.warp[(spans.start < end) & (spans.end > start)]))
    return int(overlapping.start.min()), int(overlapping.end.max())


def _warp_name(launch: LaunchPhases, warp: int) -> str:
    role, name = launch.roles[int(launch.warps.role[warp])], f"w{int(launch.warps.warp[warp])}"
    return name if role == ALL_WARPS else f"{role} {name}"


def _ruler(name_cells: int, cells: int, begin: str, end: str) -> Line:
    text = pad(begin, max(cells - len(end), 0)) + end if len(begin) + len(end) < cells else clip(end, cells)
    return ((" " * (name_cells + 2) + text, "dim"),)


def _lane(launch: LaunchPhases, warp: int, name: str, name_cells: int, window: tuple[int, int], cells: int) -> Line:
    """``consumer w0 AAABBBBCC``: each cell has the letter of the phase with most time in it."""
    phases = dominant_phases(launch, warp, window, cells)
    signs = [(_letter(launch, phase), _colour_role(phase)) for phase in phases.tolist()]
    spans = [
        ("".join(sign for sign, _ in group), role)
        for role, group in groupby(signs, key=lambda letter_role: letter_role[1])
    ]
    return ((f" {pad(clip(name, name_cells), name_cells)} ", "dim"), *spans)


def dominant_phases(launch: LaunchPhases, warp: int, window: tuple[int, int], cells: int) -> NDArray[np.int64]:
    """The phase with most time in each cell: its number, -1 for time that was not recorded, -2 for no time. A cell with
    recorded iterations shows these, however short.
    """
    first_span, end_span = np.searchsorted(launch.spans.warp, (warp, warp + 1))
    begin, end = window
    edges = begin + (end - begin) * np.arange(cells + 1) / cells
    times = np.zeros((len(launch.phases) + 1, cells))
    for number in range(int(first_span), int(end_span)):
        start, stop = int(launch.spans.start[number]), int(launch.spans.end[number])
        overlap = np.minimum(edges[1:], stop) - np.maximum(edges[:-1], start)
        scale = _SKIPPED_WEIGHT if launch.is_skipped[number] else 1.0
        times[int(launch.spans.phase[number])] += scale * overlap.clip(0)
    longest = times.argmax(axis=0)
    numbers = np.where(longest == len(launch.phases), NOT_RECORDED, longest)
    return np.where(times.max(axis=0) > 0, numbers, NOT_RECORDED - 1)


def _letter(launch: LaunchPhases, phase: int) -> str:
    if phase == NOT_RECORDED:
        return _NO_RECORD
    return launch.phases[phase].letter if phase >= 0 else _NO_TIME


def _colour_role(phase: int) -> str:
    return f"hue{phase % _HUES}" if phase >= 0 else "dim"
