"""Boxes of bulk copies in dmat: the bytes of tensors, placed where a slow reading of the records places them."""

from __future__ import annotations

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
from tests.probes.tensor_copy import COLUMNS, ROWS, STRIDE
from tests.probes.test_tensor_copies import TILINGS, Tiling, run
from tests.trace.make import result_bytes
from tui_probe.cli.main import main
from tui_probe.draw.view import no_progress
from tui_probe.errors import TraceError
from tui_probe.probes.dmat.accesses import COMPACT, RECORD, WARP, Selection, read_accesses
from tui_probe.probes.dmat.boxes import BOX, Boxes, raster_boxes, read_boxes
from tui_probe.probes.dmat.density import Grid
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
    assert (len(boxes.records), boxes.made, boxes.unknown) == (copies, copies, 0)
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
    assert (len(boxes.records), boxes.unknown, int(boxes.bytes.sum()), touched(boxes)) == (18, 18, 0, [])


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
    found = []
    for places in product(*(range(record[f"count{dimension}"]) for dimension in range(1, 5))):
        start = int(record["start"]) + sum(
            place * int(record[f"stride{dimension}"]) for dimension, place in enumerate(places, 1)
        )
        by_sector: dict[int, int] = {}
        for byte in range(start, start + int(record["row"])):
            by_sector.setdefault(byte // 32, byte)
        found += by_sector.values()
    return found


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
    assert all(points[number] * step <= places + step for number, places in enumerate(boxes.places.tolist()))


@given(random_boxes(), st.integers(0, 2), st.integers(0, 1) | st.none(), st.integers(1, 3) | st.none())
def test_selection_has_the_boxes_of_a_block_warp_and_line(
    boxes: Boxes, block: int, warp: int | None, line: int | None
) -> None:
    chosen = boxes.of(Selection(block, warp, line), 0, 1000)
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


def test_results_without_boxes_have_none(tmp_path: Path) -> None:
    path = tmp_path / "1.bin"
    assert COMPACT.itemsize != BOX.itemsize
    whole = content(np.zeros(1, BOX), 0)
    warps, accesses = np.ones((1, 1, 1), WARP), np.zeros((1, 32, 1), RECORD)
    path.write_bytes(result_bytes((1, 1, 1), (32, 1, 1), [(32, as_bytes(warps)), (1, as_bytes(accesses))]))
    assert len(whole) > path.stat().st_size
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
