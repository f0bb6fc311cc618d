"""Lines broken at spaces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.draw.spans import clip_clauses, hang_line, width, wrap


@pytest.mark.parametrize(
    "whole", ["2 480 cycles", "3.52 µs", "1 048 576", "12 B", "34.6 MB/s", "27 %", "1 234 567 ns", "(0.62 µs)"]
)
@pytest.mark.parametrize("cells", range(12, 24))
def test_a_number_stays_with_its_unit(whole: str, cells: int) -> None:
    text = f"a launch took {whole} and then some"
    assert any(whole in line for line in wrap(text, cells)), wrap(text, cells)
    assert any(whole in line for line in hang_line(f"  {text}", cells + 6))


def test_other_numbers_are_words_like_any() -> None:
    assert wrap("launch 12 34 of 8 blocks", 9) == ["launch 12", "34 of 8", "blocks"]
    assert wrap("in 7 sectors", 5) == ["in 7", "secto", "rs"]


@pytest.mark.parametrize(
    ("cells", "shown"),
    [(19, "one, two; three; 4"), (17, "one, two; three"), (14, "one, two"), (7, "one, t…"), (5, "one")],
)
def test_clip_clauses_keeps_whole_clauses_where_one_fits(cells: int, shown: str) -> None:
    assert clip_clauses("one, two; three; 4", cells) == shown


@given(st.text("ab 1239µsBk%,", max_size=60), st.integers(-3, 30))
def test_nothing_is_lost_and_no_line_is_too_long(text: str, cells: int) -> None:
    """A widget without a place has 0 cells, and its inside fewer: a character is in each line then."""
    lines = wrap(text, cells)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(width(line) <= max(1, cells) for line in lines)


@given(st.text("日 本a", max_size=20), st.integers(-3, 4))
def test_wide_characters_are_not_lost(text: str, cells: int) -> None:
    assert "".join(wrap(text, cells)).replace(" ", "") == text.replace(" ", "")
