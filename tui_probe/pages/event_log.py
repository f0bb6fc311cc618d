"""Lines of ``event.log``: as rows of a report, and as sentences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.table import Column
from tui_probe.draw.table_content import RemadeRows, TableContent
from tui_probe.input_limits import LOG_LINE
from tui_probe.trace import event_types, launch_events
from tui_probe.trace.locate import LOG
from tui_probe.trace.plain_file import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.event_types import Event
    from tui_probe.trace.launch_shape import Shape
    from tui_probe.trace.model import Trace

LOG_COLUMNS: Final[tuple[Column[LogRow], ...]] = (
    Column("line", lambda r: r.number, "line", lambda r: str(r.number)),
    Column("tag", lambda r: r.tag),
    Column("text", lambda r: r.text, "text", lambda r: r.text, right=False, narrow=20),
)


@dataclass(frozen=True, slots=True)
class LogRow:
    """One line, safe to print. ``tag`` is without its brackets, None for a line that has none."""

    number: int
    tag: str | None
    text: str


def log_rows(trace: Trace) -> Iterator[LogRow]:
    """Yield all lines, numbered from 1."""
    path = trace.file(LOG)
    if path is None:
        return
    with open_plain(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(LOG_LINE.maximum), b""), 1):
            text = printable(line)
            tag, _, text_after_tag = text.partition("]")
            yield LogRow(number, tag[1:] if tag.startswith("[") and text_after_tag else None, text)


def log_content(trace: Trace) -> TableContent[LogRow]:
    """Return the page of all lines; its text is the log itself."""
    rows = RemadeRows(partial(log_rows, trace))
    return TableContent("events", "event.log", LOG_COLUMNS, rows, report=lambda _: (row.text for row in rows))


def event_sentence(event: Event) -> str | None:
    """Explain a line in a sentence; None for one of a kind that is not explained."""
    return (
        _process_sentence(event)
        or _code_sentence(event)
        or _preparation_sentence(event)
        or _launch_sentence(event)
        or _graph_sentence(event)
    )


def _process_sentence(event: Event) -> str | None:
    match event:
        case event_types.ProcessStarted(pid):
            return f"the process has PID {pid}; the name of the trace ends with this PID"
        case event_types.Command(text):
            return f"the command line of the process is: {text}"
        case event_types.DriverOpened():
            return "the hook opened the real driver"
        case event_types.Epoch():
            return "the names of result files count seconds from this time (in nanoseconds since 1970)"
        case event_types.Device(_, sms, clock, capability, name):
            device_text = f"{units.counted(sms, 'SM')}, compute capability {capability}, at most {clock / 1e6:.2f} GHz"
            return f"the device: {name}, {device_text}"
        case event_types.Initialised():
            return "the hook is ready"
        case event_types.BenchmarkEnabled(size):
            return f"original kernels are also timed, after flushing {units.size(size)} of L2"
        case event_types.Exited(launches, probed, dropped):
            launches_text, dropped_text = units.counted(launches, "launch"), units.counted(dropped, "result")
            return f"the program ended: {launches_text} ({units.count(probed)} probed), {dropped_text} dropped"
        case event_types.ContextFailed(error, name):
            return f"the result could not be read: {name} ({error}); later launches in this GPU context run unprobed"
        case _:
            return None


def _code_sentence(event: Event) -> str | None:
    match event:
        case event_types.MemoryCall(call, status, pointer, size):
            memory_text = (
                f"{units.size(size)} of device memory at {pointer:#x}" if size is not None else f"{pointer:#x}"
            )
            return f"the program called {call} for {memory_text}: {_driver_answer(status)}"
        case event_types.TensorMapMade(call, status, _, address):
            return f"the program called {call} for a tensor at {address:#x}: {_driver_answer(status)}"
        case launch_events.ModuleCall(call, _, _, _, name):
            return f"the program called {call}" + (f" for {name}" if name else "")
        case launch_events.Image(kind, size):
            return f"a kernel image was loaded: {kind}, {units.size(size)}"
        case launch_events.FunctionMissing():
            return "first launch of a function: its preparation starts"
        case launch_events.FunctionFound(_, succeeded):
            return "launch of a prepared function" + ("" if succeeded else ", which cannot be probed")
        case _:
            return None


def _preparation_sentence(event: Event) -> str | None:
    match event:
        case launch_events.ImageFound(_, name, size):
            return f"{name} is in an image of {units.size(size)}" if name else "the function's image is unknown"
        case launch_events.KernelFolder(name, folder):
            return f"the files of {name} are in kernel/{folder}"
        case launch_events.FileStep(step, path):
            return f"{step} {path.rpartition('/')[2]}"
        case launch_events.EngineStarted():
            return "the engine started"
        case launch_events.EngineAnswer(outcome, reason):
            return f"the engine answered: {outcome}" + (f", {reason.text}" if reason else "")
        case launch_events.InfoRead(_, parameters, maps):
            return ", ".join(
                [
                    f"read kernel.info: {units.counted(parameters, 'parameter')}",
                    *([] if maps is None else [units.counted(maps, "map")]),
                ]
            )
        case launch_events.KernelReady(_, name):
            return f"{name} is prepared; later launches are probed"
        case launch_events.LaunchKept(index, number, size, _, failure):
            result = f", without a result: {failure.text}" if failure else ""
            return f"launch {number} of kernel #{index} was saved with {units.size(size)} of memory{result}"
        case launch_events.LaunchNotKept(index, number, reason):
            return f"launch {number} of kernel #{index} was not saved" + (f": {reason.text}" if reason else "")
        case launch_events.KernelPrepared(index, status, _, _, reason):
            return f"kernel #{index} is {status}" + (f": {reason.text}" if reason else "")
        case launch_events.ProbedFunction(index, resources):
            return f"kernel #{index} with the probe needs {_number_text(resources.registers)} registers per thread"
        case _:
            return None


def _launch_sentence(event: Event) -> str | None:
    match event:
        case launch_events.Parameters():
            return "time of the launch call, and its parameters"
        case launch_events.LaunchStarted(shape):
            return f"a probed launch of {_shape_text(shape)}"
        case launch_events.MapSize(blocks, level, slots, size, total):
            extent = f"{units.counted(blocks, 'block')} × {units.counted(slots, level)} × {size} bytes"
            return f"a map of the probe: {extent} = {units.size(total)}"
        case launch_events.ProbeMemory(size):
            return f"all maps of the launch take {units.size(size)} of device memory"
        case launch_events.LaunchEnded(_, status):
            return f"launch call to the driver: {_driver_answer(status)}"
        case launch_events.ResultSaved(path, size):
            return f"the records were saved to result/{path.rpartition('/')[2]}, {units.size(size)}"
        case launch_events.LaunchUnprobed(shape, _, _, _, reason):
            return f"launch of the original kernel, {_shape_text(shape)}" + (f": {reason.text}" if reason else "")
        case launch_events.LaunchTimes(prologue, kernel, epilogue, _):
            times = ", ".join(map(_number_text, (prologue, kernel, epilogue)))
            return f"milliseconds before, during and after the probed kernel: {times}"
        case launch_events.Benchmark(_, kernel, _, original, impact):
            times = f"{_number_text(kernel)} ms with the probe and {_number_text(original)} ms without"
            return f"the kernel took {times}, a slowdown of {_number_text(impact)}"
        case event_types.Callback(step, _):
            return f"analysis of the probe: {step}"
        case event_types.Unknown():
            return "unknown line: truncated, or mixed with another line"
        case _:
            return None


def _graph_sentence(event: Event) -> str | None:
    match event:
        case launch_events.GraphInstantiated(graph, nodes, kernels):
            nodes_text = f"{units.counted(nodes, 'node')}, {units.count(kernels)} of them kernels"
            return f"graph {graph} was instantiated: {nodes_text}"
        case launch_events.GraphNode(graph, index, kind, _, after):
            order_text = (
                f", after {'nodes' if len(after) > 1 else 'node'} {', '.join(map(str, after))}" if after else ""
            )
            return f"node {index} of graph {graph}: {kind}{order_text}"
        case launch_events.GraphReplayed(graph, count):
            return f"graph {graph} was replayed {units.counted(count, 'time')} without the probe"
        case launch_events.GraphReplay(graph, _, _, first, count):
            return f"a probed replay of graph {graph}: launches {first} to {first + max(count, 1) - 1}"
        case launch_events.GraphTimed(graph, _, probed, ns):
            mode_text = "with" if probed else "without"
            return f"a replay of graph {graph} {mode_text} probes took {units.duration(ns / 1e9)}"
        case launch_events.GraphChanged(graph, what, reason):
            outcome = {"untwinned": "is not probed", "passed": "ran unprobed, although it was selected for sampling",
                    "given back": "released its probed copy", "destroyed": "was destroyed"}[what]  # fmt: skip
            return f"graph {graph} {outcome}" + (f": {reason.text}" if reason else "")
        case _:
            return None


def _driver_answer(status: int) -> str:
    return "success" if status == 0 else f"CUDA error {status}"


def _number_text(value: float | None) -> str:
    return units.NOT_MEASURED if value is None else f"{value:g}"


def _shape_text(shape: Shape) -> str:
    blocks, threads = shape[0] * shape[1] * shape[2], shape[3] * shape[4] * shape[5]
    return f"{units.counted(blocks, 'block')} of {units.counted(threads, 'thread')}"
