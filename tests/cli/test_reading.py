"""Progress of a command on a terminal."""

from __future__ import annotations

import re
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.cli.conftest import ROOT
from tests.importers.export import call, kernel, span, tables, write_export
from tui_probe.cli.import_command import with_tool
from tui_probe.cli.main import main
from tui_probe.cli.output import Progress
from tui_probe.draw import units
from tui_probe.errors import ImportFileError, UsageError


def test_progress_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("os.isatty", lambda _: True)
    monkeypatch.setattr("tui_probe.cli.output.PROGRESS_INTERVAL", 0.0)
    with Progress() as reading:
        reading(0.25)
    assert capsys.readouterr().err == "\r[info] reading:  25%, 0 s left\x1b[K\r\x1b[K"
    monkeypatch.setattr("os.isatty", lambda _: False)
    with Progress() as reading:
        reading(0.25)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("share", "seconds", "words"), [(0.25, 10, ", 30 s left"), (1, 9, ", 0 s left"), (0.0, 9, ""), (0.01, 9, "")]
)
def test_how_long_the_rest_takes(share: float, seconds: float, words: str) -> None:
    assert units.eta_suffix(share, seconds) == words


DEMO = f"{ROOT}/tests/data/h200/demo"
NCU = f"{ROOT}/tests/data/ncu/vec_metrics.csv"
COMMANDS = {
    "show": (["show", "timeline", f"{DEMO}:saxpy"], "reading"),
    "compare": (["compare", f"{DEMO}:saxpy", f"{DEMO}:saxpy"], "reading"),
    "report": (["report", DEMO], "reading"),
    "report results": (["report", DEMO, "--page", "results", "--format", "csv"], "reading"),
    "import ncu": (["import", "ncu", NCU, "--page", "metrics"], "reading"),
    "import nsys": (["import", "nsys", "EXPORT", "--page", "kernels"], "reading"),
    "import nsys ranges": (["import", "nsys", "EXPORT", "--page", "ranges"], "projecting ranges"),
    "import nsys rows": (["import", "nsys", "EXPORT", "--page", "kernels"], "writing"),
}


@pytest.fixture
def export(tmp_path: Path) -> str:
    """An export of Nsight Systems: 20 kernels, and a range about each."""
    numbers = range(1, 21)
    kernels = [kernel(1000 * number, 1000 * number + 500, number) for number in numbers]
    calls = [call(100 * number, 100 * number + 10, number) for number in numbers]
    ranges = [span(100 * number, 100 * number + 50, "step") for number in numbers]
    return str(write_export(tmp_path / "x.sqlite", tables(kernels, calls, ranges)))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal on stderr only, where everything takes too long."""
    monkeypatch.setattr("tui_probe.cli.output.os.isatty", lambda descriptor: descriptor == 2)
    monkeypatch.setattr("tui_probe.cli.output.PROGRESS_INTERVAL", 0.0)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_tell_how_far_they_are(name: str, export: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, doing = COMMANDS[name]
    assert main([export if word == "EXPORT" else word for word in words]) == 0
    err = capsys.readouterr().err
    assert re.search(rf"\[info\] {doing}: +\d+%, \d+ s left", err)
    assert err.endswith("\r\x1b[K"), "the line is gone in the end"


def test_output_on_same_terminal_clears_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tui_probe.cli.output.os.isatty", lambda _: True)
    monkeypatch.setattr("tui_probe.cli.output.PROGRESS_INTERVAL", 0.0)
    with Progress() as reading:
        reading(0.25)
        assert next(lines := reading.erase_before(["one", "two"])) == "one"
        reading(0.5)
        assert list(lines) == ["two"]
    assert capsys.readouterr().err == "\r[info] reading:  25%, 0 s left\x1b[K\r\x1b[K"


@pytest.mark.parametrize("name", ["report results", "import ncu", "import nsys"])
def test_ctrl_c_ends_them_in_words(
    name: str, export: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Progress, "__call__", Mock(side_effect=KeyboardInterrupt))
    assert main([export if word == "EXPORT" else word for word in COMMANDS[name][0]]) == 130
    assert capfd.readouterr().err == "tui-probe: interrupted\n"


def test_import_finds_out_which_tool_wrote_a_file(tmp_path: Path) -> None:
    ncu, other, packed = tmp_path / "n.csv", tmp_path / "o.csv", tmp_path / "p.csv.xz"
    ncu.write_text('"ID","Process ID","Kernel Name"\n')
    other.write_text("words\n")
    packed.write_bytes(b"\xfd7zXZ\0rest of it")
    assert with_tool([str(ncu)]) == ["ncu", str(ncu)]
    assert with_tool(["--page", "kernels", "nsys", "x"]) == ["nsys", "--page", "kernels", "x"]
    with pytest.raises(UsageError, match=r"import ncu .* or tui-probe import nsys"):
        with_tool([str(other)])
    with pytest.raises(ImportFileError, match="compressed; decompress it with xz -d"):
        with_tool([str(packed)])
