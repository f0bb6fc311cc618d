"""Columns as wide as their widest number, compared with lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.trace.long_column import NarrowColumn

NUMBERS = st.lists(
    st.one_of(*(st.integers(-(2**bits), 2**bits - 1) for bits in (7, 15, 31, 63))), max_size=40
)  # more than are added one by one


def column_of(*parts: list[int]) -> NarrowColumn:
    column = NarrowColumn()
    for part in parts:
        column.extend(np.array(part, dtype=np.int64))
    return column


@given(st.lists(NUMBERS, max_size=6))
def test_a_column_is_a_list(parts: list[list[int]]) -> None:
    column, expected = column_of(*parts), [value for part in parts for value in part]
    assert (len(column), column.numbers().tolist()) == (len(expected), expected)
    assert column.copy_first(3).numbers().tolist() == expected[:3]


@pytest.mark.parametrize("many", [1, 100])
@pytest.mark.parametrize("number", [127, -128, 128, -32768, 32768, -(2**31), 2**31, -(2**63)])
def test_a_wider_number_leaves_the_others_as_they_were(number: int, many: int) -> None:
    parts = [1] * many, [number] * many, [-1] * many
    assert column_of(*parts).numbers().tolist() == [value for part in parts for value in part]
