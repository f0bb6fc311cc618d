"""The kernels of traces as points of a roofline: bytes, operations and times, whichever probe measured them."""

from __future__ import annotations

from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING

from tui_probe.analysis.roofline import Point
from tui_probe.probekit.measured import all_measured
from tui_probe.probekit.quantities import measured_with

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.probekit.measured import Measured
    from tui_probe.probekit.metric import Quantity
    from tui_probe.trace.model import Kernel, Trace


def points(traces: Iterable[Trace]) -> list[Point]:
    """One point per kernel that any of the traces has bytes or operations of, in the order in which they first come."""
    found: dict[str, list[Kernel]] = {}
    for trace in traces:
        for kernel in trace.kernels:
            found.setdefault(kernel.name, []).append(kernel)
    return [point for kernels in found.values() if (point := _point(kernels)) is not None]


def _point(kernels: Sequence[Kernel]) -> Point | None:
    results = list(chain.from_iterable(_whole(kernel) for kernel in kernels))
    read, written = _means(results, "bytes read"), _means(results, "bytes written")
    sizes = None if read is None or written is None else read + written
    operations = _means(results, "tensor operations")
    if sizes is None and operations is None:
        return None
    milliseconds = [kernel.time_ms for kernel in kernels if kernel.time_ms is not None]
    seconds = fmean(milliseconds) / 1e3 if milliseconds else None
    lacking = [
        words
        for words, value in (
            (f"bytes ({measured_with('bytes read')})", sizes),
            (f"operations ({measured_with('tensor operations')})", operations),
            ("time (--benchmark)", seconds),
        )
        if value is None
    ]
    problem = f"not measured: {', '.join(lacking)}" if lacking else None
    if any(kernel.grid_varies for kernel in kernels):
        problem = "launched with several grids: means over all of them" + (f"; {problem}" if problem else "")
    first = kernels[0]
    place = (first.trace.directory, first.index)
    return Point(first.name, first.demangled, sizes, operations, seconds, problem, place)


def _whole(kernel: Kernel) -> Iterator[Measured]:
    """The results that can be read and are not of a sample of blocks."""
    found = all_measured(kernel.trace, kernel)
    return (result for result in found if result.analysis is not None and result.sample is None)


def _means(results: Iterable[Measured], quantity: Quantity) -> float | None:
    """The mean over the launches of which it is known."""
    figures = chain.from_iterable(result.figures for result in results)
    values = [each.value for each in figures if each.metric.quantity == quantity and each.value is not None]
    return fmean(values) if values else None
