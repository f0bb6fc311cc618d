"""The bar of an SM is as long as its cycles, no matter what they are."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tui_probe.probes.block_sched.view import bar


def test_parts_follow_each_other() -> None:
    assert bar([50, 25, 25], 100, 8) == "████▒▒░░"
    assert bar([25, 12.5, 12.5], 100, 8) == "██▒░"
    assert bar([0, 0, 0], 0, 8) == ""


@given(st.lists(st.floats(0, 1e9), min_size=3, max_size=3), st.floats(1, 3), st.integers(1, 200))
@settings(deadline=None)
def test_the_whole_bar_is_as_long_as_the_sum(parts: list[float], more: float, cells: int) -> None:
    total = sum(parts) * more + 1
    assert abs(len(bar(parts, total, cells)) - sum(parts) / total * cells) <= 0.5 + 1e-6
