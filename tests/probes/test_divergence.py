"""Active lanes are those of the kernels on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.engine.kernels import entry
from tests.probes.running import example, result_of
from tests.probes.specimens import strided_store
from tests.probes.test_report import Writer
from tui_probe.cli.main import main
from tui_probe.probes.divergence import RECORD, Divergence, analyse

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SPECIMEN = strided_store(5000)


def test_the_last_warps_of_a_store(tmp_path: Path) -> None:
    """All 256 warps reach the branch whole; 5000 threads store, in 156 whole warps and one of 8 lanes."""
    arguments = np.zeros(16384, np.uint32), np.uint32(5000)
    analysis = analyse(
        result_of(tmp_path, "divergence", example("strided_store"), *arguments, grid=(32,), block=(256,))
    )
    assert analysis == Divergence(branches=256, branch_lanes=8192, accesses=157, access_lanes=5000, threads_missing=0)
    assert analysis.lanes_per_branch == 32
    assert analysis.lanes_per_access == 5000 / 157


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
    analysis = analyse(result_of(tmp_path, "divergence", entry(LOOP), grid=(3,), block=(20,)))
    assert (analysis.branches, analysis.branch_lanes) == (3 * (20 + 19), 3 * (210 + 190))
    assert (analysis.accesses, analysis.access_lanes) == (3 * (19 + 1), 3 * (19 + 18 + 17 + 20))


def test_without_branches_there_is_no_mean(tmp_path: Path) -> None:
    analysis = analyse(result_of(tmp_path, "divergence", entry("ret;")))
    assert analysis == Divergence(0, 0, 0, 0, 0)
    assert analysis.lanes_per_branch is None


def test_fewer_active_lanes_are_a_step_back(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The same work with 32, then 8 lanes at its branches."""
    for name, lanes in (("before", 32), ("after", 8)):
        writer = Writer(tmp_path / name)
        writer.start()
        writer.counting_kernel(0, "gather", "divergence", RECORD)
        writer.counts(0, RECORD, branches=10, branch_lanes=10 * lanes, accesses=4, access_lanes=4 * 32)
    before, after = (str(tmp_path / name) for name in ("before", "after"))
    assert main(["compare", before, after, "--fail-if-worse", "5%"]) == 1
    worse = [line for line in capfd.readouterr().err.splitlines() if "worse by more" in line]
    assert worse == ["tui-probe: worse by more than 5%: gather: lanes per branch 32 → 8 (-75.0%), ideal 32"]
    assert main(["compare", after, before, "--fail-if-worse", "5%"]) == 0
