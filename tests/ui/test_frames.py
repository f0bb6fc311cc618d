"""Frames of panels: corners, texts in their lines, and the difference that the focus makes without colours."""

from __future__ import annotations

import pytest

from tui_probe.draw.spans import plain, to_ascii
from tui_probe.ui.widgets.pane import Edge, edge_line


@pytest.mark.parametrize(
    ("edge", "focused", "line"),
    [
        ("top", False, "╭─ Kernels ──── 3 of 7 ─╮"),
        ("top", True, "┏━ Kernels ━━━━ 3 of 7 ━┓"),
        ("middle", False, "├─ Kernels ──── 3 of 7 ─┤"),
        ("bottom", True, "┗━ Kernels ━━━━ 3 of 7 ━┛"),
    ],
)
def test_edge_line_has_a_title_and_notes(edge: Edge, focused: bool, line: str) -> None:
    drawn = edge_line(((" Kernels ", "title"),), ((" 3 of 7 ", "dim"),), 25, focused=focused, edge=edge)
    assert plain(drawn) == line


@pytest.mark.parametrize("cells", range(2, 30))
def test_edge_line_has_exactly_its_width(cells: int) -> None:
    drawn = edge_line(((" Kernels ", "title"),), ((" 3 of 7 ", "dim"),), cells, focused=False)
    assert len(plain(drawn)) == cells


def test_focus_shows_in_ascii_too() -> None:
    lines = [to_ascii(plain(edge_line((), (), 8, focused=focused))) for focused in (False, True)]
    assert lines == ["+------+", "+======+"]
