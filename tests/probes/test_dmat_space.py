"""The axis of memory: bands in their rows, every byte of them in one row."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from tui_probe.probes.dmat.axes import AddressAxis, Band, row_edges

bands = st.lists(st.tuples(st.integers(1, 1 << 24), st.integers(0, 1 << 30)), min_size=1, max_size=16)


@example([(1, 0), (1, 0)], 0.375, 1.0, 2)
@given(bands, st.floats(0, 0.95), st.floats(0.001, 1), st.integers(1, 60))
def test_strips_fill_their_rows_in_order(sizes: list[tuple[int, int]], low: float, extent: float, rows: int) -> None:
    at, made = 0, []
    for number, (size, gap) in enumerate(sizes):
        made.append(Band(f"range {number}", at + gap, at + gap + size, at + gap))
        at += gap + size
    space = AddressAxis(made)
    strips = space.strips(low, min(low + extent, 1.0), rows)
    assert strips
    assert strips[0].top == 0
    assert all(one.top + one.rows <= other.top <= one.top + one.rows + 1 for one, other in pairwise(strips))
    assert strips[-1].top + strips[-1].rows <= rows
    lows, highs = row_edges(strips, 4)
    assert len(lows) == 4 * sum(strip.rows for strip in strips)
    assert (lows <= highs).all()
    assert (highs[:-1] <= lows[1:]).all()
    sizes_of_rows = highs - lows
    for strip in strips:
        inside = (lows >= strip.start) & (highs <= strip.end)
        assert sizes_of_rows[inside].sum() == strip.end - strip.start
    for band in made:
        for address in (band.start, band.end - 1):
            assert space.band_of(address) == made.index(band)
            assert abs(space.address(space.position(address)) - address) <= 1 + band.size * 1e-6
