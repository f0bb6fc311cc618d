"""Lines of growing files: found by number, searched, filtered, followed."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tui_probe.trace import log_index
from tui_probe.trace.log_index import LineFilter, LogIndex, Needle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINES = [
    b"[mem] cuMemAlloc 0",
    b"[exec] grid 1",
    b"",
    b"[exec] succeed 0",
    b"[mod] \xff\xfe",
    b"no tag",
    b"[exec] grid 2",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "event.log"


def index_of(path: Path, content: bytes) -> LogIndex:
    path.write_bytes(content)
    index = LogIndex(path)
    index.refresh()
    return index


@pytest.fixture
def index(path: Path) -> LogIndex:
    return index_of(path, b"\n".join(LINES) + b"\n")


def test_lines_by_number(index: LogIndex) -> None:
    assert len(index) == index.complete == 7
    assert index.lines(0, 7) == LINES
    assert index.lines(-3, 99) == LINES
    assert index.lines(5, 5) == index.lines(9, 12) == []
    assert index.line(4) == b"[mod] \xff\xfe"
    for number in (-1, 7):
        with pytest.raises(IndexError):
            index.line(number)


def test_a_last_line_without_its_end_is_shown_and_grows(path: Path) -> None:
    index = index_of(path, b"one\r\ntw")
    assert (len(index), index.complete, index.lines(0, 9)) == (2, 1, [b"one", b"tw"])
    with path.open("ab") as file:
        file.write(b"o\nthree")
    assert index.refresh()
    assert index.lines(0, 9) == [b"one", b"two", b"three"]
    assert not index.refresh()


@pytest.mark.parametrize("content", [b"", b"\n", b"x", b"\n\n"])
def test_small_files(path: Path, content: bytes) -> None:
    index = index_of(path, content)
    assert index.lines(0, 9) == content.split(b"\n")[: len(index)]
    assert len(index) == content.count(b"\n") + (not content.endswith(b"\n") and bool(content))


def test_a_file_that_appears_later_and_goes(path: Path) -> None:
    index = LogIndex(path)
    assert not index.refresh()
    path.write_bytes(b"a\n")
    assert index.refresh()
    path.unlink()
    assert index.refresh()
    assert (len(index), index.generation) == (0, 1)


@pytest.mark.parametrize("how", ["cut", "replaced"])
def test_a_file_that_was_replaced_has_a_new_generation(path: Path, how: str) -> None:
    index = index_of(path, b"one\ntwo\n")
    if how == "cut":
        path.write_bytes(b"new\n")
    else:
        (path.parent / "other").write_bytes(b"new\nlines\nhere\n")
        (path.parent / "other").rename(path)
    assert index.refresh()
    assert index.generation == 1
    assert index.line(0) == b"new"


def test_a_budget_leaves_the_rest_for_later(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_index, "SLICE_BYTES", 4)
    path.write_bytes(b"a\nb\nc\nd\n")
    index = LogIndex(path)
    sizes = []
    while index.refresh(budget=4):
        sizes.append(len(index))
    assert sizes == [2, 4]


def test_very_long_lines_are_handed_out_in_part(path: Path) -> None:
    index = index_of(path, b"x" * 100_000 + b"\nshort\n")
    assert [len(line) for line in index.lines(0, 2)] == [log_index.MAX_LINE_BYTES, 5]


def test_search_forwards_and_backwards(index: LogIndex) -> None:
    grid = Needle.from_query("GRID")
    assert [index.search(grid, start) for start in (0, 1, 2, 7)] == [1, 1, 6, None]
    assert [index.search(grid, start, -1) for start in (6, 5, 1, 0)] == [6, 1, 1, None]
    assert index.search(Needle.from_query("GRID", ignore_case=False), 0) is None
    assert index.search(Needle.from_query("nowhere"), 0) is None


def test_a_pattern_does_not_reach_over_the_end_of_a_line(index: LogIndex) -> None:
    assert index.search(Needle.from_query(re.compile(rb"1\s+\[exec\]")), 0) is None
    assert index.search(Needle.from_query(re.compile(rb"\s\d")), 0) == 0
    assert index.search(Needle.from_query(re.compile(rb"^\[mod\]", re.MULTILINE)), 0) == 4
    assert index.search(Needle.from_query("a\nb"), 0) is None


texts = st.lists(st.sampled_from([b"", b"a", b"ab", b"[t] a", b"[t] b", b"bb b", b"\xff"]), max_size=30)


@contextmanager
def small_pieces(size: int, step: int) -> Iterator[None]:
    """Few bytes are read at a time, and lines are marked often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_index, "SLICE_BYTES", size)
        patch.setattr(log_index, "MARK_INTERVAL", step)
        patch.setattr(log_index, "_FIRST_READ_BYTES", 1 + size // 2)
        yield


@given(texts, st.booleans(), st.integers(1, 20), st.integers(1, 9), st.lists(st.integers(0, 120), max_size=3))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_lines_and_offsets_agree_with_a_split(
    tmp_path: Path, lines: list[bytes], ended: bool, size: int, step: int, cuts: list[int]
) -> None:
    content = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    expected = content.split(b"\n")[: content.count(b"\n") + (content[-1:] not in (b"", b"\n"))]
    path = tmp_path / "log"
    path.write_bytes(b"")
    with small_pieces(size, step):
        index = LogIndex(path)
        for end in [*sorted(cuts), len(content)]:
            with path.open("ab") as file:
                file.write(content[file.tell() : end])
            index.refresh()
        for first in range(len(expected) + 1):
            assert index.lines(first, len(index)) == expected[first:]
        assert [index.line(number) for number in range(len(index))] == expected
        for offset in range(len(content)):
            assert index.line_at(offset) == content.count(b"\n", 0, offset)


@given(
    texts, st.booleans(), st.integers(1, 20), st.integers(1, 9), st.integers(-2, 32),
    st.sampled_from(["a", "b", "[t]", "zz"]),
)  # fmt: skip
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_search_agrees_with_a_plain_one(
    tmp_path: Path, lines: list[bytes], ended: bool, size: int, step: int, start: int, text: str
) -> None:
    content = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    with small_pieces(size, step):
        index = index_of(tmp_path / "log", content)
        shown = index.lines(0, len(index))
        hits = [i for i, line in enumerate(shown) if text.encode() in line]
        for needle in (Needle.from_query(text), Needle.from_query(re.compile(re.escape(text.encode())))):
            assert index.search(needle, start) == next((i for i in hits if i >= start), None)
            assert index.search(needle, start, -1) == next((i for i in reversed(hits) if i <= start), None)


@given(texts, st.integers(1, 20), st.integers(1, 9), st.lists(st.integers(0, 120), max_size=4))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_filter_follows_a_growing_log(
    tmp_path: Path, lines: list[bytes], size: int, step: int, cuts: list[int]
) -> None:
    content = b"".join(line + b"\n" for line in lines)
    path = tmp_path / "log"
    path.write_bytes(b"")
    with small_pieces(size, step):
        index = LogIndex(path)
        filters = [LineFilter(index, (b"[t]", b"bb")), LineFilter(index, (), Needle.from_query("a"))]
        filters.append(LineFilter(index, (b"[t]",), Needle.from_query(re.compile(b"b"))))
        for end in [*sorted(cuts), len(content)]:
            with path.open("ab") as file:
                file.write(content[file.tell() : end])
            index.refresh()
            for line_filter in filters:
                line_filter.refresh()
    expected = [
        [i for i, line in enumerate(lines) if line.startswith((b"[t]", b"bb"))],
        [i for i, line in enumerate(lines) if b"a" in line],
        [i for i, line in enumerate(lines) if line.startswith(b"[t]") and b"b" in line],
    ]
    assert [line_filter.numbers.tolist() for line_filter in filters] == expected


def test_a_filter_starts_anew_with_the_file(index: LogIndex, path: Path) -> None:
    chosen = LineFilter(index, (b"[exec]",))
    assert chosen.refresh()
    assert chosen.numbers.tolist() == [1, 3, 6]
    assert not chosen.refresh()
    path.write_bytes(b"[exec] x\n")
    index.refresh()
    assert chosen.refresh()
    assert chosen.numbers.tolist() == [0]


def test_many_lines(path: Path) -> None:
    index = index_of(path, b"line\n" * 300_000)
    assert len(index) == 300_000
    assert index.line(299_999) == b"line"
    numbers = LineFilter(index)
    numbers.refresh()
    np.testing.assert_array_equal(numbers.numbers, np.arange(300_000))
