"""Metrics of a kernel over its launches, as NumPy arrays."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from tui_probe.probekit.measured import analyse_results

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tui_probe.trace.model import Kernel


def metrics_of(kernel: Kernel) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
    """Name of a metric -> its values, one per result, in the order of ``kernel.result_rows``: shape (results,).

    int64 where every result has a whole number, else float64 with NaN where it was not measured. A result that cannot
    be analysed is NaN in all, with a warning that says why. Where a result is of a sample of blocks there are
    ``blocks`` and ``blocks_measured``, too: sums of results that differ in these are not to be taken together.
    """
    rows = list(_metrics_by_result(kernel))
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _metrics_by_result(kernel: Kernel) -> Iterator[dict[str, float | None]]:
    """The figures of each result."""
    results = list(analyse_results(kernel.trace, kernel))
    sampled = any(result.sample is not None for result in results)
    for result in results:
        _warn_of_problem(result.problem)
        figures = {figure.key: figure.value for figure in result.figures}
        yield figures | ({"blocks": result.blocks, "blocks_measured": result.blocks_measured} if sampled else {})


def _warn_of_problem(problem: str | None) -> None:
    if problem is not None:
        warnings.warn(problem, stacklevel=5)


def _column(values: list[float | None]) -> NDArray[np.float64] | NDArray[np.int64]:
    if all(isinstance(value, int) for value in values):
        return np.array(values, np.int64)
    return np.array([np.nan if value is None else value for value in values], np.float64)
