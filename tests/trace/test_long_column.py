"""Columns that are in part in a file, compared with lists; and the outcome of them without a place for that file."""

from __future__ import annotations

import os
from array import array
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.trace import long_column as spill_module
from tui_probe.trace.long_column import LongColumn, Spill

if TYPE_CHECKING:
    from pathlib import Path

NUMBERS = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=40)


@given(st.lists(st.tuples(st.booleans(), NUMBERS), max_size=8), st.data())
def test_a_column_is_a_list(steps: list[tuple[bool, list[int]]], data: st.DataObject) -> None:
    column, expected = LongColumn("i", Spill(), 4), list[int]()
    for one_by_one, numbers in steps:
        if one_by_one:
            for number in numbers:
                column.append(number)
        else:
            column.frombytes(array("i", numbers).tobytes())
        expected += numbers
        if expected:
            places = data.draw(st.lists(st.sampled_from(range(len(expected))), unique=True, max_size=5))
            column.set_many(np.array(places, dtype=np.int64), np.array(places))
            for place in places:
                expected[place] = place
        assert (len(column), list(column), np.array(column).tolist()) == (len(expected), expected, expected)
    chosen = data.draw(st.slices(len(expected)))
    assert column[chosen] == expected[chosen]
    assert [column[place] for place in range(-len(expected), len(expected))] == expected * 2
    for value in {*expected[:3], *expected[-3:], 7}:
        places = [place for place, each in enumerate(expected) if each == value]
        assert (value in column, column.last_of(value)) == (bool(places), places[-1] if places else None)


def test_changed_column_is_seen_after_reading() -> None:
    column = LongColumn("q", Spill(), 4)
    column.extend(list(range(20)))
    assert column[1] == 1
    column[1] = 100
    assert column[1] == 100
    with pytest.raises(IndexError):
        column[20]


def test_memory_holds_two_blocks_and_the_file_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    column = LongColumn("q", Spill(), 100)
    for number in range(1000):
        column.append(number)
        assert len(column._tail[1]) < 200
    assert list(tmp_path.iterdir()) == []
    assert sum(column) == 499_500


@pytest.mark.parametrize("fails", ["open", "write"])
def test_without_room_for_a_file_nothing_is_lost(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    column = LongColumn("q", Spill(), 4)
    column.extend(list(range(10)))
    if fails == "open":
        monkeypatch.setattr(spill_module, "_open_unnamed", refuse)
        column = LongColumn("q", Spill(), 4)
        column.extend(list(range(10)))
    else:
        monkeypatch.setattr(os, "pwrite", refuse)
    column.extend(list(range(10, 40)))
    column[2] = -2
    assert list(column) == [0, 1, -2, *range(3, 40)]
