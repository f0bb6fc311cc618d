"""The numbers of a launch's matrix instructions."""

from __future__ import annotations

from typing import Final

from tui_probe.probekit.metric import Metric, by_line, where_any

METRICS: Final = (
    Metric("operations", "operations", quantity="tensor operations"),
    Metric("multiply_adds", "multiply-adds"),
    Metric("mma", "mma", shown=where_any),
    Metric("wmma", "wmma", shown=where_any),
    Metric("wgmma", "wgmma", shown=where_any),
)
BY_LINE: Final = by_line(METRICS, "most multiply-adds")
