"""A trace with CUDA graphs, written by hand."""

from __future__ import annotations

from pathlib import Path

from tests.trace.make import EPOCH_NS, TraceWriter

MS = 1_000_000
SHAPE = "grid 64 1 1 block 128 1 1 shared 0"


def graphs_trace(directory: Path) -> TraceWriter:
    """Two graphs: a captured one of two streams with a child graph, two of whose 1 000 replays were probed, and one
    with a memory node.

    Launch 0 is captured in the range "step / attention"; the probed replays are launches 10-13 and 2010-2013, and of
    the second the last node had no room.
    """
    writer = TraceWriter(directory)
    writer.start(command="python serve.py")
    writer.kernel(0, "_Z4gemmPKfS0_Pf")
    writer.kernel(1, "_Z4reluPf")
    writer.lines(
        f"[nvtx] range 2 in 1 thread 77 start {EPOCH_NS} end {EPOCH_NS + MS} launches 0 domain - text attention",
        f"[nvtx] range 1 in 0 thread 77 start {EPOCH_NS} end {EPOCH_NS + MS} launches 0-1 domain - text step",
        "[graph] 0 executable 0x55d0 nodes 6 kernels 4 flags 0 replays 0",
        f"[node] 0 0 kernel in - after - kernel 0 {SHAPE} captured 0",
        f"[node] 0 1 kernel in - after 0 kernel 1 {SHAPE} captured 1",
        "[node] 0 2 fill in - after - bytes 4096",
        "[node] 0 3 child in - after 1,2 bytes 0",
        f"[node] 0 4 kernel in 3 after - kernel 0 {SHAPE} captured -",
        f"[node] 0 5 kernel in 3 after 4 kernel 1 {SHAPE} captured -",
        "[graph] 1 executable 0x55e0 nodes 2 kernels 1 flags 8 replays 0",
        "[node] 1 0 memory-alloc in - after - bytes 0",
        f"[node] 1 1 kernel in - after 0 kernel 1 {SHAPE} captured -",
        "[graph] 1 untwinned reason the graph has a node of kind memory-alloc, which cannot be copied"
        " code graph-node-once",
    )
    return writer


def replays(writer: TraceWriter) -> None:
    """The replays of the first graph, and one of the second."""
    probed(writer, 0, 10, (0, 1, 0, 1))
    writer.lines("[graph] 0 replayed 500")
    probed(writer, 501, 2010, (0, 1, 0))
    writer.lines(
        "[graph] 0 replayed 498",
        "[time] graph 0 replay 1 original ns 41000 for 1 call 5200",
        "[time] graph 0 replay 2 original ns 43000 for 999 call 4800 idle",
        "[time] graph 0 replay 0 probed ns 52000 for 1 call 9000",
        "[graph] 1 replayed 1",
        "[graph] 1 destroyed",
    )
    for kernel, ns in ((0, 12_000), (1, 4_000)):
        writer.lines(f"[time] launch {kernel} kernel {kernel} key {kernel} original ns {ns} for 1")


def probed(writer: TraceWriter, replay: int, first: int, kernels: tuple[int, ...]) -> None:
    """A probed replay whose first nodes are of these kernels."""
    writer.lines(
        f"[graph] 0 replay {replay} time {EPOCH_NS + first * MS} launch {first} count 4"
        f" probed {','.join(f'{kernel}x1' for kernel in kernels)}"
    )
    for ordinal, kernel in enumerate(kernels):
        writer.lines(
            f"[exec] {EPOCH_NS + first * MS} param -",
            f"[exec] {SHAPE} kernel {kernel} launch {first + ordinal} stream 7",
            "[exec] grid 64 warp  4 probe 16 total 4096",
            "[exec] probe-mem 4096 (bytes)",
            "[exec] succeed 0",
        )
