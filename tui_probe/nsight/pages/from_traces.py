"""Figures of kernels from traces of ours: what counting probes found, in the form of those from ncu."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tui_probe.nsight.analysis.kernel_figures import KernelFigures
from tui_probe.nsight.analysis.launch_groups import Shape
from tui_probe.nsight.analysis.matrix_types import matrix_types_of
from tui_probe.probekit.measured import all_measured
from tui_probe.probekit.quantities import mean_quantities

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.probekit.measured import Measured
    from tui_probe.trace.model import Kernel, Trace

_SECTORS: Final = ("load requests", "load sectors", "store requests", "store sectors")
_ARITHMETIC: Final = ("fp32", "fp64", "fp16", "bf16")


def figures_of_traces(traces: Iterable[Trace]) -> list[KernelFigures]:
    """The kernels of traces, by name, grid and block; traces of several probes complete each other."""
    merged: dict[Shape, KernelFigures] = {}
    for trace in traces:
        for figures in _figures(trace):
            before = merged.get(figures.shape)
            merged[figures.shape] = figures if before is None else _completed(before, figures)
    return _with_shares(list(merged.values()))


def _figures(trace: Trace) -> Iterator[KernelFigures]:
    for kernel in trace.kernels:
        groups: dict[Shape, list[Measured]] = {}
        for result in all_measured(trace, kernel):
            if result.analysis is not None and not result.threads_missing and result.sample is None:
                groups.setdefault(_shape(kernel, result), []).append(result)
        for shape, results in groups.items():
            yield _mean(trace, kernel, shape, results)


def _shape(kernel: Kernel, result: Measured) -> Shape:
    launch = result.launch
    return Shape(kernel.demangled, None, None) if launch is None else Shape(kernel.demangled, launch.grid, launch.block)


def _mean(trace: Trace, kernel: Kernel, shape: Shape, results: Sequence[Measured]) -> KernelFigures:
    """The means of results of one probe."""
    means = mean_quantities(results)
    fields: dict[str, Any] = {name.replace(" ", "_"): means.get(name) for name in _SECTORS}
    fields["tensor_operations"] = means.get("tensor operations")
    if fields["tensor_operations"]:
        fields["matrix_types"] = matrix_types_of(kernel.folder)
    fields["time"] = None if kernel.time_ms is None else kernel.time_ms * 1e6
    counted = {name: means.get(f"{name} instructions") for name in _ARITHMETIC}
    fields["arithmetic"] = {name: mean for name, mean in counted.items() if mean is not None}
    if "bytes read" in means and "bytes written" in means:
        fields["requested_bytes"] = means["bytes read"] + means["bytes written"]
    return KernelFigures(shape, "probes", str(trace.directory), len(results), **fields)


def _completed(first: KernelFigures, second: KernelFigures) -> KernelFigures:
    """What either knows, the first where both do."""
    lacking = {
        name: getattr(second, name)
        for name in KernelFigures.__slots__
        if getattr(first, name) in (None, {}) and getattr(second, name) not in (None, {})
    }
    return replace(first, **lacking)


def _with_shares(kernels: list[KernelFigures]) -> list[KernelFigures]:
    """Parts of the time, where that of every kernel was measured (``--benchmark``)."""
    times = [kernel.time * kernel.launches for kernel in kernels if kernel.time is not None]
    if len(times) < len(kernels):
        return kernels
    whole = sum(times)
    return [replace(kernel, share=_ratio(time, whole)) for kernel, time in zip(kernels, times, strict=True)]


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
