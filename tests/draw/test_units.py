"""Quantities as words: parts of a whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.draw import units


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([1, 1, 1], ["34%", "33%", "33%"]),
        ([72.6, 26.6, 0.8], ["73%", "26%", "1%"]),
        ([99.8, 0.1, 0.1], [">99%", "<1%", "<1%"]),
        ([5, 0], ["100%", "0%"]),
        ([0, 0], ["–", "–"]),
    ],
)
def test_parts_of_a_whole(parts: list[float], words: list[str]) -> None:
    assert units.percents(parts) == words


def test_parts_of_a_whole_with_a_digit() -> None:
    assert units.percents([2, 1, 0.0001], decimals=1) == ["66.7%", "33.3%", "<0.1%"]


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=6).filter(sum), st.integers(0, 1))
def test_they_add_up(parts: list[float], decimals: int) -> None:
    shown = units.percents(parts, decimals)
    bounds = sum(part[0] in "<>" for part in shown)
    total = sum(float(part.strip("<>%")) for part in shown)
    assert total == pytest.approx(100, abs=bounds * 10**-decimals + 1e-6)


@pytest.mark.parametrize(
    ("limit", "text"),
    [(10 << 20, "10M"), (3 << 29, "1.5G"), (1 << 30, "1G"), (512 << 10, "512K"), (2000, "2.00 kB"), (0, "0 B")],
)
def test_budget_is_shown_as_it_was_typed(limit: int, text: str) -> None:
    assert units.budget(limit) == text


def test_difference_has_its_sign() -> None:
    assert [units.difference(number) for number in (1752, -4_103_936, 3)] == ["+1 752", "-4 103 936", "+3"]


def test_position_has_groups_of_digits() -> None:
    assert units.position(1001, 1020, 12_727) == "1 001–1 020 of 12 727"


def test_share_above_nothing_is_never_shown_as_nothing() -> None:
    shown = [units.share(value) for value in (None, 0.0, 0.0001, 0.0006, 0.5)]
    assert shown == ["–", "0.0 %", "<0.1 %", "0.1 %", "50 %"]


def test_numbers_as_ranges() -> None:
    assert units.numbered("warp", [3]) == "warp 3"
    assert units.numbered("warp", [5, 1, 2, 0, 2]) == "warps 0-2, 5"
    assert units.number_ranges([0, 2, 4, 6, 8]) == "0, 2, 4, 6, … (5)"
    assert units.number_ranges(()) == ""


def test_percentage_and_ratio_have_fixed_decimals() -> None:
    assert [units.percentage(value) for value in (None, 0.0, 0.0912, 1.0)] == ["–", "0.0%", "9.1%", "100.0%"]
    assert units.percentage(0.12345, 2) == "12.35%"
    assert [units.ratio(value) for value in (None, 1.0, 1.0449)] == ["–", "1.00×", "1.04×"]
