"""CUDA graphs on the simulated GPU: made by hand and by capture, changed, updated, and run."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import TYPE_CHECKING

import pytest

from tests.graphs.cuda_graph import (
    HOST_FUNCTION,
    CudaError,
    FillNode,
    Gpu,
    HostNode,
    Instantiation,
    KernelNode,
    MemoryNode,
    Model,
    UpdateResult,
    copy_of,
)

if TYPE_CHECKING:
    from tests.simgpu.driver import Driver

COUNT = 100


@pytest.fixture
def gpu(driver: Driver) -> Gpu:
    return Gpu(driver.library, context=False)


def chain(gpu: Gpu, graph: c_void_p, words: int, *steps: tuple[str, int]) -> list[c_void_p]:
    """Kernel nodes one after another."""
    nodes: list[c_void_p] = []
    for kernel, value in steps:
        nodes.append(gpu.add_kernel(graph, nodes[-1:], gpu.kernel_node(kernel, words, value, COUNT)))
    return nodes


def expected(*steps: tuple[str, int]) -> list[int]:
    model = Model(COUNT)
    for kernel, value in steps:
        model.apply(kernel, value)
    return model.values


STEPS = (("shift", 5), ("scale", 3), ("shift", 2))


def test_graph_runs_each_time_it_is_launched_and_outlives_its_graph(gpu: Gpu) -> None:
    words, graph = gpu.words(COUNT), gpu.graph()
    chain(gpu, graph, words, *STEPS)
    executable = gpu.instantiate(graph)
    gpu("cuGraphDestroy", graph)
    assert gpu.read(words, COUNT) == [0] * COUNT
    for _ in range(2):
        gpu("cuGraphLaunch", executable, None)
    assert gpu.read(words, COUNT) == expected(*STEPS, *STEPS)
    gpu("cuGraphExecDestroy", executable)
    with pytest.raises(CudaError):
        gpu("cuGraphLaunch", executable, None)


def test_nodes_run_after_those_that_they_wait_for(gpu: Gpu) -> None:
    words, graph = gpu.words(COUNT), gpu.graph()
    last = gpu.add_kernel(graph, [], gpu.kernel_node("scale", words, 3, COUNT))
    first = gpu.add_kernel(graph, [], gpu.kernel_node("shift", words, 5, COUNT))
    gpu("cuGraphAddDependencies", graph, byref(first), byref(last), c_size_t(1))
    gpu("cuGraphLaunch", gpu.instantiate(graph), None)
    assert gpu.read(words, COUNT) == expected(("shift", 5), ("scale", 3))


def test_graph_of_every_kind_of_node(gpu: Gpu) -> None:
    words, copied, graph, child = gpu.words(COUNT), gpu.words(COUNT), gpu.graph(), gpu.graph()
    seen: list[int] = []
    function = HOST_FUNCTION(lambda _: seen.append(1))
    chain(gpu, child, words, ("scale", 3))
    fill = gpu.add("MemsetNode", graph, [], byref(FillNode(words, 0, 7, 4, COUNT, 1)), None)
    empty = gpu.add("EmptyNode", graph, [fill])
    inner = gpu.add("ChildGraphNode", graph, [empty], child)
    kernel = gpu.add_kernel(graph, [inner], gpu.kernel_node("shift", words, 2, COUNT))
    copy = gpu.add("MemcpyNode", graph, [kernel], byref(copy_of(copied, words, 4 * COUNT)), None)
    gpu.add("HostNode", graph, [copy], byref(HostNode(function, None)))
    executable = gpu.instantiate(graph)
    for _ in range(2):
        gpu("cuGraphLaunch", executable, None)
    model = Model(COUNT)
    model.fill(7)
    model.apply("scale", 3)
    model.apply("shift", 2)
    assert gpu.read(copied, COUNT) == model.values
    assert len(seen) == 2
    assert [gpu.node_type(node) for node in gpu.nodes(graph)] == [2, 5, 4, 0, 1, 3]


def test_capture_across_forked_streams(gpu: Gpu) -> None:
    words, other = gpu.words(COUNT), gpu.words(COUNT)
    one, two = gpu.stream(), gpu.stream()
    gpu.begin_capture(one)
    gpu.launch("shift", words, 5, COUNT, one)
    gpu.order(one, two)
    gpu.launch("scale", words, 3, COUNT, two)
    gpu.launch("shift", other, 1, COUNT, one)
    gpu.order(two, one)
    gpu("cuMemcpyDtoDAsync_v2", c_uint64(other), c_uint64(words), c_size_t(4), one)
    gpu("cuMemsetD32Async", c_uint64(other + 4), 9, c_size_t(1), one)
    gpu("cuStreamIsCapturing", two, byref(status := c_int()))
    assert status.value == 1
    graph = gpu.end_capture(one)
    assert gpu.read(words, COUNT) == [0] * COUNT
    gpu("cuGraphGetEdges", graph, None, None, byref(edges := c_size_t()))
    assert (len(gpu.nodes(graph)), edges.value) == (5, 5)
    gpu("cuGraphLaunch", gpu.instantiate(graph), two)
    shifted = expected(("shift", 5), ("scale", 3))
    assert gpu.read(words, COUNT) == shifted
    assert gpu.read(other, 3) == [shifted[0], 9, 1]
    gpu("cuStreamIsCapturing", two, byref(status))
    assert status.value == 0


def test_capture_tells_its_graph_and_the_last_node(gpu: Gpu) -> None:
    words, stream = gpu.words(COUNT), gpu.stream()
    gpu.begin_capture(stream)
    gpu.launch("shift", words, 5, COUNT, stream)
    status, number, graph, nodes, count = c_int(), c_uint64(), c_void_p(), ctypes.POINTER(c_void_p)(), c_size_t()
    gpu("cuStreamGetCaptureInfo_v2", stream, byref(status), byref(number), byref(graph), byref(nodes), byref(count))
    assert (status.value, count.value) == (1, 1)
    last = nodes[0]  # the array is the driver's, until the capture ends
    assert gpu.end_capture(stream).value == graph.value
    assert [node.value for node in gpu.nodes(graph)] == [last]


@pytest.mark.parametrize(("broken", "code"), [(False, 904), (True, 901)])
def test_captures_that_fail(gpu: Gpu, *, broken: bool, code: int) -> None:
    words, one, two = gpu.words(COUNT), gpu.stream(), gpu.stream()
    gpu.begin_capture(one)
    gpu.order(one, two)
    gpu.launch("shift", words, 5, COUNT, two)
    if broken:
        with pytest.raises(CudaError, match="900"):
            gpu("cuStreamSynchronize", two)
    with pytest.raises(CudaError, match=f"{code}"):
        gpu.end_capture(one)
    gpu.launch("shift", words, 5, COUNT, two)
    assert gpu.read(words, 1) == [5]


def test_clone_has_nodes_of_its_own(gpu: Gpu) -> None:
    words, graph, child = gpu.words(COUNT), gpu.graph(), gpu.graph()
    chain(gpu, child, words, ("scale", 3))
    node = gpu.add_kernel(graph, [], gpu.kernel_node("shift", words, 5, COUNT))
    inner = gpu.add("ChildGraphNode", graph, [node], child)
    gpu("cuGraphClone", byref(clone := c_void_p()), graph)
    gpu("cuGraphNodeFindInClone", byref(variant := c_void_p()), node, clone)
    gpu("cuGraphNodeFindInClone", byref(twin_child := c_void_p()), inner, clone)
    gpu("cuGraphChildGraphNodeGetGraph", twin_child, byref(child_graph := c_void_p()))
    gpu("cuGraphKernelNodeSetParams_v2", variant, byref(gpu.kernel_node("shift", words, 1, COUNT)))
    gpu("cuGraphKernelNodeGetParams_v2", node, byref(parameters := KernelNode()))
    assert (parameters.function, parameters.grid[0]) == (gpu.kernels["shift"].value, 2)
    value = ctypes.cast(parameters.parameters, ctypes.POINTER(c_void_p))[1]
    assert value is not None
    assert c_uint.from_address(value).value == 5
    executable = gpu.instantiate(clone)
    gpu("cuGraphDestroy", graph)
    gpu("cuGraphLaunch", executable, None)
    assert gpu.read(words, COUNT) == expected(("shift", 1), ("scale", 3))
    assert len(gpu.nodes(child_graph)) == 1


def test_executables_are_changed_without_their_graph(gpu: Gpu) -> None:
    words, graph = gpu.words(COUNT), gpu.graph()
    nodes = chain(gpu, graph, words, *STEPS)
    executable = gpu.instantiate(graph)
    gpu("cuGraphExecKernelNodeSetParams_v2", executable, nodes[0], byref(gpu.kernel_node("scale", words, 2, COUNT)))
    gpu("cuGraphNodeSetEnabled", executable, nodes[1], 0)
    gpu("cuGraphLaunch", executable, None)
    assert gpu.read(words, COUNT) == expected(("scale", 2), ("shift", 2))
    gpu("cuGraphNodeGetEnabled", executable, nodes[1], byref(enabled := c_uint(7)))
    assert enabled.value == 0
    gpu("cuGraphLaunch", gpu.instantiate(graph), None)
    assert gpu.read(words, COUNT) == expected(("scale", 2), ("shift", 2), *STEPS)


def test_another_child_graph_of_the_same_topology(gpu: Gpu) -> None:
    words, graph, child, other, longer = gpu.words(COUNT), gpu.graph(), gpu.graph(), gpu.graph(), gpu.graph()
    chain(gpu, child, words, *STEPS)
    chain(gpu, other, words, ("scale", 2), ("shift", 4), ("scale", 5))
    chain(gpu, longer, words, *STEPS, ("shift", 1))
    node = gpu.add("ChildGraphNode", graph, [], child)
    executable = gpu.instantiate(graph)
    with pytest.raises(CudaError):
        gpu("cuGraphExecChildGraphNodeSetParams", executable, node, longer)
    gpu("cuGraphExecChildGraphNodeSetParams", executable, node, other)
    gpu("cuGraphLaunch", executable, None)
    assert gpu.read(words, COUNT) == expected(("scale", 2), ("shift", 4), ("scale", 5))


def test_update_takes_over_parameters_and_refuses_another_topology(gpu: Gpu) -> None:
    words, graph, other, longer = gpu.words(COUNT), gpu.graph(), gpu.graph(), gpu.graph()
    chain(gpu, graph, words, *STEPS)
    chain(gpu, other, words, ("scale", 2), ("shift", 4), ("scale", 5))
    chain(gpu, longer, words, *STEPS, ("shift", 1))
    executable = gpu.instantiate(graph)
    with pytest.raises(CudaError, match="910"):
        gpu("cuGraphExecUpdate_v2", executable, longer, byref(result := UpdateResult()))
    assert result.result == 2
    gpu("cuGraphExecUpdate_v2", executable, other, byref(result))
    gpu("cuGraphLaunch", executable, None)
    assert (result.result, gpu.read(words, COUNT)) == (0, expected(("scale", 2), ("shift", 4), ("scale", 5)))


def test_graphs_with_memory_nodes_are_there_once(gpu: Gpu) -> None:
    graph = gpu.graph()
    gpu.add("MemAllocNode", graph, [], byref(MemoryNode(1, 0, 1, 0, bytes=256)))
    with pytest.raises(CudaError, match="801"):
        gpu("cuGraphClone", byref(c_void_p()), graph)
    gpu("cuGraphInstantiateWithParams", byref(c_void_p()), graph, byref(instantiation := Instantiation(flags=8)))
    assert instantiation.result == 0
    with pytest.raises(CudaError, match="801"):
        gpu.instantiate(graph)
