"""Launches that count, and the traffic of an iteration; numbers of recorded files were added up by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.importers.files import details, identity, real, write
from tui_probe.nsight.analysis.launch_means import LEVELS, ratios, traffic
from tui_probe.nsight.analysis.launch_selection import IterationPlan, select_launches
from tui_probe.nsight.importers.ncu import read_ncu
from tui_probe.nsight.importers.ncu_table import NcuTable

DRAM = ("Command line profiler metrics", "dram__bytes.sum", "byte")
FLASH = "flash_fwd_kernel"


def table_of(folder: Path, names: str, values: list[int] | None = None, process: int = 7) -> NcuTable:
    """A program that launches these kernels, a letter each, with bytes 1, 10, 100… or the given ones."""
    values = values or [10**number for number in range(len(names))]
    launches = (
        (identity(number, name, process=process), {DRAM: str(value)})
        for number, (name, value) in enumerate(zip(names, values, strict=True))
    )
    return read_ncu([write(folder, details(launches))])


@pytest.mark.parametrize("name", ["sdpa_flash", "t6_sdpa_flash"])
@pytest.mark.parametrize(
    "plan", [IterationPlan(warm_up=3), IterationPlan(runs=5), IterationPlan(3, 5)], ids=["warm-up", "runs", "both"]
)
def test_the_attention_kernel_among_others(tmp_path: Path, name: str, plan: IterationPlan) -> None:
    choice = select_launches(read_ncu([real(tmp_path, f"ncu/{name}.csv")]), plan)
    (loop,) = choice.loops
    assert (loop.times, loop.warm_up, loop.runs) == (8, 3, 5)
    assert loop.measured_launches.tolist() == [6, 7, 8, 9, 10]
    kept_shapes = [outcome for outcome in choice.outcomes if outcome.kept_launches]
    assert [FLASH in outcome.shape.kernel for outcome in kept_shapes] == [True]
    assert [(len(outcome.launches), outcome.kept_launches) for outcome in choice.outcomes] == [
        (3, 0),
        (8, 5),
        (1, 0),
        (1, 0),
        (1, 0),
    ]
    assert all(outcome.reason for outcome in choice.outcomes)


def test_eight_calls_are_found_without_options(tmp_path: Path) -> None:
    choice = select_launches(read_ncu([real(tmp_path, "ncu/sdpa_flash.csv")]), IterationPlan())
    (loop,) = choice.loops
    assert (loop.times, loop.warm_up, loop.is_detected) == (8, 0, True)
    assert loop.launches.tolist() == list(range(3, 11))
    assert any("--warmup" in note for note in choice.notes)


def test_averages_over_the_last_five(tmp_path: Path) -> None:
    table = read_ncu([real(tmp_path, "ncu/t6_sdpa_flash.csv")])
    (row,) = traffic(table, select_launches(table, IterationPlan(warm_up=3)))
    assert row.bytes == {"dram": 6_357_401.6, "l2": 30_250_553.6, "l1": 55_705_600}
    assert set(row.provenance.values()) == {"collected"}
    assert row.time is None
    by_hand = table.column("dram__bytes.sum")[[6, 7, 8, 9, 10]].mean()
    assert row.bytes["dram"] == by_hand


def test_a_details_page_without_totals_or_duration_has_no_bytes(tmp_path: Path) -> None:
    table = read_ncu([real(tmp_path, "ncu/sdpa_flash.csv")])
    (row,) = traffic(table, select_launches(table, IterationPlan(warm_up=3)))
    assert row.bytes == dict.fromkeys(LEVELS)


def test_derived_bytes_are_throughput_times_duration(tmp_path: Path) -> None:
    table = read_ncu([real(tmp_path, "ncu/vec_full.csv")])
    (row,) = traffic(table, select_launches(table, IterationPlan()))
    assert (row.loop.times, row.launches) == (3, 3)
    rate, time = table.column("Memory Throughput", "Memory Workload Analysis"), table.column("Duration")
    assert row.bytes["dram"] == np.rint(rate * time / 1e9)[:9].sum() / 3
    assert row.provenance == {"dram": "derived", "l2": None, "l1": None}


def test_the_raw_page_gives_totals_from_sectors(tmp_path: Path) -> None:
    table = read_ncu([real(tmp_path, "ncu/vec_raw.csv")])
    (row,) = traffic(table, select_launches(table, IterationPlan()))
    reads, writes = table.column("dram__bytes_read.sum"), table.column("dram__bytes_write.sum")
    assert row.bytes["dram"] == (reads + writes)[:9].sum() / 3
    assert row.bytes["l2"] == table.column("lts__t_sectors.sum")[:9].sum() * 32 / 3
    assert row.provenance["l2"] == "collected"


def test_four_programs_of_attention(tmp_path: Path) -> None:
    names = ("efficient", "flash", "math", "triton")
    table = read_ncu([real(tmp_path, f"h200/ncu/attention_{name}.csv") for name in names])
    rows = traffic(table, select_launches(table, IterationPlan(warm_up=3)))
    assert [row.loop.times for row in rows] == [8] * 4
    assert [row.launches for row in rows] == [1, 1, 14, 1]
    dram = ratios(rows, "dram")
    assert dram[3] == 1
    assert dram[2] == pytest.approx(188.77, abs=0.01)


def test_iterations_of_several_kernels_are_added_up(tmp_path: Path) -> None:
    table = table_of(tmp_path, "sABBABBABBe", [5, 1, 2, 3, 10, 20, 30, 100, 200, 300, 7])
    (row,) = traffic(table, select_launches(table, IterationPlan(warm_up=1)))
    assert row.bytes["dram"] == (60 + 600) / 2
    assert row.launches == 3
    assert row.kernels == ["A", "B"]


def test_given_times_take_multiples(tmp_path: Path) -> None:
    choice = select_launches(table_of(tmp_path, "AAAAAAx", [1] * 7), IterationPlan(1, 2))
    (loop,) = choice.loops
    assert loop.iteration.tolist() == [0, 0, 1, 1, 2, 2]
    assert loop.measured_launches.tolist() == [2, 3, 4, 5]


def test_kernels_that_do_not_repeat_in_order_are_counted(tmp_path: Path) -> None:
    choice = select_launches(table_of(tmp_path, "ABBAxBAy", [1] * 8), IterationPlan(1, 2))
    (loop,) = choice.loops
    assert loop.launches.tolist() == [0, 1, 2, 3, 5, 6]
    assert loop.iteration.tolist() == [0, 0, 1, 1, 2, 2]
    assert [outcome.kept_launches for outcome in choice.outcomes] == [2, 2, 0, 0]


def test_one_name_covers_several_configurations(tmp_path: Path) -> None:
    launches = [(identity(number, "f", grid=f"({4 if number < 3 else 8}, 1, 1)"), {DRAM: "1"}) for number in range(6)]
    choice = select_launches(read_ncu([write(tmp_path, details(launches))]), IterationPlan(1, 2))
    assert [(loop.part, loop.launches.tolist()) for loop in choice.loops] == [(0, [0, 1, 2]), (1, [3, 4, 5])]


def test_expected_kernel_that_never_ran_is_reported(tmp_path: Path) -> None:
    choice = select_launches(table_of(tmp_path, "AAAx"), IterationPlan(expected_names=("A", "middle_rows")))
    assert choice.missing_names == ["middle_rows"]


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (IterationPlan(4, None), "repeats only 3 times, too few for 4 warm-up iterations"),
        (IterationPlan(None, 9), "too few for 9 runs"),
        (IterationPlan(3, 5), "no kernel was launched 8 times, or a multiple of this; launch counts: 1, 3"),
    ],
)
def test_a_plan_that_does_not_fit(tmp_path: Path, plan: IterationPlan, said: str) -> None:
    choice = select_launches(table_of(tmp_path, "AAAx"), plan)
    assert choice.loops == []
    assert any(said in note for note in choice.notes)


def test_nothing_repeats(tmp_path: Path) -> None:
    choice = select_launches(table_of(tmp_path, "ABCD"), IterationPlan())
    assert choice.loops == []
    assert "every kernel was launched once" in choice.notes[0]


def test_processes_are_apart(tmp_path: Path) -> None:
    launches = [(identity(number, "A", process=number % 2), {DRAM: str(number)}) for number in range(8)]
    table = read_ncu([write(tmp_path, details(launches))])
    rows = traffic(table, select_launches(table, IterationPlan(warm_up=1)))
    assert [row.loop.process for row in rows] == [0, 1]
    assert [row.bytes["dram"] for row in rows] == [(2 + 4 + 6) / 3, (3 + 5 + 7) / 3]
