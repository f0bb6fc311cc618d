"""Pictures of the documentation: recordings show frames in turn, and no picture loads anything."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.pictures.animation import animated

PICTURES = sorted((Path(__file__).parent / "pictures").glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_picture_is_xml_and_loads_nothing(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    assert "url(http" not in text.replace('"', "")
    assert "@import" not in text


def test_recording_shows_frames_one_after_another() -> None:
    frame = '<svg viewBox="0 0 10 5" xmlns="http://www.w3.org/2000/svg"><text>{}</text></svg>'
    recording = animated([(frame.format("first"), 1.0), (frame.format("second"), 3.0)])
    root = ElementTree.fromstring(recording)
    assert [text.text for text in root.iter(f"{SVG}text")] == ["first", "second"]
    rules = [style.text for style in root.iter(f"{SVG}style")]
    assert rules == [
        "@keyframes frame-0 { 0.000% { visibility: visible } 25.000% { visibility: hidden } }"
        " .frame-0 { animation: frame-0 4s step-end infinite }",
        "@keyframes frame-1 { 0% { visibility: hidden } 25.000% { visibility: visible } }"
        " .frame-1 { animation: frame-1 4s step-end infinite }",
    ]
