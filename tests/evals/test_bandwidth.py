"""Bandwidths and matrix products, as the programs that are run wrote them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tui_probe
from tests.bandwidth.made_up import measured, write_result
from tests.golden import golden
from tui_probe.draw.spans import plain
from tui_probe.errors import TraceError
from tui_probe.evals.answer import AnswerDocument
from tui_probe.evals.inputs import CollectedRun, write_collected


def product(n: int, *milliseconds: float) -> str:
    line = {"product": [4096, 700, n], "dtype": "bf16", "device": "NVIDIA H200", "milliseconds": milliseconds}
    return json.dumps(line) + "\n"


def collected(folder: Path) -> Path:
    """As the runs leave it: what is measured, between messages."""
    folder.mkdir()
    result = write_result(folder / "bw.json")
    (folder / "memories.txt").write_text(
        f"[info] measuring device memory\n{result.read_text()}\ntui-probe: the command launched no kernel\n"
    )
    result.unlink()
    (folder / "products.txt").write_text(f"[info] trace in x\n{product(100_000, 1.0, 1.1, 0.9)}{product(400_000, 4.0)}")
    runs = {name: CollectedRun(name, "x", None, f"{name}.txt") for name in ("memories", "products")}
    write_collected(folder, runs)
    return folder


def test_all_figures_are_there(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("bandwidth", collected(tmp_path / "c"))
    rates = measured().rates
    assert answer.tables["bandwidth"]["key"].tolist() == [rate.key for rate in rates]
    assert answer.tables["bandwidth"]["bytes_per_second"] == pytest.approx([rate.bytes_per_second for rate in rates])
    assert answer.tables["products"]["milliseconds"].tolist() == [1.0, 4.0]
    assert answer.tables["products"]["operations_per_second"][0] == pytest.approx(2 * 4096 * 700 * 100_000 / 1e-3)
    ours = {figure.published.key: figure.ours for figure in answer.compared}
    assert (ours["product_100k"], ours["product_400k"]) == (1.0, 4.0)
    assert answer.notes == []


def test_bandwidth_text(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("bandwidth", collected(tmp_path / "c"))
    text = "\n".join(plain(line).rstrip() for line in AnswerDocument(answer).lines(100)) + "\n"
    golden("bandwidth.txt", text.replace(str(tmp_path), "/t"), width=100)


def test_saved_result_only(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("bandwidth", write_result(tmp_path / "bw.json"))
    assert "products" not in answer.tables
    assert {figure.ours for figure in answer.compared if figure.published.unit == "ms"} == {None}


def test_wrong_files_say_what_to_run(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("words\n")
    (tmp_path / "b.json").write_text('{"bandwidth": []}\n')
    with pytest.raises(TraceError, match=r"a\.txt: no result of .*b\.json.*: tui-probe eval bandwidth --run"):
        tui_probe.evaluate("bandwidth", [tmp_path / "a.txt", tmp_path / "b.json"])
    (tmp_path / "c.txt").write_text('{"product": [1, 2]}\n')
    with pytest.raises(TraceError, match=r"c\.txt: cannot read a line with times of matrix products"):
        tui_probe.evaluate("bandwidth", tmp_path / "c.txt")
    (tmp_path / "d.txt").write_text(product(3))
    with pytest.raises(TraceError, match="the line has no times"):
        tui_probe.evaluate("bandwidth", tmp_path / "d.txt")
