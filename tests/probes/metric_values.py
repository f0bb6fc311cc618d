"""The values of an analysis, as the probe of that name declares them."""

from __future__ import annotations

from typing import Any

from tui_probe.probekit.metric import MetricValue
from tui_probe.probekit.registry import probe_named


def figures_in(name: str, analysis: Any) -> tuple[MetricValue, ...]:
    """Of a probe that is known."""
    probe = probe_named(name)
    assert probe is not None
    return probe.metric_values_of(analysis)
