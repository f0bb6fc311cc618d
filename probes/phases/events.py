"""Trace events of phases: a process per block, a thread per warp, and flows from signals to the waits that they end."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from .analysis import NOT_RECORDED
from .waits import by_warp, releases, signals_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .analysis import Phases, Spans
    from .waits import Wait

Event = dict[str, Any]


def trace_events(launch: Phases, waits: Sequence[Wait], title: str, clock_khz: int | None) -> Iterator[Event]:
    """The events of some blocks. Without a clock each cycle becomes a nanosecond."""
    scale = 1e3 / clock_khz if clock_khz else 1e-3
    blocks = set(launch.some_blocks)
    for block in sorted(blocks):
        yield _name("process_name", block + 1, 0, f"block {block} of {title}")
    for warp, (block, number) in enumerate(zip(launch.warps.block.tolist(), launch.warps.warp.tolist(), strict=True)):
        if block in blocks:
            role = launch.roles[int(launch.warps.role[warp])]
            yield _name("thread_name", block + 1, number, f"warp {number} {role}")
            yield from _spans(launch, warp, scale)
    numbers = count(1)
    for wait in waits:
        if wait.partner is not None and wait.by_order:
            yield from _flows(launch, wait, numbers, scale)


def _name(kind: str, pid: int, tid: int, name: str) -> Event:
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}


def _spans(launch: Phases, warp: int, scale: float) -> Iterator[Event]:
    own = launch.spans.warp == warp
    spans, iteration = launch.spans.where(own), launch.iteration[own]
    columns = (spans.start, spans.end, spans.phase, iteration)
    for start, end, phase, number in zip(*(column.tolist() for column in columns), strict=True):
        if phase != NOT_RECORDED:
            yield {
                "name": launch.phases[phase].name, "cat": launch.phases[phase].activity, "ph": "X",
                "ts": start * scale, "dur": (end - start) * scale, **_thread(launch, warp),
                "args": {"cycles": end - start, "iteration": number or None, "source": launch.phases[phase].place},
            }  # fmt: skip


def _thread(launch: Phases, warp: int) -> dict[str, int]:
    return {"pid": int(launch.warps.block[warp]) + 1, "tid": int(launch.warps.warp[warp])}


def _flows(launch: Phases, wait: Wait, numbers: Iterator[int], scale: float) -> Iterator[Event]:
    """An arrow from the middle of each signal to the end of the wait that it releases."""
    if wait.partner is None or wait.signal is None:
        return
    role, partner = launch.roles.index(wait.role), launch.roles.index(wait.partner)
    of_role = (launch.warps.role == role)[launch.spans.warp]
    spans = launch.spans.where(of_role & (launch.spans.phase == launch.phases.index(wait.phase)))
    signals = signals_of(launch, partner, launch.phases.index(wait.signal))
    for waiting, here in by_warp(launch, spans, signals):
        release, _ = releases(waiting, here)
        for place, signal in enumerate(release.tolist()):
            if signal >= 0:
                yield from _arrow(launch, (here, signal), (waiting, place), next(numbers), scale)


def _arrow(
    launch: Phases, source: tuple[Spans, int], target: tuple[Spans, int], number: int, scale: float
) -> Iterator[Event]:
    until = int(target[0].end[target[1]])
    for sign, (spans, place), at in (("s", source, 0.5), ("f", target, 1.0)):
        start, end = int(spans.start[place]), int(spans.end[place])
        time = min(start + (end - start) * at, until) * scale
        yield {
            "name": "release", "cat": "wait", "ph": sign, "id": number, "ts": time,
            **_thread(launch, int(spans.warp[place])), **({"bp": "e"} if sign == "f" else {}),
        }  # fmt: skip
