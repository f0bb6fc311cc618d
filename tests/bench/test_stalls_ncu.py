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


PROBED = f"""==PROF== Connected to process 7
"Kernel Name","void sums(float *)",
{HEADING}
"0x7f00","      LDG.E R2, [R4]","10","0","0"
"0x7f10","      BRA 0x7f40","1","0","0"
"0x7f20","      EXIT","19","0","0"
"0x7f30","      BRA 0x7f20","5","0","0"
"0x7f40","      CS2R.32 R8, SR_CLOCKLO","7","0","0"
"0x7f50","      CS2R.32 R9, SR_CLOCKLO","50","0","50"
"0x7f60","      IADD3 R9, R9, -R8, RZ","4","0","0"
"0x7f70","      BRA 0x7f20","4","0","0"
"""


def test_samples_between_the_clocks_are_of_the_site() -> None:
    """The other branches lead to no clock read, and the second launch has no code at the site."""
    assert samples_of(PROBED + OTHER + LAUNCH, "sums").probed_shares() == {0x10: 0.5}


def test_samples_without_a_state_are_of_gmma() -> None:
    states = [f"stall_{number}" for number in range(17)]
    heading = ",".join(f'"{name}"' for name in ("Address", "Source", "# Samples", "stall_barrier", *states))
    cells = ",".join(['"0x7f00"', '"      HGMMA.64x64x16.F32 R24"', '"10"', '"4"', '"1"', *['"0"'] * 16])
    text = f'"Kernel Name","sums()",\n{heading}\n{cells}\n'
    assert samples_of(text, "sums").shares() == {0: 0.9}
