"""Times of the nodes of a CUDA graph: means of their kernels, and stamps of probed replays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.probekit import probe_results
from tui_probe.probekit.measured import known_probe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.probekit.probe import Stamps
    from tui_probe.trace.graphs import Graph
    from tui_probe.trace.launch_events import GraphNode, GraphReplay
    from tui_probe.trace.model import Trace
    from tui_probe.trace.run import Range

_INSTANT: Final = ("empty", "event-wait", "event-record", "signal", "wait", "child")
"""Nodes that take no time of their own."""


@dataclass(frozen=True, slots=True)
class NodeTimes:
    """A node in a replay. ``ns`` is the mean time of its kernel over all its timed launches, wherever they were;
    ``begin`` and ``end`` are parts of the longest way through the graph, 0 to 1; ``probed`` counts recorded launches.
    """

    node: GraphNode
    depth: int
    probed: int
    ns: float | None
    share: float | None
    begin: float
    end: float
    ranges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GraphTimes:
    """``timed`` says whether the places of nodes go by the times of their kernels: where one is not known, every node
    is as long as every other.
    """

    graph: Graph
    nodes: tuple[NodeTimes, ...]
    replay_ns: float | None
    """Mean time of a replay without probes, ``probed_ns`` of one with them, between events around it; ``call_ns`` what
    the host needs to launch it. None where not measured, and on a simulated GPU.
    """
    probed_ns: float | None
    call_ns: float | None
    kernel_ns: float | None
    """Sum over the kernels of a replay; None where one was never timed."""
    timed: bool


def graph_times(trace: Trace, graph: Graph) -> GraphTimes:
    """Times of a graph and of each of its nodes."""
    times = [_kernel_ns(trace, node.kernel) for node in graph.nodes]
    known = [ns for node, ns in zip(graph.nodes, times, strict=True) if node.kernel is not None]
    timed = bool(known) and None not in known
    total = sum(ns for ns in known if ns is not None) if timed else None
    lengths = [(ns or 0.0) if timed else _unit(node) for node, ns in zip(graph.nodes, times, strict=True)]
    begins, ends = schedule(graph.nodes, lengths)
    duration = max(ends, default=0.0) or 1.0
    probed = recorded_edges(trace, graph)
    around = _around(trace, graph)
    nodes = tuple(
        NodeTimes(
            node, _depth(graph.nodes, node), int(probed[i]), times[i],
            None if total is None or not total or times[i] is None else (times[i] or 0.0) / total,
            begins[i] / duration, ends[i] / duration, _ranges(trace, around, node),
        )
        for i, node in enumerate(graph.nodes)
    )  # fmt: skip
    measured = not trace.state.simulated
    return GraphTimes(
        graph, nodes,
        graph.mean_ns(probed=False) if measured else None, graph.mean_ns(probed=True) if measured else None,
        graph.call_ns if measured else None, total, timed,
    )  # fmt: skip


def _kernel_ns(trace: Trace, index: int | None) -> float | None:
    kernel = None if index is None else trace.kernels.get(index)
    time = None if kernel is None else kernel.gpu_time
    return None if time is None else time.shown.mean_ns


def _unit(node: GraphNode) -> float:
    return 0.0 if node.kind in _INSTANT else 1.0


def _parent(nodes: Sequence[GraphNode], node: GraphNode) -> GraphNode | None:
    """The node of the child graph that a node is in, which comes before it; None where a damaged log says otherwise."""
    return nodes[node.parent] if node.parent is not None and node.parent < node.index else None


def _depth(nodes: Sequence[GraphNode], node: GraphNode) -> int:
    depth, outer = 0, _parent(nodes, node)
    while outer is not None:
        depth, outer = depth + 1, _parent(nodes, outer)
    return depth


def schedule(nodes: Sequence[GraphNode], lengths: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return begin and end of each node if it begins as soon as it may; a child graph ends with the last of its nodes.

    Nodes in a circle, which only a damaged log has, begin where they are met.
    """
    begins, ends = [0.0] * len(nodes), [0.0] * len(nodes)
    for _ in range(len(nodes)):
        before = list(ends)
        for node in nodes:
            outer = _parent(nodes, node)
            earliest = [before_ends for index in node.after if index < len(nodes) for before_ends in (ends[index],)]
            begin = max([0.0 if outer is None else begins[outer.index], *earliest])
            begins[node.index] = begin
            ends[node.index] = max(begin + lengths[node.index], _inner_end(nodes, ends, node))
        if ends == before:
            break
    return begins, ends


def _inner_end(nodes: Sequence[GraphNode], ends: Sequence[float], node: GraphNode) -> float:
    if node.kind != "child":
        return 0.0
    return max((ends[inner.index] for inner in nodes if inner.parent == node.index), default=0.0)


def recorded_edges(trace: Trace, graph: Graph) -> NDArray[np.int64]:
    """Count the probed launches of each node in the table of launches, by the node's index."""
    kernels = np.array([node.index for node in graph.kernels], dtype=np.int64)
    counts = np.zeros(len(graph.nodes) + 1, dtype=np.int64)
    if not graph.replays_told or not len(kernels):
        return counts
    first = np.array([replay.first for replay in graph.replays_told], dtype=np.int64)
    numbers = trace.launches.column("number")[trace.launches.column("probed") != 0]
    at = np.searchsorted(first, numbers, side="right") - 1
    ordinal = numbers - first[np.maximum(at, 0)]
    inside = (at >= 0) & (ordinal >= 0) & (ordinal < len(kernels))
    np.add.at(counts, kernels[ordinal[inside]], 1)
    return counts


def _around(trace: Trace, graph: Graph) -> list[Range]:
    """The ranges that were open while launches of a graph were captured: few, of the many that a run may have."""
    captured = [node.captured for node in graph.nodes if node.captured is not None]
    if not captured:
        return []
    begin, end = min(captured), max(captured)
    return [
        nvtx_range
        for nvtx_range in trace.ranges
        if any(first <= end and last >= begin for first, last in nvtx_range.runs)
    ]


def _ranges(trace: Trace, around: Sequence[Range], node: GraphNode) -> tuple[str, ...]:
    """The texts of the ranges that were open when a node's launch was captured, the outermost first."""
    number = node.captured
    if number is None:
        return ()
    outside = [range_ for range_ in around if any(first <= number <= last for first, last in range_.runs)]
    return tuple(nvtx_range.text for nvtx_range in sorted(outside, key=trace.ranges.depth))


def times_by_graph(trace: Trace) -> Mapping[int, GraphTimes]:
    """Return the times of all graphs, by their number."""
    return {graph.id: graph_times(trace, graph) for graph in trace.graphs}


@dataclass(frozen=True, slots=True)
class NodeRun:
    """Seconds since the first node of the replay that was stamped. ``end`` is None where the probe tells the start
    only.
    """

    begin: float
    end: float | None


def stamped_node_runs(trace: Trace, graph: Graph) -> Mapping[int, NodeRun]:
    """The nodes of the newest probed replay that were stamped, by their index; none on a simulated GPU."""
    if trace.state.simulated or not _is_stamped(trace, graph):
        return {}
    for replay in reversed(graph.replays_told):
        stamped = dict(_stamps(trace, graph, replay))
        if stamped:
            first = min(stamps.begin_ns for stamps in stamped.values())
            return {index: _since(first, stamps) for index, stamps in stamped.items()}
    return {}


def _is_stamped(trace: Trace, graph: Graph) -> bool:
    """Return whether any of its kernels has a probe that reads the timer."""
    kernels = (trace.kernels.get(index) for index in graph.calls)
    probes = (known_probe(probed) for kernel in kernels if kernel for probed in kernel.by_probe())
    return any(probe.stamps is not None for probe in probes)


def _stamps(trace: Trace, graph: Graph, replay: GraphReplay) -> Iterator[tuple[int, Stamps]]:
    for ordinal, node in enumerate(graph.kernels[: replay.count]):
        launch = trace.launches.row_of(replay.first + ordinal)
        result = None if launch is None else trace.launches[launch].result
        kernel = None if node.kernel is None else trace.kernels.get(node.kernel)
        if result is None or kernel is None:
            continue
        probe = known_probe(kernel.of_result(result))
        if probe.stamps is None:
            continue
        try:
            yield node.index, probe.stamps(probe_results.read_result_row(trace, kernel, result))
        except TraceError:
            continue  # its page says what is wrong with the file


def _since(first: int, stamps: Stamps) -> NodeRun:
    end = stamps.end_ns
    return NodeRun((stamps.begin_ns - first) / 1e9, None if end is None else (end - first) / 1e9)
