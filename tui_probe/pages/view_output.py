"""Output of a view in full, as text, JSON or CSV; timelines as trace events for Perfetto and chrome://tracing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw.csv_table import csv_lines
from tui_probe.draw.printable import dump_json, printable
from tui_probe.draw.spans import clip_line, plain, to_ascii
from tui_probe.draw.table import SCHEMA_VERSION
from tui_probe.draw.view import COMMANDS, Document, EventView
from tui_probe.errors import ChoiceError
from tui_probe.pages.views.launches import Launches
from tui_probe.probekit.timelines.launch import LaunchTimelineView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import TextIO

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import View
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.probekit.timelines.launch import LaunchTimeline
    from tui_probe.records.timeline import Intervals
    from tui_probe.trace.model import Trace

    Event = dict[str, Any]


VIEW_SCHEMA: Final = "tui-probe.view"
_DEVICE_PID: Final = 0
"""The process that holds the counter; that of SM n is n + 1."""
_WRITE_BATCH: Final = 1 << 14


def view_lines(view: View, width: int, height: int | None, *, ascii_only: bool = False) -> Iterator[Line]:
    """Yield the lines of a view: of a drawing exactly ``height``, of a document all, or the first ``height``."""
    lines: Sequence[Line]
    if isinstance(view, Document):
        lines = view.whole_text(width)
        lines = lines if height is None else lines[:height]
    else:
        work = view.prepare(width, height or 24)
        if work is not None:
            work()
        lines = view.draw(width, height or 24, ascii_only=ascii_only)
    for line in lines:
        spans = ((printable(text), role) for text, role in line)
        yield clip_line(tuple((to_ascii(text) if ascii_only else text, role) for text, role in spans), width)


def text_lines(lines: Iterable[Line]) -> Iterator[str]:
    """Lines without their roles."""
    return (plain(line).rstrip() for line in lines)


def page_head(name: str, source: ViewSource | None) -> dict[str, Any]:
    """Return the subject of a view as data; one of imported files has no trace."""
    if source is None:
        return {"schema": VIEW_SCHEMA, "version": SCHEMA_VERSION, "view": name}
    trace, kernel = source.trace, source.kernel
    return {
        "schema": VIEW_SCHEMA,
        "version": SCHEMA_VERSION,
        "view": name,
        "trace": str(trace.directory).encode("utf-8", "backslashreplace").decode(),
        "simulated": trace.state.simulated,
        "kernel": {"index": kernel.index, "name": kernel.name, "demangled": kernel.demangled, "status": kernel.status},
        "launch": None if source.launch is None else source.launch.number,
    }


def view_document(name: str, source: ViewSource | None, view: View) -> dict[str, Any]:
    """Return a view as a document; ``data`` is its content, None what was not measured."""
    return {**page_head(name, source), "data": view.record()}


def json_lines(name: str, source: ViewSource | None, view: View) -> Iterator[str]:
    """Yield the document of a view as JSON."""
    yield dump_json(view_document(name, source, view), indent=1)


def csv_of_view(view: View) -> Iterator[str]:
    """Yield the rows of a view, the headings first."""
    return csv_lines(view.cells())


def run_commands(view: View, commands: Sequence[str], size: tuple[int, int]) -> list[str]:
    """Give commands to a view, one after another; what it says to them. Raises ChoiceError for one it does not know."""
    texts = []
    for command in commands:
        if not isinstance(view, Document):
            if (work := view.prepare(*size)) is not None:
                work()
            view.draw(*size)  # a cursor is in a picture
        page_commands = view.commands()
        if command not in page_commands:
            command_list = ", ".join(f"{name} ({page_commands[name]})" for name in COMMANDS if name in page_commands)
            raise ChoiceError(f"this page has no command {command!r}; it has {command_list or 'no commands'}")
        if words := view.press(command):
            texts.append(words)
    return texts


def writer_of(view: View) -> Callable[[Path], int] | None:
    """Return the writer of the launch of a timeline, or of the launches of a trace; None for other views.

    It is called with a path, returns how many events there are, and raises OSError if the file cannot be written.
    """
    if isinstance(view, LaunchTimelineView):
        return lambda path: write_timeline(path, view.launch, warps=view.shows_warps)
    if isinstance(view, EventView):
        return lambda path: _write_view(path, view)
    return (lambda path: write_launches(path, view.trace)) if isinstance(view, Launches) else None


def _write_view(path: Path, view: EventView) -> int:
    with path.open("w", encoding="utf-8") as file:
        return write_events(file, view.trace_events(), view.trace_facts())


def write_timeline(path: Path, launch: LaunchTimeline, *, warps: bool = False) -> int:
    """Write the blocks of a launch, or its warps; how many events there are. OSError if the file cannot be written."""
    with path.open("w", encoding="utf-8") as file:
        return write_events(file, timeline_events(launch, warps=warps), _launch_arguments(launch))


def write_launches(path: Path, trace: Trace) -> int:
    """Write the launches of a trace; how many events there are. OSError if the file cannot be written."""
    with path.open("w", encoding="utf-8") as file:
        return write_events(file, launch_events(trace), {"trace": printable(str(trace.directory))})


def write_events(file: TextIO, events: Iterable[Event], facts: Mapping[str, Any]) -> int:
    """Write one JSON document, one event per line, holding only one event in memory. Return the number of events."""
    file.write(f'{{"displayTimeUnit": "ns",\n"otherData": {json.dumps(facts)},\n"traceEvents": [')
    count = 0
    for event in events:
        file.write(",\n" if count else "\n")
        file.write(json.dumps(event, separators=(",", ":")))
        count += 1
    file.write("\n]}\n")
    return count


def timeline_events(launch: LaunchTimeline, *, warps: bool = False) -> Iterator[Event]:
    """Names of SMs and slots, blocks (or warps), and the counter of those that run, of one launch."""
    timeline = launch.timeline
    intervals = timeline.warps if warps else timeline.blocks
    per_slot = timeline.warps_per_block if warps else 1
    yield _name_event("process_name", _DEVICE_PID, f"{launch.launch_label} {launch.kernel_name}")
    for sm in timeline.sms.tolist():
        yield _name_event("process_name", sm + 1, f"SM {sm}")
        yield {"name": "process_sort_index", "ph": "M", "pid": sm + 1, "args": {"sort_index": sm + 1}}
    threads = np.unique(np.stack([intervals.sm, intervals.slot, intervals.warp.clip(0)], axis=1), axis=0)
    for sm, slot, warp in threads.tolist():
        name = f"slot {slot} warp {warp}" if warps else f"slot {slot}"
        yield _name_event("thread_name", sm + 1, name, slot * per_slot + warp)
    scale = 1e3 / launch.clock_khz if launch.clock_khz else 1e-3
    yield from _interval_events(intervals, per_slot, scale)
    yield from _counter_events(intervals, "running warps" if warps else "running blocks", scale)


def _interval_events(intervals: Intervals, per_slot: int, scale: float) -> Iterator[Event]:
    for start_row in range(0, len(intervals), _WRITE_BATCH):
        part = intervals.take(np.arange(start_row, min(start_row + _WRITE_BATCH, len(intervals))))
        columns = (part.start, part.end, part.sm, part.slot, part.warp, part.block)
        for start, end, sm, slot, warp, block in zip(*(column.tolist() for column in columns), strict=True):
            args = {"block": block, "start_cycle": start, "cycles": end - start}
            name = f"block {block}"
            if warp >= 0:
                name, args["warp"] = f"{name} warp {warp}", warp
            yield {
                "name": name, "cat": "warp" if warp >= 0 else "block", "ph": "X", "ts": start * scale,
                "dur": (end - start) * scale, "pid": sm + 1, "tid": slot * per_slot + max(warp, 0), "args": args,
            }  # fmt: skip


def _counter_events(intervals: Intervals, name: str, scale: float) -> Iterator[Event]:
    """Yield the counter, at each moment when it changes."""
    times, time_indices = np.unique(np.concatenate([intervals.start, intervals.end]), return_inverse=True)
    count = len(intervals)
    changes = np.bincount(time_indices[:count], minlength=len(times)) - np.bincount(
        time_indices[count:], minlength=len(times)
    )
    running_counts = np.cumsum(changes)
    for i in np.flatnonzero(changes).tolist():
        args = {"running": int(running_counts[i])}
        yield {"name": name, "ph": "C", "ts": int(times[i]) * scale, "pid": _DEVICE_PID, "args": args}


def launch_events(trace: Trace) -> Iterator[Event]:
    """Yield an instant per launch with a known time, on the thread of its stream."""
    state = trace.state
    pid = state.pid or 0
    zero = state.zero_ns
    yield _name_event("process_name", pid, f"launches of process {pid}: {printable(state.command)}")
    threads: dict[int | None, int] = {}
    for launch in trace.launches:
        if launch.time_ns is None:
            continue
        zero = launch.time_ns if zero is None else zero
        if launch.stream not in threads:
            threads[launch.stream] = len(threads) + 1
            name = "unknown stream" if launch.stream is None else f"stream {launch.stream:#x}"
            yield _name_event("thread_name", pid, name, threads[launch.stream])
        kernel = trace.kernels.get(launch.kernel)
        args = {
            "launch": launch.number, "kernel": launch.kernel, "grid": launch.grid, "block": launch.block,
            "shared_bytes": launch.shared, "probed": launch.probed, "reason": launch.reason,
            "reason_code": launch.reason_code,
        }  # fmt: skip
        yield {
            "name": "?" if kernel is None else printable(kernel.demangled), "cat": "launch", "ph": "i", "s": "t",
            "ts": (launch.time_ns - zero) / 1e3, "pid": pid, "tid": threads[launch.stream], "args": args,
        }  # fmt: skip


def _name_event(kind: str, pid: int, name: str, tid: int | None = None) -> Event:
    event: Event = {"name": kind, "ph": "M", "pid": pid, "args": {"name": name}}
    return event if tid is None else {**event, "tid": tid}


def _launch_arguments(launch: LaunchTimeline) -> dict[str, Any]:
    has_clock = launch.clock_khz is not None
    scale = f"cycles at {(launch.clock_khz or 0) / 1e6:.3f} GHz, {launch.clock_origin}"
    return {
        "launch": launch.launch_label,
        "kernel": launch.kernel_name,
        "simulated": launch.simulated,
        "time": scale if has_clock else "cycles: the clock rate is unknown, so 1 ns in this file stands for 1 cycle",
        "alignment": launch.timeline.clocks.summary(),
    }
