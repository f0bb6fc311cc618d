"""The numbers of a launch's accesses to shared memory."""

from __future__ import annotations

from typing import Final

from tui_probe.probekit.metric import Metric, by_line, never

METRICS: Final = (
    Metric("accesses", "accesses"),
    Metric("passes_per_access", "passes per access", better="lower", over_launches="mean"),
    Metric("conflicts", "conflicts", "passes", better="lower"),
    Metric("degree", "conflict degree", better="lower", over_launches="mean"),
    Metric("passes", "passes", better="lower", shown=never),
)
BY_LINE: Final = by_line(METRICS, "highest degree")
