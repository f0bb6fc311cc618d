"""What event.log tells of CUDA graphs, line by line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from tui_probe.reasons import Reason
    from tui_probe.trace.shapes import Shape

Told: TypeAlias = Literal["untwinned", "passed", "given back", "destroyed"]


@dataclass(frozen=True, slots=True)
class GraphMade:
    """An executable, whose nodes follow: when it is made, and again when they have become others."""

    graph: int
    nodes: int
    kernels: int
    flags: int


@dataclass(frozen=True, slots=True)
class GraphNodeTold:
    """A node, by its index. ``parent`` is the node of the child graph that it is in, ``after`` those it waits for;
    ``captured`` the number of the launch that it was captured from."""

    graph: int
    index: int
    kind: str
    parent: int | None
    after: tuple[int, ...]
    bytes: int | None = None
    kernel: int | None = None
    shape: Shape | None = None
    captured: int | None = None


@dataclass(frozen=True, slots=True)
class GraphReplayed:
    """So many replays that have no line of their own."""

    graph: int
    count: int


@dataclass(frozen=True, slots=True)
class GraphReplay:
    """A probed replay. Its kernels are the launches ``first`` to ``first + count - 1``; ``probed`` says how many of
    each kernel have lines of their own, as probed launches."""

    graph: int
    replay: int
    time_ns: int
    first: int
    count: int
    probed: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class GraphTimed:
    """The time of a replay, between events before and behind it; ``weight`` replays are stood for. ``call_ns`` is what
    the call took that launched; ``idle``: the device had nothing to do before that."""

    graph: int
    replay: int
    probed: bool
    ns: int
    weight: int
    call_ns: int
    idle: bool


@dataclass(frozen=True, slots=True)
class GraphTold:
    """What became of an executable's twin, or of itself."""

    graph: int
    what: Told
    reason: Reason | None = None


GraphEvent: TypeAlias = GraphMade | GraphNodeTold | GraphReplayed | GraphReplay | GraphTimed | GraphTold
