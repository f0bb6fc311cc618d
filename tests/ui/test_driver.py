"""The driver sends less, and the terminal shows the same."""

from __future__ import annotations

import os

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.drivers.linux_driver import LinuxDriver

from tests.ui.terminal import Screen
from tui_probe.ui.app import ProbeApp
from tui_probe.ui.driver import FrugalDriver
from tui_probe.ui.session import Session

COLUMNS, ROWS = 12, 5


class Recorder:
    """Stand-in for a terminal that records what a driver writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[str] = []
        monkeypatch.setattr(LinuxDriver, "__init__", lambda *_, **__: None)
        monkeypatch.setattr(LinuxDriver, "write", lambda _, data: self.sent.append(data))
        self.driver = FrugalDriver(ProbeApp(Session()))


def _coloured(text: str, attributes: str) -> str:
    """As Rich does it: the last letter is separate, in plain text."""
    return f"\x1b[{attributes}m{text[:-1]}\x1b[0m{text[-1:]}" if attributes else text


ATTRIBUTES = ("", "31", "38;5;252;48;5;233", "38;5;74;48;5;233", "38;5;74", "48;5;24", "1;38;5;74", "7", "4;31;48;5;24")
pieces = st.builds(
    lambda row, column, text, colour, end: (
        f"\x1b[{row};{column}H" + _coloured(text[: COLUMNS - column], colour) + "\n" * (end and row < ROWS)
    ),
    st.integers(1, ROWS),
    st.integers(1, COLUMNS - 1),
    st.text("abc ", min_size=1, max_size=COLUMNS),
    st.sampled_from(ATTRIBUTES),
    st.booleans(),
)
frames = st.lists(pieces, min_size=1, max_size=8).map(lambda some: "".join(some) + "\x1b[1;1H")
writes = st.one_of(frames, st.sampled_from(["\x1b[?2026h", "\x1b[H\x1b[2J", "\x1b]52;c;YQ==\x07"]))


@given(st.lists(writes, max_size=12))
def test_the_terminal_shows_the_same(data: list[str]) -> None:
    screens = []
    with pytest.MonkeyPatch.context() as patch:
        recorder = Recorder(patch)
        for part in [*data, *data[-2:]]:
            recorder.driver.write(part)
    for sent in ([*data, *data[-2:]], recorder.sent):
        screen = pyte.Screen(COLUMNS, ROWS)
        pyte.Stream(screen).feed("".join(sent).replace("\x1b]52;c;YQ==\x07", ""))
        screens.append([[screen.buffer[y][x] for x in range(COLUMNS)] for y in range(ROWS)])
    assert screens[0] == screens[1]
    assert sum(map(len, recorder.sent)) <= sum(map(len, data)) + sum(map(len, data[-2:]))


WIDTHS = st.sampled_from(["é", "e\u0301", "界", "⚠", "│─█", "\x0e", "\x1b(0", "\x1b[4h", "\x1b[4l", "\x1b[?7l", "\r\n"])


@given(st.lists(st.one_of(writes, WIDTHS, st.text("ab ─", max_size=COLUMNS + 9)), max_size=12))
def test_terminal_of_tests_is_as_pytes(data: list[str]) -> None:
    slow, fast = pyte.Screen(COLUMNS, ROWS), Screen(COLUMNS, ROWS)
    for screen in (slow, fast):
        pyte.Stream(screen).feed("".join(data).replace("\x1b]52;c;YQ==\x07", ""))
    assert {y: dict(row) for y, row in slow.buffer.items() if row} == {
        y: dict(row) for y, row in fast.buffer.items() if row
    }
    try:
        shown = "\n".join(line.rstrip() for line in slow.display)
    except IndexError:  # pyte cannot display what is left of a wide character after a write to its second cell
        return
    assert fast.text == shown


ROW = "\x1b[{};1H\x1b[31m{}\x1b[0m\n"


def test_only_rows_that_differ_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch)
    recorder.driver.write(ROW.format(1, "one") + ROW.format(2, "two") + "\x1b[1;1H")
    recorder.driver.write(ROW.format(1, "one") + ROW.format(2, "other") + "\x1b[1;1H")
    recorder.driver.write(ROW.format(1, "one") + ROW.format(2, "other") + "\x1b[1;1H")
    assert recorder.sent[1:] == ["\x1b[2;1H\x1b[31mother\x1b[1;1H\x1b[0m"]


def test_a_row_that_was_changed_in_part_is_sent_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch)
    for frame in (ROW.format(1, "whole"), "\x1b[1;3Hpart", ROW.format(1, "whole")):
        recorder.driver.write(frame)
    assert len(recorder.sent) == 3


@pytest.mark.parametrize("event", ["cleared", "resized", "asked"])
def test_unknown_regions_are_sent_again(monkeypatch: pytest.MonkeyPatch, event: str) -> None:
    recorder = Recorder(monkeypatch)
    recorder.driver.write(ROW.format(1, "one"))
    if event == "cleared":
        recorder.driver.write("\x1b[H\x1b[2J")
    elif event == "resized":
        recorder.driver.fileno = -1
        recorder.driver.terminal_size()
    else:
        recorder.driver.forget()
    recorder.driver.write(ROW.format(1, "one"))
    assert recorder.sent[-1] == ROW.format(1, "one")


def test_a_frame_for_a_terminal_that_became_smaller_is_not_taken_for_what_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorder = Recorder(monkeypatch)
    recorder.driver.fileno = -1
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((COLUMNS, 2)))
    assert recorder.driver.terminal_size() == (COLUMNS, 2)
    late = "".join(ROW.format(row, text) for row, text in ((1, "one"), (2, "two"), (3, "lands on row 2")))
    new = ROW.format(1, "one") + ROW.format(2, "two")
    for frame in (late, new, new):
        recorder.driver.write(frame)
    assert [sent.count("one") for sent in recorder.sent] == [1, 1]
    screen = pyte.Screen(COLUMNS, 2)
    pyte.Stream(screen).feed("".join(recorder.sent).replace("\n", ""))
    assert screen.display[1].startswith("two")


def test_window_focus_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch)
    recorder.driver.write("\x1b[?1004h")
    assert recorder.sent == []


TEXT, SOFT = "38;5;252;48;5;233", "38;5;246;48;5;233"


@pytest.mark.parametrize(
    ("frame", "sent"),
    [
        (f"\x1b[3;4H\x1b[{TEXT}m1\x1b[0m\n\x1b[4;4H\x1b[{TEXT}m2\x1b[0m", f"\x1b[3;4H\x1b[{TEXT}m1\x1b[4;4H2\x1b[0m"),
        (f"\x1b[3;4H\x1b[{TEXT}ma\x1b[0m\x1b[{SOFT}mb\x1b[0m", f"\x1b[3;4H\x1b[{TEXT}ma\x1b[38;5;246mb\x1b[0m"),
        (f"\x1b[3;4H\x1b[1;{TEXT}ma\x1b[0m\x1b[{TEXT}mb\x1b[0m", f"\x1b[3;4H\x1b[1;{TEXT}ma\x1b[0;{TEXT}mb\x1b[0m"),
        (f"\x1b[3;4H\x1b[{TEXT}ma\x1b[0mb", f"\x1b[3;4H\x1b[{TEXT}ma\x1b[0mb"),
    ],
    ids=["the same", "another colour", "no longer bold", "plain"],
)
def test_colours_are_sent_where_they_change(frame: str, sent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch)
    recorder.driver.write(frame)
    assert recorder.sent == [sent]
