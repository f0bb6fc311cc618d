"""Random captures: totals, gaps, and ranges with their kernels, against a plain computation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.importers.captures import Capture, Operation, Span, chrome_of, csv_of, random_capture, sqlite_of
from tests.turns import examples
from tui_probe.draw.csv_table import csv_lines
from tui_probe.nsight.importers.nsys import read_nsys
from tui_probe.nsight.pages import nsys_pages
from tui_probe.nsight.pages.nsys_pages import gaps_page, kernels_page, ranges_page, sums_page, totals_page
from tui_probe.nsight.pages.nsys_profile import NsysSources
from tui_probe.nsight.pages.timeline import StreamTimeline

SEEDS = st.integers(0, 1 << 30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("captures")


def opened(capture: Capture, folder: Path, shuffle: int = 0) -> NsysSources:
    path = folder / "capture.sqlite"
    path.unlink(missing_ok=True)
    return NsysSources(read_nsys([sqlite_of(capture, path, shuffle)]))


def random_work(seed: int) -> Capture:
    """A capture with kernels or ranges in it."""
    return next(capture for capture in map(random_capture, range(seed, seed + 100)) if capture.work)


def name_of(capture: Capture, each: Operation) -> str:
    """As pages name it: a graph by its process where several have some."""
    if each.kind == "kernel":
        return each.name
    several = len({other.process for other in capture.work if other.kind == "graph"}) > 1
    return f"CUDA graph {each.graph}" + (f" (process {each.process})" if several else "")


def by_place(operations: list[Operation]) -> dict[tuple[int, ...], list[Operation]]:
    places = defaultdict(list)
    for operation in operations:
        places[operation.place].append(operation)
    return places


@settings(max_examples=examples(60), deadline=None)
@given(SEEDS)
def test_totals_and_shares(folder: Path, seed: int) -> None:
    capture = random_work(seed)
    page = totals_page(opened(capture, folder))
    launches = Counter(name_of(capture, operation) for operation in capture.work)
    time = Counter[str]()
    for operation in capture.work:
        time[name_of(capture, operation)] += operation.end - operation.start
    assert {row.name: (row.total.launches, row.total.total) for row in page.rows} == {
        name: (count, time[name]) for name, count in launches.items()
    }
    total_time = max(sum(time.values()), 1)
    assert {row.name: row.total.share for row in page.rows} == {name: time[name] / total_time for name in launches}


@settings(max_examples=examples(60), deadline=None)
@given(SEEDS)
def test_gaps_of_each_stream(folder: Path, seed: int) -> None:
    capture = random_work(seed)
    calls = {(call.process, call.correlation): call.start for call in capture.calls}
    copies = by_place([operation for operation in capture.operations if operation.kind == "copy"])
    expected = []
    for place, own in by_place(capture.work).items():
        until = own[0].end
        for before, after in pairwise(own):
            until = max(until, before.end)
            if after.start > until:
                copied = sum(max(0, min(copy.end, after.start) - max(copy.start, until)) for copy in copies[place])
                launched = calls.get((after.process, after.correlation))
                late = None if launched is None else launched - until
                why = "copy" if 2 * copied >= after.start - until else late and ("host" if late > 0 else "other")
                expected.append((*place, until, after.start - until, late, "other" if why == 0 else why))
    page = gaps_page(opened(capture, folder))
    listed = [(*row.stream, row.gap.start, row.gap.length, row.gap.delay, row.gap.cause) for row in page.rows]
    assert sorted(listed, key=str) == sorted(expected, key=str)


def members(capture: Capture, span: Span) -> list[Operation]:
    """The operations whose call is in a range, on its thread."""
    inside = {
        (call.process, call.correlation)
        for call in capture.calls
        if (call.process, call.thread) == (span.process, span.thread)
        and span.start <= call.start
        and call.end <= span.last
    }
    return [operation for operation in capture.work if (operation.process, operation.correlation) in inside]


@settings(max_examples=examples(80), deadline=None)
@given(SEEDS)
def test_projections_and_their_kernels(folder: Path, seed: int) -> None:
    capture = random_work(seed)
    expected = []
    for span in capture.spans:
        for place, own in by_place(members(capture, span)).items():
            start, end = min(operation.start for operation in own), max(operation.end for operation in own)
            graphs = sum(operation.kind == "graph" for operation in own)
            busy = sum(operation.end - operation.start for operation in own)
            names = sorted(name_of(capture, operation) for operation in own)
            expected.append((span.text, *place, start, end, len(own) - graphs, graphs, busy, names))
    page = ranges_page(sources := opened(capture, folder))
    listed = []
    assert page.part_of_row is not None or not page.rows
    for row in page.rows:
        assert page.part_of_row is not None
        _, only = page.part_of_row(row)
        inside = kernels_page(sources.limited_to(only))
        names = sorted(kernel.name for kernel in inside.rows)
        numbers = (row.start, row.end, row.kernels, row.graphs, row.busy)
        assert row.stream is not None
        listed.append((row.name, *row.stream, *numbers, names))
    assert sorted(listed) == sorted(expected)


@settings(max_examples=examples(60), deadline=None)
@given(SEEDS)
def test_ranges_summed_by_name(folder: Path, seed: int) -> None:
    capture = random_work(seed)
    inside = {span: members(capture, span) for span in capture.spans}
    total_time = sum(operation.end - operation.start for operation in capture.work)
    expected = []
    for name in {span.text for span in capture.spans if inside[span]}:
        calls = [inside[span] for span in capture.spans if span.text == name and inside[span]]
        times = sorted(sum(operation.end - operation.start for operation in own) for own in calls)
        once = {operation for own in calls for operation in own}
        total = sum(operation.end - operation.start for operation in once)
        names = sorted(name_of(capture, operation) for operation in once)
        share = total / total_time if total_time else None
        mean, p99 = sum(times) / len(times), times[-(-99 * len(times) // 100) - 1]
        expected.append((name, len(calls), total, mean, p99, share, len(once), names))
    page = sums_page(sources := opened(capture, folder))
    listed = []
    for row in page.rows:
        assert page.part_of_row is not None
        names = sorted(kernel.name for kernel in kernels_page(sources.limited_to(page.part_of_row(row)[1])).rows)
        listed.append((row.name, row.calls, row.total, row.mean, row.p99, row.share, row.kernels + row.graphs, names))
    assert sorted(listed) == sorted(expected)


@settings(max_examples=40, deadline=None)
@given(SEEDS)
@example(20517)  # two kernels of one stream number in two contexts begin together
def test_innermost_range_of_each_kernel(folder: Path, seed: int) -> None:
    capture = random_work(seed)
    page = kernels_page(opened(capture, folder))
    shortest: dict[Operation, int] = {}
    for span in capture.spans:
        for operation in members(capture, span):
            shortest[operation] = min(shortest.get(operation, 1 << 60), span.last - span.start)
    lengths = {
        (span.text, span.last - span.start, operation) for span in capture.spans for operation in members(capture, span)
    }
    for row, each in zip(page.rows, capture.work, strict=True):
        assert (row.start, row.stream_place) == (each.start, each.place)
        if each not in shortest:
            assert row.range is None
        else:
            assert (row.range or "", shortest[each], each) in lengths


@settings(max_examples=30, deadline=None)
@given(SEEDS, SEEDS)
def test_order_of_rows_does_not_matter(folder: Path, seed: int, shuffle: int) -> None:
    capture = random_work(seed)
    pages = [
        [*page.cells()]
        for order in (0, shuffle)
        for sources in [opened(capture, folder, order)]
        for page in (totals_page(sources), kernels_page(sources), ranges_page(sources), gaps_page(sources))
    ]
    assert pages[: len(pages) // 2] == pages[len(pages) // 2 :]


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_values_of_batches_are_those_of_rows(folder: Path, seed: int) -> None:
    sources = opened(random_work(seed), folder)
    for page in (kernels_page(sources), gaps_page(sources)):
        assert [*page.csv()] == [*csv_lines(page.cells())]


def test_text_has_the_first_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = (kernels_page, gaps_page, ranges_page)
    captures = (opened(random_work(seed), folder) for seed in range(100))
    sources = next(shown for shown in captures if all(len(page(shown).rows) > 3 for page in pages))
    for page in pages:
        shown = page(sources)
        assert shown.text_rows == nsys_pages.MAX_TEXT_ROWS
        monkeypatch.setattr(shown, "text_rows", 1)
        hidden = len(shown.rows) - 1
        assert f"and {hidden} more rows (--format csv has all)" in [*shown.text(100)]
        assert len([*shown.csv()]) == len(shown.rows) + 1


@settings(max_examples=40, deadline=None)
@given(SEEDS, SEEDS)
def test_csv_has_the_same_kernels_and_gaps(folder: Path, seed: int, shuffle: int) -> None:
    """Of one process without graphs, which are all that CSV can hold."""
    capture = random_work(seed)
    process = next(iter(capture.shift))
    capture.operations = [
        operation for operation in capture.operations if operation.process == process and operation.kind != "graph"
    ]
    if not capture.work:
        return
    of_sqlite = opened(capture, folder)
    of_csv = NsysSources(read_nsys([csv_of(capture, folder / "trace.csv", shuffle)]))
    for key in ("start_ns", "duration_ns", "device", "stream", "context", "grid", "block", "registers", "kernel"):
        ours, theirs = (
            sorted(map(str, (row[key] for row in kernels_page(sources).record()["kernels"])))
            for sources in (of_sqlite, of_csv)
        )
        assert ours == theirs, key
    ours, theirs = (
        [(*row.stream[1:], row.gap.start, row.gap.length, row.gap.cause == "copy") for row in gaps_page(sources).rows]
        for sources in (of_sqlite, of_csv)
    )
    assert sorted(ours) == sorted(theirs)


@settings(max_examples=40, deadline=None)
@given(SEEDS, SEEDS, st.sampled_from([None, 7]))
def test_chrome_traces_have_the_same_pages(folder: Path, seed: int, shuffle: int, shown: int | None) -> None:
    """One file per process, all with their own ids or the same; graphs and ranges without an end are not in them."""
    capture = random_work(seed)
    capture.operations = [operation for operation in capture.operations if operation.kind != "graph"]
    capture.spans = [span for span in capture.spans if span.end is not None]
    launching = {operation.process for operation in capture.work} & {call.process for call in capture.calls}
    if not capture.work or launching != {operation.process for operation in capture.work}:
        return
    files = [chrome_of(capture, process, folder / f"{process}.json{'.gz' * (process > 100)}", shuffle, shown)
             for process in sorted(launching)]  # fmt: skip
    capture.operations, capture.calls, capture.spans = (
        [item for item in these if item.process in launching]  # type: ignore[attr-defined]
        for these in (capture.operations, capture.calls, capture.spans)
    )
    sources, expected = NsysSources(read_nsys(files)), opened(capture, folder)
    begin = min(item.start for item in (*capture.calls, *capture.spans, *capture.operations))
    for page in (totals_page, kernels_page, ranges_page, gaps_page, sums_page):
        (only,) = {*launching} if len(launching) == 1 else (None,)
        assert from_start(page(sources).record(), 0, only) == from_start(page(expected).record(), begin, only)
    assert lanes_from_start(sources, 0) == lanes_from_start(expected, begin)


def from_start(record: Mapping[str, Any], begin: int, only: int | None) -> list[dict[str, Any]]:
    """The rows, with times from ``begin`` and processes by their files; in no order, since numbers of streams are
    others.
    """
    shifted = []
    for row in record[record["page"]]:
        moved = {key: value - begin if key in ("start_ns", "host_start_ns") else value for key, value in row.items()}
        file = moved.pop("file", None)
        process = {} if "process" not in row else {"process": int(file.partition(".")[0]) if file else only}
        shifted.append({**moved, **(process if file or only else {})})
    return sorted(shifted, key=str)


def lanes_from_start(sources: NsysSources, begin: int) -> list[tuple[Any, ...]]:
    """Lanes of the timeline without their labels."""
    lanes = StreamTimeline(sources).record()["lanes"]
    return sorted(
        (lane["kind"], *([time - begin for time in lane[key]] for key in ("start_ns", "end_ns")), sorted(lane["names"]))
        for lane in lanes
    )
