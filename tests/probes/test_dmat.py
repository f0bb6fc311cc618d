"""Accesses are those that kernels make; requests and sectors of each instruction are those on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.kernels import entry
from tests.probes.kernels import GENERIC
from tests.probes.metric_values import figures_in
from tests.probes.running import example, result_of, simulated
from tests.probes.specimens import strided_store
from tests.probes.test_gmem_sectors import gather
from tui_probe.engine.kernel import Kernel
from tui_probe.errors import TraceError
from tui_probe.probes.dmat.accesses import Accesses, read_accesses
from tui_probe.probes.dmat.coalescing import AccessTable, by_line
from tui_probe.probes.gmem_sectors.analysis import analyse as count_sectors
from tui_probe.ptx.parser import parse
from tui_probe.trace.device_memory import Allocation, LaunchMemory

if TYPE_CHECKING:
    from pathlib import Path

BASE = 0x7F00_0000_0000
SPECIMEN = strided_store(8192)


def recorded(
    tmp_path: Path, text: str, *arguments: Any, name: str = "", probe: str = "dmat", **options: Any
) -> Accesses:
    """The accesses of a kernel; its folder, for ``by_line``, is ``tmp_path``."""
    name = name or parse(text).entries()[0].name
    (tmp_path / "pruned.ptx").write_text(Kernel.of(parse(text), name).pruned)
    result = result_of(tmp_path, probe, text, *arguments, name=name, **options)
    memory = LaunchMemory((Allocation(BASE, 1 << 22),))
    return read_accesses(result, compact=probe != "dmat", memory=memory, simulated=True)


def flat(accesses: Accesses) -> dict[str, np.ndarray[Any, Any]]:
    parts = accesses.parts()
    names = ("addresses", "times", "warps", *(() if accesses.is_compact else ("lines",)))
    return {name: np.concatenate([getattr(part, name)() for part in parts]) for name in names}


@pytest.mark.parametrize(("name", "stride", "sectors"), [("coalesced_store", 1, 1024), ("strided_store", 2, 2048)])
def test_8192_threads_store_side_by_side_and_two_apart(tmp_path: Path, name: str, stride: int, sectors: int) -> None:
    accesses = recorded(tmp_path, example(name), np.zeros(16384, np.uint32), np.uint32(8192), grid=(32,), block=(256,))
    result = flat(accesses)
    np.testing.assert_array_equal(result["addresses"] - result["addresses"][0], np.arange(8192) * 4 * stride)
    np.testing.assert_array_equal(result["warps"], np.arange(8192) // 32)
    (row,) = by_line(accesses, tmp_path).rows
    assert (row.accesses, row.requests, row.sectors) == (8192, 256, sectors)
    assert row.code is not None
    assert (row.code.kind, row.code.bytes, row.bytes) == ("store", 4, 8192 * 4)
    assert row.used_share == 1 / stride
    assert "st.global" in (tmp_path / "pruned.ptx").read_text().splitlines()[row.line - 1]
    assert row.code.opcode.startswith("st.global")


def test_records_of_a_thread_are_in_order_and_after_its_warp_began(tmp_path: Path) -> None:
    size, tiles = 64, 4
    a = np.ones((size, size), np.float32)
    arguments = np.zeros_like(a), a, a, np.int32(size)
    accesses = recorded(tmp_path, example("matmul"), *arguments, grid=(tiles, tiles), block=(16, 16))
    result = flat(accesses)
    times = result["times"].astype(np.int64).reshape(tiles * tiles, 256, 2 * tiles + 1)
    assert np.all(np.diff(times, axis=2) > 0)
    assert np.all(times[:, :, 0] > np.repeat(accesses.entry, 32, axis=1))
    table = by_line(accesses, tmp_path)
    loads, stores = tiles**2 * 8 * tiles * 2, tiles**2 * 8
    assert table.total("load") == (loads, 4 * loads)
    assert table.total("store") == (stores, 4 * stores)
    assert (table.accesses, table.kept) == (16 * 256 * 9, 16 * 256 * 9)


CONDITIONAL = """
.reg .pred %p<4>;
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
mov.u32 %r1, %tid.x;
ld.param.u64 %rd1, [masks];
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd2, %rd1, %rd2;
mov.u32 %r3, 0;
$loop:
shl.b32 %r4, 1, %r3;
and.b32 %r5, %r4, %r2;
ld.global.u32 %r2, [%rd2];
and.b32 %r5, %r2, %r4;
setp.eq.u32 %p1, %r5, 0;
@%p1 bra $next;
ld.global.u32 %r6, [%rd2];
$next:
add.u32 %r3, %r3, 1;
setp.lt.u32 %p2, %r3, 6;
@%p2 bra $loop;
ret;
"""


@given(masks=st.lists(st.integers(0, 63), min_size=32, max_size=32))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
def test_lanes_that_skip_iterations(tmp_path: Path, masks: list[int]) -> None:
    """A lane's second access may go with the fifth of another: in each round, those whose bit is set go together."""
    text = entry(CONDITIONAL, ".param .u64 masks")
    table = by_line(recorded(tmp_path, text, np.array(masks, np.uint32)), tmp_path)
    lines = (tmp_path / "pruned.ptx").read_text().splitlines()
    rows = {row.line: row for row in table.rows}
    every, some = lines.index("ld.global.u32 %r2, [%rd2];") + 1, lines.index("ld.global.u32 %r6, [%rd2];") + 1
    assert (rows[every].requests, rows[every].sectors, rows[every].accesses) == (6, 6 * 4, 6 * 32)
    together = [[lane for lane in range(32) if masks[lane] >> bit & 1] for bit in range(6)]
    requests = sum(1 for lanes in together if lanes)
    if not requests:
        assert some not in rows
        return
    assert rows[some].requests == requests
    assert rows[some].sectors == sum(len({lane // 8 for lane in lanes}) for lanes in together)
    assert rows[some].accesses == sum(map(len, together))


picks = st.lists(st.one_of(st.integers(0, 900), st.integers(0, 12), st.just(4000)), min_size=64, max_size=64)


@pytest.mark.parametrize("predicate", [False, True], ids=["branch", "predicate"])
@given(picked=picks, kind=st.sampled_from([("u8", 1), ("u32", 4), ("v2.b32", 8), ("v4.b32", 16)]))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12)
def test_the_same_as_gmem_sectors(tmp_path: Path, predicate: bool, picked: list[int], kind: tuple[str, int]) -> None:
    text, table = gather(*kind, predicate=predicate), np.zeros(1100 * kind[1], np.uint8)
    arguments = table, np.array(picked, np.uint32)
    analysis = by_line(recorded(tmp_path, text, *arguments, block=(64,)), tmp_path)
    counts = count_sectors(result_of(tmp_path, "gmem_sectors", text, *arguments, block=(64,)))
    assert analysis.total("load") == (counts.load_requests, counts.load_sectors)
    assert analysis.total("store") == (counts.store_requests, counts.store_sectors)


def test_cp_async(tmp_path: Path) -> None:
    """16 bytes per lane, both matrices copied once: two lanes share a sector of a, a row of b is half a sector."""
    depth = 64
    a, b = (np.ones(shape, np.float16) for shape in ((16, depth), (depth, 8)))
    arguments = np.zeros((16, 8), np.float16), a, b, np.int32(depth)
    accesses = recorded(tmp_path, simulated("matrices"), *arguments, name="pipeline")
    rows = [row for row in by_line(accesses, tmp_path).rows if row.code and row.code.kind == "copy"]
    assert sum(row.bytes or 0 for row in rows) == a.nbytes + b.nbytes
    assert sum(row.sectors for row in rows) * 32 == a.nbytes + b.nbytes
    assert {row.code.bytes for row in rows if row.code} == {16}


def test_generic_addresses_in_global_memory(tmp_path: Path) -> None:
    accesses = recorded(tmp_path, entry(GENERIC, ".param .u64 out"), np.zeros(64, np.uint64), block=(45,), grid=(2,))
    table = by_line(accesses, tmp_path)
    stores, loads = 2 * (5 + 1), 2 * (4 + 4)
    kinds = {kind: sum(row.accesses for row in table.rows if row.code and row.code.kind == kind)
             for kind in ("store", "load")}  # fmt: skip
    assert kinds == {"store": stores, "load": loads}


def test_compact_records_have_the_same_sectors_and_times(tmp_path: Path) -> None:
    arguments = *[np.zeros(8192, np.float32)] * 2, np.float32(1), np.int32(5000)
    options: dict[str, Any] = {"grid": (32,), "block": (256,)}
    full = flat(recorded(tmp_path, example("saxpy"), *arguments, **options))
    compact = recorded(tmp_path, example("saxpy"), *arguments, probe="dmat_compact", **options)
    result = flat(compact)
    assert len(result["addresses"]) == 3 * 5000
    np.testing.assert_array_equal(result["addresses"], full["addresses"] // 32 * 32)
    np.testing.assert_array_equal(result["warps"], full["warps"])
    with pytest.raises(TraceError, match="compact records do not name the instructions"):
        by_line(compact, tmp_path)


LOOP = """
.reg .pred %p<2>;
.reg .b32 %r<4>;
.reg .b64 %rd<3>;
ld.param.u64 %rd1, [out];
mov.u32 %r1, 0;
$loop:
st.global.u32 [%rd1], %r1;
add.u32 %r1, %r1, 1;
setp.lt.u32 %p1, %r1, 1000;
@%p1 bra $loop;
ret;
"""


def test_more_accesses_than_room(tmp_path: Path) -> None:
    accesses = recorded(tmp_path, entry(LOOP, ".param .u64 out"), np.zeros(1, np.uint32))
    table = by_line(accesses, tmp_path)
    assert (table.accesses, table.kept) == (32 * 1000, 32 * accesses.capacity)
    assert [(row.requests, row.sectors) for row in table.rows] == [(accesses.capacity, accesses.capacity)]
    metric_values = {metric_value.key: metric_value for metric_value in figures_in("dmat", table)}
    assert metric_values["kept"].is_shown
    assert metric_values["worst_sectors_per_request"].value == 1


def test_a_kernel_whose_ptx_is_gone(tmp_path: Path) -> None:
    accesses = recorded(tmp_path, entry(LOOP, ".param .u64 out"), np.zeros(1, np.uint32))
    (tmp_path / "pruned.ptx").unlink()
    table: AccessTable = by_line(accesses, tmp_path)
    assert [(row.code, row.bytes, row.used_share) for row in table.rows] == [(None, None, None)]
