"""Memory traffic of programs: bytes of DRAM, L2 and L1 that one iteration moves.

    DRAM  dram__bytes.sum, or read + written
    L2    lts__t_bytes.sum, or lts__t_sectors.sum × 32
    L1    l1tex__t_bytes.sum, or l1tex__t_sectors.sum × 32

Where a file has no total, it is *derived*: throughput × duration. The Memory Workload Analysis section of ncu's
details page prints no totals, whatever the set; its ``Memory Throughput`` is that of DRAM.

    bytes per iteration = mean over the measured iterations of the sum over the launches of one
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.analysis.chosen_launches import Choice, Loop
    from tui_probe.nsight.importers.ncu_table import NcuTable

Level = Literal["dram", "l2", "l1"]
LEVELS: Final[tuple[Level, ...]] = ("dram", "l2", "l1")
How = Literal["collected", "derived"]
_SECTOR: Final = 32
_MEMORY_SECTION: Final = "Memory Workload Analysis"
_TOTALS: Final[dict[Level, tuple[tuple[tuple[str, ...], int], ...]]] = {
    "dram": (
        (("dram__bytes.sum",), 1),
        (("dram__bytes_read.sum", "dram__bytes_write.sum"), 1),
        (("dram__bytes_op_read.sum", "dram__bytes_op_write.sum"), 1),
    ),
    "l2": ((("lts__t_bytes.sum",), 1), (("lts__t_sectors.sum",), _SECTOR)),
    "l1": ((("l1tex__t_bytes.sum",), 1), (("l1tex__t_sectors.sum",), _SECTOR)),
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
class Bytes:
    """Bytes of a level by launch (f8, NaN not known); ``derived`` tells which are throughput × duration."""

    values: NDArray[np.float64]
    derived: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Means an iteration of one measured part: bytes by level, None where a launch of it lacks them."""

    loop: Loop
    kernels: Sequence[str]
    launches: float
    """Launches per iteration."""
    time: float | None
    """Time of the kernels in ns."""
    bytes: dict[Level, float | None]
    how: dict[Level, How | None]


def durations(table: NcuTable) -> NDArray[np.float64]:
    """Time of each launch in ns, NaN where it was not measured."""
    values = table.column(TIME_METRIC, unit="ns")
    for name in ("gpu__time_duration.avg", "Duration"):
        values = np.where(np.isnan(values), table.column(name, unit="ns"), values)
    return values


def bytes_of(table: NcuTable, level: Level) -> Bytes:
    """Bytes of each launch at one level."""
    values = np.full(len(table.launches), np.nan)
    for names, factor in _TOTALS[level]:
        total = sum((table.column(name) for name in names), np.zeros(len(values))) * factor
        values = np.where(np.isnan(values), total, values)
    derived = np.isnan(values)
    times = durations(table) / 1e9
    for rate in _rates(table, level):
        values = np.where(np.isnan(values), np.rint(rate * times), values)
    return Bytes(values, derived & ~np.isnan(values))


def _rates(table: NcuTable, level: Level) -> Iterator[NDArray[np.float64]]:
    for name in _RATES[level]:
        yield table.column(name, unit="byte/s")
    if level == "dram":
        yield table.column("Memory Throughput", _MEMORY_SECTION, "byte/s")


def traffic(table: NcuTable, choice: Choice) -> list[Traffic]:
    """The traffic of each measured part."""
    levels = {level: bytes_of(table, level) for level in LEVELS}
    times = durations(table)
    return [_traffic(table, loop, levels, times) for loop in choice.parts]


def _traffic(table: NcuTable, loop: Loop, levels: dict[Level, Bytes], times: NDArray[np.float64]) -> Traffic:
    measured = loop.measured
    found: dict[Level, float | None] = {}
    how: dict[Level, How | None] = {}
    for level, each in levels.items():
        found[level] = _mean(each.values[measured], loop.runs)
        how[level] = None if found[level] is None else "derived" if each.derived[measured].any() else "collected"
    kernels = list(dict.fromkeys(table.launches[launch].kernel for launch in measured.tolist()))
    return Traffic(loop, kernels, len(measured) / loop.runs, _mean(times[measured], loop.runs), found, how)


def _mean(values: NDArray[np.float64], runs: int) -> float | None:
    """Sum per iteration, None if any launch lacks its value."""
    total = float(values.sum()) / runs
    return None if np.isnan(total) else total


def ratios(rows: Sequence[Traffic], level: Level) -> list[float | None]:
    """Bytes of each row / those of the row with the fewest; None where there is nothing to compare."""
    values = [row.bytes[level] for row in rows]
    known = [value for value in values if value]
    least = min(known, default=None)
    return [None if value is None or least is None else value / least for value in values]
