"""Tables of the benchmark of the watchdog and of ``bounds_check``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench.fault_checks import print_bounds, print_watchdog

if TYPE_CHECKING:
    import pytest


def test_processes_are_compared_in_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    print_bounds({"sort": {"original": [1.0, 2.0, 4.0], "bounds_check": [2.0, 6.0, 16.0]}})
    header, row = capsys.readouterr().out.strip().splitlines()
    assert header.split() == ["program", "seconds", "bounds_check", "memcheck"]
    assert row.split() == ["sort", "2.00", *["3.00", "(2.00", "to", "4.00)"], "–"]


def test_kernels_over_the_goal_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = {("a", "long"): (0.5, [1.2, 1.3, 1.1]), ("a", "longer"): (1.0, [1.0]), ("a", "short"): (0.01, [2.0])}
    print_watchdog(pairs)
    *rows, last = capsys.readouterr().out.strip().splitlines()
    assert [row.split()[3] for row in rows[1:]] == ["1.200", "1.000", "2.000"]
    assert last == "2 kernels of 20 µs and more: mean ratio 1.095, most 1.200, over 1.10: a long 1.200"
