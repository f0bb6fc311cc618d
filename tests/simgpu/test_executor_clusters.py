"""Clusters: where blocks are, what they reach of each other, what they wait for, and when they start."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.simgpu.device import Device, compiled, kernel
from tui_probe.errors import SimulationError
from tui_probe.simgpu.executor import DeadlockError, Machine, MemoryFaultError, UnsupportedInstructionError
from tui_probe.simgpu.executor.model import COPY_LATENCY, COSTS, Schedule, copy_cycles

HOPPER = ".version 8.6\n.target sm_90\n.address_size 64\n"
REGISTERS = """.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %rd<16>;
    .shared .align 16 .b32 mine[64]; .shared .align 8 .b64 bar;
    mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %ctaid.x; ld.param.u64 %rd1, [out];"""
SYNC = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"


def run(
    body: str,
    like: np.ndarray,
    *,
    blocks: int,
    cluster: int,
    threads: int = 1,
    machine: Machine | None = None,
    directive: str = "",
) -> list[int]:
    """Return the words that a kernel leaves at ``%rd1``; ``%r1`` is the thread, ``%r2`` the rank, ``%r3`` the block."""
    source = f"{HOPPER}.visible .entry k(.param .u64 out) {directive} {{ {REGISTERS} {body} ret; }}"
    output = like.copy()
    extents = (cluster, 1, 1) if cluster else (0, 0, 0)
    Device(machine=machine).launch(compiled(source), output, grid=(blocks,), block=(threads,), cluster=extents)
    result: list[int] = output.tolist()
    return result


def test_numbers_of_blocks_in_clusters_as_cooperative_groups_ask_for_them() -> None:
    grid, cluster = (4, 6, 2), (2, 3, 1)
    output = np.zeros((2, 6, 4, 8), np.int32)
    Device().launch(kernel("clusters", "numbers"), output, grid=grid, block=(64,), cluster=cluster)
    for z, y, x in itertools.product(range(2), range(6), range(4)):
        rank = x % 2 + 2 * (y % 3)
        following = (rank + 1) % 6
        next_x, next_y = x // 2 * 2 + following % 2, y // 3 * 3 + following // 2
        block = next_x + 4 * (next_y + 6 * z)
        expected = [rank, 6, x % 2 + 10 * (y % 3), 132, block, following, rank * 64, 384]
        assert output[z, y, x].tolist() == expected


@pytest.mark.parametrize("cluster", [1, 2, 8])
def test_a_histogram_in_shared_memory_of_a_whole_cluster(cluster: int) -> None:
    values = np.random.default_rng(1).integers(0, 1 << 30, 3000, np.uint32)
    per_block = 96
    bins = np.zeros(per_block * cluster, np.uint32)
    Device().launch(
        kernel("clusters", "histogram"),
        values,
        bins,
        np.int32(len(values)),
        np.int32(per_block),
        grid=(16,),
        block=(64,),
        shared=4 * per_block,
        cluster=(cluster, 1, 1),
    )
    assert bins.tolist() == np.bincount(values % len(bins), minlength=len(bins)).tolist()


def test_numbers_of_a_launch_without_clusters() -> None:
    body = """mov.u32 %r4, %cluster_nctarank; mov.u32 %r5, %nclusterid.x; mov.u32 %r6, %clusterid.x;
        mov.pred %p1, %is_explicit_cluster; selp.u32 %r7, 1, 0, %p1;
        mad.wide.u32 %rd1, %r3, 16, %rd1; st.global.v4.u32 [%rd1], {%r4, %r5, %r6, %r7};"""
    like = np.zeros((2, 4), np.uint32)
    assert run(body, like, blocks=2, cluster=0) == [[1, 2, 0, 0], [1, 2, 1, 0]]
    assert run(body, like, blocks=2, cluster=2) == [[2, 1, 0, 1], [2, 1, 0, 1]]
    assert run(body, like, blocks=2, cluster=0, directive=".reqnctapercluster 2, 1, 1") == [[2, 1, 0, 1], [2, 1, 0, 1]]


def test_shared_addresses_of_the_cluster_and_generic_ones() -> None:
    body = f"""mad.lo.u32 %r4, %r3, 10, 5; st.shared.u32 [mine+8], %r4; {SYNC}
        xor.b32 %r5, %r2, 1; mov.u32 %r6, mine; mapa.shared::cluster.u32 %r7, %r6, %r5;
        ld.shared::cluster.u32 %r8, [%r7+8];
        cvt.u64.u32 %rd2, %r6; cvta.shared.u64 %rd2, %rd2; mapa.u64 %rd3, %rd2, %r5; ld.u32 %r9, [%rd3+8];
        getctarank.shared::cluster.u32 %r10, %r7; getctarank.u64 %r11, %rd3; shl.b32 %r11, %r11, 4;
        or.b32 %r10, %r10, %r11; getctarank.u64 %r12, %rd2; isspacep.shared::cluster %p1, %rd3;
        selp.u32 %r13, 1, 0, %p1; shl.b32 %r12, %r12, 4; or.b32 %r12, %r12, %r13;
        mad.wide.u32 %rd1, %r3, 16, %rd1; st.global.v4.u32 [%rd1], {{%r8, %r9, %r10, %r12}}; {SYNC}"""
    expected = [[10 * (b ^ 1) + 5, 10 * (b ^ 1) + 5, 0x11 * (b % 2 ^ 1), 0x10 * (b % 2) + 1] for b in range(6)]
    assert run(body, np.zeros((6, 4), np.uint32), blocks=6, cluster=2) == expected


def test_the_own_block_is_reached_both_ways() -> None:
    body = """mov.u32 %r6, mine; mapa.shared::cluster.u32 %r7, %r6, %r2; st.shared::cluster.u32 [%r7+4], %r3;
        ld.shared.u32 %r8, [mine+4]; mad.wide.u32 %rd1, %r3, 4, %rd1; st.global.u32 [%rd1], %r8;"""
    assert run(body, np.zeros(8, np.uint32), blocks=8, cluster=4) == list(range(8))


def test_address_outside_the_cluster_is_illegal() -> None:
    far = "mov.u32 %r6, mine; add.u32 %r6, %r6, 0x180000; ld.shared::cluster.u32 %r8, [%r6];"
    assert run(far, np.zeros(1, np.uint32), blocks=4, cluster=4) == [0]
    with pytest.raises(MemoryFaultError, match="illegal address 0x180000"):
        run(far, np.zeros(1, np.uint32), blocks=2, cluster=2)
    with pytest.raises(MemoryFaultError, match="illegal address"):
        run("ld.shared.u32 %r8, [mine+1024];", np.zeros(1, np.uint32), blocks=2, cluster=2)
    with pytest.raises(SimulationError, match="mapa at line 6 names a block outside of its cluster"):
        run("mov.u32 %r6, mine; mapa.shared::cluster.u32 %r7, %r6, 2;", np.zeros(1, np.uint32), blocks=2, cluster=2)


@pytest.mark.parametrize(("blocks", "cluster"), [(6, 4), (34, 17)])
def test_grids_that_clusters_do_not_make(blocks: int, cluster: int) -> None:
    with pytest.raises(SimulationError, match="a cluster has 1 to 16 blocks and divides the grid"):
        run("", np.zeros(1, np.uint32), blocks=blocks, cluster=cluster)


def test_a_barrier_waits_for_divergent_threads_and_not_for_those_that_ended() -> None:
    body = f"""setp.eq.u32 %p1, %r1, 3; @%p1 ret;
        and.b32 %r4, %r1, 1; setp.eq.u32 %p2, %r4, 0; @%p2 bra even;
        atom.shared.add.u32 %r5, [mine], 1;
        even: {SYNC}
        mov.u32 %r6, mine; xor.b32 %r7, %r2, 1; mapa.shared::cluster.u32 %r8, %r6, %r7;
        ld.shared::cluster.u32 %r9, [%r8]; mad.wide.u32 %rd1, %r3, 4, %rd1; st.global.u32 [%rd1], %r9; {SYNC}"""
    assert run(body, np.zeros(4, np.uint32), blocks=4, cluster=2, threads=40) == [19] * 4


def test_arriving_is_not_waiting() -> None:
    body = """st.shared.u32 [mine], %r3; barrier.cluster.arrive; st.shared.u32 [mine+4], 7; barrier.cluster.wait;
        mov.u32 %r6, mine; xor.b32 %r7, %r2, 1; mapa.shared::cluster.u32 %r8, %r6, %r7;
        ld.shared::cluster.u32 %r9, [%r8]; mad.wide.u32 %rd1, %r3, 4, %rd1; st.global.u32 [%rd1], %r9;
        barrier.cluster.arrive.relaxed; barrier.cluster.wait;"""
    assert run(body, np.zeros(4, np.uint32), blocks=4, cluster=2) == [1, 0, 3, 2]


def test_incomplete_cluster_barrier_is_reported() -> None:
    with pytest.raises(DeadlockError, match=r"barrier\.cluster\.wait, line 6: 32 of 64 threads of the cluster"):
        run(
            f"setp.eq.u32 %p1, %r2, 0; @!%p1 bra other; {SYNC} other: bar.sync 1, 64;",
            np.zeros(1, np.uint32),
            blocks=2,
            cluster=2,
            threads=32,
        )


def test_waiting_blocks_continue_at_the_latest_time() -> None:
    body = f"""mov.u32 %r5, %r2; again: setp.eq.u32 %p1, %r5, 0; @%p1 bra done; sub.u32 %r5, %r5, 1; bra again;
        done: {SYNC} mov.u64 %rd3, %clock64; mad.wide.u32 %rd1, %r3, 8, %rd1; st.global.u64 [%rd1], %rd3;"""
    times = run(body, np.zeros(8, np.uint64), blocks=8, cluster=4)
    # The last to arrive pays for its wait after that, the others did before.
    assert times == [times[0], times[0], times[0], times[0] + COSTS["barrier"]] * 2
    single_cluster = run(body, np.zeros(8, np.uint64), blocks=8, cluster=1)
    # Rank 3 goes around three times more than rank 0: four instructions each.
    assert times[3] - single_cluster[0] == 3 * 4 * COSTS["integer"]


def test_a_cluster_starts_when_there_is_room_for_all_of_it() -> None:
    machine = Machine(sm_count=3, max_blocks_per_sm=1, block_launch_cycles=100)
    schedule = Schedule(machine, 1, 4, min_cycles=1, cluster_size=2)
    first = schedule.next_placements(4)
    assert [(place.block, place.sm, place.start) for place in first] == [(0, 0, 100), (1, 1, 100)]
    for place, cycles in zip(first, (50, 70), strict=True):
        schedule.finish_block(place, cycles)
    # SM 2 was free all the time; the second block of the cluster comes when SM 0 is.
    assert [(place.block, place.sm, place.start) for place in schedule.next_placements(4)] == [(2, 2, 250), (3, 0, 250)]


def test_a_cluster_that_is_too_large_for_the_machine() -> None:
    with pytest.raises(SimulationError, match="a cluster of 8 blocks does not fit"):
        run("", np.zeros(1, np.uint32), blocks=8, cluster=8, machine=Machine(sm_count=2, max_blocks_per_sm=2))


WAIT = """wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra wait;"""
ONE_ARRIVAL = f"mbarrier.init.shared.b64 [bar], 1; {SYNC}"
EXPECT = "mbarrier.arrive.expect_tx.shared.b64 %rd4, [bar], {};"


def test_a_bulk_copy_into_another_block() -> None:
    body = f"""{ONE_ARRIVAL} {EXPECT.format(32)}
        st.shared.u32 [mine], %r3; st.shared.u32 [mine+28], %r3;
        mov.u32 %r5, mine; xor.b32 %r6, %r2, 1; mapa.shared::cluster.u32 %r7, %r5, %r6;
        mov.u32 %r8, bar; mapa.shared::cluster.u32 %r9, %r8, %r6;
        cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r7+64], [mine], 32, [%r9];
        {WAIT} ld.shared.u32 %r10, [mine+64]; ld.shared.u32 %r11, [mine+92];
        mad.wide.u32 %rd1, %r3, 8, %rd1; st.global.v2.u32 [%rd1], {{%r10, %r11}}; {SYNC}"""
    assert run(body, np.zeros((4, 2), np.uint32), blocks=4, cluster=2) == [[1, 1], [0, 0], [3, 3], [2, 2]]


def test_a_bulk_copy_to_all_blocks_that_a_mask_names() -> None:
    body = f"""{ONE_ARRIVAL} setp.eq.u32 %p2, %r2, 1; @%p2 bra end;
        {EXPECT.format(16)}
        setp.ne.u32 %p3, %r2, 0; mov.u16 %h1, 0b1101;
        @!%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
            [mine+16], [%rd1], 16, [bar], %h1;
        {WAIT}
        end: ld.shared.u32 %r10, [mine+20]; mad.wide.u32 %rd1, %r3, 4, %rd1; st.global.u32 [%rd1+16], %r10; {SYNC}"""
    like = np.array([70, 71, 72, 73, 0, 0, 0, 0], np.uint32)
    assert run(body, like, blocks=4, cluster=4)[4:] == [71, 0, 71, 71]


def test_an_arrival_at_the_mbarrier_of_another_block() -> None:
    body = f"""mbarrier.init.shared.b64 [bar], 4; {SYNC}
        mov.u32 %r8, bar; mapa.shared::cluster.u32 %r9, %r8, 0;
        mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9];
        setp.ne.u32 %p2, %r2, 0; @%p2 bra end;
        {WAIT} st.global.u32 [%rd1], 1;
        end: {SYNC}"""
    assert run(body, np.zeros(1, np.uint32), blocks=4, cluster=4) == [1]


def test_a_store_that_the_mbarrier_of_another_block_counts() -> None:
    body = f"""{ONE_ARRIVAL} {EXPECT.format(8)}
        mov.u32 %r5, mine; xor.b32 %r6, %r2, 1; mapa.shared::cluster.u32 %r7, %r5, %r6;
        mov.u32 %r8, bar; mapa.shared::cluster.u32 %r9, %r8, %r6; add.u32 %r10, %r3, 100;
        mov.u64 %rd7, %clock64;
        st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r7+8], {{%r3, %r10}}, [%r9];
        {WAIT} mov.u64 %rd8, %clock64; sub.u64 %rd8, %rd8, %rd7; cvt.u32.u64 %r12, %rd8;
        ld.shared.v2.u32 {{%r10, %r11}}, [mine+8];
        mad.wide.u32 %rd1, %r3, 16, %rd1; st.global.v4.u32 [%rd1], {{%r10, %r11, %r12, 0}}; {SYNC}"""
    result = run(body, np.zeros((2, 4), np.uint32), blocks=2, cluster=2)
    assert [row[:2] for row in result] == [[1, 101], [0, 100]]
    # The clock is read before its own instruction counts; the branch behind the wait is one more.
    waited = COSTS["integer"] + COPY_LATENCY + copy_cycles(8) + COSTS["integer"]
    assert [row[2] for row in result] == [waited] * 2


def test_useless_mbarrier_count_is_refused() -> None:
    body = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [mine], %r3, [bar];"
    with pytest.raises(UnsupportedInstructionError, match=r"unsupported instruction red\.async"):
        run(body, np.zeros(1, np.uint32), blocks=2, cluster=2)


def test_a_prefetch_changes_nothing() -> None:
    body = "cp.async.bulk.prefetch.L2.global [%rd1], 16; st.global.u32 [%rd1], 5;"
    assert run(body, np.zeros(4, np.uint32), blocks=1, cluster=0) == [5, 0, 0, 0]
