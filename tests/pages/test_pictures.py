"""Pictures: every drawing as a PNG that shows something, every view as SVG that is XML."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.pages.test_recorded import PLANTED
from tests.recorded import H200, SIMULATED, unpacked
from tui_probe.cli.main import main

DRAWN = {
    "timeline": SIMULATED / "block_sched", "dmat": H200 / "dmat", "progress": H200 / "attention_progress",
}  # fmt: skip
SIGNATURE = b"\x89PNG\r\n\x1a\n"
WIDTH, HEIGHT = 1680, 960
"""Pixels of a drawing."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pictures")


def pixels(path: Path) -> Any:
    """Of a PNG, of shape (rows, columns, 3 or 4); matplotlib is an extra."""
    pytest.importorskip("matplotlib")
    assert path.read_bytes().startswith(SIGNATURE)
    return importlib.import_module("matplotlib.image").imread(path)


def written(name: str, folder: Path, *words: str) -> None:
    trace = unpacked(DRAWN.get(name, SIMULATED / PLANTED[name]), folder)
    kernel = ["--kernel", "4"] if trace == folder / "h200" / "dmat" else []
    assert main(["show", name, str(trace), *kernel, *words]) == 0


@pytest.mark.parametrize("name", DRAWN)
def test_a_drawing_as_png(name: str, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "out.png"
    written(name, folder, "--png", str(path))
    image = pixels(path)
    assert image.shape[:2] == (HEIGHT, WIDTH)
    inner = image[HEIGHT // 4 : -HEIGHT // 4, WIDTH // 4 : -WIDTH // 4, :3]
    assert inner.std() > 0.01, "what is inside the axes is not one colour"


def test_a_text_as_png(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "out.png"
    written("ptx", folder, "--png", str(path), "--width", "100", "--height", "30")
    image = pixels(path)
    assert image.shape[1] / image.shape[0] == pytest.approx(100 * 0.085 / (30 * 0.19), rel=0.02)
    assert image[:, :, :3].std() > 0.01
    assert image[0, 0, :3].mean() < 0.2, "dark ground"


def test_both_sides_of_a_comparison_as_png(folder: Path, tmp_path: Path) -> None:
    """Two drawings next to each other, as the screen exports them."""
    pytest.importorskip("matplotlib")
    views = importlib.import_module("tests.pages.test_recorded")
    adjacent = importlib.import_module("tui_probe.pages.paired_drawings")
    picture = importlib.import_module("tui_probe.draw.picture")
    sides = [views.source_of(SIMULATED / "block_sched", folder, launch=launch) for launch in (0, 1)]
    picture.write_png(tmp_path / "out.png", adjacent.open_pair("timeline", *sides, lambda _: None), [], 80)
    image = pixels(tmp_path / "out.png")
    for half in (image[:, : WIDTH // 2, :3], image[:, WIDTH // 2 :, :3]):
        assert half[HEIGHT // 4 : -HEIGHT // 4, 200:-200].std() > 0.01


@pytest.mark.parametrize("name", PLANTED)
def test_every_view_as_svg(name: str, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.svg"
    written(name, folder, "--svg", str(path), "--width", "90", "--height", "24")
    root = ElementTree.parse(path).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    text = " ".join(element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text"))
    assert len(text) > 200
    title = next(element for element in root.iter() if element.get("class", "").endswith("-title"))
    assert 0 < len(title.text or "") <= 90 - 16, "it fits between the buttons of the window"
    assert root.find("{http://www.w3.org/2000/svg}title") is not None
