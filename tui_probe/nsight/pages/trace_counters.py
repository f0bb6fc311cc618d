"""Kernels of traces and of ncu side by side: probe counts in the form of ncu, ncu counters by kernel."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.nsight.analysis.critical import matrix_types_of
from tui_probe.nsight.analysis.kernel_groups import Shape, function_name
from tui_probe.nsight.analysis.kernel_metrics import KernelMetrics
from tui_probe.nsight.analysis.launch_means import level_bytes
from tui_probe.probekit.measured import analyse_results, mean_quantities
from tui_probe.verdicts.limiter import NcuBytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.ncu_table import NcuTable
    from tui_probe.probekit.measured import AnalysedResult
    from tui_probe.trace.model import Kernel, Trace

_SECTORS: Final = ("load requests", "load sectors", "store requests", "store sectors")
_ARITHMETIC: Final = ("fp32", "fp64", "fp16", "bf16")


def metrics_of_traces(traces: Iterable[Trace]) -> list[KernelMetrics]:
    """The kernels of traces, by name, grid and block; traces of several probes complete each other."""
    metrics_by_shape: dict[Shape, KernelMetrics] = {}
    for trace in traces:
        for metrics in _kernel_metrics(trace):
            earlier = metrics_by_shape.get(metrics.shape)
            metrics_by_shape[metrics.shape] = metrics if earlier is None else _merge_metrics(earlier, metrics)
    return _with_shares(list(metrics_by_shape.values()))


def _kernel_metrics(trace: Trace) -> Iterator[KernelMetrics]:
    for kernel in trace.kernels:
        groups: dict[Shape, list[AnalysedResult]] = {}
        for result in analyse_results(trace, kernel):
            if result.analysis is not None and not result.threads_missing and result.sample is None:
                groups.setdefault(_shape(kernel, result), []).append(result)
        for shape, results in groups.items():
            yield _mean_results(trace, kernel, shape, results)


def _shape(kernel: Kernel, result: AnalysedResult) -> Shape:
    launch = result.launch
    return Shape(kernel.demangled, None, None) if launch is None else Shape(kernel.demangled, launch.grid, launch.block)


def _mean_results(trace: Trace, kernel: Kernel, shape: Shape, results: Sequence[AnalysedResult]) -> KernelMetrics:
    """The means of results of one probe."""
    mean_of = mean_quantities(results)
    fields: dict[str, Any] = {name.replace(" ", "_"): mean_of.get(name) for name in _SECTORS}
    fields["tensor_operations"] = mean_of.get("tensor operations")
    if fields["tensor_operations"]:
        fields["matrix_types"] = matrix_types_of(kernel.folder)
    fields["time"] = None if kernel.time_ms is None else kernel.time_ms * 1e6
    instructions = {name: mean_of.get(f"{name} instructions") for name in _ARITHMETIC}
    fields["arithmetic"] = {name: mean for name, mean in instructions.items() if mean is not None}
    if "bytes read" in mean_of and "bytes written" in mean_of:
        fields["requested_bytes"] = mean_of["bytes read"] + mean_of["bytes written"]
    return KernelMetrics(shape, "probes", str(trace.directory), len(results), **fields)


def _merge_metrics(metrics: KernelMetrics, added: KernelMetrics) -> KernelMetrics:
    """Return the values that either has, the first one's where both have one."""
    missing = {
        name: getattr(added, name)
        for name in KernelMetrics.__slots__
        if getattr(metrics, name) in (None, {}) and getattr(added, name) not in (None, {})
    }
    return replace(metrics, **missing)


def _with_shares(kernels: list[KernelMetrics]) -> list[KernelMetrics]:
    """Parts of the time, where that of every kernel was measured (``--benchmark``)."""
    times = [kernel.time * kernel.launches for kernel in kernels if kernel.time is not None]
    if len(times) < len(kernels):
        return kernels
    total = sum(times)
    return [replace(kernel, share=_ratio(time, total)) for kernel, time in zip(kernels, times, strict=True)]


def _ratio(part: float, total: float) -> float | None:
    return part / total if total else None


def counters_of(table: NcuTable) -> Callable[[Kernel], NcuBytes | None]:
    """Return a function from a kernel of a trace to the table's bytes of the same kernel, by its name or its function.

    Bytes are means over launches; None where the table does not have the kernel.
    """
    dram, l2 = (level_bytes(table, level).values for level in ("dram", "l2"))
    launches: defaultdict[str, list[int]] = defaultdict(list)
    for position, launch in enumerate(table.launches):
        for name in {launch.kernel, function_name(launch.kernel)}:
            launches[name].append(position)

    def kernel_counters(kernel: Kernel) -> NcuBytes | None:
        names = (kernel.name, kernel.demangled, function_name(kernel.demangled))
        rows = next((launches[name] for name in names if name in launches), [])
        bytes_ = NcuBytes(_mean_counter(dram, rows), _mean_counter(l2, rows))
        return None if bytes_ == NcuBytes() else bytes_

    return kernel_counters


def _mean_counter(values: NDArray[np.float64], rows: Sequence[int]) -> float | None:
    row_values = values[list(rows)]
    row_values = row_values[~np.isnan(row_values)]
    return float(row_values.mean()) if len(row_values) else None
