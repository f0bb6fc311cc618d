"""Launches in packed lines: what is written is read, no matter what is next to it, and each is found by its number."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.make import EPOCH_NS, TraceWriter
from tui_probe.trace.follow import TraceFollower, open_trace
from tui_probe.trace.unprobed import match_line, read_packed

Packed = tuple[int, int, int]
"""Number, key and reason (-1: not sampled) of a launch."""

launches = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 3), st.sampled_from([-1, -1, 0, 12])),
    max_size=60,
    unique_by=lambda x: x[0],
)


def written(several: list[Packed]) -> bytes:
    """One line of these launches, as short as it can be."""
    items: list[bytes] = []
    following = several[0][0]
    for number, key, reason in several:
        word = b"%d" % key + (b"/%d" % reason if reason >= 0 else b"")
        if number != following:
            items.append(b"@%d" % number)
        if number == following and items and items[-1].split(b"x")[0] == word:
            items[-1] = b"%sx%d" % (word, int([*items[-1].split(b"x"), b"1"][1]) + 1)
        else:
            items.append(word)
        following = number + 1
    return b"[passed] %d %d 7 " % (several[0][0], EPOCH_NS) + b" ".join(items)


def expanded(lines: list[bytes]) -> list[Packed]:
    """Result of reading such lines."""
    matches = [(0, match) for match in map(match_line, lines) if match is not None]
    assert len(matches) == len(lines)
    _, items = read_packed(matches)
    columns = (items.key, items.reason, items.number, items.count)
    return [
        (number + i, key, reason)
        for key, reason, number, count in zip(*(column.tolist() for column in columns), strict=True)
        for i in range(count)
    ]


@given(st.lists(launches.filter(len), max_size=8))
@settings(deadline=None)
def test_written_counts_are_read(lines: list[list[Packed]]) -> None:
    assert expanded([written(line) for line in lines]) == [launch for line in lines for launch in line]


@given(st.lists(launches.filter(len), min_size=1, max_size=8))
@settings(deadline=None)
def test_lines_know_their_least_and_greatest_launch(lines: list[list[Packed]]) -> None:
    segments, _ = read_packed([(9, match) for match in map(match_line, map(written, lines)) if match])
    numbers = [[number for number, *_ in line] for line in lines]
    assert segments.first_launch.tolist() == [min(part) for part in numbers]
    assert segments.last_launch.tolist() == [max(part) for part in numbers]
    assert segments.offset.tolist() == [9] * len(lines)


WORDS = st.sampled_from(
    ["0", "1x2", "@5", "3/0x2", "x", "/", "@", "1/", "x3", "-1", " ", "9" * 30, "1x0", "٣", "1\t", "lost"]
)


@given(st.lists(WORDS, max_size=8), st.sampled_from(["", "7", "7 8", "7 8 9"]))
@settings(deadline=None)
def test_anything_else_is_no_such_line(words: list[str], head: str) -> None:
    """A line is read whole or not at all."""
    line = " ".join(["[passed]", *head.split(), *words]).encode()
    match = match_line(line)
    good = set("0123456789@/x ") >= set(line.decode().removeprefix("[passed]"))
    assert match is None or good
    if match is not None:
        segments, items = read_packed([(0, match)])
        assert len(segments) == 1
        assert int(items.count.sum()) == sum(
            int([*word.split("x"), "1"][1]) for word in line.decode().split()[4:] if word[0] != "@"
        )


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Kernel 0 with 2 probed launches and 7 packed ones, kernel 1 with 1 and 4, and 3 of kernel 0 lost."""
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "one")
    writer.kernel(1, "two")
    writer.launch(0)
    writer.launch(1)
    writer.key(0, 0)
    writer.key(1, 1)
    writer.packed("0x4 1x2", 6)
    writer.launch(0)
    writer.lines("[reason] 0 stream is capturing code capturing")
    writer.packed("1 0x3 1/0", 5)
    writer.lines("[passed] lost 0 3")
    return writer.directory


def test_launches_are_counted_for_their_kernels(directory: Path) -> None:
    trace = open_trace(directory)
    one, two = trace.kernels
    assert (one.launches, one.launches_recorded, one.launches_probed) == (12, 2, 2)
    assert (two.launches, two.launches_recorded, two.launches_probed) == (4, 1, 1)
    assert (two.captures, trace.state.launches, trace.state.launches_probed) == (1, 16, 3)
    assert (len(trace.unprobed), trace.unprobed.launches_lost, trace.unprobed.segments) == (14, 3, 2)
    counts: Counter[tuple[int | None, str | None]] = Counter()
    for kernel, reason, count in trace.unprobed.counts():
        counts[kernel, reason.code] += count
    assert counts == {(0, "not-sampled"): 10, (1, "not-sampled"): 3, (1, "capturing"): 1}


def test_a_launch_is_found_by_its_number(directory: Path) -> None:
    passed = open_trace(directory).unprobed
    kernels = {number: found.kernel for number in range(20) if (found := passed.find(number))}
    assert kernels == {2: 0, 3: 0, 4: 0, 5: 0, 6: 1, 7: 1, 9: 1, 10: 0, 11: 0, 12: 0, 13: 1}
    last = passed.find(13)
    assert last is not None
    assert (last.reason.code, last.time_ns, last.span_ns) == ("capturing", EPOCH_NS + 9000, 4000)


@pytest.mark.parametrize(("first", "last"), [(0, 99), (5, 9), (3, 3), (8, 8), (50, 60)])
def test_counts_of_a_range(directory: Path, first: int, last: int) -> None:
    passed = open_trace(directory).unprobed
    numbers, kernels = passed.launches_between(first, last)
    counted = dict(zip(numbers.tolist(), kernels.tolist(), strict=True))
    looked_up = {number: passed.find(number) for number in range(first, last + 1)}
    ran = {number: each for number, each in looked_up.items() if each is not None and each.reason.code != "capturing"}
    assert counted == {number: each.kernel for number, each in ran.items()}
    assert len(counted) == len(numbers)


def test_a_log_that_was_cut_meanwhile_has_no_such_launches(directory: Path) -> None:
    trace = open_trace(directory)
    (directory / "event.log").write_bytes(b"")
    assert trace.unprobed.find(3) is None
    assert len(trace.unprobed.launches_between(0, 99)[0]) == 0


def test_a_line_is_followed_when_it_is_whole(directory: Path) -> None:
    content = (directory / "event.log").read_bytes()
    at = content.index(b"[passed]") + 20
    (directory / "event.log").write_bytes(content[:at])
    follower = TraceFollower(directory)
    follower.poll()
    assert follower.trace.state.launches == 2
    (directory / "event.log").write_bytes(content)
    follower.poll()
    assert follower.trace.state.launches == 17
    launch = follower.trace.unprobed.find(6)
    assert launch is not None
    assert launch.kernel == 1


def test_a_million_launches_take_little_memory(tmp_path: Path) -> None:
    """Some bytes for each line, and nothing for each launch."""
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    kernels = 7
    for kernel in range(kernels):
        writer.kernel(kernel, f"k{kernel}")
        writer.key(kernel, kernel)
    in_line = 420
    items = " ".join(str(i % kernels) for i in range(in_line))
    lines = [f"[passed] {n} {EPOCH_NS + n} {in_line} {items}" for n in range(0, 1_000_000, in_line)]
    writer.lines(*lines)
    tracemalloc.start()
    trace = open_trace(writer.directory)
    memory, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert trace.state.launches == len(lines) * in_line
    assert {kernel.launches for kernel in trace.kernels} == {len(lines) * in_line // kernels}
    assert memory < 200 * len(lines)
    launch = trace.unprobed.find(777_777)
    assert launch is not None
    assert launch.kernel == 777_777 % in_line % kernels
    _, of = trace.unprobed.launches_between(500_000, 500_099)
    assert np.bincount(of).sum() == 100
