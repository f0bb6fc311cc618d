"""The cursor of a text moves through a window that is still, and at an edge the window moves by half of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pages.measured_example import NEVER, STRIDED, write_measured
from tests.recorded import H200
from tests.ui.desk import TestDesk, said, shown
from tui_probe.draw.palette import PALETTES
from tui_probe.draw.view import Document, Spot, no_progress
from tui_probe.pages.views import kind_of
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.follow import open_trace
from tui_probe.ui.views.document_view import DocumentView
from tui_probe.ui.views.document_window import ScrollPosition, cursor_line

if TYPE_CHECKING:
    from tui_probe.trace.model import Trace

MOVES = st.lists(st.tuples(st.sampled_from(["step", "page", "to"]), st.integers(-200, 200)), max_size=20)


@given(count=st.integers(0, 120), room=st.integers(1, 60), has_cursor=st.booleans(), moves=MOVES)
def test_the_cursor_is_in_the_window_and_the_window_in_the_text(
    count: int, room: int, has_cursor: bool, moves: list[tuple[str, int]]
) -> None:
    place = ScrollPosition(has_cursor=has_cursor)
    for name, number in moves:
        if name == "to":
            place.go_to(max(0, min(number, count - 1)), count, room)
        else:
            getattr(place, name)(number, count, room)
        assert 0 <= place.top <= max(0, count - room)
        assert place.top <= place.cursor < place.top + room
        assert place.cursor <= max(0, count - 1)


def test_the_window_stands_still_until_the_cursor_leaves_it() -> None:
    place = ScrollPosition(has_cursor=True)
    tops = []
    for _ in range(35):
        place.step(1, 100, 20)
        tops.append(place.top)
    assert tops == [0] * 19 + [10] * 10 + [20] * 6
    assert place.cursor == 35
    for _ in range(16):
        place.step(-1, 100, 20)
    assert (place.cursor, place.top) == (19, 10)


def test_windows_keep_the_row_of_the_cursor_and_end_at_the_ends() -> None:
    place = ScrollPosition(cursor=5, has_cursor=True)
    place.page(1, 100, 20)
    assert (place.top, place.cursor) == (19, 24)
    for _ in range(6):
        place.page(1, 100, 20)
    assert (place.top, place.cursor) == (80, 99)
    for _ in range(7):
        place.page(-1, 100, 20)
    assert (place.top, place.cursor) == (0, 0)


@given(start=st.integers(0, 100), line=st.integers(0, 199))
def test_every_line_is_reached_by_lines_and_seen_on_the_way(start: int, line: int) -> None:
    place = ScrollPosition(top=start, cursor=start, has_cursor=True)
    place.clamp(200, 30)
    while place.cursor != line:
        place.step(1 if line > place.cursor else -1, 200, 30)
    assert place.top <= line < place.top + 30


@given(top=st.integers(0, 72), row=st.integers(0, 19), room=st.integers(1, 40))
def test_the_cursor_keeps_its_line_in_a_window_of_another_size(top: int, row: int, room: int) -> None:
    place = ScrollPosition(top, top + row, has_cursor=True)
    place.clamp(73, 20)
    line = place.cursor
    for size in (room, 20):
        place.follow(73, size)
        assert place.cursor == line
        assert 0 <= place.top <= max(0, 73 - size)
        assert place.top <= line < place.top + size


# -- in a document


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return write_measured(tmp_path_factory.mktemp("traces") / "sectors")


@pytest.fixture
def view(trace: Trace) -> DocumentView:
    """Probed PTX with what was measured, in a window of 80×24."""
    return hosted("ptx", ViewSource(trace, trace.kernels[0]))


def hosted(name: str, source: ViewSource) -> DocumentView:
    document = kind_of(name).open(source, no_progress)
    assert isinstance(document, Document)
    view = DocumentView(TestDesk(), name, document, source)
    view.focused = True
    view.resize(80, 24)
    return view


def at_cursor(view: DocumentView) -> str:
    (line,) = [line for line in shown(view) if line.startswith("▌")]
    return line


def test_cursor_has_sign_and_position(view: DocumentView) -> None:
    view.move(1)
    assert "2 " in at_cursor(view)
    assert ".target" in at_cursor(view)
    assert said(view) == f"line 2 of {view.count}"
    before = shown(view)
    view.move(1)
    assert said(view).endswith(f"line 3 of {view.count}")
    changed = [one for one, other in zip(before, shown(view), strict=True) if one != other]
    assert len(changed) == 2


@pytest.mark.parametrize("palette", PALETTES)
def test_the_cursor_can_be_seen_in_every_palette(view: DocumentView, palette: str) -> None:
    line = next(line for line in view.draw(80, 24) if line[0][0].startswith("▌"))
    style, plain = PALETTES[palette].style(line[0][1]), PALETTES[palette].style("")
    assert style.reverse or style.bgcolor != plain.bgcolor
    cells = 0
    for text, role in line:
        assert (role == "select") is (cells < view.window.gutter or cells == 79)  # the code keeps its colours
        cells += len(text)


def test_without_the_keys_the_cursor_has_another_sign_and_ground(view: DocumentView) -> None:
    view.focused = False
    (line,) = [line for line in view.draw(80, 24) if line[0][0].startswith("│")]
    assert line[0][1] == "idle"
    assert not any(line[0][0].startswith("▌") for line in view.draw(80, 24))


def test_a_line_without_text_is_marked_in_its_gutter() -> None:
    line = cursor_line((("   12  ", "dim"),), 9, 10, focused=True)
    assert "".join(text for text, _ in line) == "▌  12     "
    assert line[-1][1] == ""


@pytest.mark.parametrize(("focused", "shown"), [(True, "▌  12  ret;      ▐"), (False, "│  12  ret;      │")])
def test_the_line_of_the_cursor_is_marked_at_its_end_too(focused: bool, shown: str) -> None:
    line = cursor_line((("   12  ", "dim"), ("ret;", "")), 7, 18, focused=focused)
    assert "".join(text for text, _ in line) == shown
    assert line[-1][1] == line[0][1] == ("select" if focused else "idle")
    full = cursor_line((("   12  ", "dim"), ("ret;", "")), 7, 11, focused=focused)
    assert full[-1][0] == "ret;", "no text gives way to it"


def test_sideways_the_gutter_stands_still(view: DocumentView) -> None:
    before = at_cursor(view)
    view.shift(1)
    after = at_cursor(view)
    assert view.window.left == 8
    assert after[: view.window.gutter] == before[: view.window.gutter]
    assert after[view.window.gutter :].rstrip(" ▐") == before[view.window.gutter + 8 :].rstrip(" ▐")


def test_search_and_steps_put_the_cursor_there(view: DocumentView) -> None:
    view.search("popc")
    first = view.cursor
    assert "popc" in at_cursor(view)
    view.next_match(1)
    assert view.cursor > first
    view.move_to(0)
    view.next_match(1)
    assert view.cursor == first
    view.command("next")
    assert " 0 " in at_cursor(view)
    view.command("next")
    assert "112█!" in at_cursor(view)
    summary = "16 ideal · 128 sectors · 88% excessive · 112 excessive sectors · strides.cu:7 · line"
    assert summary in said(view)
    view.command("previous")
    view.command("previous")
    assert isinstance(view.view_host, TestDesk)
    assert view.view_host.notices == [
        "measured line 1 of 4", "measured line 2 of 4", "measured line 1 of 4", "no measured line before this one",
    ]  # fmt: skip


def test_the_cursor_keeps_its_line_of_ptx_in_the_other_text_and_after_a_filter(view: DocumentView) -> None:
    assert view.go_to_spot(Spot.of_line(STRIDED))
    view.command("level")
    assert said(view).endswith("line 24 of 35")
    assert at_cursor(view).startswith("▌  24 ")
    view.set_filter("global")
    assert view.count == 4
    assert at_cursor(view).startswith(f"▌  {STRIDED} "), "the first of them from where it was on"
    view.move(1)
    assert at_cursor(view).startswith(f"▌  {NEVER} ")
    assert view.clear_search()
    assert view.cursor - view.window.pinned == NEVER - 1


def test_the_cursor_keeps_its_line_while_the_terminal_shrinks_and_grows(view: DocumentView) -> None:
    cells, rows = view.width, view.height
    for line in (view.count - 3, STRIDED - 1):
        view._set_cursor(line)
        number = at_cursor(view).split()[1]
        for size in ((60, 8), (30, 3), (cells, rows)):
            view.resize(*size)
            assert at_cursor(view).split()[1] == number
            assert view.window.place.cursor == line


def test_folding_keeps_the_line(view: DocumentView) -> None:
    assert view.source is not None
    diff = hosted("diff", view.source)
    assert diff.go_to_spot(Spot.of_line(STRIDED))
    line = at_cursor(diff)
    diff.command("fold")
    assert at_cursor(diff) == line
    diff.command("fold")
    assert at_cursor(diff) == line


def test_cursor_begins_below_summary(view: DocumentView) -> None:
    assert view.source is not None
    diff = hosted("diff", view.source)
    assert diff.window.top == 0
    assert "from 1 on" in at_cursor(diff) or ".version" in at_cursor(diff)
    diff.move_to(0)
    assert "changes" in at_cursor(diff)


def test_a_click_moves_the_cursor(view: DocumentView) -> None:
    view.click(5)
    assert shown(view)[5].startswith("▌")
    view.click(0)
    assert shown(view)[5].startswith("▌")


def test_a_page_without_cursor_scrolls_by_lines(view: DocumentView) -> None:
    assert view.source is not None
    summary = hosted("summary", view.source)
    summary.resize(80, 5)
    summary.move(2)
    assert (summary.window.top, summary.cursor) == (2, 2)
    assert not any(line.startswith("▌") for line in shown(summary))


def test_measured_columns_stay_while_lines_shift(view: DocumentView) -> None:
    (head,) = shown(view)[:1]
    view.shift(1)
    assert shown(view)[0] == head


def test_lines_of_another_kernel_begin_at_their_left_edge(view: DocumentView, trace: Trace) -> None:
    view.shift(1)
    view.move(3)
    other = hosted("ptx", ViewSource(trace, trace.kernels[0]))
    other.resume(view)
    assert (other.window.left, other.cursor) == (0, view.cursor)


def test_summary_of_another_kernel_begins_at_its_first_line() -> None:
    trace = open_trace(H200 / "demo")
    summary = hosted("summary", ViewSource(trace, trace.kernels[0]))
    summary.resize(80, 5)
    summary.move(2)
    for kernel, top in ((trace.kernels[1], 0), (trace.kernels[0], 2)):
        other = hosted("summary", ViewSource(trace, kernel))
        other.resume(summary)
        assert other.window.place.top == top


def test_rows_with_other_line_numbers_are_counted_as_rows(view: DocumentView, trace: Trace) -> None:
    source = hosted("source", ViewSource(trace, trace.kernels[0]))
    source.move(1)
    assert " row 2 of " in f" {said(source)}"
    probe = hosted("probe", ViewSource(trace, trace.kernels[0]))
    probe.move(1)
    assert "row 2 of" in said(probe)
    view.set_filter("global")
    assert " row " in said(view)
