"""Requests and sectors are those that the addresses give on paper."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.kernels import entry
from tests.probes.kernels import GENERIC
from tests.probes.running import example, result_of, simulated
from tests.probes.specimens import strided_store
from tests.turns import due_pairs
from tui_probe.probe_files.loading import load_probe
from tui_probe.probes.gmem_sectors import _sector_findings
from tui_probe.probes.gmem_sectors.analysis import MemorySectors, analyse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SPECIMEN = strided_store(8192)
expected = partial(MemorySectors, bulk_copies=0, bulk_load_sectors=0, bulk_store_sectors=0, unsized_copies=0)


@pytest.fixture(params=["plain", "lean"])
def counted(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., MemorySectors]:
    """Counts by the probe in each of its forms: they are the same."""
    probe = load_probe("gmem_sectors")
    own = probe.lean_form() if request.param == "lean" else probe

    def run(*arguments: Any, **options: Any) -> MemorySectors:
        return analyse(result_of(tmp_path, own, *arguments, **options))

    return run


@pytest.mark.parametrize(("name", "sectors"), [("coalesced_store", 1024), ("strided_store", 2048)])
def test_8192_threads_store_side_by_side_and_two_apart(
    counted: Callable[..., MemorySectors], name: str, sectors: int
) -> None:
    counts = counted(example(name), np.zeros(16384, np.uint32), np.uint32(8192), grid=(32,), block=(256,))
    assert counts == expected(0, 0, 256, sectors, 0, 0, 0, 0, 0, load_ideal=0, store_ideal=1024)
    assert counts.wasted_of_stores == 1 - 1024 / sectors
    assert counts.sectors_per_store == sectors / 256
    assert counts.sectors_per_load is None


def test_a_warp_without_an_active_lane_makes_no_request(counted: Callable[..., MemorySectors]) -> None:
    """5000 of 8192 threads: 156 whole warps and one of 8 lanes."""
    counts = counted(example("saxpy"), *[np.zeros(8192, np.float32)] * 2, np.float32(1), np.int32(5000),
                     grid=(32,), block=(256,))  # fmt: skip
    assert counts == expected(
        2 * 157, 2 * (156 * 4 + 1), 157, 156 * 4 + 1, 0, 0, 0, 0, 0, load_ideal=1250, store_ideal=625
    )


def test_tiled_matrix_product(counted: Callable[..., MemorySectors]) -> None:
    """A warp is two rows of a 16×16 tile, so each request takes two sectors from each of two rows."""
    size, tiles = 64, 4
    a = np.ones((size, size), np.float32)
    arguments = np.zeros_like(a), a, a, np.int32(size)
    counts = counted(example("matmul"), *arguments, grid=(tiles, tiles), block=(16, 16))
    loads, stores = tiles**2 * 8 * tiles * 2, tiles**2 * 8
    assert counts == expected(
        loads, 4 * loads, stores, 4 * stores, 0, 0, 0, 0, 0, load_ideal=4 * loads, store_ideal=4 * stores
    )


def test_matrix_accesses_are_reported(counted: Callable[..., MemorySectors]) -> None:
    size = 48
    a, c = np.ones((size, size), np.float16), np.ones((size, size), np.float32)
    arguments = np.zeros_like(c), a, a, c, np.int32(size), np.float32(1)
    counts = counted(simulated("matrices"), *arguments, grid=(3, 3), name="fragments")
    assert counts.matrix_accesses == 9 * (2 * 3 + 1)


def test_generic_accesses_are_reported(counted: Callable[..., MemorySectors]) -> None:
    """Threads 0 to 4 store to global memory, the others to shared memory; thread 2 stores again instead of loading."""
    counts = counted(entry(GENERIC, ".param .u64 out"), np.zeros(64, np.uint64), block=(45,), grid=(2,))
    assert counts == expected(0, 0, 0, 0, 0, 0, 0, 2 * (5 + 1 + 4 + 4), 0, load_ideal=0, store_ideal=0)


def test_copies_past_the_registers(counted: Callable[..., MemorySectors]) -> None:
    """Four stages: of a 16 rows of a sector each, by two lanes per row; of b eight sectors, by 16 lanes."""
    depth = 64
    a, b = (np.ones(shape, np.float16) for shape in ((16, depth), (depth, 8)))
    arguments = np.zeros((16, 8), np.float16), a, b, np.int32(depth)
    counts = counted(simulated("matrices"), *arguments, name="pipeline")
    assert (counts.copy_requests, counts.copy_sectors) == (4 * 2, 4 * (16 + 8))
    assert counts.sectors_per_copy == 12
    assert counts.wasted_of_loads == 0, "16 bytes per lane take 16 sectors and waste none"
    assert (counts.load_requests, counts.load_sectors) == (counts.copy_requests, counts.copy_sectors)
    assert counts.store_requests == 8  # of single bytes


FILL = """
.shared .align 16 .b8 tile[512];
.reg .pred %p<2>;
.reg .b32 %r<6>;
.reg .b64 %rd<4>;
ld.param.u64 %rd1, [from];
ld.param.u32 %r5, [lanes];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 16;
add.s64 %rd3, %rd1, %rd2;
mov.u32 %r2, tile;
mad.lo.u32 %r2, %r1, 16, %r2;
setp.lt.u32 %p1, %r1, %r5;
selp.u32 %r3, 16, 0, %p1;
cp.async.cg.shared.global [%r2], [%rd3], 16, %r3;
cp.async.wait_all;
ret;
"""


@pytest.mark.parametrize(("lanes", "requests", "sectors"), [(0, 0, 0), (1, 1, 1), (7, 1, 4), (32, 1, 16)])
def test_lanes_that_only_fill_with_zeros_read_nothing(
    counted: Callable[..., MemorySectors], lanes: int, requests: int, sectors: int
) -> None:
    text = entry(FILL, ".param .u64 from, .param .u32 lanes")
    counts = counted(text, np.zeros(128, np.uint32), np.uint32(lanes), block=(32,))
    assert counts == expected(requests, sectors, 0, 0, requests, sectors, 0, 0, 0, load_ideal=sectors, store_ideal=0)


def gather(kind: str, size: int, *, predicate: bool) -> str:
    """Each thread loads the element that its index names, if it is below 1000, and stores it at another index."""
    registers = ", ".join(f"%v{i}" for i in range(max(size // 4, 1)))
    data = f"{{{registers}}}" if size > 4 else registers
    around = ("@!%p1 ", "") if predicate else ("", "@%p1 bra $end;")
    return entry(
        f"""
.reg .pred %p<3>;
.reg .b32 %r<9>;
.reg .b32 {registers};
.reg .b64 %rd<9>;
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mad.lo.u32 %r1, %r2, %r3, %r1;
ld.param.u64 %rd1, [table];
ld.param.u64 %rd2, [indices];
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd3, %rd2, %rd3;
ld.volatile.global.u32 %r4, [%rd3];
setp.ge.u32 %p1, %r4, 1000;
{around[1]}
mul.wide.u32 %rd4, %r4, {size};
add.s64 %rd4, %rd1, %rd4;
{around[0]}ld.global.{kind} {data}, [%rd4];
{around[0]}st.global.{kind} [%rd4+{64 * size}], {data};
$end:
ret;
""",
        ".param .u64 table, .param .u64 indices",
    )


def touched(indices: np.ndarray[Any, Any], size: int, offset: int) -> tuple[int, int, int]:
    """Requests, sectors and the minimum, of an access at ``index * size + offset``.

    The table begins at a sector.
    """
    warps = indices.reshape(-1, 32)
    active = [warp[warp < 1000].astype(np.int64) for warp in warps]
    sectors = [len(np.unique((warp * size + offset) // 32)) for warp in active]
    fewest = (min(-(-len(warp) * size // 32), most) for warp, most in zip(active, sectors, strict=True))
    return sum(len(warp) > 0 for warp in active), sum(sectors), sum(fewest)


SIZES = {"u8": 1, "u32": 4, "v2.b32": 8, "v4.b32": 16}
lanes = st.lists(st.one_of(st.integers(0, 900), st.integers(0, 12), st.just(4000)), min_size=64, max_size=64)


@pytest.mark.parametrize(("predicate", "kind"), due_pairs([False, True], SIZES))
@given(picked=lanes)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12)
def test_gather_and_scatter(
    counted: Callable[..., MemorySectors], kind: str, predicate: bool, picked: list[int]
) -> None:
    size = SIZES[kind]
    indices = np.array(picked, np.uint32)
    table = np.zeros(1100 * size, np.uint8)
    counts = counted(gather(kind, size, predicate=predicate), table, indices, block=(64,))
    requests, load_sectors, load_ideal = touched(indices, size, 0)
    store_requests, store_sectors, store_ideal = touched(indices, size, 64 * size)
    own = 2, 8  # the indices themselves
    loads, stores = (own[0] + requests, own[1] + load_sectors), (store_requests, store_sectors)
    assert counts == expected(*loads, *stores, 0, 0, 0, 0, 0, load_ideal=own[1] + load_ideal, store_ideal=store_ideal)


def test_ideal_has_as_many_digits_as_touched_sectors() -> None:
    counted = expected(30, 132, 30, 240, 0, 0, 0, 0, 0, load_ideal=110, store_ideal=120)
    texts = [finding.words for finding in _sector_findings(counted, "")]
    assert texts[0].endswith("4.4 sectors each, ideal 3.7")
    assert texts[1].endswith("8.0 sectors each, ideal 4")
