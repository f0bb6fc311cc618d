"""Result files: both section dialects, any sizes, and every way in which a file can be wrong."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trace.make import result_bytes
from tui_probe.errors import TraceError
from tui_probe.trace.launch_shape import Level, Section
from tui_probe.trace.results import read_result

if TYPE_CHECKING:
    from pathlib import Path

GRID, BLOCK = (3, 2, 1), (100, 1, 1)


def slots(blocks: int, count: int, size: int) -> np.ndarray:
    return (np.arange(blocks * count * size) % 251).astype(np.uint8).reshape(blocks, count, size)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "1.000000.bin"


def test_a_map_a_warp_and_a_map_a_thread(file: Path) -> None:
    warp, thread = slots(6, 4, 16), slots(6, 100, 24)
    file.write_bytes(result_bytes(GRID, BLOCK, [(32, warp), (1, thread)], shared=4096))
    result = read_result(file)
    assert (result.header.grid, result.header.block, result.header.shared) == (GRID, BLOCK, 4096)
    assert (result.header.blocks, result.header.threads, result.dialect) == (6, 100, "current")
    assert result.sections == (Section("warp", 16, 64), Section("thread", 24, 64 + warp.size))
    np.testing.assert_array_equal(result.maps[0], warp)
    np.testing.assert_array_equal(result.maps[1], thread)


def test_maps_are_views_that_cannot_be_written(file: Path) -> None:
    file.write_bytes(result_bytes(GRID, BLOCK, [(32, slots(6, 4, 16))]))
    view = read_result(file).maps[0]
    assert not view.flags.owndata
    assert not view.flags.writeable


@pytest.mark.parametrize(("level", "count"), [("warp", 4), ("thread", 100)])
def test_older_sections_give_the_size_of_the_whole_map(file: Path, level: Level, count: int) -> None:
    data = slots(6, count, 16)
    file.write_bytes(result_bytes(GRID, BLOCK, [(32, data)], dialect="older"))
    for levels in (None, [level]):
        result = read_result(file, levels)
        assert (result.dialect, result.sections[0].level, result.sections[0].slot_bytes) == ("older", level, 16)
        np.testing.assert_array_equal(result.maps[0], data)


def test_levels_settle_what_an_older_file_leaves_open(file: Path) -> None:
    data = slots(6, 4, 800)
    file.write_bytes(result_bytes(GRID, BLOCK, [(32, data)], dialect="older"))
    assert read_result(file).sections[0].level == "thread"
    result = read_result(file, ["warp"])
    assert result.sections[0].level == "warp"
    np.testing.assert_array_equal(result.maps[0], data)


def test_an_older_map_of_more_than_4_gib_is_not_taken_for_a_current_one(file: Path) -> None:
    """Its size has an upper half of 1, as a current section of one slot per thread has; only one of the two fits."""
    size = (1 << 32) + 16 * 64
    blocks = size // 16 // 4
    header = struct.pack("<8I", blocks, 1, 1, 128, 1, 1, 0, 1)
    with file.open("wb") as sparse:
        sparse.write(header + struct.pack("<QQ", size, 48))
        sparse.truncate(48 + size)
    result = read_result(file)
    assert (result.dialect, result.maps.shape(0)) == ("older", (blocks, 4, 16))  # without reading it


def test_records_are_a_view_of_the_slots(file: Path) -> None:
    dtype = np.dtype([("start", "<u8"), ("elapsed", "<u4"), ("sm", "<u4")])
    records = np.zeros((6, 4, 2), dtype=dtype)
    records["sm"] = np.arange(48).reshape(6, 4, 2)
    file.write_bytes(result_bytes(GRID, BLOCK, [(32, records.view(np.uint8).reshape(6, 4, 32))]))
    result = read_result(file)
    np.testing.assert_array_equal(result.records(0, dtype), records)
    with pytest.raises(TraceError, match="32 bytes per slot, not a whole number of records of 12"):
        result.records(0, [("a", "<u4", 3)])
    with pytest.raises(TraceError, match="no map 1; maps in the file: 1"):
        result.records(1, dtype)


def header_and_sections(*numbers: int, sections: bytes = b"") -> bytes:
    return struct.pack("<8I", *numbers) + sections


BROKEN = {
    "empty": (b"", "0 bytes, but a header needs 32"),
    "header cut": (b"\1" * 31, "31 bytes, but a header needs 32"),
    "no blocks": (header_and_sections(0, 1, 1, 32, 1, 1, 0, 0), "offset 0: the grid would be 0×1×1"),
    "no threads": (header_and_sections(1, 1, 1, 32, 0, 1, 0, 0), "offset 12: the block would be 32×0×1"),
    "text": (b"[exec] succeed 0\n" * 9, "not a result file"),
    "many maps": (header_and_sections(1, 1, 1, 32, 1, 1, 0, 1 << 31), "offset 28: the file would have 2147483648 maps"),
    "huge grid": (header_and_sections(*[0xFFFFFFFF] * 6, 0, 1), "offset 0: the grid would be"),
    "table cut": (header_and_sections(1, 1, 1, 32, 1, 1, 0, 2) + b"\0" * 16, "offset 32: 2 maps need 64 bytes"),
    "cut": (
        result_bytes((2, 1, 1), (64, 1, 1), [(32, slots(2, 2, 16))])[:-1],
        "a map ends at byte 112, the file at 111",
    ),
    "in the header": (
        header_and_sections(1, 1, 1, 32, 1, 1, 0, 1, sections=struct.pack("<IIQ", 16, 32, 40)) + b"\0" * 64,
        "offset 40: the map at 40 overlaps the header",
    ),
    "overlap": (
        header_and_sections(1, 1, 1, 32, 1, 1, 0, 2, sections=struct.pack("<IIQIIQ", 16, 32, 64, 16, 32, 72))
        + b"\0" * 99,
        "offset 56: the map at 72 overlaps the map that ends at 80",
    ),
    "huge map": (
        header_and_sections(1 << 31, 1 << 20, 1, 32, 1, 1, 0, 1, sections=struct.pack("<IIQ", 1 << 31, 32, 48)) + b"\0",
        "the file is truncated",
    ),
    "odd divisor": (
        header_and_sections(1, 1, 1, 32, 1, 1, 0, 1, sections=struct.pack("<IIQ", 16, 7, 48)) + b"\0" * 64,
        "offset 36: 7 threads per slot instead of 1 or 32",
    ),
    "older, not divisible": (
        header_and_sections(3, 1, 1, 32, 1, 1, 0, 1, sections=struct.pack("<QQ", 16, 48)) + b"\0" * 64,
        "offset 32: 16 bytes cannot be divided evenly among 3 warp slots",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_name_the_file_and_the_offset(file: Path, name: str) -> None:
    content, message = BROKEN[name]
    file.write_bytes(content)
    with pytest.raises(TraceError) as error:
        read_result(file)
    assert str(error.value).startswith(str(file))
    assert message in str(error.value)


COUNTED = [(1, slots(6, 100, 32)), (1, slots(6, 100, 4)), (32, slots(6, 4, 16))]
MARKS = b"\xff\x0f\0"


def test_counts_and_marks_are_those_of_their_maps(file: Path) -> None:
    counts = np.arange(600, dtype="<u4").reshape(6, 100, 1)
    counts[5, 99] = 0xFFFFFFFF
    maps = [COUNTED[0], (1, counts.view(np.uint8)), COUNTED[2]]
    file.write_bytes(result_bytes(GRID, BLOCK, maps, about=[(2, 8, b""), (3, 4, b""), (1, 16, MARKS)]))
    result = read_result(file)
    attempts, kept, written = result.attempts(0), result.record_counts(0), result.written_mask(2)
    assert attempts is not None
    assert kept is not None
    assert written is not None
    assert (attempts[0, :6].tolist(), attempts[5, 99]) == ([0, 1, 2, 3, 4, 5], -1)
    assert (kept[0, :6].tolist(), kept[5, 99]) == ([0, 1, 2, 3, 4, 4], -1)
    assert result.totals(0) == (0 + 1 + 2 + 3 + 4 * 595, 598 * 599 // 2)
    assert (result.capacity(0), result.capacity(1), result.capacity(2)) == (4, None, 1)
    assert written.shape == (6, 4, 1)
    np.testing.assert_array_equal(written.ravel(), np.arange(24) < 12)
    assert (result.attempts(2), result.written_mask(1), result.totals(2)) == (None, None, None)


def test_a_file_that_does_not_tell(file: Path) -> None:
    file.write_bytes(result_bytes(GRID, BLOCK, [COUNTED[2]]))
    result = read_result(file)
    assert (result.attempts(0), result.record_counts(0), result.written_mask(0), result.capacity(0)) == (None,) * 4


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ([(2, 8, b""), (3, 4, b""), (1, 16, MARKS[:2])], "map 2: 2 bytes of marks are too few for 24 slots"),
        ([(2, 8, b""), (0, 4, b""), (1, 16, MARKS)], "map 0: the counts of the map are missing"),
        ([(0, 8, b""), (0, 4, b""), (2, 16, MARKS)], "map 2: the counts of the map are missing"),
        ([(0, 8, b""), (2, 4, b""), (3, 16, b"")], "map 1: the counts of the map are missing"),
        ([(0, 8, b""), (0, 4, b""), (3, 16, b"")], "map 2: a count has 16 bytes, not 4"),
        ([(0, 8, b""), (0, 4, b""), (1, 8, MARKS)], "map 2: a map with marks has 2 records per slot, not one"),
        ([(6, 8, b""), (3, 4, b""), (1, 16, MARKS)], "the description of the map has values that no map can have"),
        ([(4, 1 << 31, b""), (0, 4, b""), (0, 16, b"")], "the description of the map has values that no map can have"),
        ([(5, 8, b""), (0, 4, b""), (1, 16, MARKS)], "map 0: 32 bytes per slot, but a reduced map has no slots"),
        (
            [(4, 8, b""), (0, 4, b""), (1, 16, MARKS)],
            "map 0: the map of sites is invalid: 0 bytes, 8 per record, 32 per slot",
        ),
        ([(2, 12, b""), (3, 4, b""), (1, 16, MARKS)], "the description of the map has values that no map can have"),
        ([(2, 0, b""), (3, 4, b""), (1, 16, MARKS)], "the description of the map has values that no map can have"),
    ],
)
def test_impossible_maps(file: Path, about: list[tuple[int, int, bytes]], message: str) -> None:
    file.write_bytes(result_bytes(GRID, BLOCK, COUNTED, about=about))
    with pytest.raises(TraceError, match=message):
        read_result(file)


@given(st.integers(0, 67), st.binary(min_size=1, max_size=12), st.integers(0, 80))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damage_behind_the_maps_is_an_error_or_unknown(tmp_path: Path, at: int, damage: bytes, length: int) -> None:
    content = bytearray(result_bytes(GRID, BLOCK, COUNTED, about=[(2, 8, b""), (3, 4, b""), (1, 16, MARKS)]))
    begin = content.index(b"records\1")
    content[begin + at : begin + at + len(damage)] = damage
    file = tmp_path / "r.bin"
    file.write_bytes(content[: begin + length])
    try:
        result = read_result(file)
    except TraceError:
        return
    for index, view in enumerate(result.maps):
        attempts, written = result.attempts(index), result.written_mask(index)
        assert attempts is None or attempts.shape == view.shape[:2]
        assert written is None or written.shape[:2] == view.shape[:2]


def test_a_missing_file_is_a_trace_error(file: Path) -> None:
    with pytest.raises(TraceError, match=r"^(?!.*Errno).*: the file no longer exists; run again"):
        read_result(file)


def test_a_packed_file_is_named_with_what_unpacks_it(file: Path) -> None:
    file.with_name(f"{file.name}.xz").write_bytes(b"")
    with pytest.raises(
        TraceError, match=rf": the file is compressed as {file.name}.xz; unpack all results with xz -d .*/\*\.xz$"
    ):
        read_result(file)


def test_levels_must_agree(file: Path) -> None:
    file.write_bytes(result_bytes(GRID, BLOCK, [(32, slots(6, 4, 16))]))
    with pytest.raises(TraceError, match="1 maps instead of 2"):
        read_result(file, ["warp", "warp"])
    with pytest.raises(TraceError, match=r"the file has one slot per warp, but kernel\.info says one per thread"):
        read_result(file, ["thread"])


dims = st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 2))
blocks = st.tuples(st.integers(1, 70), st.integers(1, 3), st.integers(1, 2))
sizes = st.lists(st.tuples(st.sampled_from([1, 32]), st.sampled_from([0, 8, 16, 24])), max_size=3)


@given(dims, blocks, sizes)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_written_result_is_read(tmp_path: Path, grid: tuple[int, ...], block: tuple[int, ...], maps: list) -> None:
    threads, count = int(np.prod(block)), int(np.prod(grid))
    content = [(divisor, slots(count, -(-threads // divisor), size)) for divisor, size in maps]
    file = tmp_path / "r.bin"
    file.write_bytes(result_bytes(grid, block, content))  # type: ignore[arg-type]
    result = read_result(file, ["thread" if divisor == 1 else "warp" for divisor, _ in maps])
    assert len(result.maps) == len(maps)
    for read, (_, written) in zip(result.maps, content, strict=True):
        np.testing.assert_array_equal(read, written)


@given(st.integers(0, 150), st.binary(min_size=1, max_size=12), st.integers(0, 200))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_reads_or_is_a_trace_error(tmp_path: Path, at: int, damage: bytes, length: int) -> None:
    content = bytearray(result_bytes((2, 1, 1), (64, 1, 1), [(32, slots(2, 2, 16)), (1, slots(2, 64, 0))]))
    content[at : at + len(damage)] = damage
    file = tmp_path / "r.bin"
    file.write_bytes(content[:length])
    try:
        result = read_result(file)
    except TraceError:
        return
    for view, section in zip(result.maps, result.sections, strict=True):
        assert view.nbytes == section.size(result.header)
