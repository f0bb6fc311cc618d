"""When the nodes of a replay ran, where the probe in them read %globaltimer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.errors import TraceError
from tui_probe.probekit import probe_results
from tui_probe.probekit.measured import probe_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tui_probe.probekit.probe import Stamps
    from tui_probe.trace.graph_events import GraphReplay
    from tui_probe.trace.graphs import Graph
    from tui_probe.trace.model import Trace


@dataclass(frozen=True, slots=True)
class Ran:
    """Seconds since the first node of the replay that was stamped. ``end`` is None where the probe tells the start
    alone."""

    begin: float
    end: float | None


def ran(trace: Trace, graph: Graph) -> Mapping[int, Ran]:
    """The nodes of the newest probed replay that were stamped, by their index; none on a simulated GPU."""
    if trace.state.simulated or not _is_stamped(trace, graph):
        return {}
    for replay in reversed(graph.replays_told):
        found = dict(_stamps(trace, graph, replay))
        if found:
            first = min(stamps.begin_ns for stamps in found.values())
            return {index: _since(first, stamps) for index, stamps in found.items()}
    return {}


def _is_stamped(trace: Trace, graph: Graph) -> bool:
    """Whether any of its kernels has a probe that reads the timer."""
    kernels = (trace.kernels.get(index) for index in graph.calls)
    probes = (probe_of(kernel.with_probe(name)) for kernel in kernels if kernel for name in kernel.probings or (None,))
    return any(probe.stamps is not None for probe in probes)


def _stamps(trace: Trace, graph: Graph, replay: GraphReplay) -> Iterator[tuple[int, Stamps]]:
    for ordinal, node in enumerate(graph.kernels[: replay.count]):
        launch = trace.launches.row_of(replay.first + ordinal)
        result = None if launch is None else trace.launches[launch].result
        kernel = None if node.kernel is None else trace.kernels.get(node.kernel)
        if result is None or kernel is None:
            continue
        kernel = kernel.with_probe(trace.results.probe(result))
        probe = probe_of(kernel)
        if probe.stamps is None:
            continue
        try:
            yield node.index, probe.stamps(probe_results.read_row(trace, kernel, result))
        except TraceError:
            continue  # its page says what is wrong with the file


def _since(first: int, stamps: Stamps) -> Ran:
    end = stamps.end_ns
    return Ran((stamps.begin_ns - first) / 1e9, None if end is None else (end - first) / 1e9)
