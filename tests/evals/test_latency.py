"""Exposed latency: parts of a call on paper, ratios to the original and ncu, and files of published columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tui_probe
from tests.golden import golden
from tests.trace.make import TraceWriter
from tui_probe.cli.main import main
from tui_probe.draw.spans import plain
from tui_probe.errors import TraceError
from tui_probe.evals.answer import AnswerDocument
from tui_probe.evals.evaluation import Setting, evaluation_named
from tui_probe.evals.inputs import CollectedRun, write_collected
from tui_probe.evals.latency import KEYS


def line(total: float, call: float, stream: float, operation: str = "gemm") -> str:
    """Five calls; the third is the median."""
    around = (0.5, 0.9, 1.0, 1.2, 7.0)
    times = {"call": call, "total": total, "stream": stream}
    return json.dumps({"latency": operation, "right": True, **{k: [v * a for a in around] for k, v in times.items()}})


def write_calls(
    directory: Path, words: str, *, probe: str | None = None, passed: int = 0, simulated: bool = False
) -> Path:
    writer = TraceWriter(directory)
    writer.start(device="NVIDIA H200", command="calls.py gemm")
    writer.kernel(0, "matrix_product", "probed" if probe else "filtered")
    if probe:
        writer.launch(0)
    for _ in range(passed if probe else 1):
        writer.pass_through(0, "budget" if probe else "excluded")
    writer.exit()
    writer.run_json(probe=probe or "block_sched", driver={"path": "libcuda.so.1", "simulated": simulated})
    (directory / "stdout.log").write_text(f"{words}\n")
    return directory


def write_study(folder: Path) -> Path:
    """GEMM: 100 µs, 120 with one probe, 300 with the other, 2000 under ncu."""
    write_calls(folder / "gemm-original", line(100, 4, 90))
    write_calls(folder / "gemm-block_sched", line(120, 10, 95), probe="block_sched")
    write_calls(folder / "gemm-dmat", line(300, 20, 250), probe="dmat")
    (folder / "gemm-ncu.txt").write_text(f"==PROF== words of ncu\n{line(2000, 1900, 95)}\n")
    runs = {name: CollectedRun(name, "x") for name in ("gemm-original", "gemm-block_sched", "gemm-dmat")}
    runs["gemm-ncu"] = CollectedRun("gemm-ncu", "x", None, "gemm-ncu.txt")
    write_collected(folder, runs)
    return folder


def test_parts_of_a_call_with_the_original_and_ncu(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("latency", write_study(tmp_path))
    table = answer.tables["latency"]
    assert table["probe"].tolist() == ["block_sched", "dmat"]
    assert table["neutrino"].tolist() == [120, 300]
    assert [table[part].tolist() for part in ("prologue", "kernel", "epilogue")] == [[10, 20], [95, 250], [15, 30]]
    assert table["times"].tolist() == [1.2, 3.0]
    assert table["times_ncu"].tolist() == [20, 20]
    assert answer.said[0] == "gemm with block_sched: 1.20× the original, under ncu 20.00×"
    assert answer.notes == []
    bars = answer.drawings["gemm"].record()["bars"]
    assert [bar["label"] for bar in bars] == ["block_sched", "  under ncu", "dmat", "  under ncu"]
    assert (bars[0]["prologue"], bars[0]["kernel"], bars[0]["ncu"], bars[1]["ncu"]) == (0.1, 0.95, None, 20.0)
    lines = AnswerDocument(answer).lines(100)
    golden("latency.txt", "\n".join(plain(line).rstrip() for line in lines).replace(str(tmp_path), "…") + "\n")


def test_one_run_has_all_operations(tmp_path: Path) -> None:
    write_calls(tmp_path / "original", f"{line(100, 4, 90)}\n{line(50, 4, 40, 'attn')}")
    write_calls(tmp_path / "dmat", f"{line(300, 20, 250)}\n{line(60, 5, 45, 'attn')}", probe="dmat")
    table = tui_probe.evaluate("latency", [tmp_path / "original", tmp_path / "dmat"]).tables["latency"]
    assert list(zip(table["operation"], table["times"], strict=True)) == [("gemm", 3.0), ("attn", 1.2)]
    (original, *_) = evaluation_named("latency").collect(Setting())
    assert len(evaluation_named("latency").collect(Setting())) == 6
    assert original.argv[2:6] == ("attn", "gmm", "conv", "gemm")


def test_a_file_of_published_columns_is_written_and_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "latency", str(write_study(tmp_path / "study")), "--csv", "--table", "gemm"]) == 0
    (tmp_path / "gemm.csv").write_text(capsys.readouterr().out)
    assert (tmp_path / "gemm.csv").read_text().splitlines()[0] == ",".join(KEYS)
    again = tui_probe.evaluate("latency", tmp_path / "gemm.csv").tables["gemm"]
    assert again.records() == tui_probe.evaluate("latency", tmp_path / "study").tables["gemm"].records()


def test_columns_in_another_order_and_empty_cells(tmp_path: Path) -> None:
    (tmp_path / "attn.csv").write_text("ncu, probe,original,neutrino,kernel,prologue,epilogue\n,dmat,2,6,5,0.5,0.5\n")
    answer = tui_probe.evaluate("latency", tmp_path / "attn.csv")
    assert answer.said == ["attn with dmat: 3.00× the original"]
    assert answer.notes == ["no run under ncu, so the column “ncu” is empty"]
    (tmp_path / "attn.csv").write_text(",".join(KEYS) + "\ndmat,2,much,6,1,4,1\n")
    with pytest.raises(TraceError, match=r"attn\.csv:2: ncu is 'much', not a number"):
        tui_probe.evaluate("latency", tmp_path / "attn.csv")


def test_missing_parts_name_the_command(tmp_path: Path) -> None:
    probed = write_calls(tmp_path / "probed", line(120, 10, 95), probe="dmat", passed=3)
    answer = tui_probe.evaluate("latency", probed)
    assert "gemm: the unprobed run is missing, so there are no ratios; collect it with --only original" in answer.notes
    assert "gemm with dmat: 3 launches ran unprobed; medians may include these launches" in answer.notes
    assert answer.drawings == {}
    with pytest.raises(
        TraceError,
        match=r"gemm: no probed run; collect a probed run with --only PROBE.*eval latency"
        r" --run",
    ):
        tui_probe.evaluate("latency", write_calls(tmp_path / "original", line(100, 4, 90)))


def test_overlapping_host_leaves_no_epilogue(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("latency", write_calls(tmp_path / "t", line(100, 30, 90), probe="dmat"))
    assert answer.tables["latency"]["epilogue"].tolist() == [0]


def test_simulated_times_are_not_shown(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("latency", write_calls(tmp_path / "t", line(1, 1, 1), probe="dmat", simulated=True))
    assert answer.said == ["gemm with dmat: –"]
    assert "the simulated GPU has no times; collect the traces on a GPU" in answer.notes


def test_collected_on_the_simulated_gpu(
    tmp_path: Path, natives: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TUI_PROBE_NATIVE", str(natives))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    assert main(["eval", "latency", "--run", "--sim", "--out", str(tmp_path / "out"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(row["operation"], row["probe"]) for row in document["tables"]["latency"]] == [("sums", "block_sched")]
    assert "ncu: skipped: not meaningful on the simulated GPU" in document["notes"]
    written = [(tmp_path / "out" / name / "stdout.log").read_text() for name in ("original", "block_sched")]
    assert all(json.loads(line)["right"] for line in written)
