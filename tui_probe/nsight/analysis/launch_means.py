"""Means over measured launches: metrics, memory traffic per iteration, counters of instructions."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from tui_probe.nsight.analysis.kernel_groups import Shape, shape_of
from tui_probe.trace.launch_shape import SECTOR_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.analysis.launch_selection import LaunchSelection, Loop, ShapeSelection
    from tui_probe.nsight.importers.ncu_table import Instruction, Metric, NcuTable

Level = Literal["dram", "l2", "l1"]
LEVELS: Final[tuple[Level, ...]] = ("dram", "l2", "l1")
Provenance = Literal["collected", "derived"]
_MEMORY_SECTION: Final = "Memory Workload Analysis"
_TOTALS: Final[dict[Level, tuple[tuple[tuple[str, ...], int], ...]]] = {
    "dram": (
        (("dram__bytes.sum",), 1),
        (("dram__bytes_read.sum", "dram__bytes_write.sum"), 1),
        (("dram__bytes_op_read.sum", "dram__bytes_op_write.sum"), 1),
    ),
    "l2": ((("lts__t_bytes.sum",), 1), (("lts__t_sectors.sum",), SECTOR_BYTES)),
    "l1": ((("l1tex__t_bytes.sum",), 1), (("l1tex__t_sectors.sum",), SECTOR_BYTES)),
}
"""Ways to a total, the best first: metrics that are added, and the bytes that one of them is."""
_RATES: Final[dict[Level, tuple[str, ...]]] = {
    "dram": ("dram__bytes.sum.per_second",),
    "l2": ("lts__t_bytes.sum.per_second",),
    "l1": ("l1tex__t_bytes.sum.per_second",),
}
TIME_METRIC: Final = "gpu__time_duration.sum"
"""The time of a launch, as --metrics names it."""


@dataclass(frozen=True, slots=True)
class Average:
    """One metric of one kept kernel: mean, least and most of ``launches`` launches in which it was measured."""

    outcome: ShapeSelection
    metric: Metric
    launches: int
    mean: float
    minimum: float
    maximum: float


def averages(table: NcuTable, choice: LaunchSelection) -> Iterator[Average]:
    """Yield the mean of every metric that has numbers, by kept kernel, in the order of the file."""
    is_measured = ~np.isnan(table.value)
    for outcome in choice.outcomes:
        if not outcome.kept_launches:
            continue
        launches = np.asarray(outcome.launches, dtype=np.int64)
        is_counted = np.zeros(len(table.launches), dtype=np.bool_)
        is_counted[launches if outcome.loop is None else np.intersect1d(outcome.loop.measured_launches, launches)] = (
            True
        )
        rows = np.flatnonzero(is_counted[table.launch] & is_measured)
        for metric, values in _by_metric(table.metric[rows], table.value[rows]):
            minimum, maximum = float(values.min()), float(values.max())
            yield Average(outcome, table.metrics[metric], len(values), float(values.mean()), minimum, maximum)


def _by_metric(metrics: NDArray[np.int32], values: NDArray[np.float64]) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """The values of each metric, the metrics in ascending order."""
    order = np.argsort(metrics, kind="stable")
    group_starts = np.flatnonzero(np.diff(metrics[order])) + 1
    for group in np.split(order, group_starts.tolist()) if len(order) else ():
        yield int(metrics[group[0]]), values[group]


@dataclass(frozen=True, slots=True)
class LevelBytes:
    """Bytes of a level by launch (f8, NaN not known); ``is_derived`` marks those that are throughput × duration.

    They are derived where a file has no total: the Memory Workload Analysis section of ncu's details page prints none,
    no matter what the set. Its ``Memory Throughput`` is that of DRAM.
    """

    values: NDArray[np.float64]
    is_derived: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Memory traffic of one measured part: bytes per iteration by level, None where a launch of it lacks them.

    Bytes per iteration are the mean over the measured iterations of the sum over the launches of one.
    """

    loop: Loop
    kernels: Sequence[str]
    launches: float
    """Launches per iteration."""
    time: float | None
    """Time of the kernels in ns."""
    bytes: dict[Level, float | None]
    provenance: dict[Level, Provenance | None]


def durations(table: NcuTable) -> NDArray[np.float64]:
    """Time of each launch in ns, NaN where it was not measured."""
    values = table.column(TIME_METRIC, unit="ns")
    for name in ("gpu__time_duration.avg", "Duration"):
        values = np.where(np.isnan(values), table.column(name, unit="ns"), values)
    return values


def level_bytes(table: NcuTable, level: Level) -> LevelBytes:
    """Bytes of each launch at one level."""
    values = np.full(len(table.launches), np.nan)
    for names, factor in _TOTALS[level]:
        total = sum((table.column(name) for name in names), np.zeros(len(values))) * factor
        values = np.where(np.isnan(values), total, values)
    is_missing = np.isnan(values)
    times = durations(table) / 1e9
    for rate in _rates(table, level):
        values = np.where(np.isnan(values), np.rint(rate * times), values)
    return LevelBytes(values, is_missing & ~np.isnan(values))


def _rates(table: NcuTable, level: Level) -> Iterator[NDArray[np.float64]]:
    for name in _RATES[level]:
        yield table.column(name, unit="byte/s")
    if level == "dram":
        yield table.column("Memory Throughput", _MEMORY_SECTION, "byte/s")


def traffic(table: NcuTable, choice: LaunchSelection) -> list[Traffic]:
    """The traffic of each measured part."""
    levels = {level: level_bytes(table, level) for level in LEVELS}
    times = durations(table)
    return [_traffic(table, loop, levels, times) for loop in choice.parts]


def _traffic(table: NcuTable, loop: Loop, levels: dict[Level, LevelBytes], times: NDArray[np.float64]) -> Traffic:
    launches = loop.measured_launches
    mean_bytes: dict[Level, float | None] = {}
    provenance: dict[Level, Provenance | None] = {}
    for level, traffic in levels.items():
        mean_bytes[level] = _per_iteration(traffic.values[launches], loop.runs)
        provenance[level] = (
            None if mean_bytes[level] is None else "derived" if traffic.is_derived[launches].any() else "collected"
        )
    kernels = list(dict.fromkeys(table.launches[launch].kernel for launch in launches.tolist()))
    return Traffic(
        loop, kernels, len(launches) / loop.runs, _per_iteration(times[launches], loop.runs), mean_bytes, provenance
    )


def _per_iteration(values: NDArray[np.float64], runs: int) -> float | None:
    """Sum per iteration, None if any launch lacks its value."""
    total = float(values.sum()) / runs
    return None if np.isnan(total) else total


def ratios(rows: Sequence[Traffic], level: Level) -> list[float | None]:
    """Bytes of each row / those of the row with the fewest; None where there is nothing to compare."""
    values = [row.bytes[level] for row in rows]
    known_values = [value for value in values if value]
    minimum = min(known_values, default=None)
    return [None if value is None or minimum is None else value / minimum for value in values]


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """Means per launch of the instructions of a line, or of one; None was not counted.

    ``requests`` are executions of instructions that access global memory: a warp instruction is one request.
    """

    shape: Shape
    file: str | None
    line: int | None
    offset: int
    text: str
    executed: float | None
    requests: float | None
    sectors: float | None
    ideal: float | None
    stalls: Mapping[str, float] = field(default_factory=dict)

    @property
    def samples(self) -> float:
        return sum(self.stalls.values())

    @property
    def reason(self) -> str | None:
        """The most frequent stall reason of warps there."""
        return max(self.stalls, key=lambda name: (self.stalls[name], name), default=None)


def counts_by_instruction(table: NcuTable) -> list[SourceCounts]:
    """Return the counts of every instruction of every kernel, in the order of the code."""
    return _group_counts(table, lambda counts: (counts.offset, counts.text))


def counts_by_line(table: NcuTable) -> list[SourceCounts]:
    """Return the counts of every line of source; instructions without one are together."""
    return _group_counts(table, lambda counts: (counts.file, counts.line))


def _group_counts(table: NcuTable, key: Callable[[Instruction], Hashable]) -> list[SourceCounts]:
    launches_by_shape: defaultdict[Shape, set[int]] = defaultdict(set)
    groups: defaultdict[tuple[Shape, Hashable], list[Instruction]] = defaultdict(list)
    for instruction in table.instructions:
        shape = shape_of(table, instruction.launch)
        launches_by_shape[shape].add(instruction.launch)
        groups[shape, key(instruction)].append(instruction)
    return [_mean_counts(shape, group, len(launches_by_shape[shape])) for (shape, _), group in groups.items()]


def _mean_counts(shape: Shape, group: Sequence[Instruction], launches: int) -> SourceCounts:
    """Return the means over launches of instructions that are counted together; the first names their place."""
    stalls: dict[str, float] = {}
    for instruction in group:
        for reason, samples in instruction.stalls.items():
            stalls[reason] = stalls.get(reason, 0.0) + samples / launches
    accesses = [instruction for instruction in group if instruction.sectors]
    first_instruction = group[0]
    return SourceCounts(
        shape,
        first_instruction.file,
        first_instruction.line,
        first_instruction.offset,
        first_instruction.text,
        _mean_count((instruction.executed for instruction in group), launches),
        _mean_count((access.executed for access in accesses), launches),
        _mean_count((instruction.sectors for instruction in group), launches),
        _mean_count((instruction.ideal for instruction in group), launches),
        stalls,
    )


def _mean_count(values: Iterable[float | None], launches: int) -> float | None:
    known_values = [value for value in values if value is not None]
    return sum(known_values) / launches if known_values else None
