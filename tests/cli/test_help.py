"""``tui-probe help``: the list of topics, a page, a word of the glossary."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.help.pages import NAMES
from tests.ui.terminal import Terminal
from tui_probe.cli.main import main
from tui_probe.probe_files.catalogue import known_probes
from tui_probe.probekit.registry import probe_named
from tui_probe.ui.help_text import help_page

if TYPE_CHECKING:
    from pathlib import Path


def test_topics_are_listed_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "Topics; to read one: tui-probe help TOPIC"
    assert [line.split()[0] for line in lines] == NAMES
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", NAMES)
def test_without_a_terminal_a_page_is_markdown(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", name]) == 0
    assert capsys.readouterr().out == help_page(name)


def test_file_names_are_topics(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("event.log", "EVENT_LOG"):
        assert main(["help", name]) == 0
        assert capsys.readouterr().out == help_page("event-log")


def test_an_unknown_topic_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "evnt-log"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    problem = "tui-probe: error: there is no help on 'evnt-log': did you mean event-log?"
    assert captured.err.startswith(f"{problem}\n\nTopics")
    assert main(["help", "show"]) == 2
    assert "(show is a command: tui-probe show --help)" in capsys.readouterr().err
    assert main(["help", "nvtx"]) == 2
    assert "it is a part of event-log" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["sector", "Sectors", "NVTX  range"])
def test_a_word_of_the_glossary(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "glossary", *word.split(" ")]) == 0
    out = capsys.readouterr().out
    assert out.lower().startswith(f"**{' '.join(word.lower().split()).removesuffix('s')}**: ")
    assert "\n\n" not in out


def test_a_word_that_the_glossary_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "glossary", "sektor"]) == 2
    assert capsys.readouterr().err.startswith("tui-probe: error: the glossary has no 'sektor': did you mean sector")
    with pytest.raises(SystemExit, match="2"):
        main(["help", "keys", "sector"])


def test_on_a_terminal_a_page_is_drawn_in_a_pager() -> None:
    command = [sys.executable, "-m", "tui_probe", "help", "glossary"]
    with Terminal(command, (80, 24), {"PAGER": "cat", "LC_ALL": "C.UTF-8"}) as terminal:
        assert terminal.wait_for_end() == 0
        sent = terminal.received.decode()
    assert "wavefront" in sent
    assert "**" not in sent
    assert "\x1b[1" in sent
    assert max(len(line) for line in terminal.text.split("\n")) <= 80


def test_help_on_ascii_terminal(tmp_path: Path) -> None:
    """Bullets and rules that rich draws are in ASCII, too."""
    command = [sys.executable, "-m", "tui_probe", "help", "limits"]
    with Terminal(command, (80, 24), {"PAGER": "cat", "PYTHONIOENCODING": "ascii", "HOME": str(tmp_path)}) as terminal:
        assert terminal.wait_for_end() == 0
        sent = bytes(terminal.received)
    assert sent.isascii()
    assert b"\\u" not in sent
    assert b" * " in sent


@pytest.mark.parametrize("name", [probe.name for probe in known_probes()])
def test_help_of_a_probe_has_its_introduction_and_values(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", name.replace("_", "-")]) == 0
    page = capsys.readouterr().out
    if name in NAMES:  # a topic of this name comes first
        assert page == help_page(name)
        return
    (probe,) = (probe for probe in known_probes() if probe.name == name)
    assert page.startswith(f"# {name}: {probe.title}\n\n{probe.source.splitlines()[0].removeprefix('#').strip()}")
    assert f"$ tui-probe run -p {name} -- COMMAND" in page
    known = probe_named(name)
    assert known is not None
    assert all(f"| `{metric.key}` |" in page for metric in known.metrics)


def test_help_of_a_probe_names_pages_about_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "bounds_check"]) == 0
    assert "`tui-probe help sanitizer`" in capsys.readouterr().out
