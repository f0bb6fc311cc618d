"""CUDA graphs under the tool, on the simulated GPU: the program computes the same, and replays are seen and probed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import tests.graphs.programs
from tests.turns import due_pairs
from tui_probe.pages.graph_page import stamped_node_runs, times_by_graph
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Trace

from .conftest import Tool

PROGRAMS = Path(tests.graphs.programs.__path__[0])
BEGIN = """
from ctypes import *
from tests.graphs.cuda_graph import *
gpu = Gpu()
memory = gpu.words(100)
def chain(*steps):
    graph, nodes = gpu.graph(), []
    for kernel, value in steps:
        nodes.append(gpu.add_kernel(graph, nodes[-1:], gpu.kernel_node(kernel, memory, value, 100)))
    return graph, nodes
def replay(executable, times=1, stream=None):
    for _ in range(times):
        gpu("cuGraphLaunch", executable, stream)
STEPS = (("shift", 5), ("scale", 3), ("shift", 2))
"""


def program(name: str, *words: str) -> list[str]:
    return [sys.executable, str(PROGRAMS / f"{name}.py"), *words]


def compare(tool: Tool, script: str | list[str], *options: str) -> Trace:
    """Run a program unprofiled and under the tool, which must not change what it prints; the trace."""
    command = script if isinstance(script, list) else [sys.executable, "-c", BEGIN + script]
    unprofiled = tool.unprofiled(*command)
    assert unprofiled.returncode == 0, unprofiled.stderr
    run, trace = tool.run(command, *options)
    assert (run.returncode, run.stdout) == (0, unprofiled.stdout), run.stderr
    return open_trace(trace)


def calls(trace: Trace) -> dict[str, tuple[int, int]]:
    """Launches of each kernel, and how many of them were probed."""
    return {kernel.name: (kernel.launches, kernel.launches_probed) for kernel in trace.kernels}


def lines(trace: Trace, pattern: str) -> list[str]:
    return re.findall(pattern, (trace.directory / "event.log").read_text(), re.MULTILINE)


def test_captured_kernels_are_probed_in_replays(tool: Tool) -> None:
    trace = compare(tool, program("captured", "12", "4"), "--launches", "all")
    assert calls(trace) == {"scale": (1 + 24, 25), "shift": (36, 36)}
    (graph,) = trace.graphs
    assert (graph.replays, graph.replays_probed, graph.is_destroyed) == (12, 12, True)
    assert [node.dependencies for node in graph.nodes] == [(), (0,), (1,), (2,), ()]
    assert [node.captured for node in graph.nodes] == [1, 2, 3, 4, 5]
    assert [node.probed_count for node in times_by_graph(trace)[0].nodes] == [12] * 5
    numbered = {launch.number: launch for launch in trace.launches if launch.probed}
    places = {number: trace.graphs.position_of(number) for number in numbered}
    for number, place in places.items():
        if place is not None:
            assert graph.nodes[place.node].kernel == numbered[number].kernel
    assert len({place for place in places.values() if place is not None}) == 60
    assert all(len(kernel.results) == kernel.launches_probed for kernel in trace.kernels)


def test_ever_fewer_replays_are_probed_and_all_are_counted(tool: Tool) -> None:
    trace = compare(tool, program("captured", "200", "2"))
    (graph,) = trace.graphs
    assert graph.replays == 200
    assert 5 < graph.replays_probed < 60
    originals = [time for time in graph.times if not time.is_probed]
    assert 5 < len(originals) < 100
    assert sum(time.weight for time in originals) <= 200 - graph.replays_probed
    assert [kernel.launches for kernel in trace.kernels] == [1 + 200, 400]
    assert trace.state.launches == 601


def test_launches_that_are_named_are_those_of_nodes(tool: Tool) -> None:
    trace = compare(tool, "graph, _ = chain(*STEPS)\nreplay(gpu.instantiate(graph), 4)", "--launches", "2-4")
    assert calls(trace) == {"shift": (8, 3), "scale": (4, 2)}
    (graph,) = trace.graphs
    assert [(replay.replay, dict(replay.probed_counts)) for replay in graph.logged_replays] == [
        (1, {0: 2}), (2, {0: 1, 1: 1}), (3, {1: 1}),
    ]  # fmt: skip


TIMED = ["env", "TUI_PROBE_GRAPHS=timed"]


def test_kernels_are_timed_one_by_one(tool: Tool) -> None:
    """Of each kernel of a graph, in three replays without a probe, and in those of the probed copy."""
    trace = compare(tool, [*TIMED, *program("captured", "200", "4")])
    (graph,) = trace.graphs
    times = [
        (int(launch), int(kernel), kind)
        for launch, kernel, kind in lines(trace, r"^\[time\] launch (\d+) kernel (\d+) key \d+ (\w+) ns [1-9]\d* for")
    ]
    places = [(trace.graphs.position_of(launch), kernel, kind) for launch, kernel, kind in times]
    probed = [(place, kernel) for place, kernel, kind in places if place is not None and kind == "probed"]
    assert len(probed) >= len(graph.kernels)
    assert all(graph.nodes[place.node].kernel == kernel for place, kernel in probed)
    originals = [kernel for place, kernel, kind in places if place is None and kind == "original"]
    assert len(originals) == 3 * len(graph.kernels)


def test_a_graph_whose_kernels_cannot_be_timed_is_probed(tool: Tool) -> None:
    """In a child graph there are no events of tui-probe."""
    trace = compare(tool, [*TIMED, *program("each_node")], "--launches", "all")
    assert sum(graph.replays_probed for graph in trace.graphs) > 5


OPTIONS = {"all": ["--launches", "all"], "auto": [], "little memory": ["--max-probe-memory", "200k"]}


@pytest.mark.parametrize(("before", "way"), due_pairs([[], TIMED], OPTIONS))
def test_random_walks_leave_the_same_memory(tool: Tool, way: str, before: list[str]) -> None:
    probes = ["-p", "block_sched", "-p", "gmem_bytes"]
    trace = compare(tool, [*before, *program("walk", "77", "12")], *probes, *OPTIONS[way])
    assert sum(graph.replays_probed for graph in trace.graphs) > 10
    assert trace.state.unknown_lines == 0
    assert trace.state.launches == sum(kernel.launches for kernel in trace.kernels)


def test_windows_move_until_every_node_is_recorded(tool: Tool) -> None:
    steps = "graph, _ = chain(*[('shift', i) for i in range(40)])\nreplay(gpu.instantiate(graph), 30)\n"
    trace = compare(
        tool, steps + "print(gpu.read(memory, 5))", "-p", "dmat", "--max-probe-memory", "100k", "--launches", "all"
    )
    (graph_times,) = times_by_graph(trace).values()
    assert all(node.probed_count for node in graph_times.nodes)
    probed_launches = [sum(count for _, count in replay.probed_counts) for replay in graph_times.graph.logged_replays]
    assert max(probed_launches) < 40


CHANGES = """
graph, nodes = chain(*STEPS)
executable = gpu.instantiate(graph)
replay(executable, 2)
gpu("cuGraphExecKernelNodeSetParams_v2", executable, nodes[0], byref(gpu.kernel_node("scale", memory, 7, 100)))
replay(executable, 2)
gpu("cuGraphNodeSetEnabled", executable, nodes[1], 0)
replay(executable, 2)
print(gpu.read(memory, 100))
"""


def test_changes_of_an_executable_are_its_twins_too(tool: Tool) -> None:
    trace = compare(tool, CHANGES, "--launches", "all")
    (graph,) = trace.graphs
    assert (graph.replays_probed, graph.versions) == (6, 2)
    assert [node.probed_count for node in times_by_graph(trace)[0].nodes] == [6, 4, 6]


UNPREPARED = """
gpu.launch("scale", memory, 3, 100)
graph, _ = chain(*STEPS)
replay(gpu.instantiate(graph), 4)
print(gpu.read(memory, 100))
"""


def test_a_graph_with_a_kernel_that_the_trace_has_no_room_for(tool: Tool) -> None:
    trace = compare(tool, UNPREPARED, "--launches", "all", "--max-trace-bytes", "100k")
    assert {kernel.name: kernel.reason_code for kernel in trace.kernels} == {"scale": None, "shift": "trace-full"}
    assert calls(trace)["shift"] == (8, 0)
    assert calls(trace)["scale"][1] > 0


UPDATES = """
graph, _ = chain(*STEPS)
executable = gpu.instantiate(graph)
for i in range(6):
    other, _ = chain(("shift", i), ("scale", i + 1), ("shift", 9))
    gpu("cuGraphExecUpdate_v2", executable, other, byref(UpdateResult()))
    gpu("cuGraphDestroy", other)
    replay(executable)
longer, _ = chain(*STEPS, ("shift", 1))
try:
    gpu("cuGraphExecUpdate_v2", executable, longer, byref(UpdateResult()))
except CudaError as error:
    print(error)
replay(executable)
print(gpu.read(memory, 100))
"""


def test_a_graph_that_is_updated_before_each_replay(tool: Tool) -> None:
    trace = compare(tool, UPDATES, "--launches", "all")
    (graph,) = trace.graphs
    assert (graph.replays, graph.replays_probed) == (7, 7)


def test_updates_between_samples_clone_nothing(tool: Tool) -> None:
    trace = compare(tool, UPDATES.replace("range(6)", "range(60)"))
    (graph,) = trace.graphs
    assert graph.replays == 61
    assert graph.versions < 45
    assert 5 < graph.replays_probed < graph.versions


MEMORY = """
graph, _ = chain(*STEPS)
gpu.add("MemAllocNode", graph, [], byref(MemoryNode(1, 0, 1, 0, bytes=256)))
executable = gpu.instantiate(graph)
replay(executable, 3)
print(gpu.read(memory, 100))
"""


def test_a_graph_that_cannot_be_twice_is_seen_and_says_why(tool: Tool) -> None:
    trace = compare(tool, MEMORY, "--launches", "all")
    (graph,) = trace.graphs
    assert (graph.replays, graph.replays_probed) == (3, 0)
    assert graph.reason is not None
    assert graph.reason.code == "graph-node-once"
    assert calls(trace) == {"shift": (6, 0), "scale": (3, 0)}
    assert {kernel.reason_code for kernel in trace.kernels} == {"graph-not-probed"}


STREAMS = """
graph, _ = chain(*STEPS)
executable = gpu.instantiate(graph)
one, two = gpu.stream(), gpu.stream()
for stream in (one, one, two, one, two, two):
    replay(executable, 1, stream)
print(gpu.read(memory, 100))
"""


def test_several_streams(tool: Tool) -> None:
    trace = compare(tool, STREAMS, "--launches", "all")
    (graph,) = trace.graphs
    assert graph.replays_probed == 6, "one variant after another needs no event"
    sampled = compare(tool, STREAMS.replace("two, two)", "two, two) * 20"))
    assert len(lines(sampled, "code graph-other-stream")) >= 1
    assert [graph.replays for graph in sampled.graphs] == [6 * 20]


VARIANTS = """
executables = []
for i in range(12):
    graph, _ = chain(("shift", i), ("scale", 2))
    executables.append(gpu.instantiate(graph))
for executable in executables * 2:
    replay(executable, 2)
for executable in executables[::2]:
    gpu("cuGraphExecDestroy", executable)
print(gpu.read(memory, 100))
"""


def test_more_graphs_than_twins(tool: Tool) -> None:
    trace = compare(tool, VARIANTS, "--launches", "all")
    assert [(graph.replays, graph.replays_probed) for graph in trace.graphs] == [(4, 4)] * 12
    assert [graph.is_destroyed for graph in trace.graphs] == [True, False] * 6


FULL = """
import os
graph, _ = chain(*STEPS)
executable = gpu.instantiate(graph)
replay(executable)
free, total = c_size_t(), c_size_t()
gpu("cuMemGetInfo_v2", byref(free), byref(total))
try:
    gpu.words(total.value)
except CudaError as error:
    print(error.code)
replay(executable)
print(gpu.read(memory, 100))
"""


def test_twins_are_given_back_when_the_program_gets_no_memory(tool: Tool) -> None:
    trace = compare(tool, FULL, "--launches", "all")
    assert len(lines(trace, r"^\[graph\] 0 twin given back$")) == 1
    assert [graph.replays_probed for graph in trace.graphs] == [2], "it is made again"


QUERIES = """
graph, nodes = chain(*STEPS)
executable = gpu.instantiate(graph, 8)
replay(executable, 3)
print(len(gpu.nodes(graph)), [node.value in {original.value for original in nodes} for node in gpu.nodes(graph)])
for node in nodes:
    gpu("cuGraphKernelNodeGetParams_v2", node, byref(parameters := KernelNode()))
    value = cast(parameters.parameters, POINTER(c_void_p))[1]
    known = {kernel.value for kernel in gpu.kernels.values()}
    print(parameters.function in known, parameters.grid[0], c_uint.from_address(value).value)
    gpu("cuGraphNodeGetEnabled", executable, node, byref(enabled := c_uint()))
    print(enabled.value)
gpu("cuGraphExecGetFlags", executable, byref(flags := c_uint64()))
print(flags.value)
gpu("cuGraphDestroy", graph)
gpu("cuGraphExecDestroy", executable)
try:
    replay(executable)
except CudaError as error:
    print(error.code)
"""


def test_graph_queries_are_answered_as_without_hook(tool: Tool) -> None:
    compare(tool, QUERIES, "--launches", "all")


def test_every_kind_of_node_and_change(tool: Tool) -> None:
    trace = compare(tool, program("each_node"), "--launches", "all", "-p", "block_sched", "-p", "gmem_bytes")
    assert {node.kind for graph in trace.graphs for node in graph.nodes} == {
        "kernel", "copy", "fill", "host", "child", "empty", "event-wait", "event-record", "memory-alloc",
        "memory-free",
    }  # fmt: skip
    assert {graph.reason.code for graph in trace.graphs if graph.reason} == {"graph-node-once"}


LIBRARY = """
library, shift = c_void_p(), c_void_p()
gpu("cuLibraryLoadData", byref(library), KERNELS, None, None, 0, None, None, 0)
gpu("cuLibraryGetKernel", byref(shift), library, b"shift")
gpu.kernels["shift"] = shift
stream = gpu.stream()
gpu.begin_capture(stream)
for value in (5, 6):
    gpu.launch("shift", memory, value, 100, stream)
executable = gpu.instantiate(gpu.end_capture(stream))
replay(executable, 3)
print(gpu.read(memory, 9))
"""


def test_kernels_of_libraries_are_known_by_their_functions(tool: Tool) -> None:
    trace = compare(tool, LIBRARY, "--launches", "all")
    (kernel,) = trace.kernels
    assert (kernel.name, kernel.status, kernel.launches, kernel.launches_probed) == ("shift", "probed", 6, 6)


CHILD = """
child, _ = chain(("scale", 3), ("shift", 1))
graph = gpu.graph()
first = gpu.add_kernel(graph, [], gpu.kernel_node("shift", memory, 5, 100))
inner = gpu.add("ChildGraphNode", graph, [first], child)
gpu.add("MemsetNode", graph, [inner], byref(FillNode(memory, 0, 7, 4, 3, 1)), None)
executable = gpu.instantiate(graph)
replay(executable, 2)
stream = gpu.stream()
gpu.begin_capture(stream)
replay(executable, 1, stream)
again = gpu.instantiate(gpu.end_capture(stream))
replay(again, 2)
print(gpu.read(memory, 100))
"""


def test_child_graphs_and_replays_that_are_captured(tool: Tool) -> None:
    trace = compare(tool, CHILD, "--launches", "all")
    first, second = trace.graphs
    assert [node.kind for node in first.nodes] == ["kernel", "child", "kernel", "kernel", "fill"]
    assert [node.parent for node in first.nodes] == [None, None, 1, 1, None]
    assert (first.replays, second.replays) == (2, 2)
    assert second.nodes[0].kind == "child"
    assert calls(trace) == {"shift": (8, 8), "scale": (4, 4)}


EXCHANGED = """
child, _ = chain(("scale", 3), ("shift", 1))
graph = gpu.graph()
inner = gpu.add("ChildGraphNode", graph, [], child)
executable = gpu.instantiate(graph)
replay(executable, 2)
for i in range(4):
    other, _ = chain(("scale" if i % 2 else "shift", i), ("shift", 5))
    gpu("cuGraphExecChildGraphNodeSetParams", executable, inner, other)
    gpu("cuGraphDestroy", other)
    replay(executable, 2)
print(gpu.read(memory, 100))
"""


def test_child_graphs_that_are_exchanged(tool: Tool) -> None:
    trace = compare(tool, EXCHANGED, "--launches", "all")
    (graph,) = trace.graphs
    assert (graph.replays_probed, graph.versions) == (10, 5)
    assert calls(trace) == {"scale": (6, 6), "shift": (14, 14)}


def test_replays_run_unprobed_while_recording_is_off(tool: Tool) -> None:
    script = """
graph, _ = chain(*STEPS)
executable = gpu.instantiate(graph)
replay(executable, 2)
gpu("cuProfilerStart")
replay(executable, 2)
gpu("cuProfilerStop")
replay(executable, 2)
"""
    trace = compare(tool, script, "--capture-range", "--launches", "all")
    (graph,) = trace.graphs
    assert [replay.replay for replay in graph.logged_replays] == [2, 3]
    assert graph.replays == 6


@pytest.mark.parametrize("option", ["--benchmark", "--memusage"])
def test_options_that_keep_graphs_unprobed(tool: Tool, option: str) -> None:
    script = "graph, _ = chain(*STEPS)\nreplay(gpu.instantiate(graph), 2)\nprint(gpu.read(memory, 9))"
    trace = compare(tool, script, option)
    (graph,) = trace.graphs
    assert graph.reason is not None
    assert (graph.reason.code, graph.replays_probed) == ("graph-left-alone", 0)


def test_a_context_that_is_destroyed_takes_its_twins_along(tool: Tool) -> None:
    script = """
gpu("cuCtxCreate_v2", byref(context := c_void_p()), 0, 0)
inside = Gpu(gpu.library, context=False)
memory = inside.words(100)
gpu.kernels = inside.kernels
graph, _ = chain(*STEPS)
executable = gpu.instantiate(graph)
replay(executable, 2)
print(gpu.read(memory, 9))
gpu("cuCtxDestroy_v2", context)
"""
    trace = compare(tool, script, "--launches", "all")
    assert len(lines(trace, "code graph-context-gone")) == 1


LOOKED_UP = """
def look_up(name, *arguments, version=12000):
    function = c_void_p()
    gpu("cuGetProcAddress_v2", name.encode(), byref(function), version, c_uint64(0), None)
    if CFUNCTYPE(c_int, *map(type, arguments))(function.value)(*arguments):
        raise SystemExit(name)
graph, nodes = chain(*STEPS)
for name, version in (("cuGraphInstantiate", 12000), ("cuGraphInstantiateWithFlags", 11040)):
    executable = c_void_p()
    look_up(name, pointer(executable), graph, c_ulonglong(8), version=version)
    other = gpu.kernel_node("shift", memory, 9, 100)
    look_up("cuGraphExecKernelNodeSetParams", executable, nodes[0], pointer(other))
    look_up("cuGraphLaunch", executable, c_void_p())
    print(gpu.read(memory, 9))
older = c_void_p()
look_up("cuGraphInstantiate", pointer(older), graph, c_void_p(), c_void_p(), c_size_t(0), version=11000)
look_up("cuGraphExecUpdate", older, graph, pointer(UpdateResult()))
look_up("cuGraphLaunch", older, c_void_p())
print(gpu.read(memory, 9))
look_up("cuGraphExecDestroy", older)
"""


def test_functions_that_are_looked_up_are_those_of_the_version_that_was_asked_for(tool: Tool) -> None:
    trace = compare(tool, LOOKED_UP, "--launches", "all")
    assert [(graph.flags, graph.replays_probed) for graph in trace.graphs] == [(8, 1), (8, 1), (0, 1)]
    assert [graph.is_destroyed for graph in trace.graphs] == [False, False, True]


def test_a_node_of_a_replay_is_opened_by_its_launch_number(tool: Tool) -> None:
    command = program("captured", "4", "4")
    run, trace = tool.run(command, "--launches", "all")
    assert run.returncode == 0
    shown = tool("show", "summary", f"{trace}:scale@8", "--format", "json")
    assert shown.returncode == 0, shown.stderr
    other = tool("compare", f"{trace}:scale@8", f"{trace}:scale@13")
    assert other.returncode == 0, other.stderr


@pytest.mark.parametrize("probe", ["warp_progress", "program_progress", "dmat"])
def test_nodes_begin_where_the_probe_read_the_timer(tool: Tool, probe: str) -> None:
    trace = compare(tool, program("captured", "4", "4"), "--launches", "all", "-p", probe)
    (graph,) = trace.graphs
    assert stamped_node_runs(trace, graph) == {}, "what is simulated is not time"
    trace.state.simulated = False
    nodes = stamped_node_runs(trace, graph)
    assert set(nodes) == {0, 1, 2, 3, 4}
    begun = [nodes[index].begin for index in range(4)]
    assert begun == sorted(begun), "one waits for the other"
    assert begun[0] == 0
    assert all(node.end is None or node.end >= node.begin for node in nodes.values())
