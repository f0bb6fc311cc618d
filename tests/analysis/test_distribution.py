"""Percentiles of values that are known."""

from __future__ import annotations

import numpy as np
import pytest

from tui_probe.records.distribution import distribution


def test_percentiles_of_a_hundred_and_one_values() -> None:
    spread = distribution(np.arange(101))
    assert spread is not None
    assert spread.percentiles == (0, 1, 5, 25, 50, 75, 95, 99, 100)
    assert (spread.minimum, spread.median, spread.maximum, spread.mean, spread.count) == (0, 50, 100, 50, 101)
    assert spread.spread == pytest.approx(98 / 50)
    assert spread.fence == 75 + 3 * 50
    assert spread.record()["p99"] == 99


def test_outliers_lie_above_the_fence() -> None:
    spread = distribution(np.array([100] * 50 + [102] * 50 + [500]))
    assert spread is not None
    assert 102 < spread.fence < 500


def test_nothing_has_no_distribution() -> None:
    assert distribution(np.array([])) is None
    zeros = distribution(np.zeros(3))
    assert zeros is not None
    assert zeros.spread is None
