"""Options that need reading."""

from __future__ import annotations

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.cli import run_options
from tui_probe.cli.arguments import UNITS, count, launches, limit, min_free, names, sample, size
from tui_probe.launcher.control import NO_LIMIT


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [("1", 1), ("512M", 512 << 20), ("4G", 4 << 30), ("1.5k", 1536), (" 64KiB ", 65536), ("2TB", 2 << 40), ("7B", 7)],
)
def test_sizes(text: str, bytes_: int) -> None:
    assert size(text) == bytes_


@given(st.integers(1, 1 << 50), st.sampled_from(sorted(UNITS)))
def test_a_whole_size_is_exact(number: int, unit: str) -> None:
    assert size(f"{number}{unit}") == number * UNITS[unit]


@pytest.mark.parametrize("text", ["", "0", "-1", "M", "1X", "1e9", "0.0001", "1 2"])
def test_size_rejects_invalid_text(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="not a size"):
        size(text)


def test_a_limit_that_is_none() -> None:
    """A budget of nothing is another thing than none, no matter what it is of."""
    for reader in limit, count:
        assert [reader(text) for text in ("0", "none", " None ", "2048")] == [0, NO_LIMIT, NO_LIMIT, 2048]
        with pytest.raises(argparse.ArgumentTypeError, match=r"'nothing' is not .* or none for no limit"):
            reader("nothing")


@pytest.mark.parametrize(
    ("text", "written"),
    [("0", "0"), ("10G", "10737418240"), ("3%", "3%"), ("2G,5%", "2147483648,5%"), ("5%, 2K", "2048,5%")],
)
def test_min_free_is_written_in_hook_format(text: str, written: str) -> None:
    assert min_free(text) == written


@pytest.mark.parametrize("text", ["", "1G,2G", "5%,6%", "100%", "-1", "much", "1G,", "0,5%"])
def test_min_free_rejects_invalid_text(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="size"):
        min_free(text)


@given(st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999)), min_size=1))
def test_launches_are_returned_as_the_hook_reads_them(ranges: list[tuple[int, int]]) -> None:
    text = ",".join(f"{first}-{first + more}" if more else str(first) for first, more in ranges)
    assert launches(text.replace(",", ", ")) == text


@pytest.mark.parametrize("text", ["auto", "all"])
def test_launches_by_a_word(text: str) -> None:
    assert launches(text) == text


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-2", "1,,2", "0-9,", "auto,3", "ALL"])
def test_launches_rejects_invalid_text(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="does not name launches"):
        launches(text)


@pytest.mark.parametrize("text", ["1/16", "0-131", "64", "7-7", "1/1", " 1 / 16 "])
def test_samples_are_returned_as_the_hook_reads_them(text: str) -> None:
    assert sample(text) == text.replace(" ", "")


@pytest.mark.parametrize("text", ["", "0", "1/0", "2/3", "5-4", "-4", "x", "1/16/2", str(1 << 31), "0.5"])
def test_sample_rejects_invalid_text(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a sample of blocks"):
        sample(text)


def test_names() -> None:
    assert names("distribution:copy") == "distribution:copy"
    for text in ("", ":", "a:", "a::b"):
        with pytest.raises(argparse.ArgumentTypeError, match="empty part"):
            names(text)
    with pytest.raises(
        argparse.ArgumentTypeError, match="only show and check accept regex:RE; pass parts of kernel names"
    ):
        names("regex:co.y")


@pytest.mark.parametrize("option", ["-k", "--exclude"])
def test_names_of_an_option_that_is_given_twice_are_joined(option: str) -> None:
    """The last one alone would leave kernels out without a word."""
    parser = argparse.ArgumentParser()
    run_options.add_choice_options(parser.add_argument_group("choice"))
    arguments = parser.parse_args([option, "scale", option, "transpose:sum"])
    chosen = {"-k": arguments.kernel, "--exclude": arguments.exclude}
    assert chosen.pop(option) == "scale:transpose:sum"
    assert list(chosen.values()) == [None]
