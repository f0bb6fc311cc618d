"""Metrics of a kernel from any tool: means over its launches with one grid and block.

``metrics_of`` takes them from a table of Nsight Compute; traces of tui-probe give the same from their counting probes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from tui_probe.nsight.analysis.kernel_groups import Shape, shape_of
from tui_probe.nsight.analysis.launch_means import durations, level_bytes
from tui_probe.records.distribution import p99_position

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.ncu_table import NcuTable

MetricSource = Literal["ncu", "probes"]
TENSOR_ACTIVITY_METRICS: Final = (
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_elapsed",
)
MIN_TENSOR_ACTIVITY: Final = 5.0
"""Percent of the peak below which an active tensor pipe tells nothing: on an H200, kernels without any matrix
instruction (random numbers, softmax, a conversion to half precision) keep it busy 0.1 to 3.6 % of the time.
"""
COUNT_METRICS: Final = {
    "load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
}
"""Metrics that probes count too."""
_COMPUTE_METRICS: Final = ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "Compute (SM) Throughput")
_MEMORY_METRICS: Final = ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "Memory Throughput")
_ISSUE_METRIC: Final = "sm__inst_executed.avg.per_cycle_active"
_DRAM_METRIC: Final = "dram__bytes.sum.per_second"
_DRAM_CHANNEL_METRIC: Final = "dram__bytes.avg.per_second"
_TOLERANCE: Final = 0.5
"""Means of counts that differ by less are equal."""
_ARITHMETIC: Final = re.compile(r"sms?p?__sass_thread_inst_executed_op_([fdh])(?:fma|add|mul)_pred_on\.sum(.*)")
_TENSOR_SOURCE: Final = re.compile(r"sm__ops_path_tensor_src_(bf16|fp16|fp64|fp8|tf32|int8|int1)\w*\.sum")
_TYPE_NAMES: Final = {"f": "fp32", "d": "fp64", "h": "fp16"}


@dataclass(frozen=True, slots=True)
class KernelMetrics:
    """Means a launch; None was not measured.

    ``time`` is in ns, ``total`` that of all launches, ``p99`` what 99 of 100 of them do not exceed by the nearest rank
    (None for a summary, which has no single launches). ``share`` is the part of the time of all launches of the same
    origin that count; ``tensor_activity``, ``compute`` and ``memory`` are in % of the peak. ``arithmetic`` are
    instructions of threads (ncu) or warps (probes) by type, ``tensor_types`` operations of tensor cores by the type of
    their operands, ``matrix_types`` matrix instructions in the kernel's code likewise.
    """

    shape: Shape
    tool: MetricSource
    origin: str
    launches: int
    load_requests: float | None = None
    load_sectors: float | None = None
    store_requests: float | None = None
    store_sectors: float | None = None
    time: float | None = None
    total: float | None = None
    p99: float | None = None
    share: float | None = None
    counted_launches: int | None = None
    """Launches that count; None: all do."""
    counted_time: float | None = None
    """Time of the launches that count, in ns."""
    tensor_activity: float | None = None
    tensor_operations: float | None = None
    compute: float | None = None
    memory: float | None = None
    issued: float | None = None
    """Instructions that an SM executes per active cycle."""
    dram_bytes: float | None = None
    dram_throughput: float | None = None
    """Bytes/s of DRAM as it was collected."""
    dram_channel: float | None = None
    """Bytes/s of one channel of DRAM, a mean over the channels."""
    requested_bytes: float | None = None
    """Bytes that loads and stores asked for."""
    arithmetic: Mapping[str, float] = field(default_factory=dict)
    tensor_types: Mapping[str, float] = field(default_factory=dict)
    matrix_types: Mapping[str, float] = field(default_factory=dict)

    @property
    def sectors_per_load(self) -> float | None:
        return _ratio(self.load_sectors, self.load_requests)

    @property
    def sectors_per_store(self) -> float | None:
        return _ratio(self.store_sectors, self.store_requests)

    @property
    def dram_rate(self) -> float | None:
        """Bytes/s of DRAM, as collected or from its bytes and the time."""
        if self.dram_throughput is not None:
            return self.dram_throughput
        return _ratio(self.dram_bytes, None if self.time is None else self.time / 1e9)

    @property
    def tensor_work(self) -> float | None:
        """Work on tensor cores, to compare kernels: operations, or activity × time, of the launches that count."""
        launches = self.launches if self.counted_launches is None else self.counted_launches
        if self.tensor_operations is not None:
            return self.tensor_operations * launches
        if self.tensor_activity is None:
            return None
        return self.tensor_activity * (1.0 if self.time is None else self.time * launches)

    @property
    def uses_tensor_cores(self) -> bool | None:
        """True if matrix instructions ran; None if not measured. See ``LEAST_ACTIVITY``."""
        if self.tensor_operations is not None:
            return self.tensor_operations > 0
        return None if self.tensor_activity is None else self.tensor_activity >= MIN_TENSOR_ACTIVITY


def _ratio(part: float | None, total: float | None) -> float | None:
    return part / total if part is not None and total else None


def differing_counts(kernel: KernelMetrics, other_kernel: KernelMetrics) -> list[str] | None:
    """The requests and sectors in which two tools differ on a kernel; None where there is nothing to compare."""
    pairs = {name: (getattr(kernel, name), getattr(other_kernel, name)) for name in COUNT_METRICS}
    known_pairs = {name: pair for name, pair in pairs.items() if None not in pair}
    if not known_pairs:
        return None
    return [name for name, (count, other_count) in known_pairs.items() if abs(count - other_count) >= _TOLERANCE]


def _launches_by_shape(table: NcuTable) -> dict[tuple[int, Shape], list[int]]:
    """Return the positions of the launches of each file and shape."""
    groups: dict[tuple[int, Shape], list[int]] = {}
    for position, launch in enumerate(table.launches):
        groups.setdefault((launch.file, shape_of(table, position)), []).append(position)
    return groups


def metrics_of(table: NcuTable, counted: Collection[int] = ()) -> list[KernelMetrics]:
    """The kernels of a table, by file and shape, in the order of first launch.

    ``counted`` are positions of the launches that count; in a file that has none of them all do.
    """
    columns = _columns(table)
    times = durations(table)
    is_counted = _are_counted(table, counted)
    file_times = _file_times(table, np.where(is_counted, times, np.nan))
    partly_counted_files = {table.launches[launch].file for launch in np.flatnonzero(~is_counted).tolist()}
    arithmetic = _sums_by_type(table, _arithmetic_type)
    tensor_types = _sums_by_type(table, _tensor_type)
    metrics = []
    for (file, shape), launches in _launches_by_shape(table).items():
        positions = np.array(launches)
        weights = np.array([table.launches[launch].invocations or 1 for launch in launches], dtype=np.float64)
        means = {name: _mean(values[positions], weights) for name, values in columns.items()}
        metrics.append(
            KernelMetrics(
                shape,
                "ncu",
                table.files[file].name,
                int(weights.sum()),
                **means,
                **_times(times[positions], weights, is_counted[positions], file_times[file]),
                counted_launches=int(weights[is_counted[positions]].sum()) if file in partly_counted_files else None,
                arithmetic=_means_by_type(arithmetic, positions, weights),
                tensor_types=_means_by_type(tensor_types, positions, weights),
                matrix_types={},
            )
        )
    return metrics


def _times(
    times: NDArray[np.float64], weights: NDArray[np.float64], is_counted: NDArray[np.bool_], file_time: float | None
) -> dict[str, float | None]:
    """Return the times in ns of launches, which represent ``weights`` launches each; the share is of those that count
    of ``file_time``.
    """
    mean_time, counted_times = _mean(times, weights), times[is_counted] * weights[is_counted]
    counted_time = None if np.isnan(counted_times).all() else float(np.nansum(counted_times))
    return {
        "time": mean_time,
        "total": None if mean_time is None else float(np.nansum(times * weights)),
        "p99": _p99(times) if (weights == 1).all() else None,
        "share": _ratio(counted_time, file_time),
        "counted_time": counted_time,
    }


def _are_counted(table: NcuTable, counted: Collection[int]) -> NDArray[np.bool_]:
    """Return, per launch, whether it counts."""
    files = {table.launches[launch].file for launch in counted}
    is_counted = np.array([launch.file not in files for launch in table.launches], dtype=np.bool_)
    is_counted[list(counted)] = True
    return is_counted


def _columns(table: NcuTable) -> dict[str, NDArray[np.float64]]:
    columns = {name: table.column(metric) for name, metric in COUNT_METRICS.items()}
    columns["tensor_activity"] = _first_column(table, TENSOR_ACTIVITY_METRICS)
    columns["compute"] = _first_column(table, _COMPUTE_METRICS, "%")
    columns["memory"] = _first_column(table, _MEMORY_METRICS, "%")
    columns["issued"] = table.column(_ISSUE_METRIC)
    columns["dram_throughput"] = table.column(_DRAM_METRIC, unit="byte/s")
    columns["dram_channel"] = table.column(_DRAM_CHANNEL_METRIC, unit="byte/s")
    columns["dram_bytes"] = level_bytes(table, "dram").values
    return columns


def _first_column(table: NcuTable, names: tuple[str, ...], unit: str | None = None) -> NDArray[np.float64]:
    values = np.full(len(table.launches), np.nan)
    for name in names:
        values = np.where(np.isnan(values), table.column(name, unit=unit), values)
    return values


def _sums_by_type(table: NcuTable, type_of: Callable[[str], str | None]) -> dict[str, NDArray[np.float64]]:
    """Metrics of the same type added up, by launch."""
    sums: dict[str, NDArray[np.float64]] = {}
    for name in dict.fromkeys(metric.name for metric in table.metrics):
        kind = type_of(name)
        if kind is not None:
            values = table.column(name)
            previous = sums.get(kind)
            sums[kind] = (
                values if previous is None else np.where(np.isnan(previous), values, previous + np.nan_to_num(values))
            )
    return sums


def _arithmetic_type(name: str) -> str | None:
    """The type that a metric counts. ``.peak_sustained`` is a constant of the GPU, and counts nothing."""
    match = _ARITHMETIC.fullmatch(name)
    return _TYPE_NAMES[match[1]] if match is not None and match[2] in ("", ".per_cycle_elapsed") else None


def _tensor_type(name: str) -> str | None:
    match = _TENSOR_SOURCE.fullmatch(name)
    return None if match is None else match[1]


def _mean(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float | None:
    """The mean of what was measured, None if nothing was."""
    is_known = ~np.isnan(values)
    return float((values[is_known] * weights[is_known]).sum() / weights[is_known].sum()) if is_known.any() else None


def _p99(values: NDArray[np.float64]) -> float | None:
    sorted_values = np.sort(values[~np.isnan(values)])
    return float(sorted_values[p99_position(len(sorted_values))]) if len(sorted_values) else None


def _means_by_type(
    columns: Mapping[str, NDArray[np.float64]], positions: NDArray[np.int64], weights: NDArray[np.float64]
) -> dict[str, float]:
    """The means of the columns in which something was measured."""
    mean_by_type = {name: _mean(values[positions], weights) for name, values in columns.items()}
    return {name: value for name, value in mean_by_type.items() if value is not None}


def _file_times(table: NcuTable, times: NDArray[np.float64]) -> list[float]:
    """Time of the launches of each file in ns, 0 where none was measured."""
    sums = [0.0] * len(table.files)
    for launch, time in zip(table.launches, np.nan_to_num(times).tolist(), strict=True):
        sums[launch.file] += time * (launch.invocations or 1)
    return sums
