"""NVTX ranges as a tree: what is in which, times, ranges of one name together; texts against goldens."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pages.ranges import LINE, MS, ranges_trace
from tests.sizes import document_text, golden_widths
from tests.trace.make import EPOCH_NS, TraceWriter
from tui_probe.pages.page_registry import report_lines
from tui_probe.pages.range_page import range_key, range_page, range_totals_page
from tui_probe.pages.range_tree import range_tree, runs_without
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Trace


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return open_trace(ranges_trace(tmp_path / "Nov21_101010_42", timed=True).directory)


def test_each_range_has_what_is_in_it_and_in_none_inside(trace: Trace) -> None:
    roots = range_tree(trace)
    seen = [
        (node.depth, node.text, node.launches, [counts[:3] for counts in node.direct_launches])
        for node in roots[0].walk()
    ]
    assert seen == [
        (0, "step", 7, []),
        (1, "forward", 5, [(1, 1, 1)]),
        (2, "layer 0", 2, [(0, 1, 1), (1, 1, 1)]),
        (2, "layer 1", 2, [(0, 1, 1), (1, 1, 1)]),
        (1, "backward", 2, [(2, 2, 0)]),
    ]
    assert [root.text for root in roots] == ["step", "step", "all-reduce"]
    assert [root.probed_count for root in roots] == [5, 5, 1]


def test_times_of_the_host_and_of_kernels(trace: Trace) -> None:
    step, _, endless = range_tree(trace)
    forward, backward = step.inner
    assert (step.seconds, forward.seconds) == (0.036, 0.011)
    assert forward.kernel_seconds == pytest.approx(2 * 2e-3 + 3 * 0.5e-3)
    assert backward.kernel_seconds is None, "cublas_dgrad was never timed"
    assert step.kernel_seconds is None
    assert (endless.seconds, endless.start_s) == (None, 0.09)


def test_ranges_of_one_name_together(trace: Trace) -> None:
    step, endless = range_tree(trace, merge_runs=True)
    assert (step.range_count, step.launches, step.seconds) == (2, 14, 0.072)
    assert [(node.text, node.range_count, node.launches) for node in step.walk()] == [
        ("step", 2, 14), ("forward", 2, 10), ("layer 0", 2, 4), ("layer 1", 2, 4), ("backward", 2, 4),
    ]  # fmt: skip
    assert (endless.domain, endless.thread) == ("nccl", None)


SUMMED = ("step × 2", "forward × 2", "layer 0 × 2", "layer 1 × 2", "backward × 2", "all-reduce")


def test_merged_ranges_have_mean_p99_and_share(trace: Trace) -> None:
    step, _ = range_tree(trace, merge_runs=True)
    forward, backward = step.inner
    times = [node.kernel_seconds for root in range_tree(trace)[:2] for node in root.inner if node.text == "forward"]
    assert forward.kernel_seconds == pytest.approx(sum(time or 0 for time in times))
    assert (forward.mean_seconds, forward.p99_seconds) == (
        pytest.approx(sum(time or 0 for time in times) / 2),
        max(time or 0 for time in times),
    )
    assert (backward.mean_seconds, backward.p99_seconds) == (None, None), "cublas_dgrad was never timed"
    rows = {
        line.node.text: line for line in range_page(trace, merged_by_name=True).rows if line.launches_of_kernel is None
    }
    assert (rows["forward"].mean_seconds, rows["forward"].share) == (forward.mean_seconds, None), "not all was timed"
    record = json.loads("\n".join(report_lines(trace, "sums", "json")))
    assert [row["text"] for row in record["sums"] if row["kind"] == "range"] == [*map(str.strip, SUMMED)]
    assert [line.mean_seconds for line in range_page(trace).rows] == [None] * len(range_page(trace).rows)


def test_rows_lead_to_kernels(trace: Trace) -> None:
    page = range_page(trace)
    list(page.lines(100))
    led = [page.kernel_target(page.first_row_line + number) for number in range(len(page.rows))]
    assert {place[0] for place in led if place} == {trace.directory}
    assert [place and place[1] for place in led][:4] == [None, None, 1, None], "a range leads to its kernels"
    assert page.kernel_target(0) is None
    kernels = [row for row in page.rows if row.kernel is not None]
    assert kernels[0].text.strip() == "#1 relu(float*)"


def test_the_kernels_of_a_range_with_time_and_share(trace: Trace) -> None:
    forward = range_tree(trace)[0].inner[0]
    page = range_totals_page(trace, range_key(forward))
    rows = page.record()["totals"]
    assert page.record()["only"] == {"range": "forward"}
    assert [(row["kernel"], row["launches"]) for row in rows] == [(0, 2), (1, 3)], "those of inner ranges too"
    known = [row["seconds"] for row in rows]
    assert sum(known) == pytest.approx(forward.kernel_seconds)
    assert [row["share"] for row in rows] == pytest.approx([time / sum(known) for time in known])
    list(page.lines(80))
    assert page.kernel_target(page.first_row_line) == (trace.directory, 0)


def test_unlaunched_range_has_no_kernels(trace: Trace) -> None:
    assert not range_totals_page(trace, ("none", None, None, 0, None)).rows


def test_ranges_that_enclose_each_other_are_shown_once(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "f")
    writer.launch(0)
    writer.lines(LINE.format(1, 2, 7, EPOCH_NS, EPOCH_NS + MS, "0", "-", "a"))
    writer.lines(LINE.format(2, 1, 7, EPOCH_NS, EPOCH_NS + MS, "0", "-", "b"))
    writer.lines(LINE.format(3, 99, 7, EPOCH_NS, EPOCH_NS + MS, "0-5", "-", "its outer one is not known"))
    nodes = [node.text for root in range_tree(open_trace(writer.directory)) for node in root.walk()]
    assert sorted(nodes) == ["a", "b", "its outer one is not known"]


def test_ranges_that_are_nested_without_end_are_shown_flat(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "f")
    writer.launch(0)
    writer.lines(*(LINE.format(n, n - 1, 7, EPOCH_NS, EPOCH_NS + MS, "0", "-", f"r{n}") for n in range(1, 3000)))
    trace = open_trace(writer.directory)
    nodes = [node for root in range_tree(trace) for node in root.walk()]
    assert len(nodes) == 2999
    assert max(node.depth for node in nodes) < 200
    assert len(list(range_page(trace).lines(80))) > 2999


def test_missing_ranges_name_the_option(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    assert any("torch.cuda.nvtx.range_push" in line for line in range_page(open_trace(writer.directory)).text(80))


RUNS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)).map(lambda run: (run[0], run[0] + run[1])), max_size=6)


@given(RUNS, RUNS)
def test_launches_without_others(runs: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    def numbers(of: list[tuple[int, int]]) -> set[int]:
        return {number for first, last in of for number in range(first, last + 1)}

    left = runs_without(runs, others)
    assert numbers(left) == numbers(runs) - numbers(others)
    assert all(first <= last for first, last in left)
    disjoint = all(before[1] < after[0] for before, after in pairwise(sorted(runs)))
    assert not disjoint or len(numbers(left)) == sum(last - first + 1 for first, last in left)


@pytest.mark.parametrize("together", [False, True], ids=["each", "together"])
def test_the_page_as_text(trace: Trace, together: bool) -> None:
    page = range_page(trace, merged_by_name=together)
    page.shows_explanation = True
    name = f"range-page{'-together' if together else ''}.txt"
    golden_widths(name, lambda width, ascii_only: document_text(page, width, ascii_only=ascii_only))


def test_the_report_as_text(trace: Trace) -> None:
    report = list(report_lines(trace, "ranges", width=120))
    page = list(range_page(trace).text(120))
    assert report[-len(page) :] == page


def test_the_page_as_data(trace: Trace) -> None:
    each, merged = (
        json.loads(json.dumps(range_page(trace, merged_by_name=together).record(), allow_nan=False))["ranges"]
        for together in (False, True)
    )
    assert [row["text"] for row in each[:4]] == ["step", "forward", "layer 0", "layer 1"]
    assert [(kernel["kernel"], kernel["launches"]) for kernel in each[1]["kernels"]] == [(1, 3), (0, 2)]
    assert [row["kind"] for row in merged[:3]] == ["range", "range", "kernel"]
    assert (merged[2]["kernel"], merged[2]["seconds"]) == (1, None)
