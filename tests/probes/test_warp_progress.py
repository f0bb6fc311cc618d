"""Starts, ends and paces are those that the simulated GPU's clocks give; a slow warp is found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hypothesis
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.kernels import entry
from tests.probes.metric_values import figures_in
from tests.probes.running import example, result_of
from tui_probe.engine.kernel import Kernel
from tui_probe.errors import TraceError
from tui_probe.ptx.parser import parse
from tui_probe.records.sm_clocks import align_clocks
from tui_probe.records.warp_pace import WarpProgress, analyse

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = """
.reg .pred %p<3>;
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
mov.u32 %r1, %tid.x;
mov.u32 %r5, %ctaid.x;
mov.u32 %r6, %ntid.x;
mad.lo.u32 %r1, %r5, %r6, %r1;
ld.param.u64 %rd1, [rounds];
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd2, %rd1, %rd2;
ld.global.u32 %r2, [%rd2];
mov.u32 %r3, 0;
$loop:
add.u32 %r3, %r3, 1;
setp.lt.u32 %p1, %r3, %r2;
@%p1 bra $loop;
ret;
"""
TEXT = entry(ROUNDS, ".param .u64 rounds")
HEAD = Kernel.of(parse(TEXT), "kernel").pruned.splitlines().index("add.u32 %r3, %r3, 1;") + 1


def ran(tmp_path: Path, rounds: np.ndarray[Any, Any], block: int = 32) -> WarpProgress:
    """Run as many rounds per thread as ``rounds`` has for it."""
    blocks = len(rounds) // block
    return analyse(result_of(tmp_path, "warp_progress", TEXT, rounds, grid=(blocks,), block=(block,)), 1_000_000)


def test_every_iteration_is_recorded(tmp_path: Path) -> None:
    rounds = np.repeat(np.array([1, 5, 9, 2], np.uint32), 32)
    progress = ran(tmp_path, rounds, block=64)
    assert progress.arrival_counts.tolist() == [[1, 5], [9, 2]]
    (loop,) = progress.loops
    assert (loop.line, loop.warps, loop.iterations) == (HEAD, 4, 0 + 4 + 8 + 1)
    times, lines = progress.arrivals(1, 0)
    assert lines.tolist() == [HEAD] * 9
    gaps = np.diff(times)
    assert np.all(gaps == gaps[0])
    assert loop.cycles_per_iteration == gaps[0]
    assert progress.start[1, 0] <= times[0]
    assert times[-1] <= progress.end[1, 0]


def test_a_planted_straggler_is_found(tmp_path: Path) -> None:
    """One warp of sixteen goes thirty times as many rounds."""
    rounds = np.full(16 * 32, 3, np.uint32)
    rounds[11 * 32 :][:32] = 90
    progress = ran(tmp_path, rounds, block=64)
    assert progress.stragglers().tolist() == [[5, 1]]
    metric_values = {metric_value.key: metric_value.value for metric_value in figures_in("warp_progress", progress)}
    assert metric_values["warps"] == 16
    assert metric_values["stragglers"] == 1
    assert metric_values["longest_cycles"] == progress.warps["elapsed"][5, 1]
    sms = progress.warps["sm"].reshape(-1)
    last = np.array([progress.end.reshape(-1)[sms == sm].max() for sm in np.unique(sms)])
    assert last.max() == progress.end[5, 1]
    assert metric_values["tail"] == last.max() - np.median(last) > 0


def test_lanes_that_come_apart_arrive_in_groups(tmp_path: Path) -> None:
    rounds = np.where(np.arange(32) < 4, 6, 2).astype(np.uint32)
    progress = ran(tmp_path, rounds)
    assert progress.arrival_counts.tolist() == [[6]]


def test_more_iterations_than_room(tmp_path: Path) -> None:
    progress = ran(tmp_path, np.full(32, 300, np.uint32))
    assert (progress.arrival_counts.tolist(), progress.recorded_arrivals.tolist()) == ([[300]], [[128]])
    assert progress.loops[0].iterations == 127
    shown = {metric_value.key for metric_value in figures_in("warp_progress", progress) if metric_value.is_shown}
    assert {"arrivals", "arrivals_kept"} <= shown


def test_a_kernel_without_loops(tmp_path: Path) -> None:
    progress = analyse(result_of(tmp_path, "warp_progress", example("zero_fill"), np.zeros(64, np.uint32),
                                 np.uint32(64), grid=(2,), block=(40,)), 1_000_000)  # fmt: skip
    assert progress.loops == ()
    assert progress.main_loop is None
    assert progress.has_record.all()
    assert not len(progress.stragglers())


def test_results_of_another_probe(tmp_path: Path) -> None:
    result = result_of(tmp_path, "block_sched", TEXT, np.full(32, 2, np.uint32))
    with pytest.raises(TraceError, match="starts and paces"):
        analyse(result)


@given(
    rate=st.floats(0.4, 1.2),
    tick=st.sampled_from([1, 32, 1024]),
    zeros=st.lists(st.integers(0, 2**50), min_size=1, max_size=6),
    begun=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40_000_000)), min_size=2, max_size=60),
)
@hypothesis.example(rate=1.1408200819891448, tick=1, zeros=[0], begun=[(0, 4), (0, 1803)])
@settings(deadline=None)
def test_clocks_come_together_within_the_error(
    rate: float, tick: int, zeros: list[int], begun: list[tuple[int, int]]
) -> None:
    """Warps begin at known times on SMs whose clocks have any zero; the timer shows whole ticks."""
    sm = np.array([which % len(zeros) for which, _ in begun])
    true = np.array([when for _, when in begun], dtype=np.float64)
    clock = (np.array(zeros, dtype=np.uint64)[sm] + np.rint(true / rate).astype(np.uint64)).astype(np.uint64)
    time = (np.uint64(10**18 // tick * tick) + (true // tick).astype(np.uint64) * np.uint64(tick)).astype(np.uint64)
    alignment = align_clocks(sm, clock, time)
    if alignment is None or alignment.error_ns is None:
        return
    assert alignment.tick_ns is not None
    assert alignment.tick_ns % tick == 0
    assert alignment.rate_error is not None
    assert abs(alignment.ns_per_cycle - rate) <= alignment.rate_error + 1e-6 * rate
    times = alignment.nanoseconds(sm, clock)
    off = (times - times[:, np.newaxis]) - (true - true[:, np.newaxis])
    span = (true.max() - true.min()) / rate
    assert np.abs(off).max() <= alignment.error_ns + alignment.rate_error * span + 2 * rate + 1e-6 * span


def test_a_launch_too_short_to_measure_the_rate() -> None:
    sm, time = np.array([0, 0, 1]), np.full(3, 10**18, np.uint64)
    start = np.array([5, 8, 2**40], np.uint64)
    assert align_clocks(sm, start, time) is None
    alignment = align_clocks(sm, start, time, 2_000_000)
    assert alignment is not None
    assert (alignment.ns_per_cycle, alignment.rate_error, alignment.error_ns, alignment.tick_ns) == (
        0.5,
        None,
        None,
        None,
    )
    assert alignment.nanoseconds(sm, start).tolist() == [0, 1.5, 0.75]
    assert align_clocks(sm[:0], start[:0], time[:0]) is None


@given(
    slower=st.floats(1.0, 2.0),
    begun=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 400)), min_size=2, max_size=60),
)
@settings(deadline=None)
def test_a_short_launch_is_aligned_within_what_a_busy_gpu_keeps(slower: float, begun: list[tuple[int, int]]) -> None:
    """The SMs run between the highest clock, 2 GHz, and half of it; the starts tell no rate worth using."""
    rate, tick = 0.5 * slower, np.uint64(32)
    sm = np.array([which for which, _ in begun])
    true = np.array([when for _, when in begun], dtype=np.float64)
    clock = ((sm + 1).astype(np.uint64) << np.uint64(40)) + np.rint(true / rate).astype(np.uint64)
    time = (np.uint64(10**18) + true.astype(np.uint64)) // tick * tick
    alignment = align_clocks(sm, clock, time, 2_000_000)
    assert alignment is not None
    if alignment.error_ns is None or alignment.rate_error is not None:
        return
    later = np.full(sm.shape, 80_000, dtype=np.uint64)  # cycles: all SMs look at their clocks at one time
    now = ((sm + 1).astype(np.uint64) << np.uint64(40)) + later
    times = alignment.nanoseconds(sm, now)
    assert np.ptp(times) <= alignment.error_ns + 4 * rate
    assert f"±{alignment.clocks().error} cycles, assuming" in alignment.clocks().summary()


def test_a_rate_that_the_pairs_bound_better_than_the_highest_clock() -> None:
    sm, clock = np.array([0, 0, 1, 1]), np.array([0, 1000, 2**40, 2**40 + 1000], np.uint64)
    time = np.array([0, 704, 0, 704], np.uint64) + np.uint64(3200)
    wide, close = (align_clocks(sm[:n], clock[:n], time[:n], 2_000_000) for n in (1, 4))
    assert wide is not None
    assert wide.ns_per_cycle == 0.5
    assert wide.error_ns is None
    assert close is not None
    assert close.error_ns is not None
    assert close.error_ns < 3 * 704
