"""Records of warps with evenly rising addresses, where two lanes save for all, equal those of any other warp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.kernels import entry
from tests.probes.running import result_of
from tests.probes.test_sector_patterns import INACTIVE, MIDDLE, SIZES, kernel, patterns
from tui_probe.probe_files.loading import load_probe

RECORD = np.dtype([("address", "<u8"), ("clock", "<u4"), ("line", "<u4")])


def records_of(folder: Path, text: str, *arguments: Any, lean: bool = False, **options: Any) -> Any:
    """The records of each thread, and how many it has; addresses are from the lowest one on."""
    probe = load_probe("dmat")
    assert probe.map_named("dmat").even
    result = result_of(folder, probe.lean_form() if lean else probe, text, *arguments, **options)
    records, counts = result.records(1, RECORD), result.record_counts(1)
    assert counts is not None
    return records.reshape(counts.size, -1), counts.ravel()


@pytest.mark.parametrize("kind", SIZES)
def test_lanes_record_their_own_addresses(kind: str, tmp_path: Path) -> None:
    """The first access is to the warp's offsets, which are side by side; the others are at these offsets."""
    offsets = patterns(SIZES[kind], np.random.default_rng(7))
    arguments = offsets.ravel(), np.zeros(2 * MIDDLE, np.uint8)
    records, counts = records_of(tmp_path, kernel(kind), *arguments, grid=(len(offsets),))
    active = offsets.ravel() != INACTIVE
    accesses = 4 if SIZES[kind] >= 4 else 3
    np.testing.assert_array_equal(counts, np.where(active, accesses, 1))
    index = np.arange(offsets.size)
    np.testing.assert_array_equal(records["address"][:, 0] - records["address"][0, 0], 4 * index)
    table = records["address"][active, 1] - offsets.ravel()[active]
    assert len(np.unique(table)) == 1
    for access in range(2, accesses):
        np.testing.assert_array_equal(records["address"][active, access], records["address"][active, 1])
    assert len(np.unique(records["line"][active], axis=0)) == 1, "all lanes name the same lines"
    clocks = records["clock"].reshape(len(offsets), 32, -1)
    together = np.where(active.reshape(-1, 32), clocks[:, :, 1], 0)
    assert ((together == 0) | (together == together.max(axis=1, keepdims=True))).all()


APART = entry(
    """
.reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
setp.eq.u32 %p1, %r1, 13;
@%p1 st.global.u32 [%rd1+4096], %r1;
mov.u32 %r2, 0;
$loop:
st.global.u32 [%rd3+256], %r1;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p2, %r2, 70;
@%p2 bra $loop;
ret;
""",
    ".param .u64 out",
)


@pytest.mark.parametrize("lean", [False, True], ids=["plain", "lean"])
def test_lane_with_more_records_keeps_its_own(lean: bool, tmp_path: Path) -> None:
    """Lane 13 is one record ahead of its warp; 64 records fit, of 70 or 71. The second warp stays together."""
    records, counts = records_of(tmp_path, APART, np.zeros(2048, np.uint32), block=(64,), lean=lean)
    assert (counts == 64).all()
    first = records["address"][:, 0].copy()
    start = first[0]
    np.testing.assert_array_equal(np.delete(first, 13), np.delete(start + 4 * np.arange(64, dtype=np.uint64), 13))
    assert first[13] == start - 256 + 4096
    np.testing.assert_array_equal(
        records["address"][:, 1:], start + np.repeat(4 * np.arange(64, dtype=np.uint64), 63).reshape(64, 63)
    )
