"""Warp-level operations: who takes part, and what each lane gets."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.simgpu.device import Device, compiled, kernel
from tui_probe.simgpu.executor import DeadlockError


def integers(low: int, high: int, count: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(5).integers(low, high, count, np.int32)


@pytest.mark.parametrize("threads", [32, 64, 50])
def test_shuffles(threads: int) -> None:
    values = integers(0, 1000, threads)
    output = np.zeros((6, threads), np.int32)
    Device().launch(kernel("warps", "shuffles"), output, values, block=(threads,))
    for i, x in enumerate(values.tolist()):
        first, lane = i - i % 32, i % 32

        def at(source: int, own: int = x, first: int = first) -> int:
            # A lane that is past the end of the block keeps its own value.
            return int(values[first + source]) if first + source < threads else own

        assert output[:, i].tolist() == [
            at(5),
            at(lane - 3) if lane >= 3 else x,
            at(lane + 2) if lane % 8 + 2 < 8 else x,
            at(lane ^ 9),
            at(x % 32),
            at(lane - lane % 4 + 9 % 4),
        ]


@pytest.mark.parametrize("threads", [32, 96, 40])
def test_votes_matches_and_reductions(threads: int) -> None:
    values = integers(-3, 12, threads)
    values[:32] = np.where(values[:32] < 0, 1, values[:32])
    output = np.zeros((6, threads), np.uint32)
    Device().launch(kernel("warps", "votes"), output, values, block=(threads,))
    for first in range(0, threads, 32):
        warp = values[first : first + 32].tolist()

        def mask(holds: list[bool]) -> int:
            return sum(1 << lane for lane, held in enumerate(holds) if held)

        high = [x >> 8 for x in warp]
        everyone = (1 << len(warp)) - 1
        unsigned = [x % 2**32 for x in warp]
        parity = 0
        for x in unsigned:
            parity ^= x
        for lane, x in enumerate(warp):
            assert output[:, first + lane].tolist() == [
                mask([other > 3 for other in warp]),
                any(other == 7 for other in warp) + 2 * all(other < 100 for other in warp),
                mask([other == x for other in warp]),
                everyone + 1 & 0xFFFFFFFF if len(set(high)) == 1 else 0,
                (sum(unsigned) + min(unsigned)) % 2**32,
                max(warp) % 2**32 ^ parity,
            ]


def test_votes_of_some_lanes() -> None:
    values = integers(0, 8, 64)
    output = np.zeros((64, 2), np.uint32)
    Device().launch(kernel("warps", "partial"), output, values, block=(64,))
    for first in (0, 32):
        warp = values[first : first + 32].tolist()
        odd = sum(1 << lane for lane, x in enumerate(warp) if x & 1)
        large = sum(1 << lane for lane, x in enumerate(warp) if x & 1 and x > 3)
        leader = first + min(lane for lane, x in enumerate(warp) if x & 1)
        for lane, x in enumerate(warp):
            expected = [large, leader] if x & 1 else [odd ^ 0xFFFFFFFF, 32 - odd.bit_count()]
            assert output[first + lane].tolist() == expected


def test_lanes_wait_for_each_other_after_a_loop() -> None:
    trips = integers(0, 20, 96)
    output = np.zeros(96, np.int32)
    Device().launch(kernel("warps", "after_loop"), output, trips, block=(96,))
    sums = [i * n * (n - 1) // 2 for i, n in enumerate(trips.tolist())]
    assert output.tolist() == [sums[i ^ 1] for i in range(96)]


def test_a_warp_meets_at_barriers_in_both_branches() -> None:
    output = np.zeros(32, np.int32)
    Device().launch(kernel("warps", "meet_in_branches"), output)
    shared = [10 * i if i < 11 else i for i in range(32)]
    assert output.tolist() == shared[::-1]


def test_compaction() -> None:
    values = integers(0, 100, 1000)
    output, size = np.zeros(1000, np.int32), np.zeros(1, np.uint32)
    Device().launch(kernel("warps", "compact"), output, size, values, np.int32(1000), grid=(8,), block=(128,))
    multiples = [x for x in values.tolist() if x % 3 == 0]
    assert size[0] == len(multiples)
    assert Counter(output[: len(multiples)].tolist()) == Counter(multiples)


def test_lane_masks() -> None:
    names = ["eq", "lt", "le", "gt", "ge"]
    reads = "\n".join(
        f"mov.u32 %r2, %lanemask_{name}; st.global.u32 [%rd2+{4 * n}], %r2;" for n, name in enumerate(names)
    )
    source = f""".visible .entry masks(.param .u64 out) {{
        .reg .b32 %r<3>; .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [out]; mad.wide.u32 %rd2, %laneid, 20, %rd1; {reads} ret; }}"""
    output = np.zeros((32, 5), np.uint32)
    Device().launch(compiled(source), output)
    for lane in range(32):
        below = (1 << lane) - 1
        own = 1 << lane
        above = 0xFFFFFFFF ^ below ^ own
        assert output[lane].tolist() == [own, below, below | own, above, above | own]


def test_elect_names_the_lowest_lane() -> None:
    source = """.visible .entry elects(.param .u64 out) {
        .reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .pred %p<3>;
        mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5; @%p1 ret;
        elect.sync %r2|%p2, 0xffffffff;
        @%p2 add.u32 %r2, %r2, 100;
        ld.param.u64 %rd1, [out]; mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r2; ret; }"""
    output = np.zeros(32, np.uint32)
    Device().launch(compiled(source), output)
    assert output.tolist() == [0] * 5 + [105] + [5] * 26


def test_halves_of_a_warp_reduce_and_match_separately() -> None:
    """The halves have masks of their own in one instruction; then few of the lanes match."""
    source = """.visible .entry halves(.param .u64 out) {
        .reg .b32 %r<8>; .reg .b64 %rd<3>; .reg .pred %p<3>;
        mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16; selp.b32 %r2, 0x0000ffff, 0xffff0000, %p1;
        redux.sync.add.u32 %r3, %r1, %r2;
        and.b32 %r4, %r1, 1; mov.u32 %r5, 0;
        setp.lt.u32 %p2, %r1, 6; @!%p2 bra done;
        match.any.sync.b32 %r5, %r4, 0x3f;
    done:
        ld.param.u64 %rd1, [out]; mad.wide.u32 %rd2, %r1, 8, %rd1; st.global.v2.u32 [%rd2], {%r3, %r5}; ret; }"""
    output = np.zeros((32, 2), np.uint32)
    Device().launch(compiled(source), output)
    assert output[:, 0].tolist() == [sum(range(16))] * 16 + [sum(range(16, 32))] * 16
    assert output[:, 1].tolist() == [0b010101, 0b101010] * 3 + [0] * 26


def test_lanes_that_never_come_are_a_deadlock() -> None:
    source = """.visible .entry waits() {
        .reg .b32 %r<3>; .reg .pred %p;
        mov.u32 %r1, %tid.x; setp.lt.u32 %p, %r1, 5;
        @%p bra first;
        bar.sync 0;
        bra done;
    first:
        shfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffffffff;
    done: ret; }"""
    with pytest.raises(DeadlockError, match=r"deadlock at barrier 0, line 8: 27 threads of 32 arrived"):
        Device().launch(compiled(source))


def test_exited_lanes_are_not_waited_for() -> None:
    source = """.visible .entry waits(.param .u64 out) {
        .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p<3>;
        mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 1;
        @%p1 bra first;
        vote.sync.ballot.b32 %r3, %p1, 0xffffffff;
        vote.sync.any.pred %p2, %p1, 0xffffffff;
        not.b32 %r3, %r3;
        ld.param.u64 %rd1, [out]; mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r3;
        ret;
    first: ret; }"""
    output = np.zeros(32, np.uint32)
    Device().launch(compiled(source), output)
    assert output.tolist() == [0xFFFFFFFF, 0] * 16


def test_lanes_that_come_late_complete_their_warp() -> None:
    """The first half of warp 0 takes a detour that lies behind the shuffle; warp 1 continues meanwhile."""
    source = """.visible .entry detours(.param .u64 out) {
        .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p;
        mov.u32 %r1, %tid.x; setp.lt.u32 %p, %r1, 16;
        @%p bra detour;
    meet:
        shfl.sync.bfly.b32 %r2, %r1, 16, 31, 0xffffffff;
        ld.param.u64 %rd1, [out]; mov.u32 %r3, %tid.x; mad.wide.u32 %rd2, %r3, 4, %rd1; st.global.u32 [%rd2], %r2; ret;
    detour:
        add.u32 %r1, %r1, 100; bra meet; }"""
    output = np.zeros(64, np.uint32)
    Device().launch(compiled(source), output, block=(64,))
    assert output.tolist() == [*range(16, 32), *range(100, 116), *range(48, 64), *range(32, 48)]


def test_halves_of_a_warp_at_different_shuffles_are_a_deadlock() -> None:
    source = """.visible .entry parted() {
        .reg .b32 %r<3>; .reg .pred %p;
        mov.u32 %r1, %tid.x; setp.lt.u32 %p, %r1, 16;
        @%p bra other;
        shfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffffffff; ret;
    other:
        shfl.sync.idx.b32 %r2, %r1, 1, 31, 0xffffffff; ret; }"""
    message = (
        r"line 8: lanes 0-15 of the mask 0xffffffff have not arrived; one of the waiting threads is"
        r" block \(0, 0, 0\), thread \(16"
    )
    with pytest.raises(DeadlockError, match=message):
        Device().launch(compiled(source))
