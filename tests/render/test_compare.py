"""Figures of two sides, their signs, and which of them is better."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.render.example import write_example
from tui_probe.cli.main import main
from tui_probe.render.comparison import Change
from tui_probe.render.figures import Better, Figure

RECORDED = Path(__file__).parents[1] / "data" / "h200" / "demo"
GOLDENS = Path(__file__).parent / "goldens" / "views"


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two traces of the same run, one of them of a simulated GPU."""
    monkeypatch.chdir(tmp_path)
    write_example(Path("one"))
    write_example(Path("other"), simulated=True)


def change(before: float | None, after: float | None, better: Better = "less") -> Change:
    return Change(*(Figure("x", "x", value, lambda number: f"{number:g} B", better) for value in (before, after)))


@pytest.mark.parametrize(("before", "after", "better", "said"), [
    (100, 50, "less", ("▼ -50 B", "-50.0 %", "better")),
    (50, 100, "less", ("▲ +50 B", "+100.0 %", "worse")),
    (50, 100, "more", ("▲ +50 B", "+100.0 %", "better")),
    (50, 100, "neither", ("▲ +50 B", "+100.0 %", "")),
    (50, 50, "less", ("same", "", "")),
    (0, 5, "less", ("▲ +5 B", "", "worse")),
    (None, 5, "less", ("", "", "")),
])  # fmt: skip
def test_a_change_has_a_sign_and_a_word(
    before: float | None, after: float | None, better: Better, said: tuple[str, str, str]
) -> None:
    pair = change(before, after, better)
    assert (pair.change_text, pair.share_text, pair.verdict) == said


@pytest.mark.parametrize("width", [80, 120])
def test_two_kernels(width: int, request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", f"{RECORDED}:coalesced", ":strided", "--width", str(width)]) == 0
    out = capfd.readouterr().out.replace(str(RECORDED), "TRACE")
    path = GOLDENS / f"compare-{width}.txt"
    if request.config.getoption("--write-goldens", default=False):
        path.write_text(out)
    assert max(map(len, out.splitlines()[3:])) <= width
    assert out.splitlines()[3:] == path.read_text().splitlines()[3:]


@pytest.mark.usefixtures("traces")
def test_two_traces_kernel_by_kernel(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "one", "other", "--format", "json"]) == 0
    document = json.loads(capfd.readouterr().out)
    figures = {(row["kernel"], row["figure"]): row for row in document["figures"]}
    times = figures["softmax_kernel", "launches"]
    assert (times["before"], times["after"], times["change"]) == (1, 1, 0)
    slowdown = next(row for key, row in figures.items() if key[1] == "slowdown")
    assert (slowdown["before"], slowdown["after"], slowdown["change"]) == (pytest.approx(1.2), None, None)
    cycles = next(row for key, row in figures.items() if key[1] == "running_cycles")
    assert cycles["verdict"] is None


@pytest.mark.usefixtures("traces")
def test_launches_and_csv(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "one:0@0", ":0@3", "--format", "csv"]) == 0
    rows = {row["figure"]: row for row in csv.DictReader(io.StringIO(capfd.readouterr().out))}
    assert "launches" not in rows
    change = float(rows["span_cycles"]["after"]) - float(rows["span_cycles"]["before"])
    assert float(rows["span_cycles"]["change"]) == pytest.approx(change)


@pytest.mark.usefixtures("traces")
def test_markdown(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "one:0", ":1", "--format", "md"]) == 0
    assert "| registers a thread | 18 | 38 | ▲ +20 | +111.1 % | worse |" in capfd.readouterr().out


def test_timelines_side_by_side(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["compare", f"{RECORDED}:4", ":5", "--view", "timeline", "--width", "100", "--height", "20"]
    assert main(words) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 20
    assert max(map(cell_len, lines)) <= 100
    assert lines[0] == f" A  Timeline of launch 4 of #4 matmul{' ' * 14} B  Timeline of launch 5 of #5 reduction"
    assert lines[2].count("SM 0") == 2
    assert main([*words, "--format", "csv"]) == 0
    letters = {line.partition(",")[0] for line in capfd.readouterr().out.splitlines()}
    assert letters == {"side", "A", "B"}
    assert main(["compare", f"{RECORDED}:4", ":5", "--view", "dmat"]) == 1
    assert "A has nothing to show as dmat" in capfd.readouterr().err


@pytest.mark.usefixtures("traces")
@pytest.mark.parametrize(("sides", "said"), [
    (("one", "one:0"), "a trace and a kernel cannot be compared"),
    ((":0", "one:0"), "name a trace before the colon"),
    (("one:0", ":99"), "no kernel is 99"),
    (("one:0@x", ":1"), "number of a launch"),
])  # fmt: skip
def test_what_cannot_be_compared(sides: tuple[str, str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *sides]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert said in err
