"""Titles of pages in the line above them, and their keys."""

from __future__ import annotations

import pytest

from tui_probe.draw.spans import plain
from tui_probe.pages.views import keys_of_pages, kind_of
from tui_probe.probekit.page_kinds import DIGIT_PAGES, LETTERS, key_text, page_keys
from tui_probe.ui.live.live_pages import KERNEL_TABS, RUN_TABS
from tui_probe.ui.screens.further_pages import LetterItem, LetterList, digit_tabs, kernel_tab
from tui_probe.ui.widgets.pane import Tab, TabBar, keys_of

TABS = (
    Tab("summary", "Summary", "Sum", "1"),
    Tab("launches", "Launches", "Launch", "8"),
    Tab("timeline", "Timeline", "Time", "7", is_empty=True),
    Tab("dmat", "DMAT", "DMAT", "d"),
)


def titles(width: int, current: str = "summary", *notes: str) -> str:
    bar = TabBar(TABS)
    bar.show_tabs(TABS, current, notes, focused=True)
    (line,) = bar.draw(width, 1)
    assert len(plain(line)) == width
    return plain(line).strip("┏┓").strip("━").rstrip("━")


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (60, " 1 Summary  7 (Timeline)  8 Launches  0 more  "),
        (45, " 1 Sum 7 (Time) 8 Launch 0 more "),
        (29, " 1 Sum 7 8 Launch 0 more "),
        (26, " 1 Sum 7 8 0 "),
        (15, " 1 Sum "),
    ],
)
def test_titles_shrink_with_the_width(width: int, shown: str) -> None:
    assert titles(width) == shown


def test_the_current_page_keeps_its_title() -> None:
    assert titles(30, "dmat") == " 1 Sum 7 8 Launch 0 d DMAT "
    assert titles(26, "timeline") == " 1 7 Time 8 0 "


def test_notes_stand_at_the_right_if_they_fit() -> None:
    assert titles(70, "summary", "row 1 of 4").endswith(" row 1 of 4 ")
    assert "row" not in titles(28, "summary", "row 1 of 4")


def test_digits_of_all_kernel_pages_have_titles_on_80_columns() -> None:
    bar = TabBar([*digit_tabs(), kernel_tab(kind_of("results"), "r")])
    (line,) = bar.draw(80, 1)
    titles = "1 Sum 2 Src 3 PTX 4 Diff 5 SASS 6 Lines 7 Time 8 Launch 9 Log 0 more"
    assert plain(line).strip("╭─╮ ") == titles


def test_a_page_has_the_same_key_on_every_screen() -> None:
    below, of_kernel = (
        keys_of((*KERNEL_TABS, *RUN_TABS)),
        {name: key_text(key) for name, key in keys_of_pages().items()},
    )
    assert below.pop("kernel") == of_kernel["summary"] == "1"
    assert {name: below[name] for name in below if name in of_kernel} == {
        name: of_kernel[name] for name in below if name in of_kernel
    }
    assert [of_kernel[name] for name in DIGIT_PAGES] == list("123456789")


def test_every_page_has_a_key_of_its_own() -> None:
    keys = {**keys_of_pages(), **{tab.id: tab.key for tab in (*KERNEL_TABS, *RUN_TABS)}}
    assert all(keys.values())
    del keys["kernel"]  # the summary, below the table
    assert len(set(keys.values())) == len(keys)
    assert {"stalls", "phases", "ranks"} <= LETTERS.keys(), "letters are kept for pages to come"


def test_pages_of_files_have_letters_of_their_titles() -> None:
    pages = {"totals": "Totals", "kernels": "Kernels", "timeline": "Timeline", "ranges": "Ranges", "sums": "Sums"}
    assert page_keys(pages, reserved=False) == {
        "totals": "1",
        "kernels": "k",
        "timeline": "7",
        "ranges": "r",
        "sums": "s",
    }


def test_list_of_pages_is_as_wide_as_its_longest_label_and_its_longest_note() -> None:
    pages, note = LetterList("Pages"), "a note of some words, the longest one"
    pages.take([LetterItem("w", "Warp progress", "short"), LetterItem("l", "Lines", note)])
    pages.fit_terminal(100, 24)
    width = pages.styles.width
    assert width is not None
    assert any(note in plain(line) for line in pages.draw(int(width.value), 24))
