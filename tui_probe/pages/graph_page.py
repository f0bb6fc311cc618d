"""Page of CUDA graphs: replays of each, and its nodes over time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.draw.table_content import PageTexts
from tui_probe.pages.graph_times import GraphTimes, NodeRun, NodeTimes, stamped_node_runs, times_by_graph
from tui_probe.pages.table_page import TablePage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tui_probe.trace.model import Kernel, Trace

GRAPHS_ABOUT: Final = (
    "All CUDA graphs that the program instantiated, with their nodes in the order in which the driver lists them. Nodes"
    " of a child graph are listed below the node that contains the graph. A replay launches all kernels of a graph with"
    " one call. A sampled replay runs a copy of the graph with probed kernels. Each kernel of this copy counts as a"
    " launch with its own number.",
    "The time of a graph is that of a whole replay, between events before and after it; “call” is the host time of the"
    " replay call. The time of a node is the mean over all timed launches of its kernel, inside and outside of graphs."
    " Launches in graphs are timed only with TUI_PROBE_GRAPHS=timed. If the probe reads %globaltimer, “began” is the"
    " start of each node in the newest probed replay, relative to the first node. A bar begins where the dependencies"
    " of its node allow it to start. The length of a bar is the time of its node. If a kernel has no time, all bars"
    " have the same length.",
)
NO_GRAPHS_TEXT: Final = "The program instantiated no CUDA graph."
_BAR_CELLS: Final = 24
_MOMENT_SIGN: Final = "·"
"""The place of a node for which no time is known, or which takes none."""
_NAME_WIDTH: Final = 60
_MAX_DEPTH: Final = 16


@dataclass(frozen=True, slots=True)
class GraphLine:
    """A graph, or below it one of its nodes (``kernel`` None where it is of another kind)."""

    graph: GraphTimes
    node: NodeTimes | None = None
    kernel: Kernel | None = None
    ran: NodeRun | None = None
    """Times of the node in the newest replay that has them."""

    @property
    def text(self) -> str:
        if self.node is None:
            graph = self.graph.graph
            return f"graph {graph.id}" + (" (destroyed)" if graph.destroyed else "")
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
    def probed(self) -> int | None:
        if self.node is None:
            return self.graph.graph.replays_probed
        return None if self.node.node.kernel is None else self.node.probed

    @property
    def bar(self) -> str:
        """The node's part of the way through the graph."""
        if self.node is None:
            return ""
        begin = min(round(self.node.begin * _BAR_CELLS), _BAR_CELLS - 1)
        end = max(round(self.node.end * _BAR_CELLS), begin + 1)
        return " " * begin + ("█" * (end - begin) if self.node.end > self.node.begin else _MOMENT_SIGN)


def graph_page(trace: Trace) -> TablePage[GraphLine]:
    """All graphs and their nodes."""
    rows = list(graph_lines(trace))

    def opens(line: GraphLine) -> tuple[Path, int] | None:
        return None if line.kernel is None else (trace.directory, line.kernel.index)

    notes = [] if rows else [NO_GRAPHS_TEXT]
    texts = PageTexts((), list(_graph_notes(trace)), notes, GRAPHS_ABOUT)
    return TablePage(
        "graphs", "CUDA graphs", _shown_columns(rows), rows, texts, opens=opens if rows else None, ordered=True
    )


def graph_lines(trace: Trace) -> Iterator[GraphLine]:
    """A line for each graph, and below it one for each of its nodes."""
    for graph_times in times_by_graph(trace).values():
        yield GraphLine(graph_times)
        stamped = stamped_node_runs(trace, graph_times.graph)
        for node in graph_times.nodes:
            index = node.node.kernel
            yield GraphLine(
                graph_times, node, None if index is None else trace.kernels.get(index), stamped.get(node.node.index)
            )


def _graph_notes(trace: Trace) -> Iterator[str]:
    """Count graphs and replays, and say why some are not probed."""
    graphs = list(trace.graphs)
    if not graphs:
        return
    replays, probed = (sum(getattr(graph, name) for graph in graphs) for name in ("replays", "replays_probed"))
    yield f"{units.counted(len(graphs), 'graph')}, {units.counted(replays, 'replay')}, {units.count(probed)} probed"
    for graph in graphs:
        if graph.reason is not None:
            yield f"graph {graph.id} is not probed: {graph.reason.text}"


def _shown_columns(rows: list[GraphLine]) -> list[Column[GraphLine]]:
    """The columns; an empty one is in data only."""
    return [column if _has_values(rows, column) else replace(column, text=None) for column in GRAPH_COLUMNS]


def _has_values(rows: list[GraphLine], column: Column[GraphLine]) -> bool:
    """Return whether a column that may be empty has a value."""
    if column.key not in ("ranges", "call_s", "share", "began_s"):
        return True
    return any(column.value is not None and column.value(row) for row in rows)


def _waits_for(line: GraphLine) -> str:
    """The nodes that it waits for, by their index."""
    after = () if line.node is None else line.node.node.after
    return ",".join(map(str, after[:4])) + (",…" if len(after) > 4 else "")


def _node_field(name: str) -> Any:
    """A field of a line's node; None for a graph."""
    return lambda line: None if line.node is None else getattr(line.node.node, name)


def _launch_time(line: GraphLine) -> float | None:
    return _seconds(line.graph.call_ns) if line.node is None else None


def _start_time(line: GraphLine) -> float | None:
    return None if line.ran is None else line.ran.begin


def _share(line: GraphLine) -> float | None:
    return None if line.node is None else line.node.share


def _shape(line: GraphLine, first: int) -> list[int] | None:
    """Grid (from 0) or block (from 3) of a kernel."""
    shape = None if line.node is None else line.node.node.shape
    return None if shape is None else list(shape)[first : first + 3]


def _time(line: GraphLine) -> str:
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
    Column("text", lambda r: r.text.strip(), "graph and nodes", lambda r: r.text, False, narrow=24),
    Column("parent", _node_field("parent")),
    Column("after", lambda r: None if r.node is None else list(r.node.node.after), "after", _waits_for, False, rank=3,
           nested=True),
    Column("kernel", _node_field("kernel")),
    Column("grid", lambda r: _shape(r, 0), nested=True),
    Column("block", lambda r: _shape(r, 3), nested=True),
    Column("bytes", _node_field("bytes")),
    Column("captured", _node_field("captured")),
    Column("replays", lambda r: r.replays, "replays", lambda r: units.count(r.replays) if r.node is None else "",
           rank=2),
    Column("probed", lambda r: r.probed, "probed", lambda r: "" if r.probed is None else units.count(r.probed)),
    Column("seconds", lambda r: r.seconds, "time", _time),
    Column("probed_seconds", _probed_seconds),
    Column("kernel_seconds", lambda r: None if r.node else _seconds(r.graph.kernel_ns)),
    Column("share", _share, "share", lambda r: "" if _share(r) is None else f"{100 * (_share(r) or 0):.1f} %", rank=4),
    Column("call_s", _launch_time, "call", lambda r: "" if r.node else units.duration(_launch_time(r)), rank=5),
    Column("began_s", _start_time, "began", lambda r: "" if r.node is None else units.duration(_start_time(r)), rank=5),
    Column("ended_s", lambda r: None if r.ran is None else r.ran.end),
    Column("begin", lambda r: None if r.node is None else r.node.begin),
    Column("end", lambda r: None if r.node is None else r.node.end),
    Column("bar", None, "over a replay", lambda r: r.bar, False, narrow=_BAR_CELLS),
    Column("ranges", lambda r: None if r.node is None else list(r.node.ranges), "captured in",
           lambda r: "" if r.node is None else " / ".join(r.node.ranges), False, rank=6, narrow=12, nested=True),
    Column("reason", _reason_text),
    Column("reason_code", _reason_code),
)  # fmt: skip
"""``seconds`` of a graph is a replay as a whole, of a node the mean of its kernel; ``begin`` and ``end`` are parts of
the longest way through the graph.
"""
