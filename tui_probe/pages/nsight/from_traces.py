"""Figures of kernels from traces of ours: what counting probes found, in the form of those from ncu."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tui_probe.analysis.kernel_figures import KernelFigures
from tui_probe.analysis.launch_groups import Shape
from tui_probe.analysis.matrix_types import matrix_types_of
from tui_probe.probekit.counts import counted_results

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.probekit.counts import CountedResult
    from tui_probe.trace.model import Kernel, Trace

_SECTORS: Final = ("load_requests", "load_sectors", "store_requests", "store_sectors")
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
        groups: dict[Shape, list[CountedResult]] = {}
        for result in counted_results(trace, kernel):
            whole = result.counts is not None and not result.counts.threads_missing and result.sample is None
            if whole:
                groups.setdefault(_shape(kernel, result), []).append(result)
        for shape, results in groups.items():
            yield _mean(trace, kernel, shape, results)


def _shape(kernel: Kernel, result: CountedResult) -> Shape:
    launch = result.launch
    return Shape(kernel.demangled, None, None) if launch is None else Shape(kernel.demangled, launch.grid, launch.block)


def _mean(trace: Trace, kernel: Kernel, shape: Shape, results: Sequence[CountedResult]) -> KernelFigures:
    """The means of results of one probe."""
    sums: dict[str, float] = {}
    lacking: set[str] = set()
    for result in results:
        for figure in result.counts.figures() if result.counts is not None else ():
            if figure.value is None:
                lacking.add(figure.key)
            else:
                sums[figure.key] = sums.get(figure.key, 0) + figure.value
    means: dict[str, float] = {key: value / len(results) for key, value in sums.items() if key not in lacking}
    fields: dict[str, Any] = {name: means.get(name) for name in _SECTORS}
    fields["tensor_operations"] = means.get("operations")
    if fields["tensor_operations"]:
        fields["matrix_types"] = matrix_types_of(kernel.folder)
    fields["time"] = None if kernel.time_ms is None else kernel.time_ms * 1e6
    fields["arithmetic"] = {name: means[name] for name in _ARITHMETIC if name in means}
    if "read" in means and "written" in means:
        fields["requested_bytes"] = means["read"] + means["written"]
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
