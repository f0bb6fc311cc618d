"""Sectors of affine, tiled, shared and scattered addresses equal a count of the addresses themselves, warp by warp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.engine.kernels import entry
from tests.probes.running import result_of
from tui_probe.probe_files.loading import load_probe
from tui_probe.probes.gmem_sectors.analysis import RECORD, SITE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WARP, SECTOR = 32, 32
INACTIVE = 0xFFFFFFFF
MIDDLE = 1 << 14
"""Start of patterns in a table of twice as many bytes, so that strides may be negative."""
STRIDES = (0, 1, 2, 3, 8, 33, -1, -2)
STARTS = (0, 1, 5, 31)
SIZES = {"u8": 1, "u16": 2, "u32": 4, "v2.b32": 8, "v4.b32": 16}


def masks(generator: np.random.Generator) -> Iterator[np.ndarray[Any, Any]]:
    """Whole warps, their first and last lanes, single lanes, none, every second lane, and any lanes."""
    lanes = np.arange(WARP)
    yield from (lanes >= 0, lanes < 20, lanes > 6, lanes == 31, lanes < 0, lanes % 2 == 1, (lanes > 2) & (lanes < 9))
    for _ in range(3):
        yield generator.random(WARP) < generator.random()


def patterns(size: int, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    """Offsets in bytes, a row for each warp: multiples of ``size``, or INACTIVE."""
    lanes = np.arange(WARP)
    elements = [start + stride * lanes for start in STARTS for stride in STRIDES]
    elements += [
        start + columns * (lanes // row) + lanes % row for start in STARTS for row, columns in ((8, 40), (16, 17))
    ]
    elements += [
        np.sort(generator.integers(0, 200, WARP)),
        generator.integers(0, 12, WARP),
        generator.permutation(WARP),
    ]
    elements += [np.where(lanes == odd, 77, lanes) for odd in (0, 17, 31)]
    rows = [np.where(mask, MIDDLE + size * element, INACTIVE) for element in elements for mask in masks(generator)]
    return np.array(rows, np.int64).astype(np.uint32)


def kernel(kind: str) -> str:
    """Each lane loads at its offset, stores there, and copies what is there if the size is one of ``cp.async``."""
    size = SIZES[kind]
    names = ", ".join(f"%v{index}" for index in range(max(size // 4, 1)))
    data = f"{{{names}}}" if size > 4 else names
    copy = f"cp.async.ca.shared.global [%r4], [%rd3], {size}; cp.async.wait_all;" if size >= 4 else ""
    return entry(
        f"""
.shared .align 16 .b8 tile[512];
.reg .pred %p; .reg .b32 %r<5>; .reg .b32 {names}; .reg .b64 %rd<4>;
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 32, %r1;
mov.u32 %r4, tile; mad.lo.u32 %r4, %r1, 16, %r4;
ld.param.u64 %rd1, [offsets]; ld.param.u64 %rd2, [table];
mul.wide.u32 %rd3, %r3, 4; add.s64 %rd3, %rd1, %rd3; ld.global.u32 %r3, [%rd3];
setp.eq.u32 %p, %r3, {INACTIVE:#x};
@%p bra $end;
cvt.u64.u32 %rd3, %r3; add.s64 %rd3, %rd2, %rd3;
ld.global.{kind} {data}, [%rd3];
st.global.{kind} [%rd3], {data};
{copy}
$end:
ret;
""",
        ".param .u64 offsets, .param .u64 table",
    )


def counted(offsets: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    """For each warp its requests, the sectors that it touches, and the fewest for its bytes."""
    rows = []
    for warp in offsets:
        active = warp[warp != INACTIVE].astype(np.int64)
        touched = len(np.unique(active // SECTOR))
        rows.append((int(len(active) > 0), touched, min(touched, -(-len(active) * size // SECTOR))))
    return np.array(rows)


@pytest.fixture(params=SIZES)
def launched(request: pytest.FixtureRequest) -> tuple[str, np.ndarray[Any, Any], dict[str, np.ndarray[Any, Any]]]:
    """A kernel, the offsets of its warps, and what there is to count, by the beginnings of the fields."""
    kind: str = request.param
    size = SIZES[kind]
    offsets = patterns(size, np.random.default_rng(size))
    record = counted(offsets, size)
    none = np.zeros_like(record)
    return (
        kernel(kind),
        offsets,
        {"load": record + np.array([1, 4, 4]), "store": record, "copy": record if size >= 4 else none},
    )


@pytest.mark.parametrize("form", ["plain", "lean", "straight"])
def test_sectors_of_each_warp_equal_a_count_of_its_addresses(
    launched: tuple[str, np.ndarray[Any, Any], dict[str, np.ndarray[Any, Any]]], form: str, tmp_path: Path
) -> None:
    text, offsets, expected = launched
    probe = load_probe("gmem_sectors")
    own = {"plain": probe, "lean": probe.lean_form(), "straight": probe.straight_form()}[form]
    result = result_of(tmp_path, own, text, offsets.ravel(), np.zeros(2 * MIDDLE, np.uint8), grid=(len(offsets),))
    records = result.records(0, RECORD)
    for operation, rows in expected.items():
        for column, name in enumerate(("requests", "sectors", "ideal")):
            counts = records[f"{operation}_{name}"].ravel()
            wrong = np.flatnonzero(counts != rows[:, column])
            assert not len(wrong), (operation, name, offsets[wrong[0]], counts[wrong[0]], rows[wrong[0]])


def test_sectors_by_line_are_the_sums_over_warps(
    launched: tuple[str, np.ndarray[Any, Any], dict[str, np.ndarray[Any, Any]]], tmp_path: Path
) -> None:
    text, offsets, expected = launched
    arguments = offsets.ravel(), np.zeros(2 * MIDDLE, np.uint8)
    result = result_of(tmp_path, "gmem_sectors_by_line", text, *arguments, grid=(len(offsets),))
    sites = result.sites(0, SITE)
    assert sites is not None
    for operation, rows in expected.items():
        own = sites[sites[f"{operation}_requests"] > 0]
        counts = [int(own[f"{operation}_{name}"].sum()) for name in ("requests", "sectors")]
        counts.append(counts[1] - int(own["excess"].sum()))
        assert counts == rows.sum(axis=0).tolist()
