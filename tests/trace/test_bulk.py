"""Reading whole launches at the same time gives what reading line by line gives, for any log."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.test_follow import summary, write_example
from tests.turns import examples
from tui_probe.trace.follow import BulkReader, open_trace
from tui_probe.trace.line_block import LineBlock, LineFields

texts = st.lists(
    st.sampled_from([b"", b" ", b"[exec]", b"grid 12", b"  7 8 ", b"0x1F", b"18446744073709551615 x", b"\xff 9"])
)


@given(texts.filter(len), st.sampled_from([b"", b"[exec] "]))
@settings(deadline=None)
def test_words_are_those_of_a_split(lines: list[bytes], prefix: bytes) -> None:
    block = LineBlock(b"".join(prefix + line + b"\n" for line in lines))
    fields = LineFields(block, np.arange(len(block)), 5, prefix=prefix)
    assert len(block) == len(lines)
    for position in range(5):
        fields_read = [block.text[a:b] for a, b in zip(*map(fields.text_offsets, fields.bounds(position)), strict=True)]
        assert fields_read == [(line.split(b" ") + [b""] * 5)[position] for line in lines]
        behind = [line.split(b" ")[position : position + 1] == [b"7"] and b"7 " in line for line in lines]
        assert fields.is_word(position, b"7").tolist() == behind
    assert fields.is_valid.all()


@given(texts.filter(len))
@settings(deadline=None)
def test_lines_are_found_by_how_they_begin(lines: list[bytes]) -> None:
    block = LineBlock(b"".join(line + b"\n" for line in lines))
    for prefix in (b"[exec]", b"grid 12", b" ", b"18446744073709551615 x", b"18446744073"):
        expected = [number for number, line in enumerate(lines) if line.startswith(prefix)]
        assert block.lines_with_prefix(prefix).tolist() == expected


@given(st.integers(0, 600), st.integers(0, 600))
@settings(deadline=None)
def test_words_far_from_the_beginning_of_a_line_make_it_no_good_one(far: int, further: int) -> None:
    lines = [b"a" * size + b" 12 x" for size in (far, further)]
    fields = LineFields(LineBlock(b"".join(line + b"\n" for line in lines)), np.arange(2), 2, prefix=b"")
    (value,) = fields.numbers({1: 9})
    for good, number, line in zip(fields.is_valid, value, lines, strict=True):
        assert number == 12 if good else len(line) > 250


@pytest.mark.parametrize(
    ("word", "digits", "value"),
    [
        (b"0", 1, 0),
        (b"1234567890123456789", 19, 1234567890123456789),
        (b"9999999999999999999", 19, 9999999999999999999),
        (b"123", 2, None),
        (b"", 9, None),
        (b"12a", 9, None),
        (b"a12", 9, None),
        (b"123456789a12345678", 18, None),
        (b"-1", 9, None),
        (b"/", 9, None),
        (b":", 9, None),
        (b"\xb0", 9, None),
        (b"\xff7", 9, None),
    ],
)
def test_decimal_numbers(word: bytes, digits: int, value: int | None) -> None:
    fields = LineFields(LineBlock(b"x " + word + b"\n"), np.array([0]), 2, prefix=b"")
    (numbers,) = fields.numbers({1: digits})
    assert fields.is_valid[0] == (value is not None)
    assert value is None or numbers[0] == value


@pytest.mark.parametrize(("word", "value"), [(b"-", -1), (b"7", 7), (b"--", None), (b"", None), (b"-7", None)])
def test_a_figure_may_be_missing(word: bytes, value: int | None) -> None:
    fields = LineFields(LineBlock(b"x " + word + b" y\n"), np.array([0]), 2, prefix=b"")
    (numbers,) = fields.numbers_or_none({1: 18})
    assert fields.is_valid[0] == (value is not None)
    assert value is None or numbers[0] == value


@pytest.mark.parametrize(
    ("word", "value"),
    [
        (b"0", 0),
        (b"0x7f00AA", 0x7F00AA),
        (b"ffffffffffffffff", 2**64 - 1),
        (b"0xfedcba9876543210", 0xFEDCBA9876543210),
        (b"1ffffffffffffffff", None),
        (b"0x", None),
        (b"", None),
        (b"12g", None),
        (b"g2345678", None),
        (b"12\xe1", None),
        (b"12@", None),
        (b"12`", None),
    ],
)
def test_hexadecimal_numbers(word: bytes, value: int | None) -> None:
    fields = LineFields(LineBlock(b"x " + word + b"\n"), np.array([0]), 2, prefix=b"")
    numbers = fields.hexadecimal(1)
    assert fields.is_valid[0] == (value is not None)
    assert value is None or numbers[0] == value


@given(st.lists(st.binary(min_size=1, max_size=10), min_size=1))
def test_any_bytes_are_numbers_only_if_they_are_digits(texts: list[bytes]) -> None:
    texts = [word.replace(b" ", b"_").replace(b"\n", b"_") for word in texts]
    block = LineBlock(b"".join(b"x " + word + b" y\n" for word in texts))
    for read, pattern in (("numbers", rb"[0-9]+"), ("hexadecimal", rb"(0x)?[0-9a-fA-F]+")):
        fields = LineFields(block, np.arange(len(block)), 2, prefix=b"")
        fields.numbers({1: 10}) if read == "numbers" else fields.hexadecimal(1)
        assert fields.is_valid.tolist() == [re.fullmatch(pattern, word) is not None for word in texts]


def read_line_by_line(self: BulkReader, text: bytes, offset: int = 0) -> int:
    lines = text.split(b"\n")[:-1]
    for line in lines:
        self._recorder.offset = offset
        self._read_line(line)
        offset += len(line) + 1
    return len(lines)


def same_both_ways(directory: pytest.TempPathFactory, content: bytes, *, damaged: bool = True) -> None:
    place = directory.mktemp("trace") / "t"
    write_example(place)
    (place / "event.log").write_bytes(content)
    at_once = summary(open_trace(place))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BulkReader, "read", read_line_by_line)
        one_by_one = summary(open_trace(place))
    for content_summary in (at_once, one_by_one):
        content_summary["state"].pop("unknown_lines")  # lines that tell the model nothing are not looked at
        if damaged:  # which result belongs to which launch, where launches share a number or come after their result
            content_summary["launches"] = [replace(launch, result=None) for launch in content_summary["launches"]]
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
@settings(deadline=None, max_examples=examples(150))
def test_a_damaged_log_is_read_the_same(
    tmp_path_factory: pytest.TempPathFactory, example: bytes, wounds: list[tuple[float, int, bytes]]
) -> None:
    content = example
    for place, gone, damage in wounds:
        at = int(place * len(content))
        content = content[:at] + damage + content[at + gone :]
    same_both_ways(tmp_path_factory, b"[init] epoch 1785000000000000000\n" + content)


@given(st.randoms(use_true_random=False), st.integers(1, 12))
@settings(deadline=None, max_examples=examples(60))
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
