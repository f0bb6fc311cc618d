"""The recorded files of Nsight Compute; the numbers here were read off the files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.importers.files import real
from tui_probe.nsight.importers.ncu import read_ncu
from tui_probe.nsight.importers.ncu_table import Metric

STORED = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"


@pytest.mark.parametrize(
    ("name", "launches", "metrics", "values"),
    [
        ("sdpa_flash", 14, 12, 14 * 12),
        ("t6_sdpa_flash", 14, 15, 14 * 15),
        ("vec_full", 13, 87, 13 * 87),
        ("vec_metrics", 13, 5, 13 * 5),
        ("vec_raw", 13, 2227, 13 * 2227),
    ],
)
def test_every_value_of_every_launch_is_there(
    tmp_path: Path, name: str, launches: int, metrics: int, values: int
) -> None:
    table = read_ncu([real(tmp_path, f"ncu/{name}.csv")])
    assert (len(table.launches), len(table.metrics), len(table)) == (launches, metrics, values)
    assert [launch.number for launch in table.launches] == list(range(launches))


def test_the_metrics_page(tmp_path: Path) -> None:
    table = read_ncu([real(tmp_path, "ncu/vec_metrics.csv")])
    coalesced, strided, saxpy = table.launches[:3]
    assert (coalesced.kernel, coalesced.grid, coalesced.block) == ("coalesced(int *, int)", (32, 1, 1), (256, 1, 1))
    assert (strided.process, strided.process_name, strided.stream) == (460, "vec2", "7")
    assert saxpy.grid == (64, 1, 1)
    assert table.column(STORED)[:3].tolist() == [1024, 2048, 2048]
    assert table.column("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum")[:3].tolist() == [256, 256, 512]


def test_the_details_page_tells_sections_apart(tmp_path: Path) -> None:
    table = read_ncu([real(tmp_path, "ncu/vec_full.csv")])
    assert table.column("Memory Throughput", "GPU Speed Of Light Throughput")[0] == 13.88
    assert table.column("Memory Throughput", "Memory Workload Analysis")[0] == 1_205_479_452.05
    assert table.column("Duration")[0] == 2336
    assert Metric("Launch Statistics", "Registers Per Thread", "register/thread") in table.metrics


def test_words_are_kept_as_words(tmp_path: Path) -> None:
    table = read_ncu([real(tmp_path, "ncu/vec_full.csv")])
    (position,) = table.positions("Function Cache Configuration")
    rows = np.flatnonzero(table.metric == position)
    assert {table.text(row) for row in rows} == {"CachePreferNone"}
    assert np.isnan(table.value[rows]).all()


def test_the_raw_page_takes_its_units_from_its_second_row(tmp_path: Path) -> None:
    table = read_ncu([real(tmp_path, "ncu/vec_raw.csv")])
    assert table.column(STORED).tolist() == [1024, 2048, 2048] * 3 + [2048] * 4
    assert Metric("raw", STORED, "sector") in table.metrics
    assert Metric("raw", "dram__bytes_read.sum.per_second", "byte/s") in table.metrics


def test_no_data_is_not_a_zero(tmp_path: Path) -> None:
    table = read_ncu([real(tmp_path, "ncu/sdpa_flash.csv")])
    overhead = table.column("Local Memory Spilling Request Overhead")
    assert np.isnan(overhead).any()
    assert table.column("Local Memory Spilling Requests").tolist() == [0] * 3 + [128512] * 8 + [0] * 3


def test_several_files_are_one_table(tmp_path: Path) -> None:
    paths = [real(tmp_path, f"ncu/{name}.csv") for name in ("sdpa_flash", "t6_sdpa_flash", "vec_metrics")]
    table = read_ncu(paths)
    assert [Path(file.name).name for file in table.files] == [path.name for path in paths]
    assert [len(session) for session in table.sessions()] == [14, 14, 13]
    assert {table.launches[i].file for i in list(table.sessions())[2]} == {2}
    assert table.column(STORED)[28:31].tolist() == [1024, 2048, 2048]
    assert np.isnan(table.column(STORED)[:28]).all()
    assert table.column("Memory Throughput", unit="byte/s")[[0, 14]].tolist() == [1_592_233_009.71, 1_607_843_137.25]
