"""Warp scheduling: elapsed cycles of exclusive and shared blocks, speed over progress, lines of warps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tui_probe
from tests.evals.schedules import write
from tests.golden import golden
from tests.recorded import H200, SIMULATED, unpacked
from tests.trace.make import block_sched_result
from tui_probe.cli.main import main
from tui_probe.draw.spans import plain
from tui_probe.errors import TraceError
from tui_probe.evals.answer import AnswerDocument
from tui_probe.evals.warps.configurations import block_speeds
from tui_probe.records.warp_pace import PACE, WARP, Loop, WarpProgress


def write_exclusive(directory: Path) -> Path:
    """Two SMs, on each two blocks one after the other: 100, 104, 100 and 102 cycles."""
    start, elapsed, sm = [1000, 1110, 5000, 5120], [100, 104, 100, 102], [0, 0, 1, 1]
    return write(directory, "accumulate", 4, of_blocks(start, elapsed, sm))


def write_shared(directory: Path) -> Path:
    """The same SMs, two blocks together: 160, 200, 170 and 180 cycles; the spread is 25 %."""
    start, elapsed, sm = [1000, 1002, 5000, 5001], [160, 200, 170, 180], [0, 0, 1, 1]
    return write(directory, "accumulate", 4, of_blocks(start, elapsed, sm))


def of_blocks(start: list[int], elapsed: list[int], sm: list[int]) -> bytes:
    return block_sched_result(np.array(start, "u8"), np.array(elapsed, "u4"), np.array(sm, "u4"))


def test_exclusive_and_shared_on_paper(tmp_path: Path) -> None:
    traces = [write_exclusive(tmp_path / "one"), write_shared(tmp_path / "other")]
    answer = tui_probe.evaluate("warps", traces)
    table = answer.tables["configurations"]
    assert table["kind"].tolist() == ["exclusive", "shared"]
    assert table["together"].tolist() == [1, 2]
    assert table["spread"].tolist() == [pytest.approx(0.04), pytest.approx(0.25)]
    assert table["p50"].tolist() == [101, 175]
    assert [figure.ours for figure in answer.compared] == [pytest.approx(25.0)]
    assert sorted(answer.arrays["cycles of other"].tolist()) == [160, 170, 180, 200]
    assert answer.said[-1].startswith(
        "a block that shares its SM takes 1.73× as long as a block alone on an SM; with 2 blocks at a time, an SM has"
        " 1.15×"
    )
    assert list(answer.drawings) == ["a", "b"]
    assert answer.notes == ["no figures c, d and d-zoom; collect it with tui-probe eval warps --run --only shared_acc"]


def test_one_configuration_says_what_to_run(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("warps", write_shared(tmp_path / "t"))
    assert list(answer.drawings) == ["b"]
    assert "no figure a; collect it with tui-probe eval warps --run --only exclusive_sched" in answer.notes


def test_a_pickle_is_never_read(tmp_path: Path) -> None:
    (tmp_path / "tmp.pkl").write_bytes(b"cos\nsystem\n(S'touch opened'\ntR.")
    with pytest.raises(
        TraceError, match=r"pickle files are not read, .* To collect everything: tui-probe eval warps --run"
    ):
        tui_probe.evaluate("warps", tmp_path / "tmp.pkl")
    assert not Path("opened").exists()


def progress_of(clocks: list[list[list[int]]], starts: list[list[int]]) -> WarpProgress:
    """Warps that came around the loop at line 7 at these clocks."""
    blocks, warps, room = len(clocks), len(clocks[0]), max(len(times) for block in clocks for times in block)
    pace = np.zeros((blocks, warps, room), PACE)
    reached = np.array([[len(times) for times in block] for block in clocks])
    for place in np.ndindex(blocks, warps):
        times = clocks[place[0]][place[1]]
        pace["clock"][place][: len(times)] = times
        pace["line"][place][: len(times)] = 7
    records = np.zeros((blocks, warps), WARP)
    records["start"] = starts
    known = np.full((blocks, warps), np.nan)
    ran = np.ones((blocks, warps), np.bool_)
    return WarpProgress(records, ran, known, known, None, pace, reached, (Loop(7, 1, 1, 1),))


def test_speeds_are_means_over_the_warps_of_a_block() -> None:
    speeds = block_speeds(
        progress_of([[[100, 200, 300], [100, 150, 400]], [[50, 60, 80], [50, 60]]], [[90, 90], [40, 40]])
    )
    assert speeds is not None
    assert speeds.progress.tolist() == [25, 75]
    assert speeds.speed[0].tolist() == [
        pytest.approx(1000 * (1 / 100 + 1 / 50) / 2),
        pytest.approx(1000 * (1 / 100 + 1 / 250) / 2),
    ]
    assert speeds.speed[1].tolist() == [100, 50]


def test_clocks_that_wrap_around_go_on() -> None:
    speeds = block_speeds(progress_of([[[2**32 - 10, 90, 190]]], [[2**32 - 20]]))
    assert speeds is not None
    assert speeds.speed.tolist() == [[10, 10]]


def test_without_a_loop_there_are_no_speeds() -> None:
    assert block_speeds(progress_of([[[100]]], [[0]])) is None


def test_warps_text(tmp_path: Path) -> None:
    traces = [
        write_exclusive(tmp_path / "exclusive_sched"),
        write_shared(tmp_path / "shared_sched"),
        unpacked(H200 / "attention_progress", tmp_path),
    ]
    answer = tui_probe.evaluate("warps", traces)
    assert list(answer.drawings) == ["a", "b", "c", "d", "d-zoom"]
    lines = AnswerDocument(answer).lines(110)
    golden("warps.txt", "\n".join(plain(line).rstrip() for line in lines) + "\n", width=110)


def test_every_picture_as_png(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    traces = [str(write_exclusive(tmp_path / "a")), str(write_shared(tmp_path / "b")), str(SIMULATED / "warp_progress")]
    assert main(["eval", "warps", *traces, "--png", str(tmp_path / "fig13.png")]) == 0
    files = capsys.readouterr().out.split()
    assert [Path(file).name for file in files] == [f"fig13-{name}.png" for name in ("a", "b", "c", "d", "d-zoom")]
    assert all(Path(file).read_bytes().startswith(b"\x89PNG") for file in files)


def test_collected_on_the_simulated_gpu(
    tmp_path: Path, natives: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TUI_PROBE_NATIVE", str(natives))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    assert main(["eval", "warps", "--run", "--sim", "--out", str(tmp_path / "out"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = document["tables"]["configurations"]
    assert [(row["trace"], row["kind"], row["together"]) for row in rows] == [
        ("exclusive_sched", "exclusive", 1),
        ("shared_sched", "shared", 3),
        ("shared_acc", "shared, progress", 3),
    ]
    assert len({row["blocks"] for row in rows}) == 1
    assert document["published"][0]["ours"] is None
