"""Memory that the rows of a Chrome trace take, and pages of them."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tui_probe.nsight.analysis.projection import ProjectedCounts, ProjectedRows
from tui_probe.nsight.importers.chrome_events import Collector, IntegerRows
from tui_probe.nsight.importers.chrome_report import make_report
from tui_probe.nsight.importers.nsys_model import compact
from tui_probe.nsight.pages.nsys_pages import sums_page, totals_page
from tui_probe.nsight.pages.nsys_profile import NsysSources
from tui_probe.nsight.pages.timeline import StreamTimeline

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 1 << 14


def collected(count: int) -> Collector:
    """Kernels with a call and an operator each, of two threads and two streams."""
    collector = Collector(0)
    for i in range(count):
        place = {"ph": "X", "pid": 9, "tid": 9 + i % 2, "ts": 1e9 + 2 * i}
        launch = {"device": 0, "context": 1, "stream": 7 + i % 2, "grid": [64, 1, 1], "block": [256, 1, 1]}
        collector.read_event(place | {"cat": "cpu_op", "name": f"op {i % 300}", "dur": 0.5})
        collector.read_event(place | {"cat": "cuda_runtime", "name": "launch", "dur": 0.25, "args": {"correlation": i}})
        collector.read_event(
            place | {"cat": "kernel", "name": f"k{i % 40}", "dur": 1.5, "args": launch | {"correlation": i}}
        )
    return collector


def test_chrome_rows_bytes_per_kernel() -> None:
    make_report(["trace.json"], [collected(64)])  # what is loaded and remembered once
    tracemalloc.start()
    try:
        part = collected(COUNT)
        held = tracemalloc.get_traced_memory()[0]
        report = make_report(["trace.json"], [part])
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert (len(report.kernels), len(report.ranges or ())) == (COUNT, COUNT)
    assert held / COUNT < 65
    assert after / COUNT < 85


@pytest.mark.parametrize("value", [-129, 127, 128, -32769, 32768, (1 << 31) - 1, 1 << 31, 1 << 61, -(1 << 61)])
def test_integer_rows_widen(value: int) -> None:
    rows = IntegerRows(("a", "b"))
    for number in (1, value, -1):
        rows.add(number, 0)
    assert {name: column.tolist() for name, column in rows.take_columns().items()} == {
        "a": [1, value, -1],
        "b": [0, 0, 0],
    }


@pytest.mark.parametrize("numbers", [[], [5, 5, 5], [-1, 32766], [-1, 32767], [-1, (1 << 31) - 1], [0, 1 << 62]])
def test_compact_keeps_numbers(numbers: list[int]) -> None:
    column = compact(np.array(numbers, dtype=np.int64))
    assert column.tolist() == numbers
    assert all((column - -1)[i] == number + 1 for i, number in enumerate(numbers))


def profile(count: int) -> NsysSources:
    return NsysSources(make_report(["trace.json"], [collected(count)]))


def test_projected_counts_without_projection() -> None:
    sources = profile(64)
    totals_page(sources)
    assert "projected" not in vars(sources)
    counts, rows = sources.projected_counts, sources.projected
    assert isinstance(rows, ProjectedRows)
    assert counts == ProjectedCounts(len(rows), rows.host_ranges) == ProjectedCounts(64, 64)


@pytest.mark.parametrize("page", [sums_page, StreamTimeline])
def test_page_bytes_per_range(page: Callable[[NsysSources], object]) -> None:
    page(profile(64))  # what is loaded and remembered once
    sources = profile(COUNT)
    assert len(sources.projected) == COUNT
    tracemalloc.start()
    try:
        page(sources)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak / COUNT < 150
