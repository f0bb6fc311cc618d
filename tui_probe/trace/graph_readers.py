"""How lines of CUDA graphs become records: ``[graph]``, ``[node]``, and times of replays."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tui_probe.trace.graph_events import (
    GraphMade,
    GraphNodeTold,
    GraphReplay,
    GraphReplayed,
    GraphTimed,
    GraphTold,
)
from tui_probe.trace.line_grammar import Pattern, maybe_int, reason_of, shape_of
from tui_probe.trace.text import text_of

if TYPE_CHECKING:
    from tui_probe.trace.event_types import Event
    from tui_probe.trace.graph_events import Told
    from tui_probe.trace.line_grammar import Match, Readers


def _graph_node(m: Match) -> Event:
    graph, index, kind, parent, after, size, kernel, shape, captured = m.groups()
    before = () if after == b"-" else tuple(int(one) for one in after.split(b","))
    return GraphNodeTold(
        int(graph), int(index), text_of(kind), maybe_int(parent), before, maybe_int(size), maybe_int(kernel),
        None if shape is None else shape_of(shape), maybe_int(captured),
    )  # fmt: skip


def _graph_replay(m: Match) -> Event:
    graph, replay, time_ns, first, count, probed = m.groups()
    pairs = [] if probed == b"-" else [pair.split(b"x") for pair in probed.split(b",")]
    kernels: Counter[int] = Counter()
    for kernel, times in pairs:
        kernels[int(kernel)] += int(times)
    return GraphReplay(int(graph), int(replay), int(time_ns), int(first), int(count), tuple(kernels.items()))


def _graph_told(m: Match) -> Event:
    graph, what, _, reason = m.groups()
    return GraphTold(int(graph), _GRAPH_TOLD[what], reason_of(reason))


_GRAPH_TOLD: Final[dict[bytes, Told]] = {
    b"untwinned": "untwinned", b"passed": "passed", b"twin given back": "given back", b"destroyed": "destroyed",
}  # fmt: skip

_GRAPH_NODE: Final = (
    r"{INDEX} {INDEX} ([a-z-]{1,20}) in {MAYBE} after (-|\d{1,9}(?:,\d{1,9})*)(?!\S)"
    r"(?: bytes {COUNT})?(?: kernel {INDEX} grid {SHAPE} captured {MAYBE})?"
)

_COUNTS: Final = r"(-|\d{1,9}x\d{1,9}(?:,\d{1,9}x\d{1,9})*)(?!\S)"

_GRAPH_REPLAY: Final = "{INDEX} replay {COUNT} time {NS} launch {COUNT} count {INDEX} probed " + _COUNTS

GRAPHS: Final[Readers] = {
    b"*": (
        (
            Pattern(r"{INDEX} executable \S+ nodes {INDEX} kernels {INDEX} flags {INDEX}"),
            lambda m: GraphMade(int(m[1]), int(m[2]), int(m[3]), int(m[4])),
        ),
        (Pattern("{INDEX} replayed {COUNT}"), lambda m: GraphReplayed(int(m[1]), int(m[2]))),
        (Pattern(_GRAPH_REPLAY), _graph_replay),
        (Pattern(r"{INDEX} (untwinned|passed|twin given back|destroyed)(?!\S)( reason (.*))?"), _graph_told),
    )
}

NODES: Final[Readers] = {b"*": ((Pattern(_GRAPH_NODE), _graph_node),)}

REPLAY_TIMES: Final[Readers] = {
    b"graph": (
        (
            Pattern("graph {INDEX} replay {COUNT} (probed|original) ns {COUNT} for {COUNT} call {COUNT}( idle)?"),
            lambda m: GraphTimed(
                int(m[1]), int(m[2]), m[3] == b"probed", int(m[4]), int(m[5]), int(m[6]), m[7] is not None
            ),
        ),
    ),
}
