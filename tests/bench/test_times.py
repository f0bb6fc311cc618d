"""The comparison with torch.profiler, on made-up times."""

from __future__ import annotations

import pytest

from tests.bench.times import Times, compared, show


def test_kernels_are_matched_by_name_whatever_its_blanks_and_parameters() -> None:
    truth = {"void f<int, 4>(float*)": Times(10, 1000.0), "g(A)": Times(1, 100.0), "g(B)": Times(3, 900.0)}
    samples = {"void f<int,4>(float *)": Times(10, 1010.0), "g(C)": Times(4, 990.0, samples=2), "h": Times(1)}
    rows = {row.name: row for row in compared(truth, samples)}
    assert list(rows) == ["f<int,4>(float*)", "g", "h"]
    assert rows["g"].profiler == Times(4, 1000.0)
    assert rows["f<int,4>(float*)"].ratio == pytest.approx(1.01)
    assert rows["g"].off_points == pytest.approx(0.5)


def test_worst_case_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    truth = {"long": Times(10, 1000.0), "short": Times(10, 40.0)}
    samples = {"long": Times(10, 1080.0, samples=3), "short": Times(10, 65.0, samples=9, host_bound=9)}
    show("made up", compared(truth, samples))
    output = capsys.readouterr().out
    assert "totals of long kernels, % off (5)           8.00  long" in output
    assert "means of short kernels, us off (3)          2.50  short" in output
