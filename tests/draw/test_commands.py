"""Commands in reports are what a shell takes, however they are broken into lines."""

from __future__ import annotations

import shlex

from hypothesis import given
from hypothesis import strategies as st

from tui_probe.draw.printable import shell_word
from tui_probe.draw.spans import command_lines


def test_one_line_where_there_is_room() -> None:
    assert list(command_lines(" again:", "run -- ./a.out", 80)) == [" again: run -- ./a.out"]


def test_long_ones_are_continued() -> None:
    assert list(command_lines(" again:", "run -p dmat -- ./a.out 'two words' 1", 24)) == [
        " again: run -p dmat -- \\",
        "     ./a.out \\",
        "     'two words' 1",
    ]


def test_a_path_with_a_blank_is_one_word() -> None:
    assert shell_word("my traces/Nov24_1") == "'my traces/Nov24_1'"
    assert shell_word("trace/Nov24_1") == "trace/Nov24_1"


WORDS = st.lists(st.text(st.characters(categories=["L", "N", "P"]) | st.just(" "), max_size=30), min_size=1)


@given(WORDS, st.integers(8, 90))
def test_pasted_lines_are_the_command(words: list[str], cells: int) -> None:
    lines = list(command_lines("words:", shlex.join(words), cells))
    assert shlex.split("\n".join(lines).replace("\\\n", ""))[1:] == words
