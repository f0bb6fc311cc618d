"""Numbers of whole launches and of samples of their blocks are never taken together."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tui_probe
from tests.probes.test_report import BLOCK, Writer
from tests.trace.make import result_bytes
from tui_probe.draw.view import no_progress
from tui_probe.pages.page_registry import report_lines
from tui_probe.probekit.measured import analyse_results, comparable_results, results_by_extent
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.result_tables import CountTable, result_lines
from tui_probe.probes.gmem_sectors.analysis import RECORD
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.finding_summary import summarize_findings
from tui_probe.verdicts.kernel_values import probe_values

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.model import Trace

GRID = 64
EACH = {"load_requests": 2, "load_sectors": 64}
"""Counts of each warp; there are two in a block."""


class Sampling(Writer):
    """Launches of 64 blocks; all or some of them were measured."""

    def measured(self, kernel: int, blocks: int) -> None:
        records = np.zeros((blocks, 2, 1), RECORD)
        for name, value in EACH.items():
            records[name] = value
        records["threads"] = np.array([32, 8])[np.newaxis, :, np.newaxis]
        slots = np.ascontiguousarray(records).view(np.uint8).reshape(blocks, 2, RECORD.itemsize)
        marks = bytes([0xFF] * -(-blocks // 4))
        about = [(1, RECORD.itemsize, marks)]
        data = result_bytes((blocks, 1, 1), BLOCK, [(32, slots)], about=about)
        if blocks < GRID:
            step = GRID // blocks
            data += bytes(-len(data) % 8) + b"sampled\1" + struct.pack("<6I", GRID, 1, 1, 0, step, blocks)
        self.save(kernel, self.launch(kernel, (GRID, 1, 1), BLOCK), data)


@pytest.fixture
def writer(tmp_path: Path) -> Sampling:
    writer = Sampling(tmp_path / "trace")
    writer.start()
    writer.counting_kernel(0, "strided", "gmem_sectors", RECORD)
    return writer


def trace_of(writer: Sampling, *blocks: int) -> Trace:
    for count in blocks:
        writer.measured(0, count)
    return open_trace(writer.directory)


def test_whole_launches_come_first_then_the_largest_samples(writer: Sampling) -> None:
    trace = trace_of(writer, 16, GRID, 32, 16, GRID)
    results = list(analyse_results(trace, trace.kernels[0]))
    assert {extent: len(found) for extent, found in results_by_extent(results).items()} == {
        None: 2,
        (32, GRID): 1,
        (16, GRID): 2,
    }
    extent, taken = comparable_results(results)
    assert (extent, [result.launch.number for result in taken if result.launch]) == (None, [1, 4])
    extent, taken = comparable_results(result for result in results if result.sample is not None)
    assert (extent, len(taken)) == ((32, GRID), 1)
    assert comparable_results([]) == (None, [])


@pytest.mark.parametrize(
    ("blocks", "sectors", "said"),
    [
        ((GRID, 16, 16, 16), GRID * 2 * 64, "only the results of all blocks are used (1 of 4)"),
        ((16, 16, 32), 32 * 2 * 64, "only the results of 32 of 64 blocks are used (1 of 3)"),
        ((16, 16), 16 * 2 * 64, None),
    ],
    ids=["some whole", "samples of two sizes", "one size"],
)
def test_a_comparison_takes_the_median_of_one_kind(
    writer: Sampling, blocks: tuple[int, ...], sectors: int, said: str | None
) -> None:
    trace = trace_of(writer, *blocks)
    problems: dict[str, None] = {}
    values = probe_values(ViewSource(trace, trace.kernels[0]), no_progress, problems)
    assert {metric_value.key: metric_value.value for metric_value in values}["load_sectors"] == sectors
    assert [words.rpartition(": ")[2] for words in problems] == ([] if said is None else [said])


def test_spreads_stand_apart_and_say_of_which_blocks_they_are(writer: Sampling) -> None:
    trace = trace_of(writer, GRID, GRID, *[16] * 8)
    lines = list(result_lines(trace, trace.kernels[0], 100, 2, 12))
    assert lines[0] == "  10 results"
    heads = [line.strip() for line in lines if "launches" in line]
    assert heads == [
        "2 launches, all blocks measured",
        "8 launches sampled, 16 of 64 blocks each: values cover only these blocks",
    ]
    loads = [line.strip() for line in lines if line.strip().startswith("load sectors")]
    spreads = [line.removeprefix("load sectors").split("  ") for line in loads]
    assert [[value.strip() for value in row if value] for row in spreads] == [["8 192"] * 3, ["2 048"] * 3]


def test_a_table_of_launches_has_a_column_of_blocks(writer: Sampling) -> None:
    trace = trace_of(writer, GRID, 16)
    view = CountTable(ViewSource(trace, trace.kernels[0]), "Sectors", no_progress)
    rows = ["".join(text for text, _ in line) for line in view.lines(160)]
    assert "blocks" in rows[1]
    assert [words in row for row, words in zip(rows[3:5], ("  all  ", "  16 of 64  "), strict=True)] == [True, True]


def test_launches_are_sorted_by_a_column_and_stay_so(writer: Sampling) -> None:
    trace = trace_of(writer, GRID, 16, 32)
    view, newer = (CountTable(ViewSource(trace, trace.kernels[0]), "Sectors", no_progress) for _ in range(2))
    view.sort_by("load_sectors")
    newer.take_over(view)
    for table in (view, newer):
        _, head, _, *rows = ("".join(text for text, _ in line) for line in table.lines(160))
        assert "load sectors ↓" in head
        assert [row.split(" of 64")[0].split()[-1] for row in rows[1:3]] == ["32", "16"]
    newer.sort_by("load_sectors")
    assert "load sectors ↑" in "".join(text for text, _ in newer.lines(160)[1])


def test_words_in_the_live_table_say_of_which_blocks_they_are(writer: Sampling) -> None:
    trace = trace_of(writer, GRID)
    assert "of 64 blocks" not in summarize_findings(trace, trace.kernels[0]).words
    trace = trace_of(writer, 16)
    assert "(measured in 16 of 64 blocks)" in summarize_findings(trace, trace.kernels[0]).words


def test_data_has_the_blocks_of_each_number(writer: Sampling) -> None:
    trace = trace_of(writer, GRID, 16)
    page = json.loads("\n".join(report_lines(trace, "results", "json")))
    launches = {(row["launch"], row["blocks_measured"]) for row in page["results"] if row["figure"] == "load_sectors"}
    assert launches == {(0, GRID), (1, 16)}
    metrics = tui_probe.open(writer.directory).kernels[0].metrics()
    assert metrics["load_sectors"].tolist() == [8192, 2048]
    assert (metrics["blocks"].tolist(), metrics["blocks_measured"].tolist()) == ([GRID, GRID], [GRID, 16])
