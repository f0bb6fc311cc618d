"""Boxes of bulk copies in dmat: the bytes of tensors, placed where a slow reading of the records places them."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections import Counter
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.probes.dmat_files import as_bytes
from tests.probes.dmat_view import drawn, opened
from tests.probes.running import result_of
from tests.probes.tensor_copy import COLUMNS, ROWS, STRIDE
from tests.probes.test_tensor_copies import TILINGS, Tiling, run
from tests.trace.make import result_bytes
from tui_probe.cli.main import main
from tui_probe.draw.view import no_progress
from tui_probe.errors import TraceError
from tui_probe.probes.dmat import access_map, frame
from tui_probe.probes.dmat.accesses import COMPACT, RECORD, WARP, Selection, read_accesses
from tui_probe.probes.dmat.boxes import Boxes, kind_of, raster_boxes, read_boxes, repeats_text, shape_text
from tui_probe.probes.dmat.density import Grid
from tui_probe.records.copied_boxes import BOX
from tui_probe.records.probed_sites import AccessLine
from tui_probe.trace.device_memory import LaunchMemory
from tui_probe.trace.results import read_result

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.results import Result

BASE = 0x7F00_0000_0000


def boxes_of(result: Result) -> Boxes:
    boxes = read_boxes(read_accesses(result, compact=False, memory=LaunchMemory(), simulated=True))
    assert boxes is not None
    return boxes


def touched(boxes: Boxes) -> list[int]:
    return sorted(address for _, addresses in boxes.points() for address in addresses.tolist())


@pytest.mark.parametrize("tiling", TILINGS)
def test_boxes_are_what_is_inside_the_tensor(tmp_path: Path, tiling: Tiling) -> None:
    """Each byte of the tensor is in one box that is loaded and one that is stored; what overhangs is in none."""
    boxes = boxes_of(run(tmp_path, "dmat", tiling))
    copies = 2 * int(np.prod(tiling.grid))
    assert (len(boxes.records), boxes.total_copies, boxes.unsized_copies) == (copies, copies, 0)
    assert int(boxes.sectors().sum()) == 2 * tiling.sectors
    base = int(boxes.records["start"].min())
    bytes_of_boxes = Counter(
        int(record["start"]) - base + row * int(record["stride1"]) + byte
        for record in boxes.records
        for row in range(record["count1"])
        for byte in range(record["row"])
    )
    size = tiling.columns * tiling.element
    assert bytes_of_boxes == {row * tiling.stride + byte: 2 for row in range(tiling.rows) for byte in range(size)}


def test_boxes_without_a_known_layout_are_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.probes.running.SIMULATED_MAPS", "")
    boxes = boxes_of(run(tmp_path, "dmat", TILINGS[0]))
    assert (len(boxes.records), boxes.unsized_copies, int(boxes.bytes.sum()), touched(boxes)) == (18, 18, 0, [])


@st.composite
def random_boxes(draw: st.DrawFn) -> Boxes:
    number = draw(st.integers(0, 5))
    records = np.zeros(number, BOX)
    for record in records:
        record["start"] = BASE + draw(st.integers(0, 4000)) if draw(st.booleans()) else 0
        record["row"] = draw(st.integers(0, 200)) if record["start"] else 0
        record["line"], record["lanes"] = draw(st.integers(1, 3)), 1
        for dimension in range(1, 5):
            record[f"count{dimension}"] = draw(st.integers(0, 3))
            record[f"stride{dimension}"] = draw(st.integers(0, 40)) * 16
    times = np.array([draw(st.integers(0, 999)) for _ in records], np.int64)
    return Boxes(records, times, np.arange(number, dtype=np.int64), number, 2)


def slow_sectors(record: Any) -> list[int]:
    """The first byte of each row in each sector that the row touches."""
    transfers = []
    for places in product(*(range(record[f"count{dimension}"]) for dimension in range(1, 5))):
        start = int(record["start"]) + sum(
            place * int(record[f"stride{dimension}"]) for dimension, place in enumerate(places, 1)
        )
        by_sector: dict[int, int] = {}
        for byte in range(start, start + int(record["row"])):
            by_sector.setdefault(byte // 32, byte)
        transfers += by_sector.values()
    return transfers


@given(random_boxes())
def test_points_are_those_of_a_slow_reading(boxes: Boxes) -> None:
    assert touched(boxes) == sorted(address for record in boxes.records for address in slow_sectors(record))
    assert boxes.sectors().tolist() == [len(slow_sectors(record)) for record in boxes.records]
    spans = boxes.spans().tolist()
    for record in boxes.records:
        assert all(any(low <= address < high for low, high in spans) for address in slow_sectors(record))


@given(random_boxes(), st.lists(st.integers(0, 9000), min_size=2, max_size=7, unique=True), st.integers(1, 40))
def test_raster_counts_each_sector_in_its_cell(boxes: Boxes, edges: list[int], columns: int) -> None:
    low, high = (np.array(side, np.uint64) + np.uint64(BASE) for side in zip(*pairwise(sorted(edges)), strict=True))
    grid = Grid(100, 900, columns, low, high)
    expected: Counter[tuple[int, int]] = Counter()
    for record, time in zip(boxes.records, boxes.times.tolist(), strict=True):
        for address in slow_sectors(record):
            row = next((i for i in range(grid.rows) if int(low[i]) <= address < int(high[i])), None)
            if row is not None and 100 <= time < 900:
                expected[row, (time - 100) * columns // 800] += 1
    counts = raster_boxes(boxes, grid, no_progress)
    assert {(int(r), int(c)): int(counts[r, c]) for r, c in np.argwhere(counts)} == dict(expected)


@given(random_boxes(), st.integers(1, 50))
def test_fewer_points_stand_for_all_sectors_of_each_box(boxes: Boxes, most: int) -> None:
    step = boxes.step(most)
    points = Counter(number for box, _ in boxes.points(step) for number in box.tolist())
    assert sum(points.values()) <= most + len(boxes.records)
    weights, touched_places = boxes.weights(step), boxes.sectors()
    for number, places in enumerate(boxes.sector_counts.tolist()):
        assert weights[number] <= step
        assert points[number] * weights[number] <= places
        assert bool(points[number]) <= bool(touched_places[number])


@given(random_boxes(), st.integers(0, 2), st.integers(0, 1) | st.none(), st.integers(1, 3) | st.none())
def test_selection_has_the_boxes_of_a_block_warp_and_line(
    boxes: Boxes, block: int, warp: int | None, line: int | None
) -> None:
    chosen = boxes.select(Selection(block, warp, line), 0, 1000)
    expected = [
        number
        for number in range(len(boxes.records))
        if number // 2 == block
        and (warp is None or number % 2 == warp)
        and (line is None or boxes.records["line"][number] == line)
    ]
    assert chosen.warps.tolist() == expected


def content(records: np.ndarray[Any, Any], attempts: int) -> bytes:
    """A result of one block of a warp that copies, and makes no access."""
    warps = np.zeros((1, 1, 1), WARP)
    warps["start"] = warps["time"] = (7 << 32) - 1000
    maps = [
        (32, as_bytes(warps)),
        (1, as_bytes(np.zeros((1, 32, 1), RECORD))),
        (1, as_bytes(np.zeros((1, 32, 1), "<u4"))),
        (32, as_bytes(records.reshape(1, 1, -1))),
        (32, as_bytes(np.full((1, 1, 1), attempts, "<u4"))),
    ]
    about = [(1, WARP.itemsize, b"\1"), (2, 16, b""), (3, 4, b""), (2, BOX.itemsize, b""), (3, 4, b"")]
    return result_bytes((1, 1, 1), (32, 1, 1), maps, about=about)


def test_times_go_on_where_the_low_half_of_the_clock_begins_anew(tmp_path: Path) -> None:
    records = np.zeros(3, BOX)
    records["start"], records["row"], records["lanes"] = BASE, 16, 1
    records["clock"] = (1 << 32) - 990, (1 << 32) - 1, 5
    for dimension in range(1, 5):
        records[f"count{dimension}"] = 1
    (tmp_path / "1.bin").write_bytes(content(records, 9))
    boxes = boxes_of(read_result(tmp_path / "1.bin"))
    assert boxes.times.tolist() == [10, 999, 1005]
    assert boxes.text == "kept 3 of 9 bulk copies"


@pytest.mark.parametrize(("field", "value"), [("row", 1 << 31), ("stride1", 1 << 60), ("start", 1 << 62)])
def test_damaged_box_is_refused(tmp_path: Path, field: str, value: int) -> None:
    records = np.ones(1, BOX)
    records["count1"], records["count2"] = 1 << 10, 1 << 10
    records[field] = value
    (tmp_path / "1.bin").write_bytes(content(records, 1))
    with pytest.raises(TraceError, match="has a bulk copy that no GPU can make"):
        boxes_of(read_result(tmp_path / "1.bin"))


@st.composite
def wild_records(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    """Records with any numbers, most of them such as a GPU writes."""
    records = np.zeros(draw(st.integers(1, 3)), BOX)
    for record in records:
        for name in BOX.names or ():
            largest = 1 << 8 * BOX.fields[name][0].itemsize  # type: ignore[index]
            small = st.integers(0, 64 if name != "start" else 1 << 47)
            record[name] = draw(small | small | small | st.integers(0, largest - 1))
    return records


@given(wild_records(), st.integers(0, 9))
def test_any_records_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, records: np.ndarray[Any, Any], attempts: int
) -> None:
    path = tmp_path_factory.mktemp("boxes") / "1.bin"
    path.write_bytes(content(records, attempts))
    boxes = None
    with contextlib.suppress(TraceError):
        boxes = boxes_of(read_result(path))
    if boxes is None:
        with pytest.raises(TraceError, match="is damaged"):
            boxes_of(read_result(path))
        return
    spans = boxes.spans()
    assert (spans[:, 0] < spans[:, 1]).all()
    grid = Grid(0, 1 << 33, 50, spans.min(axis=0)[:1], spans.max(axis=0)[1:]) if len(spans) else None
    if grid is not None:
        assert raster_boxes(boxes, grid, no_progress, 1 << 10).sum() <= boxes.sector_counts.sum()
    assert all(shape_text(record) for record in boxes.records)


def test_results_without_boxes_have_none(tmp_path: Path) -> None:
    path = tmp_path / "1.bin"
    assert COMPACT.itemsize != BOX.itemsize
    complete = content(np.zeros(1, BOX), 0)
    warps, accesses = np.ones((1, 1, 1), WARP), np.zeros((1, 32, 1), RECORD)
    path.write_bytes(result_bytes((1, 1, 1), (32, 1, 1), [(32, as_bytes(warps)), (1, as_bytes(accesses))]))
    assert len(complete) > path.stat().st_size
    assert read_boxes(read_accesses(read_result(path), compact=False, memory=LaunchMemory(), simulated=True)) is None


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that loads and stores a tensor by maps in parameters."""
    directory = tmp_path_factory.mktemp("boxes")
    command = [sys.executable, "-m", "tui_probe", "run", "--sim", "--sim-arch", "sm_90", "--no-report", "-p", "dmat"]
    program = [sys.executable, "-m", "tests.probes.tensor_copy"]
    subprocess.run([*command, "--tracedir", str(directory), "--", *program], capture_output=True, text=True, check=True)
    (folder,) = directory.iterdir()
    return folder


def test_page_shows_boxes_in_the_bands_of_their_tensors(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    view = opened(trace)
    picture = "\n".join(drawn(view))
    assert "0 accesses, 18 bulk copies" in picture
    assert re.search(r"\d bulk copies, box 64 B × 8 · cp\.async\.bulk\.tensor\.2d", picture)
    assert main(["show", "dmat", str(trace), "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)["data"]
    assert data["boxes"] == {"kept": 18, "copies": 18, "unknown": 0, "bytes": 2 * 4 * ROWS * COLUMNS}
    assert [(band["name"], band["end"] - band["start"]) for band in data["bands"]] == [
        (f"param {number}", (ROWS - 1) * STRIDE + 4 * COLUMNS) for number in (0, 1)
    ]
    sectors = {band["name"]: 0 for band in data["bands"]}
    for row in data["rows"]:
        sectors[row["band"]] += sum(row["box_sectors"])
        assert sum(row["accesses"]) == 0
    assert sectors == {"param 0": ROWS * 3 * 2, "param 1": ROWS * 3 * 2}


@pytest.mark.parametrize("quick", [1 << 17, 40])
def test_pictures_of_large_results_have_boxes(trace: Path, monkeypatch: pytest.MonkeyPatch, quick: int) -> None:
    """Accesses of a large result are counted on a fine grid first; there may be no accesses."""
    monkeypatch.setattr(access_map, "MAX_RECOUNTED_RECORDS", 0)
    monkeypatch.setattr(frame, "_QUICK_POINTS", quick)
    view = opened(trace)
    assert view.map.fine_counts is not None
    drawn(view)
    assert view.frame is not None
    assert view.frame.boxes is not None
    assert abs(int(view.frame.boxes.sum()) - ROWS * 12) <= (0 if quick > ROWS * 12 else ROWS)
    assert (view.frame.cell_counts == view.frame.boxes).all()


def test_kinds_tell_bulk_loads_from_stores(trace: Path) -> None:
    view = opened(trace)
    view.press("colour")
    view.press("colour")
    view.press("colour")
    drawn(view)
    assert view.frame is not None
    assert view.frame.loads is not None
    assert view.frame.stores is not None
    assert (int(view.frame.loads.sum()), int(view.frame.stores.sum())) == (ROWS * 6, ROWS * 6)
    assert not (view.frame.loads.astype(bool) & view.frame.stores.astype(bool)).any()


def test_metrics_and_lines_count_copies_and_their_bytes(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = 4 * ROWS * COLUMNS
    assert main(["show", "lines", f"{trace}:0", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["data"]["lines"]
    assert [(row["access"], row["requests"], row["bytes"]) for row in rows] == [
        ("bulk load", 9, size),
        ("bulk store", 9, size),
    ]
    assert main(["report", str(trace)]) == 0
    assert "bulk copies 18, by bulk copies 7 040 B" in " ".join(capsys.readouterr().out.split())


def copy_of_box(shape: tuple[int, ...], box: tuple[int, ...], first: tuple[int, ...]) -> str:
    """A kernel that makes a map of words of a tensor in C order and loads one box; innermost dimensions first."""
    rank, size = len(shape), 4 * int(np.prod(box))
    replaced = [("rank", "b32", str(rank - 1)), ("elemtype", "b32", "7")]
    for number, (extent, side) in enumerate(zip(shape, box, strict=True)):
        replaced += [(name, "b32", f"{number}, {value}") for name, value in
                     (("box_dim", side), ("global_dim", extent), ("element_stride", 1))]  # fmt: skip
        replaced += [("global_stride", "b64", f"{number}, %s{number}")] if number + 1 < rank else []
    strides = np.cumprod((4, *shape))[1:]
    sets = " ".join(f"mov.b64 %s{number}, {value};" for number, value in enumerate(strides.tolist()[: rank - 1]))
    maps = "\n".join(f"tensormap.replace.tile.{n}.shared::cta.b1024.{t} [%rd3], {v};" for n, t, v in replaced)
    places = " ".join(f"mov.b32 %c{number}, {value};" for number, value in enumerate(first))
    names = ", ".join(f"%c{number}" for number in range(rank))
    return f""".version 8.6\n.target sm_90a\n.address_size 64
    .visible .entry copies(.param .u64 map, .param .u64 tensor) {{
        .shared .align 128 .b8 made[128]; .shared .align 128 .b8 tile[{size}]; .shared .align 8 .b64 arrived;
        .reg .b32 %r<6>, %c<5>; .reg .b64 %rd<6>, %s<5>; .reg .pred %p, %q;
        ld.param.u64 %rd1, [map]; ld.param.u64 %rd2, [tensor]; mov.u32 %r1, %tid.x; mov.u32 %r2, made;
        shl.b32 %r3, %r1, 2; add.u32 %r2, %r2, %r3; st.shared.b32 [%r2], 0; bar.sync 0; {sets} {places}
        mov.u32 %r2, made; cvt.u64.u32 %rd3, %r2; setp.eq.u32 %p, %r1, 0; @!%p bra rest;
        tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%rd3], %rd2;
        {maps}
    rest:
        bar.sync 0; mov.u32 %r4, tile; mov.u32 %r5, arrived;
        tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%rd3], 128;
        fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
        @!%p bra done;
        mbarrier.init.shared::cta.b64 [%r5], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], {size};
        cp.async.bulk.tensor.{rank}d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r4],
            [%rd1, {{{names}}}], [%r5];
    again:
        mbarrier.try_wait.parity.shared::cta.b64 %q, [%r5], 0; @!%q bra again;
    done:
        ret; }}"""


@pytest.mark.parametrize(
    ("shape", "box", "first"),
    [
        ((64,), (32,), (8,)),
        ((64,), (32,), (56,)),
        ((16, 6, 5), (16, 4, 2), (0, 3, 4)),
        ((16, 6, 5), (8, 4, 2), (-4, -1, 1)),
        ((8, 5, 4, 3), (8, 2, 3, 2), (0, 4, 2, 1)),
        ((8, 5, 4, 3, 2), (8, 2, 2, 2, 2), (4, 0, 1, 2, 1)),
        ((8, 5, 4, 3, 2), (4, 1, 2, 3, 2), (2, 3, -1, 0, 0)),
        ((16, 6), (16, 2), (0, 9)),
    ],
)
def test_boxes_of_all_ranks(
    tmp_path: Path, shape: tuple[int, ...], box: tuple[int, ...], first: tuple[int, ...]
) -> None:
    tensor = np.arange(np.prod(shape), dtype=np.uint32).reshape(shape[::-1])
    result = result_of(tmp_path, "dmat", copy_of_box(shape, box, first), np.zeros(128, np.uint8), tensor)
    boxes = boxes_of(result)
    assert (len(boxes.records), boxes.unsized_copies) == (1, 0)
    sides = [range(max(at, 0), min(at + side, extent)) for at, side, extent in zip(first, box, shape, strict=True)]
    inside = [tensor[place[::-1]].item() for place in product(*sides)]
    (record,) = boxes.records
    assert int(boxes.bytes[0]) == 4 * len(inside)
    if not inside:
        assert touched(boxes) == []
        return
    base = int(record["start"]) - 4 * min(inside)
    rows = product(*(range(record[f"count{dimension}"]) for dimension in range(1, 5)))
    starts = [sum(at * int(record[f"stride{number}"]) for number, at in enumerate(row, 1)) for row in rows]
    addresses = [int(record["start"]) + start + byte - base for start in starts for byte in range(0, record["row"], 4)]
    assert sorted(word // 4 for word in addresses) == sorted(inside)


def plain_copies(lanes: int) -> str:
    """A kernel whose first lanes load 48 bytes each and store them, 256 bytes apart."""
    return f""".version 8.6\n.target sm_90\n.address_size 64
    .visible .entry copies(.param .u64 from, .param .u64 to) {{
        .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 arrived;
        .reg .b32 %r<6>; .reg .b64 %rd<6>; .reg .pred %p, %q, %t;
        ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to]; mov.u32 %r1, %tid.x;
        mov.u32 %r2, tile; mov.u32 %r3, arrived; setp.eq.u32 %t, %r1, 0; setp.lt.u32 %p, %r1, {lanes};
        mul.wide.u32 %rd3, %r1, 256; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3; mad.lo.u32 %r2, %r1, 64, %r2;
        @%t mbarrier.init.shared::cta.b64 [%r3], 1;
        @%t mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {48 * lanes};
        bar.sync 0;
        @%p cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1+16], 48, [%r3];
    again:
        mbarrier.try_wait.parity.shared::cta.b64 %q, [%r3], 0; @!%q bra again;
        @%p cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 48;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        ret; }}"""


@pytest.mark.parametrize("lanes", [1, 5])
def test_lanes_that_start_copies_together_have_one_record(tmp_path: Path, lanes: int) -> None:
    memory = np.arange(8192, dtype=np.uint8), np.zeros(8192, np.uint8)
    boxes = boxes_of(result_of(tmp_path, "dmat", plain_copies(lanes), *memory))
    assert boxes.records["lanes"].tolist() == [lanes, lanes]
    assert boxes.records["row"].tolist() == [48, 48]
    assert boxes.sectors().tolist() == [2, 2]
    assert (boxes.records["start"] % 256).tolist() == [16, 0]


@pytest.mark.parametrize(
    ("opcode", "kind", "text"),
    [
        ("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster", "load",
         ", multicast counted once"),
        ("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group", "store", ", reduction counted once"),
        ("cp.async.bulk.prefetch.tensor.2d.L2.global.tile", "load", ""),
        ("cp.async.ca.shared.global", "copy", ""),
    ],
)  # fmt: skip
def test_multicast_and_reduction_are_named(opcode: str, kind: str, text: str) -> None:
    code = AccessLine(7, opcode, "copy", None, None)
    assert (kind_of(code), repeats_text(code)) == (kind, text)
