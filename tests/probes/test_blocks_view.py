"""Block times and gaps of a launch in which everything is known, and of launches on an H200."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from tests.pages.timelines import planted
from tests.pages.timelines.drawing import golden_view, text_of
from tui_probe.draw.charts import cdf_chart
from tui_probe.draw.view import no_progress
from tui_probe.pages.view_output import csv_of_view
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probes.block_sched.view import BLOCKS, Blocks
from tui_probe.trace.follow import open_trace

RECORDED = Path(__file__).parents[1] / "data" / "h200"


def opened(source: ViewSource) -> Blocks:
    view = BLOCKS.open(source, no_progress)
    assert isinstance(view, Blocks)
    return view


@pytest.fixture
def view(tmp_path: Path) -> Blocks:
    return opened(planted.write_planted(tmp_path / "t"))


def test_goldens(view: Blocks) -> None:
    golden_view("blocks", view)


def test_equal_block_times_have_no_distribution(view: Blocks) -> None:
    view.cycles = np.full(4, 96)
    lines = ["".join(text for text, _ in line) for line in view.lines(80)]
    assert "all blocks take 96 cycles" in lines
    assert not any("┤" in line for line in lines)


def test_goldens_of_an_h200() -> None:
    trace = open_trace(RECORDED / "torch_compile")
    golden_view("blocks-torch_compile", opened(ViewSource(trace, trace.kernels[4])))


def test_the_straggler_is_the_longest_block_and_its_sm_the_longest_bar(view: Blocks) -> None:
    record = json.loads(json.dumps(view.record()))
    assert (record["block_cycles"]["p50"], record["block_cycles"]["p100"]) == (planted.CYCLES, planted.STRAGGLER_CYCLES)
    assert record["gap_cycles"]["p0"] == record["gap_cycles"]["p100"] == planted.GAP
    assert record["idle_sms"] == [planted.IDLE_SM]
    lines = text_of(view, (80, 24))
    bars = {line.split()[0]: sum(map(line.count, "█▒░")) for line in lines if "█" in line and line.split()[0].isdigit()}
    assert max(bars, key=bars.__getitem__) == str(planted.STRAGGLER_SM)
    assert str(planted.IDLE_SM) not in bars
    assert "1 SM ran no block" in " ".join(lines)


def test_anchors_are_the_chart_and_the_sms(view: Blocks) -> None:
    lines = text_of(view, (80, 24))
    chart, sms = view.anchors(80)
    assert "┌" in lines[chart]
    assert lines[sms].startswith("SMs, cycles per slot")


def test_a_row_an_sm(view: Blocks) -> None:
    rows = list(csv.DictReader(io.StringIO("\n".join(csv_of_view(view)))))
    assert [row["sm"] for row in rows] == ["0", "1", "2", "4", "5"]
    assert sum(int(row["blocks"]) for row in rows) == 50


def test_a_chart_has_no_escapes_and_the_size_asked_for() -> None:
    import numpy as np

    for values in (np.array([5]), np.arange(1000), np.array([1, 1, 1, 900_000_000])):
        lines = cdf_chart(values, 60, 10, "cycles")
        assert len(lines) == 10
        assert all(line.isprintable() and len(line) <= 60 for line in lines)
