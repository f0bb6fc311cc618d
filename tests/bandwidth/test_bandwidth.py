"""Bandwidth: the kernels move what they claim, the sweep finds the best, errors say what to do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tui_probe.bandwidth.measure import CHUNK_BYTES, DeviceProperties, bus_bandwidth, measure_disk
from tui_probe.bandwidth.rates import Bandwidth, Rate
from tui_probe.cli.bandwidth import lines
from tui_probe.cli.main import main
from tui_probe.errors import BandwidthError

CARD = DeviceProperties("Test card", 132, 50 << 20, 141 << 30, 3_201_000, 6144, bus_bandwidth(3_201_000, 6144), 232_448)
RATES = [
    Rate.from_times("memory_read", "memory, read", 4 << 30, (1.0e-3, 1.1e-3, 0.9e-3), CARD.memory_bandwidth),
    Rate.from_times("l2_read", "L2, read", 1 << 30, (2e-4, 2e-4, 2e-4)),
]
SWEEP = [
    Rate("to_shared", "memory to shared memory", blocks * flight * 1e5, blocks=blocks, in_flight=flight)
    for blocks in (1, 132)
    for flight in (4096, 32768)
]


def test_every_kernel_runs_and_fills_the_buffer(natives: Path) -> None:
    """Writing puts the number 1 into every word; what a copy moves, and what is read, leaves it so."""
    library = natives / "sim" / "libcuda.so.1"
    script = Path(__file__).parent / "on_simulator.py"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, script, library], capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    figures = json.loads(ended.stdout.splitlines()[0])
    room = 1 << 19
    assert figures["sum"] == room // 4
    assert figures["moved"]["memory_read"] == figures["moved"]["memory_copy"] == room
    assert set(figures["moved"]) >= {"memory_write", "driver_copy", "to_shared", "host_to_device_pageable"}


def test_the_specification_is_clock_times_width() -> None:
    assert CARD.memory_bandwidth == pytest.approx(4.917e12, rel=1e-3)
    assert bus_bandwidth(0, 6144) is None


def test_json_has_null_where_nothing_was_specified() -> None:
    record = json.loads("\n".join(lines(Bandwidth(CARD, RATES), "json", 100)))
    memory, cache = record["bandwidth"]
    assert memory["bytes_per_second"] == pytest.approx((4 << 30) / 1e-3)
    assert memory["share_of_specification"] == pytest.approx((4 << 30) / 1e-3 / CARD.memory_bandwidth)
    assert cache["share_of_specification"] is None
    assert cache["blocks"] is None


def test_the_sweep_names_the_best() -> None:
    text = "\n".join(lines(Bandwidth(CARD, [*RATES, SWEEP[-1]], SWEEP), "table", 100))
    assert "with 132 blocks × 32.8 kB in flight" in text
    rows = [line for line in text.splitlines() if line.lstrip().startswith(("1 ", "132 "))]
    assert rows[1].rstrip().endswith("█" * 20)


def test_page_explains_itself() -> None:
    text = " ".join(lines(Bandwidth(CARD, [*RATES, SWEEP[-1]], SWEEP), "table", 100, explained=True))
    for question in ("Do caches distort a bandwidth test?", "What do blocks share?", "cost of contention"):
        assert question in text


def test_disk_writes_and_reads_and_leaves_nothing(tmp_path: Path) -> None:
    written, read = measure_disk(tmp_path, 2 * CHUNK_BYTES, 1)
    assert (written.size, read.size) == (2 * CHUNK_BYTES, 2 * CHUNK_BYTES)
    assert read.bytes_per_second > 0
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(BandwidthError, match="--disk"):
        list(measure_disk(tmp_path / "none", CHUNK_BYTES, 1))


def test_only_the_disk_needs_no_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["bandwidth", "--only", "disk", "--disk", str(tmp_path), "--disk-bytes", "8M", "--repeats", "1"]
    assert main([*options, "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["device"] is None
    assert [rate["key"] for rate in record["bandwidth"]] == ["disk_write", "disk_read"]


def test_the_simulated_driver_is_refused(natives: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bandwidth", "--driver", str(natives / "sim" / "libcuda.so.1")]) == 3
    assert "simulated" in capsys.readouterr().err
