"""Repeating parts of sequences."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.nsight.analysis.launch_selection import Repeat, find_iterations, find_repeats


def codes(text: str) -> list[int]:
    return [ord(letter) for letter in text]


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        ("AAABBBBBBBBCDE", [Repeat(3, 1, 8)]),  # three set-ups, eight calls, three checks
        ("xABABABAByz", [Repeat(1, 2, 4)]),
        ("sABBCABBCABBCe", [Repeat(1, 4, 3)]),  # B twice in a row is part of an iteration
        ("xAAAAyBBBBzCCCC", [Repeat(1, 1, 4), Repeat(6, 1, 4), Repeat(11, 1, 4)]),  # three configurations
        ("xAAAAyBBBz", [Repeat(1, 1, 4)]),
        ("AABCD", [Repeat(0, 1, 2)]),
        ("AAxBBByCCzDD", [Repeat(3, 1, 3)]),  # three equal ones are believed before many pairs
        ("ABCD", []),
        ("A", []),
        ("", []),
    ],
)
def test_iterations(sequence: str, expected: list[Repeat]) -> None:
    assert find_iterations(codes(sequence)) == expected


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=6, unique=True),
    st.integers(3, 9),
    st.lists(st.integers(10, 99), max_size=5, unique=True),
    st.lists(st.integers(100, 199), max_size=5, unique=True),
)
def test_a_loop_between_other_launches_is_found(
    body: list[int], times: int, before: list[int], after: list[int]
) -> None:
    assert find_iterations(before + body * times + after) == [Repeat(len(before), len(body), times)]


@given(st.lists(st.integers(0, 2), max_size=40))
def test_repeated_part_is_equal_and_inside(sequence: list[int]) -> None:
    for part in find_repeats(sequence):
        assert 0 <= part.start < part.end <= len(sequence)
        body = sequence[part.start : part.start + part.period]
        assert sequence[part.start : part.end] == body * part.times
    parts = find_iterations(sequence)
    assert len({part.times for part in parts}) <= 1
    assert all(one.end <= two.start for one, two in pairwise(parts))
