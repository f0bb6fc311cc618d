"""Memory traffic of attention in several ways, from files that ncu wrote on an H200."""

from __future__ import annotations

import ast
import lzma
from pathlib import Path

import numpy as np
import pytest

import tui_probe
from tests.golden import golden
from tests.recorded import H200
from tests.trace.make import TraceWriter
from tui_probe.draw.spans import plain
from tui_probe.errors import TraceError
from tui_probe.evals.answer import AnswerDocument
from tui_probe.evals.evaluation import PROGRAMS_FOLDER, Setting, evaluation_named
from tui_probe.evals.traffic import IMPLEMENTATIONS, RUNS, WARM_UP

WAYS = ("flash", "efficient", "math", "triton")


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{way}.csv" for way in WAYS]
    for path in paths:
        path.write_bytes(lzma.decompress((H200 / "ncu" / f"attention_{path.stem}.csv.xz").read_bytes()))
    return paths


def test_ways_side_by_side(files: list[Path]) -> None:
    answer = tui_probe.evaluate("traffic", files)
    table = answer.tables["traffic"]
    assert table["program"].tolist() == list(WAYS)
    assert table["runs"].tolist() == [5, 5, 5, 5], "without the warm-up"
    for level in ("dram", "l2", "l1"):
        ratio = table[f"{level}_ratio"]
        assert np.nanmin(ratio) == 1
        assert ratio[2] == np.nanmax(ratio), "the one that keeps the whole matrix of scores moves most"
    assert set(answer.drawings) == {"dram", "l2", "l1"}
    assert answer.said[0].startswith("DRAM: min ")


def test_traffic_text(files: list[Path], tmp_path: Path) -> None:
    answer = tui_probe.evaluate("traffic", files)
    text = "\n".join(plain(line).rstrip() for line in AnswerDocument(answer).lines(110)) + "\n"
    golden("traffic.txt", text.replace(str(tmp_path), "/t"), width=110)


def test_sparse_attention_compares_with_its_own_kind() -> None:
    answer = tui_probe.evaluate("traffic")
    assert answer.tables["traffic"]["program"].tolist() == list(WAYS)
    assert answer.tables["traffic_sparse"]["program"].tolist() == ["bigbird_torch", "bigbird_triton"]
    assert all(np.nanmin(answer.tables[name]["l2_ratio"]) == 1 for name in ("traffic", "traffic_sparse"))
    assert sum("min triton" in words for words in answer.said) == 3


def test_programs_of_others_are_iterated_as_often_as_their_launches_say(files: list[Path]) -> None:
    other = files[0].rename(files[0].with_name("theirs.csv"))
    answer = tui_probe.evaluate("traffic", other)
    assert answer.tables["traffic"]["iterations"].tolist() == [8]
    assert answer.tables["traffic"]["iterations_found"].tolist() == [True]


def test_missing_counters_name_the_command(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.run_json()
    with pytest.raises(TraceError, match=r"no memory counters.*: tui-probe eval traffic --run"):
        tui_probe.evaluate("traffic", tmp_path / "t")
    (tmp_path / "notes.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TraceError, match=r"notes\.csv.*: tui-probe eval traffic --run"):
        tui_probe.evaluate("traffic", tmp_path / "notes.csv")


def test_sparse_attention_is_among_the_programs() -> None:
    runs = evaluation_named("traffic").collect(Setting())
    assert [run.output_name for run in runs if "bigbird" in run.name] == ["bigbird_torch.csv", "bigbird_triton.csv"]
    assert all(run.tools == ("ncu",) for run in runs)


def test_program_has_the_implementations_and_calls_of_the_evaluation() -> None:
    program = ast.parse((PROGRAMS_FOLDER / "attentions.py").read_text(encoding="utf-8"))
    texts = {node.value for node in ast.walk(program) if isinstance(node, ast.Constant)}
    assert set(IMPLEMENTATIONS) <= texts
    assigned = [node for node in program.body if isinstance(node, ast.Assign)]
    (calls,) = (node.value for node in assigned if "WARM_UP" in ast.unparse(node.targets[0]))
    assert ast.literal_eval(calls) == (WARM_UP, RUNS)
