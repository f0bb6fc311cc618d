"""The benchmark of checks: a ratio is printed only for launches that were checked."""

from __future__ import annotations

import pytest

from tests.bench import check_cost
from tui_probe.simgpu.executor.checks.checker import BatchChecks


def test_checked_launches_have_a_ratio() -> None:
    assert len(check_cost.ratios("saxpy", 1000, 2)) == 2


def test_unchecked_launches_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchChecks, "access", lambda *_: None)
    with pytest.raises(SystemExit, match="saxpy: nothing was checked"):
        check_cost.ratios("saxpy", 1000, 1)


def test_failing_checks_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchChecks, "_check_global", None)
    with pytest.raises(SystemExit, match="saxpy: unchecked at line"):
        check_cost.ratios("saxpy", 1000, 1)
