"""Places of warps: the last loop or wait of each, and the cause that they show."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from probes.stuck_warps.analysis import (
    Mark,
    StuckWarp,
    StuckWarps,
    Synchronization,
    WarpPlace,
    analyse,
    group_warps,
    lane_words,
    range_words,
)
from probes.stuck_warps.causes import likely_cause
from probes.stuck_warps.view import waits_for
from tests.engine.kernels import entry, toml_probe
from tests.probes.running import result_of
from tests.probes.specimens import Specimen
from tui_probe.errors import ProbeFileError
from tui_probe.trace.kernel_files import Offset

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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
SPECIMEN = Specimen(LOCKED, (np.zeros(16, np.uint32),), (2, 1, 1), (64, 1, 1))
LOCK = WarpPlace(12, "lock", 0x100, None, "atom.global.cas.b32")
FLAG = WarpPlace(20, "flag", 0x200, None, "ld.volatile.global.u32")
BARRIER = WarpPlace(30, "barrier", 1, None, "bar.sync")
MBARRIER = WarpPlace(40, "mbarrier", 0x10, 1, "mbarrier.try_wait.parity.shared.b64")
ALL = 0xFFFFFFFF


def warp(
    place: WarpPlace, block: int = 0, number: int = 0, took: Mark | None = None, did: Mark | None = None
) -> StuckWarp:
    return StuckWarp(block, number, place, ALL, took, did)


def launch(warps: Sequence[StuckWarp], grid: int = 1, threads: int = 64) -> StuckWarps:
    return StuckWarps((grid, 1, 1), (threads, 1, 1), group_warps(warps))


def test_warps_have_their_last_place_and_release(tmp_path: Path) -> None:
    stuck = analyse(result_of(tmp_path, "stuck_warps", LOCKED, np.zeros(16, np.uint32), grid=(2,), block=(64,)))
    assert {(own.block, own.warp) for own in stuck.warps} == {(block, number) for block in (0, 1) for number in (0, 1)}
    assert {own.place.address for own in stuck.warps} == {3}
    assert all(own.took is None for own in stuck.warps), "the lock was given back"
    assert [own.did is not None for own in sorted(stuck.warps, key=lambda own: own.warp)] == [True, True, False, False]


OWN = launch([warp(LOCK, took=Mark(12, 0x100, 1)), warp(LOCK, number=1)])
HELD = launch([warp(LOCK, number=1), warp(BARRIER, took=Mark(12, 0x100, 1))])
GRID = launch([warp(FLAG, block) for block in range(4)], grid=6)
COUNT = replace(
    launch([warp(MBARRIER, did=Mark(39, 0x10, ALL)), warp(BARRIER, number=1)]), code=Synchronization({38: 65})
)
MISSING = launch([warp(BARRIER), warp(WarpPlace(50, "loop"), number=1)])


@pytest.mark.parametrize(
    ("stuck", "key", "words"),
    [
        (OWN, "lock-held-by-own-warp", "block 0 warp 0 tries to take lock 0x100 at atom.global.cas.b32 PTX:12"),
        (HELD, "lock-not-released", "block 0 warp 0 took it at PTX:12 and is at bar.sync PTX:30"),
        (GRID, "grid-does-not-fit", "4 blocks of 6 on the GPU do not end, so 2 blocks cannot start"),
        (COUNT, "mbarrier-count", "expects 65 arrivals (mbarrier.init PTX:38); block 0 made 32 arrivals"),
        (MISSING, "barrier-not-reached", "1 of 2 warps arrived; warp 1 is at PTX:50"),
        (launch([warp(FLAG)]), "flag-not-set", "another GPU or the host must write the value"),
        (launch([warp(WarpPlace(50, "loop"))]), "long-loop", "the last place of 1 warp is PTX:50"),
    ],
)
def test_likely_cause(stuck: StuckWarps, key: str, words: str) -> None:
    cause = likely_cause(stuck)
    assert cause is not None
    assert cause.key == key
    assert words in cause.words


def test_lanes_and_ranges_as_words() -> None:
    assert lane_words(1) == "lane 0"
    assert lane_words(0xFFFFFFFE) == "lanes 1-31"
    assert lane_words(ALL) == "all lanes"
    assert range_words([0, 2, 4, 6, 8]) == "0, 2, 4, 6, … (5)"


RESIDENT = '[map.{}]\nlevel = "warp"\nresident = {}\n[map.{}.regs]\n{}\n'
LIFE = '[probe.life]\nposition = "kernel"\nbefore = "SAVE [ a ] {1, 2};\\nSAVE [ b ] {LAUNCH, 1, 2};"\n'
LANES, OWNER = 'entered = "u32"\nleft = "u32"', 'launch = "u64"\nblock = "u32"\nwarp = "u32"'


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (RESIDENT.format("b", "false", "b", OWNER), "cannot have both resident and other maps"),
        (RESIDENT.format("b", "true", "b", OWNER.replace("block", "place")), "the second map needs launch"),
    ],
)
def test_resident_maps_have_the_fields_that_the_hook_reads(second: str, problem: str) -> None:
    first = RESIDENT.format("a", "true", "a", LANES)
    toml_probe(first + RESIDENT.format("b", "true", "b", OWNER) + LIFE)
    with pytest.raises(ProbeFileError, match=problem):
        toml_probe(first + second + LIFE)


def test_places_of_sass_name_only_what_is_known() -> None:
    barrier, lock = WarpPlace(Offset(0x1F0), "barrier", opcode="BAR"), WarpPlace(Offset(0x20), "lock", 0x100)
    assert (waits_for(barrier), waits_for(lock), waits_for(BARRIER)) == ("barrier", "lock 0x100", "barrier 1")
    arrived = likely_cause(launch([warp(WarpPlace(Offset(0x40), "mbarrier", opcode="SYNCS"))]))
    assert arrived is not None
    assert arrived.words == "an mbarrier at SYNCS 0x0040 expects more arrivals than came"
