"""The log view: follows, filters while it follows, searches, and survives what happens to files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ui.desk import TestDesk, said, shown
from tui_probe.ui.views.log import LogView, log_line

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def desk() -> TestDesk:
    return TestDesk()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "event.log"
    path.write_text("".join(f"[exec] line {i}\n" for i in range(100)))
    return path


@pytest.fixture
def view(desk: TestDesk, log: Path) -> LogView:
    view = LogView(desk, "events")
    view.resize(80, 10)
    view.open(log)
    return view


def add(log: Path, text: str | bytes) -> None:
    with log.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def test_log_shows_end_and_follows(view: LogView, log: Path) -> None:
    assert shown(view)[-1] == " [exec] line 99"
    add(log, "[exec] more\n")
    view.update()
    assert shown(view)[-1] == " [exec] more"
    assert "92–101 of 101 · following" in said(view)


def test_scrolling_up_stops_following_and_end_resumes(view: LogView, log: Path) -> None:
    view.move(-1)
    add(log, "[exec] more\n[exec] and more\n")
    view.update()
    assert shown(view)[-1] == " [exec] line 98"
    assert "2 new ↓ End" in said(view)
    view.move_to(-1)
    assert shown(view)[-1] == " [exec] and more"
    add(log, "[exec] last\n")
    view.update()
    assert shown(view)[-1] == " [exec] last"


def test_scrolling_down_does_not_follow_by_itself(view: LogView) -> None:
    view.move_page(-1)
    view.move(1000)
    assert shown(view)[-1] == " [exec] line 99"
    assert "following" not in said(view)


def test_follow_is_toggled_by_a_key(view: LogView, log: Path) -> None:
    view.toggle_follow()
    add(log, "[exec] more\n")
    view.update()
    assert shown(view)[-1] == " [exec] line 99"
    view.toggle_follow()
    assert shown(view)[-1] == " [exec] more"


def test_to_the_start_and_by_pages(view: LogView) -> None:
    view.move_to(0)
    assert shown(view)[0] == " [exec] line 0"
    view.move_page(1)
    assert shown(view)[0] == " [exec] line 9"


def test_log_filters_by_tag_while_following(view: LogView, log: Path) -> None:
    add(log, "[mem] cuMemAlloc_v2 0 dptr 7f bytesize 4\n[exec] x\n")
    view.set_tags(frozenset({"[mem]"}))
    assert shown(view)[0] == " [mem] cuMemAlloc_v2 0 dptr 7f bytesize 4"
    add(log, "[exec] y\n[mem] cuMemFree_v2 0 dptr 7f\n")
    view.update()
    assert [line for line in shown(view) if line] == [
        " [mem] cuMemAlloc_v2 0 dptr 7f bytesize 4",
        " [mem] cuMemFree_v2 0 dptr 7f",
    ]
    assert "only [mem]" in said(view)
    assert view.clear_search()
    assert shown(view)[-1] == " [mem] cuMemFree_v2 0 dptr 7f"
    assert len([line for line in shown(view) if line]) == 10


def test_a_filter_that_ends_returns_to_the_lines_that_were_read(view: LogView) -> None:
    view.move(-40)
    before = shown(view)
    view.set_filter("line 7")
    assert shown(view) != before
    view.clear_search()
    assert shown(view) == before


def test_log_filters_by_text_and_tag(view: LogView, log: Path) -> None:
    add(log, "[mem] line 7\n[mem] other\n")
    view.set_tags(frozenset({"[mem]"}))
    view.set_filter("LINE")
    assert "no line passes" in shown(view)[0]
    view.set_filter("line")
    assert [line for line in shown(view) if line] == [" [mem] line 7"]


def test_tags_are_counted(view: LogView, log: Path) -> None:
    add(log, "[mem] a\nno tag\n[mem] b\n")
    view.update()
    counted: list[dict[str, int]] = []
    view.count_tags(counted.append)
    assert counted == [{"[exec]": 100, "[mem]": 2}]


def test_search_finds_marks_and_goes_around(view: LogView, desk: TestDesk) -> None:
    view.move_to(0)
    view.search("line 5")
    assert view.match == 5
    matches = []
    for _ in range(3):
        view.next_match(1)
        matches.append(view.match)
    assert matches == [50, 51, 52]
    view.next_match(-1)
    view.next_match(-1)
    view.next_match(-1)
    assert view.match == 5
    view.next_match(-1)
    assert view.match == 59
    line = view.draw(80, 10)[view.page.numbers.index(59)]
    assert ("line 59"[:6], "match") in line
    view.search("not there")
    assert desk.notices == ["“not there” is not in this log"]


def test_search_within_a_filter_finds_only_lines_that_are_shown(view: LogView, log: Path) -> None:
    add(log, "[mem] line 5 of another kind\n")
    view.set_tags(frozenset({"[mem]"}))
    view.search("line 5")
    assert view.match == 100
    view.next_match(1)
    assert view.match == 100


def test_long_lines_are_seen_by_going_sideways(view: LogView, log: Path) -> None:
    add(log, "[exec] " + "".join(f"{i:>8}" for i in range(30)) + "\n")
    view.update()
    assert "29" not in shown(view)[-1]
    for _ in range(24):
        view.shift(1)
    assert shown(view)[-1].endswith("29")
    for _ in range(50):
        view.shift(-1)
    assert shown(view)[-1].startswith(" [exec]")


def test_failures_stand_out_by_more_than_their_words() -> None:
    assert log_line("[exec] succeed 0")[1][1] == ""
    assert log_line("[exec] failed 700")[1][1] == "bad"
    assert log_line("[exec] failed 700")[0] == ("[exec]", "accent")
    assert log_line("[exit] launches 7 probed 7 dropped 2 reason -")[1][1] == "bad"
    assert log_line("[exit] launches 7 probed 7 dropped 0 reason -")[1][1] == "", "an orderly end"


def test_a_file_that_comes_later_is_read_when_it_comes(desk: TestDesk, tmp_path: Path) -> None:
    view = LogView(desk, "stdout")
    view.resize(40, 3)
    view.open(tmp_path / "later.log", "no output on stdout")
    assert shown(view) == [" no output on stdout"]
    (tmp_path / "later.log").write_text("here\n")
    view.update()
    assert shown(view) == [" here"]


def test_a_file_that_was_cut_or_replaced_is_read_anew(view: LogView, log: Path) -> None:
    log.write_text("[exec] new\n")
    view.update()
    assert shown(view) == [" [exec] new"]
    other = log.with_suffix(".other")
    other.write_text("[exec] replaced\n[exec] twice\n")
    other.replace(log)
    view.update()
    assert shown(view) == [" [exec] replaced", " [exec] twice"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_cannot_be_read_says_so(desk: TestDesk, log: Path) -> None:
    log.chmod(0)
    view = LogView(desk, "events")
    view.resize(80, 3)
    view.open(log)
    assert "Permission denied" in shown(view)[0]


def test_a_folder_in_the_place_of_a_log_says_so(desk: TestDesk, tmp_path: Path) -> None:
    view = LogView(desk, "events")
    view.resize(80, 3)
    view.open(tmp_path)
    assert str(tmp_path) in shown(view)[0]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.lists(st.binary(min_size=1, max_size=40), max_size=12))
def test_however_it_is_written_it_ends_up_the_same(tmp_path: Path, chunks: list[bytes]) -> None:
    path = tmp_path / "odd.log"
    path.unlink(missing_ok=True)
    view = LogView(TestDesk(), "events")
    view.resize(60, 100)
    view.open(path)
    for chunk in chunks:
        add(path, chunk)
        view.update()
    reopened = LogView(TestDesk(), "events")
    reopened.resize(60, 100)
    reopened.open(path)
    assert shown(view) == shown(reopened)


def test_an_answer_for_an_older_filter_is_dropped(view: LogView, desk: TestDesk) -> None:
    desk.logs.held = True
    view.update()
    (job, done) = desk.logs.waiting.pop((view, "page"))
    view.set_filter("line 7")
    done(job())
    assert shown(view)[0] == " filtering"
    desk.logs.run()
    assert shown(view)[0] == " [exec] line 70"


def test_a_file_that_goes_away_is_no_failure(view: LogView, desk: TestDesk, log: Path) -> None:
    log.unlink()
    view.search("line")
    assert desk.notices == ["“line” is not in this log"]
    counted: list[dict[str, int]] = []
    view.count_tags(counted.append)
    assert counted == [{}]
    assert list(view.line_exporter()()) == []
    view.update()
    assert shown(view) == [" nothing yet"]


def test_memory_is_that_of_the_window(desk: TestDesk, tmp_path: Path) -> None:
    path = tmp_path / "large.log"
    path.write_bytes(b"[exec] 1234567890\n" * 1_000_000)
    view = LogView(desk, "events")
    view.resize(80, 50)
    view.open(path)
    assert len(view.page.lines) == 50
    assert "1 000 000" in said(view)


def test_the_export_holds_the_lines_that_pass(view: LogView) -> None:
    view.set_filter("line 9")
    assert list(view.line_exporter()()) == ["[exec] line 9", *(f"[exec] line {i}" for i in range(90, 100))]
