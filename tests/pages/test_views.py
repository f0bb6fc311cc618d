"""The views of kernels as text at the sizes that people have, and as data."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.pages.example import write_example
from tests.pages.timelines.drawing import golden_sizes
from tests.trace.make import EPOCH_NS, TraceWriter
from tui_probe.cli.main import main
from tui_probe.draw.spans import plain
from tui_probe.draw.view import Document, View, no_progress
from tui_probe.pages.view_output import run_commands, text_lines, view_lines
from tui_probe.pages.views import kind_of
from tui_probe.pages.views.launches import Launches, LaunchLine
from tui_probe.pages.views.process import ProcessLogView
from tui_probe.probekit.probe_results import choose_target
from tui_probe.toolchain import Tool
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Trace

DATA = Path(__file__).parents[1] / "data"
OF_KERNELS = {"summary": "4", "ptx": "0", "diff": "4", "sass": "0", "process": "4", "launches": "4"}
"""The views made here, and the kernel of the recorded run that each shows."""


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    """A run on an H200, with machine code for one kernel as nvdisasm 13 prints it."""
    copy = tmp_path / "demo"
    shutil.copytree(DATA / "h200" / "demo", copy)
    folder = next(copy.glob("kernel/0_*"))
    for variant in ("pruned", "probed"):
        (folder / f"{variant}.bin").write_bytes(b"machine code")

    def told(_: Tool, cubin: Path) -> str:
        return (DATA / "sass" / f"zero_fill.{cubin.stem}.txt").read_text()

    tool = Tool(Path("nvdisasm"), (13, 0), "13.0.0")
    monkeypatch.setattr("tui_probe.pages.code.kernel_sass.find_disassembler", lambda: tool)
    monkeypatch.setattr("tui_probe.pages.code.kernel_sass.disassemble", told)
    return open_trace(copy)


@pytest.fixture
def benchmarked(tmp_path: Path) -> Trace:
    """Kernels of every outcome, and one that was timed."""
    write_example(tmp_path / "example")
    return open_trace(tmp_path / "example")


def opened(trace: Trace, name: str, kernel: str, commands: str = "") -> View:
    choice = choose_target(trace, kind_of(name), kernel)
    assert choice.missing_reason is None
    view = kind_of(name).open(choice.source, no_progress)
    run_commands(view, [word for word in commands.split(",") if word], (120, 40))
    return view


def first_screen(view: View, size: tuple[int, int], *, ascii_only: bool = False) -> str:
    lines = list(text_lines(view_lines(view, *size, ascii_only=ascii_only)))
    assert len(lines) <= size[1]
    return "".join(f"{line}\n" for line in lines)


def golden_first_screen(name: str, view: View) -> None:
    golden_sizes(name, lambda size, ascii_only: first_screen(view, size, ascii_only=ascii_only), is_drawing=False)


@pytest.mark.parametrize("name", OF_KERNELS)
def test_a_view(recorded: Trace, name: str) -> None:
    golden_first_screen(f"views/{name}", opened(recorded, name, OF_KERNELS[name]))


def test_the_summary_of_a_kernel_that_was_timed(benchmarked: Trace) -> None:
    view = opened(benchmarked, "summary", "0")
    golden_first_screen("views/summary-timed", view)
    percentiles = view.record()["distributions"]["slowdown"]
    assert (percentiles["count"], percentiles["p0"], percentiles["p50"], percentiles["p100"]) == pytest.approx(
        (7, 1.05, 1.2, 1.35)
    )


def test_a_kernel_that_was_not_probed_says_why_and_what_to_do(benchmarked: Trace) -> None:
    text = "\n".join(text_lines(view_lines(opened(benchmarked, "summary", "2"), 100, None)))
    assert "no PTX in image" in text
    assert "TORCH_CUDA_ARCH_LIST" in text
    for name in ("ptx", "diff", "sass", "process"):
        missing = choose_target(benchmarked, kind_of(name), "2").missing_reason
        assert missing is not None
        assert "no PTX in image" in missing


@pytest.mark.parametrize("name", OF_KERNELS)
def test_data_is_json_and_its_csv_has_headings(recorded: Trace, name: str) -> None:
    view = opened(recorded, name, OF_KERNELS[name])
    assert json.loads(json.dumps(view.record(), allow_nan=False))
    heading, *rows = view.cells()
    assert rows
    assert all(len(row) == len(heading) for row in rows)


def test_the_diff_counts_and_names_what_was_added(recorded: Trace) -> None:
    view = opened(recorded, "diff", "4")
    record = view.record()
    assert record["exact"]
    assert set(record["registers_added"]) == {"b64", "b32", "pred"}
    added = [line for line in record["lines"] if line["change"] == "added"]
    assert {line["probe"] for line in added} == {"block_sched", "parameter"}
    probed = next(recorded.directory.glob("kernel/4_*/probed.ptx")).read_text()
    assert sum(line["probe"] == "block_sched" for line in added) == probed.count("// tui-probe: block_sched")


def test_folding_shows_and_hides_what_did_not_change(recorded: Trace) -> None:
    view = opened(recorded, "diff", "4")
    assert isinstance(view, Document)
    folded = list(map(plain, view.lines(120)))
    run_commands(view, ["fold"], (120, 40))
    unfolded = list(map(plain, view.lines(120)))
    assert any("unchanged lines" in line for line in folded)
    assert not any("unchanged lines" in line for line in unfolded)
    assert len(unfolded) > len(folded)


def test_the_level_of_ptx_is_which_text(recorded: Trace) -> None:
    shown = [opened(recorded, "ptx", "4", ",".join(["level"] * presses)) for presses in range(3)]
    heads = [plain(view.lines(80)[0]).split()[:3] for view in shown if isinstance(view, Document)]
    assert heads == [["PTX:", "line", "probed.ptx"], ["PTX:", "pruned.ptx"], ["PTX:", "line", "probed.ptx"]]


def test_lines_of_the_probed_text_have_the_number_that_other_pages_name(recorded: Trace) -> None:
    """Lines of the probe have none."""
    view = opened(recorded, "ptx", "4")
    assert isinstance(view, Document)
    pruned = next(recorded.directory.glob("kernel/4_*/pruned.ptx")).read_text().split("\n")
    rows = [plain(line) for line in view.lines(200)[1:]]
    assert any(row[10] == "+" for row in rows)
    for own, row in enumerate(rows, 1):
        assert int(row[5:10]) == own
        number, sign, text = row[:5].strip(), row[10], row[11:].split("//")[0].split()
        assert bool(number) == (sign != "+")
        assert sign != " " or text == pruned[int(number) - 1].split("//")[0].split()


def test_sass_counts_instructions_by_class(recorded: Trace) -> None:
    counts = opened(recorded, "sass", "0").record()["counts"]
    assert counts["store"] == {"pruned": 1, "probed": 3}
    assert counts["all"]["probed"] > counts["all"]["pruned"]


def test_without_nvdisasm_it_says_what_to_install(recorded: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_probe.pages.code.kernel_sass.find_disassembler", lambda: None)
    missing = choose_target(recorded, kind_of("sass"), "0").missing_reason
    assert missing is not None
    assert "nvidia-cuda-nvdisasm" in missing


def test_launches_have_the_parameters_of_the_log_in_any_order(benchmarked: Trace) -> None:
    view = opened(benchmarked, "launches", "0", "reverse")
    launches = view.record()["launches"]
    assert [row["launch"] for row in launches] == list(range(6, -1, -1))
    assert launches[0]["parameters"] == [0x7F0000000000, 0x10]
    by_blocks = opened(benchmarked, "launches", "1", "order").record()["launches"]
    assert [row["grid"][0] for row in by_blocks] == [4, 8, 8]


# -- the command


def test_show_writes_what_the_view_says(recorded: Trace, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "diff", str(recorded.directory), "--kernel", "matm.l", "--width", "100"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert out.splitlines() == list(text_lines(view_lines(opened(recorded, "diff", "4"), 100, None)))


def test_show_says_what_is_missing_and_what_there_is(benchmarked: Trace, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "diff", str(benchmarked.directory), "-k", "sm90_xmma"]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "page diff of #2 sm90_xmma_gemm_f16 has no data: no PTX in image" in err
    assert "summary     5 of 5 kernels" in err


def test_explanation_is_below_the_view(recorded: Trace, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "diff", str(recorded.directory), "-k", "4", "--explain", "--ascii"]) == 0
    out = capfd.readouterr().out
    assert out.isascii()
    assert out.index("ld.param") < out.index("Diff: pruned and probed PTX side by side")
    assert main(["show", "diff", str(recorded.directory), "-k", "4", "--explain", "--format", "json"]) == 0
    assert json.loads(capfd.readouterr().out)


def test_show_without_a_view_lists_them(benchmarked: Trace, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["show"]) == 0
    assert "diff        kernel         pruned and probed PTX" in capfd.readouterr().out
    assert main(["show", str(benchmarked.directory)]) == 0
    out = capfd.readouterr().out
    assert "launches    5 of 5 kernels" in out
    assert "sass        no data: " in out


@pytest.mark.parametrize(("words", "status", "said"), [
    (["nonesuch", "."], 2, "there is no page 'nonesuch'. Pages: kernels, summary, "),
    (["sumary", "TRACE"], 2, "there is no page 'sumary': did you mean summary?"),
    (["kernels", "TRACE", "--kernel", "0"], 2, "kernels is a page of a whole trace; omit the kernel"),
    (["kernels", "TRACE", "--svg", "x.svg"], 2, "kernels is a page of a whole trace; pictures"),
    (["summary", "/nowhere"], 4, "does not exist"),
    (["summary", "TRACE", "--kernel", "99"], 1, "no kernel is named 99"),
    (["summary", "TRACE", "--kernel", "regex:("], 1, "regex:(: not a regular expression"),
    (["summary", "TRACE", "--launch", "99"], 1, "there is no launch 99"),
    (["summary", "TRACE", "--launch", "0", "--kernel", "1"], 1, "launch 0 is a launch of kernel #0"),
    (["launches", "TRACE", "--do", "colour"], 1, "it has order (sort by blocks), reverse"),
])  # fmt: skip
def test_unavailable_views(
    benchmarked: Trace, words: list[str], status: int, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", *(str(benchmarked.directory) if word == "TRACE" else word for word in words)]) == status
    out, err = capfd.readouterr()
    assert out == ""
    assert said in err


def test_pictures(
    recorded: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    svg = tmp_path / "diff.svg"
    assert main(["show", "diff", str(recorded.directory), "--svg", str(svg), "--height", "20"]) == 0
    assert "<svg" in svg.read_text()
    assert capfd.readouterr().out == f"{svg}\n"
    nowhere = tmp_path / "no folder" / "x.svg"
    assert main(["show", "diff", str(recorded.directory), "--svg", str(nowhere)]) == 1
    assert f"{nowhere}: No such file or directory; pass a writable file" in capfd.readouterr().err
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["show", "diff", str(recorded.directory), "--png", str(tmp_path / "x.png")]) == 1
    assert "pip install 'tui-probe[png]'" in capfd.readouterr().err


def test_a_hundred_thousand_launches_cost_what_is_in_sight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = TraceWriter(tmp_path / "long")
    writer.start()
    writer.kernel(0, "busy")
    with writer.log.open("a") as log:
        log.writelines(
            f"[exec] {EPOCH_NS + n} param 7f00 {n:x}\n"
            f"[exec] grid {n % 7 + 1} 1 1 block 32 1 1 shared 0 kernel 0 launch {n} stream 0\n"
            "[exec] grid 8 warp  1 probe 16 total 128\n[exec] probe-mem 128 (bytes)\n[exec] succeed 0\n"
            for n in range(100_000)
        )
    view = opened(open_trace(writer.directory), "launches", "0", "order,reverse")
    assert isinstance(view, Launches)
    lines = view.lines(120)
    made = 0
    row = view.row

    def count(place: int) -> LaunchLine:
        nonlocal made
        made += 1
        return row(place)

    monkeypatch.setattr(view, "row", count)
    shown = [plain(line) for line in lines[50_000:50_040]]
    assert made == 40
    assert len(lines) == 100_001
    assert len(shown) == 40
    assert view.row(0).launch.grid == (7, 1, 1)
    assert plain(lines[1]).split()[-2:] == ["7f00", f"{view.row(0).launch.number:x}"]


def test_long_lines_of_a_log_are_folded() -> None:
    command = "ptxas -v -arch=sm_90 trace/kernel/0_4a/pruned.ptx -o trace/kernel/0_4a/pruned.bin"
    view = ProcessLogView("process.log", ["short", command])
    assert view.lines(100)
    assert view.commands() == {}
    assert [plain(line) for line in view.lines(40)] == [" short", f" {command}"]
    assert view.commands() == {"fold": "fold long lines"}
    view.press("fold")
    folded = [plain(line) for line in view.lines(40)]
    assert max(map(len, folded)) <= 40
    assert " ".join(line.strip() for line in folded[1:]) == command
    again = ProcessLogView("process.log", [command])
    again.take_over(view)
    assert len(again.lines(40)) == len(folded) - 1
