"""The kernels that a test launched: their metrics, and the limits that they exceed."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import tui_probe
from tui_probe.errors import TraceError, UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tui_probe.api.results import Launch
    from tui_probe.api.traces import Kernel

MAX_WAIT_SECONDS: Final = 20.0
"""Seconds for results to be written after a test; the hook writes them when its buffers are idle for 50 ms."""
SETTLE_SECONDS: Final = 0.2
"""Seconds without a new result after which no more are expected."""
_POLL_SECONDS: Final = 0.05
"""Seconds between two looks at the trace."""
_STATIC: Final = ("registers", "spills")


@dataclass(frozen=True)
class LaunchedKernel:
    """A kernel and its launches within a test.

    ``metrics`` has, by key, the measured values of those launches; a metric that was not measured is absent.
    ``registers`` and ``spills`` (bytes) are those of the kernel without the probe, None if unknown.
    """

    name: str
    launches: int
    registers: int | None
    spills: int | None
    metrics: Mapping[str, tuple[float, ...]]
    reason: str | None
    worst: str

    def values(self, metric: str) -> tuple[float, ...]:
        """Return the values of a metric; () if it was not measured."""
        if metric in _STATIC:
            value = getattr(self, metric)
            return () if value is None else (float(value),)
        return self.metrics.get(metric, ())


@dataclass
class LaunchedKernels:
    """The kernels that were launched since ``begin_ns`` (ns since 1970)."""

    begin_ns: int
    _kernels: list[LaunchedKernel] | None = field(default=None, repr=False)

    @classmethod
    def begin(cls) -> LaunchedKernels:
        """Start with no launch."""
        return cls(time.time_ns())

    def __iter__(self) -> Iterator[LaunchedKernel]:
        """Yield the kernels, after the results of all probed launches are written."""
        end, deadline = time.time_ns(), time.monotonic() + MAX_WAIT_SECONDS
        last_results, last_change = -1, time.monotonic()
        while True:
            kernels, results, is_complete = self._read_kernels(end)
            if results != last_results:
                last_results, last_change = results, time.monotonic()
            is_settled = (
                is_complete and time.monotonic() - last_change >= SETTLE_SECONDS
            )  # of one launch, results come one by one
            if is_settled or time.monotonic() > deadline:
                return iter(kernels)
            time.sleep(_POLL_SECONDS)

    def _read_kernels(self, end: int) -> tuple[list[LaunchedKernel], int, bool]:
        """Return the kernels so far, the number of their results, and whether each probed launch has one."""
        try:
            trace = tui_probe.open(trace_of_process())
        except TraceError:
            return [], 0, True
        kernels, results, is_complete = [], 0, True
        for kernel in trace.kernels:
            test_launches = [launch for launch in kernel.launches if _is_within(launch, self.begin_ns, end)]
            rows = _result_rows(kernel, self.begin_ns, end)
            results += len(rows)
            is_complete &= len({launch for _, launch in rows}) == sum(launch.probed for launch in test_launches)
            if test_launches:
                kernels.append(_launched_kernel(kernel, len(test_launches), rows))
        return kernels, results, is_complete


def trace_of_process() -> Path:
    """Return the trace of this process. Raises TraceError if it has launched nothing."""
    root = Path(os.environ["TUI_PROBE_TRACE_ROOT"])
    traces = sorted(root.glob(f"*_{os.getpid()}"), key=lambda path: path.stat().st_mtime)
    if not traces:
        raise TraceError(f"{root} contains no trace of process {os.getpid()}")
    return traces[-1]


def _is_within(launch: Launch, begin_ns: int, end_ns: int) -> bool:
    """Return whether a launch began in this time; a launch without a time did not."""
    return launch.time_ns is not None and begin_ns <= launch.time_ns <= end_ns


def _result_rows(kernel: Kernel, begin_ns: int, end_ns: int) -> list[tuple[int, int]]:
    """Return the index of each result within the time, and the number of its launch."""
    launches = (result.launch for result in kernel.results)
    return [
        (index, launch.number)
        for index, launch in enumerate(launches)
        if launch is not None and launch.number is not None and _is_within(launch, begin_ns, end_ns)
    ]


def _launched_kernel(kernel: Kernel, launches: int, rows: list[tuple[int, int]]) -> LaunchedKernel:
    """Return a kernel with a value per launch; of several probes that have a metric the first counts."""
    metrics = {}
    for key, values in (kernel.metrics() if rows else {}).items():
        by_launch: dict[int, float] = {}
        for row, launch in rows:
            if not math.isnan(values[row]):
                by_launch.setdefault(launch, float(values[row]))
        if by_launch:
            metrics[key] = tuple(by_launch.values())
    worst = kernel.to_dict().get("worst_line") or ""
    return LaunchedKernel(
        kernel.demangled, launches, kernel.registers[0], kernel.spills[0], metrics, kernel.reason, str(worst)
    )


def exceeded_limits(kernels: LaunchedKernels, limits: Mapping[str, float | bool]) -> list[str]:
    """Return a line per limit that a kernel exceeds, or that was not measured. Raises UsageError for wrong limits."""
    if not limits:
        return []
    test_kernels = list(kernels)
    if not test_kernels:
        return ["gpu_probe: the test launched no kernel"]
    problems = []
    for name, limit in limits.items():
        bound, metric = _parse_limit_name(name)
        limit_value = 0.0 if name == "no_spills" else _limit_number(name, limit)
        if name == "no_spills" and not limit:
            continue
        problems += [
            problem for kernel in test_kernels if (problem := _limit_problem(kernel, bound, metric, limit_value))
        ]
        if not any(kernel.values(metric) for kernel in test_kernels):
            keys = {key: None for kernel in test_kernels for key in kernel.metrics}
            problems.append(
                f"gpu_probe: {metric} was not measured{did_you_mean(metric, keys)}{_reasons_text(test_kernels)}"
            )
    return problems


def _limit_number(name: str, limit: object) -> float:
    """Return a limit as a number. Raises UsageError for others, and for NaN, which no value would exceed or keep."""
    if not isinstance(limit, (int, float)) or math.isnan(limit):
        raise UsageError(f"gpu_probe: the limit {name}={limit!r} is not a number")
    return float(limit)


def _parse_limit_name(name: str) -> tuple[str, str]:
    """``max_registers`` -> ("max", "registers")."""
    if name == "no_spills":
        return "max", "spills"
    bound, _, metric = name.partition("_")
    if bound not in ("max", "min") or not metric:
        raise UsageError(f"gpu_probe has no limit {name}: use max_METRIC, min_METRIC or no_spills")
    return bound, metric


def _limit_problem(kernel: LaunchedKernel, bound: str, metric: str, limit: float) -> str:
    values = kernel.values(metric)
    if not values:
        return ""
    value = max(values) if bound == "max" else min(values)
    is_within = value <= limit if bound == "max" else value >= limit
    if is_within:
        return ""
    word = "above" if bound == "max" else "below"
    place = f"; worst line: {kernel.worst}" if kernel.worst else ""
    return f"{kernel.name}: {metric} {value:g} is {word} the limit {limit:g}{place}"


def _reasons_text(kernels: list[LaunchedKernel]) -> str:
    reasons = dict.fromkeys(kernel.reason for kernel in kernels if kernel.reason)
    return f" ({'; '.join(reasons)})" if reasons else ""
