"""Graphs of every kind of node, changed and updated between replays: prints what the memory holds after each part.

usage: each_node.py [PARTS...]
"""

from __future__ import annotations

import sys
from ctypes import byref, c_uint64, c_void_p

from tests.graphs.cuda_graph import (
    HOST_FUNCTION,
    CudaError,
    FillNode,
    Gpu,
    HostNode,
    MemoryNode,
    UpdateResult,
    copy_of,
)

WORDS = 300


class Parts:
    """Each method is a part, and returns words of memory to be printed."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.words, self.copied = gpu.words(WORDS), gpu.words(WORDS)
        self.calls: list[int] = []
        self.function = HOST_FUNCTION(lambda _: self.calls.append(1))

    def context(self) -> c_void_p:
        self.gpu("cuCtxGetCurrent", byref(context := c_void_p()))
        return context

    def chain(self, *steps: tuple[str, int]) -> tuple[c_void_p, list[c_void_p]]:
        graph, nodes = self.gpu.graph(), list[c_void_p]()
        for kernel, value in steps:
            node = self.gpu.kernel_node(kernel, self.words, value, WORDS)
            nodes.append(self.gpu.add_kernel(graph, nodes[-1:], node))
        return graph, nodes

    def replay(self, executable: c_void_p, times: int = 3, stream: c_void_p | None = None) -> None:
        for _ in range(times):
            self.gpu("cuGraphLaunch", executable, stream)

    def kinds(self) -> list[int]:
        """Kernel, copy, fill, host function, child graph, empty node, events recorded and waited for."""
        gpu, event = self.gpu, self.gpu.event()
        child, _ = self.chain(("scale", 3), ("shift", 1))
        graph = gpu.graph()
        fill = gpu.add("MemsetNode", graph, [], byref(FillNode(self.words, 0, 7, 4, WORDS, 1)), self.context())
        empty = gpu.add("EmptyNode", graph, [fill])
        inner = gpu.add("ChildGraphNode", graph, [empty], child)
        record = gpu.add("EventRecordNode", graph, [inner], event)
        kernel = gpu.add_kernel(graph, [record], gpu.kernel_node("shift", self.words, 2, WORDS))
        wait = gpu.add("EventWaitNode", graph, [kernel], event)
        node = copy_of(self.copied, self.words, 4 * WORDS)
        copy = gpu.add("MemcpyNode", graph, [wait], byref(node), self.context())
        gpu.add("HostNode", graph, [copy], byref(HostNode(self.function, None)))
        executable = gpu.instantiate(graph)
        gpu("cuGraphDestroy", graph)
        self.replay(executable)
        copied = gpu.read(self.copied, WORDS)
        gpu("cuGraphExecDestroy", executable)
        return [len(self.calls), *copied]

    def memory(self) -> list[int]:
        """A graph that allocates, which cannot be copied."""
        graph, nodes = self.chain(("shift", 1), ("scale", 2))
        memory = MemoryNode(1, 0, 1, 0, bytes=256)
        allocated = self.gpu.add("MemAllocNode", graph, nodes[-1:], byref(memory))
        self.gpu.add("MemFreeNode", graph, [allocated], c_uint64(memory.address))
        executable = self.gpu.instantiate(graph)
        self.replay(executable)
        return self.gpu.read(self.words, WORDS)

    def changed(self) -> list[int]:
        """Parameters set in the executable, and nodes disabled, between replays."""
        gpu = self.gpu
        graph, nodes = self.chain(("shift", 5), ("scale", 3), ("shift", 2))
        executable = gpu.instantiate(graph)
        for value in range(6):
            node = gpu.kernel_node("scale" if value % 2 else "shift", self.words, value + 2, WORDS)
            gpu("cuGraphExecKernelNodeSetParams_v2", executable, nodes[0], byref(node))
            gpu("cuGraphNodeSetEnabled", executable, nodes[1], value % 3 != 0)
            self.replay(executable, 2)
        return gpu.read(self.words, WORDS)

    def updated(self) -> list[int]:
        """Updated before each replay with other parameters, then with another topology, which the driver refuses."""
        gpu = self.gpu
        graph, _ = self.chain(("shift", 5), ("scale", 3))
        executable = gpu.instantiate(graph)
        for value in range(8):
            other, _ = self.chain(("shift", value), ("scale" if value % 2 else "shift", value + 1))
            gpu("cuGraphExecUpdate_v2", executable, other, byref(UpdateResult()))
            gpu("cuGraphDestroy", other)
            self.replay(executable, 1)
        longer, _ = self.chain(("shift", 5), ("scale", 3), ("shift", 1))
        try:
            gpu("cuGraphExecUpdate_v2", executable, longer, byref(UpdateResult()))
        except CudaError as error:
            print("refused", error.code)
            gpu("cuGraphExecDestroy", executable)
            executable = gpu.instantiate(longer)
        self.replay(executable, 2)
        return gpu.read(self.words, WORDS)

    def child(self, value: int) -> c_void_p:
        """A fill, a kernel, a copy and a host function, one behind the other."""
        gpu, graph = self.gpu, self.gpu.graph()
        fill = gpu.add("MemsetNode", graph, [], byref(FillNode(self.words, 0, value, 4, 9, 1)), self.context())
        kernel = gpu.add_kernel(graph, [fill], gpu.kernel_node("scale", self.words, value, WORDS))
        node = copy_of(self.copied + 4 * value, self.words, 4 * 50)
        copy = gpu.add("MemcpyNode", graph, [kernel], byref(node), self.context())
        gpu.add("HostNode", graph, [copy], byref(HostNode(self.function, None)))
        return graph

    def children(self) -> list[int]:
        """A child graph that is set anew in the executable, between replays."""
        gpu, graph = self.gpu, self.gpu.graph()
        first = gpu.add_kernel(graph, [], gpu.kernel_node("shift", self.words, 3, WORDS))
        inner = gpu.add("ChildGraphNode", graph, [first], self.child(2))
        executable = gpu.instantiate(graph)
        for value in range(5):
            self.replay(executable, 2)
            gpu("cuGraphExecChildGraphNodeSetParams", executable, inner, self.child(value + 3))
        self.replay(executable, 2)
        return [len(self.calls), *gpu.read(self.copied, WORDS), *gpu.read(self.words, WORDS)]

    def streams(self) -> list[int]:
        """One executable in several streams without any event between them: the driver keeps its replays in order."""
        graph, _ = self.chain(("shift", 5), ("scale", 3))
        executable = self.gpu.instantiate(graph)
        streams = [self.gpu.stream() for _ in range(3)]
        for i in range(30):
            self.replay(executable, 1 + i % 2, streams[i * i % 3])
        return self.gpu.read(self.words, WORDS)


def main() -> int:
    parts = Parts(Gpu())
    for name in sys.argv[1:] or ("kinds", "memory", "changed", "updated", "children", "streams"):
        result = getattr(parts, name)()
        print(name, sum(result) % 1000003, result[:3])
    return 0


if __name__ == "__main__":
    sys.exit(main())
