"""Ranges within others: the answers of comparing each with each, without doing so."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tui_probe.nsight.analysis.projection import ranges_within
from tui_probe.nsight.importers.nsys_model import ProjectedRange, Stream

STREAMS = [Stream(1, 0, 1, number) for number in (7, 8)]
TIMES = st.tuples(st.integers(0, 9), st.integers(0, 5), st.sampled_from("ab"), st.integers(0, 1))


def ranges(times: list[tuple[int, int, str, int]], *, on_host: bool) -> list[ProjectedRange]:
    """Ranges of two threads, or of two streams, each with the number of those around it as its level."""
    found: list[ProjectedRange] = []
    for start, length, name, place in sorted(times, key=lambda each: (each[3], each[0], -each[1])):
        host = (start, start + length, place) if on_host else (None, None, None)
        row = ProjectedRange(name, STREAMS[place], place, start, start + length, 1, 0, 1, *host)
        found.append(replace(row, level=sum(contains(other, row) for other in found)))
    return found


def contains(outer: ProjectedRange, row: ProjectedRange) -> bool:
    same = outer.queue == row.queue and outer.thread == row.thread
    return same and outer.start <= row.start and row.end <= outer.end


@given(st.lists(TIMES, max_size=12), st.booleans())
def test_ranges_within_compares_each_with_each(times: list[tuple[int, int, str, int]], on_host: bool) -> None:
    rows = ranges(times, on_host=on_host)
    named = [row for row in rows if row.name == "a"]
    wanted = [row for row in rows if any(contains(outer, row) and outer.level <= row.level for outer in named)]
    assert ranges_within(rows, named) == wanted


def test_ranges_within_handles_many_ranges() -> None:
    """A million pairs of each with each would take minutes, and these would be a hundred million."""
    rows = ranges([(0, 1, "a", 0)], on_host=True) * 10_000
    many = [replace(row, host_start=2 * place, host_end=2 * place + 1) for place, row in enumerate(rows)]
    assert ranges_within(many, many) == many
