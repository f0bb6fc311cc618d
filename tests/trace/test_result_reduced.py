"""Result files of reduced maps, whole and damaged."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.reduced_maps import GROUPS, REDUCED, reduced_bytes
from tests.trace.make import result_bytes
from tui_probe.errors import TraceError
from tui_probe.probe_model.probe import Field, ReducedField, Reduction
from tui_probe.probekit.record_counts import record_counts_text
from tui_probe.trace.results import read_result

if TYPE_CHECKING:
    from pathlib import Path

GRID, BLOCK = (3, 2, 1), (70, 1, 1)
SAVED = np.arange(6 * 70).reshape(6, 70) % 7 != 3
SAVED[4] = False
VALUES = np.arange(6 * 70, dtype="<u4").reshape(6, 70, 1)
RECORD = np.dtype([("total", "<u8"), ("unit", "<u4"), ("rest", "<u4")])


def reduction(group: Any) -> Reduction:
    """The sum of the values, and the first of them."""
    source = Field("value", "u32", 0)
    total, unit = Field("total", "u64", 0), Field("unit", "u32", 8)
    return Reduction(group, (ReducedField(total, "sum", source), ReducedField(unit, "same", source)), 16)


def reduced_file(path: Path, group: str, marks: bytes | None = None, record: int = 16) -> Path:
    left = reduced_bytes(reduction(group), VALUES.view(np.uint8), SAVED) if marks is None else marks
    nothing = np.zeros((6, 70, 0), np.uint8)
    path.write_bytes(result_bytes(GRID, BLOCK, [(1, nothing)], about=[(REDUCED, record, left)]))
    return path


@pytest.mark.parametrize(("group", "shape"), [("warp", (6, 3)), ("block", (6, 1)), ("launch", (1, 1))])
def test_reduced_content_of_a_map(tmp_path: Path, group: str, shape: tuple[int, int]) -> None:
    result = read_result(reduced_file(tmp_path / "1.bin", group))
    left = result.reduced(0, RECORD)
    assert left is not None
    assert (result.group(0), left.group, left.records.shape) == (group, group, shape)
    saved_values = np.where(SAVED, VALUES[:, :, 0], 0)
    assert int(left.records["total"].sum()) == int(saved_values.sum())
    assert left.saved.tolist() == ([[True]] if group == "launch" else [[block != 4] * shape[1] for block in range(6)])
    assert left.mixed.tolist() == left.saved.tolist()
    several = SAVED if group == "launch" else SAVED[[0, 1, 2, 3, 5]]
    assert left.missing_slots == int((~several).sum())
    assert (result.attempts(0), result.written_mask(0), result.capacity(0)) == (None, None, None)


def test_records_that_were_not_kept_are_asked_for_in_vain(tmp_path: Path) -> None:
    """No page takes the empty slots for records."""
    result = read_result(reduced_file(tmp_path / "1.bin", "block"))
    with pytest.raises(
        TraceError, match="the file has one record per block; to save records per thread, run with --detail"
    ):
        result.records(0, "<u4")
    with pytest.raises(TraceError, match="reduced to records of 16 bytes, not 8; another probe wrote the file"):
        result.reduced(0, "<u8")
    assert record_counts_text(result) == "kept one record per block; no record for 1 of 6 blocks"
    assert (
        record_counts_text(read_result(reduced_file(tmp_path / "2.bin", "launch"))) == "kept one record for the launch"
    )


def test_a_map_that_is_not_reduced(tmp_path: Path) -> None:
    path = tmp_path / "1.bin"
    path.write_bytes(result_bytes(GRID, BLOCK, [(1, VALUES.view(np.uint8))]))
    result = read_result(path)
    assert (result.group(0), result.reduced(0, RECORD)) == (None, None)


@pytest.mark.parametrize(
    ("marks", "record", "message"),
    [
        (b"", 16, r"damaged header \(0 bytes"),
        (struct.pack("<II", 4, 0) + bytes(99), 16, r"damaged header \(107 bytes"),
        (
            struct.pack("<II", GROUPS["block"], 0) + bytes(105),
            16,
            r"has 113 bytes, but needs 6 records \(one per block\) of 16 bytes",
        ),
        (
            struct.pack("<II", GROUPS["launch"], 0) + bytes(26),
            24,
            r"has 34 bytes, but needs 1 records \(one per launch\) of 24 bytes",
        ),
    ],
)
def test_impossible_reduced_content(tmp_path: Path, marks: bytes, record: int, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read_result(reduced_file(tmp_path / "1.bin", "block", marks, record))


@given(st.integers(0, 200), st.binary(min_size=1, max_size=12))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damage_is_a_trace_error_or_other_values(tmp_path: Path, at: int, damage: bytes) -> None:
    path = reduced_file(tmp_path / "1.bin", "block")
    content = bytearray(path.read_bytes())
    content[48 + at : 48 + at + len(damage)] = damage
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.bin"
    path.write_bytes(bytes(content))
    try:
        result = read_result(path)
        left = result.reduced(0, RECORD)
    except TraceError:
        return
    assert left is None or left.records.shape in ((6, 1), (1, 1), (6, 3))
