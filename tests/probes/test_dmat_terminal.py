"""Bytes that a picture of accesses sends to a terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment

from tests.probes.dmat_example import everywhere, write_dmat
from tests.probes.dmat_view import opened, prepared
from tests.ui.terminal import Terminal
from tui_probe.draw.palette import PALETTES
from tui_probe.draw.spans import plain
from tui_probe.probes.dmat.picture import limit_colour_changes
from tui_probe.probes.dmat.view import Dmat
from tui_probe.ui.widgets.lines import merge_segments


@pytest.mark.parametrize("colouring", ["bands", "density", "sectors", "kinds"])
@pytest.mark.parametrize("busy", [False, True], ids=["stream", "noise"])
def test_a_frame_is_at_most_25_kilobytes(tmp_path: Path, colouring: Any, busy: bool) -> None:
    write_dmat(tmp_path / "trace")
    if busy:
        (path,) = (tmp_path / "trace" / "result").iterdir()
        path.write_bytes(everywhere().content(32))
    view = opened(tmp_path / "trace")
    view.colouring = colouring
    prepared(view, 200, 50)
    assert frame_bytes(view) <= 25_000


def frame_bytes(view: Dmat) -> int:
    """Return the output for a terminal of 200 × 50 cells: styles as the widgets join them, every cell once."""
    console = Console(color_system="256", force_terminal=True, width=200, legacy_windows=False)
    style = PALETTES["dark"].style
    total = 0
    for line in view.draw(200, 50):
        fill = " " * (200 - cell_len(plain(line)))
        segments = merge_segments([*((text, style(role)) for text, role in line), (fill, style(""))])
        total += sum(len(_sent(segment, console).encode()) for segment in segments) + len("\x1b[50;1H")
    return total


def _sent(segment: Segment, console: Console) -> str:
    assert segment.style is not None
    return segment.style.render(segment.text, color_system=console._color_system)


def test_a_cursor_step_changes_few_lines(tmp_path: Path) -> None:
    write_dmat(tmp_path / "trace")
    view = prepared(opened(tmp_path / "trace"))
    before = view.draw(120, 40)
    view.press("right")
    prepared(view)
    changed = [y for y, (old, new) in enumerate(zip(before, view.draw(120, 40), strict=True)) if old != new]
    assert len(changed) <= 4


@given(st.integers(1, 60), st.integers(1, 200), st.integers(0, 400))
def test_colours_change_rarely_enough(rows: int, columns: int, most: int) -> None:
    generator = np.random.default_rng(rows * columns)
    roles = generator.integers(0, 8, (rows, columns)).astype(np.uint16)
    calm = limit_colour_changes(roles, np.ones(roles.shape, dtype=np.bool_), most)
    assert np.count_nonzero(np.diff(calm, axis=1)) <= most or calm.shape[1] == 1
    same = np.zeros((rows, columns), dtype=np.uint16)
    assert (limit_colour_changes(same, same > 0, most) == same).all()


def test_the_page_and_a_step_of_the_cursor_on_a_terminal(tmp_path: Path) -> None:
    write_dmat(tmp_path / "trace")
    command = [sys.executable, "-m", "tui_probe", "open", str(tmp_path / "trace")]
    with Terminal(command, environment={"HOME": str(tmp_path)}) as terminal:
        terminal.wait("stream")
        terminal.quiet(0.35, steady=True)
        terminal.type("\r")
        terminal.wait("0 d DMAT")
        terminal.type("0")  # by itself: what it draws is not the page's, and a busy machine may draw it before "d"
        before = terminal.quiet(0.35, steady=True)
        terminal.type("d")
        terminal.wait("accesses per cell")
        shown = terminal.quiet(0.35, steady=True)
        assert shown - before <= 25_000
        terminal.type("l")
        assert 0 < terminal.quiet(0.35, steady=True) - shown <= 1_000
