"""Waits at barriers agree with clocks that the kernel reads itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.engine.kernels import entry, inserted, probed
from tests.probes.running import example, result_of
from tui_probe.probe_files.loading import load_probe
from tui_probe.probes.barrier_wait import analyse

if TYPE_CHECKING:
    from pathlib import Path

UNEVEN = """
.reg .pred %p<4>;
.reg .b32 %r<9>;
mov.u32 %r1, %tid.x;
shr.u32 %r2, %r1, 5;
mul.lo.u32 %r2, %r2, ROUNDS;
$work:
setp.eq.u32 %p1, %r2, 0;
@%p1 bra $meet;
sub.u32 %r2, %r2, 1;
bra $work;
$meet:
bar.warp.sync 0xffffffff;
bar.sync 0;
barrier.sync 1;
ret;
"""


def test_every_warp_counts_its_barriers(tmp_path: Path) -> None:
    size, tiles = 64, 4
    a = np.ones((size, size), np.float32)
    arguments = np.zeros_like(a), a, a, np.int32(size)
    analysis = analyse(
        result_of(tmp_path, "barrier_wait", example("matmul"), *arguments, grid=(tiles, tiles), block=(16, 16))
    )
    assert analysis.barriers == tiles * tiles * 8 * 2 * tiles
    assert analysis.waited >= analysis.barriers
    assert analysis.longest * tiles * tiles * 8 >= analysis.waited
    assert analysis.threads_missing == 0


def test_early_warps_wait_for_late_ones(tmp_path: Path) -> None:
    """Warp w works w × ROUNDS rounds, so warp 0 waits for three times, warp 3 for none of them."""
    waits = {}
    for rounds in (20, 40):
        text = entry(UNEVEN.replace("ROUNDS", str(rounds)))
        result = result_of(tmp_path, "barrier_wait", text, block=(128,))
        records = result.records(0, np.dtype([("waited", "<u8"), ("barriers", "<u4"), ("threads", "<u4")]))[0, :, 0]
        assert records["barriers"].tolist() == [2] * 4
        waits[rounds] = records["waited"].astype(np.int64)
        assert analyse(result).longest == waits[rounds][0]
        assert (np.diff(waits[rounds]) < 0).all()
    assert waits[20][3] == waits[40][3], "the last warp waits for no one"
    growth = waits[40] - waits[20]
    assert growth.tolist() == [growth[2] * 3, growth[2] * 2, growth[2], 0], "20 rounds for each warp behind"


@pytest.mark.parametrize(
    ("barrier", "waits"),
    [
        ("bar.sync 0;", True),
        ("barrier.sync.aligned 1, 64;", True),
        ("bar.red.popc.u32 %r1, 0, %p1;", True),
        ("barrier.cluster.wait.aligned;", True),
        ("bar.arrive 0, 64;", False),
        ("bar.warp.sync 1;", False),
        ("barrier.cluster.arrive;", False),
    ],
)
def test_only_barriers_at_which_a_block_waits(barrier: str, waits: bool) -> None:
    text = probed(entry(f".reg .pred %p<2>;\n.reg .b32 %r<2>;\n{barrier}\nret;"), probe=load_probe("barrier_wait"))
    assert any("%clock;" in line for line in inserted(text)) is waits
