"""CUDA graphs of a process: their nodes, the number of their replays, and how long these took."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tui_probe.reasons import Reason
    from tui_probe.trace.launch_events import GraphChanged, GraphInstantiated, GraphNode, GraphReplay, GraphTimed

_MAX_NODES: Final = 1 << 20
"""Nodes of a graph that are kept: a damaged log may have any number, as of the others below."""
_MAX_TIMES: Final = 1 << 16
"""Timed replays of a graph that are kept."""
_MAX_REPLAYS: Final = 1 << 20
"""Probed replays of all graphs that are kept."""


@dataclass(slots=True)
class Graph:
    """An executable graph. ``nodes`` are in the driver's order, those of a child graph behind its own node."""

    id: int
    flags: int = 0
    nodes: list[GraphNode] = field(default_factory=list)
    replays: int = 0
    replays_probed: int = 0
    logged_replays: list[GraphReplay] = field(default_factory=list)
    """Probed replays, each of which has a line in the log, in their order."""
    times: list[GraphTimed] = field(default_factory=list)
    reason: Reason | None = None
    """Reason why its replays, or the last one that was due, are not probed; None where they are."""
    versions: int = 1
    """Number of times that its nodes were logged: once, and again after each change of them."""
    is_destroyed: bool = False
    _sums: dict[bool, tuple[float, float]] = field(default_factory=dict)
    """Weighted sum of the times of replays, and sum of the weights, by whether these were probed."""

    @property
    def kernels(self) -> list[GraphNode]:
        """The nodes of kernels, as they are numbered in each replay."""
        return [node for node in self.nodes if node.kernel is not None]

    @property
    def calls(self) -> Counter[int]:
        """The number of launches of each kernel in one replay, by index."""
        return Counter(node.kernel for node in self.nodes if node.kernel is not None)

    def add_time(self, event: GraphTimed) -> None:
        """Add the time of a replay."""
        if len(self.times) < _MAX_TIMES:
            self.times.append(event)
            ns, weight = self._sums.get(event.is_probed, (0.0, 0.0))
            self._sums[event.is_probed] = ns + event.ns * event.weight, weight + event.weight

    def mean_ns(self, *, probed: bool) -> float | None:
        """Mean time of a replay; None where none was timed."""
        ns, weight = self._sums.get(probed, (0.0, 0.0))
        return ns / weight if weight else None

    @property
    def total_ns(self) -> float | None:
        """Time of all replays, as if none had been probed where others were timed; None where none was."""
        mean = self.mean_ns(probed=False)
        mean = self.mean_ns(probed=True) if mean is None else mean
        return None if mean is None else mean * self.replays

    def untimed_ns(self, mean_times: Mapping[int, float]) -> float:
        """Time of all replays less that of the kernels whose mean time of a launch is given, by index.

        0 where no kernel is without: what is left then are other nodes and gaps.
        """
        if self.calls.keys() <= mean_times.keys():
            return 0.0
        timed_ns = self.replays * sum(count * mean_times.get(kernel, 0.0) for kernel, count in self.calls.items())
        return max((self.total_ns or 0.0) - timed_ns, 0.0)

    @property
    def call_ns(self) -> float | None:
        """Median time on the host of the calls that launch the program's own executable."""
        calls = sorted(time.call_ns for time in self.times if not time.is_probed)
        return float(calls[len(calls) // 2]) if calls else None


@dataclass(frozen=True, slots=True)
class GraphPosition:
    """Position of a launch: node ``node`` of a graph, in one replay of it."""

    graph: int
    replay: int
    node: int


class GraphTable:
    """The graphs of a process, in the order in which they were instantiated."""

    def __init__(self) -> None:
        self._by_id: dict[int, Graph] = {}
        self.changes = 0
        """Number of log lines about any of them."""
        self._first_launches: list[int] = []
        self._replays: list[GraphReplay] = []

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Graph]:
        return iter([self._by_id[key] for key in sorted(self._by_id)])

    def get(self, graph: int) -> Graph | None:
        return self._by_id.get(graph)

    def _graph(self, graph: int) -> Graph:
        """Return the graph of a log line; it may be new."""
        self.changes += 1
        return self._by_id.setdefault(graph, Graph(graph))

    def record_instantiation(self, event: GraphInstantiated) -> None:
        graph = self._graph(event.graph)
        graph.versions += bool(graph.nodes)
        graph.nodes, graph.flags, graph.reason = [], event.flags, None

    def record_node(self, event: GraphNode) -> None:
        """Nodes come in their order; in a damaged log one that does not is left out."""
        graph = self._graph(event.graph)
        if event.index == len(graph.nodes) < _MAX_NODES:
            graph.nodes.append(event)

    def count_replays(self, graph: int, count: int) -> Mapping[int, int]:
        """Count replays without lines of their own; how many launches of each kernel they are."""
        entry = self._graph(graph)
        entry.replays += count
        return {kernel: calls * count for kernel, calls in entry.calls.items()}

    def record_replay(self, event: GraphReplay) -> Mapping[int, int]:
        """Count a probed replay; how many launches of each kernel have no lines of their own."""
        graph = self._graph(event.graph)
        graph.replays += 1
        graph.replays_probed += 1
        graph.reason = None
        if len(self._replays) < _MAX_REPLAYS and (
            not self._first_launches or event.first_launch > self._first_launches[-1]
        ):
            graph.logged_replays.append(event)
            self._first_launches.append(event.first_launch)
            self._replays.append(event)
        unprobed = graph.calls
        unprobed.subtract(dict(event.probed_counts))
        return {kernel: count for kernel, count in unprobed.items() if count > 0}

    def record_time(self, event: GraphTimed) -> None:
        self._graph(event.graph).add_time(event)

    def record_change(self, event: GraphChanged) -> None:
        graph = self._graph(event.graph)
        graph.is_destroyed |= event.change == "destroyed"
        if event.reason is not None:
            graph.reason = event.reason

    def position_of(self, number: int) -> GraphPosition | None:
        """The node that a launch was of; None if it was of no probed replay."""
        place = bisect_right(self._first_launches, number) - 1
        if place < 0 or number >= self._first_launches[place] + self._replays[place].count:
            return None
        replay = self._replays[place]
        kernels = self._by_id[replay.graph].kernels
        ordinal = number - replay.first_launch
        if ordinal >= len(kernels):
            return None
        return GraphPosition(replay.graph, replay.replay, kernels[ordinal].index)
