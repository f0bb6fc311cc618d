"""The amounts that a verdict is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.metric import Metric, where_any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.probekit.metric import Better, Quantity

    from .analysis import Asked


def _sum(name: str, title: str, quantity: Quantity = "", better: Better = "neither") -> Metric:
    return Metric(name, title, better=better, quantity=quantity, read=_reader(name), shown=where_any)


def _reader(name: str) -> Callable[[Asked], int]:
    return lambda found: found.sums[name]


METRICS: Final = (
    Metric("read", "read", "B", better="lower", quantity="bytes read"),
    Metric("written", "written", "B", better="lower", quantity="bytes written"),
    Metric("sectors", "sectors", better="lower", quantity="sectors"),
    _sum("load_requests", "load requests", better="lower"),
    _sum("load_sectors", "load sectors", better="lower"),
    _sum("store_requests", "store requests", better="lower"),
    _sum("store_sectors", "store sectors", better="lower"),
    _sum("atomic_requests", "atomic requests", better="lower"),
    _sum("atomic_sectors", "atomic sectors", better="lower"),
    Metric("shared_requests", "shared requests", better="lower", quantity="shared requests", shown=where_any),
    Metric("tensor_operations", "tensor operations", quantity="tensor operations", shown=where_any),
    Metric("tensor_as_half", "as half", quantity="tensor operations as half", shown=where_any),
    Metric("wgmma", "wgmma", quantity="wgmma instructions", shown=where_any),
    _sum("fp32_operations", "fp32 operations", "fp32 operations"),
    _sum("fp64_operations", "fp64 operations", "fp64 operations"),
    _sum("half_operations", "fp16 operations", "fp16 operations"),
    _sum("fp32_instructions", "fp32 instructions", "fp32 instructions"),
    _sum("fp64_instructions", "fp64 instructions", "fp64 instructions"),
    _sum("half_instructions", "fp16 instructions", "half instructions"),
    _sum("memory_instructions", "memory instructions", "memory instructions"),
    _sum("instructions", "instructions", "instructions", "lower"),
    Metric("unsized", "copies by tensor map", read=_reader("unsized"), shown=where_any),
)
