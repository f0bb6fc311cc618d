"""Runs by the name that ``run --name`` gave them."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from tests.trace.make import TraceWriter
from tui_probe.cli import arguments
from tui_probe.cli.arguments import address_of, run_name
from tui_probe.cli.main import main
from tui_probe.trace.locate import Address


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which ``trace`` is; two runs are named before, one after."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    arguments.user_settings.cache_clear()
    for name, trace, day in (("before", "a", 1), ("before", "b", 2), ("after", "c", 3)):
        write_named(Path("trace", trace), name, day)
    return tmp_path


def write_named(directory: Path, name: str, day: int, processes: tuple[str, ...] = (), pid: int = 4242) -> None:
    writer = TraceWriter(directory)
    writer.start(pid=pid)
    writer.kernel(0, f"kernel_of_{directory.name}")
    writer.launch(0)
    writer.exit()
    writer.run_json(
        name=name, started=f"2026-07-2{day}T10:00:00+00:00", processes=list(processes or [directory.name]), pid=4242
    )


def output(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capfd.readouterr().out


def test_name_is_the_newest_run_with_it_unless_a_path_has_it() -> None:
    assert address_of("before:0@3") == Address(Path("trace/b"), "0", 3)
    Path("before").mkdir()
    assert address_of("before").path == Path("before")


def test_commands_take_names(capfd: pytest.CaptureFixture[str]) -> None:
    for words in (["report", "before"], ["open", "before", "--no-ui"], ["show", "kernels", "before"]):
        assert "kernel_of_b" in output(capfd, *words)
    assert "summary" in output(capfd, "show", "before")
    assert main(["compare", "before", "after"]) == 1
    assert " A  before, trace/b\n B  after, trace/c\n" in capfd.readouterr().out
    listed = json.loads(output(capfd, "list", "before", "--format", "json"))
    assert [run["name"] for command in listed["commands"] for run in command["runs"]] == ["before", "before"]
    assert "name: before" in output(capfd, "list")


def test_report_of_a_name_has_all_processes_that_of_the_command_first(capfd: pytest.CaptureFixture[str]) -> None:
    for trace, pid in (("d", 7), ("e", 4242)):
        write_named(Path("trace", trace), "both", 4, ("d", "e"), pid)
    report = output(capfd, "report", "both")
    assert 0 < report.index("kernel_of_e") < report.index("kernel_of_d")
    assert address_of("both").path == Path("trace/e")


def test_typo_in_a_name_is_corrected(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "befor"]) == 4
    assert "befor is neither a path nor the name of a run: did you mean before?" in capfd.readouterr().err


@pytest.mark.parametrize("text", ["", "a/b", "a:0", "a@1", "-x", ".", "a b", "x" * 65])
def test_name_that_could_be_something_else_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not a valid run name"):
        run_name(text)
