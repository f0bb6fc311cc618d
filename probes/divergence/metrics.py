"""The numbers of a launch's divergence."""

from __future__ import annotations

from typing import Final

from tui_probe.probekit.metric import Metric, by_line, never

METRICS: Final = (
    Metric("branches", "branches"),
    Metric("lanes_per_branch", "lanes per branch", better="higher", over_launches="mean"),
    Metric("accesses", "accesses"),
    Metric("lanes_per_access", "lanes per access", better="higher", over_launches="mean"),
    Metric("branch_lanes", "lanes at branches", shown=never),
    Metric("access_lanes", "lanes at accesses", shown=never),
)
BY_LINE: Final = by_line(METRICS, "fewest lanes")
