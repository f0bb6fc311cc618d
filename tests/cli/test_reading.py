"""How far a command is, on a terminal."""

from __future__ import annotations

import pytest

from tests.cli.conftest import ROOT
from tui_probe.cli.main import main
from tui_probe.cli.reading import Reading
from tui_probe.draw import units


def test_on_a_terminal_it_is_told_how_far_reading_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.isatty", lambda _: True)
    monkeypatch.setattr("tui_probe.cli.reading.PATIENCE", 0.0)
    with Reading() as reading:
        reading(0.25)
    assert capsys.readouterr().err == "\r[info] reading:  25%, 0 s left\x1b[K\r\x1b[K"
    monkeypatch.setattr("os.isatty", lambda _: False)
    with Reading() as reading:
        reading(0.25)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("share", "seconds", "words"), [(0.25, 10, ", 30 s left"), (1, 9, ", 0 s left"), (0.0, 9, ""), (0.01, 9, "")]
)
def test_how_long_the_rest_takes(share: float, seconds: float, words: str) -> None:
    assert units.left(share, seconds) == words


@pytest.mark.parametrize("words", [["show", "timeline"], ["compare"]], ids=lambda words: words[0])
def test_pages_tell_how_far_they_are(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tui_probe.cli.reading.os.isatty", lambda descriptor: descriptor == 2)
    monkeypatch.setattr("tui_probe.cli.reading.PATIENCE", 0.0)
    trace = f"{ROOT}/tests/data/h200/demo:saxpy"
    assert main([*words, trace, *([trace] if words[0] == "compare" else [])]) == 0
    assert "[info] reading: " in capsys.readouterr().err
