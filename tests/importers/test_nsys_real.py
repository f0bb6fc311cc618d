"""The recorded export of Nsight Systems, against plain SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.importers.files import real
from tui_probe.nsight.analysis.projection import innermost_ranges, project
from tui_probe.nsight.analysis.stream_times import gaps
from tui_probe.nsight.importers.nsys import read_nsys
from tui_probe.nsight.importers.nsys_model import NsysReport

KERNELS = """
    SELECT k.start, k.end, k.deviceId, k.streamId, s.value, m.value, k.gridX, k.gridY, k.gridZ, k.blockX, k.blockY,
           k.blockZ, k.registersPerThread, k.staticSharedMemory + k.dynamicSharedMemory, r.globalTid, r.start, r.end
    FROM CUPTI_ACTIVITY_KIND_KERNEL k
    JOIN StringIds s ON s.id = k.demangledName
    JOIN StringIds m ON m.id = k.mangledName
    JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
      ON r.correlationId = k.correlationId AND r.globalTid / 0x1000000 = k.globalPid / 0x1000000
    ORDER BY k.start
"""
RANGES = """
    SELECT coalesce(n.text, s.value), k.deviceId, k.streamId, min(k.start), max(k.end), count(*), sum(k.end - k.start),
           n.start, n.end
    FROM NVTX_EVENTS n
    LEFT JOIN StringIds s ON s.id = n.textId
    JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.globalTid = n.globalTid AND r.start >= n.start AND r.end <= n.end
    JOIN CUPTI_ACTIVITY_KIND_KERNEL k
      ON k.correlationId = r.correlationId AND k.globalPid / 0x1000000 = r.globalTid / 0x1000000
    WHERE n.eventType IN (59, 60)
    GROUP BY n.rowid, k.deviceId, k.streamId
"""
GAPS = """
    SELECT before, start - before FROM (
        SELECT start, max(end) OVER (
            PARTITION BY deviceId, streamId ORDER BY start ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
        FROM CUPTI_ACTIVITY_KIND_KERNEL)
    WHERE start > before ORDER BY start - before DESC, before
"""


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return real(tmp_path_factory.mktemp("nsys"), "nsys/sample.sqlite")


@pytest.fixture(scope="module")
def report(export: Path) -> NsysReport:
    return read_nsys([export])


@pytest.fixture
def sql(export: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(export)
    yield connection
    connection.close()


def test_every_kernel(report: NsysReport, sql: sqlite3.Connection) -> None:
    kernels = report.kernels
    columns = (
        kernels.start, kernels.end, kernels.device, kernels.stream, np.array(kernels.names)[kernels.name],
        np.array(kernels.names)[kernels.mangled], *kernels.shape.T, kernels.registers, kernels.shared, kernels.thread,
        kernels.launch_start, kernels.launch_end,
    )  # fmt: skip
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == sql.execute(KERNELS).fetchall()
    assert len(kernels) == 3689


def test_every_projected_range(report: NsysReport, sql: sqlite3.Connection) -> None:
    assert report.ranges is not None
    ours = [
        (row.name, row.stream and row.stream.device, row.stream and row.stream.number, row.start, row.end,
         row.kernels, row.busy, row.host_start, row.host_end)
        for row in project(report.kernels, report.ranges)
    ]  # fmt: skip
    assert sorted(ours) == sorted(sql.execute(RANGES).fetchall())
    assert len(ours) == 698


def test_ranges_are_nested(report: NsysReport) -> None:
    assert report.ranges is not None
    projected = [*project(report.kernels, report.ranges)]
    assert [(row.level, row.name) for row in projected[:5]] == [
        (0, "Setup"),
        (0, "Loop"),
        (1, "Step 0 to 10"),
        (2, "Compute & Residual 0"),
        (3, "cub::DeviceReduce::Sum"),
    ]
    for inner in projected:
        around = [
            other
            for other in projected
            if other.host_start <= inner.host_start and inner.host_end <= other.host_end and other is not inner
        ]
        assert len(around) == inner.level


def test_the_innermost_range_of_a_kernel(report: NsysReport) -> None:
    assert report.ranges is not None
    names = [
        report.ranges.names[report.ranges.name[row]] for row in innermost_ranges(report.kernels, report.ranges)[:6]
    ]
    assert names == ["Setup", *["Compute & Residual 0"] * 3, *["cub::DeviceReduce::Sum"] * 2]


def test_every_gap(report: NsysReport, sql: sqlite3.Connection) -> None:
    every = gaps(report.kernels, report.copies)
    assert [(gap.start, gap.length) for gap in every] == sql.execute(GAPS).fetchall()


def test_the_device(report: NsysReport) -> None:
    assert [(device.name, device.sms) for device in report.devices.values()] == [("Tesla T4", 40)]
    assert report.notes == tuple(
        f"nsys reports: Not all {events} events might have been collected." for events in ("NVTX", "CUDA")
    )
