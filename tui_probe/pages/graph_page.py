"""Page of CUDA graphs: replays of each, and its nodes over time.

Times of nodes are means of their kernels, or stamps of probed replays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.draw.table_content import PageTexts
from tui_probe.errors import TraceError
from tui_probe.pages.table_page import TablePage
from tui_probe.probekit import probe_results
from tui_probe.probekit.measured import known_probe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.probekit.probe import Stamps
    from tui_probe.trace.graphs import Graph
    from tui_probe.trace.launch_events import GraphNode, GraphReplay
    from tui_probe.trace.model import Kernel, Trace
    from tui_probe.trace.run import Range

_INSTANT_KINDS: Final = ("empty", "event-wait", "event-record", "signal", "wait", "child")
"""Nodes that take no time of their own."""
GRAPHS_EXPLANATION: Final = (
    "All CUDA graphs that the program instantiated. Nodes are in the order of the driver; nodes of a child graph are"
    " below the node that contains the graph. A replay launches all kernels of a graph with one call. A sampled replay"
    " runs a copy of the graph with probed kernels. Each kernel of this copy counts as a launch with its own number.",
    "The time of a graph is the time of a replay, from an event before the replay to an event after it; “call” is the"
    " host time of the replay call. The time of a node is the mean over all timed launches of its kernel, in graphs and"
    " elsewhere. Launches in graphs are timed only with TUI_PROBE_GRAPHS=timed.",
    "If the probe reads %globaltimer, “began” is the start of each node in the newest probed replay, relative to the"
    " first node.",
    "The length of a bar is the time of its node. A bar begins when all nodes on which its node depends have ended."
    " If a kernel has no time, all bars have the same length.",
)
NO_GRAPHS_TEXT: Final = "The program instantiated no CUDA graph."
_BAR_CELLS: Final = 24
"""Cells that stand for the longest way through a graph."""
_MOMENT_SIGN: Final = "·"
"""The place of a node for which no time is known, or which takes none."""
_NAME_WIDTH: Final = 60
"""Cells of a kernel's name."""
_MAX_DEPTH: Final = 16
"""Levels of child graphs that are indented."""
_MAX_PREDECESSORS: Final = 4
"""Nodes named on which a node depends."""


@dataclass(frozen=True, slots=True)
class NodeTimes:
    """A node in a replay. ``ns`` is the mean time of its kernel over all its timed launches, wherever they were.

    ``begin`` and ``end`` are positions on the longest way through the graph, 0 to 1. ``probed_count`` is the number of
    recorded launches.
    """

    node: GraphNode
    depth: int
    probed_count: int
    ns: float | None
    share: float | None
    begin: float
    end: float
    ranges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GraphTimes:
    """Times of a graph. ``is_timed`` is True if nodes are as long as their kernels; if the time of one kernel is
    unknown, all nodes are equally long.
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
    is_timed: bool


def graph_times(trace: Trace, graph: Graph) -> GraphTimes:
    """Return the times of a graph and of each of its nodes."""
    node_ns = [_kernel_ns(trace, node.kernel) for node in graph.nodes]
    kernel_ns = [ns for node, ns in zip(graph.nodes, node_ns, strict=True) if node.kernel is not None]
    is_timed = bool(kernel_ns) and None not in kernel_ns
    total = sum(ns for ns in kernel_ns if ns is not None) if is_timed else None
    durations = [
        (ns or 0.0) if is_timed else _unit_duration(node) for node, ns in zip(graph.nodes, node_ns, strict=True)
    ]
    begin_times, end_times = schedule(graph.nodes, durations)
    duration = max(end_times, default=0.0) or 1.0
    probed_counts = probed_launches(trace, graph)
    capture_ranges = _capture_ranges(trace, graph)
    nodes = tuple(
        NodeTimes(
            node=node,
            depth=_depth(graph.nodes, node),
            probed_count=int(probed_counts[i]),
            ns=node_ns[i],
            share=_share_of(node_ns[i], total),
            begin=begin_times[i] / duration,
            end=end_times[i] / duration,
            ranges=_range_texts(trace, capture_ranges, node),
        )
        for i, node in enumerate(graph.nodes)
    )
    has_gpu_times = not trace.state.simulated
    return GraphTimes(
        graph,
        nodes,
        replay_ns=graph.mean_ns(probed=False) if has_gpu_times else None,
        probed_ns=graph.mean_ns(probed=True) if has_gpu_times else None,
        call_ns=graph.call_ns if has_gpu_times else None,
        kernel_ns=total,
        is_timed=is_timed,
    )


def _share_of(ns: float | None, total: float | None) -> float | None:
    return ns / total if ns is not None and total else None


def _kernel_ns(trace: Trace, index: int | None) -> float | None:
    kernel = None if index is None else trace.kernels.get(index)
    time = None if kernel is None else kernel.gpu_time
    return None if time is None else time.preferred_variant.mean_ns


def _unit_duration(node: GraphNode) -> float:
    """Return the length of a node where times are not known: all that take time are equally long."""
    return 0.0 if node.kind in _INSTANT_KINDS else 1.0


def _parent(nodes: Sequence[GraphNode], node: GraphNode) -> GraphNode | None:
    """Return the node of the child graph that a node is in, which comes before it; None if a damaged log says
    otherwise.
    """
    return nodes[node.parent] if node.parent is not None and node.parent < node.index else None


def _depth(nodes: Sequence[GraphNode], node: GraphNode) -> int:
    depth, outer = 0, _parent(nodes, node)
    while outer is not None:
        depth, outer = depth + 1, _parent(nodes, outer)
    return depth


def schedule(nodes: Sequence[GraphNode], durations: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return begin and end of each node if it begins as soon as it may; a child graph ends with the last of its nodes.

    Nodes in a circle, which only a damaged log has, begin where they are met.
    """
    begin_times, end_times = [0.0] * len(nodes), [0.0] * len(nodes)
    for _ in range(len(nodes)):
        previous_end_times = list(end_times)
        for node in nodes:
            outer = _parent(nodes, node)
            predecessor_ends = [end_times[index] for index in node.dependencies if index < len(nodes)]
            begin = max([0.0 if outer is None else begin_times[outer.index], *predecessor_ends])
            begin_times[node.index] = begin
            end_times[node.index] = max(begin + durations[node.index], _inner_end(nodes, end_times, node))
        if end_times == previous_end_times:
            break
    return begin_times, end_times


def _inner_end(nodes: Sequence[GraphNode], end_times: Sequence[float], node: GraphNode) -> float:
    if node.kind != "child":
        return 0.0
    return max((end_times[inner.index] for inner in nodes if inner.parent == node.index), default=0.0)


def probed_launches(trace: Trace, graph: Graph) -> NDArray[np.int64]:
    """Count the probed launches of each node in the table of launches, by the node's index."""
    kernel_nodes = np.array([node.index for node in graph.kernels], dtype=np.int64)
    counts = np.zeros(len(graph.nodes) + 1, dtype=np.int64)
    if not graph.logged_replays or not len(kernel_nodes):
        return counts
    # A probed replay numbers its kernels in the order of their nodes, from the replay's first number on.
    first_numbers = np.array([replay_rows.first_launch for replay_rows in graph.logged_replays], dtype=np.int64)
    numbers = trace.launches.column("number")[trace.launches.column("probed") != 0]
    replay = np.searchsorted(first_numbers, numbers, side="right") - 1
    ordinal = numbers - first_numbers[np.maximum(replay, 0)]
    is_of_graph = (replay >= 0) & (ordinal >= 0) & (ordinal < len(kernel_nodes))
    np.add.at(counts, kernel_nodes[ordinal[is_of_graph]], 1)
    return counts


def _capture_ranges(trace: Trace, graph: Graph) -> list[Range]:
    """Return the ranges that were open while launches of a graph were captured: few, of the many of a run."""
    capture_numbers = [node.captured for node in graph.nodes if node.captured is not None]
    if not capture_numbers:
        return []
    first_capture, last_capture = min(capture_numbers), max(capture_numbers)
    return [
        nvtx_range
        for nvtx_range in trace.ranges
        if any(first <= last_capture and last >= first_capture for first, last in nvtx_range.runs)
    ]


def _range_texts(trace: Trace, capture_ranges: Sequence[Range], node: GraphNode) -> tuple[str, ...]:
    """Return the texts of the ranges that were open when a node's launch was captured, the outermost first."""
    capture_number = node.captured
    if capture_number is None:
        return ()
    open_ranges = (
        nvtx_range
        for nvtx_range in capture_ranges
        if any(first <= capture_number <= last for first, last in nvtx_range.runs)
    )
    return tuple(nvtx_range.text for nvtx_range in sorted(open_ranges, key=trace.ranges.depth))


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
    """Return the runs of the stamped nodes of the newest probed replay, by node index; none on a simulated GPU."""
    if trace.state.simulated or not _is_stamped(trace, graph):
        return {}
    for replay in reversed(graph.logged_replays):
        stamps_by_node = dict(_stamps(trace, graph, replay))
        if stamps_by_node:
            first_ns = min(stamps.begin_ns for stamps in stamps_by_node.values())
            return {index: _node_run(first_ns, stamps) for index, stamps in stamps_by_node.items()}
    return {}


def _is_stamped(trace: Trace, graph: Graph) -> bool:
    """Return whether any of its kernels has a probe that reads the timer."""
    kernels = (trace.kernels.get(index) for index in graph.calls)
    probes = (known_probe(probed) for kernel in kernels if kernel for probed in kernel.by_probe())
    return any(probe.stamps is not None for probe in probes)


def _stamps(trace: Trace, graph: Graph, replay: GraphReplay) -> Iterator[tuple[int, Stamps]]:
    for ordinal, node in enumerate(graph.kernels[: replay.count]):
        launch = trace.launches.row_of(replay.first_launch + ordinal)
        result = None if launch is None else trace.launches[launch].result
        kernel = None if node.kernel is None else trace.kernels.get(node.kernel)
        if result is None or kernel is None:
            continue
        probe = known_probe(kernel.kernel_of_result(result))
        if probe.stamps is None:
            continue
        try:
            yield node.index, probe.stamps(probe_results.read_result_row(trace, kernel, result))
        except TraceError:
            continue  # its page says what is wrong with the file


def _node_run(first_ns: int, stamps: Stamps) -> NodeRun:
    end = stamps.end_ns
    return NodeRun((stamps.begin_ns - first_ns) / 1e9, None if end is None else (end - first_ns) / 1e9)


@dataclass(frozen=True, slots=True)
class GraphLine:
    """A graph, or below it one of its nodes (``kernel`` None where it is of another kind)."""

    graph: GraphTimes
    node: NodeTimes | None = None
    kernel: Kernel | None = None
    node_run: NodeRun | None = None
    """Times of the node in the newest replay that has them."""

    @property
    def text(self) -> str:
        if self.node is None:
            graph = self.graph.graph
            return f"graph {graph.id}" + (" (destroyed)" if graph.is_destroyed else "")
        return "  " * min(self.node.depth + 1, _MAX_DEPTH) + self._name(self.node)

    def _name(self, times: NodeTimes) -> str:
        node = times.node
        if node.kernel is None:
            return node.kind + (f" {units.size(node.bytes)}" if node.bytes else "")
        name = "?" if self.kernel is None else shorten(self.kernel.demangled, _NAME_WIDTH)
        return f"#{node.kernel} {name}"

    @property
    def seconds(self) -> float | None:
        return _seconds(self.graph.replay_ns if self.node is None else self.node.ns)

    @property
    def replays(self) -> int:
        return self.graph.graph.replays

    @property
    def probed_count(self) -> int | None:
        if self.node is None:
            return self.graph.graph.replays_probed
        return None if self.node.node.kernel is None else self.node.probed_count

    @property
    def bar(self) -> str:
        """The node's part of the way through the graph."""
        if self.node is None:
            return ""
        begin = min(round(self.node.begin * _BAR_CELLS), _BAR_CELLS - 1)
        end = max(round(self.node.end * _BAR_CELLS), begin + 1)
        return " " * begin + ("█" * (end - begin) if self.node.end > self.node.begin else _MOMENT_SIGN)


def graph_page(trace: Trace) -> TablePage[GraphLine]:
    """Return the page of all graphs and their nodes."""
    rows = list(graph_lines(trace))

    def kernel_target(line: GraphLine) -> tuple[Path, int] | None:
        return None if line.kernel is None else (trace.directory, line.kernel.index)

    notes = [] if rows else [NO_GRAPHS_TEXT]
    texts = PageTexts((), list(_graph_notes(trace)), notes, GRAPHS_EXPLANATION)
    return TablePage(
        "graphs",
        "CUDA graphs",
        _shown_columns(rows),
        rows,
        texts,
        kernel_of_row=kernel_target if rows else None,
        has_fixed_order=True,
    )


def graph_lines(trace: Trace) -> Iterator[GraphLine]:
    """Yield a line for each graph, and below it one for each of its nodes."""
    for times in times_by_graph(trace).values():
        yield GraphLine(times)
        runs_by_node = stamped_node_runs(trace, times.graph)
        for node in times.nodes:
            index = node.node.kernel
            yield GraphLine(
                times, node, None if index is None else trace.kernels.get(index), runs_by_node.get(node.node.index)
            )


def _graph_notes(trace: Trace) -> Iterator[str]:
    """Count graphs and replays, and say why some are not probed."""
    graphs = list(trace.graphs)
    if not graphs:
        return
    replays = units.counted(sum(graph.replays for graph in graphs), "replay")
    probed_replays = units.count(sum(graph.replays_probed for graph in graphs))
    yield f"{units.counted(len(graphs), 'graph')}, {replays}, {probed_replays} probed"
    for graph in graphs:
        if graph.reason is not None:
            yield f"graph {graph.id} is not probed: {graph.reason.text}"


def _shown_columns(rows: list[GraphLine]) -> list[Column[GraphLine]]:
    """Return the columns; an empty one is in data only."""
    return [column if _has_values(rows, column) else replace(column, text=None) for column in GRAPH_COLUMNS]


def _has_values(rows: list[GraphLine], column: Column[GraphLine]) -> bool:
    """Return whether a column that may be empty has a value."""
    if column.key not in ("ranges", "call_s", "share", "began_s"):
        return True
    return any(column.value is not None and column.value(row) for row in rows)


def _predecessors_text(line: GraphLine) -> str:
    """Return the indices of the nodes that a node waits for."""
    predecessors = () if line.node is None else line.node.node.dependencies
    return ",".join(map(str, predecessors[:_MAX_PREDECESSORS])) + (
        ",…" if len(predecessors) > _MAX_PREDECESSORS else ""
    )


def _node_field(name: str) -> Any:
    """Return a function that reads a field of a line's node; None for a graph."""
    return lambda line: None if line.node is None else getattr(line.node.node, name)


def _launch_time(line: GraphLine) -> float | None:
    return _seconds(line.graph.call_ns) if line.node is None else None


def _start_time(line: GraphLine) -> float | None:
    return None if line.node_run is None else line.node_run.begin


def _node_share(line: GraphLine) -> float | None:
    return None if line.node is None else line.node.share


def _share_text(line: GraphLine) -> str:
    share = _node_share(line)
    return "" if share is None else f"{100 * share:.1f} %"


def _node_grid(line: GraphLine) -> list[int] | None:
    shape = None if line.node is None else line.node.node.shape
    return None if shape is None else list(shape)[:3]


def _node_block(line: GraphLine) -> list[int] | None:
    shape = None if line.node is None else line.node.node.shape
    return None if shape is None else list(shape)[3:]


def _time_text(line: GraphLine) -> str:
    no_kernel = line.node is not None and line.node.node.kernel is None
    return "" if no_kernel else units.duration(line.seconds)


def _reason_text(line: GraphLine) -> str | None:
    reason = line.graph.graph.reason if line.node is None else None
    return None if reason is None else reason.text


def _reason_code(line: GraphLine) -> str | None:
    reason = line.graph.graph.reason if line.node is None else None
    return None if reason is None else reason.code


def _seconds(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e9


def _probed_seconds(line: GraphLine) -> float | None:
    return None if line.node else _seconds(line.graph.probed_ns)


GRAPH_COLUMNS: Final[tuple[Column[GraphLine], ...]] = (
    Column("kind", lambda r: "graph" if r.node is None else r.node.node.kind),
    Column("graph", lambda r: r.graph.graph.id),
    Column("node", _node_field("index"), "node", lambda r: "" if r.node is None else str(r.node.node.index), rank=1),
    Column("text", lambda r: r.text.strip(), "graph and nodes", lambda r: r.text, right=False, narrow=24),
    Column("parent", _node_field("parent")),
    Column("after", lambda r: None if r.node is None else list(r.node.node.dependencies), "after", _predecessors_text,
           right=False, rank=3, nested=True),
    Column("kernel", _node_field("kernel")),
    Column("grid", _node_grid, nested=True),
    Column("block", _node_block, nested=True),
    Column("bytes", _node_field("bytes")),
    Column("captured", _node_field("captured")),
    Column("replays", lambda r: r.replays, "replays", lambda r: units.count(r.replays) if r.node is None else "",
           rank=2),
    Column("probed", lambda r: r.probed_count, "probed",
           lambda r: "" if r.probed_count is None else units.count(r.probed_count)),
    Column("seconds", lambda r: r.seconds, "time", _time_text),
    Column("probed_seconds", _probed_seconds),
    Column("kernel_seconds", lambda r: None if r.node else _seconds(r.graph.kernel_ns)),
    Column("share", _node_share, "share", _share_text, rank=4),
    Column("call_s", _launch_time, "call", lambda r: "" if r.node else units.duration(_launch_time(r)), rank=5),
    Column("began_s", _start_time, "began", lambda r: "" if r.node is None else units.duration(_start_time(r)), rank=5),
    Column("ended_s", lambda r: None if r.node_run is None else r.node_run.end),
    Column("begin", lambda r: None if r.node is None else r.node.begin),
    Column("end", lambda r: None if r.node is None else r.node.end),
    Column("bar", None, "over a replay", lambda r: r.bar, right=False, narrow=_BAR_CELLS),
    Column("ranges", lambda r: None if r.node is None else list(r.node.ranges), "captured in",
           lambda r: "" if r.node is None else " / ".join(r.node.ranges), right=False, rank=6, narrow=12, nested=True),
    Column("reason", _reason_text),
    Column("reason_code", _reason_code),
)  # fmt: skip
"""``seconds`` of a graph is a replay as a whole, of a node the mean of its kernel; ``begin`` and ``end`` are parts of
the longest way through the graph.
"""
