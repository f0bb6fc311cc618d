"""The numbers of a launch's barrier waits."""

from __future__ import annotations

from typing import Final

from tui_probe.probekit.metric import Metric, by_line, where_known

METRICS: Final = (
    Metric("barriers", "barriers"),
    Metric("cycles_per_barrier", "cycles per barrier", better="lower", over_launches="mean", clocked=True),
    Metric("waited", "waited", "cycles", better="lower"),
    Metric("longest", "most of a warp", "cycles", better="lower", over_launches="largest", shown=where_known),
)
BY_LINE: Final = by_line(METRICS, "most cycles")
