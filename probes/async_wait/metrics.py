"""The numbers of a launch's waits for asynchronous work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.metric import Metric, by_line, where_known

from .analysis import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from .analysis import AsyncWaits

_TITLES: Final = {
    "mbarrier": "at mbarriers",
    "bulk": "for bulk copies",
    "cp_async": "for cp.async",
    "wgmma": "for wgmma",
}


def _waited_for(kind: str) -> Callable[[AsyncWaits], int | None]:
    return lambda found: found.by_kind.get(kind)


_WHOLE: Final = (
    Metric("waits", "waits"),
    Metric("cycles_per_wait", "cycles per wait", better="lower", over_launches="mean", clocked=True),
    Metric("waited", "waited", "cycles", better="lower"),
    *(
        Metric(f"waited_{kind}", _TITLES[kind], "cycles", better="lower", read=_waited_for(kind), shown=where_known)
        for kind in KINDS.values()
    ),
)
METRICS: Final = by_line(_WHOLE, "most cycles")
