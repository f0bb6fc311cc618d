"""Places of warps: the last loop or wait of each, and the cause that they show."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from probes.stuck_warps.analysis import POINT_KINDS, RECORDS, SASS_POINTS, RecordMap, analyse, with_polling_blocks
from probes.stuck_warps.causes import likely_cause
from probes.stuck_warps.launch_values import Value
from probes.stuck_warps.places import Mark, StuckWarp, StuckWarps, WarpPlace, group_warps, lanes_text
from probes.stuck_warps.ranks import RankState, rank_cause, rank_states
from probes.stuck_warps.synchronization import Init, Synchronization
from probes.stuck_warps.view import StuckView, waits_for
from tests.engine.kernels import entry, probed, toml_probe
from tests.probes.running import result_of
from tests.probes.specimens import Specimen
from tests.recorded import H200
from tui_probe.errors import ProbeFileError
from tui_probe.pages.views import kind_of
from tui_probe.probe_files.loading import load_probe
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.record_counts import sampled_blocks_text
from tui_probe.ptx.parser import parse
from tui_probe.ptx.waiting import LaneWaits
from tui_probe.trace.event_types import RankGiven
from tui_probe.trace.follow import open_trace
from tui_probe.trace.kernel_files import Offset
from tui_probe.trace.map_records import Sample
from tui_probe.ui.screens.further_pages import kernel_tab

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.trace.model import Kernel, Trace
    from tui_probe.trace.results import Result

LOCKED = entry(
    """.reg .pred %p<3>;
.reg .b32 %r<4>;
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
setp.ge.u32 %p1, %r1, 32;
@%p1 bra $wait;
setp.ne.u32 %p2, %r1, 0;
@%p2 bra $wait;
$take:
atom.global.cas.b32 %r2, [%rd1], 0, 1;
setp.ne.u32 %p2, %r2, 0;
@%p2 bra $take;
atom.global.exch.b32 %r3, [%rd1], 0;
$wait:
bar.sync 3;
ret;""",
    ".param .u64 out",
)
PRUNED = LOCKED.replace("\n\n", "\n").splitlines()
SPECIMEN = Specimen(LOCKED, (np.zeros(16, np.uint32),), (2, 1, 1), (64, 1, 1))
ALL = 0xFFFFFFFF
LOCK = WarpPlace(12, "lock", 0x100, None, "atom.global.cas.b32")
FLAG = WarpPlace(20, "flag", 0x200, None, "ld.volatile.global.u32")
BARRIER = WarpPlace(30, "barrier", 1, None, "bar.sync")
MBARRIER = WarpPlace(40, "mbarrier", 0x10, 1, "mbarrier.try_wait.parity.shared.b64")
CLUSTER = WarpPlace(60, "barrier", 0, None, "barrier.cluster.wait.aligned")
LANES = WarpPlace(70, "warp barrier", ALL, None, "bar.warp.sync")
SASS_LOCK, SASS_FLAG = (WarpPlace(Offset(0x20), kind, 0x200, None, "LDG") for kind in ("lock", "flag"))
ADDED = Mark(19, 0x200, 1)


def warp(
    place: WarpPlace, block: int = 0, number: int = 0, took: Mark | None = None, did: Mark | None = None
) -> StuckWarp:
    return StuckWarp(block, number, place, ALL, took, did, 7 if place.kind in ("flag", "shared flag", "lock") else None)


def launch(
    warps: Sequence[StuckWarp], grid: int = 1, threads: int = 64, code: Synchronization | None = None
) -> StuckWarps:
    return StuckWarps((grid, 1, 1), (threads, 1, 1), group_warps(warps), code or Synchronization())


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_warps_have_their_last_place_and_release(target: str, tmp_path: Path) -> None:
    """On sm_90, ``elect.sync`` chooses the lane that stores."""
    text = LOCKED.replace("sm_80", target)
    stuck = analyse(result_of(tmp_path, "stuck_warps", text, np.zeros(16, np.uint32), grid=(2,), block=(64,)))
    assert {(own.block, own.warp) for own in stuck.warps} == {(block, number) for block in (0, 1) for number in (0, 1)}
    assert {own.place.line for own in stuck.warps} == {PRUNED.index("bar.sync 3;") + 1}
    assert all(own.held_lock is None for own in stuck.warps), "the lock was given back"
    assert [own.last_operation is not None for own in sorted(stuck.warps, key=lambda own: own.warp)] == [
        True,
        True,
        False,
        False,
    ]


POLLS_SHARED = entry(
    """.shared .b32 flag[2];
.reg .pred %p<3>;
.reg .b32 %r<4>;
st.volatile.shared.u32 [flag+4], 7;
$poll:
ld.volatile.shared.u32 %r1, [flag+4];
setp.ne.u32 %p1, %r1, 7;
@%p1 bra $poll;
ld.volatile.shared.u32 %r2, [flag];
ret;""",
    ".param .u64 out",
)


CALLED = """.version 7.8
.target sm_80
.address_size 64
.func (.param .b32 value) inner(.param .b64 at) { .reg .b64 %rd<2>; .reg .b32 %r<2>;
ld.param.u64 %rd1, [at];
ld.volatile.global.u32 %r1, [%rd1];
st.param.b32 [value], %r1; ret; }
.visible .entry kernel(.param .u64 out) { .reg .b64 %rd<2>; .reg .b32 %r<2>; .reg .pred %p<2>; .param .b64 at;
.param .b32 value;
ld.param.u64 %rd1, [out];
$again:
st.param.b64 [at], %rd1;
call (value), inner, (at);
ld.param.b32 %r1, [value];
setp.eq.u32 %p1, %r1, 0;
@%p1 bra $again;
bar.arrive 1, 64;
bar.sync 2;
ret; }"""


def record_of(result: Result, record_map: RecordMap) -> np.void:
    """The record of the launch's first warp."""
    record: np.void = result.one_record(record_map, RECORDS[record_map])[0, 0]
    return record


def test_poll_by_an_atomic_has_its_address_and_value(tmp_path: Path) -> None:
    text = POLLS_SHARED.replace("ld.volatile.shared.u32 %r1, [flag+4];", "atom.shared.or.b32 %r1, [flag+4], 0;")
    text = text.replace(".shared .b32 flag[2];", ".reg .b64 %rd<2>;\nld.param.u64 %rd1, [out];")
    text = text.replace("ld.volatile.shared.u32 %r2, [flag];\n", "").replace("shared", "global").replace("flag", "%rd1")
    result = result_of(tmp_path, "stuck_warps", text, np.zeros(2, np.uint32), grid=(1,), block=(32,))
    polled = text.replace("\n\n", "\n").splitlines().index("atom.global.or.b32 %r1, [%rd1+4], 0;") + 1
    saw = record_of(result, RecordMap.SAW)
    assert (saw["line"], saw["value"]) == (polled, 7)


def test_loop_has_the_lines_of_functions_that_it_calls(tmp_path: Path) -> None:
    (tmp_path / "pruned.ptx").write_text(CALLED)
    code, lines = Synchronization.read(tmp_path), CALLED.splitlines()
    (loop,) = code.loops.values()
    assert {
        lines.index("ld.volatile.global.u32 %r1, [%rd1];") + 1,
        lines.index("call (value), inner, (at);") + 1,
    } <= loop
    assert lines.index("bar.sync 2;") + 1 not in loop
    assert code.barrier_arrival_opcodes == {lines.index("bar.arrive 1, 64;") + 1: "bar.arrive"}


def test_poll_of_shared_memory_has_its_address_and_value(tmp_path: Path) -> None:
    """The load that no loop retries is not a place."""
    result = result_of(tmp_path, "stuck_warps", POLLS_SHARED, np.zeros(1, np.uint32), grid=(1,), block=(32,))
    polled = POLLS_SHARED.replace("\n\n", "\n").splitlines().index("ld.volatile.shared.u32 %r1, [flag+4];") + 1
    at, saw = record_of(result, RecordMap.AT), record_of(result, RecordMap.SAW)
    assert (at["line"], saw["line"], saw["value"]) == (polled, polled, 7)
    assert at["address"] % 8 == 4


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_barrier_stores_a_register_only_for_a_number_in_one(target: str) -> None:
    """Stores of 16 bytes cost a kernel with many barriers twice as much as those of 8."""
    numbered = LOCKED.replace("sm_80", target)
    chosen = numbered.replace("bar.sync 3;", "mov.u32 %r3, 3;\nbar.sync %r3;")
    stores = []
    for text in (numbered, chosen):
        lines = probed(text, probe=load_probe("stuck_warps")).splitlines()
        barrier = next(place for place, line in enumerate(lines) if line.startswith("bar.sync"))
        stores.append(lines[barrier - 1].split()[1])
        before = [line for line in lines[barrier - 6 : barrier] if "elect.sync" in line]
        assert len(before) == (target == "sm_90")
    assert stores == ["st.volatile.global.v2.b32", "st.volatile.global.v2.b64"]


OWN = launch([warp(LOCK, took=Mark(12, 0x100, 1)), warp(LOCK, number=1)])
HELD = launch([warp(LOCK, number=1), warp(BARRIER, took=Mark(12, 0x100, 1))])
SECOND_LOCK = replace(LOCK, address=0x140)
CYCLE = launch([warp(SECOND_LOCK, took=Mark(12, 0x100, 1)), warp(LOCK, 1, took=Mark(12, 0x140, 1))])
GRID = launch([warp(FLAG, block) for block in range(4)], grid=6)
COUNT = replace(
    launch([warp(MBARRIER, did=Mark(39, 0x10, ALL)), warp(BARRIER, number=1)]), code=Synchronization({38: 65})
)
MISSING = launch([warp(BARRIER), warp(WarpPlace(50, "loop"), number=1)])


def waits_of(code: dict[int, str]) -> LaneWaits:
    """The waits of a kernel with these instructions at these lines."""
    first = entry("BODY").splitlines().index("BODY") + 1
    body = "\n".join(code.get(line, "") for line in range(first, max(code) + 1))
    return LaneWaits.from_functions(parse(entry(body)).functions())


APART = launch(
    [replace(warp(BARRIER), lanes=0xFFFF0000, lanes_on_gpu=32), warp(BARRIER, number=1)],
    code=Synchronization(
        lane_waits=waits_of(
            {8: "@%p1 bra $all;", 9: "shfl.sync.idx.b32 %r2, %r2, 0, 31, -1;", 30: "$all: bar.sync 1;"}
        ),
        is_known=True,
    ),
)
SPUN = WarpPlace(50, "loop", 0, None, "ld.volatile.shared.u32")
SHARED = Synchronization(
    loops={50: frozenset({50, 51})}, shared_reads={50: "ld.volatile.shared.u32"},
    lane_waits=waits_of({8: "@%p1 bra $poll;", 9: "bar.warp.sync -1;", 20: "$poll: ld.volatile.global.u32 %r, [%rd];"}),
)  # fmt: skip
HEAD = replace(SPUN, kind="shared flag", address=8)
RING = Synchronization(
    loops={50: frozenset({50, 51})},
    shared_reads=dict.fromkeys((50, 51), "ld.volatile.shared.u32"),
    addresses={50: Value(0, "_ZZ1kPiE4head")},
)
QUEUE = [
    warp(FLAG, did=Mark(61, 0x240, 1)),
    warp(WarpPlace(25, "flag", 0x240, None, "ld.volatile.global.u32"), 1, did=Mark(60, 0x200, 1)),
]
STORES = Synchronization(write_opcodes=dict.fromkeys((60, 61), "st.volatile.global.u32"), is_known=True)
WRITES = Synchronization(write_opcodes={19: "red.global.add.u32"}, is_known=True)
COUNTED = Synchronization({38: 64}, is_known=True)
ADDERS = [warp(FLAG, block, did=ADDED) for block in range(2)]
ARRIVED = [warp(MBARRIER, did=Mark(39, 0x10, ALL)), warp(MBARRIER, number=1, did=Mark(39, 0x10, ALL))]
WAITERS = [warp(BARRIER, block, 1) for block in range(2)]


@pytest.mark.parametrize(
    ("stuck", "key", "words"),
    [
        (OWN, "lock-held-by-own-warp", "block 0 warp 0 tries at atom.global.cas.b32 PTX:12 to take lock 0x100"),
        (HELD, "lock-not-released", "block 0 warp 0 took it at PTX:12 and is at bar.sync PTX:30"),
        (
            CYCLE,
            "lock-not-released",
            "lock 0x140 is wanted by 1 warp at atom.global.cas.b32 PTX:12; block 1 warp 0 took it at PTX:12 and wants"
            " lock 0x100 at atom.global.cas.b32 PTX:12; block 0 warp 0 took lock 0x100 at PTX:12 and wants lock 0x140"
            " at atom.global.cas.b32 PTX:12; these 2 warps wait for each other",
        ),
        (GRID, "grid-does-not-fit", "4 of 6 blocks are on the GPU and do not end, so 2 blocks cannot start"),
        (COUNT, "mbarrier-count", "expects 65 arrivals (mbarrier.init PTX:38); block 0 made 32 arrivals"),
        (
            launch([warp(MBARRIER, did=ADDED)], code=COUNTED),
            "mbarrier-count",
            "expects 64 arrivals (mbarrier.init PTX:38); no warp of block 0 has its last recorded arrival at"
            " this mbarrier",
        ),
        (
            launch([warp(MBARRIER)], code=COUNTED),
            "mbarrier-count",
            "has its last recorded arrival at this mbarrier; arrivals of 32 threads that ended are not known",
        ),
        (
            APART,
            "barrier-not-reached",
            "warp 0 arrived with lanes 16-31, its 16 other lanes may wait at shfl.sync.idx.b32 PTX:9",
        ),
        (MISSING, "barrier-not-reached", "1 of 2 warps arrived; warp 1 is at PTX:50"),
        (
            launch([warp(BARRIER), warp(WarpPlace(0, "entry"), number=1)]),
            "barrier-not-reached",
            "1 of 2 warps arrived; warp 1 is before its first loop or wait",
        ),
        (
            replace(
                launch([warp(FLAG, 2)], grid=3, threads=32, code=replace(WRITES, is_known=True)),
                ended_warps=(replace(warp(FLAG, did=ADDED), lanes_on_gpu=0), replace(warp(FLAG, 1), lanes_on_gpu=0)),
            ),
            "flag-not-set",
            "; block 0 warp 0 wrote there last (PTX:19) and ended; block 1 warp 0 ended",
        ),
        (
            launch(
                [warp(BARRIER)], code=Synchronization(barriers={30: 96}, barrier_arrival_opcodes={25: "bar.arrive"})
            ),
            "barrier-not-reached",
            "1 of 2 warps arrived; 1 warp ended; arrivals at bar.arrive PTX:25 are not recorded",
        ),
        (launch([warp(FLAG)]), "flag-not-set", "another GPU or the host must write the value"),
        (launch([warp(WarpPlace(50, "loop"))]), "long-loop", "1 warp last seen at PTX:50"),
        (
            launch([warp(FLAG)], code=Synchronization(counted_loop_lines=frozenset({20}))),
            "long-loop",
            "last seen at ld.volatile.global.u32 PTX:20, in a loop that a counter ends",
        ),
        (
            launch([warp(WarpPlace(0, "entry"))]),
            "long-loop",
            "1 warp reached neither a wait nor a loop without a counter",
        ),
        (
            launch([*ADDERS, *WAITERS], grid=2, code=WRITES),
            "value-not-reached",
            "0x200 (value 7) is polled by 2 warps at ld.volatile.global.u32 PTX:20; 2 warps of 2 blocks wrote there"
            " (red.global.add.u32 PTX:19); each block on the GPU has written there",
        ),
        (
            launch(
                [*ADDERS, warp(FLAG, 2, did=Mark(24, 0x200, 1))],
                grid=3,
                code=replace(WRITES, write_opcodes={**WRITES.write_opcodes, 24: "atom.global.or.b32"}),
            ),
            "value-not-reached",
            "3 warps of 3 blocks wrote there (2 at red.global.add.u32 PTX:19, 1 at atom.global.or.b32 PTX:24)",
        ),
        (
            launch([*ADDERS, warp(WarpPlace(50, "loop"), 2)], grid=3, code=WRITES),
            "value-not-reached",
            "1 other block did not write there: block 2 warp 0 is at PTX:50",
        ),
        (launch(ADDERS, 3, 32, WRITES), "grid-does-not-fit", "so 1 block cannot start"),
        (launch([warp(FLAG, 1)], 9, 32, WRITES), "grid-does-not-fit", "1 of 9 blocks is on the GPU and does not end"),
        (launch([warp(FLAG, 2)], 9, 32, WRITES), "flag-not-set", "made its last write there; 2 warps ended"),
        (
            launch([warp(FLAG)], 9, 32, Synchronization(is_known=True)),
            "flag-not-set",
            "no other instruction of this kernel writes global memory: another",
        ),
        (
            launch([warp(FLAG)], code=Synchronization(has_plain_stores=True, is_known=True)),
            "flag-not-set",
            "plain stores of this kernel are not recorded: one of these stores, another kernel",
        ),
        (
            launch([warp(FLAG), warp(BARRIER, number=1)], code=Synchronization(has_plain_stores=True, is_known=True)),
            "flag-not-set",
            "must write the value; block 0 warp 1 is at bar.sync PTX:30",
        ),
        (
            launch([warp(LOCK)]),
            "lock-not-free",
            "is known to hold it; 1 warp ended, perhaps without releasing the lock",
        ),
        (
            launch([warp(LOCK)], threads=32),
            "lock-not-free",
            "no warp has ended, so the lock was not free before the launch",
        ),
        (launch([warp(SASS_LOCK)]), "flag-not-set", "without PTX, writes are not recorded: a warp of this launch"),
        (launch([warp(SASS_FLAG)], 2), "grid-does-not-fit", "so 1 block cannot start"),
        (
            launch(ARRIVED, code=COUNTED),
            "mbarrier-phase",
            "block 0 made 64 arrivals (warps 0-1). The number of arrivals is right, but warps wait",
        ),
        (
            launch(ARRIVED, code=replace(COUNTED, expect_tx_lines=(37,))),
            "mbarrier-bytes",
            "so bytes of copies are missing (expect_tx PTX:37)",
        ),
        (
            launch([warp(BARRIER)], code=Synchronization(barriers={30: 96})),
            "barrier-not-reached",
            "waits for 96 threads of block 0: 1 of 2 warps arrived; 1 warp ended",
        ),
        (
            launch([warp(CLUSTER), warp(CLUSTER, number=1), warp(FLAG, 1)], 2),
            "barrier-not-reached",
            "of the cluster: the waiting warps are in 1 block; block 1 warp 0 is at ld.volatile.global.u32 PTX:20",
        ),
        (
            launch([warp(WarpPlace(Offset(0x90), "barrier", opcode="UCGABAR")), warp(FLAG, 1)], 2, 32),
            "barrier-not-reached",
            "UCGABAR 0x0090 waits for all blocks of the cluster: the waiting warps are in 1 block; block 1",
        ),
        (
            launch([warp(WarpPlace(Offset(0x90), "barrier", opcode="BAR"))]),
            "barrier-not-reached",
            "BAR 0x0090 waits for threads of block 0: 1 of 2 warps arrived; 1 warp ended",
        ),
        (
            launch([warp(BARRIER), warp(SPUN, number=1)], code=SHARED),
            "flag-not-set",
            "shared memory is polled by 1 warp of 1 block at ld.volatile.shared.u32 PTX:50; only warps of the same"
            " block can write it, since each block has its own shared memory; block 0 warp 0 is at bar.sync PTX:30",
        ),
        (
            replace(launch([warp(HEAD)], code=RING), ended_warps=(replace(warp(HEAD, number=1), lanes_on_gpu=0),)),
            "flag-not-set",
            "head at 0x8 (value 7) is polled by 1 warp at ld.volatile.shared.u32 PTX:50; its loop also reads shared"
            " memory at ld.volatile.shared.u32 PTX:51; only warps of the same block can write it, since each block has"
            " its own shared memory; block 0 warp 1 ended",
        ),
        (
            launch([warp(HEAD)], code=replace(RING, counted_loop_lines=frozenset({50}))),
            "long-loop",
            "last seen at ld.volatile.shared.u32 PTX:50, in a loop that a counter ends",
        ),
        (
            launch([warp(BARRIER), warp(SPUN, number=1)], code=replace(SHARED, shared_reads={})),
            "barrier-not-reached",
            "1 of 2 warps arrived; warp 1 is at ld.volatile.shared.u32 PTX:50",
        ),
        (
            launch([replace(warp(FLAG, number=number), lanes=0xFFFF0000) for number in (0, 1)], code=SHARED),
            "flag-not-set",
            "; 16 other lanes of each warp may wait at bar.warp.sync PTX:9",
        ),
        (
            launch(QUEUE, 2, 32, STORES),
            "value-not-reached",
            "1 warp of 1 block wrote there (st.volatile.global.u32 PTX:60); block 1 warp 0 is now at"
            " ld.volatile.global.u32 PTX:25, where it polls an address that block 0 warp 0 wrote: these warps wait"
            " for each other",
        ),
        (
            launch([warp(LANES)]),
            "barrier-not-reached",
            "waits for all lanes of block 0 warp 0: the last recorded arrival is of all lanes",
        ),
    ],
)
def test_likely_cause(stuck: StuckWarps, key: str, words: str) -> None:
    cause = likely_cause(stuck)
    assert cause is not None
    assert cause.key == key
    assert words in cause.text


def test_barrier_that_waits_for_a_loop_has_the_loop_as_its_fix() -> None:
    cause = likely_cause(MISSING)
    assert cause is not None
    assert cause.advice.startswith(
        "check the condition that ends the loop at PTX:50; if the condition is right, let all threads"
    )


def test_lanes_that_do_not_poll_are_named_only_if_all_warps_have_such_lanes() -> None:
    some = [replace(warp(FLAG), lanes=0xFFFF0000), warp(FLAG, number=1)]
    cause = likely_cause(launch(some, code=SHARED))
    assert cause is not None
    assert "other lanes" not in cause.text


SYNCHRONIZED = entry(
    """.reg .pred %p<3>;
.reg .b32 %r<4>;
.reg .b64 %rd<4>;
.shared .align 8 .b64 full;
mov.u32 %r1, full;
mbarrier.init.shared.b64 [%r1], 3;
mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r1], 256;
mbarrier.arrive.shared.b64 %rd2, [%r1], 2;
bar.sync 2, 96;
st.shared.u32 [%r1], %r2;
red.shared.add.u32 [%r1], 1;
shfl.sync.idx.b32 %r2, %r2, 0, 31, -1;
$take:
mov.u32 %r2, 0;
atom.global.cas.b32 %r3, [%rd1], %r2, 2;
setp.ne.u32 %p1, %r3, 0;
@%p1 bra $take;
$update:
atom.global.cas.b32 %r3, [%rd1], %r2, 1;
setp.ne.u32 %p1, %r3, %r2;
mov.u32 %r2, %r3;
@%p1 bra $update;
$poll:
nanosleep.u32 40;
atom.global.or.b32 %r2, [%rd1], 0;
setp.eq.u32 %p1, %r2, 0;
@%p1 bra $poll;
$count:
ld.volatile.global.u32 %r2, [%rd1];
add.u32 %r1, %r1, 1;
setp.lt.u32 %p1, %r1, 9;
@%p1 bra $count;
ld.volatile.shared.u32 %r2, [%r1];
ret;""",
    ".param .u64 out",
)


def test_synchronization_of_a_kernel(tmp_path: Path) -> None:
    (tmp_path / "pruned.ptx").write_text(SYNCHRONIZED)
    code = Synchronization.read(tmp_path)
    numbers = {line: number for number, line in enumerate(SYNCHRONIZED.splitlines(), 1)}
    poll, last = numbers["nanosleep.u32 40;"], numbers["@%p1 bra $poll;"]
    take, update = (numbers[f"${label}:"] + 1 for label in ("take", "update"))
    assert code == Synchronization(
        {numbers["mbarrier.init.shared.b64 [%r1], 3;"]: 3},
        {numbers["mbarrier.arrive.shared.b64 %rd2, [%r1], 2;"]: 2},
        {numbers["bar.sync 2, 96;"]: 2},
        {numbers["bar.sync 2, 96;"]: 96},
        (numbers["mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r1], 256;"],),
        {poll + 1: "atom.global.or.b32"},
        {
            poll: frozenset(range(poll, last + 1)),
            update: frozenset(range(update, update + 4)),
            take: frozenset(range(take, take + 4)),
            last + 2: frozenset(range(last + 2, last + 6)),
        },
        frozenset({numbers["atom.global.cas.b32 %r3, [%rd1], %r2, 1;"]}),
        frozenset(range(last + 2, last + 6)),
        {},
        True,
        True,
        shared_reads={numbers["ld.volatile.shared.u32 %r2, [%r1];"]: "ld.volatile.shared.u32"},
    )
    assert code.lane_waits.exchanges == {numbers["shfl.sync.idx.b32 %r2, %r2, 0, 31, -1;"]: "shfl.sync.idx.b32"}
    assert Synchronization.read(None) == Synchronization()


READERS = entry(
    """.reg .pred %p<3>;
.reg .b32 %r<4>;
.reg .b64 %rd<9>;
ld.param.u64 %rd1, [lock];
ld.param.u64 %rd2, [out];
FIRST
$take:
atom.global.cas.b32 %r1, [%rd1], 1, -100;
setp.ne.u32 %p1, %r1, 1;
@%p1 bra $take;
st.global.u32 [%rd2], %r1;
LAST
ret;""",
    ".param .u64 lock, .param .u64 out",
)
"""A lock that is free at 1, and other writes."""
SURE, UNSURE = (
    "so the lock was not free before the launch, or its holder has since taken another lock",
    "lock, or another write of this kernel changed it",
)


@pytest.mark.parametrize(
    ("first", "last", "reason"),
    [
        ("", "atom.global.exch.b32 %r2, [%rd1], 1;", SURE),
        ("atom.global.cas.b32 %r1, [%rd1], 1, 5;", "st.global.u32 [%rd1], 1;", SURE),
        ("atom.global.add.u32 %r1, [%rd1], 0;", "", SURE),
        ("add.s64 %rd5, %rd1, 4; st.global.u32 [%rd5], 7;", "", SURE),
        ("ld.global.u64 %rd6, [%rd2]; st.global.u32 [%rd6], 7;", "", UNSURE),
        (
            "atom.global.add.u32 %r1, [%rd1], 1;", "atom.global.exch.b32 %r2, [%rd1], 0;",
            "known to hold it; this kernel also writes through the same pointer at atom.global.add.u32 PTX:{first}"
            " and atom.global.exch.b32 PTX:{last}, and such a write may have changed the value of the lock; 1"
            " warp of 1 block wrote there (atom.global.add.u32 PTX:{first})",
        ),
        ("st.global.u32 [%rd1], 7;", "", "through the same pointer at st.global.u32 PTX:{first}, and such a write may"),
        ("", "atom.global.cas.b32 %r1, [%rd1], 3, 5;", "at atom.global.cas.b32 PTX:{last}, and such a write may have"),
    ],
)  # fmt: skip
def test_other_writes_to_a_lock_replace_the_conclusion_about_the_launch(
    first: str, last: str, reason: str, tmp_path: Path
) -> None:
    text = READERS.replace("FIRST", first).replace("LAST", last)
    (tmp_path / "pruned.ptx").write_text(text)
    at = {name: text[: text.index(own or "ret;")].count("\n") + 1 for name, own in (("first", first), ("last", last))}
    take = text[: text.index("atom.global.cas.b32 %r1, [%rd1], 1, -100;")].count("\n") + 1
    wanting = warp(replace(LOCK, line=take), did=Mark(at["first"], LOCK.address, 1) if ".add" in first else None)
    code = Synchronization.read(tmp_path)
    cause = likely_cause(launch([replace(wanting, read_value=3)], 1, 32, code))
    assert cause is not None
    assert cause.key == "lock-not-free"
    assert f"0x100 (value 3) is wanted by 1 warp at atom.global.cas.b32 PTX:{take}, which expects 1, and" in cause.text
    assert reason.format(**at) in cause.text
    assert ("so the lock was not free" in cause.text) == (reason in (SURE, UNSURE))


GENERATIONS = entry(
    """.reg .pred %p<3>;
.reg .b32 %r<4>;
.reg .b64 %rd<9>;
ld.param.u64 %rd1, [count];
ld.param.u64 %rd2, [flag];
cvta.to.global.u64 %rd3, %rd1;
cvta.to.global.u64 %rd4, %rd2;
FIRST
atom.global.add.u32 %r1, [%rd3], 1;
$poll:
ld.volatile.global.u32 %r2, [%rd4];
setp.eq.u32 %p1, %r2, %r1;
@%p1 bra $poll;
ret;""",
    ".param .u64 count, .param .u64 flag",
)
"""A counter, and a flag in other memory that warps poll."""


@pytest.mark.parametrize(
    ("write", "value", "key", "words"),
    [
        (
            "atom.global.add.u32 %r3, [%rd4], 1;", 2, "value-not-reached",
            "this kernel writes through the same pointer at atom.global.add.u32 PTX:{}, but only the last write of a"
            " warp is recorded, and no warp on the GPU made its last write there",
        ),
        ("red.global.add.u32 [%rd4], 1;", 0, "flag-not-set", "through the same pointer at red.global.add.u32 PTX:{}, "),
        (
            "mad.wide.u32 %rd5, %r1, 4, %rd4; red.global.add.u32 [%rd5], 1;", 2, "value-not-reached",
            "through the same pointer at red.global.add.u32 PTX:{}, ",
        ),
        (
            "add.s64 %rd5, %rd4, 8; red.global.add.u32 [%rd5], 1;", 2, "flag-not-set",
            "no other instruction of this kernel writes through this pointer: another kernel, another GPU or the host"
            " must write the value, unless another pointer leads to the same memory",
        ),
        (
            "ld.global.u64 %rd6, [%rd3]; red.global.add.u32 [%rd6], 1;", 2, "flag-not-set",
            "this kernel may write there at red.global.add.u32 PTX:{}, but only",
        ),
        ("", 2, "flag-not-set", "no other instruction of this kernel writes through this pointer"),
    ],
)  # fmt: skip
def test_only_writes_through_the_polled_pointer_are_named(
    write: str, value: int, key: str, words: str, tmp_path: Path
) -> None:
    text = GENERATIONS.replace("FIRST", write)
    (tmp_path / "pruned.ptx").write_text(text)
    line, poll = (text[: text.index(start)].count("\n") + 1 for start in (write or "ret;", "ld.volatile"))
    polling = replace(warp(replace(FLAG, line=poll)), read_value=value)
    cause = likely_cause(launch([polling], 1, 32, Synchronization.read(tmp_path)))
    assert cause is not None
    assert cause.key == key
    assert words.format(line) in cause.text
    assert "address" not in cause.advice


REDUCED = entry(
    """.reg .pred %p<3>;
.reg .b32 %r<4>;
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [out];
mov.u32 %r3, MASK;
mov.u32 %r1, %tid.x;
$sum:
shfl.sync.bfly.b32 %r2, %r1, 16, 31, %r3;
setp.ne.u32 %p1, %r2, 0;
REPEAT
setp.ne.u32 %p1, %r1, 0;
@%p1 bra $all;
$poll:
ld.volatile.global.u32 %r2, [%rd1];
setp.eq.u32 %p2, %r2, 0;
@%p2 bra $poll;
$all:
bar.sync 0;
bar.warp.sync -1;
ret;""",
    ".param .u64 out",
)
"""A reduction in a warp, whose first lane then polls before all lanes meet again."""


@pytest.mark.parametrize(
    ("mask", "repeat", "waits"),
    [
        ("-1", "", ["bar.sync"]),
        ("-1", "@%p1 bra $sum;", ["shfl.sync.bfly.b32", "bar.sync"]),
        ("0xffff", "", ["shfl.sync.bfly.b32", "bar.sync"]),
    ],
)
def test_lanes_may_only_wait_behind_what_all_lanes_passed(
    mask: str, repeat: str, waits: list[str], tmp_path: Path
) -> None:
    text = REDUCED.replace("MASK", mask).replace("REPEAT", repeat)
    (tmp_path / "pruned.ptx").write_text(text)
    lines = text.splitlines()
    poll, barrier = (lines.index(own) + 1 for own in ("ld.volatile.global.u32 %r2, [%rd1];", "bar.sync 0;"))
    code, flag = Synchronization.read(tmp_path), replace(FLAG, line=poll)
    opcodes = {**code.lane_waits.exchanges, **code.lane_waits.barriers}
    assert [opcodes[line] for line in code.lane_waits.reachable_waits(poll)] == waits
    polling = replace(warp(flag), lanes=1)
    of_one_warp = likely_cause(launch([polling], 1, 32, code))
    assert of_one_warp is not None
    assert f"31 other lanes of the warp may wait at {waits[0]} PTX:" in of_one_warp.text
    assert ("let all lanes of a mask" in of_one_warp.advice) == (len(waits) == 2)
    at_barrier = warp(replace(BARRIER, line=barrier, address=0), number=1)
    with_barrier = likely_cause(launch([polling, at_barrier], code=code))
    assert with_barrier is not None
    assert f"31 other lanes of the warp may wait at bar.sync PTX:{barrier}" in with_barrier.text
    assert "of a mask" not in with_barrier.advice


BARRIER_OF_BLOCK = entry(
    """.reg .pred %p<3>;
.reg .b32 %r<9>;
.reg .b64 %rd<4>;
.shared .align 8 .b64 _ZZ4tileE4full;
.shared .align 8 .b64 _ZZ4tileE5empty;
mov.u32 %r1, _ZZ4tileE4full;
mov.u32 %r2, _ZZ4tileE5empty;
ld.param.u32 %r8, [n];
mov.u32 %r3, %ntid.x;
COMPUTE
mbarrier.init.shared.b64 [%r1], %r4;
mbarrier.init.shared.b64 [%r2], 2;
mbarrier.arrive.shared.b64 %rd2, [%r1];
mbarrier.test_wait.shared.b64 %p1, [%r1], %rd2;
mbarrier.test_wait.shared.b64 %p1, [%r2], %rd2;
@%p1 bra $end;
bar.sync 0;
ret;
$end:
ret;""",
    ".param .u32 n",
)
"""A kernel with two mbarriers."""


@pytest.mark.parametrize(
    ("compute", "count"),
    [
        ("mov.u32 %r4, 8;", 8),
        ("add.s32 %r4, %r3, 1;", 65),
        ("shr.u32 %r5, %r3, 5; mad.lo.s32 %r4, %r5, 3, WARP_SZ;", 38),
        ("sub.s32 %r5, %r3, 32; and.b32 %r4, %r5, -8;", 32),
        ("mul.lo.s32 %r4, %r3, %nctaid.y;", 192),
        ("add.s32 %r4, %r3, %r8;", None),
        ("mov.u32 %r4, %tid.x;", None),
        ("mov.u32 %r4, 8; @%p1 mov.u32 %r4, 9;", None),
        ("add.s32 %r4, %r4, 1;", None),
    ],
)
def test_count_of_an_mbarrier_is_computed_from_the_launch(compute: str, count: int | None, tmp_path: Path) -> None:
    text = BARRIER_OF_BLOCK.replace("COMPUTE", compute)
    (tmp_path / "pruned.ptx").write_text(text)
    numbers = {line: number for number, line in enumerate(text.splitlines(), 1)}
    code = Synchronization.read(tmp_path, (1, 3, 1), (64, 1, 1))
    full, empty = (numbers[f"mbarrier.test_wait.shared.b64 %p1, [%r{register}], %rd2;"] for register in (1, 2))
    assert code.init_of(full) == Init(numbers["mbarrier.init.shared.b64 [%r1], %r4;"], count)
    assert code.init_of(empty) == Init(numbers["mbarrier.init.shared.b64 [%r2], 2;"], 2)
    assert (code.name_of(full), code.name_of(empty)) == ("full", "empty")
    assert code.init_of(1) is None, "either may be it"


def test_exit_of_a_warp_that_ended_is_the_only_one_behind_its_place(tmp_path: Path) -> None:
    text = BARRIER_OF_BLOCK.replace("COMPUTE", "mov.u32 %r4, 8;")
    (tmp_path / "pruned.ptx").write_text(text)
    lines = text.splitlines()
    last_wait = max(number for number, line in enumerate(lines, 1) if "test_wait" in line)
    barrier, first_exit = lines.index("bar.sync 0;") + 1, lines.index("ret;") + 1
    code = Synchronization.read(tmp_path, ended_from=(0, last_wait, barrier))
    assert code.exits == {last_wait: len(lines) - lines[::-1].index("ret;"), barrier: first_exit}


GONE = replace(warp(BARRIER, number=1, did=Mark(39, 0x10, ALL)), lanes_on_gpu=0)
HALF = replace(COUNTED, mbarrier_arrival_counts={39: None})


def waiting(threads: int = 64, code: Synchronization = COUNTED, lanes: int = ALL, n: int = 1) -> StuckWarps:
    """Warps that wait at an mbarrier; the last one of their block has ended."""
    there = [warp(MBARRIER, number=number, did=Mark(39, 0x10, lanes)) for number in range(n)]
    ended = () if 32 * n == threads else (GONE,)
    return StuckWarps((1, 1, 1), (threads, 1, 1), group_warps(there, ended, code), code, ended)


@pytest.mark.parametrize(
    ("stuck", "words", "advice"),
    [
        (
            waiting(code=replace(COUNTED, exits={30: 70})),
            "64 arrivals (mbarrier.init PTX:38); block 0 made 32 arrivals (warp 0); warp 1 ended at exit PTX:70",
            "let warp 1 arrive in each phase, or initialize the mbarrier with 32 instead of 64 at mbarrier.init PTX:38",
        ),
        (waiting(), "block 0 made 32 arrivals (warp 0); warp 1 ended", "let warp 1 arrive"),
        (waiting(32), "block 0 made 32 arrivals (warp 0)", "let 32 more threads arrive in each phase, or initialize"),
        (waiting(32, lanes=3), "made 2 arrivals (warp 0 with lanes 0-1)", "let 62 more threads arrive"),
        (
            waiting(96, n=3),
            "block 0 made 96 arrivals (warps 0-2)",
            "initialize the mbarrier with 96 instead of 64 at mbarrier.init PTX:38: if more threads arrive",
        ),
        (
            waiting(32, replace(COUNTED, inits={38: None})),
            "it expects a number of arrivals that is computed at run time (mbarrier.init PTX:38); block 0 made 32",
            "count the threads that arrive",
        ),
        (
            waiting(32, replace(COUNTED, inits={37: 2, 38: 64})),
            "it expects 2 or 64 arrivals (mbarrier.init PTX:37, …); block 0 made 32",
            "count the threads that arrive",
        ),
        (
            waiting(32, HALF),
            "32 threads of block 0 arrived (warp 0); the kernel computes the number of these arrivals at run time",
            "count the threads that arrive",
        ),
    ],
)
def test_counts_of_an_mbarrier_and_their_fix(stuck: StuckWarps, words: str, advice: str) -> None:
    cause = likely_cause(stuck)
    assert cause is not None
    assert cause.key == "mbarrier-count"
    assert words in cause.text
    assert cause.advice.startswith(advice)


@pytest.mark.parametrize(
    ("count", "words", "advice"),
    [
        (
            64,
            "waits for 64 threads of block 0: 1 of 2 warps arrived; warp 1 ended",
            "let warp 1 arrive, or let all threads that arrive pass 32 instead",
        ),
        (
            None,
            "a number of threads of block 0 that is computed at run time: 1 of",
            "count the threads that arrive",
        ),
    ],
)
def test_barrier_with_a_count_names_its_ended_warp(count: int | None, words: str, advice: str) -> None:
    code = Synchronization(barriers={30: count}, is_known=True)
    stuck = StuckWarps((1, 1, 1), (64, 1, 1), group_warps([warp(BARRIER)], (GONE,), code), code, (GONE,))
    cause = likely_cause(stuck)
    assert cause is not None
    assert words in cause.text
    assert cause.advice.startswith(advice)


def test_blocks_of_the_records_are_named() -> None:
    blocks = Sample((512, 1, 1), range(300, 420), resident=True)
    assert sampled_blocks_text(blocks) == (
        "blocks 300 to 419 of 512 blocks; when the watchdog read them, these blocks were running or had ended"
    )


def test_blocks_behind_one_that_ended_have_started() -> None:
    stuck = launch([warp(FLAG)], grid=4)
    assert stuck.blocks_not_started == 3
    assert replace(stuck, ended_warps=(replace(warp(FLAG, 2), lanes_on_gpu=0),)).blocks_not_started == 1


def test_lock_of_a_warp_that_ended_names_it() -> None:
    gone = replace(warp(LOCK, 1, took=Mark(12, 0x100, 1)), lanes_on_gpu=0)
    code = Synchronization(exits={12: 70}, is_known=True)
    cause = likely_cause(StuckWarps((2, 1, 1), (32, 1, 1), group_warps([warp(LOCK)], (gone,), code), code, (gone,)))
    assert cause is not None
    assert cause.key == "lock-not-free"
    assert "which block 1 warp 0 took at PTX:12 and did not release; this warp ended at exit PTX:70" in cause.text


HOISTED = entry(
    """.reg .pred %p<3>;
.reg .b32 %r<4>;
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [out];
ld.global.u32 %r1, [%rd1];
setp.ne.u32 %p1, %r1, 0;
@%p1 bra $done;
$spin:
bra.uni $spin;
$done:
bar.sync 0;
ret;""",
    ".param .u64 out",
)
"""A spin on a value that the compiler reads once."""


def test_loop_that_nothing_leaves_comes_before_the_barrier_that_waits_for_it(tmp_path: Path) -> None:
    (tmp_path / "pruned.ptx").write_text(HOISTED)
    code, spin = Synchronization.read(tmp_path), HOISTED.splitlines().index("bra.uni $spin;") + 1
    assert code.endless_loops == {spin}
    assert Synchronization.read(_written(tmp_path / "other", SYNCHRONIZED)).endless_loops == frozenset()
    loop = WarpPlace(spin, "loop", opcode="bra.uni")
    cause = likely_cause(launch([warp(BARRIER), warp(loop, number=1)], code=code))
    assert cause is not None
    assert cause.key == "endless-loop"
    assert cause.text.startswith(f"1 warp is in the loop at bra.uni PTX:{spin}, which does not end")


def _written(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "pruned.ptx").write_text(text)
    return folder


def rank(number: int, kernel: str | None, **launches: int) -> RankState:
    """The state of a process, which waits in a kernel."""
    waits_in = None if kernel is None else cast("Kernel", SimpleNamespace(name=kernel))
    return RankState(cast("Trace", None), number, None, waits_in, None, "", Counter(launches))


@pytest.mark.parametrize(
    ("states", "key", "words"),
    [
        ([rank(0, "sum", sum=2), rank(1, None, sum=1)], "rank-missing", "rank 1 has not arrived: rank 0 waits in sum"),
        ([rank(0, "sum", sum=2)], "rank-missing", "rank 1 has not arrived: rank 0 waits in sum (launch 2 of"),
        (
            [rank(0, "sum", sum=2), rank(1, "gather", sum=1, gather=1)], "different-kernels",
            "ranks wait in different kernels: rank 0 in sum; rank 1 in gather",
        ),
        (
            [rank(0, "sum", sum=2), rank(1, "sum", sum=1)], "rank-behind",
            "rank 1 is behind: launch 1 of sum; the other ranks are at launch 2",
        ),
        (
            [rank(0, "sum", sum=2), rank(1, "sum", sum=2)], "all-arrived",
            "ranks 0-1 wait in sum (launch 2 of this kernel in each process), and no other rank is missing",
        ),
        ([rank(0, "sum", sum=2), rank(1, None, sum=2)], "all-arrived", "in each process); rank 1 left the kernel"),
    ],
)  # fmt: skip
def test_cause_among_ranks(states: list[RankState], key: str, words: str) -> None:
    cause = rank_cause(states, 2)
    assert cause is not None
    assert cause.key == key
    assert words in cause.text


def process(name: str, given: RankGiven | None) -> Trace:
    """A trace of a process with the rank that its launcher gave it."""
    state = SimpleNamespace(rank=given, stuck=[])
    return cast("Trace", SimpleNamespace(directory=name, state=state, kernels=[]))


@pytest.mark.parametrize(
    ("given", "numbers"),
    [
        ([RankGiven(1, 2), RankGiven(0, 2)], {"first": 1, "second": 0}),
        ([RankGiven(1, 0), RankGiven(0, 0)], {"first": 1, "second": 0}),
        ([RankGiven(3, 0), None], {"first": 3, "second": 4}),
        ([RankGiven(3, 0), RankGiven(3, 0)], {"first": 0, "second": 1}),
        ([None, None], {"first": 0, "second": 1}),
    ],
)
def test_ranks_without_their_number_are_used_if_distinct(
    given: list[RankGiven | None], numbers: dict[str, int]
) -> None:
    traces = [process(name, rank) for name, rank in zip(("first", "second"), given, strict=True)]
    states = rank_states(traces)
    assert {str(state.trace.directory): state.rank for state in states} == numbers
    assert [state.rank for state in states] == sorted(numbers.values())


def test_lanes_as_text() -> None:
    assert lanes_text(1) == "lane 0"
    assert lanes_text(0xFFFFFFFE) == "lanes 1-31"
    assert lanes_text(ALL) == "all lanes"


def test_records_and_kinds_of_places_are_those_of_the_probe_file() -> None:
    probe = load_probe("stuck_warps")
    assert [declared.name.upper() for declared in probe.maps] == [record_map.name for record_map in RecordMap]
    for declared, record in zip(probe.maps, RECORDS.values(), strict=True):
        assert declared.record_bytes == record.itemsize
        assert {field.name for field in declared.fields} == set(record.names or ()) - {"unused"}
    at_places = {point.name for point in probe.points if "at" in point.saved_maps and point.name != "life"}
    assert at_places == POINT_KINDS.keys() | SASS_POINTS


RESIDENT = '[map.{}]\nlevel = "warp"\nresident = {}\n[map.{}.regs]\n{}\n'
LIFE = '[probe.life]\nposition = "kernel"\nbefore = "SAVE [ a ] {1, 2};\\nSAVE [ b ] {LAUNCH, 1, 2};"\n'
LANE_FIELDS, OWNER = 'entered = "u32"\nleft = "u32"', 'launch = "u64"\nblock = "u32"\nwarp = "u32"'


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (RESIDENT.format("b", "false", "b", OWNER), "cannot have both resident and other maps"),
        (RESIDENT.format("b", "true", "b", OWNER.replace("block", "place")), "second resident map needs the u64 field"),
    ],
)
def test_resident_maps_have_the_fields_that_the_hook_reads(second: str, problem: str) -> None:
    first = RESIDENT.format("a", "true", "a", LANE_FIELDS)
    toml_probe(first + RESIDENT.format("b", "true", "b", OWNER) + LIFE)
    with pytest.raises(ProbeFileError, match=problem):
        toml_probe(first + second + LIFE)


def test_places_of_sass_name_only_what_is_known() -> None:
    barrier, lock = WarpPlace(Offset(0x1F0), "barrier", opcode="BAR"), WarpPlace(Offset(0x20), "lock", 0x100)
    assert (waits_for(barrier), waits_for(lock), waits_for(BARRIER)) == ("barrier", "lock 0x100", "barrier 1")
    arrived = likely_cause(launch([warp(WarpPlace(Offset(0x40), "mbarrier", opcode="SYNCS"))]))
    assert arrived is not None
    assert arrived.text == "an mbarrier at SYNCS 0x0040 expects more arrivals than it got, or bytes that no copy wrote"


def test_block_that_polls_between_barriers_is_where_it_polls() -> None:
    code = Synchronization(loops={10: frozenset(range(10, 40))})
    polls = replace(warp(BARRIER), polled_place=LOCK)
    others = warp(BARRIER, number=1)
    assert [own.place for own in with_polling_blocks([polls, others], code)] == [LOCK, BARRIER]
    away = warp(WarpPlace(50, "loop"), number=1)
    assert [own.place for own in with_polling_blocks([polls, away], code)] == [BARRIER, away.place]


@pytest.mark.parametrize("width", [50, 60, 80, 120, 200])
def test_page_names_missing_warps_in_full_at_any_width(width: int) -> None:
    view = StuckView.__new__(StuckView)
    view.probe_result = cast("ProbeResult", SimpleNamespace(launch_label="launch 0 of #0", kernel_name="kernel"))
    view.stuck, view.cause, view.end = MISSING, None, None
    lines = ["".join(text for text, _ in line) for line in view.lines(width)]
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    assert "1 at PTX:50" in text
    assert ("not arrived at barrier 1, bar.sync PTX:30: warp 1 at PTX:50" in text) == (width < 80)
    assert (" 1 bar.sync PTX:30 barrier 1 0 " in text) == (width >= 60)


def test_page_has_one_row_for_many_addresses_of_an_instruction() -> None:
    flags = [replace(FLAG, address=0x200 + 4 * block) for block in range(6)]
    view = StuckView.__new__(StuckView)
    view.probe_result = cast(
        "ProbeResult", SimpleNamespace(launch_label="launch 0 of #0", kernel_name="kernel", launch=None)
    )
    view.stuck, view.cause, view.end = launch([warp(flag, block) for block, flag in enumerate(flags)], 6), None, None
    lines = ["".join(text for text, _ in line) for line in view.lines(120)]
    assert [line.split() for line in lines if "PTX:20" in line] == [
        ["6", "6", "ld.volatile.global.u32", "PTX:20", "6", "flags", "0", "–"]
    ]
    assert view.row_count() == 1
    assert len(view.record()["places"]) == 6


def test_page_has_no_object_of_a_warp_that_came_to_no_place() -> None:
    view = StuckView.__new__(StuckView)
    view.probe_result = cast("ProbeResult", SimpleNamespace(launch_label="launch 0 of #0", kernel_name="kernel"))
    view.stuck, view.cause, view.end = launch([warp(WarpPlace(0, "entry"))]), None, None
    lines = ["".join(text for text, _ in line) for line in view.lines(120)]
    assert any(" ".join(line.split()) == "1 1 before its first loop or wait – 0 –" for line in lines)


def test_grid_that_does_not_fit_counts_the_blocks_at_all_addresses() -> None:
    cause = likely_cause(launch([warp(replace(FLAG, address=8 * block), block) for block in range(1, 4)], grid=6))
    assert cause is not None
    assert "so 2 blocks cannot start; 3 wait at ld.volatile.global.u32 PTX:20" in cause.text


def test_empty_page_names_the_option_of_the_watchdog() -> None:
    trace = open_trace(H200 / "demo")
    source = ViewSource(trace, trace.kernels[0])
    kind = kind_of("stuck")
    assert kind.missing_reason(source) == "the run had no watchdog: run with --watchdog 10s"
    tab = kernel_tab(kind, "u", source, is_empty=True)
    assert (tab.option, tab.missing_reason) == ("--watchdog 10s", "nothing recorded: run with --watchdog 10s")
