"""Block scheduling against schedules whose cycles are known."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.probes.simulate import SimulatedSM, schedule_by_heap
from tests.trace.make import block_sched_result, result_bytes
from tests.turns import examples
from tui_probe.errors import TraceError
from tui_probe.probes.block_sched import METRICS, analysis
from tui_probe.probes.block_sched.analysis import BlockSchedule, analyse, block_times_in_parts
from tui_probe.probes.block_sched.view import schedule_line
from tui_probe.records import block_times
from tui_probe.trace.map_records import Reduced
from tui_probe.trace.results import Result, read_result

if TYPE_CHECKING:
    from pathlib import Path


def analysed(path: Path, start: list, elapsed: list, sm: list, *, threads: int = 128) -> BlockSchedule:
    """Write a result file with these warps and analyse it."""
    columns = np.array(start, dtype="u8"), np.array(elapsed, dtype="u4"), np.array(sm, dtype="u4")
    path.write_bytes(block_sched_result(*columns, threads=threads))
    return analyse(read_result(path))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "0.000001.bin"


def test_one_block_at_a_time(file: Path) -> None:
    """Three blocks on SM 0 with gaps of 10 and 20 cycles, one block on SM 1, whose clock is far ahead."""
    schedule = analysed(file, [1000, 1110, 1230, 10**12], [100, 100, 70, 50], [0, 0, 0, 1])
    assert schedule.sm.tolist() == [0, 1]
    assert schedule.sm_blocks.tolist() == [3, 1]
    assert schedule.sm_slots.tolist() == [1, 1]
    assert schedule.sm_running.tolist() == [270, 50]
    assert schedule.sm_scheduling.tolist() == [30, 0]
    assert schedule.sm_span.tolist() == [300, 50]
    assert schedule_line(schedule) == "4 blocks, cycles per slot: 160 running, 15 in gaps"


def test_two_resident_blocks(file: Path) -> None:
    """Slot 1: 0-100, 110-200. Slot 2: 4-50, 60-190. The tail is the 10 cycles between 190 and 200 on slot 2."""
    schedule = analysed(file, [1000, 1004, 1060, 1110], [100, 46, 130, 90], [7, 7, 7, 7])
    assert schedule.sm_slots.tolist() == [2]
    assert schedule.sm_running.tolist() == [(190 + 176) / 2]
    assert schedule.sm_scheduling.tolist() == [(10 + 10) / 2]
    assert schedule.sm_ramp.tolist() == [4 / 2]
    assert schedule.sm_tail.tolist() == [10 / 2]
    assert schedule.span == 200


def test_a_block_takes_over_a_slot_that_ends_in_the_cycle_of_its_start(file: Path) -> None:
    schedule = analysed(file, [100, 200], [100, 100], [0, 0])
    assert (schedule.sm_slots.tolist(), schedule.scheduling, schedule.running) == ([1], 0, 200)


def test_sm_numbers_with_gaps(file: Path) -> None:
    schedule = analysed(file, [10, 20, 30], [5, 5, 5], [131, 2, 64])
    assert schedule.sm.tolist() == [2, 64, 131]
    assert schedule.running == 5


@pytest.mark.parametrize(("threads", "warps"), [(1, 1), (20, 1), (32, 1), (33, 2), (100, 4), (1024, 32)])
def test_a_block_lasts_from_its_first_to_its_last_warp(file: Path, threads: int, warps: int) -> None:
    starts = [[1000 + 3 * warp for warp in range(warps)], [5000 + 3 * warp for warp in range(warps)]]
    elapsed = [[100 + warp for warp in range(warps)]] * 2
    schedule = analysed(file, starts, elapsed, [[0] * warps] * 2, threads=threads)
    duration = 3 * (warps - 1) + 100 + warps - 1
    assert schedule.sm_running.tolist() == [2 * duration]
    assert schedule.sm_scheduling.tolist() == [4000 - duration]


def test_warps_that_saved_nothing_are_left_out_and_counted(file: Path) -> None:
    start = [[1000, 0], [0, 0], [2000, 1990]]
    elapsed = [[100, 0], [0, 0], [50, 100]]
    sm = [[3, 0], [0, 0], [3, 3]]
    schedule = analysed(file, start, elapsed, sm, threads=64)
    assert (schedule.warps_missing, schedule.blocks_missing, schedule.blocks_astray) == (1, 1, 0)
    assert (schedule.blocks, schedule.sm_blocks.tolist(), schedule.sm_running.tolist()) == (3, [2], [200])


def test_a_record_of_zeros_but_for_its_cycles_counts(file: Path) -> None:
    """A simulated clock starts at 0, on SM 0."""
    schedule = analysed(file, [0, 150], [100, 100], [0, 0])
    assert (schedule.blocks_missing, schedule.running, schedule.scheduling) == (0, 200, 50)


def test_blocks_whose_warps_name_two_sms_are_left_out_and_counted(file: Path) -> None:
    schedule = analysed(file, [[100, 100], [300, 300]], [[50, 50], [40, 40]], [[0, 1], [2, 2]], threads=64)
    assert (schedule.blocks_astray, schedule.sm.tolist(), schedule.running) == (1, [2], 40)


def test_clocks_near_the_end_of_their_range(file: Path) -> None:
    schedule = analysed(file, [2**63 + 10, 2**63 + 200], [100, 100], [0, 0])
    assert (schedule.running, schedule.scheduling) == (200, 90)


def test_block_times_of_each_block(file: Path) -> None:
    file.write_bytes(block_sched_result(np.array([10, 0, 30]), np.array([5, 0, 6]), np.array([4, 0, 9])))
    (times,) = block_times_in_parts(read_result(file))
    assert times.valid.tolist() == [True, False, True]
    assert times.start[times.valid].tolist() == [10, 30]
    assert times.end[times.valid].tolist() == [15, 36]
    assert times.sm[times.valid].tolist() == [4, 9]


@pytest.mark.parametrize("kept", ["warps", "blocks"])
def test_more_blocks_than_are_held_together_have_the_same_schedule(
    file: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    """Of blocks in parts, the SMs in groups, each value is that of all at the same time."""
    chance = np.random.default_rng(1)
    sm = chance.choice([3, 0, 70, 9], 500)
    start, elapsed = 1000 + np.arange(500) * 7, chance.integers(0, 90, 500)
    file.write_bytes(block_sched_result(start, elapsed, sm))
    if kept == "blocks":
        monkeypatch.setattr(Result, "reduced", lambda *_: one_per_block(start, elapsed, sm))
    complete = analyse(read_result(file))
    monkeypatch.setattr(block_times, "_BLOCKS_PER_BATCH", 64)
    monkeypatch.setattr(analysis, "_MAX_BLOCKS_HELD", 150)
    reduced = analyse(read_result(file))
    for field in fields(complete):
        assert np.array_equal(getattr(reduced, field.name), getattr(complete, field.name)), field.name
    assert len(complete.sm) == 4


def one_per_block(start: np.ndarray, elapsed: np.ndarray, sm: np.ndarray) -> Reduced:
    records = np.zeros((len(start), 1), dtype=analysis.RECORD)
    for name, values in (("start", start), ("elapsed", elapsed), ("sm", sm)):
        records[name][:, 0] = values
    saved = (np.arange(len(start)) % 5 > 0)[:, np.newaxis]
    return Reduced("block", records, saved, ~saved, missing_slots=3)


@pytest.mark.parametrize(
    ("slots", "message"),
    [
        (np.zeros((2, 1, 16), dtype=np.uint8), "no warp saved a record"),
        (np.zeros((2, 1, 32), dtype=np.uint8), "2 records per slot, not one"),
        (np.zeros((2, 1, 24), dtype=np.uint8), "24 bytes per slot, not a whole number of records of 16"),
    ],
)
def test_results_of_other_probes_are_refused(file: Path, slots: np.ndarray, message: str) -> None:
    file.write_bytes(result_bytes((2, 1, 1), (32, 1, 1), [(32, slots)]))
    with pytest.raises(TraceError, match=message):
        analyse(read_result(file))


def test_a_result_without_maps_is_refused(file: Path) -> None:
    file.write_bytes(result_bytes((2, 1, 1), (32, 1, 1), []))
    with pytest.raises(TraceError, match="the file has no map"):
        analyse(read_result(file))


def test_random_bytes_are_refused(file: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (20_000, 1, 16), dtype=np.uint8)
    file.write_bytes(result_bytes((20_000, 1, 1), (32, 1, 1), [(32, noise)]))
    with pytest.raises(TraceError, match=r"0.000001.bin: a record has the SM number \d+: the file is damaged"):
        analyse(read_result(file))


@st.composite
def simulated(draw: st.DrawFn) -> SimulatedSM:
    """An SM with 1 to 6 slots that are all filled before the first block ends."""
    sm = SimulatedSM(draw(st.integers(1, 6)))
    ramps = draw(st.lists(st.integers(0, 5), min_size=sm.slots, max_size=sm.slots))
    count = draw(st.integers(sm.slots, 40))
    durations = draw(st.lists(st.integers(40, 200), min_size=count, max_size=count))
    gaps = draw(st.lists(st.integers(0, 80), min_size=count, max_size=count))
    sm.run(durations, gaps, ramps, draw(st.integers(1, 2**40)))
    return sm


@given(st.lists(simulated(), min_size=1, max_size=5), st.randoms(use_true_random=False))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
def test_the_cycles_of_a_simulated_gpu_are_found(file: Path, sms: list[SimulatedSM], random) -> None:  # type: ignore[no-untyped-def]
    """Blocks of all SMs in any order: each SM's cycles are exactly those that the model spent."""
    numbers = random.sample(range(200), len(sms))
    blocks = [(start, end - start, number) for sm, number in zip(sms, numbers, strict=True) for start, end in sm.blocks]
    random.shuffle(blocks)
    schedule = analysed(file, *map(list, zip(*blocks, strict=True)))
    by_number = [sm for _, sm in sorted(zip(numbers, sms, strict=True), key=lambda pair: pair[0])]
    assert schedule.sm.tolist() == sorted(numbers)
    assert schedule.sm_slots.tolist() == [sm.slots for sm in by_number]
    for column, name in (
        (schedule.sm_running, "running"),
        (schedule.sm_scheduling, "scheduling"),
        (schedule.sm_ramp, "ramp"),
        (schedule.sm_tail, "tail"),
    ):
        assert column.tolist() == [getattr(sm, name) / sm.slots for sm in by_number]


block_lists = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 25)), min_size=1, max_size=40)


@given(block_lists)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(300))
def test_any_blocks_agree_with_the_definition(file: Path, pairs: list[tuple[int, int]]) -> None:
    """Blocks of any kind, with ties and with blocks of no cycles, and the identity that defines the span."""
    blocks = [(start, start + elapsed) for start, elapsed in pairs]
    slots, running, scheduling, ramp, tail = schedule_by_heap(blocks)
    schedule = analysed(file, [s for s, _ in pairs], [e for _, e in pairs], [0] * len(pairs))
    parts = schedule.sm_running[0], schedule.sm_scheduling[0], schedule.sm_ramp[0], schedule.sm_tail[0]
    assert schedule.sm_slots.tolist() == [slots]
    assert parts == (running / slots, scheduling / slots, ramp / slots, tail / slots)
    span = max(end for _, end in blocks) - min(start for start, _ in blocks)
    assert schedule.span == pytest.approx(span)


def test_blocks_that_are_looked_at_in_parts_are_the_same(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a warp or a block left no record, or changed its SM."""
    start = [[1000, 0], [0, 0], [2000, 1990], [3000, 3000], [4000, 4010]]
    elapsed = [[100, 0], [0, 0], [100, 100], [50, 60], [70, 80]]
    sm = [[1, 0], [0, 0], [1, 1], [2, 3], [2, 2]]
    analysis = analysed(file, start, elapsed, sm, threads=64)
    monkeypatch.setattr("tui_probe.records.block_times._BLOCKS_PER_BATCH", 2)
    parts = analysed(file, start, elapsed, sm, threads=64)
    assert schedule_line(parts) == schedule_line(analysis)
    assert (parts.warps_missing, parts.blocks_missing, parts.blocks_astray) == (1, 1, 1)
    assert parts.sm_running.tolist() == analysis.sm_running.tolist()


def test_in_words_the_tail_is_that_of_a_launch_and_data_keeps_its_keys() -> None:
    named = {metric.key: (metric.title, metric.standalone_title) for metric in METRICS}
    assert named["ramp_cycles"] == ("ramp-up", "ramp-up cycles")
    assert named["tail_cycles"] == ("ramp-down", "ramp-down cycles")
