"""Sectors of requests, against counting them one by one."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.probes.dmat_files import Launch, opened
from tui_probe.probes.dmat.coalescing import sectors_of_requests

BASE = 0x7F00_0000_0000


@st.composite
def warps(draw: st.DrawFn) -> Launch:
    """Lanes that stay together, or come apart, and touch few sectors or many."""
    together = draw(st.booleans())
    shared = [10 * step for step in range(draw(st.integers(1, 4)))]
    accesses = {}
    for thread in range(draw(st.sampled_from([32, 64, 40]))):
        times = shared if together else sorted(draw(st.sets(st.sampled_from(shared), min_size=1)))
        accesses[0, thread] = [(time, BASE + 16 * draw(st.integers(0, 60)), 1) for time in times]
    return Launch(1, len(accesses), accesses, [0])


@given(warps(), st.booleans())
def test_sectors_are_those_that_the_lanes_touched_together(
    tmp_path_factory: pytest.TempPathFactory, launch: Launch, counted: bool
) -> None:
    accesses = opened(tmp_path_factory.mktemp("dmat"), launch.content(4, counted=counted))
    touched: dict[tuple[int, int], set[int]] = defaultdict(set)
    for (_, thread), made in launch.accesses.items():
        for time, address, _ in made:
            touched[thread // 32, time].add(address // 32)
    expected = [
        len(touched[thread // 32, time]) for (_, thread), made in launch.accesses.items() for time, _, _ in made
    ]
    (part,) = accesses.parts()
    sectors = sectors_of_requests(part)
    assert sectors.dtype == np.float64
    assert sectors.tolist() == expected
