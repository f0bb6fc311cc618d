"""Titles of pages: whole where they fit, and beside them what another probe would open."""

from __future__ import annotations

import pytest

from tui_probe.draw.spans import plain
from tui_probe.pages.views import FIXED_PAGES, kind_of
from tui_probe.ui.screens.kernel import tab_of
from tui_probe.ui.widgets.bars import Tab, TabBar

TABS = (
    Tab("summary", "Summary", "Sum"),
    Tab("launches", "Launches", "Launch"),
    Tab("timeline", "Timeline", "Time"),
    Tab("dmat", "DMAT", "DMAT", empty=True, probe="dmat"),
    Tab("latency", "Latency", "Lat", empty=True),
)


def titles(width: int, current: str = "summary", *, noted: bool = False) -> str:
    bar = TabBar(TABS)
    bar.show(current, () if noted else None, focused=True)
    (line,) = bar.draw(width, 1)
    assert len(plain(line)) == width
    return plain(line).rstrip()


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (80, " 1 Summary  2 Launches  3 Timeline  4 (DMAT: -p dmat)  5 (Latency)"),
        (60, " 1 Summary  2 Launches  3 Timeline  4 (DMAT)  5 (Latency)"),
        (50, " 1 Summary  2 Launches  3 Timeline  4 (DMAT)"),
        (37, " 1 Summary  2 Launches  3 Timeline"),
        (34, " 1 Sum  2 Launches  3 Timeline"),
        (29, " 1 Sum  2 Launches  3 Time"),
        (25, " 1 Sum  2 Launch  3 Time"),
        (24, " 1 Sum  2 Launch  3"),
        (19, " 1 Sum  2  3 Time"),
        (16, " 1 Sum  2  3"),
    ],
)
def test_titles_shrink_only_as_far_as_they_have_to(width: int, shown: str) -> None:
    assert titles(width) == shown


def test_the_current_page_has_its_title_where_not_all_fit() -> None:
    assert titles(19, "timeline") == " 1 Sum  2  3 Time"
    assert titles(16, "timeline") == " 1  2  3 Time"


def test_an_empty_page_in_sight_has_its_title() -> None:
    assert titles(50, "dmat") == " 1 Summary  2 Launches  3 Timeline  4 DMAT"


def test_room_for_notes_is_kept() -> None:
    assert titles(60, noted=True) == " 1 Summary  2 Launches  3 Timeline"


@pytest.mark.parametrize(
    ("further", "shown"), [((), "8 Time  0 Blocks  00 Lat  Res"), (("source",), "8 Time  9 Src  0 Blocks  00 Lat")]
)
def test_the_pages_of_blocks_all_have_titles_on_80_columns(further: tuple[str, ...], shown: str) -> None:
    names = (*FIXED_PAGES, "timeline", *further, "blocks", "latency", "results")
    bar = TabBar([tab_of(kind_of(name)) for name in names])
    (line,) = bar.draw(80, 1)
    assert plain(line).rstrip() == f" 1 Sum  2 PTX  3 Diff  4 SASS  5 Log  6 Launch  {shown}"
