"""Nodes of a CUDA graph: how long each takes as far as is known, and where that puts it in a replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.trace.graph_events import GraphNodeTold
    from tui_probe.trace.graphs import Graph
    from tui_probe.trace.model import Trace
    from tui_probe.trace.ranges import Range

_INSTANT: Final = ("empty", "event-wait", "event-record", "signal", "wait", "child")
"""Nodes that take no time of their own."""


@dataclass(frozen=True, slots=True)
class NodeFigures:
    """A node in a replay. ``ns`` is the mean time of its kernel over all its timed launches, wherever they were;
    ``begin`` and ``end`` are parts of the longest way through the graph, 0 to 1; ``probed`` counts recorded launches.
    """

    node: GraphNodeTold
    depth: int
    probed: int
    ns: float | None
    share: float | None
    begin: float
    end: float
    ranges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GraphFigures:
    """``timed`` says whether the places of nodes go by the times of their kernels: where one is not known, every node
    is as long as every other."""

    graph: Graph
    nodes: tuple[NodeFigures, ...]
    replay_ns: float | None
    """Mean time of a replay without probes, ``probed_ns`` of one with them, between events around it; ``call_ns`` what
    the host needs to launch it. None where not measured, and on a simulated GPU."""
    probed_ns: float | None
    call_ns: float | None
    kernel_ns: float | None
    """Sum over the kernels of a replay; None where one was never timed."""
    timed: bool


def graph_figures(trace: Trace, graph: Graph) -> GraphFigures:
    """What is known of a graph and each of its nodes."""
    times = [_kernel_ns(trace, node.kernel) for node in graph.nodes]
    known = [ns for node, ns in zip(graph.nodes, times, strict=True) if node.kernel is not None]
    timed = bool(known) and None not in known
    total = sum(ns for ns in known if ns is not None) if timed else None
    lengths = [(ns or 0.0) if timed else _unit(node) for node, ns in zip(graph.nodes, times, strict=True)]
    begins, ends = schedule(graph.nodes, lengths)
    whole = max(ends, default=0.0) or 1.0
    probed = recorded(trace, graph)
    around = _around(trace, graph)
    nodes = tuple(
        NodeFigures(
            node, _depth(graph.nodes, node), int(probed[i]), times[i],
            None if total is None or not total or times[i] is None else (times[i] or 0.0) / total,
            begins[i] / whole, ends[i] / whole, _ranges(trace, around, node),
        )
        for i, node in enumerate(graph.nodes)
    )  # fmt: skip
    measured = not trace.state.simulated
    return GraphFigures(
        graph, nodes,
        graph.mean_ns(probed=False) if measured else None, graph.mean_ns(probed=True) if measured else None,
        graph.call_ns if measured else None, total, timed,
    )  # fmt: skip


def _kernel_ns(trace: Trace, index: int | None) -> float | None:
    kernel = None if index is None else trace.kernels.get(index)
    time = None if kernel is None else kernel.gpu_time
    return None if time is None else time.shown.mean_ns


def _unit(node: GraphNodeTold) -> float:
    return 0.0 if node.kind in _INSTANT else 1.0


def _parent(nodes: Sequence[GraphNodeTold], node: GraphNodeTold) -> GraphNodeTold | None:
    """The node of the child graph that a node is in, which comes before it; None where a damaged log says otherwise."""
    return nodes[node.parent] if node.parent is not None and node.parent < node.index else None


def _depth(nodes: Sequence[GraphNodeTold], node: GraphNodeTold) -> int:
    depth, outer = 0, _parent(nodes, node)
    while outer is not None:
        depth, outer = depth + 1, _parent(nodes, outer)
    return depth


def schedule(nodes: Sequence[GraphNodeTold], lengths: Sequence[float]) -> tuple[list[float], list[float]]:
    """When each node begins and ends if it begins as soon as it may; a child graph ends with the last of its nodes.

    Nodes in a circle, which only a damaged log has, begin where they are met.
    """
    begins, ends = [0.0] * len(nodes), [0.0] * len(nodes)
    for _ in range(len(nodes)):
        before = list(ends)
        for node in nodes:
            outer = _parent(nodes, node)
            earliest = [before_ends for one in node.after if one < len(nodes) for before_ends in (ends[one],)]
            begin = max([0.0 if outer is None else begins[outer.index], *earliest])
            begins[node.index] = begin
            ends[node.index] = max(begin + lengths[node.index], _inner_end(nodes, ends, node))
        if ends == before:
            break
    return begins, ends


def _inner_end(nodes: Sequence[GraphNodeTold], ends: Sequence[float], node: GraphNodeTold) -> float:
    if node.kind != "child":
        return 0.0
    return max((ends[one.index] for one in nodes if one.parent == node.index), default=0.0)


def recorded(trace: Trace, graph: Graph) -> NDArray[np.int64]:
    """How many probed launches of each node are in the table of launches, by the node's index."""
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
    return [one for one in trace.ranges if any(first <= end and last >= begin for first, last in one.runs)]


def _ranges(trace: Trace, around: Sequence[Range], node: GraphNodeTold) -> tuple[str, ...]:
    """The texts of the ranges that were open when a node's launch was captured, the outermost first."""
    number = node.captured
    if number is None:
        return ()
    outside = [one for one in around if any(first <= number <= last for first, last in one.runs)]
    return tuple(one.text for one in sorted(outside, key=trace.ranges.depth))


def figures_of(trace: Trace) -> Mapping[int, GraphFigures]:
    """Those of all graphs, by their number."""
    return {graph.id: graph_figures(trace, graph) for graph in trace.graphs}
