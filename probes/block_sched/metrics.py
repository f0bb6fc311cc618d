"""The numbers of a launch's block schedule: cycles are means over the slots of an SM, and over SMs."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from tui_probe.analysis.slots import PARTS
from tui_probe.probekit.metric import Metric, where_any

_LEFT_OUT: Final = (
    ("warps_missing", "warps without a record"),
    ("blocks_missing", "blocks without a record"),
    ("blocks_astray", "blocks that changed SM"),
)


def _cycles(name: str) -> Metric:
    read = attrgetter(name)
    alone = f"{PARTS[name]} cycles"
    return Metric(f"{name}_cycles", PARTS[name], "cycles", "lower", "mean", read=read, alone=alone)


METRICS: Final = (
    *map(_cycles, PARTS),
    Metric(
        "span_cycles",
        "span",
        "cycles",
        better="lower",
        over_launches="mean",
        quantity="launch cycles",
        read=attrgetter("span"),
    ),
    *(Metric(key, words, shown=where_any) for key, words in _LEFT_OUT),
)
