"""Collecting: through ``run`` on the simulated GPU, once, resumable; what is missing is said."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest

from tui_probe.cli.evaluation_run import missing_requirement, run_one
from tui_probe.cli.main import main
from tui_probe.errors import TraceError
from tui_probe.evals.evaluation import Collection, Setting
from tui_probe.evals.inputs import CollectedRun, read_inputs, write_collected

SCHEDULING = ["eval", "scheduling", "--run", "--sim"]


@pytest.fixture
def folder(tmp_path: Path, natives: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TUI_PROBE_NATIVE", str(natives))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "out"


def test_traces_are_collected_once_and_answered(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*SCHEDULING, "--only", "plain", "--out", str(folder), "--json"]
    assert main(command) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["tables"]["schedules"][0]["blocks"] == 32
    log = (folder / "plain" / "event.log").stat().st_mtime_ns
    assert main(command) == 0
    assert (folder / "plain" / "event.log").stat().st_mtime_ns == log
    record = json.loads((folder / "collected.json").read_text())
    assert record["runs"]["plain"]["problem"] is None
    assert sorted(path.name for path in folder.iterdir()) == ["collected.json", "plain", "plain.log"]


def test_all_ways_to_fill_run_on_the_simulated_gpu(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SCHEDULING, "--jobs", "2", "--out", str(folder), "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)["tables"]
    assert [row["trace"] for row in tables["schedules"]] == ["plain", "persistent"]
    assert [row["blocks"] for row in tables["schedules"]] == [32, 8]
    assert [row["variant"] for row in tables["durations"]] == ["plain", "memset", "persistent"]
    written = (folder / "durations" / "stdout.log").read_text().splitlines()
    assert [json.loads(line)["right"] for line in written] == [True, True, True]


def test_failing_program_is_reported(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*SCHEDULING, "--only", "plain", "--out", str(folder), "--python", "/bin/false"]) == 4
    errors = capfd.readouterr().err
    assert f"failed with exit status 1; see {folder}/plain.log" in errors
    assert "contains no trace (plain: failed" in errors


def test_words_that_do_not_go_together(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SCHEDULING, "--only", "nothing", "--out", str(folder)]) == 2
    assert main(["eval", "scheduling", "--out", str(folder)]) == 2
    assert main(["eval", "scheduling", str(folder.parent), "--run", "--sim"]) == 2
    errors = capsys.readouterr().err
    assert "--only nothing: not a run; use one of" in errors
    assert "--out and --only require --run" in errors
    assert "--run collects traces and accepts only files as arguments" in errors


def test_missing_traces_are_excluded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))

    def why(collection: Collection, python: str = sys.executable, *, simulated: bool = False) -> str | None:
        return missing_requirement(collection, Setting(simulated=simulated), python)

    absent = Collection("a", (), modules=("no_such_module",))
    assert f"{sys.executable} has no module no_such_module" in str(why(absent))
    assert "/bin/false has no module no_such_module" in str(why(absent, "/bin/false"))
    assert "ncu is not on PATH" in str(why(Collection("a", (), tools=("ncu",))))
    assert "simulated GPU" in str(why(Collection("a", (), gpu=True), simulated=True))
    assert why(Collection("a", (), modules=("json",))) is None


@pytest.mark.parametrize(("keeps", "file"), [("output", "a.txt"), ("ncu", "a.csv")])
def test_other_output_is_kept_as_a_file(
    keeps: Literal["output", "ncu"], file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instead of ``run`` a program that writes what ncu would."""

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        folder = Path(command[command.index("--tracedir") + 1])
        folder.mkdir()
        (folder / "Nov22_1.ncu.csv").write_text("ID\n")
        options["stdout"].write(b"words\n")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("tui_probe.cli.evaluation_run.subprocess.run", run)
    collection = Collection("a", ("true",), output_kind=keeps)
    assert run_one(collection, tmp_path, argparse.Namespace(sim=False, python="python")) is None
    assert (tmp_path / file).read_text() == ("words\n" if keeps == "output" else "ID\n")
    write_collected(tmp_path, {"a": CollectedRun("a", "x", None, collection.output_name)})
    (found,), _ = read_inputs([tmp_path])
    assert (found.label, found.path, found.trace) == ("a", tmp_path / file, None)


def test_a_record_that_leads_out_of_its_folder_is_refused(tmp_path: Path) -> None:
    write_collected(tmp_path, {"a": CollectedRun("a", "x", None, "../secret")})
    with pytest.raises(TraceError, match="is outside of this directory"):
        read_inputs([tmp_path])
