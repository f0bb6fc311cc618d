"""Means of metrics over the launches that count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.importers.files import details, identity, real, write
from tui_probe.nsight.analysis.launch_means import averages, traffic
from tui_probe.nsight.analysis.launch_selection import IterationPlan, select_launches
from tui_probe.nsight.importers.ncu import read_ncu
from tui_probe.nsight.importers.ncu_table import NcuTable
from tui_probe.nsight.pages.memory_pages import traffic_page
from tui_probe.nsight.pages.ncu_pages import NcuReport, averages_page, kernels_page


@pytest.mark.parametrize("name", ["sdpa_flash", "t6_sdpa_flash"])
def test_the_last_five_calls_of_attention(tmp_path: Path, name: str) -> None:
    """The attention kernel is found among others; launches 6 to 10 are the measured ones."""
    table = read_ncu([real(tmp_path, f"ncu/{name}.csv")])
    flash_averages = list(averages(table, select_launches(table, IterationPlan(warm_up=3))))
    assert {average.outcome.shape.kernel.partition("<")[0] for average in flash_averages} == {
        "void pytorch_flash::flash_fwd_kernel"
    }
    assert {average.launches for average in flash_averages} == {5}
    for average in flash_averages:
        by_hand = table.column(average.metric.name, average.metric.section, average.metric.unit)[6:11]
        assert average.mean == pytest.approx(by_hand.mean())
        assert (average.minimum, average.maximum) == (by_hand.min(), by_hand.max())


def test_values_read_off_the_file(tmp_path: Path) -> None:
    table = read_ncu([real(tmp_path, "ncu/t6_sdpa_flash.csv")])
    by_metric = {
        average.metric.name: average for average in averages(table, select_launches(table, IterationPlan(3, 5)))
    }
    assert by_metric["dram__bytes.sum"].mean == 6_357_401.6
    assert by_metric["lts__t_bytes.sum"].mean == 30_250_553.6
    assert by_metric["l1tex__t_bytes.sum"].mean == 55_705_600


def test_unmeasured_metric_has_no_mean(tmp_path: Path) -> None:
    table = read_ncu([real(tmp_path, "ncu/sdpa_flash.csv")])
    lacking = "Local Memory Spilling Request Overhead"
    assert np.isnan(table.column(lacking)).any()
    measured_launches = {
        launch
        for loop in select_launches(table, IterationPlan(warm_up=3)).loops
        for launch in loop.measured_launches.tolist()
    }
    measured = [
        value
        for launch, value in enumerate(table.column(lacking))
        if launch in measured_launches and not np.isnan(value)
    ]
    means = [
        average
        for average in averages(table, select_launches(table, IterationPlan(warm_up=3)))
        if average.metric.name == lacking
    ]
    assert [average.launches for average in means] == ([len(measured)] if measured else [])


def once(folder: Path, *, section: bool = True) -> NcuTable:
    """Two kernels, each launched once."""
    key = ("Command line profiler metrics", "dram__bytes.sum", "Mbyte")
    text = details([(identity(0, "first"), {key: "2.00"}), (identity(1, "second"), {key: "4.00"})])
    if not section:
        text = text.replace('"Section Name",', "").replace('"Command line profiler metrics",', "")
    return read_ncu([write(folder, text)])


@pytest.mark.parametrize("plan", [IterationPlan(), IterationPlan(warm_up=3), IterationPlan(warm_up=3, runs=5)])
def test_averages_and_traffic_of_single_launches(tmp_path: Path, plan: IterationPlan) -> None:
    table = once(tmp_path)
    choice = select_launches(table, plan)
    assert [(average.outcome.shape.kernel, average.launches, average.mean) for average in averages(table, choice)] == [
        ("first", 1, 2e6),
        ("second", 1, 4e6),
    ]
    (row,) = traffic(table, choice)
    assert (row.loop.is_whole_process, row.launches, row.bytes["dram"], row.kernels) == (
        True,
        2,
        6e6,
        ["first", "second"],
    )
    report = NcuReport(table, plan)
    for page in (kernels_page(report), averages_page(report)):
        assert "process 7: 2 launches, no warm-up removed" in page.texts.findings[0]
    assert "2 launches, no warm-up removed" in traffic_page(report).texts.findings[0]


def test_details_without_sections_are_details(tmp_path: Path) -> None:
    table = once(tmp_path, section=False)
    assert [tuple(metric) for metric in table.metrics] == [("", "dram__bytes.sum", "byte")]
    assert table.column("dram__bytes.sum").tolist() == [2e6, 4e6]


def test_launches_of_all_kinds_count_where_nothing_repeats(tmp_path: Path) -> None:
    table = read_ncu([real(tmp_path, "h200/ncu/stores.csv")])
    choice = select_launches(table, IterationPlan())
    assert {average.launches for average in averages(table, choice)} == {
        len(outcome.launches) for outcome in choice.outcomes
    }
