"""Reading whole launches at once gives what reading line by line gives, whatever the log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.test_follow import summary, write_example
from tui_probe.trace.bulk import BulkReader
from tui_probe.trace.follow import open_trace
from tui_probe.trace.line_words import LineWords

texts = st.lists(
    st.sampled_from([b"", b" ", b"[exec]", b"grid 12", b"  7 8 ", b"0x1F", b"18446744073709551615 x", b"\xff 9"])
)


@given(texts.filter(len))
@settings(deadline=None)
def test_words_are_those_of_a_split(lines: list[bytes]) -> None:
    words = LineWords(b"".join(line + b"\n" for line in lines))
    every = np.arange(len(lines))
    assert len(words) == len(lines)
    assert words.words.tolist() == [len(line.split(b" ")) for line in lines]
    for position in range(5):
        begin, end = words.bounds(every, position)
        found = [words.text[a:b] for a, b in zip(begin, end, strict=True)]
        assert found == [(line.split(b" ") + [b""] * 5)[position] for line in lines]
        assert words.is_word(every, position, b"7").tolist() == [word == b"7" for word in found]
    for prefix in (b"[exec]", b"grid 12", b" "):
        assert words.begin_with(prefix).tolist() == [line.startswith(prefix) for line in lines]


@pytest.mark.parametrize(
    ("word", "digits", "value"),
    [
        (b"0", 1, 0),
        (b"1234567890123456789", 19, 1234567890123456789),
        (b"9999999999999999999", 19, 9999999999999999999),
        (b"123", 2, None),
        (b"", 9, None),
        (b"12a", 9, None),
        (b"-1", 9, None),
        (b"/", 9, None),
        (b":", 9, None),
    ],
)
def test_decimal_numbers(word: bytes, digits: int, value: int | None) -> None:
    numbers, good = LineWords(b"x " + word + b"\n").numbers(np.array([0]), 1, digits)
    assert good[0] == (value is not None)
    assert value is None or numbers[0] == value


@pytest.mark.parametrize(
    ("word", "value"),
    [
        (b"0", 0),
        (b"0x7f00AA", 0x7F00AA),
        (b"ffffffffffffffff", 2**64 - 1),
        (b"1ffffffffffffffff", None),
        (b"0x", None),
        (b"", None),
        (b"12g", None),
    ],
)
def test_hexadecimal_numbers(word: bytes, value: int | None) -> None:
    numbers, good = LineWords(b"x " + word + b"\n").hexadecimals(np.array([0]), 1)
    assert good[0] == (value is not None)
    assert value is None or numbers[0] == value


def read_line_by_line(self: BulkReader, text: bytes) -> int:
    lines = text.split(b"\n")[:-1]
    for line in lines:
        self._read_line(line)
    return len(lines)


def same_both_ways(directory: pytest.TempPathFactory, content: bytes, *, damaged: bool = True) -> None:
    place = directory.mktemp("trace") / "t"
    write_example(place)
    (place / "event.log").write_bytes(content)
    at_once = summary(open_trace(place))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BulkReader, "read", read_line_by_line)
        one_by_one = summary(open_trace(place))
    for each in (at_once, one_by_one):
        each["state"].pop("unknown_lines")  # lines that tell the model nothing are not looked at
        if damaged:  # which result is of which launch, where launches share a number or come after their result
            each["launches"] = [replace(launch, result=None) for launch in each["launches"]]
    assert at_once == one_by_one


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_example(tmp_path_factory.mktemp("example") / "t")


def test_the_example_is_read_the_same(tmp_path_factory: pytest.TempPathFactory, example: bytes) -> None:
    same_both_ways(tmp_path_factory, example, damaged=False)


damages = st.sampled_from(
    [b"", b"\n", b" ", b"0", b"x", b"9" * 30, b"\r\n", b"\0", b"-1", b"[exec] succeed 0\n", b"\xff"]
)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 60), damages), min_size=1, max_size=6))
@settings(deadline=None, max_examples=150)
def test_a_damaged_log_is_read_the_same(
    tmp_path_factory: pytest.TempPathFactory, example: bytes, wounds: list[tuple[float, int, bytes]]
) -> None:
    content = example
    for place, gone, damage in wounds:
        at = int(place * len(content))
        content = content[:at] + damage + content[at + gone :]
    same_both_ways(tmp_path_factory, b"[init] epoch 1785000000000000000\n" + content)


@given(st.randoms(use_true_random=False), st.integers(1, 12))
@settings(deadline=None, max_examples=60)
def test_lines_in_any_order_are_read_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    example: bytes,
    random,
    swaps: int,  # type: ignore[no-untyped-def]
) -> None:
    lines = example.splitlines(keepends=True)
    for _ in range(swaps):
        a, b = random.randrange(len(lines)), random.randrange(len(lines))
        lines[a], lines[b] = lines[b], lines[a]
    same_both_ways(tmp_path_factory, b"[init] epoch 1785000000000000000\n" + b"".join(lines))
