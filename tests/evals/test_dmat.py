"""Walks of launches through memory: from traces, from page maps of existing systems, and from pictures as data."""

from __future__ import annotations

import ast
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import tui_probe
from tests.golden import golden
from tests.probes.dmat_example import A, B, C, stream, write_dmat
from tests.recorded import H200
from tests.trace.test_page_map import written
from tui_probe.cli.main import main
from tui_probe.draw.spans import plain
from tui_probe.errors import TraceError
from tui_probe.evals.answer import AnswerDocument
from tui_probe.evals.evaluation import PROGRAMS_FOLDER, Setting, evaluation_named

TENSORS = f"""\
[call]  1  torch.Size([32, 512])  65536  {A}  query  f  a.py:1  torch.float32  4  (512, 1)  {A}
[call]  1  torch.Size([32, 512])  65536  {B}  key  f  a.py:1  torch.float32  4  (512, 1)  {B}
[call]  1  torch.Size([32, 16, 128])  262144  {C}  out  f  a.py:1  torch.float32  4  (2048, 128, 1)  {C}
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    write_dmat(tmp_path / "stream")
    (tmp_path / "stream" / "tensor.trace").write_text(TENSORS)
    return tmp_path / "stream"


def test_dmat_of_a_launch(trace: Path) -> None:
    answer = tui_probe.evaluate("dmat", trace)
    accesses = len(stream().points())
    table = answer.tables["walks"]
    assert (table["accesses"].tolist(), table["kept"].tolist()) == ([accesses], [accesses])
    bands = answer.tables["bands"]
    assert bands["band"].tolist() == ["query", "key", "out"]
    assert bands["shape"].tolist()[0] == "32 × 512 torch.float32"
    assert bands["accesses"].sum() == accesses
    assert 0 < table["in_use"][0] < table["touched"][0]
    (counts,) = answer.arrays.values()
    assert counts.sum() == accesses


def test_dmat_text_and_picture(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = tui_probe.evaluate("dmat", trace)
    lines = AnswerDocument(answer, ascii_only=False).lines(100)
    golden("dmat.txt", "\n".join(plain(line).rstrip() for line in lines) + "\n", width=100)
    (figure,) = answer.drawings.values()
    shown = [plain(line) for line in figure.draw(100, 30)]  # type: ignore[attr-defined]
    assert [name for name in ("query", "key", "out") if any(line.startswith(name) for line in shown)] == [
        "query", "key", "out",
    ]  # fmt: skip
    assert all(line.isascii() for line in map(plain, figure.draw(60, 12, ascii_only=True)))  # type: ignore[attr-defined]
    pytest.importorskip("matplotlib")
    picture = trace.parent / "walk.png"
    assert main(["eval", "dmat", str(trace), "--png", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()


def test_dmat_of_a_page_map(tmp_path: Path) -> None:
    pages = [0x7F00_0000_0000 + (place << 16) for place in range(300)] + [0x7F90_0000_0000]
    path = tmp_path / "fig1.dmat"
    path.write_bytes(written({clock: {pages[clock % 301]: 2, pages[-1]: 1} for clock in range(10, 3010)}))
    answer = tui_probe.evaluate("dmat", path)
    bands = answer.tables["bands"]
    assert bands["band"].tolist() == ["range 0", "range 1"]
    assert answer.tables["walks"]["kept"].tolist() == [int(bands["accesses"].sum())]
    assert answer.tables["walks"]["cycles"].tolist() == [3000]
    assert answer.tables["walks"]["touched"].tolist() == [301 << 16]
    (counts,) = answer.arrays.values()
    assert np.count_nonzero(counts[-1]) == counts.shape[1]  # the last page is touched all the time


def test_a_picture_as_data_stands_for_the_results(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "dmat", str(trace), "--format", "json", "--width", "200", "--height", "80"]) == 0
    text = capsys.readouterr().out
    answer = tui_probe.evaluate("dmat", trace)
    (trace / "accesses.json.gz").write_bytes(gzip.compress(text.encode()))
    for result in (trace / "result").iterdir():
        result.unlink()
    from_picture = tui_probe.evaluate("dmat", trace)
    for key in ("accesses", "kept"):
        assert from_picture.tables["walks"][key].tolist() == answer.tables["walks"][key].tolist()
    assert from_picture.tables["walks"]["kernel"].tolist() == ["stream"]
    walk_file = trace.parent / "walk.json"
    walk_file.write_text(text)
    assert tui_probe.evaluate("dmat", walk_file).tables["bands"]["band"].tolist() == ["query", "key", "out"]


@pytest.mark.parametrize("text", ["{}", "[]", "no JSON", json.dumps({"rows": [], "cycle_edges": [], "bands": []})])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(TraceError, match="show dmat TRACE --format json"):
        tui_probe.evaluate("dmat", tmp_path / "x.json")


def test_missing_data_is_reported(trace: Path) -> None:
    answer = tui_probe.evaluate("dmat", [trace, H200 / "attention_blocks"])
    assert len(answer.tables["walks"]) == 1
    assert "was probed with block_sched" in answer.notes[0]
    with pytest.raises(TraceError, match="tui-probe eval dmat --run"):
        tui_probe.evaluate("dmat", H200 / "attention_blocks")


def test_the_program_can_be_read_and_has_the_kernels_that_are_asked_for() -> None:
    source = (PROGRAMS_FOLDER / "attention.py").read_text()
    names = {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}
    runs = evaluation_named("dmat").collect(Setting())
    assert {run.name for run in runs} == {"triton-128x64", "triton-64x64", "flash", "efficient"}
    for run in runs:
        kernel = run.options[run.options.index("-k") + 1]
        assert kernel in names or run.modules == ("torch",)
