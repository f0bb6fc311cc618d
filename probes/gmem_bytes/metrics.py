"""The numbers of a launch's traffic with global memory, in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.probekit.metric import Metric, by_line, where_any

if TYPE_CHECKING:
    from .analysis import MemoryBytes


def _parts_of_read(found: MemoryBytes, value: Any) -> bool:
    return bool(value) and found.read != found.loaded


def _parts_of_written(found: MemoryBytes, value: Any) -> bool:
    return bool(value) and found.written != found.stored


METRICS: Final = (
    Metric("read", "read", "B", better="lower", quantity="bytes read"),
    Metric("written", "written", "B", better="lower", quantity="bytes written"),
    Metric("loaded", "by loads", "B", better="lower", shown=_parts_of_read),
    Metric("stored", "by stores", "B", better="lower", shown=_parts_of_written),
    Metric("copied", "by cp.async", "B", better="lower", shown=where_any),
    Metric("bulk_loaded", "by bulk loads", "B", better="lower", shown=where_any),
    Metric("bulk_stored", "by bulk stores", "B", better="lower", shown=where_any),
    Metric("tensor_loads", "tensor-map loads", shown=where_any),
    Metric("tensor_stores", "tensor-map stores", shown=where_any),
)
BY_LINE: Final = by_line(METRICS, "most bytes")
