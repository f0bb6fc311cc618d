"""Tables of any rows in any width, to the cell."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tui_probe.draw.table import Column, shown_keys, table

Row = tuple[int, str, str]
COLUMNS: tuple[Column[Row], ...] = (
    Column("number", lambda r: r[0], "#", lambda r: str(r[0])),
    Column("hidden", lambda r: r[0]),
    Column("name", None, "name", lambda r: r[1], right=False, narrow=6),
    Column("note", None, "note", lambda r: r[2], right=False, rank=2),
)


def test_numbers_stand_right_and_words_left() -> None:
    rows = [(1, "a", "x"), (22, "漢字", "yy")]
    assert list(table(COLUMNS, rows, 40)) == [
        " #  name  note",
        "──  ────  ────",
        " 1  a     x",
        "22  漢字  yy",
    ]


def test_columns_leave_by_rank_and_then_are_cut() -> None:
    rows = [(1, "a long name", "a note")]
    assert list(table(COLUMNS, rows, 22))[-1] == "1  a long name  a note"
    assert list(table(COLUMNS, rows, 21))[-1] == "1  a long na…  a note"
    assert list(table(COLUMNS, rows, 17))[-1] == "1  a lon…  a note"
    assert list(table(COLUMNS, rows, 16))[-1] == "1  a long name"
    assert list(table(COLUMNS, rows, 9))[-1] == "1  a lon…"


def test_columns_of_one_rank_share_what_is_left() -> None:
    columns: tuple[Column[Row], ...] = (
        Column("after", None, "after", lambda r: r[1], right=False, narrow=6),
        Column("before", None, "before", lambda r: r[2], right=False, narrow=6),
    )

    def last(cells: int, *names: str) -> str:
        return list(table(columns, [(1, *names)], cells))[-1]  # type: ignore[list-item]

    assert last(22, "a" * 30, "b" * 30) == f"{'a' * 9}…  {'b' * 9}…"
    assert last(22, "a" * 30, "b" * 7) == f"{'a' * 12}…  {'b' * 7}"
    assert last(22, "a" * 7, "b" * 30) == f"{'a' * 7}  {'b' * 12}…"


def test_control_characters_do_not_get_through() -> None:
    assert list(table(COLUMNS, [(1, "a\x1b[31mb\tc\nd", "")], 40))[-1] == "1  ab      c·d"


texts = st.text(alphabet="ab漢é \x1b", max_size=20)


@given(st.lists(st.tuples(st.integers(0, 10**6), texts, texts), max_size=5), st.integers(1, 60))
@settings(deadline=None)
def test_no_line_is_wider_than_asked_for(rows: list[Row], cells: int) -> None:
    lines = list(table(COLUMNS, rows, cells))
    assert len(lines) == 2 + len(rows)
    assert max(cell_len(line) for line in lines) <= cells


@pytest.mark.parametrize("rows", [[], [(1, "", "")]])
def test_empty_tables_and_cells(rows: list[Row]) -> None:
    assert len(list(table(COLUMNS, rows, 40))) == 2 + len(rows)


Site = tuple[str, int]
MEASURED: tuple[Column[Site], ...] = (
    Column("name", None, "name", lambda row: str(row[0]), right=False),
    Column("place", None, "place", lambda _: "–", right=False),
    Column("offset", None, "offset", lambda row: f"{row[1]:#06x}", rank=1),
    Column("mean", None, "mean", lambda row: f"{row[1]:,}".replace(",", " ")),
)


def test_columns_without_a_value_leave_before_others() -> None:
    """Of rank 0, yet left out before the offset; it stays where there is room, since it says what was not measured."""
    rows = [("load", 12345)]
    assert next(iter(table(MEASURED, rows, 40))).split() == ["name", "place", "offset", "mean"]
    assert next(iter(table(MEASURED, rows, 24))).split() == ["name", "offset", "mean"]
    assert next(iter(table(MEASURED, rows, 40, hide_empty=True))).split() == ["name", "offset", "mean"]


@pytest.mark.parametrize("cells", [24, 40])
def test_shown_keys_are_those_of_the_headings(cells: int) -> None:
    rows = [("load", 12345)]
    assert shown_keys(MEASURED, rows, cells) == {*next(iter(table(MEASURED, rows, cells))).split()}


def test_numbers_stay_whole_and_texts_are_cut() -> None:
    _, _, row = table(MEASURED, [("a long name of a kernel", 12345)], 14)
    assert row == "a lon…  12 345"
