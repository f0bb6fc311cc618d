"""The kernels of traces as points of a roofline: bytes, operations and times, whichever probe measured them."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from tui_probe.analysis.machine import machine_of
from tui_probe.analysis.roofline import Point, Roof
from tui_probe.pages.limits import limited_by, limited_words, means
from tui_probe.probekit.measured import all_measured
from tui_probe.probekit.quantities import measured_with, measuring_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tui_probe.bandwidth.figures import Bandwidth
    from tui_probe.pages.limits import Counters
    from tui_probe.probekit.measured import Measured
    from tui_probe.trace.model import Kernel, Trace

_FLOATING = ("fp32 operations", "fp64 operations", "fp16 operations")


def points(
    traces: Iterable[Trace],
    bandwidth: Bandwidth | float | None = None,
    counters: Callable[[Kernel], Counters | None] = lambda _: None,
) -> list[Point]:
    """One point per kernel that any of the traces has bytes or operations of, in the order in which they first come.

    ``bandwidth`` is what was measured of the machine, ``counters`` what Nsight Compute counted of a kernel.
    """
    found: dict[str, list[Kernel]] = {}
    for trace in traces:
        for kernel in trace.kernels:
            found.setdefault(kernel.name, []).append(kernel)
    return [
        point for kernels in found.values() if (point := _point(kernels, bandwidth, counters(kernels[0]))) is not None
    ]


def roof_of(traces: Sequence[Trace], bandwidth: Bandwidth | float | None, peak: float | None) -> Roof:
    """The limits of the first device that the traces tell of; as measured or given, else by its data sheet."""
    device = next((trace.state.device for trace in traces if trace.state.device), None)
    known = None if isinstance(bandwidth, float) else bandwidth
    machine = None if device is None else machine_of(device, known)
    rate = bandwidth if isinstance(bandwidth, float) else None if machine is None else machine.memory
    if machine is None:
        return Roof(peak, rate)
    return Roof(peak or machine.tensor, rate, None if machine.fp32 is None else machine.fp32 * 64)


def _point(kernels: Sequence[Kernel], bandwidth: Bandwidth | float | None, counters: Counters | None) -> Point | None:
    results = list(chain.from_iterable(_whole(kernel) for kernel in kernels))
    found = means(results)
    limited = limited_by(results, kernels, bandwidth, counters)
    read, written = found.get("bytes read"), found.get("bytes written")
    sizes = None if read is None or written is None else read + written
    operations = _operations(found)
    if sizes is None and operations is None and limited is None:
        return None
    seconds = None if limited is None else limited.demand.seconds
    problem = _problem(kernels, sizes, operations, seconds)
    first = kernels[0]
    return Point(
        first.name, first.demangled, sizes, operations, seconds, problem, (first.trace.directory, first.index),
        None if limited is None else limited.verdict,
        () if limited is None else limited_words(limited),
        None if limited is None else limited.limit,
    )  # fmt: skip


def _operations(found: Mapping[str, float]) -> float | None:
    """Those of matrix instructions, where there are any; else the others, as far as they were counted."""
    tensor = found.get("tensor operations")
    if tensor or not any(each in found for each in _FLOATING):
        return tensor
    return sum(found.get(each, 0.0) for each in _FLOATING)


def _problem(
    kernels: Sequence[Kernel], sizes: float | None, operations: float | None, seconds: float | None
) -> str | None:
    both = measuring_all(("bytes read", "tensor operations"))
    lacking = [
        words
        for words, value in (
            (f"bytes ({measured_with('bytes read') if both is None else f'-p {both}'})", sizes),
            (f"operations ({measured_with('tensor operations') if both is None else f'-p {both}'})", operations),
            ("time (--benchmark)", seconds),
        )
        if value is None
    ]
    problem = f"not measured: {', '.join(lacking)}" if lacking else None
    if any(kernel.grid_varies for kernel in kernels):
        problem = "launched with several grids: means over all of them" + (f"; {problem}" if problem else "")
    return problem


def _whole(kernel: Kernel) -> Iterator[Measured]:
    """The results that can be read and are not of a sample of blocks."""
    found = all_measured(kernel.trace, kernel)
    return (result for result in found if result.analysis is not None and result.sample is None)
