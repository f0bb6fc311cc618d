"""Active lanes are those of the kernels on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.engine.kernels import entry
from tests.probes.running import example, result_of
from tui_probe.probes.divergence.analysis import Divergence, analyse

if TYPE_CHECKING:
    from pathlib import Path


def test_the_last_warps_of_a_store(tmp_path: Path) -> None:
    """All 256 warps reach the branch whole; 5000 threads store, in 156 whole warps and one of 8 lanes."""
    arguments = np.zeros(16384, np.uint32), np.uint32(5000)
    found = analyse(result_of(tmp_path, "divergence", example("strided_store"), *arguments, grid=(32,), block=(256,)))
    assert found == Divergence(branches=256, branch_lanes=8192, accesses=157, access_lanes=5000, threads_missing=0)
    assert found.lanes_per_branch == 32
    assert found.lanes_per_access == 5000 / 157


LOOP = """
.shared .b32 cell[32];
.reg .pred %p<3>;
.reg .b32 %r<9>;
mov.u32 %r1, %tid.x;
$loop:
setp.eq.u32 %p1, %r1, 0;
@%p1 bra $end;
sub.u32 %r1, %r1, 1;
setp.lt.u32 %p2, %r1, 3;
@%p2 st.shared.u32 [cell], %r1;
bra $loop;
$end:
atom.shared.add.u32 %r2, [cell+4], 1;
ret;
"""


def test_lanes_leave_a_loop_one_by_one(tmp_path: Path) -> None:
    """Threads 0 to 19 of each block: 20, 19, … 1 lanes at the head; 19, 18, … 1 at the loop's end. Lanes 1 to 19 store
    when their counter is 2, 1 and 0: 19 + 18 + 17 times in all, from the first round to the 19th."""
    found = analyse(result_of(tmp_path, "divergence", entry(LOOP), grid=(3,), block=(20,)))
    assert (found.branches, found.branch_lanes) == (3 * (20 + 19), 3 * (210 + 190))
    assert (found.accesses, found.access_lanes) == (3 * (19 + 1), 3 * (19 + 18 + 17 + 20))


def test_without_branches_there_is_no_mean(tmp_path: Path) -> None:
    found = analyse(result_of(tmp_path, "divergence", entry("ret;")))
    assert found == Divergence(0, 0, 0, 0, 0)
    assert found.lanes_per_branch is None
