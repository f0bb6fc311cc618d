"""Text functions under the screen: widths, names, charts, columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style

from tui_probe.draw import units
from tui_probe.draw.charts import column_chart
from tui_probe.draw.printable import printable
from tui_probe.draw.shorten import cut_middle, shorten
from tui_probe.draw.spans import Line, clip, clip_line, pad, plain, spread, to_ascii, width
from tui_probe.draw.table import Column
from tui_probe.ui.live.kernel_columns import GAP, ScreenColumn, arranged_positions, fit_columns
from tui_probe.ui.widgets.lines import changed_columns, merge_segments

ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >"
    "(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)"
)
texts = st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs", "Mn", "Me", "Zl", "Zp")), max_size=40)
lines = st.lists(st.tuples(texts, st.sampled_from(["", "dim", "good"])), max_size=6).map(tuple)


# -- spans


@given(texts, st.integers(1, 50))
def test_padded_text_fills_its_cells_exactly(text: str, cells: int) -> None:
    assert width(pad(text, cells)) == cells
    assert width(pad(text, cells, right=True)) == cells


@given(texts, st.integers(1, 50))
def test_clipped_text_fits_and_says_that_it_was_cut(text: str, cells: int) -> None:
    cut = clip(text, cells)
    assert width(cut) <= cells
    assert cut == text or cut.endswith("…")


@given(lines, st.integers(0, 60), st.integers(0, 60))
def test_a_window_on_a_line_holds_what_the_whole_line_has_there(line: Line, cells: int, skip: int) -> None:
    window = plain(clip_line(line, cells, skip=skip))
    assert width(window) <= cells
    if plain(line).isascii():
        assert window == plain(line)[skip : skip + cells]


def test_half_of_a_wide_character_becomes_a_blank() -> None:
    assert plain(clip_line((("日本語", ""),), 4, skip=1)) == " 本 "


@given(st.binary(max_size=300))
def test_any_line_of_a_file_can_be_drawn(raw: bytes) -> None:
    text = printable(raw)
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in text)
    assert to_ascii(text).isascii()


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[31mred\x1b[0m and \x1b]0;title\x07plain\n", "red and plain"),
        (b" 10%|#  |\r 90%|## |\r100%|###|\r\n", "100%|###|"),
        (b"a\tb", "a       b"),
        (b"\xff\xfe bytes", "\ufffd\ufffd bytes"),
        (b"bell\x07", "bell·"),
    ],
)
def test_program_output_is_made_plain(raw: bytes, shown: str) -> None:
    assert printable(raw) == shown


@given(texts)
def test_ascii_takes_as_many_cells(text: str) -> None:
    assert len(to_ascii(text)) == width(text) + 2 * text.count("±")


def test_error_is_shown_in_ascii() -> None:
    assert to_ascii("±12 cycles") == "+/-12 cycles"


def test_left_part_gives_way_to_the_right_one() -> None:
    assert plain(spread((("left side", ""),), (("right", "dim"),), 20)) == "left side      right"
    assert plain(spread((("left side", ""),), (("right", "dim"),), 9)) == "lef…right"
    assert plain(spread((("left side", ""),), (("right", "dim"),), 3)) == "rig"


# -- names


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=40), st.integers(1, 60))
def test_a_shortened_name_fits(name: str, cells: int) -> None:
    assert width(shorten(name, cells)) <= cells


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        (200, ELEMENTWISE),
        (110, "vectorized_elementwise_kernel<4,FillFu…,1ul>>"),
        (45, "vectorized_elementwise_kernel<4,FillFu…,1ul>>"),
        (44, "vectorized_elementwise_kernel"),
        (20, "vectorized_e…_kernel"),
        (1, "…"),
    ],
)
def test_names_lose_first_what_they_share(cells: int, shown: str) -> None:
    assert shorten(ELEMENTWISE, cells) == shown


@pytest.mark.parametrize(
    ("name", "cells", "shown"),
    [
        ("void (anonymous namespace)::foo<float>(float*, int) [clone .kd]", 12, "foo<float>"),
        ("S::operator()(int) const", 16, "S::operator()"),
        ("triton_poi_fused_add_mul_relu_native_layer_norm_12", 24, "triton_poi_fus…r_norm_12"),
        ("std::enable_if<!(false), void>::type ns::kernel<int>(int)", 20, "kernel<int>"),
        ("void A<1>::run<2, 3, 4>(float)", 12, "run<2,3,4>"),
    ],
)
def test_names_of_many_kinds(name: str, cells: int, shown: str) -> None:
    assert shorten(name, cells) == shown


def test_names_that_differ_at_their_ends_stay_different() -> None:
    long = "triton_poi_fused_add_mul_relu_native_layer_norm_"
    assert cut_middle(long + "1", 20) != cut_middle(long + "2", 20)


# -- charts


@pytest.mark.parametrize("ascii_only", [False, True])
def test_a_chart_tells_zero_from_nothing_measured(ascii_only: bool) -> None:
    (row,) = column_chart([None, 0, 50, 100], 6, maximum=100, ascii_only=ascii_only)
    assert len(row) == 6
    assert row[:3] == "   "
    assert row[3] not in " " + row[5]
    assert row.isascii() == ascii_only


def test_a_tall_chart_grows_from_its_foot() -> None:
    assert column_chart([100, 50, 1], 3, 2, maximum=100) == ["█  ", "██▁"]


# -- units


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "–"), (0, "0 B"), (999, "999 B"), (1234, "1.23 kB"), (34_600_000, "34.6 MB")]
)
def test_sizes(value: int | None, shown: str) -> None:
    assert units.size(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "–"), (8.5e-7, "850 ns"), (1.23e-5, "12.3 µs"), (0.00456, "4.56 ms"), (1.2, "1.20 s")]
)
def test_durations(value: float | None, shown: str) -> None:
    assert units.duration(value) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0"), (999, "999"), (1000, "1.0k"), (6060, "6.1k"), (9_949, "9.9k"), (9_950, "10k"), (118_499, "118k"),
     (999_499, "999k"), (999_500, "1.0M"), (12_000_000, "12M")],
)  # fmt: skip
def test_counts_in_four_cells(number: int, shown: str) -> None:
    assert units.short_count(number) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (13, "13th"), (21, "21st"), (1112, "1 112th")],
)
def test_ordinal(number: int, shown: str) -> None:
    assert units.ordinal(number) == shown


@pytest.mark.parametrize(("value", "shown"), [(0.4, "0 s"), (12, "12 s"), (125, "2 min 05 s"), (11220, "3 h 07 min")])
def test_elapsed_times(value: float, shown: str) -> None:
    assert units.elapsed(value) == shown


def test_counts_and_extents() -> None:
    assert units.counted(1, "kernel") == "1 kernel"
    assert units.counted(12345, "launch") == "12 345 launches"
    assert units.extent((64, 1, 1)) == "64"
    assert units.extent((16, 1, 4)) == "16×1×4"
    assert units.extent(None) == "–"


# -- tables

Row = tuple[int, str, float | None]
COLUMNS: tuple[ScreenColumn[Row], ...] = (
    ScreenColumn(Column("number", None, "#", lambda r: str(r[0])), lambda r: r[0], 1, 5),
    ScreenColumn(Column("name", None, "name", lambda r: r[1], right=False, narrow=1), lambda r: r[1], 10, 30),
    ScreenColumn(Column("value", None, "value", lambda r: str(r[2]), rank=1), lambda r: r[2], 5, 9),
    ScreenColumn(
        Column("reason", None, "reason", lambda r: r[1], right=False, rank=2, narrow=1), lambda r: r[1], 8, 20
    ),
)


@given(st.dictionaries(st.sampled_from(["number", "name", "value", "reason"]), st.integers(0, 60)), st.integers(1, 120))
def test_columns_fit_and_the_ones_that_matter_stay(natural: dict[str, int], cells: int) -> None:
    layout = fit_columns(COLUMNS, natural, {}, cells)
    names = [shown.key for shown, _ in layout]
    assert names[:2] == ["number", "name"]
    assert "reason" not in names or "value" in names
    if cells >= 20:
        assert sum(size for _, size in layout) + GAP * (len(layout) - 1) <= cells
    assert all(size >= 1 for _, size in layout)


@given(st.lists(st.tuples(st.integers(0, 9), texts, st.none() | st.floats(0, 9))), st.booleans())
def test_rows_without_a_value_come_last_in_both_directions(rows: list[Row], reverse: bool) -> None:
    order = arranged_positions(rows, None, lambda row: row[2], reverse=reverse)
    values = [rows[i][2] for i in order]
    known = [value for value in values if value is not None]
    assert values == known + [None] * (len(values) - len(known))
    assert known == sorted(known, reverse=reverse)


def test_rows_of_equal_value_keep_their_order() -> None:
    rows: list[Row] = [(0, "b", 1.0), (1, "a", 1.0), (2, "c", 0.0)]
    assert arranged_positions(rows, None, lambda row: row[2], reverse=False) == [2, 0, 1]
    assert arranged_positions(rows, None, lambda row: row[2], reverse=True) == [0, 1, 2]


# -- what is sent


def _cells(line: Line) -> list[tuple[str, str]]:
    return [(character, role) for text, role in line for character in text]


@given(
    st.lists(st.tuples(st.text("ab ", min_size=1, max_size=4), st.sampled_from(["", "dim"])), max_size=6),
    st.lists(st.tuples(st.text("ab ", min_size=1, max_size=4), st.sampled_from(["", "dim"])), max_size=6),
)
def test_the_changed_cells_make_the_old_line_the_new_one(
    old: list[tuple[str, str]], new: list[tuple[str, str]]
) -> None:
    length = max(len(_cells(tuple(old))), len(_cells(tuple(new))))
    one, other = ([*line, (" " * (length - len(_cells(tuple(line)))), "")] for line in (old, new))
    made, after = _cells(tuple(one)), _cells(tuple(other))
    for start, end in changed_columns(tuple(one), tuple(other)):
        made[start:end] = after[start:end]
    assert made == after


def test_parts_that_changed_far_from_each_other_are_sent_by_themselves() -> None:
    middle = "=" * 30
    assert changed_columns(((f"1{middle}2{middle}3", ""),), ((f"9{middle}2{middle}8", ""),)) == [(0, 1), (62, 63)]
    assert changed_columns((("1==2", ""),), (("8==9", ""),)) == [(0, 4)]
    assert changed_columns((("same", ""),), (("same", ""),)) == []


def test_a_wide_character_is_sent_whole() -> None:
    assert changed_columns((("a日b", ""),), (("axyb", ""),)) == [(1, 3)]
    assert changed_columns((("axyb", ""),), (("a日b", ""),)) == [(1, 3)]
    assert changed_columns((("e\u0301x", ""),), (("ex", ""),)) == [(0, 1)]


def test_blanks_take_adjacent_colours() -> None:
    red, blue, marked = Style(color="red"), Style(color="blue"), Style(color="red", bgcolor="blue")
    segments = merge_segments([(" ", blue), ("a", red), ("  ", blue), ("b", red), (" ", marked)])
    assert [(segment.text, segment.style) for segment in segments] == [(" a  b", red), (" ", marked)]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (
            "void (anonymous namespace)::fill<int, at::linspace(at::Scalar const&)::{lambda()#2}::operator()() const"
            "::{lambda(long)#1}>(int, at::linspace(at::Scalar const&)::{lambda()#2}::operator()() const"
            "::{lambda(long)#1})",
            "fill<int,lins…g)#1}>",
        ),
        (
            "void at::native::reduce<512, at::Op<f(int)::{lambda()#1}::operator()() const> >(at::Op<g>)",
            "reduce<512,Op<f…onst>>",
        ),
    ],
)
def test_lambdas_in_template_arguments_do_not_end_the_name(name: str, short: str) -> None:
    assert shorten(name, 40) == short
