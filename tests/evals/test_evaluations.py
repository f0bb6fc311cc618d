"""Common behavior of all evaluations: they are found, explain themselves, and name what is missing."""

from __future__ import annotations

import ast
import json
import shlex
import sys
from pathlib import Path

import pytest

import tui_probe
from tests.evals.schedules import write_fill, write_two_slots
from tui_probe.cli.main import build_parsers, main
from tui_probe.errors import ChoiceError, TraceError, UsageError
from tui_probe.evals import evaluation as evaluation_module
from tui_probe.evals.answer import compare_published, published_values
from tui_probe.evals.evaluation import PROGRAMS_FOLDER, Setting, bundled_traces
from tui_probe.evals.inputs import CollectedRun, read_inputs, write_collected
from tui_probe.probekit.registry import probe_named

ROOT = Path(tui_probe.__file__).parent
NAMES = evaluation_module.evaluation_names()


@pytest.mark.parametrize("name", NAMES)
def test_an_evaluation_explains_itself(name: str) -> None:
    evaluation = evaluation_module.evaluation_named(name)
    assert evaluation.name == name
    assert len(evaluation.question) <= 100
    assert evaluation.reading
    assert all(probe_named(probe) is not None for probe in evaluation.probes)


@pytest.mark.parametrize("simulated", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_runs_can_be_given_on_the_command_line(name: str, simulated: bool) -> None:
    collections = evaluation_module.evaluation_named(name).collect(Setting(simulated=simulated))
    assert len({collection.name for collection in collections}) == len(collections)
    for collection in collections:
        parsed = build_parsers("run")[0].parse_args(["run", *collection.options, "--", *collection.argv])
        assert parsed.ncu or parsed.launches, f"{collection.name}: its launches go by a default"
        program = collection.argv[1] if len(collection.argv) > 1 else ""
        assert "{programs}" not in program or Path(program.replace("{programs}", str(PROGRAMS_FOLDER))).is_file()


FRAMEWORKS = {"numpy", "torch", "torchvision", "transformers", "triton", "tui_probe"}


@pytest.mark.parametrize("program", sorted(PROGRAMS_FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_program_imports_what_exists(program: Path) -> None:
    for node in ast.walk(ast.parse(program.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        package = node.module.partition(".")[0]
        if package in sys.stdlib_module_names or package in FRAMEWORKS:
            continue
        imported = ast.parse((PROGRAMS_FOLDER / f"{package}.py").read_text(encoding="utf-8"))
        names = {getattr(own, "name", "") for own in ast.walk(imported)}
        assigned = {own.id for own in ast.walk(imported) if isinstance(own, ast.Name)}
        assert {alias.name for alias in node.names} <= names | assigned


@pytest.mark.parametrize("name", NAMES)
def test_no_other_module_names_an_evaluation(name: str) -> None:
    others = [path for path in ROOT.rglob("*.py") if ROOT / "evals" / name not in path.parents]
    assert others
    assert not [path for path in others if f"tui_probe.evals.{name}" in path.read_text(encoding="utf-8")]


def test_evaluations_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed[: len(NAMES)]] == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_collecting_commands_are_listed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", name, "--explain", "--python", "/usr/bin/python3"]) == 0
    shown = capsys.readouterr().out
    for collection in evaluation_module.evaluation_named(name).collect(Setting()):
        (line,) = (line for line in shown.splitlines() if line.startswith(f"{collection.name}: "))
        command = shlex.split(line.partition(": ")[2])
        assert command[:2] == ["tui-probe", "run"]
        assert "{" not in line


def test_an_unknown_name() -> None:
    with pytest.raises(UsageError, match="did you mean scheduling"):
        tui_probe.evaluate("schedulign")


def test_bundled_traces_are_the_default_or_the_command_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tui_probe.evals.evaluation.FOLDER", tmp_path)
    with pytest.raises(ChoiceError, match="collect them with tui-probe eval scheduling --run"):
        tui_probe.evaluate("scheduling")
    write_two_slots_in(tmp_path / "traces" / "scheduling", "plain")
    assert bundled_traces(evaluation_module.evaluation_named("scheduling")) == tmp_path / "traces" / "scheduling"
    answer = tui_probe.evaluate("scheduling")
    assert answer.sources == ["traces included in tui-probe", "plain: GPU on paper, on_paper"]


def write_two_slots_in(folder: Path, name: str) -> None:
    write_two_slots(folder / name)
    write_collected(
        folder, {name: CollectedRun(name, "tui-probe run"), "gone": CollectedRun("gone", "x", "left out: no GPU")}
    )


def test_traces_excluded_when_collected_are_reported(tmp_path: Path) -> None:
    write_two_slots_in(tmp_path / "evals", "plain")
    answer = tui_probe.evaluate("scheduling", tmp_path / "evals")
    assert answer.notes == ["gone: left out: no GPU"]


def test_a_launch_and_a_result_file_stand_for_themselves(tmp_path: Path) -> None:
    write_two_slots(tmp_path / "t")
    (one,), _ = read_inputs([next((tmp_path / "t" / "result").iterdir())])
    assert [found.label for found in one.results("block_sched")] == ["launch 0"]
    (other,), _ = read_inputs([f"{tmp_path / 't'}:on_paper@0"])
    assert [found.label for found in other.results("block_sched")] == ["launch 0"]
    (none,), _ = read_inputs([f"{tmp_path / 't'}@7"])
    assert list(none.results("block_sched")) == []


def test_wrong_input_says_what_to_run(tmp_path: Path) -> None:
    write_two_slots(tmp_path / "t")
    (one,), _ = read_inputs([tmp_path / "t"])
    assert list(one.results("dmat")) == []
    assert one.no_result_reason("dmat").endswith("the kernel was probed with block_sched: run with -p dmat")
    (tmp_path / "notes.csv").write_text("a,b\n")
    with pytest.raises(TraceError, match=r"is not a trace\. To collect everything: tui-probe eval scheduling --run"):
        tui_probe.evaluate("scheduling", tmp_path / "notes.csv")


def test_published_figures_have_sources() -> None:
    for name in NAMES:
        for figure in published_values(name).values():
            assert figure.source
            assert figure.hardware
    with pytest.raises(KeyError, match="no such"):
        compare_published("scheduling", such=1.0)


def test_written_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_two_slots(tmp_path / "t")
    trace = str(tmp_path / "t")
    assert main(["eval", "scheduling", trace, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["evaluation"]) == ("tui-probe.eval", "scheduling")
    assert main(["eval", "scheduling", trace, "--csv", "--table", "sms"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main(["eval", "scheduling", trace, "--csv", "--figure", "parts"]) == 0
    assert capsys.readouterr().out.startswith("label,running,scheduling,ramp,tail")
    assert main(["eval", "scheduling", trace, "--figure", "nothing"]) == 2
    assert "it has: parts, sms" in capsys.readouterr().err
    assert main(["eval", "scheduling", trace, "--svg", str(tmp_path / "x.svg")]) == 0
    files = capsys.readouterr().out.split()
    assert files == [str(tmp_path / "x-parts.svg"), str(tmp_path / "x-sms.svg")]
    assert all(Path(file).read_text().startswith("<svg") for file in files)


def test_pictures_of_a_fill(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    write_fill(tmp_path / "t")
    assert main(["eval", "scheduling", str(tmp_path / "t"), "--figure", "sms", "--png", str(tmp_path / "a.png")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'a.png'}\n"
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
