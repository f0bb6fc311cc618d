"""Timelines against schedules that are known block by block."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trace.make import block_sched_result, result_bytes
from tui_probe.errors import TraceError
from tui_probe.probekit.timelines.rows import BusyRows
from tui_probe.probes.block_sched.analysis import analyse, timeline_of
from tui_probe.records.sm_clocks import clock_domains, shared_clock
from tui_probe.records.timeline import Intervals, Timeline, timeline
from tui_probe.trace.follow import open_trace
from tui_probe.trace.results import read_result

Columns = tuple[list[int], list[int], list[int]]
"""Starts, cycles and SMs of blocks."""
RECORDED = Path(__file__).parents[1] / "data" / "h200"


def of(start: list, elapsed: list, sm: list, *, device_sms: int | None = None) -> Timeline:
    """A timeline of blocks (numbers), or of their warps (lists), on SMs with one clock."""
    columns = [np.array(values, dtype=kind) for values, kind in ((start, "u8"), (elapsed, "u4"), (sm, "u4"))]
    return timeline(*(c.reshape(len(c), -1) for c in columns), shared_clock, device_sms=device_sms)  # type: ignore[misc]


def rows(intervals: Intervals) -> dict[tuple[int, int, int], list[tuple[int, int, int]]]:
    """(block, start, end) by SM, slot and warp."""
    by_row = defaultdict(list)
    for i in range(len(intervals)):
        where = (int(intervals.sm[i]), int(intervals.slot[i]), int(intervals.warp[i]))
        by_row[where].append((int(intervals.block[i]), int(intervals.start[i]), int(intervals.end[i])))
    return dict(by_row)


def test_blocks_take_the_slot_that_was_free_for_longest() -> None:
    """Slots 0 and 1 are taken at 0 and 5; 0 is free at 100, 1 at 60: block 2 takes 1, block 3 takes 0."""
    shown = of([1000, 1005, 1070, 1110, 2000], [100, 55, 200, 90, 50], [3, 3, 3, 3, 0])
    assert rows(shown.blocks) == {
        (0, 0, -1): [(4, 1000, 1050)],
        (3, 0, -1): [(0, 0, 100), (3, 110, 200)],
        (3, 1, -1): [(1, 5, 60), (2, 70, 270)],
    }
    assert (shown.span, shown.sms.tolist(), shown.slots.tolist()) == (1050, [0, 3], [1, 2])


def test_an_idle_sm_has_a_row_and_no_slot() -> None:
    shown = of([0, 0, 0], [9, 9, 9], [0, 1, 3], device_sms=5)
    assert shown.sms.tolist() == [0, 1, 2, 3, 4]
    assert shown.idle_sms == [2, 4]


def test_warps_are_in_their_blocks_slot() -> None:
    shown = of([[10, 12], [10, 11], [130, 130]], [[90, 100], [50, 60], [7, 8]], [[0, 0]] * 3)
    assert rows(shown.warps) == {
        (0, 0, 0): [(1, 0, 50), (2, 120, 127)],
        (0, 0, 1): [(1, 1, 61), (2, 120, 128)],
        (0, 1, 0): [(0, 0, 90)],
        (0, 1, 1): [(0, 2, 102)],
    }


def test_a_straggler_makes_the_tail() -> None:
    """Four SMs end at 100, one of them continues by itself until 500: three of four idle, which loses 60 % of the
    launch.
    """
    tail = of([0, 0, 0, 0], [100, 100, 100, 500], [0, 1, 2, 3]).tail()
    assert (tail.start, tail.end, tail.cycles, tail.last_sm) == (100, 500, 400, 3)
    assert tail.idle_share == pytest.approx(3 / 4)
    assert tail.lost_share == pytest.approx(3 * 400 / (4 * 500))


def test_a_launch_that_ends_everywhere_at_once_has_no_tail() -> None:
    tail = of([5, 5], [100, 100], [0, 1]).tail()
    assert (tail.cycles, tail.idle_share, tail.lost_share) == (0, 0, 0)


def test_distant_clocks_are_aligned() -> None:
    first = np.array([10_000_000, 90, 10_000_030, 0, 5_000_000_000], dtype=np.uint64)
    clocks = clock_domains(np.arange(5, dtype=np.int32), first)
    assert clocks.shift.tolist() == [0, 90, 30, 0, 0]
    assert (clocks.domains, clocks.error) == (3, 90)
    assert clocks.summary() == "5 SMs on 3 clocks, aligned at the first block of each SM ±90 cycles"


def test_the_error_is_unknown_where_every_sm_has_a_clock_of_its_own() -> None:
    clocks = clock_domains(np.arange(2, dtype=np.int32), np.array([0, 2**63], dtype=np.uint64))
    assert (clocks.shift.tolist(), clocks.error) == ([0, 0], None)
    assert "unknown error" in clocks.summary()


def test_sms_of_an_h200_have_eight_clocks() -> None:
    trace = open_trace(RECORDED / "torch_compile")
    shown = timeline_of(trace.kernels[4].read_result_file(trace.kernels[4].results[0]), device_sms=132)
    assert (shown.clocks.domains, shown.clocks.error) == (8, 139)
    assert (len(shown.sms), shown.idle_sms, len(shown.blocks), len(shown.warps)) == (132, [], 512, 1024)
    assert shown.span == 2475


def test_results_of_other_probes_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "1.bin"
    for slots, message in (
        (np.zeros((2, 1, 16), "u1"), "no warp saved"),
        (np.zeros((2, 1, 32), "u1"), "map 0 has 2 records"),
    ):
        file.write_bytes(result_bytes((2, 1, 1), (32, 1, 1), [(32, slots)]))
        with pytest.raises(TraceError, match=rf"1\.bin: {message}"):
            timeline_of(read_result(file))


@st.composite
def launches(draw: st.DrawFn) -> Columns:
    count = draw(st.integers(1, 40))
    times = st.lists(st.integers(0, 300), min_size=count, max_size=count)
    return draw(times), draw(times), draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))


@given(launches())
def test_rows_never_overlap_and_agree_with_the_schedule(launch: Columns) -> None:
    start, elapsed, sm = launch
    shown = of([value + 1 for value in start], elapsed, sm)
    for blocks in rows(shown.blocks).values():
        assert all(first[2] <= second[1] for first, second in pairwise(blocks))
    assert sorted(shown.blocks.block.tolist()) == list(range(len(start)))
    assert int(shown.blocks.duration.sum()) == sum(elapsed)


@given(launches())
def test_slots_are_as_many_as_the_block_schedule_counts(launch: Columns) -> None:
    content = block_sched_result(*(np.array(values) for values in ([v + 1 for v in launch[0]], *launch[1:])))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "1.bin"
        path.write_bytes(content)
        result = read_result(path)
        schedule, shown = analyse(result), timeline_of(result, has_shared_clock=True)
    assert shown.slots.tolist() == schedule.sm_slots.tolist()


@given(launches(), st.lists(st.integers(-50, 700), min_size=2, max_size=8))
def test_busy_cycles_are_those_of_the_intervals(launch: Columns, cuts: list[int]) -> None:
    start, elapsed, row = (np.array(values, dtype=np.int64) for values in launch)
    edges = np.array(sorted(cuts))
    covered = BusyRows(start, start + elapsed, row, 4).covered_cycles(0, 4, edges)
    for r in range(4):
        for j in range(len(edges) - 1):
            inside = np.minimum(start + elapsed, edges[j + 1]) - np.maximum(start, edges[j])
            assert covered[r, j] == np.maximum(inside, 0)[row == r].sum()
    everything = BusyRows(start, start + elapsed, row, 4).covered_cycles(0, 4, np.array([0, 100, 10_000]))
    assert everything.sum() == elapsed.sum()


@given(launches(), st.integers(-5, 650), st.integers(1, 100))
def test_intervals_in_a_window_are_counted(launch: Columns, begin: int, length: int) -> None:
    start, elapsed, row = (np.array(values, dtype=np.int64) for values in launch)
    elapsed += 1
    busy = BusyRows(start, start + elapsed, row, 4)
    inside = (start < begin + length) & (start + elapsed > begin)
    assert busy.count_touching(1, 3, begin, begin + length).tolist() == [
        int((inside & (row == r)).sum()) for r in (1, 2, 3)
    ]
    begun = (start >= begin) & (start < begin + length)
    assert busy.count_starts(0, 4, np.array([begin, begin + length]))[:, 0].sum() == begun.sum()
