"""Rows in which two lanes may have saved for their warp: the hook writes the records of all lanes."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tui_probe.probe_model.storage import EVEN_MARK

from .conftest import Build
from .object_files import compile_with_hook

HERE = Path(__file__).resolve().parent
RECORD = np.dtype([("address", "<u8"), ("clock", "<u4"), ("line", "<u4")])
LANES = np.arange(32)
BLOCKS, THREADS, CAP = 3, 77, 40
WARPS = -(-THREADS // 32)
STRIDES = (0, 4, -4, 1 << 20, -(1 << 31))


@pytest.fixture(scope="module")
def program(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows"
    flags = ["-g1", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    compile_with_hook(built, HERE / "even_rows_program.c", path, *flags)
    return path


@pytest.mark.parametrize("window", [1 << 20, 4096], ids=["rows", "large-rows"])
def test_records_of_all_lanes_come_from_two(program: Path, window: int) -> None:
    generator = np.random.default_rng(window)
    shape = (BLOCKS, WARPS, CAP, 32)
    records = np.zeros(shape, RECORD)
    records["address"] = generator.integers(0, 1 << 49, shape)
    records["clock"] = generator.integers(0, 1 << 32, shape)
    records["line"] = generator.integers(1, 1 << 20, shape)
    counts_of_lanes = generator.integers(0, CAP + 1, (BLOCKS, WARPS, 32))
    stored = records.copy()
    for block, warp, row in np.ndindex(BLOCKS, WARPS, CAP):
        if generator.random() < 0.5 and (row < counts_of_lanes[block, warp]).all():
            even = records[block, warp, row]
            even["address"] = (1 << 40) + generator.choice(STRIDES) * LANES
            even[1:]["clock"], even[1:]["line"] = even[0]["clock"], even[0]["line"]
            stored[block, warp, row, :2] = even[:2]
            stored[block, warp, row, :2]["line"] |= EVEN_MARK
            stored[block, warp, row, 2:] = 0
    stored[np.arange(CAP)[:, np.newaxis] >= counts_of_lanes[:, :, np.newaxis]] = 0
    counts = np.zeros((BLOCKS, WARPS, 1, 32), RECORD)
    counts.view("<u4").reshape(BLOCKS, WARPS, 128)[..., :32] = counts_of_lanes + 1
    device = np.concatenate([counts, stored], axis=2).tobytes()
    request = struct.pack("<5I", BLOCKS, THREADS, CAP, window, len(device)) + device
    run = subprocess.run([program], input=request, capture_output=True, check=False)
    assert run.returncode == 0, run.stderr.decode()
    converted = np.frombuffer(run.stdout, RECORD).reshape(BLOCKS, THREADS, CAP)
    records[np.arange(CAP)[:, np.newaxis] >= counts_of_lanes[:, :, np.newaxis]] = 0
    expected = records.transpose(0, 1, 3, 2).reshape(BLOCKS, WARPS * 32, CAP)[:, :THREADS]
    assert (stored["line"] & EVEN_MARK).any()
    np.testing.assert_array_equal(converted, expected)
