"""Barriers, atomics, locks, and what blocks do together."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simgpu.device import HEADER, Device, compiled, kernel
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.executor import DeadlockError, MisalignedAddressError, TrapError, UnsupportedInstructionError
from tui_probe.simgpu.modules import module_variables


def integers(low: int, high: int, count: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(7).integers(low, high, count, np.int32)


@pytest.mark.parametrize("threads", [32, 100])
def test_reductions_of_barriers(threads: int) -> None:
    values = integers(-10, 10, 3 * threads)
    output = np.zeros(3 * threads, np.int32)
    Device().launch(kernel("blocks", "counts"), output, values, grid=(3,), block=(threads,))
    for block in range(3):
        own = values[block * threads : (block + 1) * threads]
        expected = (own > 0).sum() + 1000 * bool((own > -10).all()) + 2000 * bool((own == 3).any())
        assert (output[block * threads : (block + 1) * threads] == expected).all()


def test_threads_that_left_do_not_hold_up_a_barrier() -> None:
    output = np.full(128, -1, np.int32)
    Device().launch(kernel("blocks", "leave_early"), output, np.int32(9), grid=(1,), block=(128,))
    shared, alive, expected = list(range(128)), [True] * 128, [-1] * 128
    for round_ in range(9):
        read = [shared[(i + 1) % 128] for i in range(128)]
        for i in range(128):
            if alive[i]:
                shared[i] = read[i] + 1
                alive[i] = i != 3 * round_ + 40
    for i in range(128):
        if alive[i]:
            expected[i] = shared[i]
    assert output.tolist() == expected


STARVING: Final = """
.visible .entry k(.param .u64 out) {
.reg .b64 %rd<2>; .reg .b32 %r<4>; .reg .pred %p<3>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, LOW; @%p1 bra $later;
$loop: add.u32 %r3, %r3, 1; ld.global.u32 %r2, [%rd1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra $loop;
st.global.u32 [%rd1+4], %r3; bra $end;
$later: st.global.u32 [%rd1], 1;
$end: bar.sync 0; ret; }"""


@pytest.mark.parametrize("low", [32, 40])
def test_other_warps_have_a_turn_while_one_is_in_a_loop_for_long(low: int) -> None:
    """A warp of its own, and a whole warp with lanes of another: these lanes stay behind those in the loop."""
    output = np.zeros(2, np.uint32)
    Device().launch(compiled(STARVING.replace("LOW", str(low))), output, block=(96,))
    assert output[0] == 1
    assert output[1] > 1000


def test_named_barriers() -> None:
    output = np.zeros(128, np.int32)
    Device().launch(kernel("blocks", "named_barriers"), output, block=(128,))
    for i in range(128):
        half = i // 64
        value = half * 64 + (i + 32) % 64 + 2 + half
        assert output[i] == value + (7 * (i - 64) if half else 0)


@pytest.mark.parametrize("arrival", ["bar.sync 1, 64;", "bar.arrive 1, 64;"])
@pytest.mark.parametrize(("threads", "first_that_ends"), [(64, 40), (40, 64)])
def test_barrier_of_a_count_counts_whole_warps(arrival: str, threads: int, first_that_ends: int) -> None:
    """By the PTX ISA, a warp has arrived when its threads that have not exited have, and counts as 32."""
    body = f"""setp.ge.u32 %p1, %r1, {first_that_ends};\n@%p1 ret;\nsetp.lt.u32 %p2, %r1, 32;\n@%p2 bra A;
    {arrival}\nbra B;\nA:\nbar.sync 1, 64;\nB:\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd2, %rd1, %rd2;
    st.global.u32 [%rd2], 7;"""
    source = f""".visible .entry kernel(.param .u64 out) {{\n.reg .pred %p<3>;\n.reg .b32 %r<2>;\n.reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\n{body}\nret;\n}}"""
    output = np.zeros(64, np.uint32)
    Device().launch(compiled(source), output, block=(threads,))
    assert output.tolist() == [7] * 40 + [0] * 24


def test_deadlock_is_reported_immediately() -> None:
    with pytest.raises(
        DeadlockError,
        match=r"deadlock at barrier [12], line \d+: 16 threads of 32 arrived; one of the waiting threads is",
    ):
        Device().launch(kernel("blocks", "deadlock"), np.zeros(32, np.int32))


def test_histogram_in_shared_memory() -> None:
    data = np.random.default_rng(1).integers(0, 256, 5000).astype(np.uint8)
    bins = np.zeros(256, np.uint32)
    Device().launch(kernel("blocks", "histogram"), bins, data, np.int32(5000), grid=(3,), block=(128,))
    assert bins.tolist() == np.bincount(data, minlength=256).tolist()


@pytest.mark.parametrize(("blocks", "threads"), [(1, 64), (5, 40)])
def test_a_spin_lock_lets_its_holder_go_on(blocks: int, threads: int) -> None:
    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int32)
    Device().launch(kernel("blocks", "locked"), lock, total, grid=(blocks,), block=(threads,))
    assert (lock[0], total[0]) == (0, blocks * threads)


def test_a_thread_that_polls_does_not_keep_others_at_a_barrier() -> None:
    """Thread 0 waits for a flag that is set only after threads 32 and up have met at a barrier."""
    source = """.visible .entry polls(.param .u64 flag) {
        .reg .b32 %r<4>; .reg .b64 %rd; .reg .pred %p<4>;
        ld.param.u64 %rd, [flag]; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32;
        @!%p1 bra meets;
    again: ld.volatile.global.u32 %r2, [%rd]; setp.eq.u32 %p2, %r2, 0; @%p2 bra again;
        bra done;
    meets: bar.sync 3, 64; setp.eq.u32 %p3, %r1, 40; @%p3 st.global.u32 [%rd], 1;
    done: ret; }"""
    flag = np.zeros(1, np.uint32)
    Device().launch(compiled(source), flag, block=(96,))
    assert flag[0] == 1


def test_reductions_over_threads_that_come_from_different_places() -> None:
    """Odd threads come through another `bar.red` than even ones, and thread 5 has left."""
    source = """.visible .entry counts(.param .u64 out) {
        .reg .b32 %r<6>; .reg .b64 %rd<3>; .reg .pred %p<6>;
        mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 5; @%p1 exit;
        setp.lt.u32 %p2, %r1, 40; setp.lt.u32 %p4, %r1, 200; and.b32 %r2, %r1, 1; setp.eq.u32 %p3, %r2, 1;
        @%p3 bra odd;
        bar.red.popc.u32 %r3, 1, %p2; barrier.cta.red.and.pred %p5, 2, %p4;
        bra done;
    odd:
        bar.red.popc.u32 %r3, 1, !%p2; bar.red.and.pred %p5, 2, %p4;
    done:
        selp.u32 %r4, 1000, 0, %p5; add.u32 %r3, %r3, %r4;
        ld.param.u64 %rd1, [out]; mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r3; ret; }"""
    output = np.zeros(96, np.uint32)
    Device().launch(compiled(source), output, block=(96,))
    # Even ones below 40 and odd ones from 40 on.
    assert output.tolist() == [0 if i == 5 else 1000 + 20 + 28 for i in range(96)]


def test_blocks_leave_a_barrier_one_by_one() -> None:
    """Half of each even block waits for the odd block after it, which must get past the barrier first."""
    source = """.visible .entry staggered(.param .u64 flags, .param .u64 out) {
        .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p<6>;
        mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; and.b32 %r3, %r2, 1;
        ld.param.u64 %rd1, [flags]; shr.u32 %r4, %r2, 1; mad.wide.u32 %rd2, %r4, 4, %rd1;
        setp.lt.u32 %p1, %r1, 32; setp.eq.u32 %p2, %r3, 1; or.pred %p3, %p1, %p2;
        @%p3 bra meet;
    again: ld.acquire.gpu.global.u32 %r5, [%rd2]; setp.eq.u32 %p4, %r5, 0; @%p4 bra again;
    meet:  bar.sync 0;
        @%p2 st.global.u32 [%rd2], 1;
        ld.param.u64 %rd3, [out]; mad.lo.u32 %r6, %r2, 64, %r1; mad.wide.u32 %rd4, %r6, 4, %rd3;
        st.global.u32 [%rd4], %r6; ret; }"""
    flags, output = np.zeros(3, np.uint32), np.zeros(384, np.uint32)
    Device().launch(compiled(source), flags, output, grid=(6,), block=(64,))
    assert output.tolist() == list(range(384))


def test_warps_leave_their_barriers_one_by_one() -> None:
    """The upper half of warp 0 waits for warp 1, which must get past its own barrier first."""
    source = """.visible .entry staggered(.param .u64 flag, .param .u64 out) {
        .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p<6>;
        mov.u32 %r1, %tid.x; mov.u32 %r2, %laneid; ld.param.u64 %rd1, [flag]; mov.b32 %r6, 0xffffffff;
        setp.lt.u32 %p1, %r2, 16; setp.ge.u32 %p2, %r1, 32; or.pred %p3, %p1, %p2;
        @%p1 bra meet;
        @%p2 bra other;
    again: ld.volatile.global.u32 %r5, [%rd1]; setp.eq.u32 %p4, %r5, 0; @%p4 bra again;
    other: bar.warp.sync %r6; bra done;
    meet:  bar.warp.sync %r6;
    done:
        @%p2 st.global.u32 [%rd1], 1;
        ld.param.u64 %rd3, [out]; mad.wide.u32 %rd4, %r1, 4, %rd3; st.global.u32 [%rd4], %r1; ret; }"""
    flag, output = np.zeros(1, np.uint32), np.zeros(64, np.uint32)
    Device().launch(compiled(source), flag, output, block=(64,))
    assert output.tolist() == list(range(64))


def test_lanes_missing_from_a_barrier_of_a_warp_are_a_deadlock() -> None:
    source = """.visible .entry waits() { .reg .b32 %r; .reg .pred %p; mov.u32 %r, %tid.x; setp.lt.u32 %p, %r, 8;
        @%p bra first; bar.sync 0; ret;
    first: bar.warp.sync 0xffff; ret; }"""
    with pytest.raises(DeadlockError, match="deadlock at barrier 0"):
        Device().launch(compiled(source))
    with pytest.raises(
        DeadlockError,
        match=r"deadlock at bar\.warp\.sync, line 6: lanes 8-15 of the mask 0xffff have not arrived",
    ):
        Device().launch(compiled(source.replace("bar.sync 0; ret;", "shfl.sync.idx.b32 %r, %r, 0, 31, -1; ret;")))


def test_blocks_that_wait_for_earlier_blocks() -> None:
    flags, output = np.zeros(50, np.int32), np.zeros(50, np.int32)
    Device().launch(kernel("blocks", "chained"), flags, output, grid=(50,), block=(32,))
    assert output.tolist() == list(range(50))


def test_atomic_operations() -> None:
    values = integers(-100, 100, 300)
    ints = np.array([10**6, -(10**6), 5], np.int32)
    unsigneds = np.array([0xFFFFFFFF, 0, 0, 0, 0], np.uint32)
    floats, longs, doubles = np.array([0, 0, 0, 0, -1e9], np.float32), np.zeros(1, np.uint64), np.zeros(2)
    returned = np.zeros(300, np.int32)
    Device().launch(
        kernel("blocks", "atomic_operations"),
        ints,
        unsigneds,
        floats,
        longs,
        doubles,
        values,
        returned,
        grid=(3,),
        block=(100,),
    )
    index = np.arange(300)
    assert ints.tolist() == [values.min(), values.max(), 5 - 300]
    assert sorted(returned.tolist()) == list(range(5 - 299, 6))
    wrapped, down = 0, 0
    for _ in range(300):
        wrapped = 0 if wrapped >= 5 else wrapped + 1
        down = 6 if down == 0 or down > 6 else down - 1
    parity = np.bitwise_xor.reduce(values.view(np.uint32))
    assert unsigneds.tolist() == [0, 0xFF, parity, wrapped, down]
    for number in range(4):
        assert floats[number] == np.cumsum((values[index % 4 == number] * np.float32(0.5)).astype(np.float32))[-1]
    assert floats[4] == values.max() * 0.25
    assert longs[0] == int(values.astype(np.int64).sum()) * 1000000007 % 2**64
    np.testing.assert_allclose(doubles, [0.1 * values[::2].sum(), 0.1 * values[1::2].sum()], rtol=1e-12)


ATOMIC = """.visible .entry atomics(
    .param .u64 memory, .param .u64 old, .param .u64 places, .param .u64 a, .param .u64 b
) {{
    .reg .b32 %i, %old, %a, %b; .reg .b64 %m, %p, %rd;
    mov.u32 %i, %tid.x;
    ld.param.u64 %rd, [places]; mad.wide.u32 %rd, %i, 4, %rd; ld.global.u32 %old, [%rd];
    ld.param.u64 %m, [memory]; mad.wide.u32 %m, %old, 4, %m;
    ld.param.u64 %rd, [a]; mad.wide.u32 %rd, %i, 4, %rd; ld.global.u32 %a, [%rd];
    ld.param.u64 %rd, [b]; mad.wide.u32 %rd, %i, 4, %rd; ld.global.u32 %b, [%rd];
    {instruction}
    ld.param.u64 %rd, [old]; mad.wide.u32 %rd, %i, 4, %rd; st.global.u32 [%rd], %old;
    ret; }}"""

SEQUENTIAL = {
    "add.u32": lambda old, a, _: (old + a) % 2**32,
    "min.u32": lambda old, a, _: min(old, a),
    "max.u32": lambda old, a, _: max(old, a),
    "and.b32": lambda old, a, _: old & a,
    "or.b32": lambda old, a, _: old | a,
    "xor.b32": lambda old, a, _: old ^ a,
    "exch.b32": lambda _old, a, _: a,
    "inc.u32": lambda old, a, _: 0 if old >= a else old + 1,
    "dec.u32": lambda old, a, _: a if old == 0 or old > a else old - 1,
    "cas.b32": lambda old, a, b: b if old == a else old,
}


@pytest.mark.parametrize("name", SEQUENTIAL)
@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3) | st.integers(0, 63), st.integers(0, 5) | st.integers(0, 2**32 - 1), st.integers(0, 5)
        ),
        min_size=1,
        max_size=64,
    )
)
def test_lanes_act_one_after_the_other(name: str, rows: list[tuple[int, int, int]]) -> None:
    places, a, b = (np.array(column, np.uint32) for column in zip(*rows, strict=True))
    memory, old = np.arange(64, dtype=np.uint32) % 7, np.zeros(len(rows), np.uint32)
    expected, seen = memory.tolist(), []
    for place, first, second in rows:
        seen.append(expected[place])
        expected[place] = SEQUENTIAL[name](expected[place], first, second)
    last = ", %b" if name == "cas.b32" else ""
    function = compiled(ATOMIC.format(instruction=f"atom.global.{name} %old, [%m], %a{last};"))
    reduced = memory.copy()
    Device().launch(function, memory, old, places, a, b, block=(len(rows),))
    assert memory.tolist() == expected
    assert old.tolist() == seen
    if not name.startswith(("cas", "exch")):  # red has neither
        function = compiled(ATOMIC.format(instruction=f"red.global.{name} [%m], %a;"))
        Device().launch(function, reduced, old, places, a, b, block=(len(rows),))
        assert reduced.tolist() == expected


def test_half_precision_atomics() -> None:
    source = """.visible .entry adds(.param .u64 memory) {
        .reg .b32 %r; .reg .b64 %rd; .reg .b16 %h;
        ld.param.u64 %rd, [memory]; mov.b32 %r, 0x40003c00; mov.b16 %h, 0x3800;
        red.global.add.noftz.f16x2 [%rd], %r;
        atom.global.add.noftz.f16 %h, [%rd+4], %h; ret; }"""
    memory = np.zeros(4, np.float16)
    Device().launch(compiled(source), memory, block=(20,))
    assert memory.tolist() == [20.0, 40.0, 10.0, 0.0]


def test_carry_on_past_an_unsupported_instruction_that_is_not_reached() -> None:
    source = """.visible .entry textures(.param .u32 reads) {
        .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd;
        ld.param.u32 %r1, [reads]; mov.u32 %r2, %tid.x; setp.lt.u32 %p, %r2, %r1;
        @%p tex.1d.v4.s32.s32 {%r1, %r2, %r3, %r4}, [%rd, {%r5}];
        ret; }"""
    Device().launch(compiled(source), np.uint32(0))
    way_out = r"^unsupported instruction tex\.1d\S+ at line 7 .*has no textures.*ld\.global"
    with pytest.raises(UnsupportedInstructionError, match=way_out):
        Device().launch(compiled(source), np.uint32(1))


@pytest.mark.parametrize(
    "instruction",
    [
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
        " [%r1], [%rd, {%r2, %r3, %r4}], [%r4], {%h}",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%r1], [%rd, {%r2, %r3}], [%r4], %h",
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd, {%r2, %r3}], [%r4]",
    ],
)
def test_other_copies_by_tensor_map_are_refused_with_what_there_is(instruction: str) -> None:
    source = f".visible .entry copies() {{ .reg .b32 %r<6>; .reg .b64 %rd; .reg .b16 %h; {instruction}; ret; }}"
    with pytest.raises(
        UnsupportedInstructionError, match="the simulated GPU does not support tensor-map copies with im2col"
    ):
        Device().launch(compiled(source))


def test_a_module_that_has_textures_runs_what_uses_none() -> None:
    source = HEADER + ".global .texref image;\n.global .u32 number = 3 + 4;\n.visible .entry k() { ret; }\n"
    assert [variable.name for variable in module_variables(parse(source))] == ["number"]
    Device().launch(compiled(source))


def test_trap() -> None:
    source = """.visible .entry traps() { .reg .pred %p; .reg .b32 %r; mov.u32 %r, %ctaid.x; setp.eq.u32 %p, %r, 2;
        @%p trap; ret; }"""
    Device().launch(compiled(source), grid=(2,))
    with pytest.raises(TrapError, match=r"trap at line 5, block \(2, 0, 0\), thread \(0, 0, 0\)"):
        Device().launch(compiled(source), grid=(4,))


def test_atomics_of_vectors_are_those_of_their_elements() -> None:
    source = """.visible .entry adds(.param .u64 memory, .param .u64 out) {
        .reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .f32 %f<5>; .reg .b16 %h<3>;
        ld.param.u64 %rd1, [memory]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1;
        neg.f32 %f2, %f1; atom.global.gpu.acq_rel.add.v2.f32 {%f3, %f4}, [%rd1], {%f1, %f2};
        mad.wide.u32 %rd2, %r1, 8, %rd2; st.global.v2.f32 [%rd2], {%f3, %f4};
        mov.b16 %h1, 0x3c00; mov.b16 %h2, 0x4000;
        red.global.add.noftz.v2.f16 [%rd1+8], {%h1, %h2}; ret; }"""
    memory, out = np.zeros(3, np.float32), np.zeros((20, 2), np.float32)
    Device().launch(compiled(source), memory, out, block=(20,))
    before = np.cumsum(np.arange(20)) - np.arange(20)
    assert out.tolist() == [[number, -number] for number in before]
    assert memory[:2].tolist() == [190, -190]
    assert memory[2:].view(np.float16).tolist() == [20, 40]
    with pytest.raises(MisalignedAddressError):
        Device().launch(compiled(source.replace("[%rd1], {%f1", "[%rd1+4], {%f1")), memory, out)
