"""mbarriers: their phases are exact, and those who wait come through when the phase ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.simgpu.device import Device, compiled
from tui_probe.errors import SimulationError
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.executor import DeadlockError, compile_kernel
from tui_probe.simgpu.executor.async_state import MAX_COUNT, MBarrierWord
from tui_probe.simgpu.executor.faults import MBarrierError
from tui_probe.simgpu.executor.model import COPY_LATENCY, COSTS, TRY_WAIT_CYCLES, copy_cycles

WAITS = parse((Path(__file__).parent.parent / "data" / "ptx" / "waits.sm_90a.ptx").read_text())
Outputs = np.ndarray[Any, np.dtype[np.uint64]]

KERNEL = """.visible .entry kernel(.param .u64 out, .param .u64 data, .param .u32 number)
{{
.reg .pred %p<9>;
.reg .b32 %r<19>;
.reg .b64 %rd<19>;
.shared .align 16 .b8 tile[4096];
.shared .align 8 .b64 bar;
.shared .align 8 .b64 other;
ld.param.u64 %rd1, [out];
ld.param.u64 %rd2, [data];
ld.param.u32 %r2, [number];
mov.u32 %r1, %tid.x;
mad.wide.u32 %rd1, %r1, 32, %rd1;
shr.u32 %r3, %r1, 5;
mov.u32 %r4, bar;
mov.u32 %r5, tile;
{body}
ret;
}}
"""
OTHERS_WORK = """
setp.ne.u32 %p1, %r1, 0;
@%p1 bra $ready;
mbarrier.init.shared::cta.b64 [%r4], 32;
fence.mbarrier_init.release.cluster;
$ready:
bar.sync 0;
setp.eq.u32 %p2, %r3, 1;
@%p2 bra $consume;
$work:
setp.eq.u32 %p1, %r2, 0;
@%p1 bra $arrive;
sub.u32 %r2, %r2, 1;
bra $work;
$arrive:
mbarrier.arrive.release.cta.shared::cta.b64 %rd5, [%r4];
mov.u64 %rd6, %clock64;
st.global.u64 [%rd1], %rd6;
ret;
$consume:
mov.u64 %rd6, %clock64;
WAIT
mov.u64 %rd7, %clock64;
st.global.v2.u64 [%rd1], {%rd6, %rd7};
"""
TRY = "$again:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p3, [%r4], 0;\n@!%p3 bra $again;"
TEST = "$again:\nmbarrier.test_wait.parity.shared.b64 %p3, [bar], 0;\n@!%p3 bra $again;"
GENERIC = (
    "cvt.u64.u32 %rd8, %r4;\ncvta.shared.u64 %rd8, %rd8;\n$again:\nmbarrier.try_wait.parity.b64 %p3, [%rd8], 0;\n"
    "@%p3 bra $out;\nbra $again;\n$out:"
)


def run(body: str, *, threads: int = 1, number: int = 0, size: int = 4096) -> Outputs:
    """Return the four numbers that each thread wrote."""
    out = np.zeros((threads, 4), np.uint64)
    data = (np.arange(size) % 251).astype(np.uint8)
    Device().launch(compiled(KERNEL.format(body=body)), out, data, np.uint32(number), block=(threads,))
    return out


def test_a_phase_ends_with_its_last_arrival() -> None:
    body = """
    mbarrier.init.shared.b64 [%r4], 3;
    mbarrier.arrive.shared.b64 %rd4, [%r4];
    mbarrier.pending_count.b64 %r6, %rd4;
    mbarrier.arrive.noComplete.shared.b64 %rd5, [%r4], 1;
    mbarrier.pending_count.b64 %r7, %rd5;
    mbarrier.test_wait.shared.b64 %p1, [%r4], %rd4;
    mbarrier.arrive.shared.b64 %rd6, [%r4], 1;
    mbarrier.test_wait.shared.b64 %p2, [%r4], %rd4;
    mbarrier.test_wait.parity.shared.b64 %p3, [%r4], 0;
    mbarrier.test_wait.parity.shared.b64 %p4, [%r4], 1;
    mbarrier.arrive.shared.b64 %rd7, [%r4];
    mbarrier.pending_count.b64 %r8, %rd7;
    selp.u32 %r9, 1, 0, %p1;
    selp.u32 %r10, 2, 0, %p2;
    selp.u32 %r11, 4, 0, %p3;
    selp.u32 %r12, 8, 0, %p4;
    add.u32 %r9, %r9, %r10;
    add.u32 %r9, %r9, %r11;
    add.u32 %r9, %r9, %r12;
    st.global.v4.u32 [%rd1], {%r6, %r7, %r8, %r9};
    """
    result = run(body).view(np.uint32)[0, :4].tolist()
    assert result == [3, 2, 3, 2 + 4], "pending before each arrival; the phase before is over, this one is not"


def test_who_drops_out_is_expected_no_more() -> None:
    body = """
    mbarrier.init.shared.b64 [%r4], 2;
    mbarrier.arrive_drop.shared.b64 %rd4, [%r4];
    mbarrier.arrive.shared.b64 _, [%r4];
    mbarrier.arrive.shared.b64 %rd5, [%r4];
    mbarrier.test_wait.parity.shared.b64 %p1, [%r4], 1;
    mbarrier.pending_count.b64 %r6, %rd5;
    selp.u32 %r7, 1, 0, %p1;
    st.global.v2.u32 [%rd1], {%r6, %r7};
    """
    assert run(body).view(np.uint32)[0, :2].tolist() == [1, 1]


def test_a_phase_waits_for_the_bytes_that_are_expected() -> None:
    body = """
    mbarrier.init.shared.b64 [%r4], 1;
    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r4], 48;
    mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r4], 16;
    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r4], 48;
    mbarrier.test_wait.parity.shared.b64 %p1, [%r4], 0;
    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r4], 16;
    mbarrier.test_wait.parity.shared.b64 %p2, [%r4], 0;
    selp.u32 %r6, 1, 0, %p1;
    selp.u32 %r7, 1, 0, %p2;
    st.global.v2.u32 [%rd1], {%r6, %r7};
    """
    assert run(body).view(np.uint32)[0, :2].tolist() == [0, 1]


@pytest.mark.parametrize("wait", [TRY, GENERIC], ids=["try_wait", "generic"])
@pytest.mark.parametrize("rounds", [0, 20, 2000])
def test_who_waits_comes_through_when_the_phase_ends(wait: str, rounds: int) -> None:
    """Two thousand rounds take longer than one try does."""
    result = run(OTHERS_WORK.replace("WAIT", wait), threads=64, number=rounds).astype(np.int64)
    arrived = result[0, 0]
    reached, through = result[32, :2]
    least = reached + COSTS["integer"] + COSTS["shared"]
    overhead = 2 * COSTS["integer"] + 2 * COSTS["shared"] if wait is TRY else 5 * COSTS["integer"] + COSTS["shared"]
    assert max(arrived, least) <= through <= max(arrived, least) + overhead
    assert bool(arrived - reached > TRY_WAIT_CYCLES) == (rounds == 2000)
    assert (result[32:] == result[32]).all()


def test_a_test_does_not_wait() -> None:
    """It is over by the first test whose time is behind the arrival, not before."""
    result = run(OTHERS_WORK.replace("WAIT", TEST), threads=64, number=50).astype(np.int64)
    arrived, through = result[0, 0], result[32, 1]
    a_round = COSTS["shared"] + COSTS["integer"]
    assert arrived <= through <= arrived + a_round + COSTS["integer"]


@pytest.mark.parametrize(
    ("hint", "cycles"), [("", TRY_WAIT_CYCLES), (", 40", 40), (", 5000", 5000)], ids=["own", "short", "long"]
)
def test_a_try_gives_up(hint: str, cycles: int) -> None:
    body = f"""
    mbarrier.init.shared.b64 [%r4], 1;
    mov.u64 %rd6, %clock64;
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0{hint};
    mov.u64 %rd7, %clock64;
    selp.u64 %rd8, 1, 0, %p1;
    st.global.v2.u64 [%rd1], {{%rd6, %rd7}};
    st.global.u64 [%rd1+16], %rd8;
    """
    begin, end, is_over = run(body)[0, :3].tolist()
    assert end - begin == COSTS["integer"] + COSTS["shared"] + cycles
    assert not is_over


@pytest.mark.parametrize("size", [16, 1024, 4096])
def test_a_bulk_copy_arrives_with_its_bytes(size: int) -> None:
    body = """
    mbarrier.init.shared.b64 [%r4], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], %r2;
    mov.u64 %rd6, %clock64;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd2], %r2, [%r4];
    $again:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0;
    @!%p1 bra $again;
    mov.u64 %rd7, %clock64;
    add.u32 %r6, %r5, %r2;
    ld.shared.u64 %rd8, [%r6+-8];
    st.global.v2.u64 [%rd1], {%rd6, %rd7};
    st.global.u64 [%rd1+16], %rd8;
    """
    begin, end, last = run(body, number=size)[0, :3].tolist()
    assert end - begin == COSTS["integer"] + COPY_LATENCY + copy_cycles(size) + COSTS["integer"]
    assert np.uint64(last).tobytes() == bytes(place % 251 for place in range(size - 8, size))


@pytest.mark.parametrize(
    ("form", "count", "extra"), [(".noinc", 32, ""), ("", 32, "mbarrier.arrive.shared.b64 _, [bar];")]
)
def test_an_mbarrier_tracks_copies_of_threads(form: str, count: int, extra: str) -> None:
    """With noinc each thread's copies are an arrival of their own; without, they only put off the end."""
    body = f"""
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra $ready;
    mbarrier.init.shared::cta.b64 [%r4], {count};
    $ready:
    bar.sync 0;
    shl.b32 %r6, %r1, 4;
    add.u32 %r7, %r5, %r6;
    cvt.u64.u32 %rd3, %r6;
    add.u64 %rd3, %rd3, %rd2;
    mov.u64 %rd6, %clock64;
    cp.async.cg.shared.global [%r7], [%rd3], 16;
    cp.async.mbarrier.arrive{form}.shared::cta.b64 [%r4];
    {extra}
    $again:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
    @!%p2 bra $again;
    mov.u64 %rd7, %clock64;
    st.global.v2.u64 [%rd1], {{%rd6, %rd7}};
    """
    begin, end = run(body, threads=32)[0, :2].tolist()
    assert end - begin == COSTS["integer"] + COPY_LATENCY + copy_cycles(512) + COSTS["integer"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("mbarrier.arrive.shared.b64 _, [%r4];", "not initialised"),
        ("mbarrier.init.shared.b64 [%r4], 1;\nmbarrier.inval.shared.b64 [%r4];\nmbarrier.arrive.shared.b64 _, [%r4];",
         "not initialised"),
        ("mbarrier.init.shared.b64 [%r4], 0;", "must be from 1"),
        ("mbarrier.init.shared.b64 [%r4], 2;\nmbarrier.arrive.shared.b64 %rd4, [%r4], 3;", "more arrivals than"),
        ("mbarrier.init.shared.b64 [%r4], 1;\nmbarrier.arrive.noComplete.shared.b64 %rd4, [%r4], 1;", "noComplete"),
        ("mbarrier.init.shared.b64 [%r4], 1;\nmbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r4], 1048576;",
         "the mbarrier expects more than"),
        ("mbarrier.init.b64 [%rd2], 1;", "in global memory"),
    ],
)  # fmt: skip
def test_undefined_mbarrier_use_ends_the_kernel(body: str, words: str) -> None:
    with pytest.raises(MBarrierError, match=words):
        run(body)


def test_a_phase_that_never_ends_is_a_deadlock() -> None:
    with pytest.raises(
        DeadlockError, match=r"mbarrier at 0x1000 of shared memory.*phase 0 does not end: it has 1 of 2 arrivals"
    ):
        run(f"mbarrier.init.shared.b64 [%r4], 2;\nmbarrier.arrive.shared.b64 _, [%r4];\n{TRY}")


def test_bulk_copies_are_of_whole_units() -> None:
    with pytest.raises(SimulationError, match="multiple of 16"):
        run("cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r5], 24;")


def test_one_thread_copies_out_and_waits_for_the_source_or_for_all() -> None:
    """The source is read before its bytes are written."""
    body = """
    st.shared.u32 [%r5], 77;
    mov.u64 %rd6, %clock64;
    fence.proxy.async.shared::cta;
    cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r5], 1024;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
    mov.u64 %rd7, %clock64;
    cp.async.bulk.wait_group 0;
    mov.u64 %rd8, %clock64;
    ld.global.u32 %r6, [%rd2];
    cvt.u64.u32 %rd9, %r6;
    st.global.v2.u64 [%rd1], {%rd6, %rd7};
    st.global.v2.u64 [%rd1+16], {%rd8, %rd9};
    """
    begin, is_read, is_written, value = run(body)[0].tolist()
    issued = begin + COSTS["integer"] + COSTS["barrier"]
    assert is_read == issued + copy_cycles(1024)
    assert is_written == issued + copy_cycles(1024) + COPY_LATENCY
    assert value == 77


@pytest.mark.parametrize("pending", [0, 1, 2, 3])
def test_a_wait_leaves_the_newest_groups_pending(pending: int) -> None:
    """Three copies, each a group, forty rounds apart."""
    a_copy = """
    mov.u64 %rd8, %clock64;
    cp.async.cg.shared.global [%r5], [%rd2], 16;
    cp.async.commit_group;
    """
    body = f"""
    {a_copy}mov.u64 %rd4, %rd8;
    {a_copy}mov.u64 %rd5, %rd8;
    {a_copy}
    mov.u64 %rd6, %clock64;
    cp.async.wait_group {pending};
    mov.u64 %rd7, %clock64;
    st.global.v2.u64 [%rd1], {{%rd4, %rd5}};
    st.global.v2.u64 [%rd1+16], {{%rd8, %rd7}};
    """
    *issued, through = run(body)[0].tolist()
    if pending == 3:
        assert through - issued[2] < COPY_LATENCY
    else:
        assert through == issued[2 - pending] + COSTS["integer"] + COPY_LATENCY + copy_cycles(16)


def test_wait_all_waits_for_what_is_in_no_group() -> None:
    body = """
    mov.u64 %rd6, %clock64;
    cp.async.ca.shared.global [%r5], [%rd2], 4;
    WAIT
    mov.u64 %rd7, %clock64;
    st.global.v2.u64 [%rd1], {%rd6, %rd7};
    """
    waits = {}
    for wait in ("cp.async.wait_all;", "cp.async.wait_group 0;"):
        begin, end = run(body.replace("WAIT", wait), threads=32)[0, :2].tolist()
        waits[wait] = end - begin
    assert waits["cp.async.wait_all;"] == COSTS["integer"] + COPY_LATENCY + copy_cycles(4 * 32)
    assert waits["cp.async.wait_group 0;"] < COPY_LATENCY


def test_words_keep_what_they_say() -> None:
    for word in (
        MBarrierWord(3, 5, -17, 1),
        MBarrierWord(MAX_COUNT, MAX_COUNT, MAX_COUNT, 0),
        MBarrierWord(0, 1, -MAX_COUNT, 0),
    ):
        assert MBarrierWord.from_bits(word.bits()) == word


def test_a_bulk_copy_awaited_by_the_library() -> None:
    """``cuda::barrier``, as nvcc compiles it."""
    values, out = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    Device().launch(compile_kernel(WAITS, "first_try"), out, values, block=(256,))
    np.testing.assert_array_equal(out, 2 * values)


@pytest.mark.parametrize("delay", [0, 100])
@pytest.mark.parametrize("tiles", [1, 2, 7])
def test_a_producer_and_its_consumers(tiles: int, delay: int) -> None:
    """Two buffers, each used several times: no phase is missed."""
    values, out = np.arange(128 * tiles, dtype=np.float32), np.zeros(128, np.float32)
    Device().launch(compile_kernel(WAITS, "staged"), out, values, np.int32(tiles), np.int32(delay), block=(160,))
    np.testing.assert_array_equal(out, values.reshape(tiles, 128).sum(axis=0))


def test_groups_of_copies_in_and_out() -> None:
    values, out = np.arange(256, dtype=np.float32), np.zeros(128, np.float32)
    Device().launch(compile_kernel(WAITS, "groups"), out, values, block=(32,))
    np.testing.assert_array_equal(out, values[128:])
