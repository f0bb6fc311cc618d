"""Result files of a sample of the blocks, whole and damaged."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trace.make import result_bytes
from tui_probe.errors import TraceError
from tui_probe.trace.results import read_result

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.launch_shape import Dim3

BLOCK = (40, 1, 1)
ANY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def sampled_bytes(grid: Dim3, first: int, step: int, count: int, *, measured: int | None = None) -> bytes:
    """A file with the number of its block in each warp's slot."""
    blocks = np.arange(first, first + step * count, step, dtype="<u8")[: measured or count]
    slots = np.repeat(blocks, 2).reshape(len(blocks), 2, 1).view(np.uint8)
    marks = bytes([0xFF] * -(-len(blocks) // 4))
    data = result_bytes((len(blocks), 1, 1), BLOCK, [(32, slots)], about=[(1, 8, marks)])
    return data + bytes(-len(data) % 8) + b"sampled\1" + struct.pack("<6I", *grid, first, step, count)


@ANY
@given(st.tuples(*[st.integers(1, 9)] * 3), st.integers(0, 300), st.integers(1, 99), st.integers(1, 50))
def test_written_sample_is_read(tmp_path: Path, grid: Dim3, first: int, step: int, most: int) -> None:
    blocks = range(*slice(first, None, step).indices(grid[0] * grid[1] * grid[2]))[:most]
    if not len(blocks):
        return
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.bin"
    path.write_bytes(sampled_bytes(grid, first, step, len(blocks)))
    result = read_result(path)
    assert (result.header.grid, result.header.blocks) == (grid, grid[0] * grid[1] * grid[2])
    assert list(result.blocks) == list(blocks)
    assert result.threads == len(blocks) * 40
    assert result.records(0, "<u8")[:, :, 0].tolist() == [[block] * 2 for block in blocks]
    written = result.written_mask(0)
    assert written is not None
    assert written.shape == (len(blocks), 2, 1)
    assert written.all()


def test_a_file_of_all_blocks(tmp_path: Path) -> None:
    path = tmp_path / "1.bin"
    slots = np.zeros((6, 2, 8), np.uint8)
    path.write_bytes(result_bytes((3, 2, 1), BLOCK, [(32, slots)]))
    result = read_result(path)
    assert (result.sample, result.blocks, result.threads) == (None, range(6), 240)


@pytest.mark.parametrize(
    ("numbers", "measured"),
    [((0, 4, 5), 4), ((0, 0, 4), 4), ((1, 5, 4), 4), ((16, 1, 1), 1), ((0, 4, 0), 4)],
    ids=["more than there are", "no step", "beyond the grid", "behind its end", "none"],
)
def test_impossible_samples(tmp_path: Path, numbers: tuple[int, int, int], measured: int) -> None:
    path = tmp_path / "1.bin"
    content = sampled_bytes((16, 1, 1), 0, 4, measured)
    path.write_bytes(content[:-12] + struct.pack("<3I", *numbers))
    with pytest.raises(TraceError, match=r"1\.bin, offset \d+: not a result file: the sample .* does not fit the grid"):
        read_result(path)


def test_one_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "1.bin"
    path.write_bytes(sampled_bytes((16, 1, 1), 0, 4, 4)[:-1])
    with pytest.raises(TraceError, match="block sample is truncated"):
        read_result(path)
