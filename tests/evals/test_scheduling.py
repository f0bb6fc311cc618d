"""Block scheduling: sums over slots as they were published, means over slots, and the factor between them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tui_probe
from tests.evals.schedules import write_fill, write_two_slots
from tests.golden import golden
from tests.recorded import H200
from tui_probe.draw.spans import plain
from tui_probe.evals.document import AnswerDocument


def test_sums_and_means_on_paper(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("scheduling", write_two_slots(tmp_path / "t"))
    table = answer.tables["schedules"]
    # SM 3: slots run 190 and 176 cycles and wait 10 each; SM 9: one slot runs 50.
    assert table["running"].tolist() == [((190 + 176) / 2 + 50) / 2]
    assert table["running_sum"].tolist() == [(190 + 176 + 50) / 2]
    assert table["scheduling"].tolist() == [(10 + 0) / 2]
    assert table["scheduling_sum"].tolist() == [(20 + 0) / 2]
    assert table["factor"].tolist() == [pytest.approx((208 + 10) / (116.5 + 5))]
    assert answer.said[0] == "No.block:5 Running:208 Scheduling:10(cycle)"
    assert answer.tables["sms"]["sm"].tolist() == [3, 9]
    assert answer.tables["sms"]["share"].tolist() == [pytest.approx(10 / 193), 0]
    assert all(each.ours is None for each in answer.compared)


def test_a_fill_of_the_published_grid_stands_beside_it(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("scheduling", write_fill(tmp_path / "t"))
    ours = {each.published.key: each.ours for each in answer.compared}
    assert ours["share"] == pytest.approx(100 * 29758 / (6943 + 29758), abs=0.01)
    (slots,) = answer.tables["schedules"]["slots"]
    assert slots == pytest.approx(10, abs=0.1)
    assert ours["running_sum"] == pytest.approx(slots * 6943, rel=1e-2)


def test_as_text(tmp_path: Path) -> None:
    traces = [write_fill(tmp_path / "fill"), H200 / "attention_blocks", write_two_slots(tmp_path / "paper")]
    answer = tui_probe.evaluate("scheduling", traces)
    for ascii_only in (False, True):
        lines = AnswerDocument(answer, ascii_only=ascii_only).lines(100)
        text = "\n".join(plain(line).rstrip() for line in lines) + "\n"
        if not ascii_only:
            golden("scheduling.txt", text, width=100)
    assert "fill: NVIDIA H200, ./zero_fill" in text


def test_a_trace_without_schedules_is_left_out_with_a_note(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("scheduling", [write_two_slots(tmp_path / "t"), H200 / "dmat"])
    assert len(answer.tables["schedules"]) == 1
    assert "was probed with dmat: run with -p block_sched" in answer.notes[0]
    assert np.isfinite(answer.tables["schedules"]["share"]).all()
