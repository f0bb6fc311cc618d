"""Slowdown and added registers: any kernels with any probes, by a study."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tui_probe
from tests.golden import golden
from tests.trace.make import TraceWriter
from tui_probe.cli.main import main
from tui_probe.draw.spans import plain
from tui_probe.errors import TraceError, UsageError
from tui_probe.evals.answer import AnswerDocument
from tui_probe.evals.evaluation import Setting, evaluation_named
from tui_probe.evals.inputs import CollectedRun, write_collected
from tui_probe.evals.overhead.costs import PUBLISHED_STUDY

STUDY = """
probes = ["block_sched", "dmat"]
repeats = 2

[[kernel]]
name = "flash attention"
group = "Triton"
kernel = "attention"
command = ["{python}", "{programs}/kernels.py", "attn"]
modules = ["torch"]

[[kernel]]
name = "my sum"
command = ["./sum", "--size=3"]
tools = ["sum"]
"""


def write(
    directory: Path, probe: str, slowdowns: tuple[float, ...], registers: tuple[int, int], spills: int = 0
) -> Path:
    """One repeat: a fill next to the kernel that is meant, which takes longer."""
    writer = TraceWriter(directory)
    writer.start(device="NVIDIA H200", command="kernels.py")
    for index, (name, time) in enumerate((("fill", 0.5), ("attention_forward", 2.0))):
        writer.kernel(index, name, registers=registers if index else (10, 90), spills=(0, spills))
        for slowdown in slowdowns:
            launch = writer.launch(index)
            writer.benchmark(index, launch, original=time, probed=time * slowdown)
    writer.exit()
    writer.run_json(probe=probe)
    return directory


def collected(folder: Path) -> Path:
    write(folder / "flash_attention.block_sched.1", "block_sched", (1.0, 1.02, 1.04), (40, 42))
    write(folder / "flash_attention.block_sched.2", "block_sched", (1.06,), (40, 42))
    write(folder / "flash_attention.dmat.1", "dmat", (6.0,), (40, 60), spills=128)
    write(folder / "my_sum.dmat.1", "dmat", (2.0,), (20, 25))
    runs = {path.name: CollectedRun(path.name, "tui-probe run") for path in sorted(folder.iterdir())}
    runs["my_sum.block_sched.1"] = CollectedRun("my_sum.block_sched.1", "x", "skipped: sum is not on PATH")
    write_collected(folder, runs)
    return folder


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def test_repeats_are_taken_together_and_rows_are_in_the_order_of_the_study(tmp_path: Path, study: Path) -> None:
    answer = tui_probe.evaluate("overhead", [collected(tmp_path / "c"), study])
    table = answer.tables["overhead"]
    assert table["kernel"].tolist() == ["flash attention", "my sum"]
    assert table["group"].tolist() == ["Triton", ""]
    assert table["time_ms"].tolist() == [2.0, 2.0], "of the longest kernel that is meant"
    assert table["block_sched_slowdown"][0] == pytest.approx((1.02 + 1.06) / 2)
    assert table["block_sched_added"][0] == 2
    assert table["dmat_added"].tolist() == [20, 5]
    (repeats, spread) = (answer.tables["costs"][key][0] for key in ("repeats", "spread"))
    assert (repeats, spread) == (2, pytest.approx(0.04 / 1.04))
    assert answer.notes == ["my_sum.block_sched.1: skipped: sum is not on PATH"]


def test_means_with_and_without_rows_that_spill(tmp_path: Path, study: Path) -> None:
    answer = tui_probe.evaluate("overhead", [collected(tmp_path / "c"), study])
    means = {row["probe"]: row for row in answer.tables["means"].records()}
    assert (means["dmat"]["slowdown"], means["dmat"]["slowdown_calm"]) == (4.0, 2.0)
    assert (means["dmat"]["added"], means["dmat"]["added_calm"], means["dmat"]["spilling"]) == (12.5, 5.0, 1)
    assert [row["kernel"] for row in answer.tables["spills"].records()] == ["flash attention"]


def test_published_means_are_compared_only_with_published_kernels(tmp_path: Path, study: Path) -> None:
    answer = tui_probe.evaluate("overhead", [collected(tmp_path / "c"), study])
    ours = {figure.published.key: figure.ours for figure in answer.compared}
    assert ours == {"light_slowdown": pytest.approx(1.04), "light_registers": 2.0, "dmat_slowdown": 6.0}


def test_overhead_text(tmp_path: Path, study: Path) -> None:
    answer = tui_probe.evaluate("overhead", [collected(tmp_path / "c"), study])
    text = "\n".join(plain(line).rstrip() for line in AnswerDocument(answer).lines(100)) + "\n"
    golden("overhead.txt", text.replace(str(tmp_path), "/t"), width=100)


def test_a_trace_of_any_name_is_a_row(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("overhead", write(tmp_path / "some_trace", "block_sched", (1.5,), (8, 9)))
    assert answer.tables["overhead"]["kernel"].tolist() == ["attention_forward"]
    assert answer.tables["overhead"]["block_sched_slowdown"].tolist() == [1.5]
    assert all(figure.ours is None for figure in answer.compared)


def test_a_kernel_that_was_not_timed_says_why(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("overhead", write(tmp_path / "t", "block_sched", (), (8, 9)))
    (row,) = answer.tables["costs"].records()
    assert (row["slowdown"], row["added"]) == (None, 80)
    assert answer.notes == ["fill, block_sched: not timed: run with --benchmark"]


def test_nothing_that_costs_says_what_to_run(study: Path) -> None:
    with pytest.raises(TraceError, match=r"no trace was named\. .*: tui-probe eval overhead --run"):
        tui_probe.evaluate("overhead", study)


def test_study_commands(study: Path) -> None:
    collect = evaluation_named("overhead").collect
    runs = collect(Setting(files=(study,)))
    assert [run.name for run in runs] == [
        f"{kernel}.{probe}.{repeat}"
        for repeat in (1, 2)
        for kernel in ("flash_attention", "my_sum")
        for probe in ("block_sched", "dmat")
    ]
    first, _, other, *_ = runs
    assert first.options[:5] == ("-p", "block_sched", "-k", "attention", "--benchmark")
    assert "-k" not in other.options
    assert (first.modules, other.tools, other.argv) == (("torch",), ("sum",), ("./sum", "--size=3"))
    with pytest.raises(UsageError, match="pass only one study"):
        collect(Setting(files=(study, study)))


def test_the_small_study_starts_one_program_for_each_probe() -> None:
    runs = evaluation_named("overhead").collect(Setting())
    assert [run.name for run in runs] == [f"four.{name}.1" for name in evaluation_named("overhead").probes]
    assert runs[0].options[3].startswith("matrix_product:attention_forward:max_pool2d:")
    assert runs[0].argv[2:] == ("gmm", "attn", "max_pool", "batch_norm")


def test_rows_of_one_run_are_distinguished_by_kernel(tmp_path: Path) -> None:
    study = (
        STUDY.replace("modules =", 'run = "both"\nmodules =')
        + """
[[kernel]]
name = "fill"
run = "both"
kernel = "fill"
command = ["{python}", "{programs}/kernels.py", "attn"]
"""
    )
    (tmp_path / "s.toml").write_text(study)
    names = [run.name for run in evaluation_named("overhead").collect(Setting(files=(tmp_path / "s.toml",)))]
    assert names[:4] == ["both.block_sched.1", "both.dmat.1", "my_sum.block_sched.1", "my_sum.dmat.1"]
    trace = write(tmp_path / "both.dmat.1", "dmat", (3.0,), (40, 60))
    table = tui_probe.evaluate("overhead", [trace, tmp_path / "s.toml"]).tables["overhead"]
    assert table["kernel"].tolist() == ["flash attention", "fill"]
    assert table["dmat_added"].tolist() == [20, 80]


def test_the_published_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "overhead", "published.study.toml", "--explain"]) == 0
    assert "\nmax_pooling.dmat.3: tui-probe run" in capsys.readouterr().out
    names = {
        run.name.partition(".")[0] for run in evaluation_named("overhead").collect(Setting(files=(PUBLISHED_STUDY,)))
    }
    assert {"GEMM", "stream_K_GEMM", "convolution", "flash_attention", "batch_norm", "max_pooling"} <= names
    assert len(names) == 13


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("probes = [", "is not a study: "),
        ('probes = ["dmat"]', "'kernel' is missing"),
        (STUDY.replace("repeats = 2", "repeats = 0"), "“repeats” is 0, not a number from 1 to 100"),
        (STUDY.replace("my sum", "flash attention"), "two kernels are named flash attention"),
        (STUDY.replace("group =", "gruop ="), "a kernel has unknown keys: gruop"),
        (STUDY.replace('["./sum", "--size=3"]', '"./sum"'), "command is './sum', not a list of strings"),
        (STUDY.replace("tools =", 'run = "flash attention"\ntools ='), "have the same run name"),
        (
            STUDY.replace("tools =", 'run = "x"\ntools =').replace("modules =", 'run = "x"\nmodules ='),
            "are in the run x but have different commands",
        ),
        (STUDY.replace('["block_sched", "dmat"]', "[]"), "“kernel” or “probes” is missing"),
    ],
)
def test_a_broken_study(tmp_path: Path, text: str, wrong: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(text)
    with pytest.raises(TraceError) as error:
        evaluation_named("overhead").collect(Setting(files=(path,)))
    assert str(error.value).startswith(str(path))
    assert wrong in str(error.value)


def test_a_study_is_collected_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, natives: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TUI_PROBE_NATIVE", str(natives))
    command = '["{python}", "{programs}/fill.py", "--elements", "4096", "--driver-only", "--times", "0", "plain"]'
    (tmp_path / "s.toml").write_text(
        f'probes = ["block_sched"]\nrepeats = 2\n[[kernel]]\nname = "my fill"\nkernel = "fill_"\ncommand = {command}\n'
    )
    arguments = [
        "eval",
        "overhead",
        str(tmp_path / "s.toml"),
        "--run",
        "--sim",
        "--out",
        str(tmp_path / "out"),
        "--json",
    ]
    assert main(arguments) == 0
    (row,) = json.loads(capfd.readouterr().out)["tables"]["overhead"]
    assert row["kernel"] == "my fill"
    assert row["block_sched_added"] >= 0
    assert row["block_sched_slowdown"] is None, "the simulated GPU has no times"
    assert not list((tmp_path / "out").glob("*/result/*.bin"))
    assert main(arguments) == 0
    assert "already collected" in capfd.readouterr().err
