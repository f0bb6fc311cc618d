"""Comparison of stalls with Nsight Compute: what is computed from both, without a GPU."""

from __future__ import annotations

import pytest

from tests.bench.stalls_ncu import agreement, rank_correlation, samples_by_offset

PAGE = """==PROF== Connected to process 7
"#","Address","Source","smsp__pcsamp_sample_count","smsp__pcsamp_warps_issue_stalled_long_scoreboard"
"1","0x7f00","LDG.E R2, [R4]","10","0"
"2","0x7f10","IADD3 R2, R2, R3","60","50"
"3","0x7f20","@P0 BAR.SYNC 0x0","10","0"
"4","0x7f30","EXIT","20","20"
"""


def test_samples_behind_a_barrier_are_of_the_barrier() -> None:
    assert samples_by_offset(PAGE) == {0x00: 0, 0x10: 0.5, 0x20: 0.2, 0x30: 0}


def test_agreement_compares_measured_sites() -> None:
    result = agreement({0x10: 0.45, 0x20: 0.2, 0x40: 0.02}, samples_by_offset(PAGE))
    assert result.same_top
    assert result.within is False  # the third is not in the samples
    assert result.correlation == pytest.approx(1)
    assert result.largest[0] == (0x10, 0.45, 0.5)


def test_rank_correlation_of_reversed_order_is_minus_one() -> None:
    assert rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    assert rank_correlation([1, 2], [1, 2]) is None
