"""The instruction with most idle lanes, and all branches and accesses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.finding import Finding, place
from tui_probe.trace.result_layout import WARP_SIZE

from .analysis import executions_and_lanes, lanes_per_execution

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.analysis.by_line import CountsByLine, LineSums
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import Divergence

_MUCH: Final = 0.1
"""The part of all lanes from which on idle ones stand out."""


def findings(of: ProbeResult, found: Divergence) -> Iterator[Finding]:
    """How many lanes are active."""
    del of
    yield _lanes(found, "divergence")


def findings_by_line(of: ProbeResult, found: CountsByLine[Divergence]) -> Iterator[Finding]:
    """The worst line, then all."""
    del of
    whole = found.whole
    worst = max(found.lines, key=_idle, default=None)
    if worst is not None and _idle(worst):
        everything = WARP_SIZE * (whole.branches + whole.accesses)
        words = f"{place(worst.line, worst.source, worst.opcode)}, {lanes_per_execution(worst) or 0:.1f} of "
        words += f"{WARP_SIZE} lanes active"
        values = {"lanes_per_execution": lanes_per_execution(worst), "idle_lanes": _idle(worst)}
        much = _idle(worst) > _MUCH * everything
        yield Finding("worst_line", "most idle lanes", words, "lines", worst.line, much, values=values)
    yield _lanes(whole, "")


def _idle(line: LineSums) -> int:
    executions, lanes = executions_and_lanes(line)
    return WARP_SIZE * executions - lanes


def _lanes(found: Divergence, asks: str) -> Finding:
    means = (("per branch", found.lanes_per_branch), ("per access", found.lanes_per_access))
    parts = [f"{mean:.1f} of {WARP_SIZE} {words}" for words, mean in means if mean is not None]
    executions, lanes = found.branches + found.accesses, found.branch_lanes + found.access_lanes
    much = lanes < (1 - _MUCH) * WARP_SIZE * executions
    asks = asks if lanes < WARP_SIZE * executions else ""
    values = {"lanes_per_branch": found.lanes_per_branch, "lanes_per_access": found.lanes_per_access}
    words = ", ".join(parts) or "no branch and no access was executed"
    return Finding("lanes", "active lanes", words, stands_out=much, asks=asks, values=values)
