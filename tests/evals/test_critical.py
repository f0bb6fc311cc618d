"""Sectors expected and counted, and the critical kernel: by a probe, by ncu, and both next to each other."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

import tui_probe
from tests.golden import golden
from tests.recorded import H200, unpacked
from tests.trace.make import TraceWriter
from tui_probe.cli.main import main
from tui_probe.draw.spans import plain
from tui_probe.errors import TraceError
from tui_probe.evals.answer import AnswerDocument
from tui_probe.evals.evaluation import Setting, evaluation_named


def of_ncu(name: str, folder: Path, known_as: str) -> Path:
    """A file that ncu wrote on an H200, under the name of a program."""
    path = folder / f"{known_as}-ncu.csv"
    path.write_bytes(lzma.decompress((H200 / "ncu" / f"{name}.csv.xz").read_bytes()))
    return path


def test_coalesced_and_strided_stores_as_published(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("critical", of_ncu("numba_stores", tmp_path, "stores"))
    ours = {figure.published.key: figure.ours for figure in answer.compared}
    assert (ours["coalesced_requests"], ours["coalesced_sectors"]) == (256, 1024)
    assert (ours["strided_requests"], ours["strided_sectors"]) == (256, 2048)
    assert ours["llama_fp32_sectors"] is None
    assert answer.tables["sectors"]["sectors_per_store"].tolist() == [4, 8]


def test_the_simulated_gpu_counts_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, natives: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TUI_PROBE_NATIVE", str(natives))
    assert main(["eval", "critical", "--run", "--sim", "--out", str(tmp_path / "out"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    published = {row["key"]: (row["ours"], row["value"]) for row in document["published"]}
    for kind in ("coalesced", "strided"):
        for what in ("requests", "sectors"):
            ours, theirs = published[f"{kind}_{what}"]
            assert ours == theirs
    assert document["notes"] == ["stores-ncu: skipped: not meaningful on the simulated GPU"]


def attention(tmp_path: Path) -> list[Path]:
    """The same attention by ncu and by a probe, as parts of one program."""
    probes = tmp_path / "attention-probes"
    unpacked(H200 / "attention_sectors", tmp_path / "x").rename(probes)
    return [of_ncu("attention_triton", tmp_path, "attention"), probes]


def test_a_program_by_ncu_and_by_a_probe_is_one_program(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("critical", attention(tmp_path))
    table = answer.tables["sectors"]
    assert set(table["program"]) == {"attention"}
    assert set(table["tool"]) == {"ncu", "probes"}
    assert answer.said[0].startswith("attention: the critical kernel is flash_attention")
    text = "\n".join(plain(line).rstrip() for line in AnswerDocument(answer).lines(110)) + "\n"
    golden("critical.txt", text.replace(str(tmp_path), "/t"), width=110)


def test_a_tensor_that_is_known_is_expected(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("critical", of_ncu("attention_flash", tmp_path, "llama_bf16"))
    assert set(answer.tables["sectors"]["expected_sectors"]) == {128 * 4096 * 2 // 32}


def test_nothing_counted_says_what_to_run(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "k")
    writer.run_json()
    advice = r"run with -p gmem_sectors, or record the program with ncu\. .*: tui-probe eval critical --run"
    with pytest.raises(TraceError, match=advice):
        tui_probe.evaluate("critical", tmp_path / "t")
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TraceError, match=r"a\.csv"):
        tui_probe.evaluate("critical", tmp_path / "a.csv")


def test_critical_commands() -> None:
    names = [run.name for run in evaluation_named("critical").collect(Setting())]
    assert names == [
        f"{program}-{tool}" for program in ("stores", "llama_fp32", "llama_bf16") for tool in ("probes", "ncu")
    ]
