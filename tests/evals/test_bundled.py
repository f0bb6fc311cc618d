"""Text of tui-probe without a trace: the bundled traces of one H200, every table and figure of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tui_probe
from tests.evals.bundle import PATH, size_of
from tests.golden import golden
from tui_probe.draw.spans import plain
from tui_probe.evals.answer import AnswerDocument
from tui_probe.evals.evaluation import FOLDER
from tui_probe.ui.help_text import help_page

TRACES = FOLDER / "traces"
BUNDLED = sorted(path.name for path in TRACES.iterdir())
TEXTS = (".log", ".json", ".info", ".ptx", ".toml", ".csv", ".txt")
LARGEST = 8_000_000


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_text(name: str) -> None:
    answer = tui_probe.evaluate(name)
    assert answer.hardware == "NVIDIA H200" or not answer.compared
    text = "\n".join(plain(line).rstrip() for line in AnswerDocument(answer).lines(120)) + "\n"
    golden(f"bundled_{name}.txt", text.replace(str(TRACES), "TRACES"), width=120)


def test_they_are_small_and_say_nothing_of_the_machine() -> None:
    assert size_of(TRACES) <= LARGEST
    texts = [path for path in TRACES.rglob("*") if path.suffix in TEXTS]
    assert len(texts) > 30
    assert {path.name for path in texts if PATH.search(path.read_bytes())} == set()
    named = [path for path in TRACES.rglob("*.csv") if b'"Host Name"' in path.read_bytes()]
    assert named
    assert all(b'"127.0.0.1"' in path.read_bytes() for path in named), "ncu names the host of a remote run"


def test_nothing_but_data_is_kept() -> None:
    assert {path.suffix for path in TRACES.rglob("*") if path.is_file()} <= {*TEXTS, ".bin", ".gz"}


def test_pictures(tmp_path: Path) -> None:
    from tui_probe.cli.main import main

    assert main(["eval", "scheduling", "--svg", str(tmp_path / "x.svg")]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"x-parts.svg", "x-sms.svg", "x-durations.svg"}


def test_help_page_has_the_values_of_bundled_traces() -> None:
    page = help_page("evaluations")
    ours = {row.published.key: row.ours for name in BUNDLED for row in tui_probe.evaluate(name).compared}
    math = tui_probe.evaluate("traffic").tables["traffic"]["dram_ratio"][2]
    dmat = tui_probe.evaluate("memory").tables["memory"]["ratio"][3]
    figures = (f"{ours['share']:.1f} %", f"{ours['spread_shared']:.1f} %", f"{math:.0f}×", f"{dmat:.2f}×")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert [figure for figure in figures if not any(f"| {figure} |" in row for row in rows)] == []
