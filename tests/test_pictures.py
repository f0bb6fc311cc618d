"""Pictures of the documentation: recordings show frames in turn, and no picture loads anything."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.style import Style
from rich.terminal_theme import TerminalTheme

from tests.pictures.animation import Frame, animated, decoded
from tui_probe.cli.main import build_parsers

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "pictures"
PICTURES = sorted(FOLDER.glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_picture_is_xml_and_loads_nothing(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    assert "url(http" not in text.replace('"', "")
    assert "@import" not in text
    assert not re.search(r"/(work|root|home)/", text), "a path of the machine where it was taken"


RECORDINGS = ("demo", "tour", "compare")
MAX_BYTES = 150_000
THEME = TerminalTheme((0, 0, 0), (255, 255, 255), [(0, 0, 0)] * 8)
TYPED = re.compile(r"'type:(tui-probe [^']*)'")


def test_recording_shows_frames_one_after_another() -> None:
    """Screens of 1 s and 3 s: their common line is stored once, and a viewer without animation sees the last."""
    frames = [Frame(("same", "first"), 1.0), Frame(("same", "last"), 3.0, "Enter")]
    recording = animated(frames, 20, "title", THEME)
    root = ElementTree.fromstring(recording)
    groups = {"".join(group.itertext()): group.get("class") for group in root.iter(f"{SVG}g")}
    assert groups.keys() == {"same", "first", "lastEnter", ""}
    rules = root.findtext(f"{SVG}style") or ""
    assert f".{groups['same']}{{" not in rules
    assert (
        f"{{0%{{visibility:visible}}25%{{visibility:hidden}}}}.{groups['first']}{{visibility:hidden;animation:" in rules
    )
    assert f"{{0%{{visibility:hidden}}25%{{visibility:visible}}}}.{groups['lastEnter']}{{animation:" in rules
    assert "4s step-end infinite" in rules
    assert "@media (prefers-reduced-motion:reduce){g{animation:none!important}}" in rules


def test_style_of_a_screen_continues_on_later_lines() -> None:
    first, second = decoded(["\x1b[1ma", "b\x1b[0m c"])
    assert [span.style.bold for line in (first, second) for span in line.spans if isinstance(span.style, Style)] == [
        True, True
    ]  # fmt: skip


@pytest.mark.parametrize("name", RECORDINGS)
def test_recording_is_small_and_moves(name: str) -> None:
    text = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert len(text.encode()) <= MAX_BYTES
    assert text.count("@keyframes ") > 10
    assert "<script" not in text
    assert f"pictures/{name}.svg" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


def test_recorded_commands_exist() -> None:
    """Commands of the recordings parse, and were recorded: their words are in the pictures."""
    script = (FOLDER / "record.sh").read_text(encoding="utf-8")
    commands = TYPED.findall(script)
    assert len(commands) >= 6
    pictures = [ElementTree.parse(FOLDER / f"{name}.svg").getroot() for name in RECORDINGS]
    shown = [text.text for picture in pictures for text in picture.iter(f"{SVG}text")]
    for command in commands:
        arguments = shlex.split(command)[1:]
        parsers = build_parsers(arguments[0])
        assert parsers[1] is not None, command
        parsers[0].parse_args(arguments)
        assert f"$ {command}" in shown
