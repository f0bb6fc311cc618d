"""The numbers of a launch's requests to global memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.probekit.metric import Metric, by_line, never, where_any, where_known

if TYPE_CHECKING:
    from collections.abc import Callable

    from .analysis import MemorySectors


def _copies(found: MemorySectors, value: Any) -> bool:
    del value
    return found.copy_requests > 0


def _wasted(kind: str) -> Callable[[MemorySectors], float | None]:
    """Per cent of the sectors that nobody asked for."""

    def read(found: MemorySectors) -> float | None:
        share: float | None = getattr(found, f"wasted_of_{kind}")
        return None if share is None else 100 * share

    return read


METRICS: Final = (
    Metric("load_requests", "load requests", better="lower", quantity="load requests"),
    Metric("load_sectors", "load sectors", better="lower", quantity="load sectors"),
    Metric("sectors_per_load", "sectors per load", better="lower", over_launches="mean"),
    Metric("store_requests", "store requests", better="lower", quantity="store requests"),
    Metric("store_sectors", "store sectors", better="lower", quantity="store sectors"),
    Metric("sectors_per_store", "sectors per store", better="lower", over_launches="mean"),
    Metric("load_ideal", "of loads would do", better="neither", shown=never),
    Metric(
        "wasted_of_loads",
        "wasted of loads",
        "%",
        better="lower",
        over_launches="mean",
        read=_wasted("loads"),
        shown=where_known,
    ),
    Metric("store_ideal", "of stores would do", better="neither", shown=never),
    Metric(
        "wasted_of_stores",
        "wasted of stores",
        "%",
        better="lower",
        over_launches="mean",
        read=_wasted("stores"),
        shown=where_known,
    ),
    Metric("copy_requests", "requests of these by cp.async", better="lower", shown=_copies),
    Metric("copy_sectors", "sectors of these by cp.async", better="lower", shown=_copies),
    Metric("sectors_per_copy", "sectors per cp.async", better="lower", over_launches="mean", shown=_copies),
    Metric("matrix_accesses", "wmma loads and stores left out", shown=where_any),
    Metric("generic_accesses", "generic accesses of threads left out", shown=where_any),
)
BY_LINE: Final = by_line(METRICS, "most sectors per request")
