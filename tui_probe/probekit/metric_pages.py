"""On which page of a kernel a number of a probe's is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_probe.probekit.metric import Metric
    from tui_probe.probekit.probe import Probe


def pages_of_metric(probe: Probe, metric: Metric) -> tuple[str, ...]:
    """The pages that show it, the best one first: the one that it names; of time the drawings, of counts the lines.

    In the end the launches, each of which has its numbers there.
    """
    named = [metric.page] if metric.page else []
    lines = ["lines"] if probe.lines is not None else []
    drawn = [kind.name for kind in probe.views]
    drawn += ["timeline"] if probe.timeline is not None else []
    drawn += ["latency"] if probe.waits is not None else []
    both = [*drawn, *lines] if metric.is_time else [*lines, *drawn]
    return tuple(dict.fromkeys([*named, *both, "launches"]))
