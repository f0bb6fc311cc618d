"""Block scheduling: sums over slots as they were published, means over slots, and the factor between them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import tui_probe
from tests.evals.schedules import write, write_fill, write_two_slots
from tests.golden import golden
from tests.recorded import H200
from tests.trace.make import TraceWriter, block_sched_result
from tests.trace.make_older import write_probe, write_ptx, write_unnamed
from tui_probe.cli.main import main
from tui_probe.draw.spans import plain
from tui_probe.errors import TraceError
from tui_probe.evals.answer import AnswerDocument
from tui_probe.evals.inputs import CollectedRun, write_collected


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
    assert all(figure.ours is None for figure in answer.compared)


def test_fill_of_the_published_grid_has_its_own_row(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("scheduling", write_fill(tmp_path / "t"))
    ours = {figure.published.key: figure.ours for figure in answer.compared}
    assert ours["share"] == pytest.approx(100 * 29758 / (6943 + 29758), abs=0.01)
    (slots,) = answer.tables["schedules"]["slots"]
    assert slots == pytest.approx(10, abs=0.1)
    assert ours["running_sum"] == pytest.approx(slots * 6943, rel=1e-2)


def test_scheduling_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traces = [write_fill(tmp_path / "fill"), H200 / "attention_blocks", write_two_slots(tmp_path / "paper")]
    answer = tui_probe.evaluate("scheduling", traces)
    text = "\n".join(plain(line).rstrip() for line in AnswerDocument(answer).lines(100)) + "\n"
    golden("scheduling.txt", text, width=100)
    assert main(["eval", "scheduling", *map(str, traces), "--width", "100"]) == 0
    assert capsys.readouterr().out == text
    assert main(["eval", "scheduling", *map(str, traces), "--ascii"]) == 0
    assert capsys.readouterr().out.isascii()


def test_a_trace_without_schedules_is_left_out_with_a_note(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("scheduling", [write_two_slots(tmp_path / "t"), H200 / "dmat"])
    assert len(answer.tables["schedules"]) == 1
    assert "was probed with dmat: run with -p block_sched" in answer.notes[0]
    assert np.isfinite(answer.tables["schedules"]["share"]).all()


def write_durations(directory: Path, *, simulated: bool = False) -> Path:
    """A program that filled in three ways: 40, 30 and 25 µs, each with 2 µs for the events."""
    writer = TraceWriter(directory)
    writer.start(device="NVIDIA H200", command="fill.py")
    writer.kernel(0, "fill_plain", "filtered")
    writer.pass_through(0, "excluded")
    writer.exit()
    writer.run_json(driver={"path": "libcuda.so.1", "simulated": simulated})
    times = {"plain": [42.0, 42.0, 43.0], "memset": [31.0, 32.0, 33.0], "persistent": [27.0] * 3}
    lines = (
        json.dumps({"fill": name, "what": f"{name} fill", "right": True, "microseconds": spent, "nothing": [2.0]})
        for name, spent in times.items()
    )
    (directory / "stdout.log").write_text("\n".join(["words of the program", *lines]) + "\n")
    return directory


def write_study(folder: Path) -> Path:
    write_two_slots(folder / "plain")
    persistent = block_sched_result(
        *(np.array(values, kind) for values, kind in (([7], "u8"), ([90], "u4"), ([0], "u4")))
    )
    write(folder / "persistent", "fill_persistent", 1, persistent)
    write_durations(folder / "durations")
    names = ("plain", "persistent", "durations")
    write_collected(folder, {name: CollectedRun(name, "tui-probe run") for name in names})
    return folder


def test_fill_variants_and_scheduling_explanation(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("scheduling", write_study(tmp_path))
    table = answer.tables["durations"]
    assert table["variant"].tolist() == ["plain", "memset", "persistent"]
    assert table["median_us"].tolist() == [40, 30, 25]
    assert table["faster"].tolist() == [1, pytest.approx(40 / 30), 1.6]
    # 5 cycles of scheduling per slot at 1.98 GHz, and none in a single block; the driver's own fill is not seen.
    assert table["scheduling_us"][0] == pytest.approx(5 / 1980)
    assert np.isnan(table["scheduling_us"][1])
    assert table["saved_us"][2] == pytest.approx(5 / 1980)
    assert table["explained"][2] == pytest.approx(5 / 1980 / 15), "of the gain, at most"
    gained = "memset: 1.33× as fast as the form “plain” (each fill takes 10.0 µs less)"
    assert f"{gained}; the driver launches this kernel itself" in answer.said[-2]
    assert answer.notes == ["a duration is the time between two events minus the 2.0 µs that the events take"]
    golden("durations.txt", "\n".join(table.lines(110)) + "\n")


def test_simulated_durations_are_not_shown(tmp_path: Path) -> None:
    write_two_slots(tmp_path / "plain")
    answer = tui_probe.evaluate("scheduling", [tmp_path / "plain", write_durations(tmp_path / "d", simulated=True)])
    assert np.isnan(answer.tables["durations"]["median_us"]).all()
    assert answer.notes == ["the simulated GPU has no durations; collect them on a GPU"]


def test_broken_duration_line_is_reported(tmp_path: Path) -> None:
    broken = write_durations(tmp_path / "d")
    (broken / "stdout.log").write_text('{"fill": "plain"}\n')
    with pytest.raises(TraceError, match=r"stdout\.log: cannot read a line with durations \('microseconds'\)"):
        tui_probe.evaluate("scheduling", [write_two_slots(tmp_path / "plain"), broken])


@pytest.mark.parametrize("log", ["old", "new"])
@pytest.mark.parametrize("sections", ["older", "current"])
def test_traces_and_results_of_existing_systems(
    tmp_path: Path, log: Literal["old", "new"], sections: Literal["older", "current"]
) -> None:
    writer = write_unnamed(tmp_path / "t", log=log, sections=sections, launches=1)
    write_probe(writer, table="block_sched")
    write_ptx(writer, "param_block_sched")
    (result,) = (writer.directory / "result").iterdir()
    for given in (writer.directory, result):
        answer = tui_probe.evaluate("scheduling", given)
        assert answer.said[0] == "No.block:8 Running:200 Scheduling:20(cycle)"
        assert answer.said[1].endswith("the line above has the same values, because each SM had one block at a time")
