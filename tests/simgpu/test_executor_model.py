"""Block schedules of the model, compared with schedules worked out by hand."""

from __future__ import annotations

import functools
import heapq
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simgpu.device import Device, compiled, kernel
from tests.turns import examples
from tui_probe.errors import SimulationError
from tui_probe.simgpu.executor import Machine
from tui_probe.simgpu.executor.model import COSTS, Schedule, instruction_cost

SEEN = np.dtype([("start", "<i8"), ("end", "<i8"), ("sm", "<u4"), ("warp", "<u4")])


def run(
    machine: Machine, trips: list[int], threads: int = 32, start_cycle: int = 0
) -> tuple[np.ndarray[Any, Any], int]:
    """Return the values that lane 0 of each warp saw (blocks × warps), and the cycles of the launch."""
    seen = np.zeros((len(trips), -(-threads // 32)), SEEN)
    device = Device(machine=machine)
    execution = device.launch(
        kernel("clocks", "scheduled"),
        seen,
        np.array(trips, np.int32),
        grid=(len(trips),),
        block=(threads,),
        start_cycle=start_cycle,
    )
    return seen, execution.cycles


@functools.cache
def launched_alone(trips: int) -> int:
    """Cycles of a block with ``trips`` rounds, launch included."""
    return run(Machine(sm_count=1), [trips])[1]


SMALL = Machine(sm_count=2, max_blocks_per_sm=2, block_launch_cycles=100)
# The kernel loads its two parameters before it reads the clock.
FIRST_READ = 2 * COSTS["parameter"]


def test_one_block() -> None:
    seen, cycles = run(SMALL, [3])
    assert (seen["sm"][0, 0], seen["warp"][0, 0]) == (0, 0)
    assert seen["start"][0, 0] == 100 + FIRST_READ
    assert seen["end"][0, 0] < cycles
    # Each round is the barrier and three instructions of the loop: add, setp, bra.
    other, longer = run(SMALL, [4])
    assert longer - cycles == COSTS["barrier"] + 3 * COSTS["integer"]
    assert other["end"][0, 0] - seen["end"][0, 0] == longer - cycles


def test_equal_blocks_are_dealt_out_over_sms_first() -> None:
    seen, cycles = run(SMALL, [2] * 10)
    single = run(SMALL, [2])[1]
    assert seen["sm"][:, 0].tolist() == [0, 1] * 5
    assert seen["warp"][:, 0].tolist() == [0, 0, 1, 1, 0, 0, 1, 1, 0, 0]
    rounds = [0] * 4 + [1] * 4 + [2] * 2
    assert seen["start"][:, 0].tolist() == [100 + FIRST_READ + single * number for number in rounds]
    assert cycles == 3 * single


def test_a_straggler_keeps_its_slot_and_the_others_go_on() -> None:
    """Block 1 is as long as some others together: SM 1's first slot is taken, the rest rotates over three slots."""
    trips = [2, 60, *[2] * 8]
    seen, cycles = run(SMALL, trips)
    single, long = run(SMALL, [2])[1], run(SMALL, [60])[1]
    assert 2 * single < long
    # Slots in the order in which they free: (SM 0, 0), (SM 0, 1), (SM 1, 1), again and again.
    assert seen["sm"][:, 0].tolist() == [0, 1, 0, 1, 0, 0, 1, 0, 0, 1]
    assert seen["warp"][:, 0].tolist() == [0, 0, 1, 1, 0, 1, 1, 0, 1, 1]
    assert seen["start"][:, 0].tolist() == [
        100 + FIRST_READ + single * number for number in [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    ]
    assert cycles == max(long, 3 * single)


def test_a_short_block_lets_the_next_one_start_early() -> None:
    machine = Machine(sm_count=1, max_blocks_per_sm=2, block_launch_cycles=10)
    seen, cycles = run(machine, [50, 1, 1, 1, 5])
    short, long, last = (run(machine, [trips])[1] for trips in (1, 50, 5))
    first = 10 + FIRST_READ
    starts = [first, first, first + short, first + 2 * short, first + 3 * short]
    assert 3 * short < long
    assert seen["start"][:, 0].tolist() == starts
    assert cycles == max(long, 3 * short + last)


def test_warps_of_a_block_and_its_warp_slots() -> None:
    seen, _ = run(Machine(sm_count=1, max_blocks_per_sm=2), [1, 1], threads=80)
    assert seen["warp"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (seen["start"] == seen["start"][0, 0]).all()
    # All warps leave a barrier together.
    assert (seen["end"] == seen["end"][0, 0]).all()


def test_the_clock_goes_on_from_launch_to_launch() -> None:
    first, _ = run(SMALL, [1, 1])
    second, _ = run(SMALL, [1, 1], start_cycle=5000)
    assert (second["start"] - first["start"] == 5000).all()
    assert (second["end"] - first["end"] == 5000).all()


def test_timers_and_clocks_agree() -> None:
    machine = Machine(clock_khz=2_000_000)
    output = np.zeros(4, np.int64)
    Device(machine=machine).launch(kernel("clocks", "timers"), output, block=(1,), start_cycle=3_000_000_000)
    time, cycle, again, low = output.tolist()
    # Reads follow each other, a move apart: half a nanosecond per cycle.
    assert cycle - 3_000_000_000 == 2 * time - 3_000_000_000 + COSTS["integer"]
    assert again == time + COSTS["integer"]
    # Two moves and three stores lie between.
    assert low == cycle + 5 * COSTS["integer"]


def test_costs_of_instructions_add_up() -> None:
    source = """.visible .entry costs(.param .u64 out) {
        .reg .b32 %r<4>; .reg .f32 %f<3>; .reg .b64 %rd<5>; .reg .pred %p; .shared .b32 word;
        ld.param.u64 %rd1, [out];
        mov.u64 %rd2, %clock64;
        add.s32 %r1, %r1, 1;
        ex2.approx.f32 %f1, %f2;
        ld.shared.u32 %r2, [word];
        ld.global.u32 %r3, [%rd1];
        setp.eq.u32 %p, %r3, 12345;
        @%p add.s32 %r1, %r1, 1;
        mov.u64 %rd3, %clock64;
        sub.u64 %rd4, %rd3, %rd2;
        st.global.u64 [%rd1], %rd4;
        ret; }"""
    output = np.zeros(1, np.int64)
    execution = Device().launch(compiled(source), output)
    # From the first read on: the move itself, add, ex2, two loads, setp, and the guarded add though it does nothing.
    assert output[0] == 4 * COSTS["integer"] + COSTS["special"] + COSTS["shared"] + COSTS["global"]
    assert execution.instructions == 12


def test_divergent_paths_are_paid_for_one_after_the_other() -> None:
    body = """.visible .entry paths(.param .u64 out, .param .u32 limit) {
        .reg .b32 %r<4>; .reg .b64 %rd<5>; .reg .pred %p;
        mov.u32 %r1, %tid.x; ld.param.u32 %r2, [limit];
        mov.u64 %rd2, %clock64;
        setp.lt.u32 %p, %r1, %r2;
        @%p bra few;
        ex2.approx.f32 %r3, %r1;
        bra done;
    few:
        mul.lo.u32 %r3, %r1, %r1;
    done:
        mov.u64 %rd3, %clock64;
        sub.u64 %rd4, %rd3, %rd2;
        ld.param.u64 %rd1, [out]; mad.wide.u32 %rd1, %r1, 8, %rd1;
        st.global.u64 [%rd1], %rd4;
        ret; }"""
    cheap, costly = 4 * COSTS["integer"], 4 * COSTS["integer"] + COSTS["special"]
    shared = 3 * COSTS["integer"]

    def cycles(limit: int, threads: int) -> list[int]:
        output = np.zeros(threads, np.int64)
        Device().launch(compiled(body), output, np.uint32(limit), block=(threads,))
        return output.tolist()

    assert cycles(64, 64) == [cheap] * 64
    assert cycles(0, 64) == [costly] * 64
    # The first warp goes one way, the second one the other; in the third case the first warp goes both.
    assert cycles(32, 64) == [cheap] * 32 + [costly] * 32
    assert cycles(8, 64) == [cheap + costly - shared] * 32 + [costly] * 32


@pytest.mark.parametrize("leaves", [0, 1])
def test_warps_leave_a_barrier_at_the_time_of_the_latest(leaves: int) -> None:
    """Warp 1 works longer before the barrier. With ``leaves``, the last warp exits and does not come."""
    source = """.visible .entry meets(.param .u64 out, .param .u32 leaves) {
        .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<4>;
        mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 1;
        ld.param.u32 %r3, [leaves]; add.u32 %r3, %r3, %r2; setp.eq.u32 %p2, %r3, 3;
        @!%p1 bra short;
        ex2.approx.f32 %r3, %r1; ex2.approx.f32 %r3, %r3;
    short:
        @%p2 exit;
        bar.sync 0;
        mov.u64 %rd2, %clock64;
        ld.param.u64 %rd1, [out]; mad.wide.u32 %rd1, %r1, 8, %rd1; st.global.u64 [%rd1], %rd2; ret; }"""
    output = np.zeros(96, np.int64)
    Device(machine=Machine(block_launch_cycles=0)).launch(compiled(source), output, np.uint32(leaves), block=(96,))
    # The longer way, the guarded exit, which costs those too who stay, and the barrier.
    before = 6 * COSTS["integer"] + COSTS["parameter"] + 2 * COSTS["special"]
    expected = before + COSTS["integer"] + COSTS["barrier"]
    assert output.tolist() == [expected] * (64 if leaves else 96) + [0] * (32 if leaves else 0)


def test_every_opcode_class_has_its_cost() -> None:
    expected = {
        "ld.global.v4.f32": "global",
        "ld.u32": "global",
        "ld.shared::cta.b32": "shared",
        "ld.const.f32": "parameter",
        "atom.shared.add.u32": "shared",
        "st.global.f32": "integer",
        "fma.rn.f64": "double",
        "div.rn.f32": "special",
        "shfl.sync.idx.b32": "warp",
        "bar.sync": "barrier",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": "matrix",
    }
    for name, kind in expected.items():
        opcode, *modifiers = name.split(".")
        assert instruction_cost(opcode, tuple(modifiers)) == COSTS[kind], name


def slots_of(machine: Machine, threads: int, shared: int) -> int:
    return machine.slots_per_sm(threads, shared)


def test_slots_are_limited_by_threads_blocks_warps_and_shared_memory() -> None:
    machine = Machine(max_threads_per_sm=2048, max_blocks_per_sm=16, warp_slots_per_sm=64, shared_bytes_per_sm=100_000)
    assert slots_of(machine, 32, 0) == 16
    assert slots_of(machine, 256, 0) == 8
    assert slots_of(machine, 1000, 0) == 2
    assert slots_of(machine, 33, 0) == 16
    assert slots_of(machine, 256, 30_000) == 3
    with pytest.raises(SimulationError, match="100 threads with 100001 bytes of shared memory does not fit"):
        slots_of(machine, 100, 100_001)


def greedy(machine: Machine, slots: int, durations: list[int]) -> list[tuple[int, int, int]]:
    """The schedule straight from its definition, one block after the other: (SM, slot, start)."""
    free = [(0, slot, sm) for slot in range(slots) for sm in range(machine.sm_count)]
    placed = []
    for cycles in durations:
        time, slot, sm = heapq.heappop(free)
        start = time + machine.block_launch_cycles
        placed.append((sm, slot, start))
        heapq.heappush(free, (start + cycles, slot, sm))
    return placed


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(1, 4),
    st.integers(1, 3),
    st.lists(st.integers(10, 20) | st.integers(10, 200), min_size=1, max_size=40),
    st.integers(0, 10),
    st.integers(0, 30),
    st.integers(1, 50),
)
def test_blocks_placed_together_are_placed_as_one_by_one(
    sms: int, slots: int, durations: list[int], shortest: int, launch: int, limit: int
) -> None:
    machine = Machine(sm_count=sms, block_launch_cycles=launch)
    schedule = Schedule(machine, slots, len(durations), shortest)
    placed = []
    while placements := schedule.next_placements(limit):
        placed += [(placement.sm, placement.slot, placement.start) for placement in placements]
        for placement in reversed(placements):
            schedule.finish_block(placement, durations[placement.block])
    assert placed == greedy(machine, slots, durations)
    assert schedule.end == max(start + cycles for (_, _, start), cycles in zip(placed, durations, strict=True))


@settings(max_examples=4, deadline=None)
@given(st.lists(st.integers(0, 8), min_size=1, max_size=20))
def test_executed_blocks_follow_the_greedy_schedule(trips: list[int]) -> None:
    seen, cycles = run(SMALL, trips)
    single = {trip: launched_alone(trip) - Machine().block_launch_cycles for trip in set(trips)}
    placed = greedy(SMALL, 2, [single[trip] for trip in trips])
    starts = (seen["start"][:, 0] - FIRST_READ).tolist()
    seen_order = list(zip(seen["sm"][:, 0].tolist(), seen["warp"][:, 0].tolist(), starts, strict=True))
    assert seen_order == placed
    assert cycles == max(start + single[trip] for (_, _, start), trip in zip(placed, trips, strict=True))


def test_reading_the_clock_does_not_change_the_schedule() -> None:
    """Kernels that do not know where they are run in larger batches and are placed afterwards, with the same result."""
    source = """.visible .entry loops(.param .u64 out, .param .u64 trips) {{
        .reg .b32 %r<4>; .reg .b64 %rd<5>; .reg .pred %p;
        mov.u32 %r1, %ctaid.x;
        ld.param.u64 %rd1, [trips]; mad.wide.u32 %rd1, %r1, 4, %rd1; ld.global.u32 %r2, [%rd1];
    again:
        add.s32 %r2, %r2, -1; setp.ge.s32 %p, %r2, 0; @%p bra again;
        mov.{read};
        ret; }}"""
    trips = np.random.default_rng(2).integers(0, 40, 100, np.int32)
    executions = [
        Device(machine=SMALL).launch(compiled(source.format(read=read)), np.zeros(1), trips, grid=(100,))
        for read in ("u64 %rd2, %clock64", "u64 %rd2, %rd1", "u32 %r3, %smid")
    ]
    assert executions[0] == executions[1] == executions[2]
