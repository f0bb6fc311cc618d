"""Lines of ``event.log`` in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.trace import graph_events, kernel_events, launch_events, process_events

if TYPE_CHECKING:
    from tui_probe.trace.event_types import Event
    from tui_probe.trace.shapes import Shape


def event_words(event: Event) -> str | None:
    """What a line says, in a sentence; None for one of a kind that is not explained."""
    return _of_process(event) or _of_code(event) or _of_preparation(event) or _of_launch(event) or _of_graph(event)


def _of_process(event: Event) -> str | None:
    match event:
        case process_events.ProcessStarted(pid):
            return f"the process has the number {pid}, which ends the trace's name"
        case process_events.Command(text):
            return f"its command line is: {text}"
        case process_events.DriverOpened():
            return "the hook opened the real driver"
        case process_events.Epoch():
            return "zero of the names of result files, in nanoseconds since 1970"
        case process_events.Device(_, sms, clock, capability, name):
            about = f"{units.counted(sms, 'SM')}, compute capability {capability}, at most {clock / 1e6:.2f} GHz"
            return f"the device: {name}, {about}"
        case process_events.Initialised():
            return "the hook is ready"
        case process_events.BenchmarkEnabled(size):
            return f"originals are timed, too, after {units.size(size)} of L2 cache are flushed"
        case process_events.Exited(launches, probed, dropped):
            seen, lost = units.counted(launches, "launch"), units.counted(dropped, "result")
            return f"the end: {seen}, {units.count(probed)} of them probed, {lost} not kept"
        case process_events.ContextFailed(error, name):
            return f"no result could be had: {name} ({error}); launches in this GPU context are not probed any more"
        case _:
            return None


def _of_code(event: Event) -> str | None:
    match event:
        case process_events.MemoryCall(call, status, pointer, size):
            what = f"{units.size(size)} of device memory at {pointer:#x}" if size is not None else f"{pointer:#x}"
            return f"the program called {call} for {what}: {_answer(status)}"
        case kernel_events.ModuleCall(call, _, _, _, name):
            return f"the program called {call}" + (f", and named {name}" if name else "")
        case kernel_events.Image(kind, size):
            return f"a kernel image was loaded: {kind}, {units.size(size)}"
        case kernel_events.FunctionMissing():
            return "a function was launched for the first time: it has to be prepared"
        case kernel_events.FunctionFound(_, succeeded):
            return "a function was launched that is prepared" + ("" if succeeded else ", and cannot be probed")
        case _:
            return None


def _of_preparation(event: Event) -> str | None:
    match event:
        case kernel_events.ImageFound(_, name, size):
            return f"{name} is in an image of {units.size(size)}" if name else "no image of the function was seen"
        case kernel_events.KernelFolder(name, folder):
            return f"the files of {name} are in kernel/{folder}"
        case kernel_events.FileStep(step, path):
            return f"{step} {path.rpartition('/')[2]}"
        case kernel_events.EngineStarted():
            return "the engine was started"
        case kernel_events.EngineAnswer(outcome, reason):
            return f"the engine answered: {outcome}" + (f", {reason.text}" if reason else "")
        case kernel_events.InfoRead(_, parameters, maps):
            return ", ".join(
                [
                    f"kernel.info was read: {units.counted(parameters, 'parameter')}",
                    *([] if maps is None else [units.counted(maps, "map")]),
                ]
            )
        case kernel_events.KernelReady(_, name):
            return f"{name} is ready to be launched with the probe"
        case kernel_events.KernelFate(index, status, _, _, reason):
            return f"kernel #{index} is {status}" + (f": {reason.text}" if reason else "")
        case kernel_events.ProbedFunction(index, figures):
            return f"kernel #{index} with the probe takes {_known(figures.registers)} registers per thread"
        case _:
            return None


def _of_launch(event: Event) -> str | None:
    match event:
        case launch_events.Parameters():
            return "when the launch was asked for, and its parameters"
        case launch_events.LaunchStarted(shape):
            return f"a probed launch of {_shape_words(shape)}"
        case launch_events.MapSize(blocks, level, slots, size, total):
            each = f"{units.counted(blocks, 'block')} × {units.counted(slots, level)} × {size} bytes"
            return f"a map of the probe: {each} = {units.size(total)}"
        case launch_events.ProbeMemory(size):
            return f"all maps of the launch take {units.size(size)} of device memory"
        case launch_events.LaunchEnded(_, status):
            return f"the driver was given the launch: {_answer(status)}"
        case launch_events.Saved(path, size):
            return f"what the probe recorded went to result/{path.rpartition('/')[2]}, {units.size(size)}"
        case launch_events.PassedThrough(shape, _, _, _, reason):
            return f"the original was launched, {_shape_words(shape)}" + (f": {reason.text}" if reason else "")
        case launch_events.LaunchTimes(prologue, kernel, epilogue, _):
            times = ", ".join(map(_known, (prologue, kernel, epilogue)))
            return f"milliseconds before, in and after the probed kernel: {times}"
        case launch_events.Benchmark(_, kernel, _, original, impact):
            times = f"{_known(kernel)} ms with the probe and {_known(original)} ms without"
            return f"the kernel took {times}, {_known(impact)} times as long"
        case process_events.Callback(step, _):
            return f"the analysis of the probe: {step}"
        case process_events.Unknown():
            return "no line of a known kind: cut, or mixed with another"
        case _:
            return None


def _of_graph(event: Event) -> str | None:
    match event:
        case graph_events.GraphMade(graph, nodes, kernels):
            inside = f"{units.counted(nodes, 'node')}, {units.count(kernels)} of them kernels"
            return f"graph {graph} is executable: {inside}"
        case graph_events.GraphNodeTold(graph, index, kind, _, after):
            behind = f", after {', '.join(map(str, after))}" if after else ""
            return f"node {index} of graph {graph}: {kind}{behind}"
        case graph_events.GraphReplayed(graph, count):
            return f"graph {graph} was replayed {units.counted(count, 'time')}, and not probed"
        case graph_events.GraphReplay(graph, _, _, first, count):
            return f"a probed replay of graph {graph}: launches {first} to {first + max(count, 1) - 1}"
        case graph_events.GraphTimed(graph, _, probed, ns):
            how = "with" if probed else "without"
            return f"a replay of graph {graph} {how} probes took {units.duration(ns / 1e9)}"
        case graph_events.GraphTold(graph, what, reason):
            said = {"untwinned": "is not probed", "passed": "passed unprobed, though a replay was due",
                    "given back": "gave its probed copy back", "destroyed": "was destroyed"}[what]  # fmt: skip
            return f"graph {graph} {said}" + (f": {reason.text}" if reason else "")
        case _:
            return None


def _answer(status: int) -> str:
    return "success" if status == 0 else f"CUDA error {status}"


def _known(value: float | None) -> str:
    return units.NOT_MEASURED if value is None else f"{value:g}"


def _shape_words(shape: Shape) -> str:
    blocks, threads = shape[0] * shape[1] * shape[2], shape[3] * shape[4] * shape[5]
    return f"{units.counted(blocks, 'block')} of {units.counted(threads, 'thread')}"
