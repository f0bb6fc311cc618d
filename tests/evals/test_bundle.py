"""Traces that come with the package say the same as those that were collected, and nothing of the machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tui_probe
from tests.evals.bundle import bundle, without_paths
from tests.evals.test_latency import write_study
from tests.evals.test_memory import write as write_sizes
from tui_probe.cli.main import main
from tui_probe.evals.inputs import CollectedRun, read_inputs, write_collected


@pytest.mark.parametrize("name", ["scheduling", "warps"])
def test_a_bundle_says_the_same(
    name: str, tmp_path: Path, natives: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TUI_PROBE_NATIVE", str(natives))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    assert main(["eval", name, "--run", "--sim", "--out", str(tmp_path / name), "--json"]) == 0
    before = json.loads(capsys.readouterr().out)
    sizes = bundle(tmp_path / name, tmp_path / "bundled" / name)
    after = tui_probe.evaluate(name, tmp_path / "bundled" / name).to_dict()
    assert after["tables"] == before["tables"]
    assert after["said"] == before["said"]
    assert all(0 < size < 200_000 for size in sizes.values())
    texts = [
        path.read_bytes() for path in (tmp_path / "bundled").rglob("*") if path.is_file() and path.suffix != ".bin"
    ]
    assert not [text for text in texts if str(tmp_path).encode() in text or b"/programs/" in text]


def test_paths_are_cut_and_the_command_has_its_length() -> None:
    log = b"[init] cmd 40 /opt/env/bin/python /data/x/fill.py --a 1/2\n[probe] mkdir /data/tr/Nov_1/kernel/0_ab\n"
    assert without_paths(log) == b"[init] cmd 22 python fill.py --a 1/2\n[probe] mkdir 0_ab\n"
    assert without_paths(b'// a / b\n/* c/d */ .file 1 "/root/k.py"') == b'// a / b\n/* c/d */ .file 1 "k.py"'


def test_bundle_keeps_ncu_counts_and_reports_the_rest(tmp_path: Path) -> None:
    rows = [f'"0","k","{name}","1"\n' for name in ("sm__ops_path_tensor_src_tf32.sum", "dram__bytes.sum.per_second")]
    derived = '"0","k","sm__ops_path_tensor_src_tf32.sum.per_second","1"\n'
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x-ncu.csv").write_text("".join(["==PROF== words\n", *rows, derived]))
    write_collected(tmp_path / "in", {"x-ncu": CollectedRun("x-ncu", "run", None, "x-ncu.csv")})
    bundle(tmp_path / "in", tmp_path / "out")
    assert (tmp_path / "out" / "x-ncu.csv").read_text() == "".join(["==PROF== words\n", *rows])
    _, notes = read_inputs([tmp_path / "out"])
    assert notes == [
        "x-ncu: 1 of 4 lines are left out of its table: rates and means of tensor core operations, whose sums are kept"
    ]


def test_logs_suffice_for_an_evaluation_of_times(tmp_path: Path) -> None:
    before = tui_probe.evaluate("latency", write_study(tmp_path / "latency")).to_dict()
    bundle(tmp_path / "latency", tmp_path / "out", results=False, of_kernels=())
    after = tui_probe.evaluate("latency", tmp_path / "out").to_dict()
    assert after["tables"] == before["tables"]
    files = {path.name for path in (tmp_path / "out" / "gemm-dmat").rglob("*") if path.is_file()}
    assert files == {"event.log", "run.json", "stdout.log"}


def test_bundle_keeps_recorded_parts_of_a_log(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    write_sizes(folder / "m.dmat", "dmat", (64, 4096), said="max memory: 1000")
    write_collected(folder, {"m.dmat": CollectedRun("m.dmat", "run")})
    before = tui_probe.evaluate("memory", folder).to_dict()
    bundle(folder, tmp_path / "out", results=False, of_kernels=())
    after = tui_probe.evaluate("memory", tmp_path / "out").to_dict()
    assert (after["tables"], after["said"]) == (before["tables"], before["said"])
    assert "m.dmat: left out of its log: 1 launch while recording was switched off" in after["notes"]
    log = (tmp_path / "out" / "m.dmat" / "event.log").read_text().splitlines()
    assert [line[:8] for line in log if line.endswith("code switched-off")] == ["[kernel]"], "its outcome stays"
