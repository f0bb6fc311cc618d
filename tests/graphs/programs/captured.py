"""Kernels captured across two streams, replayed: prints a checksum of the words and whether they are right.

usage: captured.py [REPLAYS [NODES]]
"""

from __future__ import annotations

import sys

from tests.graphs.cuda_graph import Gpu, Model

WORDS = 200


def capture(gpu: Gpu, words: int, other: int, nodes: int) -> object:
    """The graph of kernels on two streams that fork and join."""
    one, two = gpu.stream(), gpu.stream()
    gpu.begin_capture(one)
    gpu.order(one, two)
    for i in range(nodes):
        gpu.launch("shift" if i % 2 else "scale", words, i + 3, WORDS, one)
    gpu.launch("shift", other, 7, WORDS, two)
    gpu.order(two, one)
    return gpu.end_capture(one)


def main() -> int:
    replays = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    nodes = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    gpu = Gpu()
    words, other = gpu.words(WORDS), gpu.words(WORDS)
    gpu.launch("scale", words, 1, WORDS)
    graph = capture(gpu, words, other, nodes)
    executable = gpu.instantiate(graph)  # type: ignore[arg-type]
    gpu("cuGraphDestroy", graph)
    stream = gpu.stream()
    gpu("cuCtxSynchronize")
    for _ in range(replays):
        gpu("cuGraphLaunch", executable, stream)
    model, forked = Model(WORDS), Model(WORDS)
    model.apply("scale", 1)
    for _ in range(replays):
        for i in range(nodes):
            model.apply("shift" if i % 2 else "scale", i + 3)
        forked.apply("shift", 7)
    right = gpu.read(words, WORDS) == model.values and gpu.read(other, WORDS) == forked.values
    gpu("cuGraphExecDestroy", executable)
    print("right" if right else "WRONG", sum(model.values) % 1000003)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
