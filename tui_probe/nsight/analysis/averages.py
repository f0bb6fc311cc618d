"""Means of metrics over the launches that count: of each kept kernel, over the measured iterations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tui_probe.nsight.analysis.chosen_launches import Choice, Fate
    from tui_probe.nsight.importers.ncu_table import Metric, NcuTable


@dataclass(frozen=True, slots=True)
class Average:
    """One metric of one kept kernel: mean, least and most of ``launches`` launches in which it was measured."""

    fate: Fate
    metric: Metric
    launches: int
    mean: float
    least: float
    most: float


def averages(table: NcuTable, choice: Choice) -> Iterator[Average]:
    """Every metric that has numbers, by kept kernel, in the order of the file."""
    known = ~np.isnan(table.value)
    for fate in choice.fates:
        if not fate.kept:
            continue
        launches = np.asarray(fate.launches, dtype=np.int64)
        counted = np.zeros(len(table.launches), dtype=np.bool_)
        counted[launches if fate.loop is None else np.intersect1d(fate.loop.measured, launches)] = True
        rows = np.flatnonzero(counted[table.launch] & known)
        for metric, values in _by_metric(table.metric[rows], table.value[rows]):
            least, most = float(values.min()), float(values.max())
            yield Average(fate, table.metrics[metric], len(values), float(values.mean()), least, most)


def _by_metric(metrics: NDArray[np.int32], values: NDArray[np.float64]) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """The values of each metric, the metrics in ascending order."""
    order = np.argsort(metrics, kind="stable")
    starts = np.flatnonzero(np.diff(metrics[order])) + 1
    for group in np.split(order, starts.tolist()) if len(order) else ():
        yield int(metrics[group[0]]), values[group]
