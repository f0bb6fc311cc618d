"""Pictures made of text: what is put where it belongs, and densities that are seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tui_probe.draw.canvas import (
    ADDRESS,
    BYTES,
    COUNT,
    CYCLES,
    SHADES,
    TIME,
    Canvas,
    Unit,
    braille,
    draw_x_axis,
    grades,
    halftone,
    shaded,
    ticks,
)
from tui_probe.draw.spans import plain, width


def texts(canvas: Canvas) -> list[str]:
    return [plain(line) for line in canvas.lines()]


def test_cells_of_one_role_are_one_span() -> None:
    canvas = Canvas(8, 2)
    canvas.text(1, 0, "ab", "good")
    canvas.text(3, 0, "cd", "good")
    canvas.text(5, 0, "e", "bad")
    assert canvas.lines() == [((" ", ""), ("abcd", "good"), ("e", "bad")), ()]


def test_nothing_is_drawn_outside() -> None:
    canvas = Canvas(4, 1)
    canvas.text(-2, 0, "abcdefgh")
    canvas.text(0, 1, "below")
    canvas.text(9, 0, "adjacent")
    canvas.paint(3, 0, shaded(np.full((2, 3), 4, np.uint8)), "good")
    assert texts(canvas) == ["cde█"]


def test_text_of_a_trace_is_clipped_to_its_cells() -> None:
    canvas = Canvas(6, 1)
    canvas.text(0, 0, "漢\x1b[2Jx")
    assert texts(canvas) == ["??x"]


def test_a_tinted_cell_keeps_its_character() -> None:
    canvas = Canvas(3, 1)
    canvas.text(0, 0, "abc")
    canvas.tint(1, 0, 1, 1, "cursor")
    assert canvas.lines() == [(("a", ""), ("b", "cursor"), ("c", ""))]


def test_ascii() -> None:
    canvas = Canvas(5, 1)
    canvas.paint(0, 0, shaded(np.array([[0, 1, 2, 3, 4]], np.uint8)), "")
    assert plain(canvas.lines(ascii_only=True)[0]) == " .:##"


def test_grades_tell_nothing_from_little_and_little_from_much() -> None:
    assert grades(np.array([0, 1, 10, 100, 1000]), 4).tolist() == [0, 1, 2, 3, 4]
    assert grades(np.array([0, 1, 1]), 4).tolist() == [0, 1, 1]
    assert "".join(map(chr, shaded(grades(np.array([0, 1, 9, 99, 9999]), 4)))) == SHADES[0] + "░░▒█"


def test_dots() -> None:
    dots = np.zeros((4, 4), np.bool_)
    dots[0, 0] = dots[3, 1] = True
    assert "".join(map(chr, braille(dots)[0])) == "⢁ "


@given(arrays.arrays(np.int64, (8, 12), elements=st.integers(0, 1000)))
def test_halftone_shows_every_cell_that_counts_and_no_other(counts: np.ndarray) -> None:
    cells = counts.reshape(2, 4, 6, 2).sum(axis=(1, 3))
    drawn = halftone(counts)
    assert ((drawn != ord(" ")) == (cells > 0)).all()
    dots = np.vectorize(lambda code: int(code - 0x2800).bit_count() if code != 32 else 0)(drawn)
    assert (dots <= grades(cells, 8)).all()


@pytest.mark.parametrize(
    ("low", "high", "most", "unit", "labels"),
    [
        (0, 100_000, 6, CYCLES, ["0", "20k", "40k", "60k", "80k", "100k"]),
        (0, 3, 9, COUNT, ["0", "1", "2", "3"]),
        (1500, 4200, 3, TIME, ["2 µs", "3 µs", "4 µs"]),
        (1000, 2000, 4, TIME, ["1.0 µs", "1.5 µs", "2.0 µs"]),
        (0, 3 << 20, 4, BYTES, ["0 B", "1 MiB", "2 MiB", "3 MiB"]),
        (0x7F0000000010, 0x7F0000000FFF, 2, ADDRESS, ["0x7f0000000800"]),
        (5, 5, 4, COUNT, []),
    ],
)
def test_ticks_are_round_and_short(low: float, high: float, most: int, unit: Unit, labels: list[str]) -> None:
    assert [tick.label for tick in ticks(low, high, most, unit)] == labels


@given(
    st.floats(0, 1e12),
    st.floats(1e-3, 1e12),
    st.integers(1, 20),
    st.sampled_from([COUNT, CYCLES, TIME, BYTES, ADDRESS]),
)
def test_ticks_are_inside_distinct_and_few(low: float, span: float, most: int, unit: Unit) -> None:
    marked = ticks(low, low + span, most, unit)
    assert len(marked) <= most
    assert all(low <= tick.value <= low + span for tick in marked)
    if span > low * 1e-6:
        assert len({tick.label for tick in marked}) == len(marked)


@given(st.integers(1, 150), st.floats(0, 1e9), st.floats(1, 1e9))
def test_labels_of_an_axis_never_touch(cells: int, low: float, span: float) -> None:
    canvas = Canvas(200, 2)
    draw_x_axis(canvas, 10, 0, cells, low, low + span, CYCLES)
    rule, labels = texts(canvas)
    assert width(rule) == 10 + cells
    assert len(labels) <= 10 + cells
    assert rule.count("┬") == len(labels.split())
