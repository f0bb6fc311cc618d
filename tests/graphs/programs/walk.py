"""Random walks over the graph interface, compared with a model of what the memory must hold.

usage: walk.py SEED PROGRAMS [STEPS]

Each program makes graphs by hand and by capture, clones, instantiates, changes, updates, replays and destroys them in
an order that its seed decides. Prints a checksum of all memory, or where the first program went wrong.
"""

from __future__ import annotations

import random
import sys
from ctypes import byref, c_int, c_size_t, c_uint64, c_ulonglong, c_void_p
from dataclasses import dataclass, field, replace

from tests.graphs.cuda_graph import (
    COUNT,
    CudaError,
    FillNode,
    Gpu,
    Instantiation,
    UpdateResult,
    copy_of,
)

WORDS, BUFFERS = 40, 3


@dataclass
class Step:
    """Work of a node: ``kind`` scale, shift, fill, copy, child or empty, on buffer ``at``."""

    kind: str
    at: int = 0
    value: int = 0
    source: int = 0
    inner: list[Step] = field(default_factory=list)
    node: c_void_p | None = None
    enabled: bool = True

    @property
    def buffers(self) -> set[int]:
        inner = {buffer for step in self.inner for buffer in step.buffers}
        return {"copy": {self.at, self.source}, "child": inner, "empty": set[int]()}.get(self.kind, {self.at})


def copied(steps: list[Step]) -> list[Step]:
    """The same steps, of no node."""
    return [replace(step, inner=copied(step.inner), node=None) for step in steps]


@dataclass
class MadeGraph:
    handle: c_void_p
    steps: list[Step]


@dataclass
class MadeExecutable:
    handle: c_void_p
    steps: list[Step]
    graph: MadeGraph | None
    """Graph whose nodes name those of the executable; None once it is destroyed, or after an update."""


class Walk:
    """One program."""

    def __init__(self, gpu: Gpu, seed: int) -> None:
        self.gpu, self.random = gpu, random.Random(seed)
        self.memory = [gpu.words(WORDS) for _ in range(BUFFERS)]
        self.model = [[0] * WORDS for _ in range(BUFFERS)]
        self.streams = [gpu.stream() for _ in range(3)]
        self.last = self.streams[0]
        self.graphs: list[MadeGraph] = []
        self.executables: list[MadeExecutable] = []

    # -- the model

    def apply(self, steps: list[Step]) -> None:
        for step in steps:
            memory = self.model[step.at]
            if not step.enabled or step.kind == "empty":
                continue
            if step.kind == "child":
                self.apply(step.inner)
            elif step.kind == "scale":
                memory[:] = [(word * step.value + i) % COUNT for i, word in enumerate(memory)]
            elif step.kind == "shift":
                memory[:] = [(word + step.value) % COUNT for word in memory]
            elif step.kind == "fill":
                memory[:] = [step.value] * WORDS
            else:
                memory[:] = list(self.model[step.source])

    # -- what steps are on the GPU

    def random_step(self, depth: int = 0) -> Step:
        kind = self.random.choice(["scale", "shift", "shift", "fill", "copy", "empty", "child"][: 6 + (depth == 0)])
        at = self.random.randrange(BUFFERS)
        source = (at + 1 + self.random.randrange(BUFFERS - 1)) % BUFFERS
        inner = [self.random_step(1) for _ in range(self.random.randint(1, 3))] if kind == "child" else []
        return Step(kind, at, self.random.randint(1, 1000), source, inner)

    def vary(self, step: Step) -> Step:
        """The same kind of step with other parameters."""
        kind = self.random.choice(["scale", "shift"]) if step.kind in ("scale", "shift") else step.kind
        inner = [self.vary(inner_step) for inner_step in step.inner]
        return Step(kind, step.at, self.random.randint(1, 1000), step.source, inner)

    def add(self, graph: c_void_p, steps: list[Step]) -> None:
        """Nodes for steps, each after the last ones that used the same memory."""
        last: dict[int, c_void_p] = {}
        for step in steps:
            before = list({last[buffer].value: last[buffer] for buffer in step.buffers if buffer in last}.values())
            step.node = self.add_node(graph, before, step)
            last |= dict.fromkeys(step.buffers, step.node)

    def add_node(self, graph: c_void_p, before: list[c_void_p], step: Step) -> c_void_p:
        gpu, memory = self.gpu, self.memory
        if step.kind == "empty":
            return gpu.add("EmptyNode", graph, before)
        if step.kind == "child":
            child = gpu.graph()
            self.add(child, step.inner)
            node = gpu.add("ChildGraphNode", graph, before, child)
            gpu("cuGraphDestroy", child)
            return node
        if step.kind == "fill":
            return gpu.add("MemsetNode", graph, before, byref(self.fill(step)), self.context())
        if step.kind == "copy":
            return gpu.add("MemcpyNode", graph, before, byref(self.copy(step)), self.context())
        return gpu.add_kernel(graph, before, gpu.kernel_node(step.kind, memory[step.at], step.value, WORDS))

    def fill(self, step: Step) -> FillNode:
        return FillNode(self.memory[step.at], 0, step.value, 4, WORDS, 1)

    def copy(self, step: Step) -> object:
        return copy_of(self.memory[step.at], self.memory[step.source], 4 * WORDS)

    def context(self) -> c_void_p:
        self.gpu("cuCtxGetCurrent", byref(context := c_void_p()))
        return context

    def submit(self, step: Step, stream: c_void_p) -> None:
        """A step on a stream, in capture or not."""
        gpu, to = self.gpu, c_uint64(self.memory[step.at])
        if step.kind == "fill":
            gpu("cuMemsetD32Async", to, step.value, c_size_t(WORDS), stream)
        elif step.kind == "copy":
            gpu("cuMemcpyDtoDAsync_v2", to, c_uint64(self.memory[step.source]), c_size_t(4 * WORDS), stream)
        elif step.kind in ("scale", "shift"):
            gpu.launch(step.kind, self.memory[step.at], step.value, WORDS, stream)

    def use(self, stream: c_void_p) -> None:
        """Make ``stream`` the stream of the next work, behind all that was before."""
        if stream is not self.last:
            self.gpu.order(self.last, stream)
        self.last = stream

    # -- moves

    def make(self) -> None:
        steps = [self.random_step() for _ in range(self.random.randint(1, 7))]
        graph = self.gpu.graph()
        self.add(graph, steps)
        self.graphs.append(MadeGraph(graph, steps))

    def capture(self) -> None:
        """Some steps on one stream, then some on another, then on the first again."""
        one, two = self.random.sample(self.streams, 2)
        steps = [self.random_step(1) for _ in range(self.random.randint(1, 6))]
        self.gpu("cuCtxSynchronize")
        self.gpu.begin_capture(one, self.random.choice([0, 1, 2]))
        for i, step in enumerate(steps):
            fork = i % 3 == 1
            if fork:
                self.gpu.order(one, two)
            self.submit(step, two if fork else one)
            if fork:
                self.gpu.order(two, one)
        self.graphs.append(MadeGraph(self.gpu.end_capture(one), [step for step in steps if step.kind != "empty"]))

    def clone(self) -> None:
        if self.graphs:
            graph = self.random.choice(self.graphs)
            self.gpu("cuGraphClone", byref(handle := c_void_p()), graph.handle)
            self.graphs.append(MadeGraph(handle, copied(graph.steps)))

    def instantiate(self) -> None:
        if not self.graphs:
            return
        gpu, graph = self.gpu, self.random.choice(self.graphs)
        handle, form = c_void_p(), self.random.randrange(3)
        if form == 0:
            gpu("cuGraphInstantiateWithFlags", byref(handle), graph.handle, c_ulonglong(0))
        elif form == 1:
            gpu("cuGraphInstantiateWithParams", byref(handle), graph.handle, byref(Instantiation(flags=8)))
        else:
            gpu("cuGraphInstantiate_v2", byref(handle), graph.handle, None, None, c_size_t(0))
        self.executables.append(MadeExecutable(handle, copied(graph.steps), graph))

    def replay(self) -> None:
        if self.executables:
            executable = self.random.choice(self.executables)
            for _ in range(self.random.randint(1, 4)):
                if self.random.random() < 0.3:
                    self.use(self.random.choice(self.streams))
                self.gpu("cuGraphLaunch", executable.handle, self.last)
                self.apply(executable.steps)

    def named(self) -> tuple[MadeExecutable, Step] | None:
        """A step of an executable that is there to be named."""
        nameable = [
            (executable, step, original)
            for executable in self.executables
            if executable.graph is not None and executable.graph in self.graphs
            for step, original in zip(executable.steps, executable.graph.steps, strict=True)
            if original.node is not None
        ]
        if not nameable:
            return None
        executable, step, original = self.random.choice(nameable)
        step.node = original.node
        return executable, step

    def change(self) -> None:
        named = self.named()
        if named is None:
            return
        executable, step = named
        new, gpu = self.vary(step), self.gpu
        if step.kind in ("scale", "shift"):
            node = gpu.kernel_node(new.kind, self.memory[step.at], new.value, WORDS)
            form = self.random.choice(["", "_v2"])
            gpu(f"cuGraphExecKernelNodeSetParams{form}", executable.handle, step.node, byref(node))
        elif step.kind == "fill":
            gpu("cuGraphExecMemsetNodeSetParams", executable.handle, step.node, byref(self.fill(new)), self.context())
        elif step.kind == "copy":
            gpu("cuGraphExecMemcpyNodeSetParams", executable.handle, step.node, byref(self.copy(new)), self.context())
        elif step.kind == "child":
            self.exchange(executable, step, new)
            return
        else:
            return
        step.kind, step.value = new.kind, new.value

    def exchange(self, executable: MadeExecutable, step: Step, new: Step) -> None:
        """Another child graph of the same topology."""
        child = self.gpu.graph()
        self.add(child, new.inner)
        self.gpu("cuGraphExecChildGraphNodeSetParams", executable.handle, step.node, child)
        self.gpu("cuGraphDestroy", child)
        step.inner = copied(new.inner)

    def enable(self) -> None:
        named = self.named()
        if named is not None and named[1].kind in ("scale", "shift", "fill", "copy"):
            executable, step = named
            step.enabled = not step.enabled
            self.gpu("cuGraphNodeSetEnabled", executable.handle, step.node, c_int(step.enabled))

    def update(self) -> None:
        """By a graph of the same topology, or of another, which the driver refuses."""
        if not self.executables:
            return
        executable = self.random.choice(self.executables)
        if not all(step.enabled for step in executable.steps) or executable.graph not in self.graphs:
            return
        assert executable.graph is not None
        if any(step.node is None for step in executable.graph.steps):
            return
        steps = [self.vary(step) for step in executable.steps]
        refused = self.random.random() < 0.3
        if refused:
            steps.append(Step("shift", 0, 1))
        graph = self.gpu.graph()
        self.add(graph, steps)
        try:
            self.gpu("cuGraphExecUpdate_v2", executable.handle, graph, byref(UpdateResult()))
        except CudaError as error:
            if not refused or error.code != 910:
                raise
        else:
            executable.steps, executable.graph = steps, None
        self.gpu("cuGraphDestroy", graph)

    def destroy(self) -> None:
        if self.graphs and self.random.random() < 0.5:
            self.gpu("cuGraphDestroy", self.graphs.pop(self.random.randrange(len(self.graphs))).handle)
        elif self.executables:
            executable = self.executables.pop(self.random.randrange(len(self.executables)))
            self.gpu("cuGraphExecDestroy", executable.handle)

    def launch(self) -> None:
        step = self.random_step(1)
        self.use(self.random.choice(self.streams))
        self.submit(step, self.last)
        self.apply([step])

    def run(self, steps: int) -> bool:
        """Return whether the memory is as expected."""
        moves = [self.make, self.make, self.capture, self.clone, *[self.instantiate] * 3, *[self.replay] * 8,
                 *[self.change] * 4, self.enable, *[self.update] * 2, self.destroy, self.launch]  # fmt: skip
        for _ in range(steps):
            self.random.choice(moves)()
        return [self.gpu.read(memory, WORDS) for memory in self.memory] == self.model

    def end(self) -> int:
        """Let go of everything; a checksum of what there was."""
        for executable in self.executables:
            self.gpu("cuGraphExecDestroy", executable.handle)
        for graph in self.graphs:
            self.gpu("cuGraphDestroy", graph.handle)
        for memory in self.memory:
            self.gpu("cuMemFree_v2", c_uint64(memory))
        for stream in self.streams:
            self.gpu("cuStreamDestroy_v2", stream)
        return sum(map(sum, self.model)) % 1000003


def main() -> int:
    seed, programs = int(sys.argv[1]), int(sys.argv[2])
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    gpu, total = Gpu(), 0
    for number in range(programs):
        walk = Walk(gpu, seed + number)
        if not walk.run(steps):
            print("WRONG in program", seed + number)
            return 1
        total = (total * 31 + walk.end()) % 1000003
    print("right", total)
    return 0


if __name__ == "__main__":
    sys.exit(main())
