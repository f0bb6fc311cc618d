"""Accesses on grids of time and address: none is lost, none is counted twice, and each is where it belongs."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.probes.dmat_files import Launch, opened
from tui_probe.probes.dmat import access_map
from tui_probe.probes.dmat.access_map import merged_runs, read_map, sector_runs, survey_accesses
from tui_probe.probes.dmat.accesses import RECORD, UNKNOWN, WARP, Selection, read_accesses
from tui_probe.probes.dmat.axes import bands_of
from tui_probe.probes.dmat.density import Grid, raster
from tui_probe.trace.device_memory import Allocation, LaunchMemory
from tui_probe.trace.results import read_result
from tui_probe.trace.tensors import Tensor

BASE = 0x7F00_0000_0000


def quiet(share: float) -> None:
    assert 0 <= share <= 1


cycles = st.integers(0, 100_000)
addresses = st.integers(0, 5000).map(lambda word: BASE + 4 * word) | st.integers(0, 99).map(
    lambda word: BASE + (word << 22)
)


@st.composite
def launches(draw: st.DrawFn) -> Launch:
    blocks, threads = draw(st.integers(1, 3)), draw(st.sampled_from([1, 32, 33, 40]))
    threads_used = draw(st.lists(st.tuples(st.integers(0, blocks - 1), st.integers(0, threads - 1)), max_size=8))
    made = {
        who: sorted(draw(st.lists(st.tuples(cycles, addresses, st.integers(1, 3)), min_size=1, max_size=6)))
        for who in threads_used
    }
    return Launch(blocks, threads, made, [draw(st.integers(0, 5000)) for _ in range(blocks)])


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    start, span = draw(st.integers(0, 90_000)), draw(st.integers(1, 110_000))
    edges = sorted(draw(st.sets(st.integers(0, 20_000), min_size=2, max_size=9)))
    gaps = draw(st.lists(st.booleans(), min_size=len(edges) - 1, max_size=len(edges) - 1))
    rows = [pair for pair, kept in zip(pairwise(edges), gaps, strict=True) if kept] or [(0, 20_000)]
    low, high = (np.array(column, dtype=np.uint64) + np.uint64(BASE) for column in zip(*rows, strict=True))
    return Grid(start, start + span, draw(st.integers(1, min(span, 300))), low, high)


@given(launches(), grids(), st.booleans())
def test_a_raster_counts_each_access_once_and_in_its_cell(
    tmp_path_factory: pytest.TempPathFactory, launch: Launch, grid: Grid, counted: bool
) -> None:
    accesses = opened(tmp_path_factory.mktemp("dmat"), launch.content(6, counted=counted))
    expected: Counter[tuple[int, int]] = Counter()
    for time, address, _ in launch.points():
        row = next((i for i in range(grid.rows) if int(grid.row_starts[i]) <= address < int(grid.row_ends[i])), None)
        if row is not None and grid.start <= time < grid.end:
            expected[row, (time - grid.start) * grid.columns // (grid.end - grid.start)] += 1
    grid_counts = raster(accesses.parts(), grid, quiet)
    assert {(int(r), int(c)): int(grid_counts[r, c]) for r, c in zip(*np.nonzero(grid_counts), strict=True)} == dict(
        expected
    )
    edges = grid.column_edges()
    assert (edges[0], edges[-1]) == (grid.start, grid.end)
    for _, column in expected:
        assert edges[column] < edges[column + 1]


@given(launches())
def test_everything_is_on_the_map(tmp_path_factory: pytest.TempPathFactory, launch: Launch) -> None:
    accesses = opened(tmp_path_factory.mktemp("dmat"), launch.content(6))
    seen = read_map(accesses, LaunchMemory(), [], quiet)
    points = launch.points()
    assert seen.survey.record_count == accesses.total_accesses == len(points)
    assert seen.end == max((time for time, _, _ in points), default=0) + 1
    for _, address, _ in points:
        assert any(band.start <= address < band.end for band in seen.bands)
    low, high = (np.array([getattr(band, name) for band in seen.bands], dtype=np.uint64) for name in ("start", "end"))
    assert raster(accesses.parts(), Grid(0, seen.end, 7, low, high), quiet).sum() == len(points)


@given(launches())
def test_a_large_result_shows_the_same(tmp_path_factory: pytest.TempPathFactory, launch: Launch) -> None:
    folder = tmp_path_factory.mktemp("dmat")
    accesses = opened(folder, launch.content(6))
    small = read_map(accesses, LaunchMemory(), [], quiet)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access_map, "MAX_RECOUNTED_RECORDS", 0)
        large = read_map(accesses, LaunchMemory(), [], quiet)
    assert large.fine_counts is not None
    assert large.fine_counts.counts.sum() == len(launch.points())
    assert (large.end, large.survey.record_count) == (small.end, small.survey.record_count)
    if small.bands:
        full_grid = Grid(0, large.fine_counts.grid.end, 1, *(np.array([at], np.uint64) for at in (0, 1 << 63)))
        assert large.fine_counts.resampled(full_grid).sum() == len(launch.points())


def test_unsampled_accesses_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    far = (1_000_000, BASE + (8 << 20), 1)
    launch = Launch(2, 64, {(block, thread): [(10, BASE, 1)] for block in range(2) for thread in range(64)}, [0, 0])
    launch.accesses[1, 5].append(far)
    accesses = opened(tmp_path, launch.content(6))
    monkeypatch.setattr(access_map, "MAX_RECOUNTED_RECORDS", 0)
    seen = read_map(accesses, LaunchMemory(), [], quiet)
    assert seen.fine_counts is not None
    assert (seen.fine_counts.counts.sum(), seen.survey.record_count, seen.end) == (129, 129, 1_000_001)
    assert seen.bands[-1].start <= far[1] < seen.bands[-1].end


@given(launches())
def test_blocks_and_warps_add_up_to_the_grid(tmp_path_factory: pytest.TempPathFactory, launch: Launch) -> None:
    accesses = opened(tmp_path_factory.mktemp("dmat"), launch.content(6))
    low, high = np.array([0], np.uint64), np.array([1 << 63], np.uint64)
    grid = Grid(0, 200_000, 5, low, high)
    full_raster = raster(accesses.parts(), grid, quiet)
    blocks = [raster(accesses.parts(Selection(block)), grid, quiet) for block in range(launch.blocks)]
    warps = [
        raster(accesses.parts(Selection(block, warp)), grid, quiet)
        for block in range(launch.blocks)
        for warp in range(-(-launch.threads // 32))
    ]
    assert (full_raster == sum(blocks)).all()
    assert (full_raster == sum(warps)).all()


def test_a_thread_that_made_more_accesses_than_it_kept(tmp_path: Path) -> None:
    launch = Launch(1, 32, {(0, 0): [(i, BASE, 1) for i in range(10)], (0, 1): [(0, BASE, 1)]}, [0])
    accesses = opened(tmp_path, launch.content(4))
    assert (accesses.total_accesses, survey_accesses(accesses, quiet)[1].record_count) == (11, 5)


def test_thread_without_a_count(tmp_path: Path) -> None:
    launch = Launch(1, 32, {(0, 3): [(5, BASE, 1), (9, BASE + 64, 1)]}, [0])
    content = bytearray(launch.content(4))
    content[len(content) - 32 * 4 + 3 * 4 : len(content) - 32 * 4 + 4 * 4] = int(UNKNOWN).to_bytes(4, "little")
    accesses = opened(tmp_path, bytes(content))
    assert (accesses.total_accesses, survey_accesses(accesses, quiet)[1].record_count) == (None, 2)


def test_clocks_of_a_long_kernel_unwrap(tmp_path: Path) -> None:
    turn = 1 << 32
    made = [
        (10, BASE, 1),
        (turn // 2 + 10, BASE, 1),
        (turn + 10, BASE, 1),
        (3 * turn // 2, BASE, 1),
        (2 * turn, BASE, 1),
    ]
    accesses = opened(tmp_path, Launch(1, 32, {(0, 0): made}, [0]).content(5))
    accesses, seen = survey_accesses(accesses, quiet)
    assert accesses.has_long_warps
    assert seen.end == 2 * turn + 1
    (part,) = accesses.parts()
    assert part.times().tolist() == [time for time, _, _ in made]


def test_compact_addresses_get_their_upper_bits_from_allocations(tmp_path: Path) -> None:
    far = BASE + (3 << 37)
    memory = LaunchMemory((Allocation(BASE, 1 << 20), Allocation(far + (1 << 21), 1 << 12)))
    made = [(1, BASE + 4, 0), (2, far + (1 << 21) + 40, 0)]
    launch = Launch(1, 32, {(0, 0): made}, [0])
    accesses = opened(tmp_path, launch.content(4, compact=True), compact=True, memory=memory)
    (part,) = accesses.parts()
    assert part.addresses().tolist() == [BASE, far + (1 << 21) + 32]
    assert part.lines() is None
    compact = opened(tmp_path, launch.content(4, compact=True), compact=True)
    assert compact.parts()[0].addresses().tolist() == [BASE % (1 << 37), ((1 << 21) + 32 + BASE) % (1 << 37)]


def test_whoever_lost_interest_stops_the_work(tmp_path: Path) -> None:
    launch = Launch(2, 32, {(0, 0): [(0, BASE, 1)]}, [0, 0])

    class GoneError(Exception):
        pass

    def gone(share: float) -> None:
        raise GoneError(share)

    with pytest.raises(GoneError):
        read_map(opened(tmp_path, launch.content(4)), LaunchMemory(), [], gone)


@given(st.lists(st.lists(addresses, min_size=1, max_size=20), min_size=1, max_size=4))
def test_used_memory_holds_every_address_and_little_else(groups: list[list[int]]) -> None:
    runs = merged_runs(np.concatenate([sector_runs(np.array(group, dtype=np.uint64)) for group in groups]))
    assert (runs[1:, 0] > runs[:-1, 1]).all()
    for address in (address for group in groups for address in group):
        assert ((runs[:, 0] <= address) & (address < runs[:, 1])).any()
    assert (merged_runs(runs) == runs).all()
    assert (runs[:, 1] - runs[:, 0]).sum() <= sum(map(len, groups)) * 32


def test_very_many_runs_are_taken_together() -> None:
    runs = sector_runs(BASE + np.arange(100_000, dtype=np.uint64) * np.uint64(4096))
    assert len(runs) <= 4096
    assert (runs[0, 0], runs[-1, 1]) == (BASE, BASE + 99_999 * 4096 + 32)


def runs_of(*pairs: tuple[int, int]) -> np.ndarray:
    return np.array(pairs, dtype=np.uint64)


def test_bands_are_named_after_what_is_known() -> None:
    memory = LaunchMemory(
        (Allocation(BASE, 4096), Allocation(BASE + (1 << 30), 1 << 21)), (BASE, 7, BASE + (1 << 30) + 512, b"long")
    )
    runs = runs_of(
        (BASE, BASE + 4096), (BASE + (1 << 30), BASE + (1 << 30) + 8192), (BASE + (1 << 40), BASE + (1 << 40) + 32)
    )
    bands = bands_of(runs, memory)
    assert [(band.name, band.size, band.start - band.origin) for band in bands] == [
        ("param 0", 4096, 0),
        ("allocation 1", 512, 0),
        ("param 2", 7680, 0),
        ("range 0", 32, 0),
    ]


def test_a_pool_is_split_where_large_parts_of_it_are_not_in_use() -> None:
    memory = LaunchMemory((Allocation(BASE, 1 << 30),))
    bands = bands_of(
        runs_of((BASE, BASE + 4096), (BASE + 8192, BASE + 9000), (BASE + (1 << 20), BASE + (1 << 20) + 64)), memory
    )
    assert [(band.name, band.size) for band in bands] == [("allocation 0", 9000), ("allocation 0 +0x100000", 64)]


def test_tensors_come_before_parameters() -> None:
    memory = LaunchMemory((Allocation(BASE, 4096),), (BASE,))
    (band,) = bands_of(runs_of((BASE, BASE + 128)), memory, [Tensor("q", BASE, 128, (4, 8))])
    assert (band.name, band.tensor and band.tensor.shape) == ("q", (4, 8))


def test_without_a_log_addresses_are_split_at_large_gaps() -> None:
    runs = runs_of((BASE, BASE + 64), (BASE + 4096, BASE + 8192), (BASE + (8 << 20), BASE + (8 << 20) + 32))
    assert [(band.name, band.size) for band in bands_of(runs, LaunchMemory())] == [("range 0", 8192), ("range 1", 32)]


@given(
    st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(1, 1 << 22)), min_size=1, max_size=40), st.integers(1, 16)
)
def test_bands_ascend_and_hold_all_that_is_used(pairs: list[tuple[int, int]], most: int) -> None:
    runs = merged_runs(np.array([(low, low + size) for low, size in pairs], dtype=np.uint64))
    memory = LaunchMemory((Allocation(1 << 20, 1 << 24), Allocation(1 << 26, 1 << 20)), (3 << 20,))
    bands = bands_of(runs, memory, (), most)
    assert 1 <= len(bands) <= most
    assert all(one.end <= other.start for one, other in pairwise(bands))
    for low, high in runs.tolist():
        covered = sum(max(min(high, band.end) - max(low, band.start), 0) for band in bands)
        assert covered == high - low


def test_clocks_of_sms_are_aligned(tmp_path: Path) -> None:
    """Two SMs whose clocks are far apart; the timer says that the second began 400 cycles after the first."""
    launch = Launch(4, 32, {(block, 0): [(10, BASE, 1)] for block in range(4)}, [0, 400, 3_000_000, 3_000_400])
    content = bytearray(launch.content(1))
    warps = np.frombuffer(content, dtype=WARP, count=4, offset=32 + 3 * 16)
    warps["sm"], warps["time"] = (0, 1, 0, 1), 10**18 + np.array([0, 224, 1_500_000, 1_500_224]) // 32 * 32
    shift = np.array([0, 1 << 40, 0, 1 << 40], dtype=np.uint64)
    warps["start"] += shift
    records = np.frombuffer(content, dtype=RECORD, count=4 * 32, offset=32 + 3 * 16 + 4 * 24)
    records["clock"][::32] += shift.astype(np.uint32)
    path = tmp_path / "1.000000.bin"
    path.write_bytes(content)
    accesses = read_accesses(read_result(path), compact=False, memory=LaunchMemory(), simulated=False)
    assert accesses.clocks.basis == "global timer"
    assert accesses.clocks.error is not None
    assert accesses.cycles_per_ns == pytest.approx(2, rel=1e-4)
    expected = [0, 400, 3_000_000, 3_000_400]
    assert accesses.entry[:, 0].tolist() == pytest.approx(expected, abs=accesses.clocks.error)
    times = accesses.parts()[0].times()
    assert (times - 10).tolist() == accesses.entry[:, 0].tolist()
