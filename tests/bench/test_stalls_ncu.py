"""Comparison of stalls with Nsight Compute: what is computed from both, without a GPU."""

from __future__ import annotations

import pytest

from tests.bench.stalls_ncu import agreement, rank_correlation, samples_of

HEADING = '"Address","Source","# Samples","stall_barrier","stall_long_sb"'
LAUNCH = f"""==PROF== Connected to process 7
"Kernel Name","void sums(float *)",
{HEADING}
"0x7f00","      LDG.E R2, [R4]","10","0","0"
"0x7f10","      IADD3 R2, R2, R3","50","0","50"
"0x7f20","@P0   BAR.SYNC 0x0","10","0","0"
"0x7f30","      DEPBAR.LE SB0, 0x0","0","0","0"
"0x7f40","      UMOV UR4, 0x400","20","10","5"
"0x7f50","      WARPGROUP.DEPBAR.LE gsb0, 0x0","10","10","0"
"""
OTHER = f'"Kernel Name","other(float *)",\n{HEADING}\n"0x8f00","      EXIT","10","0","0"\n'


def test_samples_behind_a_barrier_are_of_the_barrier() -> None:
    shares = samples_of(LAUNCH + OTHER + LAUNCH, "sums").shares()
    assert {at: share for at, share in shares.items() if share} == {0x10: 0.5, 0x20: 0.1, 0x30: 0.05, 0x50: 0.1}


def test_agreement_compares_measured_sites() -> None:
    shares = samples_of(LAUNCH, "sums").shares()
    result = agreement({0x10: 0.45, 0x20: 0.08, 0x30: 0.02}, shares)
    assert result.same_top
    assert result.within is False
    assert result.correlation == pytest.approx(1)
    assert result.largest == ((0x10, 0.45, 0.5), (0x20, 0.08, 0.1), (0x30, 0.02, 0.05))


def test_waits_as_long_as_the_longest_are_the_same() -> None:
    assert agreement({0x10: 0.3, 0x20: 0.31}, {0x10: 0.32, 0x20: 0.31}).same_top
    assert not agreement({0x10: 0.3, 0x20: 0.31}, {0x10: 0.32, 0x20: 0.29}).same_top


def test_rank_correlation_of_reversed_order_is_minus_one() -> None:
    assert rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    assert rank_correlation([1, 2], [1, 2]) is None
